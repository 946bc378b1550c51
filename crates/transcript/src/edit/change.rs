//! Changes: the reversible steps that edits consist of.

use serde::{Deserialize, Serialize};

use super::SegmentId;
use crate::chapters::{Chapter, anchored, beginnings};
use crate::speakers::NamedTurn;
use crate::{Completeness, Notice, Segment, Time, Transcript, Word};

/// A step that changes a transcript and can be undone, as it holds the old and
/// the new content. Indices refer to the transcript before the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// Replaces segments.
    Segments {
        /// Index of the first segment that is replaced.
        at: usize,
        /// The old segments.
        removed: Vec<Segment>,
        /// The new segments.
        inserted: Vec<Segment>,
    },
    /// Replaces the text of one segment, and those of its words that differ.
    Text {
        /// Index of the segment.
        at: usize,
        /// Id of the segment.
        segment: SegmentId,
        /// Start of the segment, which the index of the history needs.
        start: Time,
        /// The old text.
        before: String,
        /// The new text.
        after: String,
        /// Index of the first word that differs.
        word: usize,
        /// The old words from there on.
        removed: Vec<Word>,
        /// The new words from there on.
        inserted: Vec<Word>,
    },
    /// Replaces the speaker of segments.
    Speaker {
        /// Ranges of indices, first included, last excluded.
        ranges: Vec<(usize, usize)>,
        /// The old speaker of all of them.
        before: Option<String>,
        /// The new speaker of all of them.
        after: Option<String>,
    },
    /// Replaces the turns of the speakers.
    Turns {
        /// The old turns.
        before: Vec<NamedTurn>,
        /// The new turns.
        after: Vec<NamedTurn>,
    },
    /// Replaces the chapters.
    Chapters {
        /// The old chapters.
        before: Vec<Chapter>,
        /// The new chapters.
        after: Vec<Chapter>,
    },
    /// Replaces what a transcript holds besides its segments. Stored histories
    /// call it `about`.
    #[serde(rename = "about")]
    Metadata {
        /// The old content.
        before: Box<TranscriptMetadata>,
        /// The new content.
        after: Box<TranscriptMetadata>,
    },
}

/// What a transcript holds besides its segments and can change when a part of
/// the recording is transcribed again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptMetadata {
    /// See [`Transcript::discarded`].
    pub discarded: Vec<Segment>,
    /// See [`Transcript::completeness`].
    pub completeness: Completeness,
    /// See [`Transcript::notices`].
    pub notices: Vec<Notice>,
}

impl TranscriptMetadata {
    fn of(transcript: &Transcript) -> Self {
        Self {
            discarded: transcript.discarded.clone(),
            completeness: transcript.completeness.clone(),
            notices: transcript.notices.clone(),
        }
    }
}

/// The transcript does not hold the old content of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is not what it was when it was changed")]
pub struct Mismatch;

/// Applies changes in order. Returns the index of the first segment that may
/// differ afterwards, or the number of segments if none does.
///
/// # Errors
/// If a change does not find its old content; the changes before it are applied then.
pub fn apply(transcript: &mut Transcript, changes: &[Change]) -> Result<usize, Mismatch> {
    changes.iter().try_for_each(|change| change.apply(transcript))?;
    let first = changes.iter().filter_map(Change::first).min();
    Ok(first.unwrap_or(transcript.segments.len()))
}

/// Applies changes to the first segments of a transcript whose other segments
/// are not loaded. The prefix becomes shorter if segments after it are needed.
///
/// # Errors
/// As for [`apply`].
pub fn apply_to_prefix(segments: &mut Vec<Segment>, changes: &[Change]) -> Result<(), Mismatch> {
    changes.iter().try_for_each(|change| change.apply_to_prefix(segments))
}

/// The changes that undo `changes`.
pub fn inverse(changes: Vec<Change>) -> Vec<Change> {
    changes.into_iter().rev().map(Change::inverse).collect()
}

/// The changes that turn `before` into `after`, for modifications that no
/// [`Edit`](super::Edit) describes.
pub fn between(before: &Transcript, after: &Transcript) -> Vec<Change> {
    let (old, new) = (&before.segments, &after.segments);
    let (at, to_old, to_new) = differing_range(old, new);
    let mut changes = Vec::new();
    if at < to_old || at < to_new {
        let (removed, inserted) = (old[at..to_old].to_vec(), new[at..to_new].to_vec());
        changes.push(Change::Segments { at, removed, inserted });
    }
    if before.turns != after.turns {
        changes.push(Change::Turns { before: before.turns.clone(), after: after.turns.clone() });
    }
    changes.extend(Change::chapters(before, anchored(&after.chapters, &beginnings(new))));
    let (before, after) = (Box::new(TranscriptMetadata::of(before)), Box::new(TranscriptMetadata::of(after)));
    if before != after {
        changes.push(Change::Metadata { before, after });
    }
    changes
}

impl Change {
    /// A change of the completeness alone.
    pub(super) fn completeness(transcript: &Transcript, completeness: Completeness) -> Self {
        let before = TranscriptMetadata::of(transcript);
        let after = TranscriptMetadata { completeness, ..before.clone() };
        Self::Metadata { before: Box::new(before), after: Box::new(after) }
    }

    /// A change of the chapters to these; `None` if they stay the same.
    pub(super) fn chapters(transcript: &Transcript, after: Vec<Chapter>) -> Option<Self> {
        let before = transcript.chapters.clone();
        (before != after).then_some(Self::Chapters { before, after })
    }

    /// A change of one segment's text and words; `None` if both stay the same.
    pub(super) fn text(at: usize, segment: &Segment, after: &str, words: &[Word]) -> Option<Self> {
        let (word, to_old, to_new) = differing_range(&segment.words, words);
        if segment.text == after && word == to_old && word == to_new {
            return None;
        }
        Some(Self::Text {
            at,
            segment: segment.id,
            start: segment.start,
            before: segment.text.clone(),
            after: after.into(),
            word,
            removed: segment.words[word..to_old].to_vec(),
            inserted: words[word..to_new].to_vec(),
        })
    }

    /// The number of segments that the change adds, negative if it removes some.
    pub fn growth(&self) -> isize {
        match self {
            Self::Segments { removed, inserted, .. } => inserted.len() as isize - removed.len() as isize,
            Self::Text { .. }
            | Self::Speaker { .. }
            | Self::Turns { .. }
            | Self::Chapters { .. }
            | Self::Metadata { .. } => 0,
        }
    }

    /// Index of the first segment that the change concerns.
    fn first(&self) -> Option<usize> {
        match self {
            Self::Segments { at, .. } | Self::Text { at, .. } => Some(*at),
            Self::Speaker { ranges, .. } => ranges.first().map(|(from, _)| *from),
            Self::Turns { .. } | Self::Chapters { .. } | Self::Metadata { .. } => None,
        }
    }

    fn inverse(self) -> Self {
        match self {
            Self::Segments { at, removed, inserted } => {
                Self::Segments { at, removed: inserted, inserted: removed }
            }
            Self::Text { at, segment, start, before, after, word, removed, inserted } => Self::Text {
                at,
                segment,
                start,
                before: after,
                after: before,
                word,
                removed: inserted,
                inserted: removed,
            },
            Self::Speaker { ranges, before, after } => Self::Speaker { ranges, before: after, after: before },
            Self::Turns { before, after } => Self::Turns { before: after, after: before },
            Self::Chapters { before, after } => Self::Chapters { before: after, after: before },
            Self::Metadata { before, after } => Self::Metadata { before: after, after: before },
        }
    }

    fn apply(&self, transcript: &mut Transcript) -> Result<(), Mismatch> {
        // Not compared with `before`: notices may have been added since, which no edit depends on.
        if let Self::Metadata { after, .. } = self {
            let TranscriptMetadata { discarded, completeness, notices } = (**after).clone();
            (transcript.discarded, transcript.completeness) = (discarded, completeness);
            transcript.notices = notices;
            return Ok(());
        }
        if let Self::Turns { after, .. } = self {
            transcript.turns.clone_from(after);
            return Ok(());
        }
        if let Self::Chapters { after, .. } = self {
            transcript.chapters.clone_from(after);
            return Ok(());
        }
        self.apply_to(&mut transcript.segments)
    }

    fn apply_to(&self, segments: &mut Vec<Segment>) -> Result<(), Mismatch> {
        match self {
            Self::Segments { at, removed, inserted } => {
                let range = *at..*at + removed.len();
                if segments.get(range.clone()) != Some(removed) {
                    return Err(Mismatch);
                }
                segments.splice(range, inserted.iter().cloned());
            }
            Self::Text { at, before, after, word, removed, inserted, .. } => {
                let segment = segments.get_mut(*at).ok_or(Mismatch)?;
                let range = *word..*word + removed.len();
                if segment.text != *before || segment.words.get(range.clone()) != Some(removed) {
                    return Err(Mismatch);
                }
                segment.text.clone_from(after);
                segment.words.splice(range, inserted.iter().cloned());
            }
            Self::Speaker { ranges, before, after } => {
                for (from, to) in ranges {
                    let segments = segments.get_mut(*from..*to).ok_or(Mismatch)?;
                    if segments.iter().any(|segment| segment.speaker != *before) {
                        return Err(Mismatch);
                    }
                    segments.iter_mut().for_each(|segment| segment.speaker.clone_from(after));
                }
            }
            Self::Turns { .. } | Self::Chapters { .. } | Self::Metadata { .. } => {}
        }
        Ok(())
    }

    fn apply_to_prefix(&self, segments: &mut Vec<Segment>) -> Result<(), Mismatch> {
        let known = segments.len();
        match self {
            Self::Segments { at, removed, .. } if at + removed.len() > known => segments.truncate(*at),
            Self::Text { at, .. } if *at >= known => {}
            Self::Speaker { ranges, before, after } => {
                let within = ranges.iter().map(|(from, to)| (*from, (*to).min(known)));
                let ranges = within.filter(|(from, to)| from < to).collect();
                Self::Speaker { ranges, before: before.clone(), after: after.clone() }.apply_to(segments)?;
            }
            change => change.apply_to(segments)?,
        }
        Ok(())
    }
}

/// The part in which two lists differ: its start, and its end in each of them.
fn differing_range<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize, usize) {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (same, same + old.len() - end, same + new.len() - end)
}
