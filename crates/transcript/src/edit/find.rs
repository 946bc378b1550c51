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
        let wanted: Vec<char> = self.text.chars().flat_map(|character| self.fold(character)).collect();
        if wanted.is_empty() {
            return Vec::new();
        }
        // A small letter may be more characters than its capital.
        let folded: Vec<(char, usize, usize)> = text
            .char_indices()
            .flat_map(|(at, character)| {
                let end = at + character.len_utf8();
                self.fold(character).into_iter().map(move |small| (small, at, end))
            })
            .collect();
        let (mut places, mut at) = (Vec::new(), 0);
        while let Some(window) = folded.get(at..at + wanted.len()) {
            let range = window[0].1..window[wanted.len() - 1].2;
            let found = window.iter().map(|(character, ..)| character).eq(&wanted)
                // A letter that is several when it is small is found once.
                && places.last().is_none_or(|last: &Range<usize>| last.end <= range.start);
            if found && (!self.whole_words || stands_alone(text, &range)) {
                places.push(range);
                at += wanted.len();
            } else {
                at += 1;
            }
        }
        places
    }

    /// The text with all places replaced, and how many there were; `None`
    /// where there is none.
    pub fn replace(&self, text: &str, with: &str) -> Option<(String, usize)> {
        let places = self.places(text);
        let (mut new, mut done) = (String::new(), 0);
        for place in &places {
            new.push_str(&text[done..place.start]);
            new.push_str(with);
            done = place.end;
        }
        new.push_str(&text[done..]);
        (!places.is_empty()).then_some((new, places.len()))
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

    fn fold(&self, character: char) -> Vec<char> {
        if self.case { vec![character] } else { character.to_lowercase().collect() }
    }
}

fn stands_alone(text: &str, place: &Range<usize>) -> bool {
    let beside = [text[..place.start].chars().next_back(), text[place.end..].chars().next()];
    !beside.into_iter().flatten().any(char::is_alphanumeric)
}
