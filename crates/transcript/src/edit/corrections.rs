//! Words that an edit put in place of others: what a user corrects again and again, a model should be told to
//! expect.

use std::ops::Range;

use super::Change;

/// Most words on either side of a correction. More is a new sentence, and teaches no word.
const MAX_WORDS: usize = 4;
/// Most characters of the corrected words.
const MAX_LENGTH: usize = 40;

/// Words that were written in place of others, once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Correction {
    /// What was there.
    pub heard: String,
    /// What stands there now, without punctuation around it.
    pub word: String,
}

/// The corrections of an edit. What differs in case or punctuation alone is none, nor is text that was added
/// or removed.
pub fn corrections(changes: &[Change]) -> Vec<Correction> {
    let mut found = Vec::new();
    for change in changes {
        match change {
            Change::Text { before, after, .. } => find(before, after, &mut found),
            // As a replacement in many segments at once has it.
            Change::Segments { removed, inserted, .. } if removed.len() == inserted.len() => {
                for (old, new) in removed.iter().zip(inserted) {
                    find(&old.text, &new.text, &mut found);
                }
            }
            _ => {}
        }
    }
    found
}

fn find(before: &str, after: &str, found: &mut Vec<Correction>) {
    let compared = compare_words(before, after);
    found.extend(compared.into_iter().filter_map(|(_, correction)| correction));
}

/// The words of `before`, as [`words`] numbers them, in runs: those that stand in `after` as well (`None`), and those in
/// whose place it has others. Words that were added, removed or replaced by a new sentence are in no run.
pub fn compare_words(before: &str, after: &str) -> Vec<(Range<usize>, Option<Correction>)> {
    let (old, new) = (words(before), words(after));
    let keys = |words: &[&str]| words.iter().map(|word| word.to_lowercase()).collect::<Vec<_>>();
    let (old_keys, new_keys) = (keys(&old), keys(&new));
    let steps = similar::capture_diff_slices(similar::Algorithm::Myers, &old_keys, &new_keys);
    let mut found = Vec::new();
    for step in steps {
        let (from, to) = (&old[step.old_range()], &new[step.new_range()]);
        if step.tag() == similar::DiffTag::Equal {
            found.push((step.old_range(), None));
            continue;
        }
        let is_one = |words: &[&str]| (1..=MAX_WORDS).contains(&words.len());
        let correction = Correction { heard: from.join(" "), word: to.join(" ") };
        let joined = |text: &str| text.split_whitespace().collect::<String>().to_lowercase();
        if is_one(from)
            && is_one(to)
            && correction.word.chars().count() <= MAX_LENGTH
            && correction.word.chars().any(char::is_alphabetic)
            && joined(&correction.heard) != joined(&correction.word)
        {
            found.push((step.old_range(), Some(correction)));
        }
    }
    found
}

/// The words of a text, without punctuation around them.
pub fn words(text: &str) -> Vec<&str> {
    let inner = |word: &'_ str| -> Option<(usize, usize)> {
        let start = word.find(char::is_alphanumeric)?;
        let (end, last) = word.char_indices().rfind(|(_, c)| c.is_alphanumeric())?;
        Some((start, end + last.len_utf8()))
    };
    text.split_whitespace().filter_map(|word| inner(word).map(|(start, end)| &word[start..end])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Segment, Time};

    fn text(before: &str, after: &str) -> Change {
        Change::Text {
            at: 0,
            segment: 1,
            start: Time::ZERO,
            before: before.into(),
            after: after.into(),
            word: 0,
            removed: Vec::new(),
            inserted: Vec::new(),
        }
    }

    #[test]
    fn words_in_place_of_others_are_corrections() {
        type Pairs = &'static [(&'static str, &'static str)];
        let cases: [(&str, &str, Pairs); 9] = [
            (
                "He takes met a pro law daily.",
                "He takes metoprolol daily.",
                &[("met a pro law", "metoprolol")],
            ),
            ("From R who's, today.", "From Aarhus, today.", &[("R who's", "Aarhus")]),
            (
                "Young Berg and Ram April.",
                "Ljungberg and ramipril.",
                &[("Young Berg", "Ljungberg"), ("Ram April", "ramipril")],
            ),
            ("the same", "The same!", &[]),
            ("meto prolol", "metoprolol", &[]),
            ("one two", "one and two", &[]),
            ("one and two", "one two", &[]),
            ("page 7", "page 9", &[]),
            ("a b c d e f", "u v w x y z", &[]),
        ];
        for (before, after, expected) in cases {
            let expected: Vec<Correction> = expected
                .iter()
                .map(|(heard, word)| Correction { heard: (*heard).into(), word: (*word).into() })
                .collect();
            assert_eq!(corrections(&[text(before, after)]), expected, "{before} -> {after}");
        }
    }

    #[test]
    fn replaced_segments_have_corrections_and_split_ones_have_none() {
        let segment = |text: &str| Segment { text: text.into(), ..Segment::default() };
        let replaced = Change::Segments {
            at: 0,
            removed: vec![segment("in R who's"), segment("yes")],
            inserted: vec![segment("in Aarhus"), segment("yes")],
        };
        let split = Change::Segments {
            at: 0,
            removed: vec![segment("one two")],
            inserted: vec![segment("one"), segment("two")],
        };
        let found = corrections(&[replaced, split]);
        assert_eq!(found, [Correction { heard: "R who's".into(), word: "Aarhus".into() }]);
    }
}
