-- oldest_code: 1

-- A schedule that will never fire again is done since `done_at`. A purge looks at it at `purge_at`.
ALTER TABLE schedules ADD COLUMN done_at bigint;
ALTER TABLE schedules ADD COLUMN purge_at bigint;

-- Each first begin of an occurrence writes the record anew, to count it. Leave room for that on the
-- same page.
ALTER TABLE schedules SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX idx_schedules_counted ON schedules (user_id) WHERE done_at IS NULL;
CREATE INDEX idx_schedules_purge_at ON schedules (purge_at) WHERE purge_at IS NOT NULL;

-- A definition that another one took the place of is kept until then. So is the last one of a schedule
-- that is gone. 400 days are KEPT_GONE_MS.
ALTER TABLE definitions ADD COLUMN kept_until bigint;
UPDATE definitions SET kept_until = 34560000000 + coalesce(
    (SELECT min(n.since) FROM definitions n WHERE n.user_id = definitions.user_id
        AND n.key = definitions.key AND n.since > definitions.since),
    definitions.since)
WHERE since < (SELECT max(n.since) FROM definitions n
        WHERE n.user_id = definitions.user_id AND n.key = definitions.key)
    OR NOT EXISTS (SELECT 1 FROM schedules s
        WHERE s.user_id = definitions.user_id AND s.key = definitions.key);

CREATE INDEX idx_definitions_kept_until ON definitions (kept_until) WHERE kept_until IS NOT NULL;
CREATE INDEX idx_creations_kept_until ON creations (kept_until);
CREATE INDEX idx_marks_mark ON marks (mark);
