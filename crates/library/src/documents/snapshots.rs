//! Snapshots: whole transcripts after some number of edits. A long transcript has
//! hundreds of thousands of words, so words are stored apart from the rest, as
//! arrays without field names, and both parts are parsed in parallel.

use std::thread;

use rusqlite::{OptionalExtension, Row, Transaction, params};
use serde::Deserialize;
use transcript::{Segment, Time, Transcript, Word};

use super::DocumentId;
use crate::journal::{json, not_json};

/// Number of first segments that are stored once more on their own: more than a
/// screen shows, with a margin for segments that are deleted.
const BEGINNING: usize = 60;

/// Text, start and end in milliseconds, probability (`None` if not finite).
type StoredWord<S> = (S, u32, u32, Option<f32>);

/// Replaces the snapshot of a transcript by one that includes `done` edits.
pub fn write(
    transaction: &Transaction,
    id: DocumentId,
    done: i64,
    transcript: &Transcript,
) -> rusqlite::Result<()> {
    let words: Vec<Vec<StoredWord<&str>>> =
        transcript.segments.iter().map(|segment| segment.words.iter().map(stored).collect()).collect();
    let mut rest = transcript.clone();
    rest.segments.iter_mut().for_each(|segment| segment.words.clear());
    let beginning = &transcript.segments[..transcript.segments.len().min(BEGINNING)];
    transaction.execute(
        "INSERT INTO snapshots (document, edits_done, transcript, words) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (document) DO UPDATE SET edits_done = ?2, transcript = ?3, words = ?4",
        params![id.0, done, json(&rest)?, json(&words)?],
    )?;
    transaction.execute(
        "INSERT OR REPLACE INTO beginnings (document, segments) VALUES (?1, ?2)",
        params![id.0, json(&beginning)?],
    )?;
    Ok(())
}

/// The first segments and the number of edits that they include. `None` if the
/// transcript is short, or if a version that did not store them wrote it.
pub fn beginning(transaction: &Transaction, id: DocumentId) -> rusqlite::Result<Option<(i64, Vec<Segment>)>> {
    let query =
        "SELECT edits_done, segments FROM snapshots JOIN beginnings USING (document) WHERE document = ?1";
    let read = |row: &Row| Ok((row.get(0)?, parse::<Vec<Segment>>(row.get_ref(1)?.as_str()?)?));
    let beginning = transaction.query_row(query, [id.0], read).optional()?;
    Ok(beginning.filter(|(_, segments)| segments.len() == BEGINNING))
}

/// The snapshot and the number of edits that it includes.
pub fn read(transaction: &Transaction, id: DocumentId) -> rusqlite::Result<(i64, Transcript)> {
    let query = "SELECT edits_done, transcript, words FROM snapshots WHERE document = ?1";
    transaction.query_row(query, [id.0], |row| {
        let (rest, words) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str_or_null()?);
        let (transcript, words) = thread::scope(|scope| {
            let words = words.map(|words| scope.spawn(|| parse::<Vec<Vec<StoredWord<String>>>>(words)));
            let words = words.map(|words| words.join().unwrap_or_else(|_| Err(damaged())));
            (parse::<Transcript>(rest), words)
        });
        let mut transcript = transcript?;
        // The first version of the schema kept words within the transcript.
        if let Some(words) = words.transpose()? {
            if words.len() != transcript.segments.len() {
                return Err(damaged());
            }
            for (segment, words) in transcript.segments.iter_mut().zip(words) {
                segment.words = words.into_iter().map(word).collect();
            }
        }
        Ok((row.get(0)?, transcript))
    })
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(not_json)
}

fn damaged() -> rusqlite::Error {
    not_json(serde::de::Error::custom("words and segments are not of one transcript"))
}

fn stored(word: &Word) -> StoredWord<&str> {
    (&word.text, word.start.millis(), word.end.millis(), Some(word.probability))
}

fn word((text, start, end, probability): StoredWord<String>) -> Word {
    let (start, end) = (Time::from_millis(start), Time::from_millis(end));
    Word { text, start, end, probability: probability.unwrap_or(0.0) }
}
