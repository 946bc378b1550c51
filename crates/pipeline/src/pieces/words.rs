//! Words and sentences of tokens.

use std::ops::Range;

use models::{Token, text_of};
use transcript::{Segment, Span, Time, Word};
use wire::LastWord;

use super::FRAMES_PER_TOKEN_FRAME;
use crate::steps::time;

/// Stands for the space before a word.
const SPACE: char = '▁';
/// A frame of the encoder.
const FRAME: Time = Time::from_millis(80);
/// A pause behind which another segment begins.
const LONG_PAUSE: Time = Time::from_millis(1000);
/// From this length on a segment ends at the next short pause, and from the other at the next word.
const LONG_SEGMENT: Time = Time::from_millis(8000);
const LONGEST_SEGMENT: Time = Time::from_millis(16_000);
/// A pause between phrases.
const SHORT_PAUSE: Time = Time::from_millis(300);
/// An abbreviation has at most so many letters before its full stop.
const ABBREVIATION: usize = 3;
/// A pause behind a full stop that no abbreviation has.
const SENTENCE_PAUSE: Time = Time::from_millis(240);
/// How far apart the two times of a word that was heard twice are at most.
const APART: Time = Time::from_millis(500);

/// A word with its times in the recording.
#[derive(Debug, Clone, PartialEq)]
pub struct TimedWord {
    /// With the space before it and the punctuation behind it, in UTF-8.
    pub text: Vec<u8>,
    pub start: Time,
    pub end: Time,
    /// The sum of its tokens'.
    probability: f32,
    /// The sum of their logarithms.
    logarithms: f32,
    tokens: usize,
}

impl TimedWord {
    /// As what comes behind it is compared with it.
    pub fn as_last(&self) -> LastWord {
        LastWord { text: self.plain(), end: self.end }
    }

    /// In small letters, without punctuation; empty for what is no word.
    fn plain(&self) -> String {
        let text = String::from_utf8_lossy(&self.text);
        text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    }

    /// Whether it is the word that has these small letters.
    fn is_repeat_of(&self, plain: &str) -> bool {
        !plain.is_empty() && self.plain() == plain
    }
}

/// The text of words, sentence by sentence, with the times of each word where they are wanted.
pub fn segments(words: &[TimedWord], word_times: bool) -> Vec<Segment> {
    let mut segments = Vec::new();
    let mut first = 0;
    for number in 0..words.len() {
        let is_end = words.get(number + 1).is_none_or(|next| ends(&words[first..=number], next));
        if is_end {
            segments.extend(segment(&words[first..=number], word_times));
            first = number + 1;
        }
    }
    segments
}

/// The tokens of the words that begin within these frames of the spectrogram.
pub fn begun_within(pieces: &[String], tokens: &[Token], frames: Range<usize>) -> Vec<Token> {
    let mut is_within = None;
    let of_word = |token: &&Token| {
        let piece = pieces.get(token.id as usize).map_or("", String::as_str);
        // The first of all may be the end of a word whose beginning was not heard.
        if begins_word(piece) || is_within.is_none() {
            is_within = Some(frames.contains(&(token.frame * FRAMES_PER_TOKEN_FRAME)));
        }
        is_within == Some(true)
    };
    tokens.iter().filter(of_word).copied().collect()
}

/// What was heard between the words `before` and `behind`, without the word at its edge that is also the word beside it:
/// heard twice, a word is said to begin at two times.
pub fn without_repeats(
    mut found: Vec<TimedWord>,
    before: Option<LastWord>,
    behind: Option<&TimedWord>,
) -> Vec<TimedWord> {
    if let Some(behind) = behind {
        if found
            .last()
            .is_some_and(|word| word.end + APART >= behind.start && word.is_repeat_of(&behind.plain()))
        {
            found.pop();
        }
        // What is written behind it begins there.
        for word in &mut found {
            word.start = word.start.min(behind.start);
            word.end = word.end.min(behind.start.max(word.start));
        }
    }
    if let (Some(word), Some(before)) = (found.first(), before)
        && word.start <= before.end + APART
        && word.is_repeat_of(&before.text)
    {
        found.remove(0);
    }
    found
}

/// Whether a piece is the first of a word, and no mark of punctuation behind a space.
fn begins_word(piece: &str) -> bool {
    piece.starts_with(SPACE) && !(is_punctuation(piece) && piece.chars().count() > 1)
}

fn is_punctuation(piece: &str) -> bool {
    piece.trim_start_matches(SPACE).chars().all(|c| c.is_ascii_punctuation() && c != '\'')
}

/// The words of tokens that were heard in `span`. A piece that begins with a space begins a word; punctuation belongs to
/// the word before it, and ends when that does.
pub fn words(pieces: &[String], tokens: &[Token], span: Span) -> Vec<TimedWord> {
    let at = |frames: usize| (span.start + time(frames * FRAMES_PER_TOKEN_FRAME)).min(span.end);
    let mut words: Vec<TimedWord> = Vec::new();
    for token in tokens {
        let Some(piece) = pieces.get(token.id as usize).filter(|piece| !piece.is_empty()) else { continue };
        let (start, end) = (at(token.frame), at(token.frame + token.frames));
        match words.last_mut() {
            Some(word) if !begins_word(piece) => {
                word.text.extend(text_of(piece.trim_start_matches(SPACE)));
                if !is_punctuation(piece) {
                    word.end = end.max(word.end);
                }
                word.probability += token.probability;
                word.logarithms += token.probability.max(f32::MIN_POSITIVE).ln();
                word.tokens += 1;
            }
            _ => words.push(TimedWord {
                text: text_of(piece),
                start,
                end,
                probability: token.probability,
                logarithms: token.probability.max(f32::MIN_POSITIVE).ln(),
                tokens: 1,
            }),
        }
    }
    // A word that takes no time is heard in one frame, as far as the next one leaves it.
    let starts: Vec<Time> = words.iter().skip(1).map(|word| word.start).chain([span.end]).collect();
    for (word, next) in words.iter_mut().zip(starts) {
        let least = (word.start + FRAME).min(next.max(word.start));
        word.end = word.end.max(least);
    }
    words
}

/// Whether a segment ends behind these words, before `next`.
fn ends(words: &[TimedWord], next: &TimedWord) -> bool {
    let (Some(first), Some(last)) = (words.first(), words.last()) else { return false };
    let (pause, length) = (next.start.saturating_sub(last.end), last.end.saturating_sub(first.start));
    let text = String::from_utf8_lossy(&last.text);
    let text = text.trim().trim_end_matches(['"', '\'', '”', '»', ')']);
    let is_sentence = match text.chars().next_back() {
        Some('?' | '!' | '…' | '。') => true,
        Some('.') => {
            let letters = text.chars().filter(|c| c.is_alphanumeric()).count();
            letters > ABBREVIATION || pause >= SENTENCE_PAUSE
        }
        _ => false,
    };
    is_sentence
        || pause >= LONG_PAUSE
        || (length >= LONG_SEGMENT && pause >= SHORT_PAUSE)
        || length >= LONGEST_SEGMENT
}

/// `None` where nothing is said.
fn segment(words: &[TimedWord], word_times: bool) -> Option<Segment> {
    let (first, last) = (words.first()?, words.last()?);
    let text: Vec<u8> = words.iter().flat_map(|word| word.text.iter().copied()).collect();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if text.is_empty() {
        return None;
    }
    // Heard behind the end of the piece: as far before it as a frame is long.
    let start = if first.start < last.end { first.start } else { last.end.saturating_sub(FRAME) };
    let tokens: usize = words.iter().map(|word| word.tokens).sum();
    let timed = words.iter().map(|word| Word {
        text: String::from_utf8_lossy(&word.text).into_owned(),
        start: word.start,
        end: word.end,
        probability: word.probability / word.tokens as f32,
    });
    Some(Segment {
        start,
        end: last.end,
        text,
        words: if word_times { timed.collect() } else { Vec::new() },
        mean_log_probability: words.iter().map(|word| word.logarithms).sum::<f32>() / tokens as f32,
        ..Segment::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces with the frame at which each is heard, and frames that it takes.
    fn heard(tokens: &[(&str, usize, usize)]) -> (Vec<String>, Vec<Token>) {
        let pieces = tokens.iter().map(|(piece, ..)| (*piece).to_owned()).collect();
        let token = |(id, (_, frame, frames)): (usize, &(&str, usize, usize))| Token {
            id: id as u32,
            frame: *frame,
            frames: *frames,
            probability: 0.5,
        };
        (pieces, tokens.iter().enumerate().map(token).collect())
    }

    fn told(tokens: &[(&str, usize, usize)]) -> Vec<String> {
        let (pieces, tokens) = heard(tokens);
        let span = Span::new(Time::from_seconds(10.0), Time::from_seconds(40.0));
        segments(&words(&pieces, &tokens, span), true).into_iter().map(|segment| segment.text).collect()
    }

    #[test]
    fn words_have_the_times_of_their_tokens() {
        let (pieces, tokens) =
            heard(&[("▁He", 0, 2), ("llo", 2, 3), (",", 5, 4), ("▁wor", 10, 0), ("ld", 10, 0), (".", 12, 1)]);
        let span = Span::new(Time::from_seconds(10.0), Time::from_seconds(11.0));
        let found = segments(&words(&pieces, &tokens, span), true);
        assert_eq!(found.len(), 1);
        let timed: Vec<(&str, u32, u32)> =
            found[0].words.iter().map(|it| (it.text.as_str(), it.start.millis(), it.end.millis())).collect();
        // Punctuation takes no time, a word at least a frame, and nothing ends behind the piece.
        assert_eq!(timed, [(" Hello,", 10_000, 10_400), (" world.", 10_800, 10_880)]);
        assert_eq!((found[0].text.as_str(), found[0].words[0].probability), ("Hello, world.", 0.5));
        assert!((found[0].mean_log_probability - 0.5f32.ln()).abs() < 1e-6);
        let plain = segments(&words(&pieces, &tokens, span), false);
        assert!(plain[0].words.is_empty() && plain[0].text == found[0].text);
    }

    #[test]
    fn a_word_belongs_to_the_piece_that_it_begins_in() {
        let (pieces, tokens) = heard(&[
            ("▁be", 3, 1),
            ("fore", 4, 2),
            ("▁in", 6, 2),
            ("side", 11, 1),
            (".", 12, 0),
            ("▁be", 13, 1),
            ("hind", 14, 1),
        ]);
        // Frames of the spectrogram, eight to one of the encoder.
        let own = begun_within(&pieces, &tokens, 40..96);
        assert_eq!(own.iter().map(|token| token.id).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(begun_within(&pieces, &tokens, 0..usize::MAX), tokens);
        // The end of a word of which no beginning was heard.
        assert_eq!(begun_within(&pieces, &tokens[1..], 40..96).len(), 3);
    }

    #[test]
    fn a_word_that_is_heard_on_both_sides_of_a_gap_is_written_once() {
        let at = Time::from_seconds;
        // Words of half a second.
        let timed = |start: f64, text: &str| -> Vec<TimedWord> {
            let word = |(number, word): (usize, &str)| TimedWord {
                text: format!(" {word}").into_bytes(),
                start: at(start + 0.5 * number as f64),
                end: at(start + 0.5 * number as f64 + 0.5),
                probability: 1.0,
                logarithms: 0.0,
                tokens: 1,
            };
            text.split(' ').enumerate().map(word).collect()
        };
        // what is heard from which second on -> what is written, from when to when
        for (start, heard, written) in [
            (2.0, "keyboard behind the house.", Some(("keyboard behind the", 2.0, 3.5))),
            (1.5, "The keyboard", Some(("keyboard", 2.0, 2.5))),
            (2.0, "keyboard", Some(("keyboard", 2.0, 2.5))),
            (3.2, "house", None),
            // Said again after a while.
            (2.2, "The keyboard", Some(("The keyboard", 2.2, 3.2))),
            (2.4, "house", Some(("house", 2.4, 2.9))),
            // Marks are no words.
            (1.6, "— behind —", Some(("— behind —", 1.6, 3.1))),
            // The end of what is heard is where the next word begins.
            (3.0, "keyboard behind", Some(("keyboard behind", 3.0, 3.5))),
            // Heard in the silence behind it.
            (3.6, "keyboard", Some(("keyboard", 3.5, 3.5))),
        ] {
            let (before, behind) = (timed(1.0, "the"), timed(3.5, "House."));
            let found =
                without_repeats(timed(start, heard), before.first().map(TimedWord::as_last), behind.first());
            let text: Vec<u8> = found.iter().flat_map(|word| word.text.iter().copied()).collect();
            let text = String::from_utf8(text).unwrap();
            let ends = found.first().zip(found.last());
            let found = ends.map(|(first, last)| (text.trim(), first.start.seconds(), last.end.seconds()));
            assert_eq!(found, written, "{heard}");
        }
        assert_eq!(without_repeats(timed(2.0, "house"), None, None).len(), 1);
        let marks = timed(1.6, "—");
        assert_eq!(without_repeats(timed(2.0, "— no"), marks.first().map(TimedWord::as_last), None).len(), 2);
    }

    #[test]
    fn segments_end_where_sentences_or_phrases_do() {
        let one = |text: &str| vec![text.to_owned()];
        let two = |first: &str, second: &str| vec![first.to_owned(), second.to_owned()];
        assert_eq!(told(&[("▁Really", 0, 2), ("?", 2, 0), ("▁Yes", 3, 2)]), two("Really?", "Yes"));
        assert_eq!(told(&[("▁Really", 0, 2), (".", 2, 0), ("▁Yes", 3, 2)]), two("Really.", "Yes"));
        // An abbreviation, and the same letters at the end of a sentence.
        assert_eq!(told(&[("▁Dr", 0, 2), (".", 2, 0), ("▁No", 3, 2)]), one("Dr. No"));
        assert_eq!(told(&[("▁so", 0, 2), (".", 2, 0), ("▁No", 6, 2)]), two("so.", "No"));
        assert_eq!(told(&[("▁a", 0, 2), ("▁b", 20, 2)]), two("a", "b"));
        assert_eq!(told(&[("▁a", 0, 90), ("▁b", 98, 2), ("▁c", 101, 2)]), one("a b c"));
        assert_eq!(told(&[("▁a", 0, 101), ("▁b", 106, 2)]), two("a", "b"));
        let long: Vec<(&str, usize, usize)> = (0..60).map(|number| ("▁a", 4 * number, 4)).collect();
        assert_eq!(told(&long).len(), 2);
        assert_eq!(told(&[("", 0, 1), ("<0xC3>", 1, 1), ("<0xA9>", 2, 1)]), one("é"));
        assert!(told(&[]).is_empty());
    }
}
