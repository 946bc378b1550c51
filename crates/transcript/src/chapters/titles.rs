//! Titles of chapters, of the words that are said in them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

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
/// The other word of a pair says at least so much of what the first one does.
const LEAST_OF_PAIR: f64 = 0.5;
/// Characters of a word beyond which its length says no more of it.
const LONG_WORD: usize = 8;
/// Columns of a title that is the beginning of a sentence.
const LONGEST: usize = 48;
/// What ends a sentence before white space, and what ends it anywhere.
const ENDS: [char; 5] = ['.', '!', '?', '؟', '…'];
const WIDE_ENDS: [char; 3] = ['。', '！', '？'];

/// Titles of the chapters that begin with the blocks of these numbers, in order. `language` is an ISO 639-1
/// code, whose words of any talk are in no title.
pub fn titles(blocks: &[Block], starts: &[usize], language: &str) -> Vec<String> {
    let words: Vec<Vec<Word>> = blocks.iter().map(|block| words(&block.text)).collect();
    let ends = starts.iter().copied().skip(1).chain([blocks.len()]);
    let chapters: Vec<_> = starts.iter().zip(ends).map(|(start, end)| *start..end).collect();
    let said: Vec<Said> = chapters.iter().map(|chapter| Said::of(&words[chapter.clone()])).collect();
    let whole = Whole::of(&said, language);
    let title = |(said, chapter): (&Said, &Range<usize>)| match capitalised(&said.terms(&whole).join(", ")) {
        none if none.is_empty() => beginning(blocks[chapter.clone()].iter().map(|block| block.text.as_str())),
        title => title,
    };
    said.iter().zip(&chapters).map(title).collect()
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

/// The words of all chapters.
struct Whole<'a> {
    chapters: usize,
    total: usize,
    /// How often each word is said, and in how many chapters.
    words: HashMap<&'a str, (usize, usize)>,
    /// Words of the language that are said in any talk, in lower case.
    common: HashSet<&'static str>,
}

impl<'a> Whole<'a> {
    fn of(chapters: &[Said<'a>], language: &str) -> Self {
        let total = chapters.iter().map(|said| said.total).sum();
        let mut words: HashMap<&str, (usize, usize)> = HashMap::new();
        for (key, count) in chapters.iter().flat_map(|said| &said.words) {
            let (times, chapters) = words.entry(key).or_default();
            *times += count.times;
            *chapters += 1;
        }
        let common = stop_words::lookup(language).unwrap_or_default().iter().copied().collect();
        Self { chapters: chapters.len(), total, words, common }
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

    /// What is said here and hardly elsewhere, what says most first.
    fn terms(&self, whole: &Whole) -> Vec<String> {
        let elsewhere = (whole.total - self.total) as f64;
        // How much a word says; `None` where it is not distinctive. What is said ten times as often as elsewhere
        // names a subject better than a word of any talk, which other chapters have too.
        let score = |key: &str| {
            let times = self.words.get(key)?.times;
            let (all, chapters) = whole.words.get(key)?;
            let others = (all - times) as f64;
            let expected = times as f64 / self.total as f64 * elsewhere;
            // Half an occurrence more, so that what is said nowhere else is not beyond comparison.
            let ratio = (expected / (others + 0.5)).max(1.0).ln();
            let own = 1.0 - (chapters - 1) as f64 / whole.chapters as f64;
            // Short words are rather those of any talk.
            let length = key.chars().count().min(LONG_WORD) as f64;
            (is_name(key) && !whole.common.contains(key) && expected >= LEAST_RATIO * others)
                .then_some(times as f64 * ratio * ratio * own * length)
        };
        let mut found: Vec<(f64, &str)> = (self.words.iter())
            .filter(|(_, count)| count.blocks >= LEAST_BLOCKS)
            .filter_map(|(key, _)| Some((score(key)?, *key)))
            .collect();
        found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let least = found.first().map_or(0.0, |(best, _)| best * LEAST_SHARE);
        let mut used: Vec<&str> = Vec::new();
        let mut terms = Vec::new();
        for (points, key) in found {
            if terms.len() == MOST_TERMS || points <= 0.0 || points < least {
                break;
            }
            let is_used = |key: &str| used.iter().any(|other| is_same(other, key));
            if is_used(key) {
                continue;
            }
            let says_as_much =
                |key: &str| !is_used(key) && score(key).is_some_and(|it| it >= LEAST_OF_PAIR * points);
            let term: Vec<&str> = match self.pair(key, &says_as_much) {
                Some((first, second)) => vec![first, second],
                None => vec![key],
            };
            terms.push(term.iter().map(|key| self.words[key].form()).collect::<Vec<_>>().join(" "));
            used.extend(term);
        }
        terms
    }

    /// The pair in which a word is mostly said, with another one for which that is so too, and which `fits`.
    fn pair(&self, key: &str, fits: &dyn Fn(&str) -> bool) -> Option<(&'a str, &'a str)> {
        let is_mostly = |key: &str, pair: &Count| 2 * pair.times > self.words[key].times;
        let found = self.pairs.iter().filter(|((first, second), pair)| {
            (*first == key && fits(second) || *second == key && fits(first))
                && first != second
                && pair.blocks >= LEAST_BLOCKS
                && is_mostly(first, pair)
                && is_mostly(second, pair)
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
        assert_eq!(titles(&blocks, &starts, "en"), expected);
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
    fn words_of_any_talk_are_in_no_title() {
        // "und" is said here alone, and often.
        let boats = ["Und das Boot, und der Hafen.", "Und ein Boot, und noch ein Hafen."];
        let votes = ["Die Wahl ist nah, wir zählen bald.", "Eine Wahl ist wichtig, sie gilt lange."];
        let blocks: Vec<Block> = boats.iter().chain(&votes).map(|text| block(text)).collect();
        assert_eq!(titles(&blocks, &[0, 2], "de"), ["Hafen, Boot", "Wahl"]);
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
