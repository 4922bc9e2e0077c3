-- Queries for both Postgres and SQLite. A backend's own queries.sql adds to these and overrides them.

-- name: schema_version
SELECT version, oldest_code FROM schema_version

-- name: schema_version_clear
DELETE FROM schema_version

-- name: schema_version_set
INSERT INTO schema_version (version, oldest_code) VALUES (:version, :oldest_code)

-- name: take_over_count
SELECT count(*) FROM schedule_index

-- name: take_over_unnamed
-- Rows that a primary key would refuse.
SELECT user_id, key FROM schedule_index
GROUP BY user_id, key HAVING count(*) > 1 OR user_id IS NULL OR key IS NULL LIMIT :limit

-- name: index_columns
i.user_id, i.key, i.cron, i.timezone, i.next_fire_at, i.flow, i.anchor, i.redefined_at, i.policies

-- name: index_get
SELECT {index_columns} FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key

-- name: index_lock
SELECT {index_columns}, i.mark FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key

-- name: index_put
INSERT INTO schedule_index
    (user_id, key, cron, timezone, next_fire_at, flow, anchor, redefined_at, policies, mark)
VALUES
    (:user_id, :key, :cron, :timezone, :next_fire_at, :flow, :anchor, :redefined_at, :policies, :mark)
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, next_fire_at = excluded.next_fire_at,
    flow = excluded.flow, anchor = excluded.anchor, redefined_at = excluded.redefined_at,
    policies = excluded.policies, mark = excluded.mark

-- name: index_remove
DELETE FROM schedule_index WHERE user_id = :user_id AND key = :key

-- name: backlog
SELECT count(*) FROM (
    SELECT 1 FROM schedule_index i WHERE i.next_fire_at <= :until LIMIT :limit
) AS due

-- name: tally
-- Each part reads no more than its limit, by an index of its own.
SELECT state, count(*) FROM (
    SELECT state FROM occurrences WHERE state IN ('queued', 'processing') LIMIT :limit
) AS leased GROUP BY state
UNION ALL
SELECT state, count(*) FROM (
    SELECT state FROM occurrences WHERE state IN ('scheduled', 'retrying') LIMIT :limit
) AS waiting GROUP BY state
UNION ALL
SELECT 'dead', count(*) FROM (
    SELECT 1 FROM occurrences WHERE state = 'dead' AND nominal_at > :dead_since LIMIT :limit
) AS dead
UNION ALL
SELECT 'unreadable', count(*) FROM (SELECT 1 FROM unreadable LIMIT :limit) AS unreadable

-- name: jobs_due
-- The jobs among the earliest that wait.
SELECT o.user_id, o.flow, s.action, o.due_at FROM (
    SELECT user_id, key, flow, state, due_at, origin FROM occurrences
    WHERE state IN ('scheduled', 'retrying') AND due_at <= :now ORDER BY due_at LIMIT :limit
) AS o
JOIN schedules s ON s.user_id = o.user_id AND s.key = o.key
WHERE o.state = 'scheduled' AND o.origin >= 'job:' AND o.origin < 'job;'
ORDER BY o.due_at

-- name: alike_end
-- The name at which one read of a forecast ends, if there are so many rows.
SELECT i.user_id, i.key FROM schedule_index i
WHERE (i.user_id, i.key) > (:after_user, :after_key)
ORDER BY i.user_id, i.key LIMIT 1 OFFSET :limit

-- name: alike_end_of_user
SELECT i.user_id, i.key FROM schedule_index i
WHERE i.user_id = :user AND i.key > :after_key
ORDER BY i.user_id, i.key LIMIT 1 OFFSET :limit

-- name: alike_last
SELECT i.user_id, i.key FROM schedule_index i ORDER BY i.user_id DESC, i.key DESC LIMIT 1

-- name: alike_last_of_user
SELECT i.user_id, i.key FROM schedule_index i
WHERE i.user_id = :user ORDER BY i.user_id DESC, i.key DESC LIMIT 1

-- name: alike_columns
r.cron, r.timezone, r.next_at, r.flow, r.policies, r.anchor, r.mark, r.user_id, r.action, r.spent,
r.spread

-- name: alike_row_columns
-- What decides the fires of a row within a span. One that is due later only counts. The time of a
-- rate is rounded down to its minute where nothing depends on the rest of it: its phase matters to an
-- end and to a spread, and what is due in this minute is decided as it is.
i.flow, i.user_id AS member_user, i.key AS member_key,
CASE WHEN i.next_fire_at < :until THEN i.cron ELSE '' END AS cron,
CASE WHEN i.next_fire_at < :until THEN i.timezone END AS timezone,
CASE
    WHEN i.next_fire_at >= :until THEN :until
    WHEN i.next_fire_at < :soon OR i.redefined_at = 0 OR i.policies LIKE '%"ends_at":%'
        OR i.policies LIKE '%"spread":%' OR i.cron NOT LIKE 'rate(%' THEN i.next_fire_at
    WHEN i.cron LIKE 'rate(%second%' THEN i.next_fire_at - i.next_fire_at % 1000
    ELSE i.next_fire_at - i.next_fire_at % 60000
END AS next_at,
CASE WHEN i.next_fire_at < :until THEN i.policies END AS policies,
CASE WHEN i.next_fire_at < :until AND i.redefined_at = 0 THEN i.anchor END AS anchor,
CASE WHEN i.mark >= i.next_fire_at THEN i.mark END AS mark,
CASE WHEN i.user_id IN ({apart_users}) THEN i.user_id ELSE '' END AS user_id,
CASE WHEN i.flow IN ({acting_flows}) THEN coalesce(
    (SELECT s.action FROM schedules s WHERE s.user_id = i.user_id AND s.key = i.key), '')
    ELSE '' END AS action,
CASE WHEN i.next_fire_at < :until AND i.policies LIKE '%"max_runs":%' THEN
    coalesce((SELECT s.runs FROM schedules s WHERE s.user_id = i.user_id AND s.key = i.key), 0)
    + (SELECT count(*) FROM occurrences o WHERE o.user_id = i.user_id AND o.key = i.key
        AND o.state IN ('scheduled', 'queued') AND o.attempts = 0 AND NOT ({stands_beside}))
    ELSE 0 END AS spent,
CASE WHEN i.next_fire_at < :until AND i.policies LIKE '%"spread":%' THEN 1 ELSE 0 END AS spread

-- name: alike_rows
SELECT count(*), {alike_columns}, {names_of_rows}
FROM (SELECT {alike_row_columns} FROM schedule_index i
    WHERE (i.user_id, i.key) > (:after_user, :after_key)
        AND (i.user_id, i.key) <= (:last_user, :last_key)) AS r
WHERE r.flow = coalesce(:flow, r.flow) AND r.action = coalesce(:action, r.action)
GROUP BY {alike_columns}

-- name: alike_rows_of_user
SELECT count(*), {alike_columns}, {names_of_rows}
FROM (SELECT {alike_row_columns} FROM schedule_index i
    WHERE i.user_id = :user AND i.key > :after_key AND i.key <= :last_key) AS r
WHERE r.flow = coalesce(:flow, r.flow) AND r.action = coalesce(:action, r.action)
GROUP BY {alike_columns}

-- name: waiting_alike
-- What is recorded and due in a span, by minute: the first of it. What another scope has is counted
-- beside it, so that the reader knows whether this was all.
SELECT count(*), w.in_scope, w.due_at, w.flow, w.user_id, w.action, w.kept, w.job
FROM (SELECT o.flow,
        CASE WHEN o.due_at <= :now THEN :now ELSE o.due_at - o.due_at % 60000 END AS due_at,
        CASE WHEN o.user_id IN ({apart_users}) THEN o.user_id ELSE '' END AS user_id,
        CASE WHEN o.flow IN ({acting_flows}) THEN coalesce((SELECT
            CASE WHEN o.origin >= 'failure:' AND o.origin < 'failure;' THEN {hook_named}
                ELSE f.action END
            FROM schedules f WHERE f.user_id = o.user_id AND f.key = o.key), '')
            ELSE '' END AS action,
        CASE WHEN o.attempts > 0 OR {stands_beside} THEN 1 ELSE 0 END AS kept,
        CASE WHEN o.origin >= 'job:' AND o.origin < 'job;' THEN 1 ELSE 0 END AS job,
        CASE WHEN o.user_id = coalesce(:user, o.user_id) AND o.flow = coalesce(:flow, o.flow)
            THEN 1 ELSE 0 END AS in_scope
    FROM (
        SELECT * FROM (SELECT o.* FROM occurrences o
            WHERE o.state IN ('scheduled', 'retrying') AND o.due_at < :until
            ORDER BY o.due_at LIMIT :limit) AS waiting
        UNION ALL
        SELECT * FROM (SELECT o.* FROM occurrences o
            WHERE o.state IN ('queued', 'processing') AND o.state = 'queued'
                AND o.due_at > :now AND o.due_at < :until
            LIMIT :limit) AS leased
    ) AS o) AS w
GROUP BY w.in_scope, w.due_at, w.flow, w.user_id, w.action, w.kept, w.job

-- name: unreadable_count
SELECT count(*) FROM (
    SELECT u.user_id, u.flow, coalesce((
        SELECT s.action FROM schedules s WHERE s.user_id = u.user_id AND s.key = u.key
    ), '') AS action FROM unreadable u) AS u
WHERE u.user_id = coalesce(:user, u.user_id) AND u.flow = coalesce(:flow, u.flow)
    AND u.action = coalesce(:action, u.action)

-- name: mark_put
INSERT INTO marks (user_id, key, mark) VALUES (:user_id, :key, :mark)
ON CONFLICT (user_id, key) DO UPDATE SET mark = excluded.mark

-- name: mark_raise
INSERT INTO marks (user_id, key, mark) VALUES (:user_id, :key, :mark)
ON CONFLICT (user_id, key) DO UPDATE SET mark = excluded.mark WHERE marks.mark < excluded.mark

-- name: mark_keep
-- Keep the mark of a row that is removed next.
INSERT INTO marks (user_id, key, mark)
SELECT i.user_id, i.key, i.mark FROM schedule_index i
WHERE i.user_id = :user_id AND i.key = :key AND i.mark IS NOT NULL
ON CONFLICT (user_id, key) DO UPDATE SET mark = excluded.mark WHERE marks.mark < excluded.mark

-- name: mark_remove
DELETE FROM marks WHERE user_id = :user_id AND key = :key

-- name: unreadable_columns
u.user_id, u.key, u.cron, u.timezone, u.next_fire_at, u.flow, u.anchor, u.redefined_at, u.policies,
u.error, u.at

-- name: unreadable_put
INSERT INTO unreadable (user_id, key, cron, timezone, next_fire_at, flow, anchor, redefined_at,
    policies, error, at)
VALUES (:user_id, :key, :cron, :timezone, :next_fire_at, :flow, :anchor, :redefined_at, :policies,
    :error, :at)
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, next_fire_at = excluded.next_fire_at,
    flow = excluded.flow, anchor = excluded.anchor, redefined_at = excluded.redefined_at,
    policies = excluded.policies, error = excluded.error, at = excluded.at

-- name: unreadable_list
SELECT {unreadable_columns} FROM unreadable u
WHERE u.at >= :since ORDER BY u.at, u.user_id, u.key LIMIT :limit

-- name: unreadable_remove
DELETE FROM unreadable WHERE user_id = :user_id AND key = :key

-- name: stored_columns
s.user_id, s.key, s.cron, s.flow, s.action, s.timezone, s.input, s.principal, s.enabled,
s.policies, s.labels, s.external_id, s.pause, s.version, s.redefined_at, s.anchor, s.created_at,
s.updated_at, s.runs, s.done_at, s.purge_at

-- name: schedule_columns
{stored_columns},
(SELECT i.next_fire_at FROM schedule_index i WHERE i.user_id = s.user_id AND i.key = s.key),
s.last_run_at,
(SELECT u.error FROM unreadable u WHERE u.user_id = s.user_id AND u.key = s.key)

-- name: book
-- A book without its row: `index_lock` reads and locks that.
SELECT (SELECT max(d.since) FROM definitions d WHERE d.user_id = :user_id AND d.key = :key),
    (SELECT m.mark FROM marks m WHERE m.user_id = :user_id AND m.key = :key),
    {unreadable_columns}, {stored_columns}, NULL,
    s.last_run_at, NULL
FROM (SELECT 1) AS one
LEFT JOIN unreadable u ON u.user_id = :user_id AND u.key = :key
LEFT JOIN schedules s ON s.user_id = :user_id AND s.key = :key

-- name: books
-- A page of the books of schedules and rows, in the order of their names, without the inputs.
SELECT n.user_id, n.key,
    EXISTS (SELECT 1 FROM unreadable u WHERE u.user_id = n.user_id AND u.key = n.key),
    (SELECT m.mark FROM marks m WHERE m.user_id = n.user_id AND m.key = n.key),
    (SELECT d.zone FROM definitions d WHERE d.user_id = n.user_id AND d.key = n.key
        ORDER BY d.since DESC LIMIT 1),
    s.user_id, s.key, s.cron, s.flow, s.action, s.timezone, 'null', s.principal, s.enabled,
    s.policies, s.labels, s.external_id, s.pause, s.version, s.redefined_at, s.anchor, s.created_at,
    s.updated_at, s.runs, s.done_at, s.purge_at, i.next_fire_at, NULL, NULL,
    {index_columns}, i.mark
FROM (
    SELECT user_id, key FROM (
        SELECT * FROM (SELECT s.user_id, s.key FROM schedules s
            WHERE (s.user_id, s.key) > (:after_user, :after_key) AND NOT {is_job}
            ORDER BY s.user_id, s.key LIMIT :limit) AS a
        UNION
        SELECT * FROM (SELECT user_id, key FROM schedule_index
            WHERE (user_id, key) > (:after_user, :after_key) ORDER BY user_id, key LIMIT :limit) AS b
        UNION
        SELECT * FROM (SELECT user_id, key FROM unreadable
            WHERE (user_id, key) > (:after_user, :after_key) ORDER BY user_id, key LIMIT :limit) AS c
    ) AS names ORDER BY user_id, key LIMIT :limit
) AS n
LEFT JOIN schedules s ON s.user_id = n.user_id AND s.key = n.key
LEFT JOIN schedule_index i ON i.user_id = n.user_id AND i.key = n.key
ORDER BY n.user_id, n.key

-- name: schedule_put
INSERT INTO schedules (user_id, key, cron, timezone, flow, action, input, principal, enabled,
    policies, labels, external_id, pause, version, redefined_at, anchor, created_at, updated_at,
    runs, done_at, purge_at, last_run_at, lease_ms, exclusive, limited)
VALUES (:user_id, :key, :cron, :timezone, :flow, :action, :input, :principal, :enabled,
    :policies, :labels, :external_id, :pause, :version, :redefined_at, :anchor, :created_at,
    :updated_at, :runs, :done_at, :purge_at, :last_run_at, :lease_ms, :exclusive, :limited)
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, flow = excluded.flow,
    action = excluded.action, input = excluded.input, principal = excluded.principal,
    enabled = excluded.enabled, policies = excluded.policies, labels = excluded.labels,
    external_id = excluded.external_id, pause = excluded.pause, version = excluded.version,
    redefined_at = excluded.redefined_at, anchor = excluded.anchor,
    created_at = excluded.created_at, updated_at = excluded.updated_at, runs = excluded.runs,
    done_at = excluded.done_at, purge_at = excluded.purge_at, last_run_at = excluded.last_run_at,
    lease_ms = excluded.lease_ms, exclusive = excluded.exclusive, limited = excluded.limited

-- name: schedule_get
SELECT {schedule_columns} FROM schedules s WHERE s.user_id = :user_id AND s.key = :key

-- name: name_lock
-- Keeps two transactions from making the same schedule: a row that does not exist cannot be locked.
-- A query without a statement does nothing: SQLite has one writer at a time.

-- name: schedule_lock
-- Keeps a begin in one statement from counting a run of a record that a change has read.

-- name: schedule_count
SELECT count(*) FROM schedules s WHERE s.user_id = :user_id AND s.done_at IS NULL AND NOT {is_job}

-- name: job_count
SELECT count(*) FROM schedules s WHERE s.user_id = :user_id AND s.done_at IS NULL AND {is_job}

-- name: schedules_of
SELECT count(*) FROM schedules s WHERE s.user_id = :user_id AND NOT {is_job}

-- name: run_note
-- Count the first begin of an occurrence, note each as the last run, and read the record.
UPDATE schedules SET runs = runs + :first, last_run_at = :now
WHERE user_id = :user_id AND key = :key
RETURNING {schedule_columns returned}

-- name: schedules_leaving
SELECT s.user_id, s.key FROM schedules s WHERE s.purge_at <= :until
ORDER BY s.purge_at, s.user_id, s.key LIMIT :limit

-- name: user_lock
-- Keeps two transactions from counting a user's schedules at once.

-- name: schedule_list
SELECT {schedule_columns} FROM schedules s
WHERE s.user_id = :user_id AND s.key > :after AND NOT {is_job}
ORDER BY s.key LIMIT :limit

-- name: schedule_list_done
SELECT {schedule_columns} FROM schedules s
WHERE s.user_id = :user_id AND s.key > :after AND s.done_at IS NOT NULL AND NOT {is_job}
ORDER BY s.key LIMIT :limit

-- name: schedule_list_others
SELECT {schedule_columns} FROM schedules s
WHERE s.user_id = :user_id AND s.key > :after AND s.done_at IS NULL AND NOT {is_job}
ORDER BY s.key LIMIT :limit

-- name: job_list
-- Each job with its occurrence: `ended` is 1, 0, or null for both.
SELECT {schedule_columns}, {occurrence_columns} FROM schedules s
JOIN occurrences o ON o.user_id = s.user_id AND o.key = s.key AND o.nominal_at = s.anchor
    AND o.origin = s.key
WHERE s.user_id = :user_id AND s.key > :after AND {is_job}
    AND coalesce(:ended, CASE WHEN s.done_at IS NULL THEN 0 ELSE 1 END)
        = CASE WHEN s.done_at IS NULL THEN 0 ELSE 1 END
ORDER BY s.key LIMIT :limit

-- name: job_end
-- A job that was lost as its lease ended: the book was not loaded for that.
UPDATE schedules SET done_at = :done_at, purge_at = :purge_at
WHERE user_id = :user_id AND key = :key

-- name: schedule_by_external
SELECT {schedule_columns} FROM schedules s WHERE s.external_id = :external_id

-- name: schedule_delete
DELETE FROM schedules WHERE user_id = :user_id AND key = :key

-- name: creation_get
SELECT digest, made_at, next_fire_at FROM creations
WHERE user_id = :user_id AND name = :name AND kept_until > :now

-- name: creations_forget
DELETE FROM creations WHERE user_id = :user_id AND kept_until <= :now

-- name: creation_put
INSERT INTO creations (user_id, name, digest, made_at, next_fire_at, kept_until)
VALUES (:user_id, :name, :digest, :made_at, :next_fire_at, :kept_until)
ON CONFLICT (user_id, name) DO NOTHING

-- name: definition_put
INSERT INTO definitions (user_id, key, since, cron, timezone, policies, anchor, enabled, standing,
    paused_until, zone, tzdata, kept_until, flow)
VALUES (:user_id, :key, :since, :cron, :timezone, :policies, :anchor, :enabled, :standing,
    :paused_until, :zone, :tzdata, :kept_until, :flow)

-- name: definition_columns
d.user_id, d.key, d.since, d.cron, d.timezone, d.policies, d.anchor,
coalesce(d.standing, 'unknown'), d.paused_until,
d.zone, d.tzdata, d.flow

-- name: definitions_page
-- The definitions that apply after an instant, of the next schedules and rows in the order of their
-- names, each with its row. `alive` is that instant and the time for which they are kept.
SELECT n.user_id, n.key, s.redefined_at, s.pause, u.next_fire_at,
    {index_columns}, {definition_columns}
FROM (
    SELECT user_id, key FROM (
        SELECT * FROM (SELECT DISTINCT user_id, key FROM definitions
            WHERE (user_id, key) > (:after_user, :after_key)
                AND (kept_until IS NULL OR kept_until > :alive)
            ORDER BY user_id, key LIMIT :limit) AS a
        UNION
        SELECT * FROM (SELECT user_id, key FROM schedule_index
            WHERE (user_id, key) > (:after_user, :after_key) ORDER BY user_id, key LIMIT :limit) AS b
    ) AS names ORDER BY user_id, key LIMIT :limit
) AS n
LEFT JOIN definitions d ON d.user_id = n.user_id AND d.key = n.key
    AND (d.kept_until IS NULL OR d.kept_until > :alive)
LEFT JOIN schedule_index i ON i.user_id = n.user_id AND i.key = n.key
LEFT JOIN unreadable u ON u.user_id = n.user_id AND u.key = n.key
LEFT JOIN schedules s ON s.user_id = n.user_id AND s.key = n.key
ORDER BY n.user_id, n.key, d.since

-- name: definitions_of
SELECT n.user_id, n.key, s.redefined_at, s.pause, u.next_fire_at,
    {index_columns}, {definition_columns}
FROM (SELECT :user_id AS user_id, :key AS key) AS n
LEFT JOIN definitions d ON d.user_id = n.user_id AND d.key = n.key
    AND (d.kept_until IS NULL OR d.kept_until > :alive)
LEFT JOIN schedule_index i ON i.user_id = n.user_id AND i.key = n.key
LEFT JOIN unreadable u ON u.user_id = n.user_id AND u.key = n.key
LEFT JOIN schedules s ON s.user_id = n.user_id AND s.key = n.key
ORDER BY d.since

-- name: entries_page
-- The next entries of a page of schedules. A range that reaches into the span is among them.
SELECT o.user_id, o.key, o.nominal_at, o.range_end, o.count, o.state, o.reason, o.redefined_at
FROM (SELECT DISTINCT user_id, key FROM definitions
    WHERE (user_id, key) >= (:first_user, :first_key)
        AND (user_id, key) <= (:last_user, :last_key)) AS n
JOIN occurrences o ON o.user_id = n.user_id AND o.key = n.key AND o.origin = 'schedule'
    AND o.nominal_at <= :until
    AND o.nominal_at >= coalesce((SELECT max(p.nominal_at) FROM occurrences p
        WHERE p.user_id = n.user_id AND p.key = n.key AND p.origin = 'schedule'
            AND p.nominal_at <= :since), :since)
WHERE (o.user_id, o.key, o.nominal_at) > (:after_user, :after_key, :after_at)
ORDER BY o.user_id, o.key, o.nominal_at LIMIT :limit

-- name: zone_put
INSERT INTO zones (digest, rules) VALUES (:digest, :rules) ON CONFLICT (digest) DO NOTHING

-- name: zone_get
SELECT rules FROM zones WHERE digest = :digest

-- name: note_put
INSERT INTO notes (name, body) VALUES (:name, :body)
ON CONFLICT (name) DO UPDATE SET body = excluded.body

-- name: note_get
SELECT body FROM notes WHERE name = :name

-- name: order_columns
kind, name, since, body, ended_at, rev

-- name: orders_standing
SELECT {order_columns} FROM standing_orders WHERE ended_at IS NULL ORDER BY kind, name

-- name: orders_of_kind
SELECT {order_columns} FROM standing_orders
WHERE kind = :kind AND (ended_at IS NULL OR ended_at > :ended_after) ORDER BY name

-- name: order_put
INSERT INTO standing_orders (kind, name, since, body, ended_at, rev)
VALUES (:kind, :name, :since, :body, :ended_at, :rev) ON CONFLICT (kind, name) DO NOTHING

-- name: order_change
UPDATE standing_orders SET since = :since, body = :body, ended_at = :ended_at, rev = :rev
WHERE kind = :kind AND name = :name AND rev = :rev - 1 AND ended_at IS NULL

-- name: definition_end
UPDATE definitions SET kept_until = :kept_until
WHERE user_id = :user_id AND key = :key AND since = :before

-- name: forget_marks
DELETE FROM marks WHERE (user_id, key) IN (
    SELECT m.user_id, m.key FROM marks m WHERE m.mark <= :marked_before
        AND NOT EXISTS (SELECT 1 FROM schedules s WHERE s.user_id = m.user_id AND s.key = m.key)
        AND NOT EXISTS (SELECT 1 FROM unreadable u WHERE u.user_id = m.user_id AND u.key = m.key)
        AND NOT EXISTS (SELECT 1 FROM schedule_index i WHERE i.user_id = m.user_id AND i.key = m.key)
    ORDER BY m.mark LIMIT :limit)

-- name: forget_definitions
DELETE FROM definitions WHERE (user_id, key, since) IN (
    SELECT d.user_id, d.key, d.since FROM definitions d WHERE d.kept_until <= :now
    ORDER BY d.kept_until LIMIT :limit)

-- name: forget_creations
DELETE FROM creations WHERE (user_id, name) IN (
    SELECT c.user_id, c.name FROM creations c WHERE c.kept_until <= :now
    ORDER BY c.kept_until LIMIT :limit)

-- name: forget_orders
DELETE FROM standing_orders WHERE (kind, name) IN (
    SELECT o.kind, o.name FROM standing_orders o WHERE o.ended_at <= :marked_before
    ORDER BY o.ended_at LIMIT :limit)

-- name: forget_caller_keys
DELETE FROM caller_keys WHERE (flow, caller_key) IN (
    SELECT c.flow, c.caller_key FROM caller_keys c WHERE c.held_until <= :held_before
        AND NOT EXISTS (SELECT 1 FROM occurrences o WHERE o.user_id = c.user_id AND o.key = c.key
            AND o.nominal_at = c.nominal_at AND o.origin = c.origin
            AND o.state IN ('scheduled', 'queued', 'processing', 'retrying'))
    ORDER BY c.held_until LIMIT :limit)

-- name: forget_operations
DELETE FROM operations WHERE id IN (
    SELECT p.id FROM operations p WHERE p.at <= :marked_before ORDER BY p.at LIMIT :limit)

-- name: operation_columns
p.id, p.at, p.who, p.verb, p.user_id, p.target, p.why, p.outcome

-- name: operation_put
INSERT INTO operations (id, at, who, verb, user_id, target, why, outcome)
VALUES (:id, :at, :who, :verb, :user_id, :target, :why, :outcome)

-- name: operation_end
UPDATE operations SET outcome = :outcome WHERE id = :id AND outcome = 'begun'

-- name: operations
SELECT {operation_columns} FROM operations p
WHERE (p.at, p.id) < (:at, :id) ORDER BY p.at DESC, p.id DESC LIMIT :limit

-- name: operations_of_user
SELECT {operation_columns} FROM operations p
WHERE p.user_id = :user_id AND (p.at, p.id) < (:at, :id)
ORDER BY p.at DESC, p.id DESC LIMIT :limit

-- name: forget_rates
-- The condition stands twice: a count of this minute may take the place of an old one meanwhile.
DELETE FROM rates WHERE minute < :minute AND (user_id, counted) IN (
    SELECT r.user_id, r.counted FROM rates r WHERE r.minute < :minute
    ORDER BY r.minute LIMIT :limit)

-- name: forget_workers
DELETE FROM workers WHERE id IN (
    SELECT w.id FROM workers w WHERE w.started_at <= :reported_before
    ORDER BY w.started_at, w.id LIMIT :limit)

-- name: retiring_columns
o.user_id, o.key, o.nominal_at, o.origin, o.flow, o.state, o.range_end, o.updated_at

-- name: is_ended
-- As the condition of `idx_occurrences_ended`.
o.state IN ('succeeded', 'cancelled', 'dead', 'deleted')

-- name: retire_ended
-- What ended so long ago that no retention is longer than its time, and no purge has looked at it.
SELECT {retiring_columns} FROM occurrences o
WHERE o.kept_until IS NULL AND ({is_ended})
    AND o.updated_at <= :ended_before
ORDER BY o.updated_at LIMIT :limit {skip_locked}

-- name: retire_kept
-- What a purge has looked at, and let stay until now.
SELECT {retiring_columns} FROM occurrences o
WHERE o.kept_until IS NOT NULL AND o.kept_until <= :now
    AND ({is_ended})
ORDER BY o.kept_until LIMIT :limit {skip_locked}

-- name: retire_newest
-- Of each schedule: whether it fires, and its twentieth occurrence, counted from the newest. No
-- failure hook counts.
SELECT n.user_id, n.key,
    EXISTS (SELECT 1 FROM schedules s
        WHERE s.user_id = n.user_id AND s.key = n.key AND s.done_at IS NULL)
    OR EXISTS (SELECT 1 FROM schedule_index i WHERE i.user_id = n.user_id AND i.key = n.key)
    OR EXISTS (SELECT 1 FROM unreadable u WHERE u.user_id = n.user_id AND u.key = n.key),
    (SELECT o.nominal_at FROM occurrences o WHERE o.user_id = n.user_id AND o.key = n.key
            AND NOT (o.origin >= 'failure:' AND o.origin < 'failure;')
        ORDER BY o.nominal_at DESC, o.origin DESC LIMIT 1 OFFSET :beyond),
    (SELECT o.origin FROM occurrences o WHERE o.user_id = n.user_id AND o.key = n.key
            AND NOT (o.origin >= 'failure:' AND o.origin < 'failure;')
        ORDER BY o.nominal_at DESC, o.origin DESC LIMIT 1 OFFSET :beyond)
FROM ({given_names}) AS n

-- name: retire_events
DELETE FROM events WHERE (user_id, key, nominal_at, origin) IN ({given_identities})

-- name: retire_occurrences
DELETE FROM occurrences WHERE (user_id, key, nominal_at, origin) IN ({given_identities})
    AND state IN ('succeeded', 'cancelled', 'dead', 'deleted')

-- name: retire_jobs
-- The record of a job stays while its failure hook is under way, or somebody changes it: a purge
-- looks at it again.
DELETE FROM schedules WHERE (user_id, key) IN (
    SELECT o.user_id, o.key FROM ({given_names}) AS n
    JOIN schedules o ON o.user_id = n.user_id AND o.key = n.key
    WHERE o.done_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM occurrences e
        WHERE e.user_id = o.user_id AND e.key = o.key
            AND e.state IN ('scheduled', 'queued', 'processing', 'retrying'))
    {skip_locked})

-- name: held_of_schedule
-- What was held for a schedule that is deleted: a purge looks at it again.
UPDATE occurrences SET kept_until = NULL
WHERE kept_until = :held AND user_id = :user_id AND key = :key

-- name: forget_held
-- The same, of rows without a record whose marks go next.
UPDATE occurrences SET kept_until = NULL
WHERE kept_until = :held AND (user_id, key) IN (
    SELECT m.user_id, m.key FROM marks m WHERE m.mark <= :marked_before
        AND NOT EXISTS (SELECT 1 FROM schedules s WHERE s.user_id = m.user_id AND s.key = m.key)
        AND NOT EXISTS (SELECT 1 FROM unreadable u WHERE u.user_id = m.user_id AND u.key = m.key)
        AND NOT EXISTS (SELECT 1 FROM schedule_index i WHERE i.user_id = m.user_id AND i.key = m.key)
    ORDER BY m.mark LIMIT :limit)

-- name: bell_make_pending
INSERT INTO bells (user_id, key, token, since, taken_until)
VALUES (:user_id, :key, :token, :at, 0)
ON CONFLICT (user_id, key) DO UPDATE SET token = excluded.token

-- name: bells_pending
SELECT user_id, key, since FROM bells ORDER BY since, user_id, key LIMIT :limit

-- name: bell_take
UPDATE bells SET taken_until = :until
WHERE user_id = :user_id AND key = :key AND taken_until <= :now
RETURNING token

-- name: bell_end
DELETE FROM bells WHERE user_id = :user_id AND key = :key AND token = :token

-- name: bell_free
UPDATE bells SET taken_until = 0
WHERE user_id = :user_id AND key = :key AND taken_until = :until

-- name: lock_acquire
INSERT INTO locks (name, owner, since, until) VALUES (:name, :owner, :since, :until)
ON CONFLICT (name) DO UPDATE SET
    owner = excluded.owner, since = excluded.since, until = excluded.until
    WHERE locks.owner = excluded.owner OR locks.until <= :now

-- name: lock_extend
UPDATE locks SET until = :until WHERE name = :name AND owner = :owner

-- name: lock_remove
DELETE FROM locks WHERE name = :name AND owner = :owner

-- name: locks_list
SELECT name, owner, since, until FROM locks ORDER BY name

-- name: worker_put
INSERT INTO workers (id, kind, started_at, silent_at, ended_at, lost_at, lateness_ms, counts)
VALUES (:id, :kind, :started_at, :silent_at, :ended_at, :lost_at, :lateness_ms, :counts)
ON CONFLICT (id) DO UPDATE SET silent_at = excluded.silent_at, ended_at = excluded.ended_at,
    lost_at = excluded.lost_at, lateness_ms = excluded.lateness_ms, counts = excluded.counts

-- name: workers_list
SELECT id, kind, started_at, silent_at, ended_at, lost_at, lateness_ms, counts FROM workers
WHERE started_at >= :since ORDER BY started_at DESC, id DESC LIMIT :limit

-- name: occurrence_columns
o.user_id, o.key, o.cron, o.timezone, o.nominal_at, o.fence, o.origin, o.id, o.flow, o.state,
o.reason, o.due_at, o.attempts, o.priority, o.lease_until, o.redefined_at, o.policies, o.range_end,
o.count, o.error, o.idempotency_key, o.labels, o.created_at, o.begun_at, o.updated_at,
o.told, o.death

-- name: occurrence_put
INSERT INTO occurrences (user_id, key, cron, timezone, nominal_at, fence, origin, id, flow, state,
    reason, due_at, attempts, priority, lease_until, exclusive, redefined_at, policies, range_end,
    count, error, told, idempotency_key, labels, created_at, begun_at, updated_at, death)
VALUES (:user_id, :key, :cron, :timezone, :nominal_at, :fence, :origin, :id, :flow, :state,
    :reason, :due_at, :attempts, :priority, :lease_until, :exclusive, :redefined_at, :policies,
    :range_end, :count, :error, :told, :idempotency_key, :labels, :created_at, :begun_at,
    :updated_at, :death)
ON CONFLICT (user_id, key, nominal_at, origin) DO NOTHING

-- name: range_put
INSERT INTO occurrences (user_id, key, cron, timezone, nominal_at, fence, origin, id, flow, state,
    reason, due_at, attempts, priority, exclusive, redefined_at, policies, range_end, count,
    created_at, updated_at)
VALUES (:user_id, :key, :cron, :timezone, :nominal_at, :fence, :origin, :id, :flow, :state,
    :reason, :due_at, :attempts, :priority, :exclusive, :redefined_at, :policies, :range_end,
    :count, :created_at, :updated_at)
ON CONFLICT (user_id, key, nominal_at, origin)
    DO UPDATE SET range_end = excluded.range_end, count = excluded.count

-- name: body_put
UPDATE occurrences SET body = :body
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin

-- name: body_get
SELECT o.body FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: occurrence_get
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: occurrence_lock
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: ranges_beyond
-- The ranges that end after a time: the range that contains the time, if there is one, and all later
-- ones. A range contains no other occurrence, so the newest occurrence until the time is enough.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.origin = 'schedule' AND o.range_end > :at
    AND o.nominal_at >= coalesce((SELECT max(b.nominal_at) FROM occurrences b
        WHERE b.user_id = :user_id AND b.key = :key AND b.origin = 'schedule'
            AND b.nominal_at <= :at), :at)

-- name: occurrences_within
SELECT o.nominal_at FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at BETWEEN :first AND :last
    AND o.origin = 'schedule'

-- name: occurrence_up_to
-- The newest occurrence of origin `schedule` until a time: it has the time itself, or it may be a
-- range that contains the time.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at <= :nominal_at
    AND o.origin = 'schedule'
ORDER BY o.nominal_at DESC LIMIT 1

-- name: occurrences_at
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at

-- name: occurrences_in_place
-- Each that is in place, alone or beside others: no place is less than ''. A condition on the place
-- itself makes SQLite use its index.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.place >= ''

-- name: occurrences_unfinished
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key
    AND o.state IN ('scheduled', 'queued', 'processing', 'retrying')

-- name: occurrence_move
UPDATE occurrences SET state = :state, reason = :reason, due_at = :due_at, attempts = :attempts,
    fence = :fence, lease_until = :lease_until, exclusive = :exclusive, policies = :policies,
    redefined_at = :redefined_at, labels = :labels, error = :error, told = :told,
    begun_at = :begun_at, updated_at = :updated_at, death = :death, kept_until = NULL
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin

-- name: lease_write
-- Lease an occurrence that waited, or whose lease is over. If it is lost, that ends it.
UPDATE occurrences AS o
SET state = :state, reason = :reason, due_at = :due_at, fence = :fence, lease_until = :lease_until,
    updated_at = :updated_at
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: occurrence_lease
{lease_write}

-- name: occurrences_queued
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'queued'
    AND o.nominal_at < :nominal_at AND o.attempts = 0

-- name: stands_beside
-- The occurrence is a backfill's, a failure hook, or a job.
(o.origin >= 'backfill:' AND o.origin < 'backfill;')
    OR (o.origin >= 'failure:' AND o.origin < 'failure;')
    OR (o.origin >= 'job:' AND o.origin < 'job;')

-- name: rival_stands_beside
(r.origin >= 'backfill:' AND r.origin < 'backfill;')
    OR (r.origin >= 'failure:' AND r.origin < 'failure;')
    OR (r.origin >= 'job:' AND r.origin < 'job;')

-- name: is_job
-- The record, or the book, is a job's.
(s.key >= 'job:' AND s.key < 'job;')

-- name: begin_write
-- Begin an occurrence if nothing may forbid it; else no row is changed, and the book decides. The
-- coalesce keeps Postgres from using the index of leases: it finds the row by its name.
UPDATE occurrences AS o
SET state = 'processing', attempts = o.attempts + 1, begun_at = :now, updated_at = :now,
    lease_until = :now + coalesce(s.lease_ms, :usual_lease_ms), policies = s.policies,
    exclusive = coalesce(s.exclusive, 1), labels = s.labels,
    redefined_at = CASE WHEN o.redefined_at = 0 THEN 0 ELSE s.redefined_at END
FROM (SELECT 1) AS one
LEFT JOIN schedules s ON s.user_id = :user_id AND s.key = :key
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at
    AND o.origin = :origin AND o.fence = :fence
    AND o.state = 'queued' AND coalesce(o.lease_until, 0) > :now
    AND NOT ({stands_beside})
    AND (o.flow = :flow OR o.flow = '' OR :flow = '')
    AND CASE
        WHEN s.user_id IS NULL THEN o.redefined_at = 0 AND o.policies IS NULL
        WHEN s.limited = 1 AND o.attempts = 0 THEN false
        WHEN s.pause IS NOT NULL AND o.attempts > 0 THEN false
        WHEN o.redefined_at = 0 OR (s.enabled = 1 AND s.redefined_at = o.redefined_at) THEN true
        ELSE o.origin <> 'schedule' AND o.attempts = 0
    END
    AND (s.exclusive = 0 OR NOT EXISTS (SELECT 1 FROM occurrences r
        WHERE r.user_id = :user_id AND r.key = :key AND r.place >= ''
            AND (r.state <> 'retrying' OR (r.due_at <= :now AND o.attempts = 0))
            AND (r.nominal_at, r.origin) <> (:nominal_at, :origin)
            AND NOT ({rival_stands_beside})
    ))

-- name: leased_write
-- Write what becomes of a leased occurrence: the end of its attempt, or its lease. The holder worked
-- that out from the occurrence in hand. What decides it is a condition: if it differs, the book decides.
-- The end of its lease decides a renewal and a release: a limit that holds an occurrence back moves it.
-- The coalesce of the state keeps SQLite from planning the update anew for each state: its partial
-- indexes name states.
UPDATE occurrences AS o
SET state = :state, reason = :reason, due_at = :due_at, fence = :next_fence,
    lease_until = :lease_until, error = :error, told = :told, updated_at = :now
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at
    AND o.origin = :origin AND o.fence = :fence AND coalesce(o.state, '') = :before
    AND o.attempts = :attempts AND coalesce(o.policies, '') = coalesce(:policies, '')
    AND o.lease_until = coalesce(:held_until, o.lease_until)

-- name: occurrence_move_leased
{leased_write}

-- name: anything_waits
SELECT coalesce((SELECT min(o.lease_until) FROM occurrences o
        WHERE o.state IN ('queued', 'processing')) <= :now, false)
    OR coalesce((SELECT min(o.due_at) FROM occurrences o
        WHERE o.state IN ('scheduled', 'retrying')) <= :until, false)

-- name: next_due
SELECT min(at) FROM (
    SELECT min(o.lease_until) AS at FROM occurrences o WHERE o.state IN ('queued', 'processing')
    UNION ALL
    SELECT min(o.due_at) FROM occurrences o WHERE o.state IN ('scheduled', 'retrying')
) AS found

-- name: look
-- All that a tick asks before it claims.
SELECT :now, 0, 0, (SELECT body FROM notes WHERE name = :note),
    EXISTS (SELECT 1 FROM inbox),
    EXISTS (SELECT 1 FROM standing_orders WHERE ended_at IS NULL),
    EXISTS (SELECT 1 FROM schedule_index i WHERE i.next_fire_at <= :now + :ahead),
    coalesce((SELECT min(o.lease_until) FROM occurrences o
        WHERE o.state IN ('queued', 'processing')) <= :now, 0)
    OR coalesce((SELECT min(o.due_at) FROM occurrences o
        WHERE o.state IN ('scheduled', 'retrying')) <= :now + :ahead, 0)

-- name: occurrences_lease_over
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
    AND o.user_id NOT IN (SELECT value FROM json_each(:leave_out))
ORDER BY o.lease_until LIMIT :limit

-- name: within_limits
-- No limit without a place covers the occurrence. Only the record knows its action: its own, or the
-- one that a failure hook runs.
o.user_id NOT IN ({full_users}) AND o.flow NOT IN ({full_flows})
    AND NOT EXISTS (SELECT 1 FROM schedules f WHERE f.user_id = o.user_id AND f.key = o.key
        AND o.flow || '/' || CASE WHEN o.origin >= 'failure:' AND o.origin < 'failure;'
            THEN {hook_named} ELSE f.action END IN ({full_actions}))

-- name: occurrences_lease_over_within
-- As occurrences_lease_over, without what never began and waits for a limit.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
    AND o.user_id NOT IN (SELECT value FROM json_each(:leave_out))
    AND (o.state = 'processing' OR o.attempts > 0 OR ({within_limits}))
ORDER BY o.lease_until LIMIT :limit

-- name: actions_of
SELECT f.user_id, f.key, f.action, {hook_named} FROM schedules f
JOIN ({given_names}) AS n ON n.user_id = f.user_id AND n.key = f.key

-- name: place_of_another
-- Another leased occurrence of the schedule has the place that a retry needs.
EXISTS (SELECT 1 FROM occurrences r
        WHERE r.user_id = o.user_id AND r.key = o.key AND r.place >= ''
            AND r.state <> 'retrying' AND NOT ({rival_stands_beside}))

-- name: occurrences_due
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
    AND o.user_id NOT IN (SELECT value FROM json_each(:leave_out))
    AND (o.attempts = 0 OR o.exclusive = 0 OR NOT ({place_of_another}))
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit

-- name: occurrences_due_unheld
-- As occurrences_due, without the retries that a pause of a group holds, and what waits for a limit.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
    AND o.user_id NOT IN (SELECT value FROM json_each(:leave_out))
    AND (o.attempts = 0 OR o.exclusive = 0 OR NOT ({place_of_another}))
    AND ((o.attempts = 0 AND NOT ({stands_beside})) OR (:everything = 0
        AND o.user_id NOT IN (SELECT value FROM json_each(:users))
        AND o.flow NOT IN (SELECT value FROM json_each(:flows))))
    AND {within_limits}
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit

-- name: reserve_write
-- Retries that a tick passed over keep their place for a while: the next ticks should lease them.
UPDATE occurrences AS o SET lease_until = :kept_until
WHERE o.state IN ('scheduled', 'retrying') AND o.state = 'retrying' AND o.due_at <= :until
    AND o.attempts > 0 AND o.exclusive = 1
    AND coalesce(o.lease_until, 0) < :soon
    AND ({place_of_another})

-- name: retries_reserve
{reserve_write}

-- name: retries_reserve_unheld
-- Without the retries that a pause of a group holds, or a limit keeps back.
{reserve_write}
    AND :everything = 0 AND o.user_id NOT IN (SELECT value FROM json_each(:users))
    AND o.flow NOT IN (SELECT value FROM json_each(:flows))
    AND {within_limits}

-- name: on_page
o.nominal_at <= :before AND (o.nominal_at < :before
    OR (o.user_id, o.key, o.origin) > (:after_user, :after_key, :after_origin))

-- name: in_states
-- All states, or those that the text lists, each between commas.
(:states = '' OR :states LIKE '%,' || o.state || ',%')

-- name: occurrences_of_schedule
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND {on_page} AND {in_states}
ORDER BY o.nominal_at DESC, o.origin LIMIT :limit

-- name: occurrences_of_user
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND {on_page} AND {in_states}
ORDER BY o.nominal_at DESC, o.key, o.origin LIMIT :limit

-- name: occurrences_dead
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state = 'dead' AND {on_page}
ORDER BY o.nominal_at DESC, o.user_id, o.key, o.origin LIMIT :limit

-- name: occurrences_waiting
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND {in_states} AND {on_page}
ORDER BY o.nominal_at DESC, o.user_id, o.key, o.origin LIMIT :limit

-- name: occurrences_leased
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND {in_states} AND {on_page}
ORDER BY o.nominal_at DESC, o.user_id, o.key, o.origin LIMIT :limit

-- name: occurrence_named
SELECT {occurrence_columns} FROM occurrences o WHERE o.id = :id LIMIT 1

-- name: caller_key_get
SELECT c.held_until, {occurrence_columns} FROM caller_keys c
JOIN occurrences o ON o.user_id = c.user_id AND o.key = c.key AND o.nominal_at = c.nominal_at
    AND o.origin = c.origin
WHERE c.flow = :flow AND c.caller_key = :caller_key

-- name: caller_key_put
INSERT INTO caller_keys (flow, caller_key, user_id, key, nominal_at, origin, held_until)
VALUES (:flow, :caller_key, :user_id, :key, :nominal_at, :origin, :held_until)
ON CONFLICT (flow, caller_key) DO UPDATE SET
    user_id = excluded.user_id, key = excluded.key, nominal_at = excluded.nominal_at,
    origin = excluded.origin, held_until = excluded.held_until

-- name: rate_count
INSERT INTO rates (user_id, counted, minute, number) VALUES (:user_id, :counted, :minute, 1)
ON CONFLICT (user_id, counted) DO UPDATE SET minute = excluded.minute,
    number = CASE WHEN rates.minute = excluded.minute THEN rates.number + 1 ELSE 1 END
    WHERE rates.minute <> excluded.minute OR rates.number < :at_most

-- name: event_put
INSERT INTO events (user_id, key, nominal_at, origin, at, before, after, note, told)
VALUES (:user_id, :key, :nominal_at, :origin, :at, :before, :after, :note, :told)

-- name: events_of
SELECT at, before, after, note, told FROM events
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin
ORDER BY at

-- name: events_forget
DELETE FROM events
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin

-- name: erase_standing_orders
DELETE FROM standing_orders WHERE name >= :first AND name < :end

-- name: erase_schedules
DELETE FROM schedules WHERE user_id = :user_id

-- name: erase_schedule_index
DELETE FROM schedule_index WHERE user_id = :user_id

-- name: erase_creations
DELETE FROM creations WHERE user_id = :user_id

-- name: inbox_next
SELECT o.id FROM inbox o WHERE o.id > :after ORDER BY o.id LIMIT 1 {skip_locked}

-- name: inbox_take
DELETE FROM inbox WHERE id = :id RETURNING id, user_id, flow, action, input, due_at, key

-- name: erase_inbox
DELETE FROM inbox WHERE user_id = :user_id

-- name: erase_bells
DELETE FROM bells WHERE user_id = :user_id

-- name: erase_rates
DELETE FROM rates WHERE user_id = :user_id

-- name: erase_unreadable
DELETE FROM unreadable WHERE user_id = :user_id

-- name: erase_marks
DELETE FROM marks WHERE user_id = :user_id

-- name: erase_definitions
DELETE FROM definitions WHERE user_id = :user_id

-- name: erase_occurrences
DELETE FROM occurrences WHERE user_id = :user_id

-- name: erase_caller_keys
DELETE FROM caller_keys WHERE user_id = :user_id

-- name: erase_events
DELETE FROM events WHERE user_id = :user_id

-- name: erase_operations
DELETE FROM operations WHERE user_id = :user_id
