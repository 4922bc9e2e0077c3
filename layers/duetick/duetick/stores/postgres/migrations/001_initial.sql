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
    external_id text COLLATE "C",
    version integer NOT NULL,
    timing bigint NOT NULL,
    anchor bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    disabled_at bigint,
    PRIMARY KEY (user_id, key)
);

CREATE UNIQUE INDEX idx_schedules_external_id
    ON schedules (external_id) WHERE external_id IS NOT NULL;

CREATE TABLE schedule_index (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at bigint NOT NULL,
    flow text NOT NULL,
    anchor bigint NOT NULL,
    timing bigint NOT NULL,
    policies text,
    fired_through bigint,
    PRIMARY KEY (user_id, key)
-- A claim writes each row anew: room for that on its own page, and a vacuum before the due range
-- is crowded with rows that are no more.
) WITH (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 1);

CREATE INDEX idx_schedule_index_next_fire_at ON schedule_index (next_fire_at);

CREATE TABLE poisoned (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    cron text NOT NULL,
    timezone text,
    next_fire_at bigint NOT NULL,
    flow text NOT NULL,
    anchor bigint NOT NULL,
    timing bigint NOT NULL,
    policies text,
    error text NOT NULL,
    poisoned_at bigint NOT NULL,
    PRIMARY KEY (user_id, key)
);

CREATE TABLE watermarks (
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    fired_through bigint NOT NULL,
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
    timing bigint NOT NULL,
    policies text,
    range_end bigint,
    count bigint NOT NULL,
    error text,
    correlation_id text,
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
CREATE UNIQUE INDEX idx_occurrences_running
    ON occurrences (user_id, key) WHERE state = 'processing' AND exclusive = 1;
CREATE INDEX idx_occurrences_sharing
    ON occurrences (user_id, key) WHERE state = 'processing' AND exclusive = 0;
CREATE INDEX idx_occurrences_begun
    ON occurrences (user_id, key, begun_at) WHERE begun_at IS NOT NULL;

CREATE TABLE events (
    place bigint GENERATED ALWAYS AS IDENTITY,
    user_id text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    nominal_at bigint NOT NULL,
    origin text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    before text NOT NULL,
    after text NOT NULL,
    note text NOT NULL
);

CREATE INDEX idx_events_occurrence ON events (user_id, key, nominal_at, origin);
