-- oldest_code: 1

-- The bells of EventBridge Scheduler that may not be as their rows require (Trigger=managed). A
-- change of a row marks its bell in the same transaction. The process that takes a bell has it up to
-- taken_until.
CREATE TABLE bells (
    user_id text NOT NULL,
    key text NOT NULL,
    token text NOT NULL,
    since integer NOT NULL,
    taken_until integer NOT NULL,
    PRIMARY KEY (user_id, key)
) STRICT;
CREATE INDEX idx_bells_since ON bells (since);
