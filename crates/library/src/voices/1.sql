-- People whose voices are recognised, and what they are recognised by. Times are milliseconds since 1970.
CREATE TABLE people (
    id      INTEGER PRIMARY KEY,
    name    TEXT NOT NULL UNIQUE,
    created INTEGER NOT NULL
) STRICT;

CREATE TABLE samples (
    id                INTEGER PRIMARY KEY,
    person            INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
    source            TEXT NOT NULL,     -- file name of the recording
    seconds           REAL NOT NULL,     -- speech of the person in it
    seconds_of_others REAL NOT NULL,
    network           TEXT NOT NULL,     -- the weights that made the vector
    vector            BLOB NOT NULL,     -- 32-bit floats, little-endian
    added             INTEGER NOT NULL
) STRICT;

CREATE INDEX samples_of_person ON samples (person);
