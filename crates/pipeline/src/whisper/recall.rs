//! Remembered corrections: where the decoder is in a state similar to one in which its words were corrected,
//! the user's words are written instead.
//!
//! Only the text of those words changes. The model itself goes on from its own text, so that a word that it does
//! not know can't mislead it about what follows.

use std::ops::Range;

use formats::RememberedCorrection;
use transcript::edit::{compare_words, words_between_punctuation};

use super::timing::{AlignedWord, Recalled};

/// The least cosine between a state and that of a correction for the correction to be written. Where few right words
/// were heard, this alone protects other words (docs/measurements.md).
const LEAST: f32 = 0.7;

/// By how much that cosine must exceed the greatest one between the correction and any word that was right.
const MARGIN: f32 = 0.05;

/// A word between white space, which may be several aligned words.
struct Spoken {
    /// From the first to the last of its aligned words with letters or digits.
    aligned: Range<usize>,
    /// Without punctuation around it.
    text: String,
}

/// The words between white space.
fn spoken(words: &[AlignedWord]) -> Vec<Spoken> {
    let begins = |word: &AlignedWord| word.text.starts_with(char::is_whitespace);
    let is_word = |word: &AlignedWord| word.text.chars().any(char::is_alphanumeric);
    let mut found = Vec::new();
    let mut start = 0;
    for group in words.chunk_by(|_, next| !begins(next)) {
        if let Some(first) = group.iter().position(is_word) {
            let end = group.iter().rposition(is_word).map_or(group.len(), |last| last + 1);
            let text: String = group[first..end].iter().map(|word| word.text.as_str()).collect();
            let text = words_between_punctuation(&text).join(" ");
            found.push(Spoken { aligned: start + first..start + end, text });
        }
        start += group.len();
    }
    found
}

/// Writes the user's words where the decoder's state is similar to that of a remembered correction. `words` are those of a
/// passage.
pub fn recall(remembered: &[RememberedCorrection], language: &str, words: &mut Vec<AlignedWord>) {
    let spoken = spoken(words);
    let mut at = 0;
    while at < spoken.len() {
        let state = &words[spoken[at].aligned.start].state;
        let Some(known) = nearest(remembered, language, state) else {
            at += 1;
            continue;
        };
        // Several words must be those that were heard; for one, the state says enough.
        let heard: Vec<&str> = known.heard.split(' ').collect();
        let here = &spoken[at..(at + heard.len()).min(spoken.len())];
        let same = here.iter().map(|word| word.text.to_lowercase());
        let is_same = same.eq(heard.iter().map(|word| word.to_lowercase()));
        if heard.len() > 1 && !is_same {
            at += 1;
            continue;
        }
        let range = here[0].aligned.start..here[here.len() - 1].aligned.end;
        let word = as_here(known, here, is_same, at == 0);
        write(&mut words[range], word);
        at += here.len();
    }
    words.retain(|word| !word.text.is_empty());
}

/// What was corrected in the most similar state, if it is similar enough.
fn nearest<'a>(
    remembered: &'a [RememberedCorrection],
    language: &str,
    state: &[f32],
) -> Option<&'a RememberedCorrection> {
    let own = remembered.iter().filter(|known| known.language == language);
    let alike = own.map(|known| (cosine(&known.state, state), known));
    let similar = alike.filter(|(alike, known)| *alike > known.least);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, known)| known)
}

/// Of vectors of length 1.
fn cosine(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The corrected word with the capital and the possessive ending of what was heard here.
/// `is_same`: the same words are heard, perhaps in another case; `is_first`: a passage begins with them.
fn as_here(known: &RememberedCorrection, here: &[Spoken], is_same: bool, is_first: bool) -> String {
    let is_upper = |text: &str| text.starts_with(char::is_uppercase);
    let mut word = known.word.clone();
    let is_upper_here = is_upper(&here[0].text);
    if (is_same || (is_first && is_upper_here)) && is_upper_here != is_upper(&known.heard) {
        let mut rest = known.word.chars();
        let first: String = match (rest.next(), is_upper_here) {
            (Some(first), true) => first.to_uppercase().collect(),
            (Some(first), false) => first.to_lowercase().collect(),
            (None, _) => String::new(),
        };
        word = first + rest.as_str();
    }
    let last = &here[here.len() - 1].text;
    for possessive in ["'s", "’s"] {
        if last.ends_with(possessive) && !known.heard.ends_with(possessive) && !word.ends_with(possessive) {
            word.push_str(possessive);
        }
    }
    word
}

/// One word in place of several, which are left behind empty.
fn write(words: &mut [AlignedWord], word: String) {
    let heard: String = words.iter().map(|word| word.text.as_str()).collect();
    let Some((first, rest)) = words.split_first_mut() else { return };
    for other in rest {
        first.end = other.end;
        first.tokens.append(&mut other.tokens);
        other.text.clear();
    }
    let start = heard.find(char::is_alphanumeric).unwrap_or_default();
    let end = heard.trim_end_matches(|c: char| !c.is_alphanumeric()).len().max(start);
    first.text = format!("{}{word}{}", &heard[..start], &heard[end..]);
    first.recalled = Some(Recalled { heard: heard[start..end].to_owned(), word });
}

/// The text of a passage, which is `written` by the model, with what was recalled in it.
pub fn with_recalled(written: &str, words: &[AlignedWord]) -> String {
    let (mut text, mut rest) = (String::new(), written);
    for word in words {
        let (heard, word) = match &word.recalled {
            Some(Recalled { heard, word }) => (heard.as_str(), word.as_str()),
            None => (word.text.trim(), word.text.trim()),
        };
        // A word may have punctuation that belongs to the next passage.
        let Some(at) = rest.find(heard) else { continue };
        text.push_str(&rest[..at]);
        text.push_str(word);
        rest = &rest[at + heard.len()..];
    }
    text.push_str(rest);
    text
}

/// What a model wrote where the user corrected it, and how much its states there are like those before words that
/// are right.
#[derive(Debug, Default)]
pub struct Heard {
    /// Their `least` counts the right words that were compared so far.
    pub corrected: Vec<RememberedCorrection>,
    /// States before right words that were not compared with the corrected ones yet.
    right: Vec<Vec<f32>>,
}

impl Heard {
    /// Compares what the model wrote with what is said. `is_corrected`: words that differ are corrections; otherwise they
    /// are left out.
    pub fn compare(&mut self, words: &[AlignedWord], text: &str, language: &str, is_corrected: bool) {
        let spoken = spoken(words);
        let heard: Vec<&str> = spoken.iter().map(|word| word.text.as_str()).collect();
        let state = |word: usize| words[spoken[word].aligned.start].state.clone();
        for (run, correction) in compare_words(&heard.join(" "), text) {
            let Some(correction) = correction else {
                self.right.extend(run.map(state));
                continue;
            };
            if !is_corrected {
                continue;
            }
            let remember = |heard: &str, word: &str, at: usize| RememberedCorrection {
                language: language.to_owned(),
                heard: heard.to_owned(),
                word: word.to_owned(),
                least: LEAST,
                state: state(at),
            };
            let written: Vec<&str> = correction.word.split(' ').collect();
            if written.len() != run.len() {
                self.corrected.push(remember(&correction.heard, &correction.word, run.start));
                continue;
            }
            // As many words: each in place of one.
            let pairs = run.zip(correction.heard.split(' ').zip(written));
            self.corrected.extend(pairs.map(|(at, (heard, word))| remember(heard, word, at)));
        }
    }

    /// Raises the `least` of each correction above its similarity with the right words heard since the last call. Corrections
    /// that are heard later are not compared with these words.
    pub fn settle(&mut self) {
        let right = std::mem::take(&mut self.right);
        for RememberedCorrection { state, least, .. } in &mut self.corrected {
            let alike = right.iter().map(|other| cosine(state, other)).fold(-1.0, f32::max);
            *least = least.max(alike + MARGIN);
        }
    }

    /// The first word of each stretch that was corrected, in lower case.
    pub fn mistaken(&self) -> impl Iterator<Item = String> {
        self.corrected.iter().filter_map(|known| known.heard.split(' ').next().map(str::to_lowercase))
    }

    /// What is to be remembered: corrections whose state is unlike that of each word that was right.
    pub fn remembered(mut self) -> Vec<RememberedCorrection> {
        self.settle();
        // No cosine exceeds 1: these could never be recalled.
        self.corrected.into_iter().filter(|known| known.least < 1.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words as the aligner splits them, each with a state of two numbers.
    fn aligned(words: &[(&str, [f32; 2])]) -> Vec<AlignedWord> {
        let word = |(number, (text, state)): (usize, &(&str, [f32; 2]))| AlignedWord {
            text: (*text).into(),
            tokens: vec![number as u32],
            start: number as f64,
            end: number as f64 + 1.0,
            probability: 0.5,
            state: state.to_vec(),
            recalled: None,
        };
        words.iter().enumerate().map(word).collect()
    }

    fn known(heard: &str, word: &str, state: [f32; 2]) -> RememberedCorrection {
        let (language, heard, word) = ("en".into(), heard.into(), word.into());
        RememberedCorrection { language, heard, word, least: 0.9, state: state.into() }
    }

    /// The text afterwards, and the end and tokens of each word that is left.
    fn recalled(
        remembered: &[RememberedCorrection],
        words: &[(&str, [f32; 2])],
    ) -> (String, Vec<(f64, usize)>) {
        let mut words = aligned(words);
        let written: String = words.iter().map(|word| word.text.as_str()).collect();
        recall(remembered, "en", &mut words);
        let places = words.iter().map(|word| (word.end, word.tokens.len())).collect();
        let text: String = words.iter().map(|word| word.text.as_str()).collect();
        assert_eq!(with_recalled(&written, &words), text);
        (text, places)
    }

    const A: [f32; 2] = [1.0, 0.0];
    const B: [f32; 2] = [0.0, 1.0];
    /// Its cosine with A is 0.8.
    const BETWEEN: [f32; 2] = [0.8, 0.6];

    #[test]
    fn words_are_replaced_where_the_state_is_similar_enough() {
        let peter = [known("Peter", "Paganini", A)];
        let cases = [
            (vec![(" Then", B), (" Peter", A), (" came", B), (".", B)], " Then Paganini came."),
            // Another word, in the same state.
            (vec![(" “", B), ("Noah", A), (",", B), (" who", B)], " “Paganini, who"),
            (vec![(" Peter", BETWEEN), (" came", B)], " Peter came"),
            (vec![(" Peter", A), ("'s", B), (" hat", B)], " Paganini's hat"),
            (vec![(" Pe", A), ("ter", A), (" came", B)], " Paganini came"),
        ];
        for (words, expected) in cases {
            assert_eq!(recalled(&peter, &words).0, expected, "{words:?}");
        }
        let (_, places) = recalled(&peter, &[(" Pe", A), ("ter", B), (" came", B)]);
        assert_eq!(places, [(2.0, 2), (3.0, 1)], "the word lasts as long, and has all tokens");
        assert_eq!(recalled(&[], &[(" Peter", A)]).0, " Peter");
        let mut german = peter.clone();
        german[0].language = "de".into();
        assert_eq!(recalled(&german, &[(" Peter", A)]).0, " Peter", "in another language");
        // The most similar one.
        let two = [known("a", "less", BETWEEN), known("a", "more", A)];
        assert_eq!(recalled(&two, &[(" a", A)]).0, " more");
    }

    #[test]
    fn several_words_are_replaced_only_where_the_same_were_heard() {
        let drug = [known("met a pro law", "metoprolol", A)];
        let sentence = [(" Met", A), (" a", B), (" pro", B), (" law", B), (" helps", B), (".", B)];
        // It begins the sentence.
        assert_eq!(recalled(&drug, &sentence).0, " Metoprolol helps.");
        assert_eq!(recalled(&drug, &sentence).1, [(4.0, 4), (5.0, 1), (6.0, 1)]);
        let capital = [known("Met a pro law", "Metoprolol", A)];
        let inside = [(" take", B), (" met", A), (" a", B), (" pro", B), (" law.", B)];
        assert_eq!(recalled(&capital, &inside).0, " take metoprolol.");
        assert_eq!(
            recalled(&drug, &[(" met", A), (" a", B), (" friend", B)]).0,
            " met a friend",
            "the words are others"
        );
        assert_eq!(recalled(&drug, &[(" met", A), (" a", B)]).0, " met a", "the end comes first");
    }

    #[test]
    fn what_was_recalled_is_put_into_the_text_of_its_passage_alone() {
        let mut words = aligned(&[(" Peter", B), (" and", B), (" Peter,", A), (" too.\"", B)]);
        recall(&[known("Peter", "Paganini", A)], "en", &mut words);
        // The quotation mark is the next passage's.
        assert_eq!(with_recalled("Peter and Peter, too.", &words), "Peter and Paganini, too.");
        assert_eq!(with_recalled(" “Peter and Peter", &words), " “Peter and Paganini");
    }

    #[test]
    fn corrections_are_remembered_apart_from_words_that_are_right() {
        let words = [(" So", B), (" Peter", A), (" and", B), (" Anna", BETWEEN), (" came", B), (".", B)];
        let remembered = |text: &str, is_corrected| -> Vec<(String, String, f32)> {
            let mut heard = Heard::default();
            heard.compare(&aligned(&words), text, "en", is_corrected);
            heard.remembered().into_iter().map(|it| (it.heard, it.word, it.least)).collect()
        };
        let pair = |heard: &str, word: &str, least| (heard.to_owned(), word.to_owned(), least);
        let found = remembered("So Paganini and Anna came.", true);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].0.as_str(), found[0].1.as_str()), ("Peter", "Paganini"));
        assert!((found[0].2 - (0.8 + MARGIN)).abs() < 1e-6, "further than Anna, which is right: {found:?}");
        // Each word in place of one.
        let found = remembered("So Paganini and Hannah Arendt came.", true);
        assert_eq!(found, [pair("Peter", "Paganini", LEAST), pair("Anna", "Hannah Arendt", LEAST)]);
        assert_eq!(remembered("So Paganini and Anna came.", false), [], "not corrected");
        assert_eq!(remembered("so peter and Anna came", true), [], "only case and stops differ");
        // A state in which the word is right as well tells nothing.
        let mut heard = Heard::default();
        heard.compare(&aligned(&[(" Peter", A)]), "Paganini", "en", true);
        heard.compare(&aligned(&[(" Peter", A)]), "Peter", "en", false);
        assert_eq!(heard.remembered(), []);
    }
}
