//! Subtitle cues from segments. Cues are ordered by time, have a positive
//! length and don't overlap. Where people talk at the same time, a cue shows what both say.

use super::shape;
use super::text::{SpeakerLabels, breaks_line, lines};
use super::{Options, Shaping};
use crate::translation::divide;
use crate::{Segment, Time, Transcript, Word};

/// A segment of zero length is shown for this long, or until the next one starts.
const SHORTEST: Time = Time::from_millis(100);
const ONE_MILLISECOND: Time = Time::from_millis(1);
/// A cue that is shown for less than this can't be read.
const UNREADABLE: Time = Time::from_millis(200);

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

impl Cue {
    fn speakers(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| line.label.as_deref())
    }

    /// The lines, each speaker's together.
    pub fn turns(&self) -> impl Iterator<Item = &[CueLine]> {
        self.lines.chunk_by(|_, next| next.label.is_none())
    }

    fn join(&mut self, other: Self) {
        self.lines.extend(other.lines);
        self.end = self.end.max(other.end);
    }
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
/// same start share a cue, and so do those of [`crosstalk`].
fn one_per_segment(segments: &[&Segment], labels: &SpeakerLabels, options: &Options) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let usual = Shaping::default();
    for segment in segments {
        let Some(mut cue) = undivided(segment, labels) else { continue };
        if let Some(translation) = translation(segment, options) {
            cue.lines.extend(crate::export::text::lines(translation).map(plain_line));
        }
        match cues.last_mut() {
            Some(last) if last.start == cue.start || crosstalk(last, &cue, &usual) => {
                last.join(cue);
                continue;
            }
            Some(last) => last.end = last.end.min(segment.start),
            None => {}
        }
        cues.push(cue);
    }
    // A cue that starts at the last representable time has no later end.
    if let Some(last) = cues.last_mut()
        && last.end <= last.start
    {
        last.start = last.end.saturating_sub(ONE_MILLISECOND);
    }
    cues
}

/// A segment as one cue; `None` where there is no text.
fn undivided(segment: &Segment, labels: &SpeakerLabels) -> Option<Cue> {
    let lines = labelled_lines(segment, labels);
    let end = if segment.end > segment.start { segment.end } else { segment.start + SHORTEST };
    (!lines.is_empty()).then_some(Cue { start: segment.start, end, lines })
}

/// Whether two people talk at the same time, and for so long that a cue that ended where `next`
/// starts would be gone before it is read. Both are shown together then.
fn crosstalk(cue: &Cue, next: &Cue, shaping: &Shaping) -> bool {
    /// Of the time in which a text is said, what it can do without: times of words are not exact.
    const SPARE: f64 = 0.2;
    if next.start >= cue.end || !next.speakers().any(|next| cue.speakers().any(|ours| ours != next)) {
        return false;
    }
    let said = Time::from_seconds(cue.end.saturating_sub(cue.start).seconds() * (1.0 - SPARE));
    // People who talk at the same time are read at the same time, or an argument would be one cue.
    let longest = cue.turns().map(|turn| reading_time(turn, shaping)).max().unwrap_or_default();
    let needed = longest.max(shaping.min_duration).min(said);
    next.start.saturating_sub(cue.start) < needed
}

/// How long people take to read the lines.
fn reading_time(lines: &[CueLine], shaping: &Shaping) -> Time {
    let columns: usize = lines.iter().map(|line| shape::width(&line.text())).sum();
    Time::from_seconds(columns as f64 / f64::from(shaping.reading_speed.max(0.1)))
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
    let crosstalk_lines = Shaping { lines: (shaping.lines / 2).max(1), ..shaping.clone() };
    let in_crosstalk = in_crosstalk(segments, labels, shaping);
    let of_segment = |(segment, in_crosstalk): (&&Segment, bool)| {
        // Half of the lines are the other speaker's.
        let shaping = if in_crosstalk { &crosstalk_lines } else { shaping };
        let cues = shape::cues(segment, labels.label(segment), shaping);
        match translation(segment, options) {
            Some(translation) => with_translation(cues, translation),
            None => cues,
        }
    };
    let mut divided: Vec<Cue> = segments.iter().zip(in_crosstalk).flat_map(of_segment).collect();
    divided.sort_by_key(|cue| cue.start);

    let most_lines = shaping.lines.max(1) * if options.translation { 2 } else { 1 };
    let mut cues: Vec<Cue> = Vec::new();
    for cue in divided {
        match cues.last_mut() {
            Some(last)
                if last.lines.len() + cue.lines.len() <= most_lines && crosstalk(last, &cue, shaping) =>
            {
                last.join(cue);
            }
            _ => cues.push(cue),
        }
    }

    // Cues that overlap and have too many lines for one are shown one after the other.
    let mut earliest = Time::ZERO;
    for cue in &mut cues {
        let length = cue.end.saturating_sub(cue.start);
        // Words that were all found at one instant are shown long enough, and those after them later.
        let shortest =
            if length < UNREADABLE { shaping.min_duration } else { length.min(shaping.min_duration) };
        if cue.start < earliest {
            cue.start = earliest + shaping.min_gap;
        }
        cue.end = cue.end.max(cue.start + shortest);
        earliest = cue.start + shortest.max(ONE_MILLISECOND);
    }
    let starts: Vec<Time> = cues.iter().skip(1).map(|cue| cue.start).collect();
    let last_end = cues.last().map(|cue| cue.end.max(duration)).unwrap_or_default();
    for (index, cue) in cues.iter_mut().enumerate() {
        let reading = reading_time(&cue.lines, shaping);
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

/// Of each of the segments, which are in order of their start: whether it is shown together with
/// another speaker's cue.
fn in_crosstalk(segments: &[&Segment], labels: &SpeakerLabels, shaping: &Shaping) -> Vec<bool> {
    let mut found = vec![false; segments.len()];
    let mut latest: Option<(usize, Cue)> = None;
    for (index, segment) in segments.iter().enumerate() {
        let Some(cue) = undivided(segment, labels) else { continue };
        match &mut latest {
            Some((first, latest)) if crosstalk(latest, &cue, shaping) => {
                found[*first] = true;
                found[index] = true;
                latest.join(cue);
            }
            _ => latest = Some((index, cue)),
        }
    }
    found
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

    /// The times and lines of the cues where each text is of a channel.
    fn of_channels(
        segments: &[(u32, u32, u32, &str)],
        shaping: Option<Shaping>,
    ) -> Vec<(u32, u32, Vec<String>)> {
        let segments = segments.iter().map(|(channel, start, end, text)| Segment {
            channel: Some(*channel),
            ..segment(*start, *end, text)
        });
        let options = Options { shaping, ..Options::default() };
        let line = |line: &CueLine| match &line.label {
            Some(label) => format!("{}: {}", label.trim_start_matches("Channel "), line.text()),
            None => line.text(),
        };
        let mut transcript = transcript(segments.collect());
        transcript.source.duration = Time::from_millis(60_000);
        let found = cues(&transcript, &options);
        let found = found.iter().map(|cue| {
            (cue.start.millis(), cue.end.millis(), cue.lines.iter().map(line).collect::<Vec<_>>())
        });
        found.collect()
    }

    #[test]
    fn two_who_talk_at_the_same_time_are_shown_together() {
        let lines = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        const LONG: &str = "the quick brown fox jumps over the lazy dog";
        const SHORT: &str = "I said that we would be late";
        let check = |segments: &[(u32, u32, u32, &str)], expected: &[(u32, u32, &[&str])]| {
            let expected: Vec<_> = expected.iter().map(|(a, b, text)| (*a, *b, lines(text))).collect();
            assert_eq!(of_channels(segments, None), expected);
        };
        let both: &[&str] =
            &["1: the quick brown fox jumps over the lazy dog", "2: I said that we would be late"];
        check(&[(0, 0, 2760, LONG), (1, 600, 2400, SHORT)], &[(0, 2760, both)]);
        // There was time to read the first.
        check(
            &[(0, 0, 2760, "Yes."), (1, 1000, 2400, SHORT)],
            &[(0, 1000, &["1: Yes."]), (1000, 2400, &["2: I said that we would be late"])],
        );
        check(
            &[(0, 0, 2760, LONG), (1, 2600, 4400, SHORT)],
            &[(0, 2600, &both[..1]), (2600, 4400, &both[1..])],
        );
        // One says yes again and again.
        check(
            &[(0, 0, 2760, LONG), (1, 300, 500, "Yes."), (1, 1300, 1500, "Yes."), (0, 2760, 3500, "So.")],
            &[(0, 2760, &[both[0], "2: Yes.", "2: Yes."]), (2760, 3500, &["1: So."])],
        );
        // A cue that was read makes room, so that an argument is not one cue.
        let argument: Vec<_> =
            (0..20).map(|turn| (turn % 2, turn * 1500, turn * 1500 + 2800, LONG)).collect();
        let found = of_channels(&argument, None);
        assert!(found.iter().all(|(start, end, lines)| lines.len() <= 2 && end - start >= 2240), "{found:?}");
    }

    #[test]
    fn shaped_cues_have_a_line_of_each_who_talks() {
        let long = "the quick brown fox jumps over the lazy dog and then it does so again";
        let other = "I said that we would be late, and now we are late";
        let segments = [(0, 0, 5_520, long), (1, 600, 4_400, other)];
        let found = of_channels(&segments, Some(Shaping::default()));
        for (start, end, lines) in &found {
            assert!(end - start >= 833 && lines.len() <= 2, "{found:?}");
        }
        assert!(
            found[0].2[0].starts_with("1: the quick") && found[0].2[1].starts_with("2: I said"),
            "{found:?}"
        );
        for (label, said) in [("1: ", long), ("2: ", other)] {
            let lines =
                found.iter().flat_map(|(_, _, lines)| lines).filter_map(|line| line.strip_prefix(label));
            assert_eq!(lines.collect::<Vec<_>>().join(" "), said);
        }
        // Where there is room for one line, each has its turn for as long as a cue takes at least.
        let one_line = Shaping { lines: 1, ..Shaping::default() };
        let found =
            of_channels(&[(0, 0, 2_000, "Yes, of course."), (1, 100, 2_100, "No, never.")], Some(one_line));
        assert_eq!(found.len(), 2);
        assert!(found.iter().all(|(start, end, _)| end - start >= 833), "{found:?}");
    }

    #[test]
    fn words_that_were_all_found_at_one_instant_are_shown_long_enough() {
        let word = |(text, start, end): (&str, u32, u32)| Word {
            text: text.into(),
            start: Time::from_millis(start),
            end: Time::from_millis(end),
            probability: 0.9,
        };
        let words = [
            (" Clear", 0, 500),
            (" and", 500, 900),
            (" loud.", 900, 900),
            (" See", 900, 900),
            (" you.", 900, 2_000),
        ];
        let mut segment = segment(0, 2_000, "Clear and loud. See you.");
        segment.words = words.map(word).into();
        let shaping = Shaping { line_width: 10, lines: 1, ..Shaping::default() };
        let options = Options { shaping: Some(shaping.clone()), ..Options::default() };
        let cues = cues(&transcript(vec![segment]), &options);
        assert_eq!(cues.len(), 3, "{cues:?}");
        for (cue, next) in cues.iter().zip(&cues[1..]) {
            assert!(cue.end.saturating_sub(cue.start) > Time::from_millis(800), "{cues:?}");
            assert!(cue.end <= next.start, "{cues:?}");
        }
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
