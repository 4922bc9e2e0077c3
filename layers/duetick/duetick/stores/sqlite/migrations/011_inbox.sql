-- oldest_code: 1

-- The jobs that other applications enqueue with one INSERT of their own: a tick takes each row out and
-- makes the job. The input is JSON, due_at is milliseconds since the epoch (null: now). STRICT refuses
-- a value of another type to whoever writes it.
CREATE TABLE inbox (
    id integer PRIMARY KEY AUTOINCREMENT,
    user_id text NOT NULL,
    flow text NOT NULL,
    action text NOT NULL,
    input text,
    due_at integer,
    key text
) STRICT;
