//! Segments as subtitle cues: in order of time, each of them longer than
//! nothing, none over another.

use super::text::{Labels, lines};
use crate::{Segment, Time, Transcript};

/// A text without a length of its own is shown for this long where there is room.
const SHORTEST: Time = Time::from_millis(100);
const ONE_MILLISECOND: Time = Time::from_millis(1);

#[derive(Debug, PartialEq)]
pub struct Cue {
    pub start: Time,
    pub end: Time,
    pub lines: Vec<Line>,
}

#[derive(Debug, PartialEq)]
pub struct Line {
    /// Who speaks, on the first line of what they say.
    pub label: Option<String>,
    pub text: String,
}

/// The cues of a transcript. Where two voices overlap, the earlier text makes
/// room for the later one; where they begin together, both share a cue.
pub fn cues(transcript: &Transcript) -> Vec<Cue> {
    let labels = Labels::of(transcript);
    let mut segments: Vec<&Segment> = transcript.segments.iter().collect();
    // Stable, so that what begins together stays in the transcript's order.
    segments.sort_by_key(|segment| segment.start);

    let mut cues: Vec<Cue> = Vec::new();
    for segment in segments {
        let lines = labelled_lines(segment, &labels);
        if lines.is_empty() {
            continue;
        }
        let end = if segment.end > segment.start { segment.end } else { segment.start + SHORTEST };
        match cues.last_mut() {
            Some(last) if last.start == segment.start => {
                last.lines.extend(lines);
                last.end = last.end.max(end);
                continue;
            }
            Some(last) => last.end = last.end.min(segment.start),
            None => {}
        }
        cues.push(Cue { start: segment.start, end, lines });
    }
    // Only at the very last representable millisecond is there no room after the start.
    if let Some(last) = cues.last_mut()
        && last.end <= last.start
    {
        last.start = last.end.saturating_sub(ONE_MILLISECOND);
    }
    cues
}

fn labelled_lines(segment: &Segment, labels: &Labels) -> Vec<Line> {
    let mut label = labels.label(segment);
    lines(&segment.text).map(|text| Line { label: label.take(), text: text.into() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    fn check(segments: &[(u32, u32, &str)], expected: &[(u32, u32, &[&str])]) {
        let transcript = transcript(segments.iter().map(|(a, b, text)| segment(*a, *b, text)).collect());
        let cues = cues(&transcript);
        let found: Vec<_> = cues
            .iter()
            .map(|cue| {
                let lines: Vec<&str> = cue.lines.iter().map(|line| line.text.as_str()).collect();
                (cue.start.millis(), cue.end.millis(), lines)
            })
            .collect();
        let expected: Vec<_> = expected.iter().map(|(a, b, lines)| (*a, *b, lines.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn cues_never_overlap_and_always_last() {
        // As they are.
        check(&[(0, 1000, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // Overlapping: the first ends where the second begins.
        check(&[(0, 1500, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // One within another.
        check(&[(0, 5000, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // Together: one cue with both.
        check(&[(0, 1500, "a"), (0, 2000, "b")], &[(0, 2000, &["a", "b"])]);
        // Without a length, and reversed.
        check(&[(500, 500, "a"), (900, 800, "b")], &[(500, 600, &["a"]), (900, 1000, &["b"])]);
        check(&[(500, 500, "a"), (520, 800, "b")], &[(500, 520, &["a"]), (520, 800, &["b"])]);
        // Out of order, as from channels one after the other.
        check(&[(2000, 3000, "b"), (0, 1000, "a")], &[(0, 1000, &["a"]), (2000, 3000, &["b"])]);
        // Blank texts have no cue, blank lines no line.
        check(&[(0, 1000, " \n"), (1000, 2000, "b\n\nc")], &[(1000, 2000, &["b", "c"])]);
        // At the end of time.
        check(&[(u32::MAX, u32::MAX, "a")], &[(u32::MAX - 1, u32::MAX, &["a"])]);
    }
}
