//! The steps that edits are made of. Each knows both of its sides.

use serde::{Deserialize, Serialize};

use super::SegmentId;
use crate::{Completeness, Notice, Segment, Time, Transcript, Word};

/// A step from one state of a transcript to the next. Indices are those at the
/// time of the step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Change {
    /// In the place of `removed`, which begin at index `at`, stand `inserted`.
    Segments { at: usize, removed: Vec<Segment>, inserted: Vec<Segment> },
    /// The text of the segment at index `at`, and those of its words that differ.
    Text {
        at: usize,
        segment: SegmentId,
        /// When it is said, for who keeps an index.
        start: Time,
        before: String,
        after: String,
        /// Index of the first word that differs.
        word: usize,
        removed: Vec<Word>,
        inserted: Vec<Word>,
    },
    /// Of the segments in these ranges, first included, last excluded.
    Speaker { ranges: Vec<(usize, usize)>, before: Option<String>, after: Option<String> },
    /// What the transcript says besides its segments.
    About { before: Box<About>, after: Box<About> },
}

/// What changes when a part of a recording is transcribed again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct About {
    pub discarded: Vec<Segment>,
    pub completeness: Completeness,
    pub notices: Vec<Notice>,
}

impl About {
    fn of(transcript: &Transcript) -> Self {
        Self {
            discarded: transcript.discarded.clone(),
            completeness: transcript.completeness.clone(),
            notices: transcript.notices.clone(),
        }
    }
}

/// The transcript is another one than the changes were made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is not what it was when it was changed")]
pub struct Mismatch;

/// Applies all of them, in order, and returns the index of the first segment
/// that may be another one; how many there are where none is.
///
/// # Errors
/// Where one does not find what it is to replace; those before it are applied then.
pub fn apply(transcript: &mut Transcript, changes: &[Change]) -> Result<usize, Mismatch> {
    changes.iter().try_for_each(|change| change.apply(transcript))?;
    let first = changes.iter().filter_map(Change::first).min();
    Ok(first.unwrap_or(transcript.segments.len()))
}

/// Applies them to the beginning of a transcript, of which the rest is not at
/// hand. It is shorter afterwards where something from the rest moved into it.
///
/// # Errors
/// As for [`apply`].
pub fn apply_to_beginning(segments: &mut Vec<Segment>, changes: &[Change]) -> Result<(), Mismatch> {
    changes.iter().try_for_each(|change| change.apply_to_beginning(segments))
}

/// What takes the changes back.
pub fn inverse(changes: Vec<Change>) -> Vec<Change> {
    changes.into_iter().rev().map(Change::inverse).collect()
}

/// What makes `after` of `before`, for what is no edit of a user's.
pub fn between(before: &Transcript, after: &Transcript) -> Vec<Change> {
    let (old, new) = (&before.segments, &after.segments);
    let (at, to_old, to_new) = middle(old, new);
    let mut changes = Vec::new();
    if at < to_old || at < to_new {
        let (removed, inserted) = (old[at..to_old].to_vec(), new[at..to_new].to_vec());
        changes.push(Change::Segments { at, removed, inserted });
    }
    let (before, after) = (Box::new(About::of(before)), Box::new(About::of(after)));
    if before != after {
        changes.push(Change::About { before, after });
    }
    changes
}

impl Change {
    /// Of what is known of the speech without text.
    pub(super) fn completeness(transcript: &Transcript, completeness: Completeness) -> Self {
        let before = About::of(transcript);
        let after = About { completeness, ..before.clone() };
        Self::About { before: Box::new(before), after: Box::new(after) }
    }

    /// Of one segment's text; nothing where it is the same.
    pub(super) fn text(at: usize, segment: &Segment, after: &str, words: &[Word]) -> Option<Self> {
        let (word, to_old, to_new) = middle(&segment.words, words);
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

    /// By how many segments the text is longer afterwards.
    pub fn growth(&self) -> isize {
        match self {
            Self::Segments { removed, inserted, .. } => inserted.len() as isize - removed.len() as isize,
            Self::Text { .. } | Self::Speaker { .. } | Self::About { .. } => 0,
        }
    }

    /// Index of the first segment that it touches.
    fn first(&self) -> Option<usize> {
        match self {
            Self::Segments { at, .. } | Self::Text { at, .. } => Some(*at),
            Self::Speaker { ranges, .. } => ranges.first().map(|(from, _)| *from),
            Self::About { .. } => None,
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
            Self::About { before, after } => Self::About { before: after, after: before },
        }
    }

    fn apply(&self, transcript: &mut Transcript) -> Result<(), Mismatch> {
        // Remarks that came since are nobody's edit, and no reason to refuse one.
        if let Self::About { after, .. } = self {
            let About { discarded, completeness, notices } = (**after).clone();
            (transcript.discarded, transcript.completeness) = (discarded, completeness);
            transcript.notices = notices;
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
            Self::About { .. } => {}
        }
        Ok(())
    }

    fn apply_to_beginning(&self, segments: &mut Vec<Segment>) -> Result<(), Mismatch> {
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

/// What differs of two lists: the first index, and the ends in both.
fn middle<T: PartialEq>(old: &[T], new: &[T]) -> (usize, usize, usize) {
    let same = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old, new) = (&old[same..], &new[same..]);
    let end = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
    (same, same + old.len() - end, same + new.len() - end)
}
