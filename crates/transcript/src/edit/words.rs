//! Which words of a text that was changed are those of before, and when the
//! others were said.

use crate::{Span, Time, Word};

/// Comparing more pairs of words than this takes too long to wait for at a
/// keystroke; such a passage counts as written anew.
const MOST_PAIRS: usize = 1 << 20;

/// What somebody wrote is not doubted.
const CERTAIN: f32 = 1.0;

/// The words of `text`, which takes the place of what `words` spell. Words
/// that stay keep their times; the others share those of the words that they
/// replace, or the pause between their neighbours.
pub fn align(words: &[Word], text: &str, span: Span) -> Vec<Word> {
    let (head, rest) = same_head(words, text);
    let (tail, rest) = same_tail(&words[head..], rest);
    let to = words.len() - tail;
    let start = words[..head].last().map_or(span.start, |word| word.end);
    let end = words[to..].first().map_or(span.end, |word| word.start).max(start);
    let middle = match_words(&pieces(&words[head..to]), &tokens(rest), Span::new(start, end));
    let mut all = Vec::with_capacity(words.len() + middle.len());
    all.extend_from_slice(&words[..head]);
    all.extend(middle);
    all.extend_from_slice(&words[to..]);
    if spelt(&all) != text.trim() {
        // White space came where words have none.
        all = match_words(&pieces(words), &tokens(text), span);
    }
    if let (Some(first), Some(space)) = (all.first_mut(), words.first().map(leading)) {
        // As the model writes it: with or without white space before it.
        first.text = format!("{space}{}", first.text.trim_start());
    }
    all
}

/// Words of equal speed.
pub fn share(text: &str, span: Span) -> Vec<Word> {
    spread(&tokens(text), span)
}

/// The words before and after the first `at` characters of what they spell;
/// one that lies on both sides is cut.
pub fn split(words: &[Word], at: usize) -> (Vec<Word>, Vec<Word>) {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let mut place = 0;
    for (index, word) in words.iter().enumerate() {
        let text = if index == 0 { word.text.trim_start() } else { &word.text };
        let end = place + text.chars().count();
        if end <= at {
            before.push(word.clone());
        } else if place + leading_count(text) >= at {
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

/// What the words say, without white space around it.
pub fn spelt(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<String>().trim().to_owned()
}

/// Whether white space between two texts is needed to tell them apart.
pub fn is_apart(before: &str, after: &str) -> bool {
    let cjk = |character: Option<char>| character.is_some_and(is_written_without_spaces);
    !(cjk(before.chars().next_back()) && cjk(after.chars().next()))
}

fn leading(word: &Word) -> &str {
    &word.text[..word.text.len() - word.text.trim_start().len()]
}

fn leading_count(text: &str) -> usize {
    text.chars().take_while(|character| character.is_whitespace()).count()
}

/// How many words the text begins with, and what follows them.
fn same_head<'a>(words: &[Word], text: &'a str) -> (usize, &'a str) {
    let mut rest = text;
    for (index, word) in words.iter().enumerate() {
        let wanted = if index == 0 { word.text.trim_start() } else { &word.text };
        match rest.strip_prefix(wanted) {
            Some(next) if !wanted.trim().is_empty() && begins_word(next) => rest = next,
            _ => return (index, rest),
        }
    }
    (words.len(), rest)
}

/// How many words the text ends with, and what precedes them.
fn same_tail<'a>(words: &[Word], text: &'a str) -> (usize, &'a str) {
    let mut rest = text;
    for (index, word) in words.iter().rev().enumerate() {
        let wanted = if index == 0 { word.text.trim_end() } else { &word.text };
        match rest.strip_suffix(wanted) {
            Some(next) if !wanted.trim().is_empty() && begins_word(wanted) => rest = next,
            _ => return (index, rest),
        }
    }
    (words.len(), rest)
}

fn begins_word(text: &str) -> bool {
    text.chars().next().is_none_or(|first| first.is_whitespace() || is_written_without_spaces(first))
}

/// Chinese characters and kana, each of which can be a word.
fn is_written_without_spaces(character: char) -> bool {
    matches!(character, '\u{2e80}'..='\u{2fff}' | '\u{3040}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// The words of a text, each with the white space before it; together they
/// are the whole text.
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

/// Words as fine as tokens are.
fn pieces(words: &[Word]) -> Vec<Word> {
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

/// Shares a time by the length of the texts.
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

fn match_words(old: &[Word], new: &[&str], span: Span) -> Vec<Word> {
    let mut found = Vec::new();
    let (mut from_old, mut from_new) = (0, 0);
    let pairs = common(old, new);
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

/// The longest common subsequence, as pairs of indices.
fn common(old: &[Word], new: &[&str]) -> Vec<(usize, usize)> {
    if old.len().saturating_mul(new.len()) > MOST_PAIRS {
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
