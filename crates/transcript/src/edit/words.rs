//! Aligning an edited text with its old words: unchanged words keep their
//! times, new words get estimated ones.

use crate::{Span, Time, Word};

/// Comparing more pairs of words than this takes too long at a keystroke. All
/// words of such a passage count as new.
const MAX_PAIRS: usize = 1 << 20;

/// Probability of a word that the user wrote.
const CERTAIN: f32 = 1.0;

/// The words of `text`, which replaces the text of `words`. Unchanged words keep
/// their times; new words share the time of the words that they replace, or the
/// pause between their neighbours.
pub fn align(words: &[Word], text: &str, span: Span) -> Vec<Word> {
    let (head, rest) = common_prefix(words, text);
    let (tail, rest) = common_suffix(&words[head..], rest);
    let to = words.len() - tail;
    let start = words[..head].last().map_or(span.start, |word| word.end);
    let end = words[to..].first().map_or(span.end, |word| word.start).max(start);
    let middle = match_words(&split_into_tokens(&words[head..to]), &tokens(rest), Span::new(start, end));
    let mut all = Vec::with_capacity(words.len() + middle.len());
    all.extend_from_slice(&words[..head]);
    all.extend(middle);
    all.extend_from_slice(&words[to..]);
    if joined_text(&all) != text.trim() {
        // The text has white space within a word.
        all = match_words(&split_into_tokens(words), &tokens(text), span);
    }
    if let (Some(first), Some(space)) = (all.first_mut(), words.first().map(leading_space)) {
        // The first word keeps the form that the model gives it, with or without leading white space.
        first.text = format!("{space}{}", first.text.trim_start());
    }
    all
}

/// The words of `text`, spread over `span` in proportion to their lengths.
pub fn spread_evenly(text: &str, span: Span) -> Vec<Word> {
    spread(&tokens(text), span)
}

/// The words before and after the first `at` characters of their joined text. A
/// word that lies on both sides is cut.
pub fn split(words: &[Word], at: usize) -> (Vec<Word>, Vec<Word>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut place = 0;
    for (index, word) in words.iter().enumerate() {
        let text = if index == 0 { word.text.trim_start() } else { &word.text };
        let end = place + text.chars().count();
        if end <= at {
            before.push(word.clone());
        } else if place + leading_space_count(text) >= at {
            after.push(word.clone());
        } else {
            let cut = text.char_indices().nth(at - place).map_or(text.len(), |(byte, _)| byte);
            let parts = spread(&[&text[..cut], &text[cut..]], Span::new(word.start, word.end));
            let [left, right] = parts.as_slice() else { continue };
            before.push(Word { probability: word.probability, ..left.clone() });
            after.push(Word { probability: word.probability, ..right.clone() });
        }
        place = end;
    }
    (before, after)
}

/// The text of the words, without surrounding white space.
pub fn joined_text(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<String>().trim().to_owned()
}

/// Whether a space belongs between two texts; Chinese and Japanese have none.
pub fn needs_space(before: &str, after: &str) -> bool {
    let cjk = |character: Option<char>| character.is_some_and(is_written_without_spaces);
    !(cjk(before.chars().next_back()) && cjk(after.chars().next()))
}

fn leading_space(word: &Word) -> &str {
    &word.text[..word.text.len() - word.text.trim_start().len()]
}

fn leading_space_count(text: &str) -> usize {
    text.chars().take_while(|character| character.is_whitespace()).count()
}

/// The number of words that the text starts with, and the text after them.
fn common_prefix<'a>(words: &[Word], text: &'a str) -> (usize, &'a str) {
    let mut rest = text;
    for (index, word) in words.iter().enumerate() {
        let wanted = if index == 0 { word.text.trim_start() } else { &word.text };
        match rest.strip_prefix(wanted) {
            Some(next) if !wanted.trim().is_empty() && starts_word(next) => rest = next,
            _ => return (index, rest),
        }
    }
    (words.len(), rest)
}

/// The number of words that the text ends with, and the text before them.
fn common_suffix<'a>(words: &[Word], text: &'a str) -> (usize, &'a str) {
    let mut rest = text;
    for (index, word) in words.iter().rev().enumerate() {
        let wanted = if index == 0 { word.text.trim_end() } else { &word.text };
        match rest.strip_suffix(wanted) {
            Some(next) if !wanted.trim().is_empty() && starts_word(wanted) => rest = next,
            _ => return (index, rest),
        }
    }
    (words.len(), rest)
}

fn starts_word(text: &str) -> bool {
    text.chars().next().is_none_or(|first| first.is_whitespace() || is_written_without_spaces(first))
}

/// Chinese characters and kana, each of which can be a word.
fn is_written_without_spaces(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{2fff}' | '\u{3040}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Splits a text into words, each with the white space before it.
fn tokens(text: &str) -> Vec<&str> {
    let mut starts = Vec::new();
    let mut before: Option<char> = None;
    for (byte, character) in text.char_indices() {
        let new = match before {
            None => true,
            Some(before) if before.is_whitespace() => false,
            Some(_) if character.is_whitespace() || is_written_without_spaces(character) => true,
            Some(before) => is_written_without_spaces(before) && character.is_alphanumeric(),
        };
        if new {
            starts.push(byte);
        }
        before = Some(character);
    }
    let ends = starts.iter().copied().skip(1).chain([text.len()]);
    let all = starts.iter().zip(ends).map(|(start, end)| &text[*start..end]);
    all.filter(|token| !token.trim().is_empty()).collect()
}

/// Splits words at the boundaries that [`tokens`] would split their texts at.
fn split_into_tokens(words: &[Word]) -> Vec<Word> {
    let mut all = Vec::new();
    for word in words {
        match tokens(&word.text).as_slice() {
            [] | [_] => all.push(word.clone()),
            several => {
                let parts = spread(several, Span::new(word.start, word.end));
                all.extend(parts.into_iter().map(|part| Word { probability: word.probability, ..part }));
            }
        }
    }
    all
}

/// Words over `span`, each with a share of the time in proportion to its length.
fn spread(texts: &[&str], span: Span) -> Vec<Word> {
    let length = |text: &str| text.trim().chars().count().max(1) as u64;
    let total: u64 = texts.iter().map(|text| length(text)).sum();
    let place = |done: u64| {
        let millis = u64::from(span.length().millis()) * done / total.max(1);
        span.start + Time::from_millis(u32::try_from(millis).unwrap_or(u32::MAX))
    };
    let mut done = 0;
    let word = |text: &&str| {
        let start = place(done);
        done += length(text);
        Word { text: (*text).into(), start, end: place(done), probability: CERTAIN }
    };
    texts.iter().map(word).collect()
}

/// Aligns old and new words by their longest common subsequence.
fn match_words(old: &[Word], new: &[&str], span: Span) -> Vec<Word> {
    let mut found = Vec::new();
    let (mut from_old, mut from_new) = (0, 0);
    let pairs = longest_common_subsequence(old, new);
    for (at_old, at_new) in
        pairs.into_iter().map(Some).chain([None]).map(|pair| pair.unwrap_or((old.len(), new.len())))
    {
        let start = found.last().map_or(span.start, |word: &Word| word.end);
        let end = old.get(at_old).map_or(span.end, |word| word.start).max(start);
        let replaced = &old[from_old..at_old];
        let within = match (replaced.first(), replaced.last()) {
            (Some(first), Some(last)) => {
                let from = first.start.clamp(start, end);
                Span::new(from, last.end.clamp(from, end))
            }
            _ => Span::new(start, end),
        };
        found.extend(spread(&new[from_new..at_new], within));
        if let (Some(word), Some(text)) = (old.get(at_old), new.get(at_new)) {
            found.push(Word { text: (*text).into(), ..word.clone() });
        }
        (from_old, from_new) = (at_old + 1, at_new + 1);
    }
    found
}

/// The longest common subsequence as pairs of indices, by dynamic programming.
fn longest_common_subsequence(old: &[Word], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > MAX_PAIRS {
        return Vec::new();
    }
    let width = new.len() + 1;
    let same = |row: usize, column: usize| old[row].text.trim() == new[column].trim();
    let mut length = vec![0u32; (old.len() + 1) * width];
    for row in (0..old.len()).rev() {
        for column in (0..new.len()).rev() {
            length[row * width + column] = if same(row, column) {
                length[(row + 1) * width + column + 1] + 1
            } else {
                length[(row + 1) * width + column].max(length[row * width + column + 1])
            };
        }
    }
    let (mut row, mut column, mut pairs) = (0, 0, Vec::new());
    while row < old.len() && column < new.len() {
        if same(row, column) {
            pairs.push((row, column));
            (row, column) = (row + 1, column + 1);
        } else if length[(row + 1) * width + column] >= length[row * width + column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    pairs
}
