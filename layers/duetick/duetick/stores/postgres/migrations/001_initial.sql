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
    timing bigint NOT NULL,
    anchor bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    disabled_at bigint,
    runs bigint NOT NULL DEFAULT 0,
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

CREATE TABLE run_counts (
    user_id text COLLATE "C" PRIMARY KEY,
    minute bigint NOT NULL,
    runs integer NOT NULL
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
    note text NOT NULL
);

CREATE INDEX idx_events_occurrence ON events (user_id, key, nominal_at, origin);

-- Nothing is committed where a write did not find the rows that its transaction holds.
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

-- What follows decides as domain/lifecycle.py and stores/sql/ledger.py do, where a dispatch waits
-- for the answer: begin and settle are one round trip each. The defaults of policies come with the
-- call (`usual`), so that they are said in one place.

CREATE FUNCTION time_of(given bigint) RETURNS bigint
LANGUAGE sql AS $$
    SELECT coalesce(given, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
$$;

-- `general`: a case that is rare, and left to the code: nothing is changed, ask there. It is that of
-- a timing that was changed, of a limit of runs, of one that waits, and of one that runs with its
-- lease over.
CREATE FUNCTION occurrence_begin(
    for_user text, for_key text, for_time bigint, for_origin text, with_fence bigint,
    for_flow text, given bigint, usual jsonb,
    OUT verdict text, OUT held occurrences, OUT record schedules
) LANGUAGE plpgsql AS $$
DECLARE
    at bigint;
    stored text;
    chosen jsonb;
    why text;
    busy_until bigint;
BEGIN
    SELECT o.* INTO held FROM occurrences o
    WHERE o.user_id = for_user AND o.key = for_key AND o.nominal_at = for_time
        AND o.origin = for_origin
    FOR UPDATE;
    at := time_of(given);
    verdict := CASE
        WHEN NOT FOUND THEN 'unknown'
        WHEN for_flow <> '' AND held.flow <> '' AND held.flow <> for_flow THEN 'unknown'
        WHEN held.state = 'processing' THEN 'in_progress'
        WHEN held.state <> 'queued' THEN 'duplicate'
        WHEN held.fence <> with_fence OR coalesce(held.lease_until, at) <= at THEN 'stale'
    END;
    IF verdict IS NOT NULL THEN
        RETURN;
    END IF;

    SELECT s.* INTO record FROM schedules s WHERE s.user_id = for_user AND s.key = for_key;
    stored := CASE WHEN FOUND THEN record.policies ELSE held.policies END;
    chosen := usual || coalesce(stored, '{}')::jsonb;
    why := CASE
        WHEN held.timing = 0 THEN NULL
        WHEN record.user_id IS NULL THEN 'schedule_deleted'
        WHEN held.origin <> 'schedule' THEN NULL
        WHEN record.enabled = 0 THEN 'disabled'
        WHEN record.timing <> held.timing THEN 'general'
    END;
    IF why IS NULL AND chosen ->> 'max_runs' IS NOT NULL THEN
        why := 'general';
    END IF;

    IF why IS NULL AND chosen ->> 'overlap' <> 'allow' THEN
        -- Twice, as each has an index of its own: those that run alone, and those allowed together.
        SELECT min(coalesce(r.lease_until, at)) INTO busy_until FROM (
            SELECT o.lease_until FROM occurrences o
            WHERE o.user_id = for_user AND o.key = for_key AND o.state = 'processing'
                AND o.exclusive = 1
            UNION ALL
            SELECT o.lease_until FROM occurrences o
            WHERE o.user_id = for_user AND o.key = for_key AND o.state = 'processing'
                AND o.exclusive = 0
        ) AS r;
        why := CASE
            WHEN busy_until <= at OR (busy_until > at AND chosen ->> 'overlap' = 'wait')
                THEN 'general'
            WHEN busy_until > at THEN 'overlap'
        END;
    END IF;

    IF why = 'general' THEN
        verdict := why;
    ELSIF why IS NOT NULL THEN
        verdict := 'cancelled';
        UPDATE occurrences o
        SET state = 'cancelled', reason = why, lease_until = NULL, updated_at = at
        WHERE o.user_id = for_user AND o.key = for_key AND o.nominal_at = for_time
            AND o.origin = for_origin
        RETURNING o.* INTO held;
    ELSE
        verdict := 'begun';
        UPDATE occurrences o
        SET state = 'processing', attempts = o.attempts + 1, begun_at = at, updated_at = at,
            lease_until = at + 1000 * ((chosen ->> 'timeout')::bigint
                + (chosen ->> 'lease_margin')::bigint),
            policies = stored, exclusive = (chosen ->> 'overlap' <> 'allow')::integer
        WHERE o.user_id = for_user AND o.key = for_key AND o.nominal_at = for_time
            AND o.origin = for_origin
        RETURNING o.* INTO held;
    END IF;
END
$$;

-- Seconds until the next attempt of one that failed, null where there is none.
CREATE FUNCTION retry_delay(policies jsonb, attempts integer) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN policies ->> 'delivery' = 'at_most_once' OR r.backoff = 'none'
            OR retry_delay.attempts >= r.attempts THEN NULL
        WHEN r.backoff = 'fixed' THEN r.first
        -- The longest delay is a day: what is beyond twenty doublings of a second need not be told.
        ELSE least(r.first << least(retry_delay.attempts - 1, 20), r.longest)
    END
    FROM jsonb_to_record(policies -> 'retry')
        AS r (backoff text, attempts integer, first bigint, longest bigint)
$$;

-- Null where the fence is stale; the row as it stands where it was settled like that before.
CREATE FUNCTION occurrence_settle(
    for_user text, for_key text, for_time bigint, for_origin text, with_fence bigint,
    ended text, because text, failure text, given bigint, usual jsonb,
    OUT held occurrences
) LANGUAGE plpgsql AS $$
DECLARE
    at bigint;
    delay bigint;
BEGIN
    SELECT o.* INTO held FROM occurrences o
    WHERE o.user_id = for_user AND o.key = for_key AND o.nominal_at = for_time
        AND o.origin = for_origin
    FOR UPDATE;
    at := time_of(given);
    IF held.fence IS DISTINCT FROM with_fence THEN
        held := NULL;
        RETURN;
    END IF;
    IF held.state <> 'processing' THEN
        IF (held.state, held.reason) IS DISTINCT FROM
            (CASE ended WHEN 'failed' THEN 'dead' ELSE ended END, because)
            AND NOT (ended = 'failed' AND held.state = 'retrying')
        THEN
            held := NULL;
        END IF;
        RETURN;
    END IF;

    IF ended = 'failed' AND because <> 'rejected' THEN
        delay := retry_delay(usual || coalesce(held.policies, '{}')::jsonb, held.attempts);
    END IF;
    UPDATE occurrences o
    SET state = CASE WHEN delay IS NOT NULL THEN 'retrying'
            WHEN ended = 'failed' THEN 'dead' ELSE ended END,
        reason = CASE WHEN delay IS NULL THEN because END,
        due_at = coalesce(at + 1000 * delay, o.due_at),
        lease_until = NULL, error = failure, updated_at = at
    WHERE o.user_id = for_user AND o.key = for_key AND o.nominal_at = for_time
        AND o.origin = for_origin
    RETURNING o.* INTO held;
    IF delay IS NOT NULL THEN
        INSERT INTO events (user_id, key, nominal_at, origin, at, before, after, note)
        VALUES (for_user, for_key, for_time, for_origin, at, 'processing',
            'retrying', 'attempt ' || held.attempts || ': ' || coalesce(failure, ''));
    END IF;
END
$$;
