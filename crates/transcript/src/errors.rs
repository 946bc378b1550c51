//! Words of a text that are not those of another one, as speech recognition counts them.

use crate::edit::words_between_punctuation as words;

/// A text compared with what was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Words of the reference in lower case, each with whether the text has it at its place.
    pub reference: Vec<(String, bool)>,
    /// Words wrong, missing or too many: the least number of changes that make the reference of the text.
    pub errors: usize,
}

/// Compares the words of `text` with those of `reference`, without regard to case and punctuation.
pub fn compare(reference: &str, text: &str) -> Comparison {
    let lower = |text| words(text).into_iter().map(str::to_lowercase).collect::<Vec<_>>();
    let (reference, found) = (lower(reference), lower(text));
    let width = found.len() + 1;
    // costs[i * width + j]: changes between the first i words and the first j.
    let mut costs = vec![0u32; (reference.len() + 1) * width];
    for i in 0..=reference.len() {
        for j in 0..=found.len() {
            costs[i * width + j] = match (i, j) {
                (0, _) => j as u32,
                (_, 0) => i as u32,
                _ => {
                    let wrong = u32::from(reference[i - 1] != found[j - 1]);
                    let replaced = costs[(i - 1) * width + j - 1] + wrong;
                    replaced.min(costs[(i - 1) * width + j] + 1).min(costs[i * width + j - 1] + 1)
                }
            };
        }
    }
    let mut right = vec![false; reference.len()];
    let (mut i, mut j) = (reference.len(), found.len());
    while i > 0 && j > 0 {
        let here = costs[i * width + j];
        let is_same = reference[i - 1] == found[j - 1];
        if costs[(i - 1) * width + j - 1] + u32::from(!is_same) == here {
            right[i - 1] = is_same;
            (i, j) = (i - 1, j - 1);
        } else if costs[(i - 1) * width + j] + 1 == here {
            i -= 1;
        } else {
            j -= 1;
        }
    }
    let errors = costs.last().copied().unwrap_or_default() as usize;
    Comparison { reference: reference.into_iter().zip(right).collect(), errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_counted_as_recognition_counts_them() {
        let cases = [
            ("Doctor Quill came.", "doctor quill came", 0, "yyy"),
            ("one two three", "one too three", 1, "yny"),
            ("one two three", "one three", 1, "yny"),
            ("one two", "one and two", 1, "yy"),
            ("one", "", 1, "n"),
            ("", "too much", 2, ""),
        ];
        for (reference, text, errors, right) in cases {
            let found = compare(reference, text);
            let marks: String = found.reference.iter().map(|(_, is)| if *is { 'y' } else { 'n' }).collect();
            assert_eq!((found.errors, marks.as_str()), (errors, right), "{reference} / {text}");
        }
    }
}
