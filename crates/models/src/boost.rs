//! Words to expect: what is added to the logits of the tokens that lead to them (shallow fusion).
//!
//! A prefix tree has the tokens of each phrase. A hypothesis is at several of its nodes at once, as in Aho and
//! Corasick's automaton: a phrase may begin while another is being written. Each token on the way is worth some nats, so
//! that one which the model rates further below its best is never taken, whatever the list says.
//! A token costs a hypothesis minus the logarithm of its probability, and is worth at most nine tenths of that: a beam
//! search gains nothing by writing a likely word of the list again, and of two such words the likelier one stays ahead.
//! Where a transducer's beams come to the same text in several ways, this holds for each of them. A greedy search chooses
//! each token by itself and compares no such sums.
//! A path that is left before its phrase is complete is worth nothing. A beam search sees that in the score of the
//! hypothesis. A greedy one goes back to where it left the model's own choice for the path (a [`Detour`]), and takes that
//! choice. A search that draws does without: it can't go back.
//!
//! NeMo's GPU-PB (Andrusenko and others, arXiv:2508.07014) and sherpa-onnx weigh paths like this; neither goes back in
//! a greedy search.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// The first letter of its text goes on with a word.
const CONTINUES: u8 = 1;
/// Its text ends within a word.
const ENDS_IN_WORD: u8 = 2;

/// What the first token of a phrase is worth, of what each other one is: many words begin as another does, and where the
/// beginning fits, what the rest of it fits is seen at each of its tokens.
const BEGINNING: f32 = 0.5;

/// A token is worth at most this share of what it costs.
const MOST_OF_COST: f32 = 0.9;

/// Phrases begin here anywhere: those with a space before them, and those of scripts that have none.
const ANYWHERE: usize = 0;
/// Phrases without a space before them begin here, where no word is being written.
const BETWEEN_WORDS: usize = 1;

/// The tree of the words to expect. Immutable: a hypothesis has its [`Progress`].
#[derive(Debug)]
pub struct Boost {
    nodes: Vec<Node>,
    /// By token: [`CONTINUES`] and [`ENDS_IN_WORD`].
    kinds: Vec<u8>,
    /// What is added to the tokens that begin a phrase anywhere, in the order of tokens.
    starts: Vec<(u32, f32)>,
}

#[derive(Debug, Default)]
struct Node {
    next: BTreeMap<u32, usize>,
    /// What the tokens up to here are worth together.
    value: f32,
    /// A phrase ends here.
    is_end: bool,
    /// It does whatever follows, since its script has no spaces.
    is_free: bool,
}

/// Where a hypothesis is in the tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    paths: Vec<Path>,
    /// What complete phrases were worth.
    won: f32,
    tokens: usize,
    is_in_word: bool,
    /// The tokens of the phrase that was completed last.
    completed: Option<Range<usize>>,
}

#[derive(Debug, Clone, PartialEq)]
struct Path {
    node: usize,
    /// Number of its first token.
    began: usize,
    /// What its tokens are worth together.
    worth: f32,
    /// What was won by a shorter phrase on the way.
    paid: f32,
}

/// A token that was taken for the sake of a path, by its number in the hypothesis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Detour(pub usize);

/// What became of a [`Detour`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It may still lead to a phrase.
    Open,
    /// A phrase with this token is complete.
    Kept,
    /// The path was left before its end.
    Lost,
}

impl Boost {
    /// The tree of `phrases`, each of whose tokens but the first is worth `strength` nats; `None` where there is nothing to boost.
    ///
    /// `texts` has the bytes of each token, none for those that are no text; `encode` is how the tokenizer divides
    /// a text. A model that hears a word for the first time may spell it otherwise, so that the division into the fewest
    /// tokens leads to the phrase too.
    pub fn new(
        phrases: &[String],
        strength: f32,
        texts: &[Vec<u8>],
        encode: &dyn Fn(&str) -> Vec<u32>,
    ) -> Option<Self> {
        if strength.is_nan() || strength <= 0.0 || phrases.iter().all(|phrase| phrase.trim().is_empty()) {
            return None;
        }
        let mut tree = Self {
            nodes: vec![Node::default(), Node::default()],
            kinds: texts.iter().map(|text| kind(text)).collect(),
            starts: Vec::new(),
        };
        let speller = Speller::new(texts, encode);
        for phrase in phrases {
            let phrase = phrase.split_whitespace().collect::<Vec<_>>().join(" ");
            let forms = [phrase.clone(), capitalised(&phrase)];
            let can_spell = forms.iter().any(|form| {
                let spaced = format!(" {form}");
                [form, &spaced].iter().any(|form| speller.fewest(form.as_bytes()).is_some())
            });
            // A model of small letters alone.
            let forms = if can_spell { forms.to_vec() } else { vec![phrase.to_lowercase()] };
            let is_free = phrase.chars().next().is_some_and(has_no_spaces);
            for form in forms {
                for tokens in speller.spellings(&format!(" {form}")) {
                    tree.add(ANYWHERE, &tokens, strength, false);
                }
                for tokens in speller.spellings(&form) {
                    tree.add(if is_free { ANYWHERE } else { BETWEEN_WORDS }, &tokens, strength, is_free);
                }
            }
        }
        tree.starts = tree.bonuses_at(ANYWHERE).collect();
        let is_empty = tree.nodes.len() == 2;
        (!is_empty).then_some(tree)
    }

    fn add(&mut self, root: usize, tokens: &[u32], strength: f32, is_free: bool) {
        let mut at = root;
        for token in tokens {
            at = match self.nodes[at].next.get(token) {
                Some(next) => *next,
                None => {
                    let share = if at == root { BEGINNING } else { 1.0 };
                    let value = self.nodes[at].value + share * strength;
                    self.nodes.push(Node { value, ..Node::default() });
                    let next = self.nodes.len() - 1;
                    self.nodes[at].next.insert(*token, next);
                    next
                }
            };
        }
        if at != root {
            self.nodes[at].is_end = true;
            self.nodes[at].is_free |= is_free;
        }
    }

    fn bonuses_at(&self, node: usize) -> impl Iterator<Item = (u32, f32)> + '_ {
        let node = &self.nodes[node];
        node.next.iter().map(|(token, next)| (*token, self.nodes[*next].value - node.value))
    }

    /// What is added to tokens that begin a phrase, wherever a hypothesis is; in the order of tokens.
    pub fn starts(&self) -> &[(u32, f32)] {
        &self.starts
    }

    /// What is added to tokens besides [`Self::starts`], or more than there, where a hypothesis is at `progress`; in the
    /// order of tokens, each once.
    pub fn bonuses(&self, progress: &Progress) -> Vec<(u32, f32)> {
        let mut found: Vec<(u32, f32)> =
            progress.paths.iter().flat_map(|path| self.bonuses_at(path.node)).collect();
        if !progress.is_in_word {
            found.extend(self.bonuses_at(BETWEEN_WORDS));
        }
        largest_of_each(found)
    }

    /// What is added to tokens where a hypothesis is at `progress`: [`Self::starts`] and [`Self::bonuses`] together.
    pub fn all_bonuses(&self, progress: &Progress) -> Vec<(u32, f32)> {
        let more = self.bonuses(progress);
        if more.is_empty() {
            return self.starts.clone();
        }
        largest_of_each(self.starts.iter().copied().chain(more).collect())
    }

    /// Goes on with a token and the logarithm of its probability, which bounds what it is worth; one that is no text ends
    /// a word.
    pub fn advance(&self, progress: &mut Progress, token: u32, log_probability: f32) {
        let worth = |from: usize, to: usize| {
            (self.nodes[to].value - self.nodes[from].value).min((-log_probability * MOST_OF_COST).max(0.0))
        };
        let kind = self.kinds.get(token as usize).copied().unwrap_or_default();
        let child = |node: usize| self.nodes[node].next.get(&token).copied();
        self.complete(progress, kind & CONTINUES != 0);
        let (began, is_in_word) = (progress.tokens, progress.is_in_word);
        progress.paths.retain_mut(|path| match child(path.node) {
            Some(next) => {
                path.worth += worth(path.node, next);
                path.node = next;
                true
            }
            None => false,
        });
        let roots = [Some(ANYWHERE), (!is_in_word).then_some(BETWEEN_WORDS)];
        for root in roots.into_iter().flatten() {
            if let Some(node) = child(root) {
                progress.paths.push(Path { node, began, worth: worth(root, node), paid: 0.0 });
            }
        }
        progress.tokens += 1;
        progress.is_in_word = kind & ENDS_IN_WORD != 0;
    }

    /// Nothing follows.
    pub fn end(&self, progress: &mut Progress) {
        self.complete(progress, false);
        progress.paths.clear();
    }

    /// Counts the phrases that end before what comes next, which may go on with their last word.
    fn complete(&self, progress: &mut Progress, continues: bool) {
        let mut gained = 0.0_f32;
        for path in &progress.paths {
            let node = &self.nodes[path.node];
            if node.is_end && (node.is_free || !continues) {
                gained = gained.max(path.worth - path.paid);
                let tokens = path.began..progress.tokens;
                if progress
                    .completed
                    .as_ref()
                    .is_none_or(|last| last.end < tokens.end || last.start > tokens.start)
                {
                    progress.completed = Some(tokens);
                }
            }
        }
        // Phrases that overlap have the same tokens: they are paid once.
        progress.won += gained;
        progress.paths.iter_mut().for_each(|path| path.paid = (path.paid + gained).min(path.worth));
    }

    /// What a hypothesis is worth besides its probability: its complete phrases, and the one that it is on the way to.
    pub fn worth(&self, progress: &Progress) -> f32 {
        let open = progress.paths.iter().map(|path| path.worth - path.paid);
        progress.won + open.fold(0.0, f32::max)
    }
}

impl Progress {
    /// What its complete phrases are worth.
    pub fn won(&self) -> f32 {
        self.won
    }

    /// What became of a token that was taken for the sake of a path.
    pub fn outcome(&self, Detour(token): Detour) -> Outcome {
        if self.completed.as_ref().is_some_and(|tokens| tokens.contains(&token)) {
            Outcome::Kept
        } else if self.paths.iter().any(|path| path.began <= token) {
            Outcome::Open
        } else {
            Outcome::Lost
        }
    }
}

/// The largest bonus of each token, in the order of tokens.
fn largest_of_each(mut bonuses: Vec<(u32, f32)>) -> Vec<(u32, f32)> {
    bonuses.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    bonuses.dedup_by_key(|(token, _)| *token);
    bonuses
}

/// The token with the largest sum of logit and bonus, the first of equals; `bonuses` are none below 0. `own` is the
/// token with the largest logit.
pub fn likeliest(logits: &[f32], own: usize, bonuses: impl IntoIterator<Item = (u32, f32)>) -> usize {
    let mut best = (own, logits.get(own).copied().unwrap_or(f32::NEG_INFINITY));
    for (token, bonus) in bonuses {
        let token = token as usize;
        let value = logits.get(token).map_or(f32::NEG_INFINITY, |logit| logit + bonus);
        if value > best.1 || (value == best.1 && token < best.0) {
            best = (token, value);
        }
    }
    best.0
}

/// How texts are divided into tokens.
struct Speller<'a> {
    by_text: HashMap<&'a [u8], u32>,
    longest: usize,
    texts: &'a [Vec<u8>],
    encode: &'a dyn Fn(&str) -> Vec<u32>,
}

impl<'a> Speller<'a> {
    fn new(texts: &'a [Vec<u8>], encode: &'a dyn Fn(&str) -> Vec<u32>) -> Self {
        let by_text: HashMap<&[u8], u32> =
            (0..).zip(texts).filter(|(_, text)| !text.is_empty()).map(|(id, text)| (&text[..], id)).collect();
        let longest = by_text.keys().map(|text| text.len()).max().unwrap_or_default();
        Self { by_text, longest, texts, encode }
    }

    /// As the tokenizer divides it, and with the fewest tokens.
    fn spellings(&self, text: &str) -> Vec<Vec<u32>> {
        // A tokenizer may write a space before each text on its own.
        let divided = [text, text.trim_start()].map(|text| (self.encode)(text)).into_iter().find(|tokens| {
            let texts = tokens.iter().filter_map(|token| self.texts.get(*token as usize));
            texts.flatten().eq(text.as_bytes())
        });
        let mut spellings: Vec<Vec<u32>> = divided.into_iter().chain(self.fewest(text.as_bytes())).collect();
        spellings.dedup();
        spellings
    }

    /// The fewest tokens, of equals those that are longest at first; `None` where tokens can't spell it.
    fn fewest(&self, text: &[u8]) -> Option<Vec<u32>> {
        // From each place to the end: how many tokens, and the first of them.
        let mut best: Vec<Option<(usize, u32, usize)>> = vec![None; text.len() + 1];
        best[text.len()] = Some((0, 0, 0));
        for from in (0..text.len()).rev() {
            for length in (1..=self.longest.min(text.len() - from)).rev() {
                let Some(token) = self.by_text.get(&text[from..from + length]) else { continue };
                let Some((count, ..)) = best[from + length] else { continue };
                if best[from].is_none_or(|(fewest, ..)| count + 1 < fewest) {
                    best[from] = Some((count + 1, *token, length));
                }
            }
        }
        let (mut tokens, mut at) = (Vec::new(), 0);
        while at < text.len() {
            let (_, token, length) = best[at]?;
            tokens.push(token);
            at += length;
        }
        Some(tokens)
    }
}

fn kind(text: &[u8]) -> u8 {
    // Bytes beyond ASCII are parts of letters, but for the few signs that end a word in their script.
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80);
    let mut kind = 0;
    if is_word(text.first()) {
        kind |= CONTINUES;
    }
    if is_word(text.last()) {
        kind |= ENDS_IN_WORD;
    }
    kind
}

/// As it is written at the beginning of a sentence.
fn capitalised(phrase: &str) -> String {
    let mut chars = phrase.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Thai, Lao, Myanmar, Khmer, Chinese and Japanese are written without spaces.
fn has_no_spaces(letter: char) -> bool {
    matches!(u32::from(letter), 0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF
        | 0x3400..=0x9FFF | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&str; 14] =
        ["", " A", "da", " Ad", "a", " Grace", " Hop", "per", " ", "m", ",", "G", "race", " grace"];

    fn tree(phrases: &[&str], strength: f32) -> Option<Boost> {
        let phrases: Vec<String> = phrases.iter().map(|phrase| (*phrase).to_owned()).collect();
        let texts = TEXTS.map(|text| text.as_bytes().to_vec());
        // A tokenizer that knows one word alone.
        Boost::new(&phrases, strength, &texts, &|text| if text == " Ada" { vec![1, 2] } else { Vec::new() })
    }

    fn after(tree: &Boost, tokens: &[u32]) -> Progress {
        let mut progress = Progress::default();
        tokens.iter().for_each(|token| tree.advance(&mut progress, *token, f32::NEG_INFINITY));
        progress
    }

    #[test]
    fn tokens_on_the_way_to_a_phrase_are_raised() {
        let ada = tree(&["Ada", "  grace  Hopper"], 2.0).unwrap();
        // Of both divisions, with and without its capital.
        assert_eq!(ada.starts(), [(1, 1.0), (3, 1.0), (5, 1.0), (13, 1.0)]);
        for (tokens, expected) in [
            // Without a space a phrase begins where no word is being written.
            (&[][..], &[(11, 1.0)][..]),
            (&[10], &[(11, 1.0)]),
            (&[9], &[]),
            (&[1], &[(2, 2.0)]),
            (&[3], &[(4, 2.0)]),
            (&[5], &[(6, 2.0)]),
            (&[5, 6], &[(7, 2.0)]),
            (&[5, 6, 7], &[]),
            (&[11, 12], &[(6, 2.0)]),
            // Another one has begun.
            (&[5, 3], &[(4, 2.0)]),
        ] {
            assert_eq!(ada.bonuses(&after(&ada, tokens)), expected, "{tokens:?}");
        }
        assert!(
            tree(&["Ada"], 0.0).is_none() && tree(&[" "], 1.0).is_none() && tree(&["xyz"], 1.0).is_none()
        );
        assert!(tree(&["Ada"], f32::NAN).is_none());
    }

    #[test]
    fn a_path_is_worth_something_once_its_phrase_is_complete() {
        let ada = tree(&["Ada", "Grace", "Grace Hopper"], 2.0).unwrap();
        for (tokens, worth, won) in [
            (&[1][..], 1.0, 0.0),
            (&[1, 2], 3.0, 0.0),
            // A longer word is another one, a comma ends it.
            (&[1, 2, 9], 0.0, 0.0),
            (&[1, 2, 10], 3.0, 3.0),
            (&[1, 9], 0.0, 0.0),
            // The shorter phrase stays where the longer one is left.
            (&[5, 6], 3.0, 1.0),
            (&[5, 6, 9], 1.0, 1.0),
            (&[5, 6, 7, 10], 5.0, 5.0),
            (&[1, 2, 3, 4, 10], 6.0, 6.0),
        ] {
            let progress = after(&ada, tokens);
            assert_eq!((ada.worth(&progress), progress.won()), (worth, won), "{tokens:?}");
        }
        let mut ended = after(&ada, &[10, 1, 2]);
        ada.end(&mut ended);
        assert_eq!(ended.won(), 3.0);
    }

    #[test]
    fn a_word_is_worth_less_than_it_costs_and_the_likelier_one_stays_ahead() {
        let ada = tree(&["Ada"], 2.0).unwrap();
        // The first token is worth 1 at most, the second 2.
        for (log_probabilities, expected) in
            [([0.0, 0.0], 0.0), ([-0.5, -1.0], 1.35), ([-9.0, -1.0], 1.9), ([-9.0, -9.0], 3.0)]
        {
            let mut progress = Progress::default();
            for (token, log_probability) in [1, 2].into_iter().zip(log_probabilities) {
                ada.advance(&mut progress, token, log_probability);
            }
            assert!((ada.worth(&progress) - expected).abs() < 1e-6, "{log_probabilities:?}");
            ada.end(&mut progress);
            assert!((progress.won() - expected).abs() < 1e-6, "{log_probabilities:?}");
        }
        let score = |log_probability: f32| {
            let mut progress = Progress::default();
            ada.advance(&mut progress, 1, log_probability);
            log_probability + ada.worth(&progress)
        };
        assert!(score(-0.1) > score(-0.9) && score(-0.9) > score(-3.0));
    }

    #[test]
    fn phrases_with_the_same_tokens_are_paid_once() {
        let names = tree(&["Grace Hopper", "Hopper", "Hopper Ada"], 2.0).unwrap();
        // "Grace Hopper," completes two of them, "Grace Hopper Ada," all three.
        for (tokens, most) in [(&[5, 6, 7, 10][..], 5.0), (&[5, 6, 7, 1, 2, 10], 9.0)] {
            let progress = after(&names, tokens);
            assert!(progress.won() <= most && names.worth(&progress) <= most, "{tokens:?}: {progress:?}");
        }
    }

    #[test]
    fn a_detour_is_kept_with_its_phrase_and_lost_with_its_path() {
        let ada = tree(&["Ada", "Grace Hopper"], 2.0).unwrap();
        for (tokens, detour, expected) in [
            (&[10, 1][..], 1, Outcome::Open),
            (&[10, 1, 2], 1, Outcome::Open),
            (&[10, 1, 2, 10], 1, Outcome::Kept),
            (&[10, 1, 9], 1, Outcome::Lost),
            (&[10, 1, 2, 9], 1, Outcome::Lost),
            // What was completed before it is another phrase.
            (&[1, 2, 5], 2, Outcome::Open),
            (&[1, 2, 5, 9], 2, Outcome::Lost),
            // Another one that begins behind it is no reason to keep it.
            (&[5, 1], 0, Outcome::Lost),
        ] {
            assert_eq!(after(&ada, tokens).outcome(Detour(detour)), expected, "{tokens:?}");
        }
    }

    #[test]
    fn words_of_scripts_without_spaces_begin_and_end_anywhere() {
        let texts: Vec<Vec<u8>> = ["京", "都", "大", " "].map(|text| text.as_bytes().to_vec()).to_vec();
        let kyoto = Boost::new(&["京都".into()], 1.5, &texts, &|_| Vec::new()).unwrap();
        assert_eq!(kyoto.starts(), [(0, 0.75), (3, 0.75)]);
        assert_eq!(after(&kyoto, &[2, 0, 1, 2]).won(), 2.25);
    }

    #[test]
    fn a_model_of_small_letters_expects_small_ones() {
        let texts: Vec<Vec<u8>> = [" ada", "x"].map(|text| text.as_bytes().to_vec()).to_vec();
        let ada = Boost::new(&["ADA".into()], 1.0, &texts, &|_| Vec::new());
        assert!(ada.is_some_and(|ada| ada.starts() == [(0, 0.5)]));
    }

    #[test]
    fn no_token_is_taken_that_is_further_below_the_best_than_its_bonus() {
        let logits = [0.0, 3.0, 1.0, f32::NEG_INFINITY];
        for (bonuses, expected) in [
            (&[][..], 1),
            (&[(2, 1.9)], 1),
            (&[(2, 2.0)], 1),
            (&[(2, 2.1)], 2),
            // Of equals the first one.
            (&[(0, 3.0)], 0),
            (&[(3, 9.0)], 1),
            (&[(9, 9.0)], 1),
            (&[(2, 2.5), (0, 4.0)], 0),
        ] {
            assert_eq!(likeliest(&logits, 1, bonuses.iter().copied()), expected, "{bonuses:?}");
        }
    }
}
