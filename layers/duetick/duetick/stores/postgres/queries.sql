-- What Postgres says differently, and the claim.

-- name: clock
-- What is asked each minute tells of the schema as well, at no round trip more.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
  coalesce(max(version), 0), coalesce(max(oldest_code), 0)
FROM schema_version

-- name: transaction_id
SELECT pg_current_xact_id()::text

-- name: migrate_lock
-- A lock of the transaction: it cannot be left behind, and a proxy need not pin the session.
SELECT pg_advisory_xact_lock(hashtextextended('duetick migrate', 0))

-- name: role_get
SELECT 1 FROM pg_roles WHERE rolname = :user

-- name: role_create
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :user::text, :verifier::text)

-- name: role_looks_where_we_do
SELECT format('ALTER ROLE %I IN DATABASE %I SET search_path = %s', :user::text, current_database(),
  (SELECT string_agg(quote_ident(each), ', ') FROM unnest(current_schemas(false)) AS each))

-- name: role_use_schema
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), :user::text)

-- name: role_read_version
SELECT format('GRANT SELECT ON schema_version TO %I', :user::text)

-- name: role_use_table
SELECT format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I', :table::text, :user::text)

-- name: role_use_routine
SELECT format('GRANT EXECUTE ON FUNCTION %I TO %I', :routine::text, :user::text)

-- name: name_lock
SELECT pg_advisory_xact_lock(hashtextextended(:user_id || '/' || :key, 0))

-- name: user_lock
SELECT pg_advisory_xact_lock(hashtextextended('user ' || :user_id, 0))

-- name: index_lock
SELECT {index_columns} FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key
FOR UPDATE OF i

-- name: schedule_lock
SELECT {schedule_columns} FROM schedules s WHERE s.user_id = :user_id AND s.key = :key
FOR UPDATE OF s

-- name: poison_get
SELECT {index_columns} FROM poisoned i WHERE i.user_id = :user_id AND i.key = :key
FOR UPDATE OF i

-- name: occurrence_lock
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin
FOR UPDATE OF o

-- name: occurrence_running
SELECT {occurrence_columns} FROM occurrences o
WHERE (o.user_id = :user_id AND o.key = :key AND o.state = 'processing' AND o.exclusive = 1)
    OR (o.user_id = :user_id AND o.key = :key AND o.state = 'processing' AND o.exclusive = 0)
FOR UPDATE OF o

-- name: occurrences_waiting_behind
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'queued'
    AND o.nominal_at < :nominal_at AND o.range_end IS NULL
FOR UPDATE OF o

-- name: occurrences_lease_over
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
ORDER BY o.lease_until LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: occurrences_due
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: event_list
SELECT at, before, after, note FROM events
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin
ORDER BY at, place

-- name: claim_select
-- One row, a column of it for each column of the chunk: pg8000 takes one value apart much faster
-- than thousands. The ctid stays what it is as long as this transaction holds the row.
SELECT string_agg(d.tid::text, ';'), json_agg(d.user_id), json_agg(d.key), json_agg(d.cron),
    json_agg(d.timezone), json_agg(d.next_fire_at), json_agg(d.flow), json_agg(d.anchor),
    json_agg(d.timing), json_agg(d.policies), json_agg(d.fired_through)
FROM (
    SELECT i.ctid AS tid, {index_columns}, i.fired_through FROM schedule_index i
    WHERE i.next_fire_at BETWEEN :from AND :until ORDER BY i.next_fire_at LIMIT :limit
    FOR UPDATE OF i SKIP LOCKED
) AS d

-- name: claim_known
-- Which times of the chunk's ranges have an occurrence of their own. Without the OFFSETs statistics
-- that say there are few occurrences make it begin with all of them.
SELECT asked.serial, known.nominal_at
FROM (
    SELECT i.user_id, i.key, r.first, r.last, r.serial
    FROM unnest(
        string_to_array(:places, ';')::tid[],
        string_to_array(:first, ',')::bigint[],
        string_to_array(:last, ',')::bigint[]
    ) WITH ORDINALITY AS r (tid, first, last, serial)
    JOIN schedule_index i ON i.ctid = r.tid
    OFFSET 0
) AS asked
CROSS JOIN LATERAL (
    SELECT o.nominal_at FROM occurrences o
    WHERE o.user_id = asked.user_id AND o.key = asked.key
        AND o.nominal_at BETWEEN asked.first AND asked.last AND o.origin = 'schedule'
    OFFSET 0
) AS known

-- name: claim_write
-- Occurrences, advances and ends of one chunk, all at once. What a row says of itself is not sent
-- back: it is read from the row, which this transaction holds. What all occurrences of the chunk
-- have alike comes once, as …_of_all.
WITH made AS (
    INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, timezone, flow, state,
        reason, due_at, attempts, priority, fence, lease_until, exclusive, timing, policies,
        range_end, count, created_at, updated_at)
    SELECT i.user_id, i.key, coalesce(o.nominal_at, :nominal_at_of_all), 'schedule',
        :stem || lpad(to_hex(o.serial - 1), 6, '0'), i.cron, i.timezone, i.flow,
        coalesce(o.state, :state_of_all), coalesce(o.reason, :reason_of_all),
        coalesce(o.due_at, :due_at_of_all), 0, coalesce(o.priority, :priority_of_all),
        coalesce(o.fence, :fence_of_all), coalesce(o.lease_until, :lease_until_of_all),
        coalesce(o.exclusive, :exclusive_of_all), i.timing, i.policies,
        coalesce(o.range_end, :range_end_of_all), coalesce(o.count, :count_of_all), :now, :now
    FROM unnest(
        string_to_array(:places, ';')::tid[],
        string_to_array(:nominal_at, ',')::bigint[],
        string_to_array(:due_at, ',')::bigint[],
        string_to_array(:lease_until, ',', '')::bigint[],
        string_to_array(:state, ','),
        string_to_array(:reason, ',', ''),
        string_to_array(:fence, ',')::bigint[],
        string_to_array(:priority, ',')::integer[],
        string_to_array(:exclusive, ',')::smallint[],
        string_to_array(:range_end, ',', '')::bigint[],
        string_to_array(:count, ',')::bigint[]
    ) WITH ORDINALITY AS o (tid, nominal_at, due_at, lease_until, state, reason, fence, priority,
        exclusive, range_end, count, serial)
    JOIN schedule_index i ON i.ctid = o.tid
    ON CONFLICT (user_id, key, nominal_at, origin) DO NOTHING
    RETURNING id
), advanced AS (
    UPDATE schedule_index i SET next_fire_at = r.next_at, fired_through = r.through
    FROM unnest(
        string_to_array(:advanced, ';')::tid[],
        string_to_array(:next_at, ',')::bigint[],
        string_to_array(:through, ',')::bigint[]
    ) AS r (tid, next_at, through)
    WHERE i.ctid = r.tid
    RETURNING 1
), kept AS (
    INSERT INTO watermarks (user_id, key, fired_through)
    SELECT i.user_id, i.key, r.through
    FROM unnest(
        string_to_array(:done, ';')::tid[], string_to_array(:done_through, ',')::bigint[]
    ) AS r (tid, through)
    JOIN schedule_index i ON i.ctid = r.tid
    ON CONFLICT (user_id, key) DO UPDATE SET fired_through = excluded.fired_through
), gone AS (
    DELETE FROM schedule_index i USING unnest(string_to_array(:done, ';')::tid[]) AS r (tid)
    WHERE i.ctid = r.tid
    RETURNING 1
)
-- The ids that are new, null where all are.
SELECT (
    SELECT CASE
        WHEN count(*) < cardinality(string_to_array(:places, ';'))
            THEN coalesce(string_agg(id, ','), '')
    END FROM made
), rows_expected(
    (SELECT count(*) FROM advanced) + (SELECT count(*) FROM gone),
    cardinality(string_to_array(:advanced, ';')) + cardinality(string_to_array(:done, ';'))
)

-- name: occurrence_begin
SELECT b.verdict, {occurrence_columns}, {schedule_columns}
FROM occurrence_begin(
    :user_id, :key, :nominal_at, :origin, :fence, :flow, :now, :usual
) AS b
CROSS JOIN LATERAL (SELECT (b.held).*) AS o
CROSS JOIN LATERAL (SELECT (b.record).*) AS s

-- name: occurrence_settle
SELECT {occurrence_columns}
FROM occurrence_settle(
    :user_id, :key, :nominal_at, :origin, :fence, :state, :reason, :error, :now, :usual
) AS o
