-- oldest_code: 1

-- What has ended leaves (J-10). A purge finds it by its end: by `updated_at` once, and by `kept_until`
-- if it stays longer than the least. Nothing else writes `kept_until`, so a settle writes no more
-- than before: one short entry at the end of an index, in place of one of `idx_occurrences_begun`.
ALTER TABLE occurrences ADD COLUMN kept_until integer;
CREATE INDEX idx_occurrences_ended ON occurrences (updated_at)
    WHERE kept_until IS NULL AND state IN ('succeeded', 'cancelled', 'dead', 'deleted');
CREATE INDEX idx_occurrences_kept ON occurrences (kept_until, user_id, key, nominal_at)
    WHERE kept_until IS NOT NULL;

-- The last run outlives its occurrence.
ALTER TABLE schedules ADD COLUMN last_run_at integer;
UPDATE schedules SET last_run_at = (
    SELECT o.begun_at FROM occurrences o WHERE o.user_id = schedules.user_id
        AND o.key = schedules.key AND o.begun_at >= schedules.created_at
    ORDER BY o.begun_at DESC LIMIT 1);
DROP INDEX idx_occurrences_begun;

CREATE INDEX idx_rates_minute ON rates (minute);

CREATE TABLE locks (
    name text PRIMARY KEY,
    owner text NOT NULL,
    since integer NOT NULL,
    until integer NOT NULL
) WITHOUT ROWID;

CREATE TABLE workers (
    id text PRIMARY KEY,
    kind text NOT NULL,
    started_at integer NOT NULL,
    silent_at integer NOT NULL,
    ended_at integer,
    lost_at integer,
    lateness_ms integer NOT NULL,
    counts text NOT NULL
) WITHOUT ROWID;
CREATE INDEX idx_workers_started_at ON workers (started_at, id);
