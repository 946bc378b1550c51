//! The full-text index of the history: the text of each segment.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use rusqlite::types::Value;
use rusqlite::{Connection, Row, Transaction, params, params_from_iter};
use transcript::edit::{Change, SegmentId};
use transcript::{Segment, Time};

use super::DocumentId;
use super::found::{PLACES, PlacedPassage, Wanted};

/// Most hits of one transcript, so that others are found as well.
const MAX_HITS_PER_DOCUMENT: usize = 200;
const MAX_HITS: usize = 1000;
/// Most rows that a search reads, for words that occur everywhere.
const MAX_ROWS_READ: usize = 5000;
/// Shorter texts are in no trigram and are found by reading all segments.
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

const INSERT: &str = "INSERT INTO segment_texts (rowid, text, start_ms) VALUES (?1, ?2, ?3)";

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
            Change::Speaker { .. }
            | Change::Turns { .. }
            | Change::Chapters { .. }
            | Change::Metadata { .. } => {}
        }
    }
    Ok(())
}

/// Indexes up to `most` changed segments. Returns whether there may be more.
pub fn catch_up(transaction: &Transaction, most: u32) -> rusqlite::Result<bool> {
    let mut select = transaction.prepare("SELECT id, text, start_ms FROM unindexed ORDER BY id LIMIT ?1")?;
    let mut delete = transaction.prepare("DELETE FROM segment_texts WHERE rowid = ?1")?;
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

/// Removes all texts of a transcript.
pub fn remove_all(transaction: &Transaction, document: DocumentId) -> rusqlite::Result<()> {
    let range = [row_id(document, 0), row_id(document, SegmentId::MAX)];
    transaction.execute("DELETE FROM segment_texts WHERE rowid BETWEEN ?1 AND ?2", range)?;
    transaction.execute("DELETE FROM unindexed WHERE id BETWEEN ?1 AND ?2", range)?;
    Ok(())
}

pub fn search(connection: &Connection, words: &str, wanted: &Wanted) -> rusqlite::Result<SearchHits> {
    let words = words.trim();
    if words.is_empty() {
        return Ok(SearchHits::default());
    }
    let (condition, values) = condition(words);
    let mut select = connection.prepare(&format!(
        "SELECT segment_texts.rowid AS id, text, start_ms, title
         FROM segment_texts CROSS JOIN documents ON documents.id = segment_texts.rowid >> 32
         WHERE {condition} ORDER BY segment_texts.rowid DESC LIMIT {MAX_ROWS_READ}"
    ))?;
    let mut rows = select.query(params_from_iter(values))?;
    let (mut hits, mut counts, mut more, mut read) = (Vec::new(), BTreeMap::new(), false, 0);
    let mut passages = HashMap::new();
    while let Some(row) = rows.next()? {
        read += 1;
        let hit = hit(row)?;
        if !wanted.has_document(hit.document) || !is_in_passage(connection, &hit, wanted, &mut passages)? {
            continue;
        }
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
        "SELECT DISTINCT documents.id FROM segment_texts CROSS JOIN documents ON documents.id = segment_texts.rowid >> 32
         WHERE {condition} AND deleted IS NULL"
    ))?;
    select.query_map(params_from_iter(values), |row| Ok(DocumentId(row.get(0)?)))?.collect()
}

/// The SQL condition that a segment contains `words`, and its parameters.
fn condition(words: &str) -> (String, Vec<Value>) {
    if words.chars().count() >= TRIGRAM {
        let phrase = format!("\"{}\"", words.replace('"', "\"\""));
        return ("segment_texts MATCH ?".into(), vec![phrase.into()]);
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
    let (document, segment) = ids(row.get("id")?);
    Ok(SearchHit {
        document,
        title: row.get("title")?,
        segment,
        start: Time::from_millis(row.get("start_ms")?),
        text: row.get("text")?,
    })
}

/// Whether a segment is within a passage that is wanted; `passages` remembers those of its transcript.
fn is_in_passage(
    connection: &Connection,
    hit: &SearchHit,
    wanted: &Wanted,
    passages: &mut HashMap<DocumentId, Vec<PlacedPassage>>,
) -> rusqlite::Result<bool> {
    if !wanted.is_of_passages() {
        return Ok(true);
    }
    let of_document = match passages.entry(hit.document) {
        Entry::Occupied(known) => known.into_mut(),
        Entry::Vacant(new) => {
            let mut places = connection.prepare(PLACES)?;
            new.insert(wanted.of_document(&mut places, hit.document.0)?)
        }
    };
    Ok(of_document.iter().any(|passage| passage.contains(hit.start.millis())))
}

/// Most segments that one word is looked up in: a word that more have says little.
const COMMON: usize = 3000;
/// A word that fewer of the passages have tells them apart.
const TELLING_SHARE: f64 = 0.2;
/// So much of a question, by the weights of its words, has to be in a passage that answers it.
const LEAST_SHARE: f64 = 0.5;

/// The words of a question and where they are.
#[derive(Debug, Default)]
pub struct Query {
    /// Those that are looked for: three letters or more, or three characters of a text without spaces.
    pub words: Vec<String>,
    /// How much each says: the logarithm of how rare it is.
    pub weights: Vec<f64>,
    /// The segments that have each.
    pub hits: Vec<Vec<WordHit>>,
}

/// A segment that has a word.
#[derive(Debug, Clone, Copy)]
pub struct WordHit {
    /// The transcript.
    pub document: DocumentId,
    /// The segment.
    pub segment: SegmentId,
    /// Its start in milliseconds.
    pub start: u32,
}

impl Query {
    /// Looks up the words of a question. Those that nearly every segment has are left out if there are others.
    pub fn new(connection: &Connection, text: &str) -> rusqlite::Result<Self> {
        // As many texts as there are places for: counting the rows of a full-text index reads all of it.
        let all: i64 = connection.query_row("SELECT count(*) FROM passages", [], |row| row.get(0))?;
        let all = all.max(1) as f64;
        let mut query = Self::default();
        for word in words_of(text) {
            let hits = hits_of(connection, &word)?;
            let is_common = hits.len() >= COMMON;
            query.weights.push(if is_common { 0.0 } else { (1.0 + all / hits.len().max(1) as f64).ln() });
            query.words.push(word);
            query.hits.push(hits);
        }
        if query.weights.iter().all(|weight| *weight == 0.0) {
            query.weights.fill(1.0);
        }
        Ok(query)
    }

    /// Whether a word tells passages apart: not many have it, or all words are such.
    pub fn is_telling(&self, word: usize) -> bool {
        let least = (1.0 + 1.0 / TELLING_SHARE).ln();
        self.weights[word] >= least || self.weights.iter().all(|weight| *weight < least)
    }

    /// The least sum of weights that a passage needs.
    pub fn least(&self) -> f64 {
        LEAST_SHARE * self.weights.iter().sum::<f64>()
    }
}

fn hits_of(connection: &Connection, word: &str) -> rusqlite::Result<Vec<WordHit>> {
    let (condition, values) = condition(word);
    let mut select = connection.prepare(&format!(
        "SELECT rowid, start_ms, text FROM segment_texts WHERE {condition} ORDER BY rowid DESC LIMIT {COMMON}"
    ))?;
    let mut rows = select.query(params_from_iter(values))?;
    let mut hits = Vec::new();
    while let Some(row) = rows.next()? {
        if has_beginning(row.get_ref(2)?.as_str()?, word) {
            let (document, segment) = ids(row.get(0)?);
            hits.push(WordHit { document, segment, start: row.get(1)? });
        }
    }
    Ok(hits)
}

/// Whether a word of the text begins with this one: "sell" finds "selling", and "art" no "party". Where
/// accents differ, that is not told, and the text counts.
fn has_beginning(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let mut places = text.match_indices(word).map(|(place, _)| place).peekable();
    places.peek().is_none() || places.any(|place| begins_word(&text, place))
}

/// Whether a word begins at this byte of a text.
pub fn begins_word(text: &str, at: usize) -> bool {
    let is_within = |character: char| character.is_alphanumeric() && !is_unspaced(character);
    !text[..at].chars().next_back().is_some_and(is_within)
}

/// The words of a question in lower case, without repetitions and without those of one or two letters, unless
/// there are no others.
fn words_of(text: &str) -> Vec<String> {
    let text = text.to_lowercase();
    let tokens = text.split(|character: char| !character.is_alphanumeric()).filter(|token| !token.is_empty());
    let (mut long, mut short) = (Vec::new(), Vec::new());
    for token in tokens {
        let characters: Vec<char> = token.chars().collect();
        let words = if characters.iter().any(|character| is_unspaced(*character)) {
            characters.windows(TRIGRAM.min(characters.len())).map(|part| part.iter().collect()).collect()
        } else {
            vec![token.to_owned()]
        };
        for word in words {
            let list = if word.chars().count() < TRIGRAM { &mut short } else { &mut long };
            if !list.contains(&word) {
                list.push(word);
            }
        }
    }
    if long.is_empty() { short } else { long }
}

/// A letter of a script that puts no spaces between words: kana, Chinese characters, Thai, Lao, Khmer, Burmese.
fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}'
        | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

fn ids(row_id: i64) -> (DocumentId, SegmentId) {
    (DocumentId(row_id >> 32), (row_id & i64::from(SegmentId::MAX)) as SegmentId)
}
