-- All transcripts and every edit of them. Times are milliseconds since 1970
-- unless they lie in a recording.
CREATE TABLE documents (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    title         TEXT NOT NULL,
    file          TEXT NOT NULL,     -- JSON, the recording's path
    file_bytes    INTEGER,
    file_modified INTEGER,
    file_digest   BLOB,              -- SHA-256 of the first and the last MiB
    created       INTEGER NOT NULL,
    changed       INTEGER NOT NULL,
    deleted       INTEGER,           -- removed for good at a later start
    duration_ms   INTEGER NOT NULL,  -- of the recording
    language      TEXT NOT NULL,
    model         TEXT NOT NULL,
    edits_done    INTEGER NOT NULL DEFAULT 0  -- edits after it were undone
) STRICT;

-- A transcript as it was when so many edits were done.
CREATE TABLE snapshots (
    document   INTEGER PRIMARY KEY REFERENCES documents ON DELETE CASCADE,
    edits_done INTEGER NOT NULL,
    transcript TEXT NOT NULL         -- JSON
) STRICT;

CREATE TABLE edits (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    number   INTEGER NOT NULL,       -- from 1
    changes  TEXT NOT NULL,          -- JSON, both sides of each
    at       INTEGER NOT NULL,
    PRIMARY KEY (document, number)
) STRICT, WITHOUT ROWID;

-- A segment's text each; the row's id is the document's times 2^32 and the
-- segment's. Texts are found by any three characters in a row. Of a text that
-- was removed which trigrams it had stays until their pages are merged: FTS5's
-- secure-delete takes 15 ms for each row.
CREATE VIRTUAL TABLE passages USING fts5 (
    text, start_ms UNINDEXED, tokenize = 'trigram remove_diacritics 1'
);
