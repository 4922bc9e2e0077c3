-- The queries that differ on Postgres, and the claim.

-- name: clock
-- The clock is read each minute; the schema's version comes with it in the same round trip.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint,
  coalesce(max(version), 0), coalesce(max(oldest_code), 0)
FROM schema_version

-- name: look
SELECT t.now, (SELECT coalesce(max(version), 0) FROM schema_version),
    (SELECT coalesce(max(oldest_code), 0) FROM schema_version),
    (SELECT body FROM notes WHERE name = :note),
    EXISTS (SELECT 1 FROM inbox),
    EXISTS (SELECT 1 FROM standing_orders WHERE ended_at IS NULL),
    EXISTS (SELECT 1 FROM schedule_index i WHERE i.next_fire_at <= t.now + t.ahead),
    coalesce((SELECT min(o.lease_until) FROM occurrences o
        WHERE o.state IN ('queued', 'processing')) <= t.now, false)
    OR coalesce((SELECT min(o.due_at) FROM occurrences o
        WHERE o.state IN ('scheduled', 'retrying')) <= t.now + t.ahead, false)
FROM (SELECT coalesce(:now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint) AS now,
    :ahead::bigint AS ahead OFFSET 0) AS t

-- name: transaction_id
SELECT pg_current_xact_id()::text

-- name: migrate_lock
-- A lock of the transaction, not of the session: it always ends with the transaction, and a proxy
-- need not pin the session.
SELECT pg_advisory_xact_lock(hashtextextended('duetick migrate', 0))

-- name: names_taken
SELECT c.relname, CASE c.relkind WHEN 'r' THEN 'table' WHEN 'p' THEN 'partitioned table'
    WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'S' THEN 'sequence'
    WHEN 'f' THEN 'foreign table' WHEN 'c' THEN 'type' ELSE 'index' END,
  coalesce((SELECT t.relname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid
    WHERE x.indexrelid = c.oid), c.relname)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
WHERE c.relname IN (SELECT json_array_elements_text(:names::json))
UNION ALL
SELECT p.proname, 'function', '' FROM pg_proc p
JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = current_schema()
WHERE p.proname IN (SELECT json_array_elements_text(:names::json))
UNION ALL
SELECT t.typname, 'type', '' FROM pg_type t
JOIN pg_namespace n ON n.oid = t.typnamespace AND n.nspname = current_schema()
WHERE t.typname IN (SELECT json_array_elements_text(:names::json)) AND t.typrelid = 0

-- name: routines
-- The functions of `kept`, of any code. Only their owner may drop them.
SELECT p.proname, p.oid::regprocedure::text, pg_has_role(p.proowner, 'USAGE')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace AND n.nspname = current_schema()
WHERE p.proname ~ '^duetick_[a-z_]+_[0-9a-f]{12}$' AND p.prorettype = 'json'::regtype

-- name: take_over_bound
-- Objects of the table that would make a claim or a put fail, or that hide rows from another role.
WITH its AS (SELECT c.oid, c.relrowsecurity FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
  WHERE c.relname = 'schedule_index')
SELECT t.tgname, 'trigger', 'schedule_index' FROM pg_trigger t JOIN its ON its.oid = t.tgrelid
WHERE NOT t.tgisinternal
UNION ALL
SELECT r.rulename, 'rule', 'schedule_index' FROM pg_rewrite r JOIN its ON its.oid = r.ev_class
UNION ALL
SELECT p.polname, 'policy', 'schedule_index' FROM pg_policy p JOIN its ON its.oid = p.polrelid
UNION ALL
SELECT 'of schedule_index', 'row level security', 'schedule_index' FROM its WHERE its.relrowsecurity
UNION ALL
SELECT k.conname, CASE k.contype WHEN 'f' THEN 'foreign key' WHEN 'c' THEN 'check constraint'
    WHEN 'x' THEN 'exclusion constraint' ELSE 'deferrable constraint' END, 'schedule_index'
FROM pg_constraint k JOIN its ON its.oid IN (k.conrelid, k.confrelid)
WHERE k.contype IN ('f', 'c', 'x') OR (k.contype IN ('p', 'u') AND k.condeferrable)
UNION ALL
SELECT i.inhrelid::regclass::text, 'child table', 'schedule_index' FROM pg_inherits i
JOIN its ON its.oid = i.inhparent
UNION ALL
SELECT i.inhparent::regclass::text, 'parent table', 'schedule_index' FROM pg_inherits i
JOIN its ON its.oid = i.inhrelid
UNION ALL
SELECT a.attname, 'generated column', 'schedule_index' FROM pg_attribute a
JOIN its ON its.oid = a.attrelid WHERE a.attgenerated <> '' OR a.attidentity = 'a'
UNION ALL
SELECT a.attname, 'collation of', 'schedule_index' FROM pg_attribute a
JOIN its ON its.oid = a.attrelid
JOIN pg_collation l ON l.oid = a.attcollation AND NOT l.collisdeterministic
UNION ALL
SELECT c.relname, 'unique index', 'schedule_index' FROM pg_index x JOIN its ON its.oid = x.indrelid
JOIN pg_class c ON c.oid = x.indexrelid
WHERE x.indisunique AND NOT x.indisprimary AND '{key,user_id}' IS DISTINCT FROM (
  SELECT array_agg(coalesce(a.attname::text, '') ORDER BY a.attname::text)
  FROM unnest(x.indkey) WITH ORDINALITY AS of_key (attnum, place)
  LEFT JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = of_key.attnum
  WHERE of_key.place <= x.indnkeyatts)

-- name: take_over_sql
-- On Postgres `take_over_bound` finds everything.
SELECT '' WHERE false

-- name: take_over_indexes
-- On Postgres the indexes stay.
SELECT '', '' WHERE false

-- name: table_columns
SELECT a.attname, CASE
    WHEN a.atttypid IN ('text'::regtype, 'varchar'::regtype) THEN 'text'
    WHEN a.atttypid IN ('bigint'::regtype, 'integer'::regtype) THEN 'number'
    ELSE format_type(a.atttypid, NULL)
  END
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = current_schema()
WHERE c.relname = :table AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'c')
  AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum

-- name: take_over_lock
LOCK TABLE schedule_index IN ACCESS EXCLUSIVE MODE

-- name: take_over_untimed
SELECT user_id, key, coalesce(cron, ''), nullif(timezone, ''),
  (extract(epoch FROM clock_timestamp()) * 1000)::bigint
FROM schedule_index WHERE next_fire_at IS NULL

-- name: take_over
-- Alter the table in place, so that its grants stay. It becomes the table that the first step of the
-- schema makes.
DELETE FROM schedule_index WHERE next_fire_at IS NULL;
UPDATE schedule_index SET cron = coalesce(cron, ''), timezone = nullif(timezone, '')
WHERE cron IS NULL OR timezone = '';
DROP INDEX IF EXISTS idx_schedule_index_next_fire_at;
ALTER TABLE schedule_index
    ALTER user_id TYPE text COLLATE "C", ALTER user_id SET NOT NULL,
    ALTER key TYPE text COLLATE "C", ALTER key SET NOT NULL,
    ALTER cron TYPE text, ALTER cron SET NOT NULL,
    ALTER timezone TYPE text, ALTER timezone DROP NOT NULL,
    ALTER next_fire_at TYPE bigint, ALTER next_fire_at SET NOT NULL,
    ADD flow text NOT NULL DEFAULT '',
    ADD anchor bigint NOT NULL DEFAULT 0,
    ADD redefined_at bigint NOT NULL DEFAULT 0,
    ADD policies text,
    ADD mark bigint,
    SET LOGGED,
    SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1)

-- name: take_over_key
-- The statements that make (user_id, key) the primary key, if it is not.
WITH held AS (
    SELECT c.conname, (SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_attribute a
        WHERE a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)) AS columns
    FROM pg_constraint c WHERE c.conrelid = 'schedule_index'::regclass AND c.contype = 'p'
)
SELECT format('ALTER TABLE schedule_index DROP CONSTRAINT %I', conname) FROM held
WHERE columns <> '{key,user_id}'
UNION ALL
SELECT 'ALTER TABLE schedule_index ADD PRIMARY KEY (user_id, key)'
WHERE NOT EXISTS (SELECT 1 FROM held WHERE columns = '{key,user_id}')

-- name: take_over_end
SELECT 1

-- name: role_get
SELECT 1 FROM pg_roles WHERE rolname = :user

-- name: role_create
SELECT format('CREATE ROLE %I LOGIN PASSWORD %L', :user::text, :verifier::text)

-- name: role_set_search_path
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

-- name: schedule_lock
SELECT 1 FROM schedules s WHERE s.user_id = :user_id AND s.key = :key FOR UPDATE OF s

-- name: schedules_ending
SELECT s.user_id, s.key, s.enabled, s.pause, s.policies FROM json_array_elements(:names::json) AS n
JOIN schedules s ON s.user_id = n ->> 0 AND s.key = n ->> 1
FOR UPDATE OF s

-- name: schedules_end
UPDATE schedules AS s SET done_at = (n ->> 2)::bigint, purge_at = (n ->> 3)::bigint
FROM json_array_elements(:marks::json) AS n
WHERE s.user_id = n ->> 0 AND s.key = n ->> 1

-- name: index_lock
SELECT {index_columns}, i.mark FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key
FOR UPDATE OF i

-- name: occurrence_lock
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin
FOR UPDATE OF o

-- name: occurrences_in_place
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.place >= ''
FOR UPDATE OF o

-- name: occurrences_queued
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'queued'
    AND o.nominal_at < :nominal_at AND o.attempts = 0
FOR UPDATE OF o

-- name: events_of
SELECT at, before, after, note, told FROM events
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin
ORDER BY at, place

-- name: occurrences_of_chunk
SELECT o.id FROM occurrences o WHERE o.id COLLATE "C" >= :stem AND o.id COLLATE "C" < :stem || 'g'

-- name: occurrence_named
SELECT {occurrence_columns} FROM occurrences o WHERE o.id COLLATE "C" = :id LIMIT 1

-- name: occurrences_lease_over
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
    AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
ORDER BY o.lease_until LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: apart_users
SELECT json_array_elements_text(:apart::json)

-- name: acting_flows
SELECT json_array_elements_text(:by_action::json)

-- name: names_of_rows
CASE WHEN r.spread = 1 THEN json_agg(json_build_array(r.member_user, r.member_key))::text END

-- name: full_users
SELECT json_array_elements_text(:full_users::json)

-- name: full_flows
SELECT json_array_elements_text(:full_flows::json)

-- name: full_actions
SELECT json_array_elements_text(:full_actions::json)

-- name: hook_named
(f.policies::json ->> 'on_failure')

-- name: occurrences_lease_over_within
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
    AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
    AND (o.state = 'processing' OR o.attempts > 0 OR ({within_limits}))
ORDER BY o.lease_until LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: occurrences_due
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
    AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
    AND (o.attempts = 0 OR o.exclusive = 0 OR NOT ({place_of_another}))
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: occurrences_due_unheld
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
    AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
    AND (o.attempts = 0 OR o.exclusive = 0 OR NOT ({place_of_another}))
    AND ((o.attempts = 0 AND NOT ({stands_beside})) OR (:everything::integer = 0
        AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:users::json)))
        AND o.flow <> ALL (ARRAY(SELECT json_array_elements_text(:flows::json)))))
    AND {within_limits}
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit FOR UPDATE OF o SKIP LOCKED

-- name: retries_reserve_unheld
{reserve_write}
    AND :everything::integer = 0
    AND o.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:users::json)))
    AND o.flow <> ALL (ARRAY(SELECT json_array_elements_text(:flows::json)))
    AND {within_limits}

-- name: claim_select
-- One row with one JSON array for each column of the chunk: pg8000 reads one long value much faster
-- than thousands of short ones. A row's ctid does not change while this transaction locks the row.
SELECT string_agg(d.tid::text, ';'), json_agg(d.user_id), json_agg(d.key), json_agg(d.cron),
    json_agg(d.timezone), json_agg(d.next_fire_at), json_agg(d.flow), json_agg(d.anchor),
    json_agg(d.redefined_at), json_agg(d.policies), json_agg(d.mark)
FROM (
    SELECT i.ctid AS tid, {index_columns}, i.mark FROM schedule_index i
    WHERE i.next_fire_at BETWEEN :from AND :until AND i.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
    ORDER BY i.next_fire_at LIMIT :limit
    FOR UPDATE OF i SKIP LOCKED
) AS d

-- name: claim_select_part
-- As claim_select, of one part of the rows, by a hash of their names.
SELECT string_agg(d.tid::text, ';'), json_agg(d.user_id), json_agg(d.key), json_agg(d.cron),
    json_agg(d.timezone), json_agg(d.next_fire_at), json_agg(d.flow), json_agg(d.anchor),
    json_agg(d.redefined_at), json_agg(d.policies), json_agg(d.mark)
FROM (
    SELECT i.ctid AS tid, {index_columns}, i.mark FROM schedule_index i
    WHERE i.next_fire_at BETWEEN :from AND :until AND i.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
        AND mod(hashtextextended(i.user_id || '/' || i.key, 0), :of) IN (:number, :number - :of)
    ORDER BY i.next_fire_at LIMIT :limit
    FOR UPDATE OF i SKIP LOCKED
) AS d

-- name: claim_read_part
-- As claim_read, of one part of the rows.
SELECT string_agg(d.tid::text, ';'), string_agg(d.version::text, ','), json_agg(d.user_id),
    json_agg(d.key), json_agg(d.cron), json_agg(d.timezone), json_agg(d.next_fire_at),
    json_agg(d.flow), json_agg(d.anchor), json_agg(d.redefined_at), json_agg(d.policies),
    json_agg(d.mark)
FROM (
    SELECT i.ctid AS tid, i.xmin AS version, {index_columns}, i.mark FROM schedule_index i
    WHERE i.next_fire_at BETWEEN :from AND :until AND i.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
        AND mod(hashtextextended(i.user_id || '/' || i.key, 0), :of) IN (:number, :number - :of)
    ORDER BY i.next_fire_at LIMIT :limit
) AS d

-- name: claim_read
-- The same without locks, with the version of each row: a write of the row makes another one.
SELECT string_agg(d.tid::text, ';'), string_agg(d.version::text, ','), json_agg(d.user_id),
    json_agg(d.key), json_agg(d.cron), json_agg(d.timezone), json_agg(d.next_fire_at),
    json_agg(d.flow), json_agg(d.anchor), json_agg(d.redefined_at), json_agg(d.policies),
    json_agg(d.mark)
FROM (
    SELECT i.ctid AS tid, i.xmin AS version, {index_columns}, i.mark FROM schedule_index i
    WHERE i.next_fire_at BETWEEN :from AND :until AND i.user_id <> ALL (ARRAY(SELECT json_array_elements_text(:leave_out::json)))
    ORDER BY i.next_fire_at LIMIT :limit
) AS d

-- name: claim_lock
-- Some of the rows that `claim_read` found, if they are due still.
SELECT string_agg(d.tid::text, ';'), json_agg(d.user_id), json_agg(d.key), json_agg(d.cron),
    json_agg(d.timezone), json_agg(d.next_fire_at), json_agg(d.flow), json_agg(d.anchor),
    json_agg(d.redefined_at), json_agg(d.policies), json_agg(d.mark)
FROM (
    SELECT i.ctid AS tid, {index_columns}, i.mark
    FROM unnest(:places::tid[], :versions::xid[]) AS r (tid, version)
    JOIN schedule_index i ON i.ctid = r.tid AND i.xmin = r.version
    FOR UPDATE OF i SKIP LOCKED
) AS d

-- name: claim_advance
-- Advance the rows of a chunk that are as they were read, and record their occurrences, in one
-- statement. Rows that fire alike share occurrences without a name: a row is sent with the number of
-- its list of them, and with the serial number of its first. Fields that a row has are not sent back.
-- If all occurrences have the same value, it is sent once, as …_of_all. The lists hold neither texts
-- nor nulls, which would be searched from their beginning: a word is its place among the words, and 0
-- is null. If an occurrence is there already, all of the statement fails.
WITH advanced AS (
    UPDATE schedule_index i SET next_fire_at = r.next_at, mark = r.mark
    FROM unnest(:places::tid[], :versions::xid[], :next_at::bigint[], :marks::bigint[],
        :lists::integer[], :serials::bigint[]) AS r (tid, version, next_at, mark, list, serial)
    WHERE i.ctid = r.tid AND i.xmin = r.version
    RETURNING i.user_id, i.key, i.cron, i.timezone, i.flow, i.redefined_at, i.policies,
        r.list, r.serial
), made AS (
    INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, timezone, flow, state,
        reason, due_at, attempts, priority, fence, lease_until, exclusive, redefined_at, policies,
        range_end, count, created_at, updated_at)
    SELECT i.user_id, i.key, coalesce(:nominal_at_of_all, (:nominal_at::bigint[])[i.o]), 'schedule',
        :stem || lpad(to_hex(i.serial + i.o), 6, '0'), i.cron, i.timezone, i.flow,
        coalesce(:state_of_all, (:words::text[])[(:state::integer[])[i.o]]),
        coalesce(:reason_of_all, (:words::text[])[(:reason::integer[])[i.o]]),
        coalesce(:due_at_of_all, (:due_at::bigint[])[i.o]), 0,
        coalesce(:priority_of_all, (:priority::integer[])[i.o]),
        coalesce(:fence_of_all, (:fence::bigint[])[i.o]),
        coalesce(:lease_until_of_all, nullif((:lease_until::bigint[])[i.o], 0)),
        coalesce(:exclusive_of_all, (:exclusive::smallint[])[i.o]),
        i.redefined_at, i.policies,
        coalesce(:range_end_of_all, nullif((:range_end::bigint[])[i.o], 0)),
        coalesce(:count_of_all, (:count::bigint[])[i.o]), :now, :now
    FROM (
        SELECT a.user_id, a.key, a.cron, a.timezone, a.flow, a.redefined_at, a.policies,
            a.serial - (:first::bigint[])[a.list] AS serial,
            generate_series((:first::bigint[])[a.list], (:last::bigint[])[a.list]) AS o
        FROM advanced a
    ) AS i
)
-- How many rows were as they had been read.
SELECT count(*) FROM advanced

-- name: claim_verify
-- Undo the transaction if a range that it has written holds a time that has an occurrence already. The
-- rows of the ranges are written, and so nobody else records such a time meanwhile.
SELECT rows_expected(count(*), 0)
FROM ROWS FROM (
    json_array_elements_text(:users::json), json_array_elements_text(:keys::json),
    unnest(:first::bigint[]), unnest(:last::bigint[])
) AS r (user_id, key, first, last)
CROSS JOIN LATERAL (
    SELECT 1 FROM occurrences o
    WHERE o.user_id = r.user_id AND o.key = r.key
        AND o.nominal_at > r.first AND o.nominal_at <= r.last AND o.origin = 'schedule'
    OFFSET 0
) AS known

-- name: claim_known
-- The times in the chunk's ranges that have an occurrence already. The OFFSETs fix the plan: without
-- them, statistics that count few occurrences make Postgres read all occurrences first.
SELECT asked.serial, known.nominal_at
FROM (
    SELECT i.user_id, i.key, r.first, r.last, r.serial
    FROM unnest(
        :places::tid[],
        :first::bigint[],
        :last::bigint[]
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
-- Write the occurrences, advances and removals of one chunk in one statement. Fields that a row has
-- are not sent back: they are read from the row, which this transaction has locked. If all
-- occurrences of the chunk have the same value, it is sent once, as …_of_all.
WITH made AS (
    INSERT INTO occurrences (user_id, key, nominal_at, origin, id, cron, timezone, flow, state,
        reason, due_at, attempts, priority, fence, lease_until, exclusive, redefined_at, policies,
        range_end, count, created_at, updated_at)
    SELECT i.user_id, i.key, coalesce(o.nominal_at, :nominal_at_of_all), 'schedule',
        :stem || lpad(to_hex(o.serial - 1), 6, '0'), i.cron, i.timezone, i.flow,
        coalesce(o.state, :state_of_all), coalesce(o.reason, :reason_of_all),
        coalesce(o.due_at, :due_at_of_all), 0, coalesce(o.priority, :priority_of_all),
        coalesce(o.fence, :fence_of_all), coalesce(o.lease_until, :lease_until_of_all),
        coalesce(o.exclusive, :exclusive_of_all), i.redefined_at, i.policies,
        coalesce(o.range_end, :range_end_of_all), coalesce(o.count, :count_of_all), :now, :now
    FROM unnest(
        :places::tid[],
        :nominal_at::bigint[],
        :due_at::bigint[],
        :lease_until::bigint[],
        :state::text[],
        :reason::text[],
        :fence::bigint[],
        :priority::integer[],
        :exclusive::smallint[],
        :range_end::bigint[],
        :count::bigint[]
    ) WITH ORDINALITY AS o (tid, nominal_at, due_at, lease_until, state, reason, fence, priority,
        exclusive, range_end, count, serial)
    JOIN schedule_index i ON i.ctid = o.tid
    ON CONFLICT (user_id, key, nominal_at, origin) DO NOTHING
    RETURNING id
), advanced AS (
    UPDATE schedule_index i SET next_fire_at = r.next_at, mark = r.mark
    FROM unnest(
        :advanced::tid[],
        :next_at::bigint[],
        :marks::bigint[]
    ) AS r (tid, next_at, mark)
    WHERE i.ctid = r.tid
    RETURNING 1
), kept AS (
    INSERT INTO marks (user_id, key, mark)
    SELECT i.user_id, i.key, r.mark
    FROM unnest(
        :done::tid[], :done_marks::bigint[]
    ) AS r (tid, mark)
    JOIN schedule_index i ON i.ctid = r.tid
    ON CONFLICT (user_id, key) DO UPDATE SET mark = excluded.mark
), gone AS (
    DELETE FROM schedule_index i USING unnest(:done::tid[]) AS r (tid)
    WHERE i.ctid = r.tid
    RETURNING 1
)
-- The ids of new occurrences; null if all are new.
SELECT (
    SELECT CASE
        WHEN count(*) < cardinality(:places::tid[])
            THEN coalesce(string_agg(id, ','), '')
    END FROM made
), rows_expected(
    (SELECT count(*) FROM advanced) + (SELECT count(*) FROM gone),
    cardinality(:advanced::tid[]) + cardinality(:done::tid[])
)

-- name: occurrence_begin
-- The record was locked before, so that the begin is decided, and counted, by its newest state.
WITH begun AS (
    {begin_write}
    RETURNING o.*
), counted AS (
    UPDATE schedules s SET runs = s.runs + CASE WHEN b.attempts = 1 THEN 1 ELSE 0 END,
        last_run_at = :now
    FROM begun b WHERE s.user_id = :user_id AND s.key = :key
)
SELECT {occurrence_columns} FROM begun o

-- name: given_write
-- What a write of many reads its occurrences from: one row for each, in JSON.
json_to_recordset(:many) AS given (user_id text, key text, nominal_at bigint, origin text, flow text,
    fence bigint, next_fence bigint, before text, state text, reason text, due_at bigint,
    attempts bigint, policies text, lease_until bigint, held_until bigint, error text, told text,
    note text, note_told text, updated_at bigint)

-- name: occurrence_lease
{lease_write of many}

-- name: schedules_lock
-- In the order of their names, so that two packs never wait for each other.
SELECT 1 FROM (SELECT DISTINCT given.user_id, given.key FROM {given_write}) AS n
JOIN schedules s ON s.user_id = n.user_id AND s.key = n.key
ORDER BY s.user_id, s.key FOR UPDATE OF s

-- name: occurrences_begin
-- As occurrence_begin, for many. If one violates the place of another, none is begun.
WITH begun AS (
    {begin_write of many}
    RETURNING o.*
), counted AS (
    UPDATE schedules s SET runs = s.runs + CASE WHEN b.attempts = 1 THEN 1 ELSE 0 END,
        last_run_at = :now
    FROM begun b WHERE s.user_id = b.user_id AND s.key = b.key
)
SELECT {occurrence_columns} FROM begun o

-- name: schedules_get
SELECT {schedule_columns} FROM (SELECT DISTINCT given.user_id, given.key FROM {given_write}) AS n
JOIN schedules s ON s.user_id = n.user_id AND s.key = n.key

-- name: occurrences_move_leased
WITH written AS (
    {leased_write of many}
    RETURNING o.user_id, o.key, o.nominal_at, o.origin
), traced AS (
    INSERT INTO events (user_id, key, nominal_at, origin, at, before, after, note, told)
    SELECT w.user_id, w.key, w.nominal_at, w.origin, :now, given.before, given.state, given.note,
        given.note_told
    FROM written w JOIN {given_write} ON given.user_id = w.user_id AND given.key = w.key
        AND given.nominal_at = w.nominal_at AND given.origin = w.origin
    WHERE given.note IS NOT NULL
)
SELECT user_id, key, nominal_at, origin FROM written

-- name: occurrence_move_leased
{leased_write}
RETURNING 1

-- name: occurrence_move_leased_traced
WITH written AS (
    {leased_write}
    RETURNING 1
)
INSERT INTO events (user_id, key, nominal_at, origin, at, before, after, note, told)
SELECT :user_id, :key, :nominal_at, :origin, :now, :before, :state, :note, :note_told FROM written
RETURNING 1

-- name: tables
SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND pg_table_is_visible(oid)

-- name: entries_page
-- Each schedule is looked up by itself: a join of all of them reads the whole ledger for one hour.
SELECT o.user_id, o.key, o.nominal_at, o.range_end, o.count, o.state, o.reason, o.redefined_at
FROM (SELECT DISTINCT user_id, key FROM definitions
    WHERE (user_id, key) >= (:first_user, :first_key) AND (user_id, key) <= (:last_user, :last_key)
        AND (user_id, key) >= (:after_user, :after_key)) AS n
CROSS JOIN LATERAL (
    SELECT e.* FROM occurrences e
    WHERE e.user_id = n.user_id AND e.key = n.key AND e.origin = 'schedule'
        AND e.nominal_at <= :until
        AND e.nominal_at >= coalesce((SELECT max(p.nominal_at) FROM occurrences p
            WHERE p.user_id = n.user_id AND p.key = n.key AND p.origin = 'schedule'
                AND p.nominal_at <= :since), :since)
    OFFSET 0) AS o
WHERE (o.user_id, o.key, o.nominal_at) > (:after_user, :after_key, :after_at)
ORDER BY o.user_id, o.key, o.nominal_at LIMIT :limit

-- name: skip_locked
FOR UPDATE OF o SKIP LOCKED

-- name: given_names
SELECT n ->> 0 AS user_id, n ->> 1 AS key FROM json_array_elements(:names::json) AS n

-- name: given_identities
SELECT n ->> 0, n ->> 1, (n ->> 2)::bigint, n ->> 3 FROM json_array_elements(:identities::json) AS n

-- name: retire_held
SELECT {retiring_columns}
FROM (SELECT n ->> 0 AS user_id, n ->> 1 AS key, (n ->> 2)::bigint AS below
    FROM json_array_elements(:names::json) AS n) AS n
JOIN occurrences o ON o.kept_until = :held AND o.user_id = n.user_id AND o.key = n.key
    AND o.nominal_at <= n.below
FOR UPDATE OF o SKIP LOCKED

-- name: retire_later
UPDATE occurrences AS o SET kept_until = n.kept_until
FROM (SELECT n ->> 0 AS user_id, n ->> 1 AS key, (n ->> 2)::bigint AS nominal_at, n ->> 3 AS origin,
        (n ->> 4)::bigint AS kept_until
    FROM json_array_elements(:later::json) AS n) AS n
WHERE o.user_id = n.user_id AND o.key = n.key AND o.nominal_at = n.nominal_at
    AND o.origin = n.origin
