//! Finding and replacing.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::Edit;
use crate::Transcript;

/// What to look for. Accents matter here, other than where one only searches:
/// what is replaced has to be what was meant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub text: String,
    /// Capitals matter.
    pub case: bool,
    /// Neither letter nor digit may stand beside it.
    pub whole_words: bool,
}

impl Finding {
    /// Byte ranges of the places in `text`, which do not overlap.
    pub fn places(&self, text: &str) -> Vec<Range<usize>> {
        let wanted: Vec<char> = self.fold(&self.text).map(|(character, _)| character).collect();
        let Some(first) = wanted.first() else { return Vec::new() };
        let (mut places, mut done) = (Vec::new(), 0);
        let same = |ascii: char| if self.case { ascii } else { ascii.to_ascii_lowercase() };
        for (at, character) in text.char_indices() {
            if character.is_ascii() && same(character) != *first {
                continue;
            }
            // A small letter may be more characters than its capital, and is found once all the same.
            for (within, (small, _)) in self.fold(&text[at..at + character.len_utf8()]).enumerate() {
                if small != *first || at < done {
                    continue;
                }
                let Some(length) = self.begins(&text[at..], within, &wanted) else { continue };
                let place = at..at + length;
                if !self.whole_words || stands_alone(text, &place) {
                    done = place.end;
                    places.push(place);
                }
            }
        }
        places
    }

    /// The text with all places replaced, and how many there were; `None`
    /// where there is none.
    pub fn replace(&self, text: &str, with: &str) -> Option<(String, usize)> {
        let places = self.places(text);
        if places.is_empty() {
            return None;
        }
        let (mut new, mut done) = (String::new(), 0);
        for place in &places {
            new.push_str(&text[done..place.start]);
            new.push_str(with);
            done = place.end;
        }
        new.push_str(&text[done..]);
        Some((new, places.len()))
    }

    /// What replaces all places in a transcript, and how many there are.
    pub fn replace_all(&self, transcript: &Transcript, with: &str) -> (Edit, usize) {
        let replaced = transcript.segments.iter().filter_map(|segment| {
            let (text, count) = self.replace(&segment.text, with)?;
            Some(((segment.id, text), count))
        });
        let (texts, counts): (Vec<_>, Vec<usize>) = replaced.unzip();
        (Edit::SetTexts { texts }, counts.iter().sum())
    }

    /// How many bytes of the text those are that `wanted` is found in, if it
    /// is, from the folded character `within` the first one on.
    fn begins(&self, text: &str, within: usize, wanted: &[char]) -> Option<usize> {
        let mut characters = self.fold(text).skip(within);
        wanted.iter().try_fold(0, |_, wanted| {
            let (character, end) = characters.next()?;
            (character == *wanted).then_some(end)
        })
    }

    /// The characters that are compared, each with the end of its letter.
    fn fold(&self, text: &str) -> impl Iterator<Item = (char, usize)> {
        text.char_indices().flat_map(|(at, character)| {
            let end = at + character.len_utf8();
            let small = (!self.case).then(|| character.to_lowercase());
            let same = self.case.then_some(character);
            same.into_iter().chain(small.into_iter().flatten()).map(move |character| (character, end))
        })
    }
}

fn stands_alone(text: &str, place: &Range<usize>) -> bool {
    let beside = [text[..place.start].chars().next_back(), text[place.end..].chars().next()];
    !beside.into_iter().flatten().any(char::is_alphanumeric)
}
