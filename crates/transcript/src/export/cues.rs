//! Subtitle cues from segments. Cues are ordered by time, have a positive
//! length and don't overlap.

use super::shape;
use super::text::{SpeakerLabels, breaks_line, lines};
use super::{Options, Shaping};
use crate::translation::divide;
use crate::{Segment, Time, Transcript, Word};

/// A segment of zero length is shown for this long, or until the next one starts.
const SHORTEST: Time = Time::from_millis(100);
const ONE_MILLISECOND: Time = Time::from_millis(1);

#[derive(Debug, PartialEq)]
pub struct Cue {
    pub start: Time,
    pub end: Time,
    pub lines: Vec<CueLine>,
}

#[derive(Debug, PartialEq, Default)]
pub struct CueLine {
    /// The speaker, on the first line of each turn.
    pub label: Option<String>,
    /// The parts of the line in order.
    pub pieces: Vec<CuePiece>,
}

/// A part of a line: a word with the white space before it, or the whole line.
#[derive(Debug, PartialEq, Clone)]
pub struct CuePiece {
    pub text: String,
    /// The start of the word, if word times are known.
    pub start: Option<Time>,
}

impl CueLine {
    pub fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }
}

/// The cues of a transcript, laid out for a screen if the options say so.
pub fn cues(transcript: &Transcript, options: &Options) -> Vec<Cue> {
    let labels = SpeakerLabels::of(transcript);
    let mut segments: Vec<&Segment> = transcript.segments.iter().collect();
    // A stable sort: segments with the same start keep the transcript's order.
    segments.sort_by_key(|segment| segment.start);
    match &options.shaping {
        None => one_per_segment(&segments, &labels, options),
        Some(shaping) => shaped(&segments, &labels, shaping, options, transcript.source.duration),
    }
}

/// One cue per segment. A cue ends where the next one starts; segments with the
/// same start share a cue.
fn one_per_segment(segments: &[&Segment], labels: &SpeakerLabels, options: &Options) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    for segment in segments {
        let mut lines = labelled_lines(segment, labels);
        if lines.is_empty() {
            continue;
        }
        if let Some(translation) = translation(segment, options) {
            lines.extend(crate::export::text::lines(translation).map(plain_line));
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
    // A cue that starts at the last representable time has no later end.
    if let Some(last) = cues.last_mut()
        && last.end <= last.start
    {
        last.start = last.end.saturating_sub(ONE_MILLISECOND);
    }
    cues
}

/// What is to stand below the text.
fn translation<'a>(segment: &'a Segment, options: &Options) -> Option<&'a str> {
    segment.translation.as_deref().filter(|_| options.translation)
}

fn plain_line(text: &str) -> CueLine {
    CueLine { label: None, pieces: vec![CuePiece { text: text.into(), start: None }] }
}

/// The cues of a segment with its translation, divided as the text is.
fn with_translation(mut cues: Vec<Cue>, translation: &str) -> Vec<Cue> {
    let letters = |cue: &Cue| cue.lines.iter().map(|line| line.text().chars().count()).sum();
    let letters: Vec<usize> = cues.iter().map(letters).collect();
    for (cue, part) in cues.iter_mut().zip(divide(translation, &letters)) {
        cue.lines.extend(part.as_deref().map(plain_line));
    }
    cues
}

fn labelled_lines(segment: &Segment, labels: &SpeakerLabels) -> Vec<CueLine> {
    let mut label = labels.label(segment);
    let texts: Vec<&str> = lines(&segment.text).collect();
    let words = match texts.as_slice() {
        [one] => matching_words(segment, one),
        _ => None,
    };
    if let Some(words) = words {
        let mut pieces: Vec<CuePiece> = words
            .iter()
            .map(|word| CuePiece { text: word.text.clone(), start: Some(word.start) })
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
        return vec![CueLine { label, pieces }];
    }
    let whole = |text: &str| vec![CuePiece { text: text.into(), start: None }];
    texts.into_iter().map(|text| CueLine { label: label.take(), pieces: whole(text) }).collect()
}

/// The segment's words if they spell `text`; an edited text may differ from them.
pub fn matching_words<'a>(segment: &'a Segment, text: &str) -> Option<&'a [Word]> {
    let joined: String = segment.words.iter().map(|word| word.text.as_str()).collect();
    // A line break may hide in the white space that is trimmed.
    let one_line = !joined.contains(breaks_line);
    (!segment.words.is_empty() && one_line && joined.trim() == text).then_some(&segment.words)
}

/// Cues that fit a screen and stay long enough to be read, see [`Shaping`].
fn shaped(
    segments: &[&Segment],
    labels: &SpeakerLabels,
    shaping: &Shaping,
    options: &Options,
    duration: Time,
) -> Vec<Cue> {
    let of_segment = |segment: &&Segment| {
        let cues = shape::cues(segment, labels.label(segment), shaping);
        match translation(segment, options) {
            Some(translation) => with_translation(cues, translation),
            None => cues,
        }
    };
    let mut cues: Vec<Cue> = segments.iter().flat_map(of_segment).collect();
    cues.sort_by_key(|cue| cue.start);

    // Overlapping segments, where two people speak at once, are shown one after the other.
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
            // If there is no room for the gap, the cue lasts until the next one.
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
                let lines: Vec<String> = cue.lines.iter().map(CueLine::text).collect();
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
    fn cues_have_a_length_and_do_not_overlap() {
        // In order.
        check(&[(0, 1000, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // Overlapping: the first ends where the second begins.
        check(&[(0, 1500, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // One within another.
        check(&[(0, 5000, "a"), (1000, 2000, "b")], &[(0, 1000, &["a"]), (1000, 2000, &["b"])]);
        // The same start: one cue with both texts.
        check(&[(0, 1500, "a"), (0, 2000, "b")], &[(0, 2000, &["a", "b"])]);
        // Zero and negative lengths.
        check(&[(500, 500, "a"), (900, 800, "b")], &[(500, 600, &["a"]), (900, 1000, &["b"])]);
        check(&[(500, 500, "a"), (520, 800, "b")], &[(500, 520, &["a"]), (520, 800, &["b"])]);
        // Out of order, as channels that were transcribed separately are.
        check(&[(2000, 3000, "b"), (0, 1000, "a")], &[(0, 1000, &["a"]), (2000, 3000, &["b"])]);
        // Blank texts and blank lines are left out.
        check(&[(0, 1000, " \n"), (1000, 2000, "b\n\nc")], &[(1000, 2000, &["b", "c"])]);
        // At the largest time.
        check(&[(u32::MAX, u32::MAX, "a")], &[(u32::MAX - 1, u32::MAX, &["a"])]);
    }

    /// The lines of each cue.
    fn bilingual(segments: Vec<Segment>, shaping: Option<Shaping>) -> Vec<Vec<String>> {
        let options = Options { translation: true, shaping, ..Options::default() };
        let lines = |cue: &Cue| cue.lines.iter().map(CueLine::text).collect();
        cues(&transcript(segments), &options).iter().map(lines).collect()
    }

    #[test]
    fn a_translation_stands_below_what_was_said() {
        let translated = |text: &str, translation: &str| Segment {
            translation: Some(translation.into()),
            ..segment(0, 20_000, text)
        };
        let short = translated("Guten Morgen.", "Good morning.");
        assert_eq!(bilingual(vec![short.clone()], None), [["Guten Morgen.", "Good morning."]]);
        assert_eq!(bilingual(vec![segment(0, 900, "Ja.")], None), [["Ja."]]);
        let alone = cues(&transcript(vec![short.clone()]), &Options::default());
        assert_eq!(alone[0].lines.len(), 1, "only where it is asked for");
        // Divided as the text is, with every word once.
        let said = "Das ist ein langer Satz, der auf mehrere Untertitel verteilt werden muss, weil er sonst nicht auf den Bildschirm passt.";
        let english =
            "This is a long sentence that has to be divided, because it would not fit the screen otherwise.";
        let long = bilingual(vec![translated(said, english)], Some(Shaping::default()));
        assert!(long.len() > 1, "{long:?}");
        let below: Vec<&str> = long.iter().map(|lines| lines.last().unwrap().as_str()).collect();
        assert_eq!(below.join(" "), english);
        let short = Segment { end: Time::from_millis(2000), ..short };
        assert_eq!(bilingual(vec![short], Some(Shaping::default())), [["Guten Morgen.", "Good morning."]]);
    }

    #[test]
    fn words_are_used_only_if_they_spell_the_text() {
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
