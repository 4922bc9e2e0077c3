-- oldest_code: 1

-- What operators have ordered for a while: pauses of a user or a flow, backfills, limits. A tick reads
-- those that stand.
CREATE TABLE standing_orders (
    kind text NOT NULL,
    name text NOT NULL,
    since integer NOT NULL,
    ended_at integer,
    rev integer NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;

CREATE INDEX idx_standing_orders_standing ON standing_orders (kind, name) WHERE ended_at IS NULL;
CREATE INDEX idx_standing_orders_ended_at ON standing_orders (ended_at) WHERE ended_at IS NOT NULL;
