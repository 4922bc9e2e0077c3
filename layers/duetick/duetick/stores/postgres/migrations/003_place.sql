-- oldest_code: 1

-- The place of its schedule that an occurrence has: '' if it has it alone, its own name if it shares
-- it or waits for it as a retry, null if it is not in it. A begin looks here. Postgres plans each
-- begin anew, and one plain condition is planned in a third of the time of the two before.
ALTER TABLE occurrences ADD COLUMN place text COLLATE "C" GENERATED ALWAYS AS (
    CASE
        WHEN state = 'processing' OR (state = 'queued' AND attempts > 0) THEN
            CASE exclusive WHEN 1 THEN '' ELSE CAST(nominal_at AS text) || ' ' || origin END
        WHEN state = 'retrying' THEN CAST(nominal_at AS text) || ' ' || origin
    END
) STORED;

CREATE UNIQUE INDEX idx_occurrences_place ON occurrences (user_id, key, place)
    WHERE place IS NOT NULL;
DROP INDEX idx_occurrences_alone;
DROP INDEX idx_occurrences_beside;
