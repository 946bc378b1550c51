//! The search of the history by words and by meaning.

use crate::session;
use library::documents;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// Where to search; null admits everything.
#[derive(Debug, Clone, Default, Deserialize, TS)]
pub struct SearchFilter {
    /// The speaker's name.
    pub speaker: Option<String>,
    /// ISO 639-1 code of the passage's language.
    pub language: Option<String>,
    /// Transcripts of this time or later, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Transcripts of before this time, in milliseconds since 1970.
    pub until: Option<i64>,
    /// The folder of the recording, with those in it.
    pub folder: Option<String>,
    /// A tag of the transcript.
    pub tag: Option<String>,
}

/// What can be chosen in a [`SearchFilter`], in alphabetical order.
#[derive(Debug, Clone, Serialize, TS)]
pub struct SearchChoices {
    /// Names of speakers.
    pub speakers: Vec<String>,
    /// ISO 639-1 codes.
    pub languages: Vec<String>,
}

/// The passages that answer a question, the best first.
#[derive(Debug, Clone, Serialize, TS)]
pub struct PassageResults {
    /// The passages.
    pub passages: Vec<FoundPassage>,
    /// Their meaning was compared, not only their words.
    pub by_meaning: bool,
}

/// A few sentences of one speaker that a search found.
#[derive(Debug, Clone, Serialize, TS)]
pub struct FoundPassage {
    /// Its number, for more like it.
    pub id: i64,
    /// The number of its transcript in the history.
    pub document: i64,
    /// The name of the recording.
    pub title: String,
    /// When it was transcribed, in milliseconds since 1970.
    pub created: i64,
    /// The id of the segment to open.
    pub segment: u32,
    /// Start, in seconds.
    pub start: f64,
    /// End, in seconds.
    pub end: f64,
    /// Who speaks, if known.
    pub speaker: Option<String>,
    /// The text in parts, and whether each is a word that was asked for.
    pub text: Vec<(String, bool)>,
    /// Its words matched, or some of them.
    pub by_words: bool,
    /// Its meaning matched.
    pub by_meaning: bool,
}

/// How far the search by meaning is.
#[derive(Debug, Clone, Default, Serialize, TS)]
pub struct IndexState {
    /// The name of the model that compares meanings; null: none is installed.
    pub model: Option<String>,
    /// Passages that can be found by their meaning.
    pub done: u32,
    /// All passages.
    pub total: u32,
    /// Grows whenever a search may find something else.
    pub revision: u32,
    /// Passages per second while it works; null: it rests.
    pub speed: Option<f64>,
    /// Why it can't work.
    pub failure: Option<super::Failure>,
}

impl From<SearchFilter> for documents::Filter {
    fn from(filter: SearchFilter) -> Self {
        let SearchFilter { speaker, language, since, until, folder, tag } = filter;
        Self { speaker, language, since, until, folder: folder.map(Into::into), tag }
    }
}

impl From<(Vec<String>, Vec<String>)> for SearchChoices {
    fn from((speakers, languages): (Vec<String>, Vec<String>)) -> Self {
        Self { speakers, languages }
    }
}

impl From<session::FoundPassages> for PassageResults {
    fn from(session::FoundPassages { passages, by_meaning }: session::FoundPassages) -> Self {
        Self { passages: passages.into_iter().map(Into::into).collect(), by_meaning }
    }
}

impl From<documents::FoundPassage> for FoundPassage {
    fn from(found: documents::FoundPassage) -> Self {
        Self {
            text: found.parts().into_iter().map(|(text, is_word)| (text.to_owned(), is_word)).collect(),
            by_words: !found.words.is_empty(),
            by_meaning: found.similarity.is_some(),
            id: found.id.0,
            document: found.document.0,
            title: found.title,
            created: found.created,
            segment: found.segment,
            start: found.at.seconds(),
            end: found.end.seconds(),
            speaker: found.speaker,
        }
    }
}

impl From<session::IndexState> for IndexState {
    fn from(state: session::IndexState) -> Self {
        let count = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Self {
            model: state.model,
            done: count(state.progress.done),
            total: count(state.progress.total),
            revision: count(state.revision),
            speed: state.works.then_some(state.progress.per_second),
            failure: state.failure.map(Into::into),
        }
    }
}
