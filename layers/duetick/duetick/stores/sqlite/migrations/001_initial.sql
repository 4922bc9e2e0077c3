-- oldest_code: 1

CREATE TABLE schedules (
    user_id text NOT NULL,
    key text NOT NULL,
    cron text NOT NULL,
    timezone text,
    flow text NOT NULL,
    action text NOT NULL,
    input text NOT NULL,
    principal text,
    enabled integer NOT NULL,
    policies text,
    labels text,
    pause text,
    external_id text,
    version integer NOT NULL,
    redefined_at integer NOT NULL,
    anchor integer NOT NULL,
    created_at integer NOT NULL,
    updated_at integer NOT NULL,
    runs integer NOT NULL DEFAULT 0,
    -- The parts of the policies that a begin needs, as columns: one statement decides it.
    lease_ms integer NOT NULL,
    exclusive integer NOT NULL,
    limited integer NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;

CREATE UNIQUE INDEX idx_schedules_external_id
    ON schedules (external_id) WHERE external_id IS NOT NULL;

-- The first five columns are enough to write a row. Other programs may write rows, too: STRICT
-- refuses values at once that no claim could read, such as a BLOB for a text, or half a millisecond.
CREATE TABLE schedule_index (
    user_id text NOT NULL,
    key text NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at integer NOT NULL,
    flow text NOT NULL DEFAULT '',
    anchor integer NOT NULL DEFAULT 0,
    redefined_at integer NOT NULL DEFAULT 0,
    policies text,
    mark integer,
    PRIMARY KEY (user_id, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idx_schedule_index_next_fire_at ON schedule_index (next_fire_at);

CREATE TABLE unreadable (
    user_id text NOT NULL,
    key text NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at integer NOT NULL,
    flow text NOT NULL,
    anchor integer NOT NULL,
    redefined_at integer NOT NULL,
    policies text,
    error text NOT NULL,
    at integer NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;

CREATE TABLE marks (
    user_id text NOT NULL,
    key text NOT NULL,
    mark integer NOT NULL,
    PRIMARY KEY (user_id, key)
) WITHOUT ROWID;

CREATE TABLE definitions (
    user_id text NOT NULL,
    key text NOT NULL,
    since integer NOT NULL,
    cron text NOT NULL,
    timezone text,
    policies text,
    anchor integer NOT NULL,
    enabled integer NOT NULL,
    tzdata text NOT NULL,
    PRIMARY KEY (user_id, key, since)
) WITHOUT ROWID;

CREATE TABLE occurrences (
    user_id text NOT NULL,
    key text NOT NULL,
    nominal_at integer NOT NULL,
    origin text NOT NULL,
    id text NOT NULL,
    cron text NOT NULL,
    timezone text,
    flow text NOT NULL,
    state text NOT NULL,
    reason text,
    due_at integer NOT NULL,
    attempts integer NOT NULL,
    priority integer NOT NULL,
    fence integer NOT NULL,
    lease_until integer,
    exclusive integer NOT NULL,
    redefined_at integer NOT NULL,
    policies text,
    range_end integer,
    count integer NOT NULL,
    error text,
    told text,
    idempotency_key text,
    labels text,
    created_at integer NOT NULL,
    begun_at integer,
    updated_at integer NOT NULL,
    PRIMARY KEY (user_id, key, nominal_at, origin)
) WITHOUT ROWID;

CREATE INDEX idx_occurrences_leased
    ON occurrences (lease_until) WHERE state IN ('queued', 'processing');
CREATE INDEX idx_occurrences_waiting
    ON occurrences (due_at) WHERE state IN ('scheduled', 'retrying');
CREATE INDEX idx_occurrences_dead
    ON occurrences (nominal_at) WHERE state = 'dead';
CREATE UNIQUE INDEX idx_occurrences_alone
    ON occurrences (user_id, key)
    WHERE exclusive = 1 AND (state = 'processing' OR (state = 'queued' AND attempts > 0));
CREATE INDEX idx_occurrences_beside
    ON occurrences (user_id, key)
    WHERE (exclusive = 0 AND (state = 'processing' OR (state = 'queued' AND attempts > 0)))
        OR state = 'retrying';
CREATE INDEX idx_occurrences_begun
    ON occurrences (user_id, key, begun_at) WHERE begun_at IS NOT NULL;

CREATE TABLE caller_keys (
    flow text NOT NULL,
    caller_key text NOT NULL,
    user_id text NOT NULL,
    key text NOT NULL,
    nominal_at integer NOT NULL,
    origin text NOT NULL,
    held_until integer NOT NULL,
    PRIMARY KEY (flow, caller_key)
) WITHOUT ROWID;

CREATE INDEX idx_caller_keys_held_until ON caller_keys (held_until);

CREATE TABLE creations (
    user_id text NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    made_at integer NOT NULL,
    next_fire_at integer,
    kept_until integer NOT NULL,
    PRIMARY KEY (user_id, name)
) WITHOUT ROWID;

CREATE TABLE rates (
    user_id text NOT NULL,
    counted text NOT NULL,
    minute integer NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (user_id, counted)
) WITHOUT ROWID;

CREATE TABLE events (
    user_id text NOT NULL,
    key text NOT NULL,
    nominal_at integer NOT NULL,
    origin text NOT NULL,
    at integer NOT NULL,
    before text NOT NULL,
    after text NOT NULL,
    note text NOT NULL,
    told text
);

CREATE INDEX idx_events_occurrence ON events (user_id, key, nominal_at, origin);
