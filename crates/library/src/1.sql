-- Jobs that have not ended, and the last ones that have. Times are milliseconds
-- since 1970; columns called JSON hold types of the crate wire.
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    kind          TEXT NOT NULL,     -- of host: steno, window, server
    queue_id      INTEGER NOT NULL,  -- number in the host's queue
    file          TEXT NOT NULL,     -- JSON, a path
    file_bytes    INTEGER,
    file_modified INTEGER,
    file_digest   BLOB,              -- SHA-256 of the first and the last MiB
    job           TEXT NOT NULL,     -- JSON, with all settings
    outputs       TEXT NOT NULL,     -- JSON of the host
    state         TEXT NOT NULL,
    stage         TEXT,
    language      TEXT,
    strategy      TEXT NOT NULL,
    ladder        TEXT,              -- JSON
    point         TEXT,              -- JSON
    skip          TEXT NOT NULL DEFAULT '[]',
    attempts      INTEGER NOT NULL DEFAULT 0,
    host_pid      INTEGER NOT NULL,
    host_started  INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    changed       INTEGER NOT NULL
) STRICT;

CREATE TABLE segments (
    job     INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    segment TEXT NOT NULL,           -- JSON
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- Segments over silence that were left out of the text.
CREATE TABLE discarded (
    job     INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number  INTEGER NOT NULL,
    segment TEXT NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE notices (
    job    INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    notice TEXT NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- What preparing a channel found.
CREATE TABLE channels (
    job             INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    channel         INTEGER NOT NULL,
    log_mel_maximum REAL NOT NULL,
    PRIMARY KEY (job, channel)
) STRICT, WITHOUT ROWID;

-- Stretches of speech.
CREATE TABLE regions (
    job      INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    channel  INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms   INTEGER NOT NULL,
    PRIMARY KEY (job, channel, start_ms)
) STRICT, WITHOUT ROWID;

-- Marks of the memory timeline.
CREATE TABLE marks (
    job    INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    mark   TEXT NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
