//! Texts that no speaker says: the same words over and over, or more of them
//! than fit the time.

use transcript::Time;

/// The same words in a row this often are a loop. People do say "no, no, no".
const REPETITIONS: usize = 5;
/// The longest phrase looked for, in words.
const LONGEST_PHRASE: usize = 12;
/// Words per second beyond the fastest speakers (auctioneers reach 6).
const FASTEST: f64 = 9.0;
/// Fewer words than this may fall into a rounded-off instant.
const FEWEST_WORDS: usize = 5;

/// Whether some phrase is repeated [`REPETITIONS`] times or more in a row.
pub fn has_loop(text: &str) -> bool {
    let words = normalised(text);
    (1..=LONGEST_PHRASE).any(|length| longest_run(&words, length).is_some())
}

/// The text with each loop cut down to its phrase once; `None` where there is none.
pub fn without_loops(text: &str) -> Option<String> {
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let mut cut = false;
    for length in 1..=LONGEST_PHRASE {
        while let Some((start, repetitions)) = longest_run(&normalised(&words.join(" ")), length) {
            let from = start + length;
            let to = (start + length * repetitions).min(words.len());
            if from >= to {
                break;
            }
            words.drain(from..to);
            cut = true;
        }
    }
    cut.then(|| words.join(" "))
}

/// More words than fit between `start` and `end`.
pub fn is_too_fast(text: &str, start: Time, end: Time) -> bool {
    let words = text.split_whitespace().count();
    words >= FEWEST_WORDS && words as f64 > FASTEST * end.saturating_sub(start).seconds().max(0.1)
}

fn normalised(text: &str) -> Vec<String> {
    text.split_whitespace()
        .map(|word| {
            let bare: String = word.chars().filter(|c| c.is_alphanumeric()).collect();
            if bare.is_empty() { word.to_owned() } else { bare.to_lowercase() }
        })
        .collect()
}

/// Where a phrase of `length` words begins that is repeated often enough, and how often.
fn longest_run(words: &[String], length: usize) -> Option<(usize, usize)> {
    let mut start = 0;
    while start + length * REPETITIONS <= words.len() {
        let phrase = &words[start..start + length];
        let repetitions = words[start..].chunks_exact(length).take_while(|chunk| *chunk == phrase).count();
        if repetitions >= REPETITIONS {
            return Some((start, repetitions));
        }
        start += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_are_found_and_cut() {
        let cases = [
            ("No, no, no, I said.", None),
            ("Thank you. Thank you. Thank you. Thank you. Thank you.", Some("Thank you.")),
            ("So the the the the the the end", Some("So the end")),
            ("well a b c a b c a b c a b c a b c done", Some("well a b c done")),
            ("- - - - - - -", Some("-")),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(without_loops(text).as_deref(), expected, "{text}");
            assert_eq!(has_loop(text), expected.is_some(), "{text}");
        }
    }

    #[test]
    fn words_per_second_have_a_limit() {
        let at = Time::from_seconds;
        assert!(is_too_fast("one two three four five six seven eight nine ten", at(1.0), at(1.5)));
        assert!(!is_too_fast("one two three four five six seven eight nine ten", at(1.0), at(4.0)));
        assert!(!is_too_fast("yes it is", at(1.0), at(1.0)));
    }
}
