//! Editing a transcript. An [`Edit`] is a command of the user. [`Edit::plan`]
//! turns it into [`Change`]s, each of which holds the old and the new content,
//! so that it can be applied, undone and stored. Stored changes don't depend on
//! how a later version of the program plans the same edit.

mod change;
mod corrections;
mod find;
mod plan;
#[cfg(test)]
mod tests;
mod words;

pub use change::{Change, Mismatch, TranscriptMetadata, apply, apply_to_prefix, between, inverse};
pub use corrections::{Correction, compare_words, corrections, words as words_between_punctuation};
pub use find::{BadExpression, Finder, TextPattern};
pub(crate) use plan::words_of_text;

use serde::{Deserialize, Serialize};

use crate::chapters::{anchored, beginnings};
use crate::{Span, Time, Transcript};

/// Identifies a segment within its transcript for as long as the segment exists.
/// 0 means that it has no id yet, see [`assign_ids`].
pub type SegmentId = u32;

/// A command of the user. Segments are given by id and not by index, so that an
/// edit stays valid when segments before it are added or removed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Edit {
    /// Replaces a segment's text. Unchanged words keep their times; new words
    /// share the time of the words that they replace, or the pause around them.
    SetText {
        /// The segment to change.
        segment: SegmentId,
        /// The new text. Line breaks become spaces.
        text: String,
    },
    /// Splits a segment in two.
    Split {
        /// The segment to split.
        segment: SegmentId,
        /// Number of characters of the text that stay in the first segment.
        at: usize,
    },
    /// Merges a segment with the next one.
    Merge {
        /// The first of the two segments.
        segment: SegmentId,
    },
    /// Removes segments.
    Delete {
        /// The segments to remove.
        segments: Vec<SegmentId>,
    },
    /// Inserts a segment into the pause after another one.
    Insert {
        /// The segment before the new one; `None` for the start of the transcript.
        after: Option<SegmentId>,
        /// The text of the new segment.
        text: String,
    },
    /// Changes a segment's start and end. Both are limited by the neighbours.
    Retime {
        /// The segment to change.
        segment: SegmentId,
        /// The new start.
        start: Time,
        /// The new end.
        end: Time,
    },
    /// Sets the speaker of segments.
    SetSpeaker {
        /// The segments to change.
        segments: Vec<SegmentId>,
        /// The speaker's name; `None` removes it.
        speaker: Option<String>,
    },
    /// Sets the speaker of some words of a segment, which is split before and after them.
    SetSpeakerOfWords {
        /// The segment.
        segment: SegmentId,
        /// Characters of its text before the words.
        from: usize,
        /// Characters of its text up to their end. A word that lies partly within is meant whole.
        to: usize,
        /// The speaker's name; `None` removes it.
        speaker: Option<String>,
    },
    /// Renames a speaker in the whole transcript. If another speaker has the new
    /// name, the two become one.
    RenameSpeaker {
        /// The present name.
        from: String,
        /// The new name.
        to: String,
    },
    /// Sets the texts of several segments, as find and replace does.
    SetTexts {
        /// Segments and their new texts.
        texts: Vec<(SegmentId, String)>,
    },
    /// Marks segments as checked: their suspicions and low probabilities go.
    Accept {
        /// The segments that were checked.
        segments: Vec<SegmentId>,
    },
    /// Marks speech without text as checked: the gap is removed.
    AcceptGap {
        /// One of [`Completeness::gaps`](crate::Completeness::gaps).
        gap: Span,
    },
    /// Sets the chapters, in place of those that there are. What is said before the first of them becomes
    /// one too.
    SetChapters {
        /// The segments that they begin with, and their titles. Where a title is empty it is the beginning
        /// of the first sentence.
        chapters: Vec<(SegmentId, String)>,
    },
}

/// Why an edit can't be planned.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A segment or gap does not exist, or no longer.
    #[error("This part of the text no longer exists.")]
    NotFound,
    /// One of the two parts would be empty.
    #[error("There is no text on one side of the split.")]
    NothingToSplit,
    /// The segment is the last one.
    #[error("There is no next segment to join with.")]
    NothingToMerge,
    /// The end would not be after the start.
    #[error("The end must be after the start.")]
    NoTime,
}

/// Gives an id to every segment that has none, and chapters those of their segments.
pub fn assign_ids(transcript: &mut Transcript) {
    let ids = next_id(transcript)..;
    for (id, segment) in ids.zip(transcript.segments.iter_mut().filter(|segment| segment.id == 0)) {
        segment.id = id;
    }
    transcript.chapters = anchored(&transcript.chapters, &beginnings(&transcript.segments));
}

/// Removes the ids of all segments, in chapters too. Exported files don't contain them.
pub fn clear_ids(transcript: &mut Transcript) {
    transcript.segments.iter_mut().for_each(|segment| segment.id = 0);
    transcript.chapters.iter_mut().for_each(|chapter| chapter.segment = 0);
}

fn next_id(transcript: &Transcript) -> SegmentId {
    transcript.segments.iter().map(|segment| segment.id).max().unwrap_or(0).saturating_add(1)
}
