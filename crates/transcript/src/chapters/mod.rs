//! Chapters: the parts of a transcript, each about one subject, with titles. They are found where the
//! meaning of the text changes: [`blocks`] says which texts need vectors of their meaning, and [`find`]
//! makes chapters of the vectors.

mod boundaries;
mod titles;

pub use boundaries::{THRESHOLD, boundaries};
pub(crate) use titles::beginning;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_width::UnicodeWidthStr;

use crate::edit::SegmentId;
use crate::export::space_between;
use crate::export::text::one_line;
use crate::{Segment, Span, Time, Transcript};

/// Shorter recordings have no chapters.
pub const LEAST_RECORDING: Time = Time::from_millis(240_000);

/// A block has at most so many columns (full-width characters take two), unless one segment has more: one to
/// three spoken sentences. Longer ones mean more, but place a boundary less exactly.
const BLOCK: usize = 160;

/// A part of a transcript about one subject. It ends where the next one begins.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chapter {
    /// The segment that it begins with, while the transcript is edited; 0 elsewhere.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub segment: SegmentId,
    /// Start of that segment.
    pub start: Time,
    /// What it is about, on one line.
    pub title: String,
}

/// Consecutive segments, whose meaning is compared with that of others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Indices of the segments.
    pub segments: Range<usize>,
    /// From the start of the first segment to the end of the last one.
    pub span: Span,
    /// The texts of the segments.
    pub text: String,
}

/// Divides a transcript into blocks, in order, across speakers.
pub fn blocks(transcript: &Transcript) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for (index, segment) in transcript.segments.iter().enumerate() {
        let text = one_line(&segment.text);
        if text.is_empty() {
            continue;
        }
        match blocks.last_mut().filter(|block| block.text.width() + text.width() < BLOCK) {
            Some(block) => {
                block.text += space_between(&block.text, &text);
                block.text += &text;
                block.segments.end = index + 1;
                block.span.end = block.span.end.max(segment.end);
            }
            None => blocks.push(Block {
                segments: index..index + 1,
                span: Span::new(segment.start, segment.end),
                text: text.into_owned(),
            }),
        }
    }
    blocks
}

/// The chapters of a transcript, whose [`blocks`] have these vectors, of unit length. Empty where it is too
/// short, or where no change of subject was found.
pub fn find(transcript: &Transcript, blocks: &[Block], vectors: &[Vec<f32>]) -> Vec<Chapter> {
    if is_too_short(transcript) {
        return Vec::new();
    }
    let boundaries = boundaries(blocks, vectors, THRESHOLD);
    if boundaries.is_empty() {
        return Vec::new();
    }
    let starts: Vec<usize> = std::iter::once(0).chain(boundaries).collect();
    let titles = titles::titles(blocks, &starts, &transcript.language);
    let chapter = |(block, title): (&usize, String)| {
        let at = if *block == 0 { 0 } else { blocks.get(*block)?.segments.start };
        let segment = transcript.segments.get(at)?;
        Some(Chapter { segment: segment.id, start: segment.start, title })
    };
    starts.iter().zip(titles).filter_map(chapter).collect()
}

/// Whether the recording is shorter than [`LEAST_RECORDING`].
pub fn is_too_short(transcript: &Transcript) -> bool {
    let end = transcript.segments.iter().map(|segment| segment.end).max().unwrap_or_default();
    transcript.source.duration.max(end) < LEAST_RECORDING
}

impl Transcript {
    /// The chapters in order, each with the index of the segment that it begins with.
    pub fn placed_chapters(&self) -> Vec<(usize, &Chapter)> {
        placed(&self.chapters, &beginnings(&self.segments))
    }
}

/// Ids and starts of segments.
pub(crate) fn beginnings(segments: &[Segment]) -> Vec<(SegmentId, Time)> {
    segments.iter().map(|segment| (segment.id, segment.start)).collect()
}

/// The chapters of segments that may have changed: they begin where [`placed`] says.
pub(crate) fn anchored(chapters: &[Chapter], segments: &[(SegmentId, Time)]) -> Vec<Chapter> {
    let chapter = |(at, chapter): (usize, &Chapter)| {
        let (segment, start) = segments[at];
        Chapter { segment, start, title: chapter.title.clone() }
    };
    placed(chapters, segments).into_iter().map(chapter).collect()
}

/// Chapters with the indices of the segments that they begin with: their own or, where that is gone, the
/// first that begins no earlier. Where two would begin with the same one, nothing is left of the first of
/// them. The first chapter begins with the first segment.
fn placed<'a>(chapters: &'a [Chapter], segments: &[(SegmentId, Time)]) -> Vec<(usize, &'a Chapter)> {
    if chapters.is_empty() {
        return Vec::new();
    }
    let known: HashMap<SegmentId, usize> =
        segments.iter().enumerate().map(|(at, (id, _))| (*id, at)).filter(|(id, _)| *id != 0).collect();
    let mut places = BTreeMap::new();
    for chapter in chapters {
        let later = || segments.partition_point(|(_, start)| *start < chapter.start);
        let at = known.get(&chapter.segment).copied().unwrap_or_else(later);
        if at < segments.len() {
            places.insert(at, chapter);
        }
    }
    let mut placed: Vec<_> = places.into_iter().collect();
    if let Some((at, _)) = placed.first_mut() {
        *at = 0;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edit::{self, Change, Edit, EditError, apply, inverse};
    use crate::export::tests::{segment, transcript};

    /// Segments of two seconds, numbered from 1, and chapters that begin with some of them.
    fn talk(segments: u32, chapters: &[(SegmentId, &str)]) -> Transcript {
        let said =
            |number| segment(2000 * number, 2000 * number + 1900, &format!("Sentence {}.", number + 1));
        let mut talk = transcript((0..segments).map(said).collect());
        edit::assign_ids(&mut talk);
        talk.chapters = chapters
            .iter()
            .map(|(id, title)| Chapter {
                segment: *id,
                start: talk.segments[*id as usize - 1].start,
                title: (*title).into(),
            })
            .collect();
        talk
    }

    fn shown(transcript: &Transcript) -> Vec<(SegmentId, &str)> {
        transcript.chapters.iter().map(|chapter| (chapter.segment, chapter.title.as_str())).collect()
    }

    #[test]
    fn chapters_stay_where_they_were_when_segments_are_edited() {
        let before = talk(6, &[(1, "A"), (3, "B"), (5, "C")]);
        type Chapters<'a> = &'a [(SegmentId, &'a str)];
        let time = Time::from_millis;
        let cases: &[(Edit, Chapters)] = &[
            (Edit::SetText { segment: 3, text: "Other.".into() }, &[(1, "A"), (3, "B"), (5, "C")]),
            (Edit::Split { segment: 3, at: 9 }, &[(1, "A"), (3, "B"), (5, "C")]),
            // The boundary would be within a segment.
            (Edit::Merge { segment: 2 }, &[(1, "A"), (4, "B"), (5, "C")]),
            (Edit::Merge { segment: 1 }, &[(1, "A"), (3, "B"), (5, "C")]),
            (Edit::Delete { segments: vec![3] }, &[(1, "A"), (4, "B"), (5, "C")]),
            (Edit::Delete { segments: vec![3, 4] }, &[(1, "A"), (5, "C")]),
            (Edit::Delete { segments: vec![1, 2] }, &[(3, "B"), (5, "C")]),
            (Edit::Delete { segments: vec![4, 5, 6] }, &[(1, "A"), (3, "B")]),
            (Edit::Delete { segments: vec![1, 2, 3, 4, 5, 6] }, &[]),
            (Edit::Insert { after: None, text: "New.".into() }, &[(7, "A"), (3, "B"), (5, "C")]),
            (Edit::Insert { after: Some(2), text: "New.".into() }, &[(1, "A"), (3, "B"), (5, "C")]),
            (
                Edit::Retime { segment: 3, start: time(4_500), end: time(5_000) },
                &[(1, "A"), (3, "B"), (5, "C")],
            ),
            (
                Edit::SetSpeakerOfWords { segment: 5, from: 9, to: 10, speaker: Some("Ada".into()) },
                &[(1, "A"), (3, "B"), (5, "C")],
            ),
        ];
        for (edit, expected) in cases {
            let mut after = before.clone();
            let changes = edit.plan(&before).unwrap();
            apply(&mut after, &changes).unwrap();
            assert_eq!(shown(&after), *expected, "{edit:?}");
            for chapter in &after.chapters {
                let own = after.segments.iter().find(|segment| segment.id == chapter.segment).unwrap();
                assert_eq!(own.start, chapter.start, "{edit:?}");
            }
            // As it is stored.
            let stored: Vec<Change> =
                serde_json::from_str(&serde_json::to_string(&changes).unwrap()).unwrap();
            apply(&mut after, &inverse(stored)).unwrap();
            assert_eq!(after, before, "{edit:?}");
        }
    }

    #[test]
    fn chapters_are_set_as_one_edit_and_nothing_is_in_none() {
        let before = talk(6, &[]);
        type Chapters<'a> = &'a [(SegmentId, &'a str)];
        let cases: &[(Chapters, Chapters)] = &[
            (&[(1, "One"), (4, " Two\nlines ")], &[(1, "One"), (4, "Two lines")]),
            (&[(4, "Two"), (1, "One")], &[(1, "One"), (4, "Two")]),
            // What stands before the first one, and a title that is missing.
            (&[(4, "Two")], &[(1, "Sentence 1"), (4, "Two")]),
            (&[(1, "One"), (4, "  ")], &[(1, "One"), (4, "Sentence 4")]),
            (&[], &[]),
        ];
        for (wanted, expected) in cases {
            let chapters = wanted.iter().map(|(id, title)| (*id, (*title).to_owned())).collect();
            let changes = Edit::SetChapters { chapters }.plan(&before).unwrap();
            let mut after = before.clone();
            apply(&mut after, &changes).unwrap();
            assert_eq!(shown(&after), *expected, "{wanted:?}");
            assert_eq!(changes.is_empty(), expected.is_empty(), "an edit that changes nothing is none");
            apply(&mut after, &inverse(changes)).unwrap();
            assert_eq!(after, before);
        }
        let gone = Edit::SetChapters { chapters: vec![(99, "No".into())] };
        assert_eq!(gone.plan(&before), Err(EditError::NotFound));
    }

    #[test]
    fn chapters_outlast_what_is_transcribed_again_and_saving() {
        let before = talk(6, &[(1, "A"), (3, "B"), (5, "C")]);
        let mut after = before.clone();
        let found = transcript(vec![segment(4_100, 5_000, "Again."), segment(5_000, 7_900, "And again.")]);
        after.replace(Span::new(Time::from_millis(4_000), Time::from_millis(8_000)), found);
        edit::assign_ids(&mut after);
        let mut edited = before.clone();
        apply(&mut edited, &edit::between(&before, &after)).unwrap();
        assert_eq!(shown(&edited), [(1, "A"), (7, "B"), (5, "C")]);
        assert_eq!(edited.chapters[1].start, Time::from_millis(4_100));

        edit::clear_ids(&mut edited);
        assert!(edited.chapters.iter().all(|chapter| chapter.segment == 0));
        let mut read = Transcript::from_json(&serde_json::to_vec(&edited).unwrap()).unwrap();
        assert_eq!(read, edited);
        edit::assign_ids(&mut read);
        assert_eq!(shown(&read), [(1, "A"), (3, "B"), (5, "C")]);
        let places: Vec<usize> = edited.placed_chapters().into_iter().map(|(at, _)| at).collect();
        assert_eq!(places, [0, 2, 4]);
    }

    #[test]
    fn blocks_are_short_and_leave_nothing_out() {
        let mut talk = talk(40, &[]);
        talk.segments[7].text = "long ".repeat(80);
        talk.segments[8].text.clear();
        let blocks = blocks(&talk);
        let text: String = blocks.iter().map(|block| format!("{} ", block.text)).collect();
        let expected: String = talk.text();
        assert_eq!(text.trim_end(), expected);
        for block in &blocks {
            assert!(block.segments.len() == 1 || block.text.width() <= BLOCK, "{block:?}");
            assert_eq!(block.span.start, talk.segments[block.segments.start].start);
        }
        assert!(blocks.len() < 10, "{}", blocks.len());
    }

    /// Two minutes of segments for each subject: what is said and its direction.
    fn subjects(subjects: &[&str], minutes: u32) -> (Transcript, Vec<Vec<f32>>) {
        let mut segments = Vec::new();
        for (number, noun) in (0..).zip(subjects) {
            for index in 0..minutes * 10 {
                let start = (number * minutes * 10 + index) * 6_000;
                // A block of its own.
                let text =
                    format!("And then we said number {index} of the {noun}, {}.", "and so on ".repeat(12));
                segments.push(segment(start, start + 5_900, &text));
            }
        }
        let talk = transcript(segments);
        let vectors = blocks(&talk).into_iter().map(|block| {
            let subject = block.span.start.millis() / (minutes * 60_000);
            let mut state = block.span.start.millis().wrapping_mul(2_654_435_761).wrapping_add(7);
            let mut vector: Vec<f32> = (0..16)
                .map(|axis| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let noise = (state >> 16) as f32 / 65_536.0 - 0.5;
                    noise * 0.6 + if axis == subject { 1.0 } else { 0.0 }
                })
                .collect();
            let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
            vector.iter_mut().for_each(|x| *x /= length);
            vector
        });
        let vectors = vectors.collect();
        (talk, vectors)
    }

    #[test]
    fn chapters_begin_where_the_subject_changes_and_are_named_after_it() {
        let (talk, vectors) = subjects(&["boat", "garden", "election"], 4);
        let found = find(&talk, &blocks(&talk), &vectors);
        let found: Vec<_> =
            found.iter().map(|chapter| (chapter.start.millis() / 1000, chapter.title.as_str())).collect();
        assert_eq!(found, [(0, "Boat"), (240, "Garden"), (480, "Election")]);
    }

    #[test]
    fn no_chapters_in_short_recordings_or_where_one_subject_is_spoken_of() {
        for (subjects_of, minutes) in [(&["boat"][..], 12), (&["boat", "garden"], 1)] {
            let (talk, vectors) = subjects(subjects_of, minutes);
            assert_eq!(find(&talk, &blocks(&talk), &vectors), [], "{subjects_of:?}");
            assert_eq!(is_too_short(&talk), minutes == 1);
        }
        assert_eq!(find(&transcript(Vec::new()), &[], &[]), []);
        let (talk, _) = subjects(&["boat", "garden"], 4);
        assert_eq!(find(&talk, &blocks(&talk), &[]), [], "vectors are missing");
    }

    #[test]
    fn a_chapter_is_not_shorter_than_two_minutes() {
        let many: Vec<String> = (0..12).map(|number| format!("subject{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let (talk, vectors) = subjects(&many, 1);
        let found = find(&talk, &blocks(&talk), &vectors);
        assert!(found.len() <= 4, "{found:?}");
        for pair in found.windows(2) {
            assert!(pair[1].start.saturating_sub(pair[0].start) >= Time::from_millis(120_000), "{pair:?}");
        }
    }
}
