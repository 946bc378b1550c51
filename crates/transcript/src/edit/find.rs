//! Find and replace.

use std::ops::Range;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use super::Edit;
use crate::Transcript;

/// What to find. Accents are compared, unlike in the search of the history:
/// a replacement must not change words that only look similar.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextPattern {
    /// The text itself; an empty one is never found.
    pub text: String,
    /// Compare upper and lower case.
    pub case: bool,
    /// Match only where no letter or digit stands before or after.
    pub whole_words: bool,
    /// The text is a regular expression (the syntax of the crate `regex`), and `$1` in a replacement is
    /// what its first group matched.
    #[serde(default)]
    pub regular_expression: bool,
}

/// The text is not a regular expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("This is not a regular expression: {0}.")]
pub struct BadExpression(String);

impl TextPattern {
    /// Makes ready to search.
    ///
    /// # Errors
    /// If the text is to be a regular expression and is none.
    pub fn finder(&self) -> Result<Finder, BadExpression> {
        let what = if self.regular_expression {
            let built = RegexBuilder::new(&self.text).case_insensitive(!self.case).build();
            What::Expression(built.map_err(|error| BadExpression(reason(&error)))?)
        } else {
            let wanted = fold(&self.text, self.case).map(|(character, _)| character).collect();
            What::Letters { wanted, case: self.case }
        };
        Ok(Finder { what, whole_words: self.whole_words })
    }
}

/// The last line of the error's text, which says what is wrong; those before it draw the place.
fn reason(error: &regex::Error) -> String {
    let text = error.to_string();
    let last = text.lines().last().unwrap_or_default();
    last.trim().trim_start_matches("error: ").to_owned()
}

/// A [`TextPattern`] that is ready to search.
#[derive(Debug, Clone)]
pub struct Finder {
    what: What,
    whole_words: bool,
}

#[derive(Debug, Clone)]
enum What {
    /// These characters, folded if `case` is false.
    Letters {
        wanted: Vec<char>,
        case: bool,
    },
    Expression(Regex),
}

impl Finder {
    /// Byte ranges of the matches in `text`. They don't overlap, and none is empty.
    pub fn matches(&self, text: &str) -> Vec<Range<usize>> {
        let mut matches = match &self.what {
            What::Letters { wanted, case } => letters(text, wanted, *case, self.whole_words),
            What::Expression(expression) => expression.find_iter(text).map(|found| found.range()).collect(),
        };
        matches.retain(|range| !range.is_empty() && (!self.whole_words || is_whole_word(text, range)));
        matches
    }

    /// What the match at `range` of `text` becomes.
    fn replacement(&self, text: &str, range: &Range<usize>, with: &str) -> String {
        let captures = match &self.what {
            What::Letters { .. } => None,
            What::Expression(expression) => expression.captures_at(text, range.start),
        };
        captures.map_or_else(
            || with.to_owned(),
            |captures| {
                let mut replacement = String::new();
                captures.expand(&with_numbers_apart(with), &mut replacement);
                replacement
            },
        )
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
            new.push_str(&self.replacement(text, range, with));
            done = range.end;
        }
        new.push_str(&text[done..]);
        Some((new, matches.len()))
    }

    /// The text with the match at `range` replaced by `with`, and the byte behind
    /// what took its place; `None` if there is no such match.
    pub fn replace_one(&self, text: &str, range: &Range<usize>, with: &str) -> Option<(String, usize)> {
        let range = self.matches(text).into_iter().find(|found| found == range)?;
        let replacement = self.replacement(text, &range, with);
        let new = [&text[..range.start], &replacement, &text[range.end..]].concat();
        Some((new, range.start + replacement.len()))
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
}

/// `$1st` as `${1}st`: a group's number ends with its digits, as in other editors. The crate would look
/// for a group with the name `1st`.
fn with_numbers_apart(replacement: &str) -> String {
    let mut parts = replacement.split('$');
    let mut apart = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        let digits = part.len() - part.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
        match part.split_at(digits) {
            // `$$` is a sign, and so is a `$` at the end.
            ("", "") => apart.extend(["$$", parts.next().unwrap_or_default()]),
            ("", rest) => apart.extend(["$", rest]),
            (number, rest) => apart.extend(["${", number, "}", rest]),
        }
    }
    apart
}

/// Byte ranges of the characters `wanted` in `text`.
fn letters(text: &str, wanted: &[char], case: bool, whole_words: bool) -> Vec<Range<usize>> {
    let Some(first) = wanted.first() else { return Vec::new() };
    let (mut matches, mut done) = (Vec::new(), 0);
    let same = |ascii: char| if case { ascii } else { ascii.to_ascii_lowercase() };
    for (at, character) in text.char_indices() {
        if character.is_ascii() && same(character) != *first {
            continue;
        }
        // A lower-case letter can have more characters than its capital (`İ`): a match may start
        // at any of them, but the letter is matched only once.
        for (within, (small, _)) in fold(&text[at..at + character.len_utf8()], case).enumerate() {
            if small != *first || at < done {
                continue;
            }
            let Some(length) = match_at_start(&text[at..], within, wanted, case) else { continue };
            let range = at..at + length;
            if !whole_words || is_whole_word(text, &range) {
                done = range.end;
                matches.push(range);
            }
        }
    }
    matches
}

/// Matches `wanted` at the start of `text`, after skipping `within` folded
/// characters. Returns the length of the match in bytes of `text`.
fn match_at_start(text: &str, within: usize, wanted: &[char], case: bool) -> Option<usize> {
    let mut characters = fold(text, case).skip(within);
    wanted.iter().try_fold(0, |_, wanted| {
        let (character, end) = characters.next()?;
        (character == *wanted).then_some(end)
    })
}

/// The characters that are compared, each with the byte at which its letter ends.
fn fold(text: &str, case: bool) -> impl Iterator<Item = (char, usize)> {
    text.char_indices().flat_map(move |(at, character)| {
        let end = at + character.len_utf8();
        let small = (!case).then(|| character.to_lowercase());
        let same = case.then_some(character);
        same.into_iter().chain(small.into_iter().flatten()).map(move |character| (character, end))
    })
}

fn is_whole_word(text: &str, range: &Range<usize>) -> bool {
    let beside = [text[..range.start].chars().next_back(), text[range.end..].chars().next()];
    !beside.into_iter().flatten().any(char::is_alphanumeric)
}
