-- oldest_code: 1

-- What operators did. The user is null if it is about no user's data. The outcome is written once.
CREATE TABLE operations (
    id text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL,
    who text NOT NULL,
    verb text NOT NULL,
    user_id text COLLATE "C",
    target text NOT NULL,
    why text NOT NULL,
    outcome text NOT NULL
);

CREATE INDEX idx_operations_at ON operations (at, id);
CREATE INDEX idx_operations_user ON operations (user_id, at, id) WHERE user_id IS NOT NULL;
