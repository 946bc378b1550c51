//! A translation beside the text: each segment has what was said in it in English.

use crate::{Segment, Span, Time, Transcript};

/// A translated segment that lies so far within one segment belongs to it whole. Below
/// this it is divided by the times of its words.
const MOSTLY: f64 = 0.8;

impl Transcript {
    /// Whether any segment has a translation.
    pub fn is_translated(&self) -> bool {
        self.segments.iter().any(|segment| segment.translation.is_some())
    }

    /// Puts a translation of the same recording beside the text, in place of an earlier one.
    /// Each of its segments goes to the segment that is said at the same time; one that
    /// spans several is divided by the times of its words.
    pub fn add_translation(&mut self, found: &[Segment]) {
        let mut texts: Vec<String> = vec![String::new(); self.segments.len()];
        for segment in found {
            for (at, text) in self.places(segment) {
                if let Some(whole) = texts.get_mut(at) {
                    join(whole, &text);
                }
            }
        }
        for (segment, text) in self.segments.iter_mut().zip(texts) {
            segment.translation = Some(text).filter(|text| !text.is_empty());
        }
    }

    /// Where the parts of a translated segment belong, by index.
    fn places(&self, found: &Segment) -> Vec<(usize, String)> {
        let span = Span::new(found.start, found.end);
        let said = |segment: &Segment| Span::new(segment.start, segment.end).overlap(span).millis();
        let of_channel = |segment: &&(usize, &Segment)| segment.1.channel == found.channel;
        let candidates: Vec<(usize, &Segment)> = self.segments.iter().enumerate().collect();
        let candidates: Vec<(usize, &Segment)> = candidates.iter().filter(of_channel).copied().collect();
        let all: u64 = candidates.iter().map(|(_, segment)| u64::from(said(segment))).sum();
        let longest = candidates.iter().max_by_key(|(at, segment)| (said(segment), std::cmp::Reverse(*at)));
        let best = match longest {
            Some((at, segment)) if said(segment) > 0 => Some((*at, f64::from(said(segment)) / all as f64)),
            // Nothing is said at that time: the nearest is meant.
            _ => candidates
                .iter()
                .min_by_key(|(_, segment)| distance(segment, middle(found.start, found.end)))
                .map(|(at, _)| (*at, 1.0)),
        };
        let Some((best, share)) = best else { return Vec::new() };
        if share >= MOSTLY || found.words.is_empty() {
            return vec![(best, found.text.trim().to_owned())];
        }
        let mut parts: Vec<(usize, String)> = Vec::new();
        for word in &found.words {
            let nearest = candidates
                .iter()
                .min_by_key(|(_, segment)| distance(segment, middle(word.start, word.end)))
                .map_or(best, |(at, _)| *at);
            match parts.last_mut() {
                // Times of translated words are less exact than their order.
                Some((at, text)) if nearest <= *at => text.push_str(&word.text),
                _ => parts.push((nearest, word.text.clone())),
            }
        }
        parts.into_iter().map(|(at, text)| (at, text.trim().to_owned())).collect()
    }
}

fn middle(start: Time, end: Time) -> Time {
    Time::from_millis(start.millis().midpoint(end.millis()))
}

/// From a segment to a time; 0 within it.
fn distance(segment: &Segment, time: Time) -> u32 {
    segment.start.saturating_sub(time).millis().max(time.saturating_sub(segment.end).millis())
}

/// A translation divided between words as a text is that has so many letters in each part.
pub(crate) fn divide(translation: &str, letters: &[usize]) -> Vec<Option<String>> {
    let all = letters.iter().sum::<usize>().max(1) as f64;
    let length = translation.chars().count() as f64;
    let mut words = translation.split_whitespace().peekable();
    let (mut written, mut said) = (0.0, 0.0);
    let mut parts = Vec::new();
    for (number, count) in letters.iter().enumerate() {
        said += *count as f64 / all * length;
        let is_last = number + 1 == letters.len();
        let mut part = String::new();
        while let Some(word) = words.peek() {
            let half = word.chars().count() as f64 / 2.0;
            if !is_last && written + half >= said {
                break;
            }
            written += 2.0 * half + 1.0;
            join(&mut part, word);
            words.next();
        }
        parts.push(Some(part).filter(|part| !part.is_empty()));
    }
    parts
}

/// Adds to a translation.
pub(crate) fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push(' ');
    }
    text.push_str(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Word;
    use crate::export::tests::{segment, transcript};

    fn timed(words: &[(u32, u32, &str)]) -> Segment {
        let (start, end) = (words.first().unwrap().0, words.last().unwrap().1);
        let text: String = words.iter().map(|word| word.2).collect();
        let words = words.iter().map(|(start, end, text)| Word {
            text: (*text).into(),
            start: Time::from_millis(*start),
            end: Time::from_millis(*end),
            probability: 1.0,
        });
        Segment { words: words.collect(), ..segment(start, end, text.trim()) }
    }

    #[test]
    fn a_translation_goes_where_it_is_said() {
        let original = [(0, 2000, "Guten Morgen."), (2000, 5000, "Wie geht es?"), (9000, 11_000, "Gut.")];
        let two = timed(&[
            (0, 900, " Good"),
            (900, 1800, " morning."),
            (2200, 3000, " How"),
            (3000, 4000, " are"),
            (4000, 4900, " you?"),
        ]);
        type Case<'a> = (&'a str, Vec<Segment>, [Option<&'a str>; 3]);
        let cases: [Case<'_>; 6] = [
            (
                "one for each",
                vec![
                    segment(100, 1900, "Good morning."),
                    segment(2100, 4800, "How are you?"),
                    segment(9000, 10_900, "Fine."),
                ],
                [Some("Good morning."), Some("How are you?"), Some("Fine.")],
            ),
            (
                "one that spans two is divided by its words",
                vec![two.clone()],
                [Some("Good morning."), Some("How are you?"), None],
            ),
            (
                "without words it goes where most of it is said",
                vec![Segment { words: Vec::new(), ..two }],
                [None, Some("Good morning. How are you?"), None],
            ),
            (
                "a little over the edge is no reason to divide",
                vec![timed(&[(0, 1000, " Good"), (1000, 1800, " morning,"), (2050, 2200, " sir.")])],
                [Some("Good morning, sir."), None, None],
            ),
            (
                "two of one are joined",
                vec![segment(2000, 3000, "How"), segment(3000, 4500, "are you?")],
                [None, Some("How are you?"), None],
            ),
            (
                "what is said in a pause goes to the nearest",
                vec![segment(7500, 8500, "Fine.")],
                [None, None, Some("Fine.")],
            ),
        ];
        for (name, found, expected) in cases {
            let segments = original.iter().map(|(start, end, text)| segment(*start, *end, text)).collect();
            let mut whole = transcript(segments);
            whole.add_translation(&found);
            let texts: Vec<Option<&str>> =
                whole.segments.iter().map(|one| one.translation.as_deref()).collect();
            assert_eq!(texts, expected, "{name}");
        }
    }

    #[test]
    fn a_translation_is_divided_as_its_text_is() {
        for (letters, expected) in [
            (&[9, 11][..], &[Some("Good morning."), Some("How are you?")][..]),
            (&[20], &[Some("Good morning. How are you?")]),
            (&[1, 60], &[None, Some("Good morning. How are you?")]),
            (&[0, 0], &[None, Some("Good morning. How are you?")]),
        ] {
            let parts = divide("Good morning. How are you?", letters);
            let parts: Vec<Option<&str>> = parts.iter().map(Option::as_deref).collect();
            assert_eq!(parts, expected, "{letters:?}");
        }
    }

    #[test]
    fn an_earlier_translation_is_replaced_and_channels_are_kept_apart() {
        let channel = |number, text| Segment { channel: Some(number), ..segment(0, 2000, text) };
        let mut whole = transcript(vec![channel(0, "Ja."), channel(1, "Nein.")]);
        whole.add_translation(&[channel(1, "No."), channel(0, "Yes.")]);
        assert_eq!(whole.segments[0].translation.as_deref(), Some("Yes."));
        assert_eq!(whole.segments[1].translation.as_deref(), Some("No."));
        whole.add_translation(&[channel(1, "Nope.")]);
        assert_eq!(whole.segments[0].translation, None);
        assert_eq!(whole.segments[1].translation.as_deref(), Some("Nope."));
        assert!(whole.is_translated());
    }
}
