-- Changes of `passages` that are not indexed yet, for edits of many segments at
-- once. NULL: the passage is removed.
CREATE TABLE unindexed (
    id       INTEGER PRIMARY KEY,    -- the passage's
    text     TEXT,
    start_ms INTEGER NOT NULL
) STRICT;

-- The words of each segment: JSON, [[[text, start_ms, end_ms, probability], ...], ...].
-- NULL: the words are in `transcript`.
ALTER TABLE snapshots ADD COLUMN words TEXT;

-- The first segments of a snapshot with their words, which can be read before
-- the whole snapshot is parsed.
CREATE TABLE beginnings (
    document INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    segments TEXT NOT NULL           -- JSON
) STRICT;
