-- oldest_code: 1

-- The flow in which a schedule fired: a pause of a flow is the outcome of its times. Older code does
-- not say it.
ALTER TABLE definitions ADD COLUMN flow text;
