-- The index of words has the texts of segments; a passage is a few of them.
ALTER TABLE passages RENAME TO segment_texts;

-- 1: `passages` has those of the text as it is now.
ALTER TABLE documents ADD COLUMN is_cut INTEGER NOT NULL DEFAULT 0;

-- Overlapping stretches of a few sentences. A row whose text stays the same stays the same row.
CREATE TABLE passages (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    start_ms INTEGER NOT NULL,
    end_ms   INTEGER NOT NULL,
    speaker  TEXT,
    language TEXT NOT NULL,
    segment  INTEGER NOT NULL,       -- the id of the first one
    text     TEXT NOT NULL
) STRICT;
CREATE INDEX places_of_passages ON passages (document, start_ms, end_ms, speaker, language);

-- What vectors were computed with. Of a complete index all passages have had vectors.
CREATE TABLE indexes (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    model      TEXT NOT NULL,
    version    TEXT NOT NULL,
    dimensions INTEGER NOT NULL,
    complete   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (model, version, dimensions)
) STRICT;

-- One row per passage of an index; its id is the index's id times 2^40 plus the passage's. The vector:
-- a scale (f32, little endian), then the components divided by it as signed bytes.
CREATE TABLE vectors (
    id     INTEGER PRIMARY KEY,
    vector BLOB NOT NULL
) STRICT;
CREATE TRIGGER vectors_go_with_their_passage AFTER DELETE ON passages BEGIN
    DELETE FROM vectors WHERE id IN (SELECT (indexes.id << 40) | old.id FROM indexes);
END;
