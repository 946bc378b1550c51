-- Jobs that are under way. Times are milliseconds since 1970; texts called
-- JSON are the wire's own types.
CREATE TABLE jobs (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    kind          TEXT NOT NULL,     -- of the host: steno, window
    queue_id      INTEGER NOT NULL,  -- its number in the host's queue
    file          TEXT NOT NULL,     -- JSON, a path
    file_bytes    INTEGER,
    file_modified INTEGER,
    file_digest   BLOB,              -- SHA-256 of the first and the last MiB
    job           TEXT NOT NULL,     -- JSON, all settings
    outputs       TEXT NOT NULL,     -- JSON, the host's own
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

-- Text over silence that was left out.
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

-- What a channel turned out to be.
CREATE TABLE channels (
    job             INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    channel         INTEGER NOT NULL,
    log_mel_maximum REAL NOT NULL,
    PRIMARY KEY (job, channel)
) STRICT, WITHOUT ROWID;

-- Where somebody speaks, in milliseconds.
CREATE TABLE regions (
    job      INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    channel  INTEGER NOT NULL,
    start_ms INTEGER NOT NULL,
    end_ms   INTEGER NOT NULL,
    PRIMARY KEY (job, channel, start_ms)
) STRICT, WITHOUT ROWID;

-- The timeline of memory.
CREATE TABLE marks (
    job    INTEGER NOT NULL REFERENCES jobs ON DELETE CASCADE,
    number INTEGER NOT NULL,
    mark   TEXT NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
