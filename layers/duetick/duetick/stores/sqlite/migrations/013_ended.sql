-- oldest_code: 1

-- A claim asks each index whether it has the occurrence. For a list of more than two states, SQLite
-- makes a table each time. One comparison after another takes a fifth less of the whole INSERT.
DROP INDEX idx_occurrences_ended;
CREATE INDEX idx_occurrences_ended ON occurrences (updated_at)
    WHERE kept_until IS NULL AND (state = 'succeeded' OR state = 'cancelled'
        OR state = 'dead' OR state = 'deleted');
