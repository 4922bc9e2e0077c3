-- name: claim_select
SELECT {index_columns}, i.fired_through FROM schedule_index i
WHERE i.next_fire_at <= :until ORDER BY i.next_fire_at LIMIT :limit

-- name: claim_advance
UPDATE schedule_index SET next_fire_at = :next_at, fired_through = :fired_through
WHERE user_id = :user_id AND key = :key
