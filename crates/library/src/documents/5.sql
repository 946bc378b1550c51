-- Words that an edit put in place of others, as often as it did.
CREATE TABLE corrections (
    document INTEGER NOT NULL,
    number   INTEGER NOT NULL,       -- of the edit
    word     TEXT NOT NULL,
    heard    TEXT NOT NULL,
    times    INTEGER NOT NULL,
    PRIMARY KEY (document, number, word, heard),
    FOREIGN KEY (document, number) REFERENCES edits ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
