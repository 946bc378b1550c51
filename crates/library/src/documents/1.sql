-- All transcripts and every edit of them. Times are milliseconds since 1970,
-- but for those within a recording.
CREATE TABLE documents (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    title         TEXT NOT NULL,
    file          TEXT NOT NULL,     -- JSON, the recording's path
    file_bytes    INTEGER,
    file_modified INTEGER,
    file_digest   BLOB,              -- SHA-256 of the first and the last MiB
    created       INTEGER NOT NULL,
    changed       INTEGER NOT NULL,
    deleted       INTEGER,           -- when; a later start removes the row
    duration_ms   INTEGER NOT NULL,  -- of the recording
    language      TEXT NOT NULL,
    model         TEXT NOT NULL,
    edits_done    INTEGER NOT NULL DEFAULT 0  -- later edits were undone
) STRICT;

-- A transcript with its first `edits_done` edits applied.
CREATE TABLE snapshots (
    document   INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    edits_done INTEGER NOT NULL,
    transcript TEXT NOT NULL         -- JSON
) STRICT;

CREATE TABLE edits (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    number   INTEGER NOT NULL,       -- from 1
    changes  TEXT NOT NULL,          -- JSON, old and new content of each change
    at       INTEGER NOT NULL,
    PRIMARY KEY (document, number)
) STRICT, WITHOUT ROWID;

-- One row per segment; its id is the document's id times 2^32 plus the segment's.
-- Texts are found by any three consecutive characters. The trigrams of removed
-- texts stay in the file until FTS5 merges its pages, since its secure-delete
-- takes 15 ms per row.
CREATE VIRTUAL TABLE passages USING fts5 (
    text, start_ms UNINDEXED, tokenize = 'trigram remove_diacritics 1'
);
