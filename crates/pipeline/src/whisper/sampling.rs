//! Who chooses the next tokens: greedy or drawn, or a beam search.

use models::boost::{Boost, Detour, Outcome, Progress};
use models::choose::Chance;

use super::scores::Scores;

/// A sequence of sampled tokens, without the end of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    pub tokens: Vec<u32>,
    /// Sum of the tokens' log-probabilities by the model, that of the end included.
    pub log_probability: f32,
    /// How far it is on the way to words to expect.
    pub progress: Progress,
}

impl Sequence {
    pub fn new() -> Self {
        Self { tokens: Vec::new(), log_probability: 0.0, progress: Progress::default() }
    }

    /// What it is chosen by.
    pub fn score(&self) -> f32 {
        self.log_probability + self.progress.won()
    }
}

/// What a step decided: the row each new row goes on from, and whether all is done.
#[derive(Debug)]
pub struct Step {
    pub sources: Vec<usize>,
    pub done: bool,
}

/// Greedy at temperature 0, draws above, `rows` independent sequences.
#[derive(Debug, Clone)]
pub struct Draw<'a> {
    rows: Vec<Row>,
    temperature: f32,
    random: fastrand::Rng,
    end_of_text: u32,
    boost: Option<&'a Boost>,
}

#[derive(Debug, Clone)]
struct Row {
    sequence: Sequence,
    ended: bool,
    /// Where the sequence left the model's own choice for a word to expect, while it is not known whether that is the
    /// word.
    detour: Option<Detour>,
    /// Places where the model's own choice is taken.
    refused: Vec<usize>,
}

impl<'a> Draw<'a> {
    pub fn new(rows: usize, temperature: f32, seed: u64, end_of_text: u32, boost: Option<&'a Boost>) -> Self {
        let empty = Row { sequence: Sequence::new(), ended: false, detour: None, refused: Vec::new() };
        let random = fastrand::Rng::with_seed(seed);
        // A draw can't go back, and what is divided by a small temperature is forced.
        let boost = boost.filter(|_| temperature == 0.0);
        Self { rows: vec![empty; rows], temperature, random, end_of_text, boost }
    }

    /// The tokens of each row, and how far it is on the way to words to expect; `None` where the model's own choice
    /// is taken, as everywhere above temperature 0.
    pub fn sequences(&self) -> impl Iterator<Item = (&[u32], Option<&Progress>)> {
        self.rows.iter().map(|row| {
            let is_refused = row.refused.contains(&row.sequence.tokens.len());
            (
                row.sequence.tokens.as_slice(),
                (self.boost.is_some() && !is_refused).then_some(&row.sequence.progress),
            )
        })
    }

    /// What to feed next: the last token of each row, the end where it has ended.
    pub fn last_tokens(&self) -> Vec<u32> {
        self.rows
            .iter()
            .map(|row| match row.sequence.tokens.last() {
                Some(token) if !row.ended => *token,
                _ => self.end_of_text,
            })
            .collect()
    }

    /// How the next token of each row is drawn; `None` where the likeliest is taken.
    pub fn chances(&mut self) -> Vec<Option<Chance>> {
        let (temperature, random) = (self.temperature, &mut self.random);
        // A row that has ended takes no number from the others.
        let mut number = |ended: bool| if ended { 0.0 } else { random.f32() };
        let chance = |ended| (temperature > 0.0).then(|| Chance { temperature, number: number(ended) });
        self.rows.iter().map(|row| row.ended).map(chance).collect()
    }

    pub fn step(&mut self, scores: &[Scores]) -> Step {
        let is_greedy = self.temperature == 0.0;
        for (row, scores) in self.rows.iter_mut().zip(scores) {
            if row.ended {
                continue;
            }
            let Row { sequence, ended, detour, .. } = row;
            let (token, logit, is_own) = scores.first();
            if is_greedy && !is_own && detour.is_none() {
                *detour = Some(Detour(sequence.tokens.len()));
            }
            let log_probability = logit - scores.total();
            sequence.log_probability += log_probability;
            *ended = token as u32 == self.end_of_text;
            if let Some(boost) = self.boost {
                match *ended {
                    true => boost.end(&mut sequence.progress),
                    false => boost.advance(&mut sequence.progress, token as u32, log_probability),
                }
            }
            if !*ended {
                sequence.tokens.push(token as u32);
            }
            if detour.is_some_and(|detour| sequence.progress.outcome(detour) == Outcome::Kept) {
                *detour = None;
            }
        }
        Step { sources: (0..self.rows.len()).collect(), done: self.rows.iter().all(|row| row.ended) }
    }

    /// Whether a row has left the model's own choice and it is not known yet whether for a word to expect.
    pub fn is_on_detour(&self) -> bool {
        self.rows.iter().any(|row| row.detour.is_some())
    }

    /// The place of a choice that led to no word to expect.
    pub fn lost(&self) -> Option<usize> {
        let lost =
            |row: &Row| row.detour.filter(|detour| row.sequence.progress.outcome(*detour) == Outcome::Lost);
        self.rows.iter().filter_map(lost).map(|Detour(at)| at).min()
    }

    /// Goes on from `before`, as this was earlier, with the model's own choice where this one lost.
    pub fn go_back(&mut self, before: Self) {
        let lost: Vec<usize> = self.lost().into_iter().collect();
        let refused: Vec<Vec<usize>> =
            self.rows.drain(..).map(|row| row.refused.into_iter().chain(lost.clone()).collect()).collect();
        *self = before;
        for (row, refused) in self.rows.iter_mut().zip(refused) {
            row.refused = refused;
        }
    }

    pub fn finish(self) -> Vec<Sequence> {
        self.rows.into_iter().map(|row| row.sequence).collect()
    }
}

/// Beam search as in openai/whisper's `BeamSearchDecoder`.
#[derive(Debug, Clone)]
pub struct Beams<'a> {
    /// Unfinished, best first.
    rows: Vec<Sequence>,
    finished: Vec<Sequence>,
    /// Finished sequences to collect: beams x patience.
    wanted: usize,
    end_of_text: u32,
    boost: Option<&'a Boost>,
}

impl<'a> Beams<'a> {
    pub fn new(beams: usize, patience: f32, end_of_text: u32, boost: Option<&'a Boost>) -> Self {
        let wanted = ((beams as f32 * patience).round() as usize).max(1);
        Self { rows: vec![Sequence::new(); beams], finished: Vec::new(), wanted, end_of_text, boost }
    }

    /// As [`Draw::sequences`].
    pub fn sequences(&self) -> impl Iterator<Item = (&[u32], Option<&Progress>)> {
        self.rows.iter().map(|sequence| (sequence.tokens.as_slice(), Some(&sequence.progress)))
    }

    pub fn last_tokens(&self) -> Vec<u32> {
        let last = |sequence: &Sequence| sequence.tokens.last().copied().unwrap_or(self.end_of_text);
        self.rows.iter().map(last).collect()
    }

    pub fn step(&mut self, scores: &[Scores]) -> Step {
        let beams = self.rows.len();
        // Before the first token all beams are the same sequence.
        let distinct = if self.rows[0].tokens.is_empty() { 1 } else { beams };
        let mut candidates: Vec<Candidate> = Vec::with_capacity(distinct * (beams + 1));
        for (row, (sequence, scores)) in self.rows.iter().zip(scores).take(distinct).enumerate() {
            let total = scores.total();
            for (token, logit) in scores.best(beams + 1) {
                candidates.push(self.candidate(row, sequence, token as u32, logit - total));
            }
        }
        // Stable: of equals, the earlier beam and the better token stay first.
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut next = Vec::with_capacity(beams);
        let mut sources = Vec::with_capacity(beams);
        for Candidate { row, token, log_probability, progress, .. } in candidates {
            let mut tokens = self.rows[row].tokens.clone();
            if token == self.end_of_text {
                if self.finished.len() < self.wanted {
                    self.finished.push(Sequence { tokens, log_probability, progress });
                }
            } else {
                tokens.push(token);
                next.push(Sequence { tokens, log_probability, progress });
                sources.push(row);
                if next.len() == beams {
                    break;
                }
            }
        }
        if next.is_empty() {
            // Every allowed candidate was the end.
            return Step { sources: (0..beams).collect(), done: true };
        }
        // Fewer candidates than beams: repeat the last to keep the rows full.
        // It can't win against its twin.
        while next.len() < beams {
            let (last, source) = (next[next.len() - 1].clone(), sources[sources.len() - 1]);
            next.push(Sequence { log_probability: f32::NEG_INFINITY, ..last });
            sources.push(source);
        }
        self.rows = next;
        Step { sources, done: self.finished.len() >= self.wanted }
    }

    /// `of_token` is the logarithm of the token's probability.
    fn candidate(&self, row: usize, sequence: &Sequence, token: u32, of_token: f32) -> Candidate {
        let mut progress = sequence.progress.clone();
        let worth = self.boost.map_or(0.0, |boost| {
            match token == self.end_of_text {
                true => boost.end(&mut progress),
                false => boost.advance(&mut progress, token, of_token),
            }
            boost.worth(&progress)
        });
        let log_probability = sequence.log_probability + of_token;
        Candidate { row, token, log_probability, score: log_probability + worth, progress }
    }

    /// The finished ones, filled up with unfinished ones, best first.
    pub fn finish(self) -> Vec<Sequence> {
        let beams = self.rows.len();
        let mut finished = self.finished;
        let mut open = self.rows;
        open.sort_by(|a, b| b.score().total_cmp(&a.score()));
        let missing = beams.saturating_sub(finished.len());
        finished.extend(open.into_iter().take(missing));
        finished
    }
}

/// A token that may follow one of the beams.
struct Candidate {
    row: usize,
    token: u32,
    log_probability: f32,
    /// With what its words to expect are worth, also the one that it is on the way to.
    score: f32,
    progress: Progress,
}
