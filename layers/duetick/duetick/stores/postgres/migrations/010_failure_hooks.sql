-- oldest_code: 1

-- The death that a failure hook tells of, as JSON.
ALTER TABLE occurrences ADD COLUMN death text;
