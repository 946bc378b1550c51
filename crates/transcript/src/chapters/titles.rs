//! Titles of chapters, of the words that are said in them.

use std::collections::{BTreeMap, HashMap};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::Block;
use crate::export::space_between;
use crate::export::text::one_line;

/// Terms of a title.
const MOST_TERMS: usize = 3;
/// A term is said at least so many times as often in the chapter as elsewhere …
const LEAST_RATIO: f64 = 3.0;
/// … and in at least so many of its blocks.
const LEAST_BLOCKS: usize = 2;
/// Terms that say much less about a chapter than its best one are left out.
const LEAST_SHARE: f64 = 0.3;
/// Columns of a title that is the beginning of a sentence.
const LONGEST: usize = 48;
/// What ends a sentence before white space, and what ends it anywhere.
const ENDS: [char; 5] = ['.', '!', '?', '؟', '…'];
const WIDE_ENDS: [char; 3] = ['。', '！', '？'];

/// Titles of the chapters that begin with the blocks of these numbers, in order.
pub fn titles(blocks: &[Block], starts: &[usize]) -> Vec<String> {
    let words: Vec<Vec<Word>> = blocks.iter().map(|block| words(&block.text)).collect();
    let mut all: HashMap<&str, usize> = HashMap::new();
    for word in words.iter().flatten() {
        *all.entry(word.key.as_str()).or_default() += 1;
    }
    let total = words.iter().map(Vec::len).sum();
    let ends = starts.iter().copied().skip(1).chain([blocks.len()]);
    let title = |(start, end): (&usize, usize)| {
        let terms = Said::of(&words[*start..end]).terms(&all, total);
        match capitalised(&terms.join(", ")) {
            none if none.is_empty() => beginning(blocks[*start..end].iter().map(|block| block.text.as_str())),
            title => title,
        }
    };
    starts.iter().zip(ends).map(title).collect()
}

/// The beginning of the first sentence.
pub(crate) fn beginning<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for more in texts.map(one_line).filter(|more| !more.is_empty()) {
        if !text.is_empty() {
            text += space_between(&text, &more);
        }
        text += &more;
        if text.width() > LONGEST || text.ends_with(ENDS) || text.ends_with(WIDE_ENDS) {
            break;
        }
    }
    let next = |at: usize| text[at..].chars().nth(1);
    let is_end = |(at, c): &(usize, char)| {
        WIDE_ENDS.contains(c) || ENDS.contains(c) && next(*at).is_none_or(char::is_whitespace)
    };
    let end = text.char_indices().find(is_end).map_or(text.len(), |(at, _)| at);
    let sentence = text[..end].trim();
    let sentence = if sentence.is_empty() { text.trim() } else { sentence };
    if sentence.width() <= LONGEST {
        return sentence.to_owned();
    }
    let mut width = 0;
    let fits = |(_, c): &(usize, char)| {
        width += c.width().unwrap_or(0);
        width < LONGEST
    };
    let cut = sentence.char_indices().take_while(fits).last().map_or(0, |(at, c)| at + c.len_utf8());
    let part = &sentence[..cut];
    // Whole words, where there are any.
    let part = match part.rsplit_once(char::is_whitespace) {
        Some((words, _)) if !sentence[cut..].starts_with(char::is_whitespace) => words,
        _ => part,
    };
    format!("{}…", part.trim_end_matches(|c: char| !c.is_alphanumeric()))
}

/// A word of a script that has spaces.
struct Word {
    /// In lower case.
    key: String,
    /// As it is written.
    form: String,
    /// Nothing but white space lies between it and the word before.
    follows: bool,
}

fn words(text: &str) -> Vec<Word> {
    let is_hangul = |c: char| ('\u{AC00}'..='\u{D7A3}').contains(&c);
    let belongs = |c: char| c.is_alphanumeric() && (c.width() != Some(2) || is_hangul(c));
    let joins = |c: char| matches!(c, '\'' | '’' | '-');
    let mut words: Vec<Word> = Vec::new();
    let (mut form, mut follows) = (String::new(), false);
    for c in text.chars().chain(['\n']) {
        if belongs(c) || (joins(c) && !form.is_empty()) {
            form.push(c);
            continue;
        }
        if !form.is_empty() {
            let whole = form.trim_end_matches(joins);
            let whole = whole.strip_suffix("'s").or(whole.strip_suffix("’s")).unwrap_or(whole);
            words.push(Word { key: whole.to_lowercase(), form: whole.into(), follows });
            // What was cut off stands between this word and the next.
            follows = whole.len() == form.len();
            form.clear();
        }
        follows &= c.is_whitespace();
    }
    words
}

/// How often something is said in a chapter.
#[derive(Default)]
struct Count<'a> {
    times: usize,
    blocks: usize,
    latest: Option<usize>,
    forms: BTreeMap<&'a str, usize>,
}

impl<'a> Count<'a> {
    fn add(&mut self, block: usize, form: &'a str) {
        self.times += 1;
        self.blocks += usize::from(self.latest.replace(block) != Some(block));
        *self.forms.entry(form).or_default() += 1;
    }

    /// As it is written most often; in small letters, where that is as often.
    fn form(&self) -> &'a str {
        self.forms.iter().max_by_key(|(form, times)| (**times, **form)).map_or("", |(form, _)| form)
    }
}

/// The words of a chapter, and the pairs of words.
struct Said<'a> {
    total: usize,
    words: HashMap<&'a str, Count<'a>>,
    pairs: HashMap<(&'a str, &'a str), Count<'a>>,
}

impl<'a> Said<'a> {
    fn of(blocks: &'a [Vec<Word>]) -> Self {
        let mut said = Self { total: 0, words: HashMap::new(), pairs: HashMap::new() };
        for (number, words) in blocks.iter().enumerate() {
            said.total += words.len();
            for word in words {
                said.words.entry(&word.key).or_default().add(number, &word.form);
            }
            for pair in words.windows(2).filter(|pair| pair[1].follows) {
                said.pairs.entry((pair[0].key.as_str(), pair[1].key.as_str())).or_default().add(number, "");
            }
        }
        said
    }

    /// What is said here and hardly elsewhere, what says most first. `all`: how often each of the `total`
    /// words of the transcript is said.
    fn terms(&self, all: &HashMap<&str, usize>, total: usize) -> Vec<String> {
        let elsewhere = (total - self.total) as f64;
        // How much a word says; `None` where it is not distinctive.
        let score = |key: &str| {
            let times = self.words.get(key)?.times;
            let others = (all.get(key).copied().unwrap_or_default() - times) as f64;
            let expected = times as f64 / self.total as f64 * elsewhere;
            // Half an occurrence more, so that what is said nowhere else is not beyond comparison.
            let ratio = expected / (others + 0.5);
            (is_name(key) && expected >= LEAST_RATIO * others).then(|| times as f64 * ratio.max(1.0).ln())
        };
        let is_distinctive = |key: &str| score(key).is_some();
        let mut found: Vec<(f64, &str)> = (self.words.iter())
            .filter(|(_, count)| count.blocks >= LEAST_BLOCKS)
            .filter_map(|(key, _)| Some((score(key)?, *key)))
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let least = found.first().map_or(0.0, |(best, _)| best * LEAST_SHARE);
        let mut used: Vec<&str> = Vec::new();
        let mut terms = Vec::new();
        for (score, key) in found {
            if terms.len() == MOST_TERMS || score <= 0.0 || score < least {
                break;
            }
            if used.iter().any(|other| is_same(other, key)) {
                continue;
            }
            let term: Vec<&str> = match self.pair(key, &is_distinctive) {
                Some((first, second)) => vec![first, second],
                None => vec![key],
            };
            terms.push(term.iter().map(|key| self.words[key].form()).collect::<Vec<_>>().join(" "));
            used.extend(term);
        }
        terms
    }

    /// The pair of distinctive words in which a word is mostly said, and the other one too.
    fn pair(&self, key: &str, is_distinctive: &dyn Fn(&str) -> bool) -> Option<(&'a str, &'a str)> {
        let is_mostly = |key: &str, pair: &Count| 2 * pair.times > self.words[key].times;
        let found = self.pairs.iter().filter(|((first, second), pair)| {
            (*first == key || *second == key)
                && first != second
                && pair.blocks >= LEAST_BLOCKS
                && is_mostly(first, pair)
                && is_mostly(second, pair)
                && is_distinctive(first)
                && is_distinctive(second)
        });
        found.max_by_key(|(words, pair)| (pair.times, std::cmp::Reverse(**words))).map(|(words, _)| *words)
    }
}

/// Whether a word can name something.
fn is_name(key: &str) -> bool {
    key.chars().count() >= 3 && key.chars().any(char::is_alphabetic) && !key.contains(['\'', '’'])
}

/// Forms of one word, as far as their beginnings tell: "boat" and "boats".
fn is_same(one: &str, other: &str) -> bool {
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    long.strip_prefix(short).is_some_and(|ending| ending.chars().count() <= 2)
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Span, Time};

    fn block(text: &str) -> Block {
        Block { segments: 0..1, span: Span::new(Time::ZERO, Time::ZERO), text: text.into() }
    }

    #[track_caller]
    fn check(chapters: &[&[&str]], expected: &[&str]) {
        let blocks: Vec<Block> =
            chapters.iter().flat_map(|texts| texts.iter().map(|text| block(text))).collect();
        let mut starts = Vec::new();
        chapters.iter().fold(0, |start, texts| {
            starts.push(start);
            start + texts.len()
        });
        assert_eq!(titles(&blocks, &starts), expected);
    }

    #[test]
    fn titles_are_words_that_are_said_here_and_hardly_elsewhere() {
        check(
            &[
                &[
                    "The boat is old, so we sell the boat.",
                    "A boat costs much.",
                    "The boats in the harbour. The harbour!",
                ],
                &["The vote is near.", "We count the votes in Ghent.", "The vote is over. In Ghent we vote."],
            ],
            // "harbour" is said in one block only, "boats" is "boat" again.
            &["Boat", "Vote, Ghent"],
        );
    }

    #[test]
    fn pairs_replace_words_that_are_mostly_said_in_them() {
        check(
            &[
                &["Climate change is here.", "We feel climate change.", "The climate change is ours."],
                &["The budget of the town.", "A budget for us.", "That budget is ours."],
            ],
            &["Climate change", "Budget"],
        );
    }

    #[test]
    fn without_such_words_a_title_is_the_beginning_of_the_first_sentence() {
        check(
            &[
                &["Well, hello. We begin."],
                &["And that is all that I wanted to tell you about my long journey there."],
            ],
            &["Well, hello", "And that is all that I wanted to tell you about…"],
        );
        check(
            &[&["今日は船について話します。それから。"], &["次は選挙です。"]],
            &["今日は船について話します", "次は選挙です"],
        );
        check(&[&["…"], &["Version 2.0 is out"]], &["…", "Version 2.0 is out"]);
        assert_eq!(beginning(["船".repeat(40).as_str()].into_iter()), format!("{}…", "船".repeat(23)));
        assert_eq!(beginning([" \n", "I", "see it. So?"].into_iter()), "I see it");
        assert_eq!(beginning([].into_iter()), "");
    }
}
