-- oldest_code: 1

-- What operators have ordered for a while: pauses of a user or a flow, backfills, limits. A tick reads
-- those that stand.
CREATE TABLE standing_orders (
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    since bigint NOT NULL,
    ended_at bigint,
    rev bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, name)
);

CREATE INDEX idx_standing_orders_standing ON standing_orders (kind, name) WHERE ended_at IS NULL;
CREATE INDEX idx_standing_orders_ended_at ON standing_orders (ended_at) WHERE ended_at IS NOT NULL;
