//! Who chooses the next tokens: greedy or drawn, or a beam search.

use models::choose::Chance;

use super::scores::Scores;

/// A sequence of sampled tokens, without the end of text.
#[derive(Debug, Clone, PartialEq)]
pub struct Sequence {
    pub tokens: Vec<u32>,
    /// Sum of the tokens' log-probabilities, that of the end included.
    pub log_probability: f32,
}

/// What a step decided: the row each new row goes on from, and whether all is done.
#[derive(Debug)]
pub struct Step {
    pub sources: Vec<usize>,
    pub done: bool,
}

/// Greedy at temperature 0, draws above, `rows` independent sequences.
#[derive(Debug)]
pub struct Draw {
    rows: Vec<(Sequence, bool)>,
    temperature: f32,
    random: fastrand::Rng,
    end_of_text: u32,
}

impl Draw {
    pub fn new(rows: usize, temperature: f32, seed: u64, end_of_text: u32) -> Self {
        let empty = (Sequence { tokens: Vec::new(), log_probability: 0.0 }, false);
        let random = fastrand::Rng::with_seed(seed);
        Self { rows: vec![empty; rows], temperature, random, end_of_text }
    }

    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        self.rows.iter().map(|(sequence, _)| sequence.tokens.as_slice())
    }

    /// What to feed next: the last token of each row, the end where it has ended.
    pub fn last_tokens(&self) -> Vec<u32> {
        self.rows
            .iter()
            .map(|(sequence, ended)| match sequence.tokens.last() {
                Some(token) if !ended => *token,
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
        self.rows.iter().map(|(_, ended)| *ended).map(chance).collect()
    }

    pub fn step(&mut self, scores: &[Scores]) -> Step {
        for ((sequence, ended), scores) in self.rows.iter_mut().zip(scores) {
            if *ended {
                continue;
            }
            let (token, logit) = scores.first();
            sequence.log_probability += logit - scores.total();
            if token as u32 == self.end_of_text {
                *ended = true;
            } else {
                sequence.tokens.push(token as u32);
            }
        }
        Step { sources: (0..self.rows.len()).collect(), done: self.rows.iter().all(|(_, ended)| *ended) }
    }

    pub fn finish(self) -> Vec<Sequence> {
        self.rows.into_iter().map(|(sequence, _)| sequence).collect()
    }
}

/// Beam search as in openai/whisper's `BeamSearchDecoder`.
#[derive(Debug)]
pub struct Beams {
    /// Unfinished, best first.
    rows: Vec<Sequence>,
    finished: Vec<Sequence>,
    /// Finished sequences to collect: beams x patience.
    wanted: usize,
    end_of_text: u32,
}

impl Beams {
    pub fn new(beams: usize, patience: f32, end_of_text: u32) -> Self {
        let wanted = ((beams as f32 * patience).round() as usize).max(1);
        let empty = Sequence { tokens: Vec::new(), log_probability: 0.0 };
        Self { rows: vec![empty; beams], finished: Vec::new(), wanted, end_of_text }
    }

    pub fn sequences(&self) -> impl Iterator<Item = &[u32]> {
        self.rows.iter().map(|sequence| sequence.tokens.as_slice())
    }

    pub fn last_tokens(&self) -> Vec<u32> {
        let last = |sequence: &Sequence| sequence.tokens.last().copied().unwrap_or(self.end_of_text);
        self.rows.iter().map(last).collect()
    }

    pub fn step(&mut self, scores: &[Scores]) -> Step {
        let beams = self.rows.len();
        // Before the first token all beams are the same sequence.
        let distinct = if self.rows[0].tokens.is_empty() { 1 } else { beams };
        let mut candidates: Vec<(usize, u32, f32)> = Vec::with_capacity(distinct * (beams + 1));
        for (row, (sequence, scores)) in self.rows.iter().zip(scores).take(distinct).enumerate() {
            let total = scores.total();
            for (token, logit) in scores.best(beams + 1) {
                candidates.push((row, token as u32, sequence.log_probability + (logit - total)));
            }
        }
        // Stable: of equals, the earlier beam and the better token stay first.
        candidates.sort_by(|a, b| b.2.total_cmp(&a.2));
        let mut next = Vec::with_capacity(beams);
        let mut sources = Vec::with_capacity(beams);
        for (row, token, log_probability) in candidates {
            let mut tokens = self.rows[row].tokens.clone();
            if token == self.end_of_text {
                if self.finished.len() < self.wanted {
                    self.finished.push(Sequence { tokens, log_probability });
                }
            } else {
                tokens.push(token);
                next.push(Sequence { tokens, log_probability });
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

    /// The finished ones, filled up with unfinished ones, best first.
    pub fn finish(self) -> Vec<Sequence> {
        let beams = self.rows.len();
        let mut finished = self.finished;
        let mut open = self.rows;
        open.sort_by(|a, b| b.log_probability.total_cmp(&a.log_probability));
        let missing = beams.saturating_sub(finished.len());
        finished.extend(open.into_iter().take(missing));
        finished
    }
}
