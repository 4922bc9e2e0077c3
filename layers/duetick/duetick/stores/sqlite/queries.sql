-- name: names_taken
SELECT lower(m.name), m.type, lower(m.tbl_name) FROM sqlite_master m
WHERE m.type <> 'trigger' AND lower(m.name) IN (SELECT value FROM json_each(:names))

-- name: take_over_bound
SELECT m.name, 'trigger', 'schedule_index' FROM sqlite_master m
WHERE m.type = 'trigger' AND lower(m.tbl_name) = 'schedule_index'
UNION ALL
SELECT l.name, 'unique index', 'schedule_index' FROM pragma_index_list('schedule_index') l
WHERE l."unique" AND l.origin <> 'pk' AND (
    SELECT group_concat(name) FROM
        (SELECT coalesce(lower(i.name), '') AS name FROM pragma_index_info(l.name) i ORDER BY 1)
) <> 'key,user_id'
UNION ALL
SELECT DISTINCT 'to ' || f."table", 'foreign key', 'schedule_index'
FROM pragma_foreign_key_list('schedule_index') f
UNION ALL
SELECT DISTINCT 'of ' || m.name, 'foreign key', 'schedule_index'
FROM sqlite_master m JOIN pragma_foreign_key_list(m.name) f
WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%'
    AND lower(m.name) <> 'schedule_index' AND lower(f."table") = 'schedule_index'
UNION ALL
SELECT c.name, 'generated column', 'schedule_index' FROM pragma_table_xinfo('schedule_index') c
WHERE c.hidden IN (2, 3)
UNION ALL
SELECT c.name, 'default of', 'schedule_index' FROM pragma_table_xinfo('schedule_index') c
WHERE lower(c.dflt_value) <> 'null' AND NOT (lower(c.name) = 'timezone' AND c.dflt_value = '''''')

-- name: take_over_sql
SELECT sql FROM sqlite_master WHERE type = 'table' AND lower(name) = 'schedule_index'

-- name: table_columns
SELECT lower(c.name), CASE
    WHEN c.type LIKE '%int%' THEN 'number'
    WHEN c.type LIKE '%char%' OR c.type LIKE '%text%' THEN 'text'
    ELSE lower(c.type)
END
FROM pragma_table_xinfo(:table) c

-- name: take_over_lock
-- The transaction keeps every other writer out.
SELECT 1

-- name: take_over_untimed
SELECT user_id, key, iif(typeof(cron) IN ('text', 'null'), coalesce(cron, ''), quote(cron)),
    iif(typeof(timezone) IN ('text', 'null'), nullif(timezone, ''), quote(timezone)),
    CAST((julianday('now') - 2440587.5) * 86400000 AS integer)
FROM schedule_index WHERE typeof(next_fire_at) NOT IN ('integer', 'real')

-- name: take_over_unnamed
SELECT iif(typeof(user_id) = 'blob', quote(user_id), user_id),
    iif(typeof(key) = 'blob', quote(key), key)
FROM schedule_index
GROUP BY user_id, key HAVING count(*) > 1 OR typeof(user_id) <> 'text' OR typeof(key) <> 'text'
LIMIT :limit

-- name: take_over_indexes
SELECT name, sql FROM sqlite_master
WHERE type = 'index' AND sql IS NOT NULL AND lower(tbl_name) = 'schedule_index'
    AND lower(name) <> 'idx_schedule_index_next_fire_at'

-- name: take_over
-- SQLite cannot alter the key, the types and the NOT NULLs of a table: the rows wait for the new one.
-- A BLOB becomes its SQL literal. That is no cron and no zone, so its row is poisoned.
CREATE TEMP TABLE taken_over AS
SELECT user_id, key,
    iif(typeof(cron) IN ('text', 'null'), coalesce(cron, ''), quote(cron)) AS cron,
    iif(typeof(timezone) IN ('text', 'null'), nullif(timezone, ''), quote(timezone)) AS timezone,
    CAST(next_fire_at AS integer) AS next_fire_at
FROM schedule_index WHERE typeof(next_fire_at) IN ('integer', 'real');
DROP TABLE schedule_index

-- name: take_over_key
SELECT '' WHERE false

-- name: take_over_end
INSERT INTO schedule_index (user_id, key, cron, timezone, next_fire_at)
SELECT user_id, key, cron, timezone, next_fire_at FROM taken_over;
DROP TABLE taken_over

-- name: claim_select
SELECT {index_columns}, i.mark FROM schedule_index i
WHERE i.next_fire_at <= :until
    AND i.user_id NOT IN (SELECT value FROM json_each(:leave_out)) ORDER BY i.next_fire_at LIMIT :limit

-- name: claim_advance
UPDATE schedule_index SET next_fire_at = :next_at, mark = :mark
WHERE user_id = :user_id AND key = :key

-- name: occurrence_claimed
INSERT INTO occurrences (user_id, key, cron, timezone, flow, redefined_at, id, nominal_at, fence,
    state, reason, due_at, priority, lease_until, exclusive, policies, range_end, count, created_at,
    updated_at, origin, attempts)
VALUES (:user_id, :key, :cron, :timezone, :flow, :redefined_at, :id, :nominal_at, :fence,
    :state, :reason, :due_at, :priority, :lease_until, :exclusive, :policies, :range_end, :count,
    :created_at, :updated_at, 'schedule', 0)
ON CONFLICT (user_id, key, nominal_at, origin) DO NOTHING

-- name: occurrences_of_chunk
-- The ids of a chunk begin with its stem, and go on with hexadecimal digits.
SELECT o.id FROM occurrences o WHERE o.id >= :stem AND o.id < :stem || 'g'

-- name: schedules_ending
SELECT s.user_id, s.key, s.enabled, s.pause, s.policies FROM json_each(:names) n
JOIN schedules s ON s.user_id = n.value ->> 0 AND s.key = n.value ->> 1

-- name: schedules_end
UPDATE schedules AS s SET done_at = n.value ->> 2, purge_at = n.value ->> 3 FROM json_each(:marks) n
WHERE s.user_id = n.value ->> 0 AND s.key = n.value ->> 1

-- name: tables
SELECT name FROM sqlite_master WHERE type = 'table'

-- name: occurrence_begin
{begin_write}
RETURNING {occurrence_columns returned}

-- name: is_ended
o.state = 'succeeded' OR o.state = 'cancelled' OR o.state = 'dead' OR o.state = 'deleted'

-- name: skip_locked
-- SQLite has one writer at a time.

-- name: given_names
SELECT value ->> 0 AS user_id, value ->> 1 AS key FROM json_each(:names)

-- name: given_identities
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3 FROM json_each(:identities)

-- name: retire_held
SELECT {retiring_columns} FROM json_each(:names) n CROSS JOIN occurrences o
WHERE o.kept_until = :held AND o.user_id = n.value ->> 0 AND o.key = n.value ->> 1
    AND o.nominal_at <= n.value ->> 2

-- name: retire_later
UPDATE occurrences AS o SET kept_until = n.value ->> 4 FROM json_each(:later) n
WHERE o.user_id = n.value ->> 0 AND o.key = n.value ->> 1 AND o.nominal_at = n.value ->> 2
    AND o.origin = n.value ->> 3

-- name: apart_users
SELECT value FROM json_each(:apart)

-- name: acting_flows
SELECT value FROM json_each(:by_action)

-- name: names_of_rows
CASE WHEN r.spread = 1 THEN json_group_array(json_array(r.member_user, r.member_key)) END

-- name: full_users
SELECT value FROM json_each(:full_users)

-- name: full_flows
SELECT value FROM json_each(:full_flows)

-- name: full_actions
SELECT value FROM json_each(:full_actions)

-- name: hook_named
json_extract(f.policies, '$.on_failure')
