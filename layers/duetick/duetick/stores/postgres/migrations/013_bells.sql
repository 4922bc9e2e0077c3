-- oldest_code: 1

-- The bells of EventBridge Scheduler that may not be as their rows require (Trigger=managed). A
-- change of a row marks its bell in the same transaction. The process that takes a bell has it up to
-- taken_until.
CREATE TABLE bells (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    token text NOT NULL,
    since bigint NOT NULL,
    taken_until bigint NOT NULL,
    PRIMARY KEY (user_id, key)
);
CREATE INDEX idx_bells_since ON bells (since);
