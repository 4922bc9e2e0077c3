-- oldest_code: 1

-- What the caller of an occurrence from outside sent for its action, as JSON.
ALTER TABLE occurrences ADD COLUMN body text;
