-- What Postgres and SQLite say alike. A backend's own queries.sql adds to these and overrides them.

-- name: schema_version
SELECT version, oldest_code FROM schema_version

-- name: schema_version_clear
DELETE FROM schema_version

-- name: schema_version_set
INSERT INTO schema_version (version, oldest_code) VALUES (:version, :oldest_code)

-- name: index_columns
i.user_id, i.key, i.cron, i.timezone, i.next_fire_at, i.flow, i.anchor, i.timing, i.policies

-- name: index_get
SELECT {index_columns} FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key

-- name: index_lock
SELECT {index_columns} FROM schedule_index i WHERE i.user_id = :user_id AND i.key = :key

-- name: index_upsert
INSERT INTO schedule_index
    (user_id, key, cron, timezone, next_fire_at, flow, anchor, timing, policies, fired_through)
VALUES (:user_id, :key, :cron, :timezone, :next_fire_at, :flow, :anchor, :timing, :policies,
    (SELECT w.fired_through FROM watermarks w WHERE w.user_id = :user_id AND w.key = :key))
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, next_fire_at = excluded.next_fire_at,
    flow = excluded.flow, anchor = excluded.anchor, timing = excluded.timing,
    policies = excluded.policies

-- name: index_remove
DELETE FROM schedule_index WHERE user_id = :user_id AND key = :key

-- name: watermark_keep
INSERT INTO watermarks (user_id, key, fired_through)
SELECT i.user_id, i.key, i.fired_through FROM schedule_index i
WHERE i.user_id = :user_id AND i.key = :key AND i.fired_through IS NOT NULL
ON CONFLICT (user_id, key) DO UPDATE SET fired_through = excluded.fired_through
    WHERE watermarks.fired_through < excluded.fired_through

-- name: watermark_raise
INSERT INTO watermarks (user_id, key, fired_through) VALUES (:user_id, :key, :fired_through)
ON CONFLICT (user_id, key) DO UPDATE SET fired_through = excluded.fired_through
    WHERE watermarks.fired_through < excluded.fired_through

-- name: index_mark_raise
UPDATE schedule_index SET fired_through = :fired_through
WHERE user_id = :user_id AND key = :key
    AND (fired_through IS NULL OR fired_through < :fired_through)

-- name: ranged_through
-- The end of the newest range beyond a time: the one that it lies in, or a later one.
SELECT max(o.range_end) FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.origin = 'schedule' AND o.range_end > :timing
    AND o.nominal_at >= coalesce((SELECT max(b.nominal_at) FROM occurrences b
        WHERE b.user_id = :user_id AND b.key = :key AND b.origin = 'schedule'
            AND b.nominal_at <= :timing), :timing)

-- name: watermark_lower
UPDATE watermarks SET fired_through = :timing
WHERE user_id = :user_id AND key = :key AND fired_through > :timing

-- name: index_mark_lower
UPDATE schedule_index SET fired_through = :timing
WHERE user_id = :user_id AND key = :key AND fired_through > :timing

-- name: watermark_get
SELECT max(fired_through) FROM (
    SELECT fired_through FROM schedule_index WHERE user_id = :user_id AND key = :key
    UNION ALL
    SELECT fired_through FROM watermarks WHERE user_id = :user_id AND key = :key
) AS marks

-- name: poison_put
INSERT INTO poisoned (user_id, key, cron, timezone, next_fire_at, flow, anchor, timing, policies,
    error, poisoned_at)
VALUES (:user_id, :key, :cron, :timezone, :next_fire_at, :flow, :anchor, :timing, :policies,
    :error, :now)
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, next_fire_at = excluded.next_fire_at,
    flow = excluded.flow, anchor = excluded.anchor, timing = excluded.timing,
    policies = excluded.policies, error = excluded.error, poisoned_at = excluded.poisoned_at

-- name: poison_get
SELECT {index_columns} FROM poisoned i WHERE i.user_id = :user_id AND i.key = :key

-- name: poison_list
SELECT {index_columns}, i.error, i.poisoned_at FROM poisoned i
WHERE i.poisoned_at >= :since ORDER BY i.poisoned_at, i.user_id, i.key LIMIT :limit

-- name: backlog
SELECT count(*) FROM (
    SELECT 1 FROM schedule_index i WHERE i.next_fire_at <= :now LIMIT :limit
) AS due

-- name: poison_remove
DELETE FROM poisoned WHERE user_id = :user_id AND key = :key

-- name: schedule_columns
s.user_id, s.key, s.cron, s.flow, s.action, s.timezone, s.input, s.principal, s.enabled,
s.policies, s.labels, s.external_id, s.version, s.timing, s.anchor, s.created_at, s.updated_at,
s.disabled_at,
(SELECT i.next_fire_at FROM schedule_index i WHERE i.user_id = s.user_id AND i.key = s.key),
(SELECT o.begun_at FROM occurrences o WHERE o.user_id = s.user_id AND o.key = s.key
    AND o.begun_at >= s.created_at ORDER BY o.begun_at DESC LIMIT 1),
(SELECT p.error FROM poisoned p WHERE p.user_id = s.user_id AND p.key = s.key),
s.runs,
s.pause

-- name: schedule_get
SELECT {schedule_columns} FROM schedules s WHERE s.user_id = :user_id AND s.key = :key

-- name: name_lock
-- Keeps another from making the same schedule at once: a row that is not there cannot be locked.
SELECT 1

-- name: schedule_lock
SELECT {schedule_columns} FROM schedules s WHERE s.user_id = :user_id AND s.key = :key

-- name: schedule_count
SELECT count(*) FROM schedules s WHERE s.user_id = :user_id

-- name: user_lock
-- Keeps two of a user's schedules from being counted at once.
SELECT 1

-- name: schedule_list
SELECT {schedule_columns} FROM schedules s WHERE s.user_id = :user_id AND s.key > :after
ORDER BY s.key LIMIT :limit

-- name: schedule_by_external
SELECT {schedule_columns} FROM schedules s WHERE s.external_id = :external_id

-- name: schedule_put
INSERT INTO schedules (user_id, key, cron, timezone, flow, action, input, principal, enabled,
    policies, labels, external_id, pause, version, timing, anchor, created_at, updated_at,
    disabled_at)
VALUES (:user_id, :key, :cron, :timezone, :flow, :action, :input, :principal, :enabled,
    :policies, :labels, :external_id, :pause, :version, :timing, :anchor, :created_at, :updated_at,
    :disabled_at)
ON CONFLICT (user_id, key) DO UPDATE SET
    cron = excluded.cron, timezone = excluded.timezone, flow = excluded.flow,
    action = excluded.action, input = excluded.input, principal = excluded.principal,
    enabled = excluded.enabled, policies = excluded.policies, labels = excluded.labels,
    external_id = excluded.external_id, pause = excluded.pause, version = excluded.version,
    timing = excluded.timing, updated_at = excluded.updated_at, disabled_at = excluded.disabled_at

-- name: schedule_ran
UPDATE schedules SET runs = runs + 1 WHERE user_id = :user_id AND key = :key

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
INSERT INTO definitions (user_id, key, since, cron, timezone, policies, anchor, enabled, tzdata)
VALUES (:user_id, :key, :since, :cron, :timezone, :policies, :anchor, :enabled, :tzdata)

-- name: definition_newest
SELECT max(since) FROM definitions WHERE user_id = :user_id AND key = :key

-- name: occurrence_columns
o.user_id, o.key, o.cron, o.timezone, o.nominal_at, o.fence, o.origin, o.id, o.flow, o.state,
o.reason, o.due_at, o.attempts, o.priority, o.lease_until, o.timing, o.policies, o.range_end,
o.count, o.error, o.correlation_id, o.idempotency_key, o.labels, o.created_at, o.begun_at,
o.updated_at

-- name: occurrence_insert
INSERT INTO occurrences (user_id, key, cron, timezone, nominal_at, fence, origin, id, flow, state,
    reason, due_at, attempts, priority, lease_until, exclusive, timing, policies, range_end,
    count, error, correlation_id, idempotency_key, labels, created_at, begun_at, updated_at)
VALUES (:user_id, :key, :cron, :timezone, :nominal_at, :fence, :origin, :id, :flow, :state,
    :reason, :due_at, :attempts, :priority, :lease_until, :exclusive, :timing, :policies,
    :range_end, :count, :error, :correlation_id, :idempotency_key, :labels, :created_at,
    :begun_at, :updated_at)
ON CONFLICT (user_id, key, nominal_at, origin) DO NOTHING

-- name: occurrence_get
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: occurrence_lock
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at = :nominal_at AND o.origin = :origin

-- name: occurrences_within
SELECT o.nominal_at FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at BETWEEN :first AND :last
    AND o.origin = 'schedule'

-- name: occurrence_up_to
-- The newest of a schedule's own: where the time has none of its own, a range that it may lie in.
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.nominal_at <= :nominal_at
    AND o.origin = 'schedule'
ORDER BY o.nominal_at DESC LIMIT 1

-- name: occurrence_running
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'processing' AND o.exclusive = 1
UNION ALL
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'processing' AND o.exclusive = 0

-- name: occurrence_move
UPDATE occurrences SET state = :state, reason = :reason, due_at = :due_at, attempts = :attempts,
    fence = :fence, lease_until = :lease_until, exclusive = :exclusive, policies = :policies,
    error = :error, begun_at = :begun_at, updated_at = :updated_at
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin

-- name: occurrences_waiting_behind
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND o.state = 'queued'
    AND o.nominal_at < :nominal_at AND o.range_end IS NULL

-- name: anything_waits
SELECT coalesce((SELECT min(o.lease_until) FROM occurrences o
        WHERE o.state IN ('queued', 'processing')) <= :now, false)
    OR coalesce((SELECT min(o.due_at) FROM occurrences o
        WHERE o.state IN ('scheduled', 'retrying')) <= :until, false)

-- name: occurrences_lease_over
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('queued', 'processing') AND o.lease_until <= :now
ORDER BY o.lease_until LIMIT :limit

-- name: occurrences_due
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.due_at <= :until
ORDER BY o.priority DESC, o.due_at, o.created_at LIMIT :limit

-- name: on_page
o.nominal_at <= :before AND (o.nominal_at < :before
    OR (o.user_id, o.key, o.origin) > (:after_user, :after_key, :after_origin))

-- name: occurrences_of_schedule
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND o.key = :key AND {on_page}
    AND (o.state = :state OR :state = '')
ORDER BY o.nominal_at DESC, o.origin LIMIT :limit

-- name: occurrences_of_user
SELECT {occurrence_columns} FROM occurrences o
WHERE o.user_id = :user_id AND {on_page}
    AND (o.state = :state OR :state = '')
ORDER BY o.nominal_at DESC, o.key, o.origin LIMIT :limit

-- name: occurrences_dead
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state = 'dead' AND {on_page}
ORDER BY o.nominal_at DESC, o.user_id, o.key, o.origin LIMIT :limit

-- name: occurrences_waiting
SELECT {occurrence_columns} FROM occurrences o
WHERE o.state IN ('scheduled', 'retrying') AND o.state = :state AND {on_page}
ORDER BY o.nominal_at DESC, o.user_id, o.key, o.origin LIMIT :limit

-- name: caller_key_get
SELECT user_id, key, nominal_at, origin, held_until FROM caller_keys
WHERE flow = :flow AND caller_key = :caller_key

-- name: caller_key_put
INSERT INTO caller_keys (flow, caller_key, user_id, key, nominal_at, origin, held_until)
VALUES (:flow, :caller_key, :user_id, :key, :nominal_at, :origin, :held_until)
ON CONFLICT (flow, caller_key) DO UPDATE SET
    user_id = excluded.user_id, key = excluded.key, nominal_at = excluded.nominal_at,
    origin = excluded.origin, held_until = excluded.held_until

-- name: run_count
INSERT INTO run_counts (user_id, minute, runs) VALUES (:user_id, :minute, 1)
ON CONFLICT (user_id) DO UPDATE SET minute = excluded.minute,
    runs = CASE WHEN run_counts.minute = excluded.minute THEN run_counts.runs + 1 ELSE 1 END
    WHERE run_counts.minute <> excluded.minute OR run_counts.runs < :at_most

-- name: event_put
INSERT INTO events (user_id, key, nominal_at, origin, at, before, after, note)
VALUES (:user_id, :key, :nominal_at, :origin, :at, :before, :after, :note)

-- name: event_list
SELECT at, before, after, note FROM events
WHERE user_id = :user_id AND key = :key AND nominal_at = :nominal_at AND origin = :origin
ORDER BY at

-- name: erase_schedules
DELETE FROM schedules WHERE user_id = :user_id

-- name: erase_schedule_index
DELETE FROM schedule_index WHERE user_id = :user_id

-- name: erase_poisoned
DELETE FROM poisoned WHERE user_id = :user_id

-- name: erase_creations
DELETE FROM creations WHERE user_id = :user_id

-- name: erase_run_counts
DELETE FROM run_counts WHERE user_id = :user_id

-- name: erase_watermarks
DELETE FROM watermarks WHERE user_id = :user_id

-- name: erase_definitions
DELETE FROM definitions WHERE user_id = :user_id

-- name: erase_occurrences
DELETE FROM occurrences WHERE user_id = :user_id

-- name: erase_caller_keys
DELETE FROM caller_keys WHERE user_id = :user_id

-- name: erase_events
DELETE FROM events WHERE user_id = :user_id

-- name: index_after
-- Rows of records that wait for a later time, a page of them in the order of their names.
SELECT {index_columns}, i.fired_through FROM schedule_index i
WHERE (i.user_id, i.key) > (:after_user, :after_key) AND i.next_fire_at > :now AND i.timing <> 0
ORDER BY i.user_id, i.key LIMIT :limit

-- name: schedules_without_row
-- Records that are enabled and have no row, a page of them in the order of their names.
SELECT {schedule_columns} FROM schedules s
WHERE (s.user_id, s.key) > (:after_user, :after_key) AND s.enabled = 1
    AND NOT EXISTS (SELECT 1 FROM schedule_index i WHERE i.user_id = s.user_id AND i.key = s.key)
    AND NOT EXISTS (SELECT 1 FROM poisoned p WHERE p.user_id = s.user_id AND p.key = s.key)
ORDER BY s.user_id, s.key LIMIT :limit

-- name: differences
SELECT s.user_id, s.key, 'stray' AS problem FROM schedules s
JOIN schedule_index i ON i.user_id = s.user_id AND i.key = s.key
WHERE s.enabled = 0
UNION ALL
SELECT i.user_id, i.key, 'stray' FROM schedule_index i
WHERE i.timing <> 0
    AND NOT EXISTS (SELECT 1 FROM schedules s WHERE s.user_id = i.user_id AND s.key = i.key)
UNION ALL
SELECT s.user_id, s.key, 'stale' FROM schedules s
JOIN schedule_index i ON i.user_id = s.user_id AND i.key = s.key
WHERE s.enabled = 1 AND (i.timing <> s.timing OR i.cron <> s.cron
    OR coalesce(i.timezone, '') <> coalesce(s.timezone, '') OR i.anchor <> s.anchor
    OR coalesce(i.policies, '') <> coalesce(s.policies, '') OR i.flow <> s.flow)
UNION ALL
SELECT p.user_id, p.key, 'unreadable' FROM poisoned p
ORDER BY 1, 2
