-- oldest_code: 1

CREATE TABLE schedules (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text,
    flow text NOT NULL,
    action text NOT NULL,
    input text NOT NULL,
    principal text,
    enabled smallint NOT NULL,
    policies text,
    labels text,
    pause text,
    external_id text COLLATE "C",
    version integer NOT NULL,
    redefined_at bigint NOT NULL,
    anchor bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    runs bigint NOT NULL DEFAULT 0,
    -- The parts of the policies that a begin needs, as columns: one statement decides it.
    lease_ms bigint NOT NULL,
    exclusive smallint NOT NULL,
    limited smallint NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE UNIQUE INDEX idx_schedules_external_id
    ON schedules (external_id) WHERE external_id IS NOT NULL;

-- The first five columns are enough to write a row. If the table exists already, the takeover has
-- given it the same columns: see `take_over` in queries.sql.
CREATE TABLE IF NOT EXISTS schedule_index (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at bigint NOT NULL,
    flow text NOT NULL DEFAULT '',
    anchor bigint NOT NULL DEFAULT 0,
    redefined_at bigint NOT NULL DEFAULT 0,
    policies text,
    mark bigint,
    PRIMARY KEY (user_id, key)
-- A claim writes each row anew. The fill factor leaves room for that on the same page. The vacuum
-- comes before dead rows crowd the due range.
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);

CREATE INDEX idx_schedule_index_next_fire_at ON schedule_index (next_fire_at);

CREATE TABLE unreadable (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at bigint NOT NULL,
    flow text NOT NULL,
    anchor bigint NOT NULL,
    redefined_at bigint NOT NULL,
    policies text,
    error text NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE TABLE marks (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    mark bigint NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE TABLE definitions (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    cron text NOT NULL,
    timezone text,
    policies text,
    anchor bigint NOT NULL,
    enabled smallint NOT NULL,
    tzdata text NOT NULL,
    PRIMARY KEY (user_id, key, since)
);

CREATE TABLE occurrences (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    nominal_at bigint NOT NULL,
    origin text COLLATE "C" NOT NULL,
    id text NOT NULL,
    cron text NOT NULL,
    timezone text,
    flow text NOT NULL,
    state text NOT NULL,
    reason text,
    due_at bigint NOT NULL,
    attempts integer NOT NULL,
    priority integer NOT NULL,
    fence bigint NOT NULL,
    lease_until bigint,
    exclusive smallint NOT NULL,
    redefined_at bigint NOT NULL,
    policies text,
    range_end bigint,
    count bigint NOT NULL,
    error text,
    told text,
    idempotency_key text,
    labels text,
    created_at bigint NOT NULL,
    begun_at bigint,
    updated_at bigint NOT NULL,
    PRIMARY KEY (user_id, key, nominal_at, origin)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

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
    nominal_at bigint NOT NULL,
    origin text NOT NULL,
    held_until bigint NOT NULL,
    PRIMARY KEY (flow, caller_key)
);

CREATE INDEX idx_caller_keys_held_until ON caller_keys (held_until);

CREATE TABLE creations (
    user_id text COLLATE "C" NOT NULL,
    name text NOT NULL,
    digest text NOT NULL,
    made_at bigint NOT NULL,
    next_fire_at bigint,
    kept_until bigint NOT NULL,
    PRIMARY KEY (user_id, name)
);

CREATE TABLE rates (
    user_id text COLLATE "C" NOT NULL,
    counted text NOT NULL,
    minute bigint NOT NULL,
    number integer NOT NULL,
    PRIMARY KEY (user_id, counted)
);

CREATE TABLE events (
    place bigint GENERATED ALWAYS AS IDENTITY,
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    nominal_at bigint NOT NULL,
    origin text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    before text NOT NULL,
    after text NOT NULL,
    note text NOT NULL,
    told text
);

CREATE INDEX idx_events_occurrence ON events (user_id, key, nominal_at, origin);

-- If a write did not find all rows that its transaction has locked, nothing is committed.
CREATE FUNCTION rows_expected(moved bigint, locked bigint) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
    IF moved <> locked THEN
        RAISE EXCEPTION '% rows of % were where they had been locked', moved, locked
            USING ERRCODE = 'serialization_failure';
    END IF;
    RETURN moved;
END
$$;
