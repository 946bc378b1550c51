//! Segments as subtitle cues: in order of time, each of them longer than
//! nothing, none over another.

use super::shape;
use super::text::{Labels, breaks_line, lines};
use super::{Options, Shaping};
use crate::{Segment, Time, Transcript, Word};

/// A text without a length of its own is shown for this long where there is room.
const SHORTEST: Time = Time::from_millis(100);
const ONE_MILLISECOND: Time = Time::from_millis(1);

#[derive(Debug, PartialEq)]
pub struct Cue {
    pub start: Time,
    pub end: Time,
    pub lines: Vec<Line>,
}

#[derive(Debug, PartialEq, Default)]
pub struct Line {
    /// Who speaks, on the first line of what they say.
    pub label: Option<String>,
    /// In order; together they are the line.
    pub pieces: Vec<Piece>,
}

/// A word with the white space before it, or a whole line.
#[derive(Debug, PartialEq, Clone)]
pub struct Piece {
    pub text: String,
    /// When it is said, where that is known of the single word.
    pub start: Option<Time>,
}

impl Line {
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// The cues of a transcript, shaped where that was asked for.
pub fn cues(transcript: &Transcript, options: &Options) -> Vec<Cue> {
    let labels = Labels::of(transcript);
    let mut segments: Vec<&Segment> = transcript.segments.iter().collect();
    // Stable, so that what begins together stays in the transcript's order.
    segments.sort_by_key(|segment| segment.start);
    match &options.shaping {
        None => as_they_are(&segments, &labels),
        Some(shaping) => shaped(&segments, &labels, shaping, transcript.source.duration),
    }
}

/// One cue per segment. Where two voices overlap, the earlier text makes room
/// for the later one; where they begin together, both share a cue.
fn as_they_are(segments: &[&Segment], labels: &Labels) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    for segment in segments {
        let lines = labelled_lines(segment, labels);
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
    let texts: Vec<&str> = lines(&segment.text).collect();
    let words = match texts.as_slice() {
        [one] => matching_words(segment, one),
        _ => None,
    };
    if let Some(words) = words {
        let mut pieces: Vec<Piece> = words
            .iter()
            .map(|word| Piece { text: word.text.clone(), start: Some(word.start) })
            .skip_while(|piece| piece.text.trim().is_empty())
            .collect();
        if let Some(first) = pieces.first_mut() {
            first.text = first.text.trim_start().into();
        }
        while let Some(last) = pieces.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            pieces.pop();
        }
        return vec![Line { label, pieces }];
    }
    let whole = |text: &str| vec![Piece { text: text.into(), start: None }];
    texts.into_iter().map(|text| Line { label: label.take(), pieces: whole(text) }).collect()
}

/// The segment's words, where they are still what its text says: somebody may
/// have edited it.
pub fn matching_words<'a>(segment: &'a Segment, text: &str) -> Option<&'a [Word]> {
    let joined: String = segment.words.iter().map(|word| word.text.as_str()).collect();
    // Also where a break hides in the white space that is trimmed away.
    let one_line = !joined.contains(breaks_line);
    (!segment.words.is_empty() && one_line && joined.trim() == text).then_some(&segment.words)
}

/// Cues that fit a screen and can be read in time: see [`Shaping`].
fn shaped(segments: &[&Segment], labels: &Labels, shaping: &Shaping, duration: Time) -> Vec<Cue> {
    let mut cues: Vec<Cue> =
        segments.iter().flat_map(|segment| shape::cues(segment, labels.label(segment), shaping)).collect();
    cues.sort_by_key(|cue| cue.start);

    // Texts that overlap, since two people speak at once, follow each other.
    let mut earliest = Time::ZERO;
    for cue in &mut cues {
        let length = cue.end.saturating_sub(cue.start);
        cue.start = cue.start.max(earliest);
        cue.end = cue.end.max(cue.start + length.min(shaping.min_duration));
        earliest = cue.start + length.min(shaping.min_duration).max(ONE_MILLISECOND);
    }
    let starts: Vec<Time> = cues.iter().skip(1).map(|cue| cue.start).collect();
    let last_end = cues.last().map(|cue| cue.end.max(duration)).unwrap_or_default();
    for (index, cue) in cues.iter_mut().enumerate() {
        let columns: usize = cue.lines.iter().map(|line| shape::width(&line.text())).sum();
        let reading = Time::from_seconds(columns as f64 / f64::from(shaping.reading_speed.max(0.1)));
        let wanted = cue.end.max(cue.start + shaping.min_duration).max(cue.start + reading);
        let wanted = wanted.min(cue.end.max(cue.start + shaping.max_duration));
        cue.end = match starts.get(index) {
            // The gap is given up before the text is.
            Some(next) => match next.saturating_sub(shaping.min_gap) {
                limit if limit > cue.start => wanted.min(limit),
                _ => *next,
            },
            None => wanted.min(last_end.max(cue.start + ONE_MILLISECOND)),
        };
    }
    cues
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    fn check(segments: &[(u32, u32, &str)], expected: &[(u32, u32, &[&str])]) {
        let transcript = transcript(segments.iter().map(|(a, b, text)| segment(*a, *b, text)).collect());
        let cues = cues(&transcript, &Options::default());
        let found: Vec<_> = cues
            .iter()
            .map(|cue| {
                let lines: Vec<String> = cue.lines.iter().map(Line::text).collect();
                (cue.start.millis(), cue.end.millis(), lines)
            })
            .collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|(a, b, lines)| (*a, *b, lines.iter().map(|line| line.to_string()).collect()))
            .collect();
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

    #[test]
    fn words_that_are_no_longer_the_text_are_left_aside() {
        let mut edited = segment(0, 1000, "Good evening.");
        let word = |text: &str| Word { text: text.into(), ..Word::default() };
        edited.words = vec![word(" Good"), word(" morning.")];
        assert!(matching_words(&edited, "Good evening.").is_none());
        edited.words[1] = word(" evening.");
        assert_eq!(matching_words(&edited, "Good evening.").map(<[_]>::len), Some(2));
        edited.words.push(word("\r\n"));
        assert!(matching_words(&edited, "Good evening.").is_none());
    }
}
