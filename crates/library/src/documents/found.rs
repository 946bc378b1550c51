//! Search for passages: by words, by meaning, and by both.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;

use rusqlite::{Connection, OptionalExtension, Row, Statement, params};
use transcript::Time;
use transcript::edit::{SegmentId, TextPattern};
use wire::FilePath;

use super::passages::{self, PassageId};
use super::vectors::{self, IndexId, Meaning};
use super::words::{self, Query};
use super::{DocumentId, Documents};
use crate::Error;
use crate::journal::not_json;

/// Passages that each of the two ways contributes. Those behind could hardly come to the front.
const CANDIDATES: usize = 200;
/// Of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): a passage's score is the sum of
/// 1 / (60 + rank) over the lists that have it.
const RANK_CONSTANT: f64 = 60.0;
/// Transcripts with a changed text that are cut before a search; others wait for the background.
const CUT_BEFORE_SEARCH: usize = 2;

/// A search for passages.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Question {
    /// What is asked for: words, which may be a whole question.
    pub text: String,
    /// What it means. `None`: words alone are compared.
    pub meaning: Option<Meaning>,
    /// Where to search.
    pub filter: Filter,
    /// Most passages that are returned.
    pub most: usize,
}

/// Where to search. What is `None` admits everything.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Filter {
    /// The speaker's name, whatever its case.
    pub speaker: Option<String>,
    /// ISO 639-1 code of the passage's language.
    pub language: Option<String>,
    /// Transcripts that were made at this time or later, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Transcripts that were made before this time, in milliseconds since 1970.
    pub until: Option<i64>,
    /// Recordings in this folder or in folders of it.
    pub folder: Option<PathBuf>,
    /// Transcripts with this tag.
    pub tag: Option<String>,
}

/// A passage that a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundPassage {
    /// The passage.
    pub id: PassageId,
    /// Its transcript.
    pub document: DocumentId,
    /// Title of the transcript.
    pub title: String,
    /// Last known path of the recording.
    pub file: PathBuf,
    /// When the transcript was made, in milliseconds since 1970.
    pub created: i64,
    /// The segment to open: the first with a word that was asked for, else the passage's first.
    pub segment: SegmentId,
    /// Start of that segment within the recording.
    pub at: Time,
    /// Start of the passage.
    pub start: Time,
    /// End of the passage.
    pub end: Time,
    /// Who speaks, if known.
    pub speaker: Option<String>,
    /// ISO 639-1 code of its language.
    pub language: String,
    /// Its text.
    pub text: String,
    /// Where the text has words that were asked for, in bytes; empty where its meaning alone matched.
    pub words: Vec<Range<usize>>,
    /// Cosine of the angle between its meaning and that of the question, if the meaning matched.
    pub similarity: Option<f32>,
}

impl FoundPassage {
    /// Its text in parts, and whether each is a word that was asked for.
    pub fn parts(&self) -> Vec<(&str, bool)> {
        let (mut parts, mut done) = (Vec::new(), 0);
        for word in &self.words {
            parts.push((&self.text[done..word.start], false));
            parts.push((&self.text[word.clone()], true));
            done = word.end;
        }
        parts.push((&self.text[done..], false));
        parts.retain(|(text, _)| !text.is_empty());
        parts
    }
}

impl Documents {
    /// The passages that answer a question best, the best first: ranked by the words that they share with it,
    /// and by their meaning, and both ranks fused. Of passages that overlap only the best is there.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn find(&self, question: &Question) -> Result<Vec<FoundPassage>, Error> {
        self.freshen()?;
        self.read_only(|connection| {
            let wanted = Wanted::new(connection, &question.filter)?;
            let query = Query::new(connection, &question.text)?;
            let by_words = ranked_by_words(connection, &query, &wanted)?;
            let by_meaning = match &question.meaning {
                Some(meaning) => {
                    vectors::nearest(connection, meaning, |passage| wanted.has(passage), CANDIDATES)?
                }
                None => Vec::new(),
            };
            let ranked = fused(&by_words, &by_meaning);
            let similarity: HashMap<_, _> = by_meaning.into_iter().collect();
            let places: HashMap<_, _> = by_words.into_iter().map(|one| (one.passage, one.first)).collect();
            read(connection, ranked, &query, &places, &similarity, question.most)
        })
    }

    /// The passages whose meaning is most like that of another one. Empty if that has no vector in the index.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn similar(
        &self,
        index: IndexId,
        passage: PassageId,
        filter: &Filter,
        most: usize,
    ) -> Result<Vec<FoundPassage>, Error> {
        self.read_only(|connection| {
            let place = "SELECT document, start_ms, end_ms FROM passages WHERE id = ?1";
            let place = connection.query_row(place, [passage.0], |row| {
                Ok((row.get::<_, i64>(0)?, row.get::<_, u32>(1)?, row.get::<_, u32>(2)?))
            });
            let Some((document, start, end)) = place.optional()? else { return Ok(Vec::new()) };
            let Some(meaning) = vectors::meaning(connection, index, passage)? else { return Ok(Vec::new()) };
            let wanted = Wanted::new(connection, filter)?;
            let nearest = vectors::nearest(connection, &meaning, |one| wanted.has(one), CANDIDATES)?;
            let ranked = nearest.iter().map(|(passage, _)| *passage).collect();
            let similarity = nearest.into_iter().collect();
            let query = Query::default();
            let mut found = read(connection, ranked, &query, &HashMap::new(), &similarity, most + 1)?;
            let overlaps = |one: &FoundPassage| {
                one.document.0 == document && one.start.millis() < end && start < one.end.millis()
            };
            found.retain(|one| !overlaps(one));
            found.truncate(most);
            Ok(found)
        })
    }

    /// The speakers and languages of all passages, to filter by, in alphabetical order.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn speakers_and_languages(&self) -> Result<(Vec<String>, Vec<String>), Error> {
        self.read_only(|connection| {
            let all = |column: &str| -> rusqlite::Result<Vec<String>> {
                let mut select = connection.prepare(&format!(
                    "SELECT DISTINCT passages.{column} FROM documents
                     JOIN passages ON passages.document = documents.id
                     WHERE deleted IS NULL AND passages.{column} IS NOT NULL ORDER BY passages.{column}"
                ))?;
                select.query_map([], |row| row.get(0))?.collect()
            };
            Ok((all("speaker")?, all("language")?))
        })
    }

    /// Has a search see the text as it is now.
    pub(super) fn freshen(&self) -> Result<(), Error> {
        let (words_behind, outdated) = self.read_only(|connection| {
            let behind = "SELECT EXISTS (SELECT 1 FROM unindexed)";
            Ok((connection.query_row(behind, [], |row| row.get(0))?, passages::are_outdated(connection)?))
        })?;
        if words_behind || outdated {
            self.change(|transaction| {
                words::catch_up(transaction, u32::MAX)?;
                passages::cut(transaction, CUT_BEFORE_SEARCH)
            })?;
        }
        Ok(())
    }
}

/// What a filter admits; deleted transcripts never.
pub(super) struct Wanted<'a> {
    filter: &'a Filter,
    documents: HashSet<i64>,
    /// `None`: all of these documents, and there are no others.
    passages: Option<HashSet<i64>>,
}

impl<'a> Wanted<'a> {
    pub fn new(connection: &Connection, filter: &'a Filter) -> rusqlite::Result<Self> {
        let mut select = connection.prepare(
            "SELECT id, file, deleted IS NULL AND (?1 IS NULL OR created >= ?1) AND (?2 IS NULL OR created < ?2)
                AND (?3 IS NULL OR EXISTS (SELECT 1 FROM tags WHERE document = id AND tag = ?3))
             FROM documents",
        )?;
        let mut rows = select.query(params![filter.since, filter.until, filter.tag])?;
        let (mut documents, mut all) = (HashSet::new(), true);
        while let Some(row) = rows.next()? {
            let mut is_wanted: bool = row.get(2)?;
            if let Some(folder) = filter.folder.as_ref().filter(|_| is_wanted) {
                is_wanted = path_of(row.get_ref(1)?.as_str()?)?.starts_with(folder);
            }
            all &= is_wanted;
            if is_wanted {
                documents.insert(row.get(0)?);
            }
        }
        let mut wanted = Self { filter, documents, passages: None };
        if !all || filter.speaker.is_some() || filter.language.is_some() {
            let mut passages = HashSet::new();
            let mut select = connection.prepare("SELECT id, document, speaker, language FROM passages")?;
            let mut rows = select.query([])?;
            while let Some(row) = rows.next()? {
                if wanted.documents.contains(&row.get(1)?) && wanted.has_row(row, 2)? {
                    passages.insert(row.get(0)?);
                }
            }
            wanted.passages = Some(passages);
        }
        Ok(wanted)
    }

    pub fn has(&self, passage: PassageId) -> bool {
        self.passages.as_ref().is_none_or(|passages| passages.contains(&passage.0))
    }

    pub fn has_document(&self, document: DocumentId) -> bool {
        self.documents.contains(&document.0)
    }

    /// The passages of such a document that are admitted, in order of time; `places` is [`PLACES`].
    pub fn of_document(&self, places: &mut Statement, document: i64) -> rusqlite::Result<Vec<PlacedPassage>> {
        let mut rows = places.query([document])?;
        let mut passages = Vec::new();
        while let Some(row) = rows.next()? {
            if self.has_row(row, 3)? {
                passages.push(PlacedPassage {
                    id: PassageId(row.get(0)?),
                    start: row.get(1)?,
                    end: row.get(2)?,
                });
            }
        }
        Ok(passages)
    }

    /// Whether the speaker and the language are admitted, which are in columns `at` and `at + 1`.
    fn has_row(&self, row: &Row, at: usize) -> rusqlite::Result<bool> {
        if let Some(speaker) = &self.filter.speaker {
            let name = row.get_ref(at)?.as_str_or_null()?;
            let is_same = |name: &str| name == speaker || name.to_lowercase() == speaker.to_lowercase();
            if !name.is_some_and(is_same) {
                return Ok(false);
            }
        }
        let Some(language) = &self.filter.language else { return Ok(true) };
        Ok(row.get_ref(at + 1)?.as_str()? == language)
    }

    /// Whether only a part of a transcript may be wanted.
    pub fn is_of_passages(&self) -> bool {
        self.filter.speaker.is_some() || self.filter.language.is_some()
    }
}

/// Selects the places of a transcript's passages.
pub(super) const PLACES: &str =
    "SELECT id, start_ms, end_ms, speaker, language FROM passages WHERE document = ?1 ORDER BY start_ms";

/// Where a passage is within its recording, in milliseconds.
pub(super) struct PlacedPassage {
    id: PassageId,
    start: u32,
    end: u32,
}

impl PlacedPassage {
    pub fn contains(&self, start: u32) -> bool {
        (self.start..self.end.max(self.start + 1)).contains(&start)
    }
}

/// A passage with words of the question.
struct Worded {
    passage: PassageId,
    /// The first segment with one: its id and its start in milliseconds.
    first: (SegmentId, u32),
    /// Sum of the weights of the words that it has.
    weight: f64,
}

/// The passages that have at least half of what was asked for, by the weights of the words, the best first.
/// A passage that shares only a few common words with a question doesn't answer it.
fn ranked_by_words(connection: &Connection, query: &Query, wanted: &Wanted) -> rusqlite::Result<Vec<Worded>> {
    let mut of_document: BTreeMap<i64, Vec<(u32, SegmentId, usize)>> = BTreeMap::new();
    for (word, hits) in query.hits.iter().enumerate() {
        for hit in hits.iter().filter(|hit| wanted.has_document(hit.document)) {
            of_document.entry(hit.document.0).or_default().push((hit.start, hit.segment, word));
        }
    }
    let mut ranked = Vec::new();
    let mut places = connection.prepare(PLACES)?;
    for (document, mut hits) in of_document {
        hits.sort_unstable();
        for place in wanted.of_document(&mut places, document)? {
            let from = hits.partition_point(|(start, ..)| *start < place.start);
            let within = || hits[from..].iter().take_while(|(start, ..)| place.contains(*start));
            let mut has = vec![false; query.weights.len()];
            within().for_each(|(_, _, word)| has[*word] = true);
            let weights = has.iter().zip(&query.weights).filter(|(has, _)| **has);
            let weight: f64 = weights.map(|(_, weight)| weight).sum();
            let telling = within().find(|(_, _, word)| query.is_telling(*word));
            if let Some((start, segment, _)) = telling.or_else(|| within().next())
                && weight > 0.0
                && weight >= query.least()
            {
                ranked.push(Worded { passage: place.id, first: (*segment, *start), weight });
            }
        }
    }
    // Of equals the latest.
    ranked.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.passage.cmp(&a.passage)));
    ranked.truncate(CANDIDATES);
    Ok(ranked)
}

/// Both lists as one, the best first.
fn fused(by_words: &[Worded], by_meaning: &[(PassageId, f32)]) -> Vec<PassageId> {
    let mut scores: HashMap<PassageId, f64> = HashMap::new();
    // Passages with words of the same weight share a rank.
    let mut rank = 0;
    for (place, one) in by_words.iter().enumerate() {
        if place > 0 && one.weight < by_words[place - 1].weight {
            rank = place;
        }
        *scores.entry(one.passage).or_default() += 1.0 / (RANK_CONSTANT + 1.0 + rank as f64);
    }
    for (rank, (passage, _)) in by_meaning.iter().enumerate() {
        *scores.entry(*passage).or_default() += 1.0 / (RANK_CONSTANT + 1.0 + rank as f64);
    }
    let mut ranked: Vec<_> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    ranked.into_iter().map(|(passage, _)| passage).collect()
}

/// Reads passages in this order, without those that overlap a better one.
fn read(
    connection: &Connection,
    ranked: Vec<PassageId>,
    query: &Query,
    places: &HashMap<PassageId, (SegmentId, u32)>,
    similarity: &HashMap<PassageId, f32>,
    most: usize,
) -> rusqlite::Result<Vec<FoundPassage>> {
    let mut select = connection.prepare(
        "SELECT document, title, start_ms, end_ms, speaker, passages.language, segment, text, file, created
         FROM passages JOIN documents ON documents.id = document WHERE passages.id = ?1 AND deleted IS NULL",
    )?;
    let mut found: Vec<FoundPassage> = Vec::new();
    for id in ranked {
        if found.len() == most {
            break;
        }
        let passage = select.query_row([id.0], |row| {
            let (start, text): (u32, String) = (row.get(2)?, row.get(7)?);
            let first = (row.get(6)?, start);
            let (segment, at) = places.get(&id).copied().unwrap_or(first);
            Ok(FoundPassage {
                id,
                document: DocumentId(row.get(0)?),
                title: row.get(1)?,
                file: path_of(row.get_ref(8)?.as_str()?)?,
                created: row.get(9)?,
                segment,
                at: Time::from_millis(at),
                start: Time::from_millis(start),
                end: Time::from_millis(row.get(3)?),
                speaker: row.get(4)?,
                language: row.get(5)?,
                words: marked(&text, query),
                text,
                similarity: similarity.get(&id).copied(),
            })
        });
        let Some(passage) = passage.optional()? else { continue };
        let overlaps = |one: &FoundPassage| {
            one.document == passage.document && one.start < passage.end && passage.start < one.end
        };
        if !found.iter().any(overlaps) {
            found.push(passage);
        }
    }
    Ok(found)
}

fn path_of(stored: &str) -> rusqlite::Result<PathBuf> {
    let FilePath(file) = serde_json::from_str(stored).map_err(not_json)?;
    Ok(file)
}

/// Where a text has words that tell what was asked for, without overlaps.
fn marked(text: &str, query: &Query) -> Vec<Range<usize>> {
    let telling = query.words.iter().enumerate().filter(|(word, _)| query.is_telling(*word));
    let finder = |(_, word): (usize, &String)| {
        TextPattern { text: word.clone(), ..TextPattern::default() }.finder().ok()
    };
    let is_beginning = |range: &Range<usize>| words::begins_word(text, range.start);
    let mut ranges: Vec<Range<usize>> = telling
        .filter_map(finder)
        .flat_map(|finder| finder.matches(text))
        .filter(|range| is_beginning(range))
        .collect();
    ranges.sort_by_key(|range| range.start);
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}
