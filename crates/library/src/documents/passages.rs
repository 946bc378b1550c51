//! The full-text index of the history. A passage is the text of one segment.

use std::collections::BTreeMap;

use rusqlite::types::Value;
use rusqlite::{Row, Transaction, params, params_from_iter};
use transcript::edit::{Change, SegmentId};
use transcript::{Segment, Time};

use super::DocumentId;

/// Most hits of one transcript, so that others are found as well.
const MAX_HITS_PER_DOCUMENT: usize = 200;
const MAX_HITS: usize = 1000;
/// Most rows that a search reads, for words that occur everywhere.
const MAX_ROWS_READ: usize = 5000;
/// Shorter texts are in no trigram and are found by reading all passages.
const TRIGRAM: usize = 3;

/// What a search found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SearchHits {
    /// The latest transcript first; of each in order of time.
    pub hits: Vec<SearchHit>,
    /// There are more, which were left out.
    pub more: bool,
}

/// A segment that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchHit {
    /// The transcript.
    pub document: DocumentId,
    /// Title of the transcript.
    pub title: String,
    /// The segment within the transcript.
    pub segment: SegmentId,
    /// Start of the segment within the recording.
    pub start: Time,
    /// The segment's whole text.
    pub text: String,
}

const INSERT: &str = "INSERT INTO passages (rowid, text, start_ms) VALUES (?1, ?2, ?3)";

fn row_id(document: DocumentId, segment: SegmentId) -> i64 {
    (document.0 << 32) | i64::from(segment)
}

/// Indexes all segments of a new transcript.
pub fn add(transaction: &Transaction, document: DocumentId, segments: &[Segment]) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(INSERT)?;
    for segment in segments.iter().filter(|segment| !segment.text.is_empty()) {
        insert.execute(params![row_id(document, segment.id), segment.text, segment.start.millis()])?;
    }
    Ok(())
}

/// Notes which segments the changes concern; [`catch_up`] indexes them.
pub fn change(transaction: &Transaction, document: DocumentId, changes: &[Change]) -> rusqlite::Result<()> {
    let mut insert =
        transaction.prepare("INSERT OR REPLACE INTO unindexed (id, text, start_ms) VALUES (?1, ?2, ?3)")?;
    let mut put = |segment: SegmentId, start: Time, text: Option<&str>| {
        let text = text.filter(|text| !text.is_empty());
        insert.execute(params![row_id(document, segment), text, start.millis()])
    };
    for change in changes {
        match change {
            Change::Segments { removed, inserted, .. } => {
                for segment in removed {
                    put(segment.id, segment.start, None)?;
                }
                for segment in inserted {
                    put(segment.id, segment.start, Some(&segment.text))?;
                }
            }
            Change::Text { segment, start, after, .. } => {
                put(*segment, *start, Some(after))?;
            }
            Change::Speaker { .. } | Change::Turns { .. } | Change::Metadata { .. } => {}
        }
    }
    Ok(())
}

/// Indexes up to `most` changed segments. Returns whether there may be more.
pub fn catch_up(transaction: &Transaction, most: u32) -> rusqlite::Result<bool> {
    let mut select = transaction.prepare("SELECT id, text, start_ms FROM unindexed ORDER BY id LIMIT ?1")?;
    let mut delete = transaction.prepare("DELETE FROM passages WHERE rowid = ?1")?;
    let mut insert = transaction.prepare(INSERT)?;
    let mut rows = select.query([most])?;
    let (mut done, mut last) = (0, 0);
    while let Some(row) = rows.next()? {
        let (id, text, start): (i64, Option<String>, u32) = (row.get(0)?, row.get(1)?, row.get(2)?);
        delete.execute([id])?;
        if let Some(text) = text {
            insert.execute(params![id, text, start])?;
        }
        (done, last) = (done + 1, id);
    }
    transaction.execute("DELETE FROM unindexed WHERE id <= ?1", [last])?;
    Ok(done == most)
}

/// Removes all passages of a transcript.
pub fn remove_all(transaction: &Transaction, document: DocumentId) -> rusqlite::Result<()> {
    let range = [row_id(document, 0), row_id(document, SegmentId::MAX)];
    transaction.execute("DELETE FROM passages WHERE rowid BETWEEN ?1 AND ?2", range)?;
    transaction.execute("DELETE FROM unindexed WHERE id BETWEEN ?1 AND ?2", range)?;
    Ok(())
}

pub fn search(transaction: &Transaction, words: &str) -> rusqlite::Result<SearchHits> {
    let words = words.trim();
    if words.is_empty() {
        return Ok(SearchHits::default());
    }
    let (condition, values) = condition(words);
    let mut select = transaction.prepare(&format!(
        "SELECT passages.rowid AS id, text, start_ms, title, deleted
         FROM passages CROSS JOIN documents ON documents.id = passages.rowid >> 32
         WHERE {condition} ORDER BY passages.rowid DESC LIMIT {MAX_ROWS_READ}"
    ))?;
    let mut rows = select.query(params_from_iter(values))?;
    let (mut hits, mut counts, mut more, mut read) = (Vec::new(), BTreeMap::new(), false, 0);
    while let Some(row) = rows.next()? {
        read += 1;
        if row.get::<_, Option<i64>>("deleted")?.is_some() {
            continue;
        }
        let hit = hit(row)?;
        let count = counts.entry(hit.document).or_insert(0);
        *count += 1;
        if *count > MAX_HITS_PER_DOCUMENT || hits.len() == MAX_HITS {
            more = true;
        } else {
            hits.push(hit);
        }
    }
    more |= read == MAX_ROWS_READ;
    // Within a transcript in order of time.
    hits.sort_by_key(|hit| (std::cmp::Reverse(hit.document), hit.start));
    Ok(SearchHits { hits, more })
}

pub fn containing(transaction: &Transaction, words: &str) -> rusqlite::Result<Vec<DocumentId>> {
    let (condition, values) = condition(words);
    let mut select = transaction.prepare(&format!(
        "SELECT DISTINCT documents.id FROM passages CROSS JOIN documents ON documents.id = passages.rowid >> 32
         WHERE {condition} AND deleted IS NULL"
    ))?;
    select.query_map(params_from_iter(values), |row| Ok(DocumentId(row.get(0)?)))?.collect()
}

/// The SQL condition that a passage contains `words`, and its parameters.
fn condition(words: &str) -> (String, Vec<Value>) {
    if words.chars().count() >= TRIGRAM {
        let phrase = format!("\"{}\"", words.replace('"', "\"\""));
        return ("passages MATCH ?".into(), vec![phrase.into()]);
    }
    // SQLite ignores case for ASCII alone.
    let mut forms = vec![words.to_owned(), words.to_lowercase(), words.to_uppercase()];
    forms.sort();
    forms.dedup();
    let like = |form: &String| {
        let escaped = form.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        Value::from(format!("%{escaped}%"))
    };
    let conditions = vec!["text LIKE ? ESCAPE '\\'"; forms.len()].join(" OR ");
    (format!("({conditions})"), forms.iter().map(like).collect())
}

fn hit(row: &Row) -> rusqlite::Result<SearchHit> {
    let id: i64 = row.get("id")?;
    Ok(SearchHit {
        document: DocumentId(id >> 32),
        title: row.get("title")?,
        segment: (id & i64::from(SegmentId::MAX)) as SegmentId,
        start: Time::from_millis(row.get("start_ms")?),
        text: row.get("text")?,
    })
}
