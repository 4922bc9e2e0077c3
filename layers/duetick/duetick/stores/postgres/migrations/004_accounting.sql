-- oldest_code: 1

-- Verify reads the definitions: whether a schedule fires under one, until when a pause keeps it from
-- that, and the rules of its zone. Those written before have none of the three.
ALTER TABLE definitions ADD COLUMN standing text;
ALTER TABLE definitions ADD COLUMN paused_until bigint;
ALTER TABLE definitions ADD COLUMN zone text;

-- The rules of each zone in use, once for each content, in base 64.
CREATE TABLE zones (
    digest text COLLATE "C" PRIMARY KEY,
    rules text NOT NULL
);

-- What the hourly work keeps from one hour to the next.
CREATE TABLE notes (
    name text COLLATE "C" PRIMARY KEY,
    body text NOT NULL
);
