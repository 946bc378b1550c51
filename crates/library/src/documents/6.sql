-- Words that the user does not want to be offered.
CREATE TABLE ignored_words (
    word TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
