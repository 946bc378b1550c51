//! Edits of a transcript, and the history.

use crate::session::{self, Session};
use advisor::ModelRef;
use library::documents::{self, StepDirection};
use serde::{Deserialize, Serialize};
use transcript::review::ReviewReason;
use transcript::{Span, Suspicion, Time, edit};
use ts_rs::TS;

use super::{Gap, Segment, Word};

/// A change of a transcript. Segments are named by their `id`.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Edit {
    /// Replaces the text of a segment.
    SetText {
        /// The segment.
        segment: u32,
        /// The new text.
        text: String,
    },
    /// Behind so many characters of its text.
    Split {
        /// The segment.
        segment: u32,
        /// Characters of the first half.
        at: u32,
    },
    /// With the one that follows.
    Merge {
        /// The first of the two.
        segment: u32,
    },
    /// Deletes segments.
    Delete {
        /// The segments.
        segments: Vec<u32>,
    },
    /// Null: at the beginning.
    Insert {
        /// The segment before the new one.
        after: Option<u32>,
        /// Its text.
        text: String,
    },
    /// Moves the start and the end of a segment.
    Retime {
        /// The segment.
        segment: u32,
        /// Its new start, in seconds.
        start: f64,
        /// Its new end, in seconds.
        end: f64,
    },
    /// Says who speaks in segments.
    SetSpeaker {
        /// The segments.
        segments: Vec<u32>,
        /// The name; null: no name.
        speaker: Option<String>,
    },
    /// Says who speaks in some words of a segment, which is split there.
    SetSpeakerOfWords {
        /// The segment.
        segment: u32,
        /// Characters of its text before the words.
        from: u32,
        /// Characters of its text up to their end.
        to: u32,
        /// The name; null: no name.
        speaker: Option<String>,
    },
    /// Everywhere in the transcript; to the name of another: both are one.
    RenameSpeaker {
        /// The name now.
        from: String,
        /// The new name.
        to: String,
    },
    /// Nothing in them is doubtful.
    Accept {
        /// The segments.
        segments: Vec<u32>,
    },
    /// Nothing is missing in that stretch of speech without text.
    AcceptGap {
        /// The stretch.
        gap: Gap,
    },
    /// Sets all chapters; what stands before the first of them becomes one too.
    SetChapters {
        /// Each begins with its segment, wherever that is; an empty title becomes the beginning of the text.
        chapters: Vec<Chapter>,
    },
}

/// A part of a transcript about one subject, up to the next one.
#[derive(Debug, Clone, Serialize, Deserialize, TS)]
pub struct Chapter {
    /// The id of the segment that it begins with.
    pub segment: u32,
    /// Start of that segment, in seconds.
    pub start: f64,
    /// What it is about.
    pub title: String,
}

impl From<transcript::chapters::Chapter> for Chapter {
    fn from(chapter: transcript::chapters::Chapter) -> Self {
        let transcript::chapters::Chapter { segment, start, title } = chapter;
        Self { segment, start: start.seconds(), title }
    }
}

/// A command that changes the text of a transcript.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum EditCommand {
    /// Makes an edit.
    Edit {
        /// The edit.
        edit: Edit,
    },
    /// Takes the last edit back.
    Undo,
    /// Makes the edit again that was last taken back.
    Redo,
    /// Finds the chapters, in place of those that there are.
    FindChapters,
    /// What another attempt at a part found is taken, or forgotten.
    ChooseAgain {
        /// The part.
        part: Gap,
        /// False: it is forgotten.
        take: bool,
    },
}

/// What of a transcript should be listened to.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Review {
    /// How many passages there are.
    pub count: u32,
    /// The most doubtful of them, in order.
    pub passages: Vec<Passage>,
}

/// A passage that should be listened to.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Passage {
    /// The segment's id; null: speech without text.
    pub segment: Option<u32>,
    /// Start, in seconds.
    pub start: f64,
    /// End, in seconds.
    pub end: f64,
    /// What the segment is flagged for.
    pub suspicions: Vec<Suspicion>,
    /// How likely something in it is wrong, 0 to 1.
    pub doubt: f32,
}

/// What another attempt at a part does otherwise; null: as the recording.
#[derive(Debug, Clone, Deserialize, TS)]
pub struct Attempt {
    /// The number of the model.
    pub model: Option<u32>,
    /// ISO 639-1.
    pub language: Option<String>,
}

/// A part of a finished recording that is transcribed once more.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Again {
    /// Start, in seconds.
    pub start: f64,
    /// End, in seconds.
    pub end: f64,
    /// Who speaks is found; nothing is transcribed.
    pub speakers: bool,
    /// It is translated to English beside its text.
    pub translation: bool,
    /// What waits for the user's choice; null: it is not there yet.
    pub found: Option<Found>,
}

/// What another attempt found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Found {
    /// The name of the model.
    pub model: String,
    /// ISO 639-1 code of its language.
    pub language: String,
    /// The new text.
    pub segments: Vec<Segment>,
}

/// What was done to the text as it is by then. Segments are named by their index.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TextChange {
    /// In the place of so many there are others.
    Segments {
        /// Index of the first segment.
        at: u32,
        /// How many segments were removed.
        removed: u32,
        /// The new segments.
        inserted: Vec<Segment>,
    },
    /// In the place of so many words from index `word` on there are others.
    Text {
        /// Index of the segment.
        at: u32,
        /// Its whole text.
        text: String,
        /// Index of the first changed word.
        word: u32,
        /// How many words were removed.
        removed: u32,
        /// The new words.
        inserted: Vec<Word>,
    },
    /// Of the segments in these ranges, last excluded.
    Speaker {
        /// First segment and the one after the last.
        ranges: Vec<(u32, u32)>,
        /// Their new speaker; null: no name.
        speaker: Option<String>,
    },
}

/// What to look for; accents matter.
#[derive(Debug, Clone, Deserialize, TS)]
pub struct Finding {
    /// The text to find.
    pub text: String,
    /// Upper and lower case matter.
    pub case: bool,
    /// Only whole words count.
    pub whole_words: bool,
    /// The text is a regular expression.
    pub regular_expression: bool,
}

/// Words within a segment.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, TS)]
pub struct Place {
    /// The segment's index.
    pub segment: u32,
    /// The first code unit.
    pub start: u32,
    /// The code unit behind the last.
    pub end: u32,
}

/// What came of an edit.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Edited {
    /// Of the text that has it.
    pub revision: u64,
    /// Index of the first segment that may be another one.
    pub segment: u32,
}

/// How much was replaced.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Replaced {
    /// Occurrences that were replaced.
    pub places: u32,
    /// Transcripts that had one.
    pub transcripts: u32,
}

/// What came of taking a replacement in several transcripts back.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Undone {
    /// Transcripts that are as they were.
    pub undone: u32,
    /// Titles of the transcripts that were edited since and stay as they are.
    pub left: Vec<String>,
}

impl From<(usize, Vec<String>)> for Undone {
    fn from((undone, left): (usize, Vec<String>)) -> Self {
        Self { undone: u32::try_from(undone).unwrap_or(u32::MAX), left }
    }
}

/// What can be done to a transcript that is in the history.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Editing {
    /// Grows with every edit.
    pub revision: u64,
    /// An edit can be taken back.
    pub undo: bool,
    /// An edit that was taken back can be made again.
    pub redo: bool,
}

/// A transcript of the history. Times are milliseconds since 1970.
#[derive(Debug, Clone, Serialize, TS)]
pub struct DocumentInfo {
    /// Its number in the history.
    pub id: i64,
    /// The name of the recording.
    pub title: String,
    /// The folder of the recording.
    pub folder: String,
    /// When it was transcribed.
    pub created: i64,
    /// When it was last edited.
    pub changed: i64,
    /// Of the recording, in seconds.
    pub duration: f64,
    /// ISO 639-1 code of its language.
    pub language: String,
    /// The name of the model.
    pub model: String,
    /// Words by which the user sorts it.
    pub tags: Vec<String>,
}

/// What a search of the history found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct SearchResults {
    /// The latest transcript first; of each in order of time.
    pub hits: Vec<Hit>,
    /// There are more, which were left out.
    pub more: bool,
}

/// A passage of the history that was found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Hit {
    /// Its number in the history.
    pub document: i64,
    /// The name of the recording.
    pub title: String,
    /// The segment's id.
    pub segment: u32,
    /// Where in the recording, in seconds.
    pub start: f64,
    /// The text of the segment.
    pub text: String,
}

impl From<Edit> for edit::Edit {
    fn from(edit: Edit) -> Self {
        match edit {
            Edit::SetText { segment, text } => Self::SetText { segment, text },
            Edit::Split { segment, at } => Self::Split { segment, at: at as usize },
            Edit::Merge { segment } => Self::Merge { segment },
            Edit::Delete { segments } => Self::Delete { segments },
            Edit::Insert { after, text } => Self::Insert { after, text },
            Edit::Retime { segment, start, end } => {
                Self::Retime { segment, start: Time::from_seconds(start), end: Time::from_seconds(end) }
            }
            Edit::SetSpeaker { segments, speaker } => Self::SetSpeaker { segments, speaker },
            Edit::SetSpeakerOfWords { segment, from, to, speaker } => {
                Self::SetSpeakerOfWords { segment, from: from as usize, to: to as usize, speaker }
            }
            Edit::RenameSpeaker { from, to } => Self::RenameSpeaker { from, to },
            Edit::Accept { segments } => Self::Accept { segments },
            Edit::AcceptGap { gap } => Self::AcceptGap { gap: gap.into() },
            Edit::SetChapters { chapters } => Self::SetChapters {
                chapters: chapters.into_iter().map(|chapter| (chapter.segment, chapter.title)).collect(),
            },
        }
    }
}

impl EditCommand {
    /// Edits the transcript of a recording. `None` where the command no longer applies to
    /// the text. Waits for the disk.
    ///
    /// # Errors
    /// Where the edit can't be stored.
    pub fn execute(self, session: &Session, job: u64) -> Result<Option<Edited>, wire::Failure> {
        let done = match self {
            Self::Edit { edit } => session.edit(job, &edit.into()),
            Self::Undo => session.step(job, StepDirection::Undo),
            Self::Redo => session.step(job, StepDirection::Redo),
            Self::FindChapters => session.find_chapters(job),
            Self::ChooseAgain { part, take } => session.choose_again(job, part.into(), take),
        };
        Ok(done?.map(Edited::from))
    }
}

impl From<Finding> for edit::TextPattern {
    fn from(Finding { text, case, whole_words, regular_expression }: Finding) -> Self {
        Self { text, case, whole_words, regular_expression }
    }
}

impl From<session::Place> for Place {
    fn from(session::Place { segment, range }: session::Place) -> Self {
        Self { segment: segment as u32, start: range.start as u32, end: range.end as u32 }
    }
}

impl Place {
    /// Places as the page takes them: like [`TextUpdate::json`](super::TextUpdate::json), as there may be some
    /// ten thousand.
    pub fn list_json(places: Vec<session::Place>) -> String {
        let places: Vec<Self> = places.into_iter().map(Self::from).collect();
        serde_json::to_string(&places).unwrap_or_default()
    }
}

impl From<Place> for session::Place {
    fn from(Place { segment, start, end }: Place) -> Self {
        Self { segment: segment as usize, range: start as usize..end as usize }
    }
}

impl From<session::Review> for Review {
    fn from(review: session::Review) -> Self {
        let passage = |passage: transcript::review::ReviewItem| Passage {
            segment: passage.segment,
            start: passage.span.start.seconds(),
            end: passage.span.end.seconds(),
            suspicions: passage.reasons.iter().filter_map(suspicion).collect(),
            doubt: passage.doubt,
        };
        Self { count: count(review.count), passages: review.passages.into_iter().map(passage).collect() }
    }
}

fn suspicion(reason: &ReviewReason) -> Option<Suspicion> {
    match reason {
        ReviewReason::Suspicion(suspicion) => Some(*suspicion),
        ReviewReason::Gap | ReviewReason::UnsureWords => None,
    }
}

impl From<session::Again> for Again {
    fn from(again: session::Again) -> Self {
        let found = again.found.map(|found| Found {
            model: found.model.name,
            language: found.language,
            segments: found.segments.into_iter().map(Segment::from).collect(),
        });
        Self {
            start: again.span.start.seconds(),
            end: again.span.end.seconds(),
            speakers: again.kind == session::AgainKind::Speakers,
            translation: again.kind == session::AgainKind::Translation,
            found,
        }
    }
}

impl Attempt {
    /// The attempt, its model by number among these.
    pub fn chosen(self, models: &[ModelRef]) -> session::Attempt {
        let model = self.model.and_then(|id| models.get(id as usize).cloned());
        session::Attempt { model, language: self.language }
    }
}

impl From<Gap> for Span {
    fn from(gap: Gap) -> Self {
        Self::new(Time::from_seconds(gap.start), Time::from_seconds(gap.end))
    }
}

/// `None` for changes that are not about segments.
pub fn text_change(change: &edit::Change) -> Option<TextChange> {
    Some(match change {
        edit::Change::Segments { at, removed, inserted } => TextChange::Segments {
            at: count(*at),
            removed: count(removed.len()),
            inserted: inserted.iter().cloned().map(Segment::from).collect(),
        },
        edit::Change::Text { at, after, word, removed, inserted, .. } => TextChange::Text {
            at: count(*at),
            text: after.clone(),
            word: count(*word),
            removed: count(removed.len()),
            inserted: inserted.iter().cloned().map(Word::from).collect(),
        },
        edit::Change::Speaker { ranges, after, .. } => TextChange::Speaker {
            ranges: ranges.iter().map(|(from, to)| (count(*from), count(*to))).collect(),
            speaker: after.clone(),
        },
        // Chapters are told whole.
        edit::Change::Turns { .. } | edit::Change::Chapters { .. } | edit::Change::Metadata { .. } => {
            return None;
        }
    })
}

pub(super) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl From<session::Done> for Edited {
    fn from(done: session::Done) -> Self {
        Self { revision: done.revision, segment: count(done.segment) }
    }
}

impl From<session::Replaced> for Replaced {
    fn from(replaced: session::Replaced) -> Self {
        Self { places: count(replaced.places), transcripts: count(replaced.transcripts) }
    }
}

impl From<session::Edited> for Editing {
    fn from(edited: session::Edited) -> Self {
        let undo_position = edited.undo_position;
        Self { revision: edited.revision, undo: undo_position.done > 0, redo: undo_position.undone > 0 }
    }
}

impl From<documents::Document> for DocumentInfo {
    fn from(document: documents::Document) -> Self {
        Self {
            id: document.id.0,
            title: document.title,
            folder: document.file.parent().map(|folder| folder.display().to_string()).unwrap_or_default(),
            created: document.created,
            changed: document.changed,
            duration: document.duration.seconds(),
            language: document.language,
            model: document.model,
            tags: document.tags,
        }
    }
}

impl From<documents::SearchHits> for SearchResults {
    fn from(found: documents::SearchHits) -> Self {
        Self { hits: found.hits.into_iter().map(Into::into).collect(), more: found.more }
    }
}

impl From<documents::SearchHit> for Hit {
    fn from(hit: documents::SearchHit) -> Self {
        let documents::SearchHit { document, title, segment, start, text } = hit;
        Self { document: document.0, title, segment, start: start.seconds(), text }
    }
}
