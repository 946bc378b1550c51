-- What `passages` is to have in place of what it has: it learns afterwards of
-- edits that change many at once. NULL: nothing.
CREATE TABLE unindexed (
    id       INTEGER PRIMARY KEY,    -- the passage's
    text     TEXT,
    start_ms INTEGER NOT NULL
) STRICT;

-- Those of each segment, in order: JSON, [[[text, start_ms, end_ms, probability], ...], ...].
-- NULL: they are in the transcript.
ALTER TABLE snapshots ADD COLUMN words TEXT;

-- The first segments of a snapshot, with their words: within it they would be
-- read no sooner than all of it.
CREATE TABLE beginnings (
    document INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    segments TEXT NOT NULL           -- JSON
) STRICT;
