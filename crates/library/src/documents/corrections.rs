//! Words that the user corrects again and again.

use std::collections::BTreeMap;

use rusqlite::{Transaction, params};
use serde::Serialize;
use transcript::edit::{self, Change};

use super::DocumentId;

/// A word that was written in place of others several times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct CorrectedWord {
    /// As it was written.
    pub word: String,
    /// What was there before, the most frequent first, at most three.
    pub heard: Vec<String>,
    /// In how many places it was written.
    pub times: u32,
}

/// Most variants of what was there before.
const MAX_HEARD: u32 = 3;
/// A word is not to be expected for a single correction.
const LEAST: u32 = 2;
/// Most words that are looked at more closely.
const MAX_CANDIDATES: u32 = 500;

/// Notes the corrections of an edit, with the edit.
pub(super) fn record(
    transaction: &Transaction,
    id: DocumentId,
    number: i64,
    changes: &[Change],
) -> rusqlite::Result<()> {
    let mut times: BTreeMap<edit::Correction, u32> = BTreeMap::new();
    for correction in edit::corrections(changes) {
        *times.entry(correction).or_default() += 1;
    }
    let mut add = transaction.prepare(
        "INSERT INTO corrections (document, number, word, heard, times) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for (edit::Correction { heard, word }, times) in times {
        add.execute(params![id.0, number, word, heard, times])?;
    }
    Ok(())
}

/// Undone edits and deleted transcripts don't count.
pub(super) fn words(transaction: &Transaction, limit: usize) -> rusqlite::Result<Vec<CorrectedWord>> {
    let mut candidates = transaction.prepare(
        "SELECT word, sum(times) AS times FROM corrections JOIN documents ON documents.id = document
         WHERE number <= edits_done AND deleted IS NULL AND word NOT IN (SELECT word FROM ignored_words)
         GROUP BY word HAVING sum(times) >= ?1 ORDER BY sum(times) DESC, word LIMIT ?2",
    )?;
    let mut heard = transaction.prepare(
        "SELECT heard FROM corrections JOIN documents ON documents.id = document
         WHERE word = ?1 AND number <= edits_done AND deleted IS NULL
         GROUP BY heard ORDER BY sum(times) DESC, heard LIMIT ?2",
    )?;
    let mut texts = transaction.prepare("SELECT count(*) FROM segment_texts WHERE segment_texts MATCH ?1")?;
    let mut found = Vec::new();
    let rows = candidates
        .query_map(params![LEAST, MAX_CANDIDATES], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<Vec<(String, u32)>>>()?;
    for (word, times) in rows {
        if found.len() == limit {
            break;
        }
        // The index finds three characters and more.
        if word.chars().count() < 3 {
            continue;
        }
        let phrase = format!("\"{}\"", word.replace('"', "\"\""));
        let segments: u32 = texts.query_row([phrase], |row| row.get(0))?;
        // The model writes it by itself mostly.
        if segments > 4 * times {
            continue;
        }
        let heard = heard
            .query_map(params![word, MAX_HEARD], |row| row.get(0))?
            .collect::<rusqlite::Result<Vec<String>>>()?;
        found.push(CorrectedWord { word, heard, times });
    }
    Ok(found)
}
