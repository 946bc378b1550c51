//! Find and replace.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Edit;
use crate::Transcript;

/// A text to find. Accents are compared, unlike in the search of the history:
/// a replacement must not change words that only look similar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPattern {
    /// The text itself; an empty one is never found.
    pub text: String,
    /// Compare upper and lower case.
    pub case: bool,
    /// Match only where no letter or digit stands before or after.
    pub whole_words: bool,
}

impl TextPattern {
    /// Byte ranges of the matches in `text`. They don't overlap.
    pub fn matches(&self, text: &str) -> Vec<Range<usize>> {
        let wanted: Vec<char> = self.fold(&self.text).map(|(character, _)| character).collect();
        let Some(first) = wanted.first() else { return Vec::new() };
        let (mut matches, mut done) = (Vec::new(), 0);
        let same = |ascii: char| if self.case { ascii } else { ascii.to_ascii_lowercase() };
        for (at, character) in text.char_indices() {
            if character.is_ascii() && same(character) != *first {
                continue;
            }
            // A lower-case letter can have more characters than its capital (`İ`): a match may start
            // at any of them, but the letter is matched only once.
            for (within, (small, _)) in self.fold(&text[at..at + character.len_utf8()]).enumerate() {
                if small != *first || at < done {
                    continue;
                }
                let Some(length) = self.match_at_start(&text[at..], within, &wanted) else { continue };
                let range = at..at + length;
                if !self.whole_words || is_whole_word(text, &range) {
                    done = range.end;
                    matches.push(range);
                }
            }
        }
        matches
    }

    /// The text with all matches replaced by `with`, and their number; `None` if
    /// there is no match.
    pub fn replace(&self, text: &str, with: &str) -> Option<(String, usize)> {
        let matches = self.matches(text);
        if matches.is_empty() {
            return None;
        }
        let (mut new, mut done) = (String::new(), 0);
        for range in &matches {
            new.push_str(&text[done..range.start]);
            new.push_str(with);
            done = range.end;
        }
        new.push_str(&text[done..]);
        Some((new, matches.len()))
    }

    /// The edit that replaces all matches in a transcript by `with`, and their number.
    pub fn replace_all(&self, transcript: &Transcript, with: &str) -> (Edit, usize) {
        let replaced = transcript.segments.iter().filter_map(|segment| {
            let (text, count) = self.replace(&segment.text, with)?;
            Some(((segment.id, text), count))
        });
        let (texts, counts): (Vec<_>, Vec<usize>) = replaced.unzip();
        (Edit::SetTexts { texts }, counts.iter().sum())
    }

    /// Matches `wanted` at the start of `text`, after skipping `within` folded
    /// characters. Returns the length of the match in bytes of `text`.
    fn match_at_start(&self, text: &str, within: usize, wanted: &[char]) -> Option<usize> {
        let mut characters = self.fold(text).skip(within);
        wanted.iter().try_fold(0, |_, wanted| {
            let (character, end) = characters.next()?;
            (character == *wanted).then_some(end)
        })
    }

    /// The characters that are compared, each with the byte at which its letter ends.
    fn fold(&self, text: &str) -> impl Iterator<Item = (char, usize)> {
        text.char_indices().flat_map(|(at, character)| {
            let end = at + character.len_utf8();
            let small = (!self.case).then(|| character.to_lowercase());
            let same = self.case.then_some(character);
            same.into_iter().chain(small.into_iter().flatten()).map(move |character| (character, end))
        })
    }
}

fn is_whole_word(text: &str, range: &Range<usize>) -> bool {
    let beside = [text[..range.start].chars().next_back(), text[range.end..].chars().next()];
    !beside.into_iter().flatten().any(char::is_alphanumeric)
}
