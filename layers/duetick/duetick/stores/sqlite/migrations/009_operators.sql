-- oldest_code: 1

-- Operators name an occurrence by its id, which a log shows. Ids begin with their time: a claim adds
-- them at the end of the index.
CREATE INDEX idx_occurrences_id ON occurrences (id);
