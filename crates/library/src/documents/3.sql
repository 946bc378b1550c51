-- Words by which the user sorts transcripts.
CREATE TABLE tags (
    document INTEGER NOT NULL REFERENCES documents ON DELETE CASCADE,
    tag      TEXT NOT NULL,
    PRIMARY KEY (document, tag)
) STRICT, WITHOUT ROWID;
