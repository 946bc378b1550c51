//! The passages of each transcript, which are cut anew when its text has changed.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};
use transcript::Transcript;
use transcript::passages::{Passage, passages};

use super::{DocumentId, transcript_at};

/// Identifies a passage of the history. Its text never changes; ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PassageId(
    /// The row in the table of passages.
    pub i64,
);

/// Cuts up to `most` transcripts whose text has changed, the latest first. Returns whether there may be
/// more.
pub fn cut(transaction: &Transaction, most: usize) -> rusqlite::Result<bool> {
    for _ in 0..most {
        let query = "SELECT id, edits_done FROM documents WHERE is_cut = 0 AND deleted IS NULL
             ORDER BY id DESC LIMIT 1";
        let read = transaction.query_row(query, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        let Some((id, done)) = read else { return Ok(false) };
        let id = DocumentId(id);
        replace(transaction, id, &transcript_at(transaction, id, done)?.0)?;
    }
    Ok(true)
}

/// Whether there are transcripts whose text has changed since they were cut.
pub fn are_outdated(connection: &Connection) -> rusqlite::Result<bool> {
    let query = "SELECT EXISTS (SELECT 1 FROM documents WHERE is_cut = 0 AND deleted IS NULL)";
    connection.query_row(query, [], |row| row.get(0))
}

/// Stores the passages of a transcript in place of those that there were. What has the same text stays the
/// same row, and so keeps its vectors.
pub fn replace(transaction: &Transaction, document: DocumentId, now: &Transcript) -> rusqlite::Result<()> {
    let mut before: HashMap<String, Vec<i64>> = HashMap::new();
    let mut select =
        transaction.prepare("SELECT id, text FROM passages WHERE document = ?1 ORDER BY id DESC")?;
    let mut rows = select.query([document.0])?;
    while let Some(row) = rows.next()? {
        before.entry(row.get(1)?).or_default().push(row.get(0)?);
    }
    let mut update = transaction.prepare(
        "UPDATE passages SET start_ms = ?2, end_ms = ?3, speaker = ?4, language = ?5, segment = ?6 WHERE id = ?1",
    )?;
    let mut insert = transaction.prepare(
        "INSERT INTO passages (document, start_ms, end_ms, speaker, language, segment, text)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    for Passage { segment, span, speaker, language, text } in passages(now) {
        let (start, end) = (span.start.millis(), span.end.millis());
        match before.get_mut(&text).and_then(Vec::pop) {
            Some(id) => update.execute(params![id, start, end, speaker, language, segment])?,
            None => insert.execute(params![document.0, start, end, speaker, language, segment, text])?,
        };
    }
    let mut delete = transaction.prepare("DELETE FROM passages WHERE id = ?1")?;
    for id in before.into_values().flatten() {
        delete.execute([id])?;
    }
    transaction.execute("UPDATE documents SET is_cut = 1 WHERE id = ?1", [document.0])?;
    Ok(())
}
