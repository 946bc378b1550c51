//! What an editor does to a transcript. An [`Edit`] says what somebody wants;
//! [`Edit::plan`] makes of it [`Change`]s, which hold what stood there before
//! and what stands there afterwards. Those are applied, undone and kept: what
//! a later version would make of the same wish does not matter to them.

mod change;
mod find;
mod plan;
#[cfg(test)]
mod tests;
mod words;

pub use change::{About, Change, Mismatch, apply, apply_to_beginning, between, inverse};
pub use find::Finding;

use serde::{Deserialize, Serialize};

use crate::{Span, Time, Transcript};

/// Names a segment within its transcript for as long as it is there. 0: not numbered.
pub type SegmentId = u32;

/// Segments are named, not counted: what is asked for finds its place also
/// when others came or went meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Edit {
    /// Words that stay keep their times; others share what is in between.
    SetText {
        segment: SegmentId,
        text: String,
    },
    /// What follows the first `at` characters becomes a segment of its own.
    Split {
        segment: SegmentId,
        at: usize,
    },
    /// With the one that follows.
    Merge {
        segment: SegmentId,
    },
    Delete {
        segments: Vec<SegmentId>,
    },
    /// Into the pause behind another one; `None`: at the beginning.
    Insert {
        after: Option<SegmentId>,
        text: String,
    },
    /// Cut where a neighbour begins or ends.
    Retime {
        segment: SegmentId,
        start: Time,
        end: Time,
    },
    SetSpeaker {
        segments: Vec<SegmentId>,
        speaker: Option<String>,
    },
    /// Everywhere. To the name of another one: both are one from then on.
    RenameSpeaker {
        from: String,
        to: String,
    },
    /// Of several segments at once, as after a replacement.
    SetTexts {
        texts: Vec<(SegmentId, String)>,
    },
    /// Somebody listened: nothing in them is doubtful any more.
    Accept {
        segments: Vec<SegmentId>,
    },
    /// Somebody listened: nothing is missing there.
    AcceptGap {
        gap: Span,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("This part of the text is not there any more.")]
    Gone,
    #[error("There is no text on one side of the place at which to split.")]
    NothingToSplit,
    #[error("Nothing follows that it could be joined with.")]
    NothingToMerge,
    #[error("It would have to end before it begins.")]
    NoTime,
}

/// Gives every segment without a number one.
pub fn number(transcript: &mut Transcript) {
    let ids = next_id(transcript)..;
    for (id, segment) in ids.zip(transcript.segments.iter_mut().filter(|segment| segment.id == 0)) {
        segment.id = id;
    }
}

/// As it is saved for other programs, which have no use for the numbers.
pub fn without_numbers(transcript: &mut Transcript) {
    transcript.segments.iter_mut().for_each(|segment| segment.id = 0);
}

fn next_id(transcript: &Transcript) -> SegmentId {
    transcript.segments.iter().map(|segment| segment.id).max().unwrap_or(0).saturating_add(1)
}
