-- Recordings of watched folders that were processed or are to be ignored.
CREATE TABLE taken (
    file     TEXT NOT NULL,          -- JSON, a path
    bytes    INTEGER NOT NULL,
    modified INTEGER,                -- milliseconds since 1970
    digest   BLOB,                   -- SHA-256 of the first and the last MiB; NULL if only path and stamp count
    at       INTEGER NOT NULL,       -- milliseconds since 1970
    PRIMARY KEY (file, bytes, modified)
) STRICT;

CREATE INDEX taken_by_digest ON taken (digest, bytes);
