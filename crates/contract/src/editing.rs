//! Edits of a transcript, and the history.

use api::ModelRef;
use api::library::documents::{self, StepDirection};
use api::session::{self, Session};
use serde::{Deserialize, Serialize};
use transcript::review::ReviewReason;
use transcript::{Span, Time, edit};
use ts_rs::TS;

use super::{Gap, Segment, Suspicion, Word};

/// A change of a transcript. Segments are named by their `id`.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Edit {
    SetText {
        segment: u32,
        text: String,
    },
    /// Behind so many characters of its text.
    Split {
        segment: u32,
        at: u32,
    },
    /// With the one that follows.
    Merge {
        segment: u32,
    },
    Delete {
        segments: Vec<u32>,
    },
    /// Null: at the beginning.
    Insert {
        after: Option<u32>,
        text: String,
    },
    Retime {
        segment: u32,
        start: f64,
        end: f64,
    },
    SetSpeaker {
        segments: Vec<u32>,
        speaker: Option<String>,
    },
    /// Everywhere in the transcript; to the name of another: both are one.
    RenameSpeaker {
        from: String,
        to: String,
    },
    /// Nothing in them is doubtful.
    Accept {
        segments: Vec<u32>,
    },
    /// Nothing is missing in that stretch of speech without text.
    AcceptGap {
        gap: Gap,
    },
}

/// What gives a transcript another text: an edit, or one taken back.
#[derive(Debug, Clone, Deserialize, TS)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Correction {
    Edit {
        edit: Edit,
    },
    Undo,
    Redo,
    /// What another attempt at a part found is taken, or forgotten.
    ChooseAgain {
        part: Gap,
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

#[derive(Debug, Clone, Serialize, TS)]
pub struct Passage {
    /// The segment's id; null: speech without text.
    pub segment: Option<u32>,
    pub start: f64,
    pub end: f64,
    /// What the segment is flagged for.
    pub suspicions: Vec<Suspicion>,
    /// How likely something in it is wrong, 0 to 1.
    pub doubt: f32,
}

/// What another attempt at a part does otherwise; null: as the recording.
#[derive(Debug, Clone, Deserialize, TS)]
pub struct Attempt {
    pub model: Option<u32>,
    /// ISO 639-1.
    pub language: Option<String>,
}

/// A part of a finished recording that is transcribed once more.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Again {
    pub start: f64,
    pub end: f64,
    /// What waits for the user's choice; null: it is not there yet.
    pub found: Option<Found>,
}

/// What another attempt found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Found {
    pub model: String,
    pub language: String,
    pub segments: Vec<Segment>,
}

/// What was done to the text as it is by then. Segments are named by their index.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum TextChange {
    /// In the place of so many there are others.
    Segments { at: u32, removed: u32, inserted: Vec<Segment> },
    /// In the place of so many words from index `word` on there are others.
    Text { at: u32, text: String, word: u32, removed: u32, inserted: Vec<Word> },
    /// Of the segments in these ranges, last excluded.
    Speaker { ranges: Vec<(u32, u32)>, speaker: Option<String> },
}

/// What to look for; accents matter.
#[derive(Debug, Clone, Deserialize, TS)]
pub struct Finding {
    pub text: String,
    pub case: bool,
    pub whole_words: bool,
}

/// What came of an edit.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Edited {
    /// Of the text that has it.
    pub revision: u64,
    /// Index of the first segment that may be another one.
    pub segment: u32,
}

#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Replaced {
    pub places: u32,
    pub transcripts: u32,
}

/// What can be done to a transcript that is in the history.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Editing {
    /// Grows with every edit.
    pub revision: u64,
    pub undo: bool,
    pub redo: bool,
}

/// A transcript of the history. Times are milliseconds since 1970.
#[derive(Debug, Clone, Serialize, TS)]
pub struct DocumentInfo {
    pub id: i64,
    pub title: String,
    pub folder: String,
    pub created: i64,
    pub changed: i64,
    /// Of the recording, in seconds.
    pub duration: f64,
    pub language: String,
    pub model: String,
}

/// A passage of the history that was found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Hit {
    pub document: i64,
    pub title: String,
    /// The segment's id.
    pub segment: u32,
    /// Where in the recording, in seconds.
    pub start: f64,
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
            Edit::RenameSpeaker { from, to } => Self::RenameSpeaker { from, to },
            Edit::Accept { segments } => Self::Accept { segments },
            Edit::AcceptGap { gap } => Self::AcceptGap { gap: gap.into() },
        }
    }
}

impl Correction {
    /// `None` where it makes no sense, or not any more. Waits for the disk.
    pub fn carry_out(self, session: &Session, job: u64) -> Result<Option<Edited>, wire::Failure> {
        let done = match self {
            Self::Edit { edit } => session.edit(job, &edit.into()),
            Self::Undo => session.step(job, StepDirection::Undo),
            Self::Redo => session.step(job, StepDirection::Redo),
            Self::ChooseAgain { part, take } => session.choose_again(job, part.into(), take),
        };
        Ok(done?.map(Edited::from))
    }
}

impl From<Finding> for edit::TextPattern {
    fn from(Finding { text, case, whole_words }: Finding) -> Self {
        Self { text, case, whole_words }
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
        ReviewReason::Suspicion(suspicion) => Some((*suspicion).into()),
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
        Self { start: again.span.start.seconds(), end: again.span.end.seconds(), found }
    }
}

impl Attempt {
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

/// `None` for what is told beside the segments.
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
        edit::Change::Metadata { .. } => return None,
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
        }
    }
}

impl From<documents::SearchHit> for Hit {
    fn from(hit: documents::SearchHit) -> Self {
        let documents::SearchHit { document, title, segment, start, text } = hit;
        Self { document: document.0, title, segment, start: start.seconds(), text }
    }
}
