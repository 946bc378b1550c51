//! Beam search of the token-and-duration transducer: several texts of a window are followed, frame by frame.
//!
//! What is compared are texts that were all read up to the same frame or beyond it, each as likely as all ways of
//! placing it in time together (Graves, arXiv:1211.3711, section 2.5), as far as those were followed. NeMo's search of
//! this kind of model is alike; it follows fewer durations.

use candle_core::Tensor;

use super::tdt::{Place, Tdt};
use crate::boost::{Boost, Progress};
use crate::fused::log_sum_exp;
use crate::largest::{arg_max, top};
use crate::layers::{Tick, tick};
use crate::matrix::with_values;
use crate::packed::FEW_ROWS;
use crate::{Error, Token};

/// A text that is this much less likely than the best one, in nats, is given up. With half of it and with twice, the
/// words of the demonstration model are the same; its time is not.
const FARTHEST: f32 = 4.0;
/// The same where words are expected, which the network itself may find less likely.
const FARTHEST_EXPECTED: f32 = 8.0;
/// Most texts that are followed; more find nothing.
const MOST: usize = 64;

/// A window that is being read.
struct Search<'a> {
    /// Its frames as the joint network takes them, (frames, width).
    frames: Vec<f32>,
    length: usize,
    hypotheses: Vec<Hypothesis>,
    beams: usize,
    boost: Option<&'a Boost>,
}

/// A text that a window may have, up to a frame.
struct Hypothesis {
    log_probability: f32,
    place: Place,
}

/// What a hypothesis may become; nothing of it is computed yet.
#[derive(Clone)]
struct Candidate {
    /// Number of the hypothesis that it follows from.
    from: usize,
    /// `None`: it is the hypothesis as it is, or behind a blank.
    token: Option<Token>,
    /// The frame that is read next, and the tokens that are written at it.
    behind: (usize, usize),
    log_probability: f32,
    /// With what words to expect are worth, also one that is not complete.
    score: f32,
    /// With what those are worth that are complete.
    settled: f32,
}

/// What words to expect are worth to a text.
#[derive(Clone, Copy, Default)]
struct Worth {
    /// With the one that it may be on the way to.
    hoped: f32,
    /// If nothing follows.
    settled: f32,
}

impl Tdt {
    /// Reads windows as [`Self::read`] does, each with so many hypotheses at once.
    pub(super) fn read_with_beams(
        &self,
        windows: &[Tensor],
        beams: usize,
        boost: Option<&Boost>,
        on_step: &Tick,
    ) -> Result<Vec<Vec<Token>>, Error> {
        let beams = beams.min(MOST);
        let mut read = Vec::with_capacity(windows.len());
        // Products of few rows are the same however many there are.
        for windows in windows.chunks((FEW_ROWS / beams).max(1)) {
            let mut searches = windows
                .iter()
                .map(|window| self.search(window, beams, boost))
                .collect::<Result<Vec<_>, _>>()?;
            while self.advance(&mut searches)? {
                tick(on_step)?;
            }
            read.extend(searches.into_iter().map(Search::best));
        }
        Ok(read)
    }

    fn search<'a>(
        &self,
        window: &Tensor,
        beams: usize,
        boost: Option<&'a Boost>,
    ) -> Result<Search<'a>, Error> {
        let frames = self.project(window)?;
        Ok(Search {
            length: frames.dim(0)?,
            frames: frames.flatten_all()?.to_vec1()?,
            hypotheses: vec![Hypothesis { log_probability: 0.0, place: self.beginning() }],
            beams,
            boost,
        })
    }

    /// In every window, takes the hypotheses that are farthest behind further; whether there were any.
    fn advance(&self, searches: &mut [Search]) -> Result<bool, Error> {
        let mut open: Vec<&mut Search> = searches.iter_mut().filter(|search| !search.is_read()).collect();
        if open.is_empty() {
            return Ok(false);
        }
        let mut places = Vec::new();
        for search in &mut open {
            let first = search.first();
            let Search { frames, hypotheses, .. } = &mut **search;
            let behind = hypotheses.iter_mut().filter(|it| it.place.at == first);
            places.extend(behind.map(|it| (&frames[..], &mut it.place)));
        }
        let logits = self.ask(places)?;
        let answers = self.vocabulary + self.durations.len();
        with_values(&logits, |logits| {
            let mut logits = logits.chunks_exact(answers);
            for search in &mut open {
                search.go_on(self, &mut logits);
            }
        })?;
        Ok(true)
    }
}

impl Search<'_> {
    fn first(&self) -> usize {
        self.hypotheses.iter().map(|it| it.place.at).min().unwrap_or(self.length)
    }

    fn is_read(&self) -> bool {
        self.first() >= self.length
    }

    fn farthest(&self) -> f32 {
        if self.boost.is_some() { FARTHEST_EXPECTED } else { FARTHEST }
    }

    fn worth(&self, progress: &Progress) -> Worth {
        let Some(boost) = self.boost else { return Worth::default() };
        let mut ended = progress.clone();
        boost.end(&mut ended);
        Worth { hoped: boost.worth(progress), settled: ended.won() }
    }

    fn candidate(
        &self,
        token: Option<Token>,
        behind: (usize, usize),
        log_probability: f32,
        worth: Worth,
    ) -> Candidate {
        let settled = log_probability + worth.settled;
        let is_end = behind.0 >= self.length;
        let score = if is_end { settled } else { log_probability + worth.hoped };
        Candidate { from: 0, token, behind, log_probability, score, settled }
    }

    /// Goes on with the likeliest of what may follow from the hypotheses that are farthest behind, whose logits come in their order.
    fn go_on<'a>(&mut self, tdt: &Tdt, logits: &mut impl Iterator<Item = &'a [f32]>) {
        let first = self.first();
        let mut candidates = Vec::new();
        for (number, Hypothesis { log_probability, place }) in self.hypotheses.iter().enumerate() {
            if place.at > first {
                let (behind, worth) = ((place.at, place.symbols), self.worth(&place.progress));
                let candidate = self.candidate(None, behind, *log_probability, worth);
                candidates.push(Candidate { from: number, ..candidate });
            } else if let Some(logits) = logits.next() {
                self.follow(tdt, number, logits, &mut candidates);
            }
        }
        let candidates = self.choose(candidates);
        if candidates.is_empty() {
            // The network says no number: its text goes on behind this frame.
            let behind = self.hypotheses.iter_mut().filter(|it| it.place.at == first);
            behind.for_each(|it| (it.place.at, it.place.symbols) = (first + 1, 0));
            return;
        }
        // Not copied where it is the last use.
        let mut left: Vec<usize> = vec![0; self.hypotheses.len()];
        candidates.iter().for_each(|it| left[it.from] += 1);
        let mut hypotheses: Vec<Option<Hypothesis>> =
            std::mem::take(&mut self.hypotheses).into_iter().map(Some).collect();
        for Candidate { from, token, behind, log_probability, .. } in candidates {
            left[from] -= 1;
            let place = match left[from] {
                0 => hypotheses[from].take().map(|it| it.place),
                _ => hypotheses[from].as_ref().map(|it| it.place.clone()),
            };
            let Some(mut place) = place else { continue };
            match token {
                Some(token) => place.write(token, behind, self.boost),
                None => (place.at, place.symbols) = behind,
            }
            if let Some(boost) = self.boost.filter(|_| place.at >= self.length) {
                boost.end(&mut place.progress);
            }
            self.hypotheses.push(Hypothesis { log_probability, place });
        }
    }

    /// What may follow from a hypothesis: a blank, or one of the likeliest tokens, with each duration.
    fn follow(&self, tdt: &Tdt, number: usize, logits: &[f32], candidates: &mut Vec<Candidate>) {
        let Hypothesis { log_probability, place } = &self.hypotheses[number];
        let (tokens, durations) = logits.split_at(tdt.vocabulary);
        let (all_tokens, all_durations) = (log_sum_exp(tokens), log_sum_exp(durations));
        let mut best = candidates.iter().map(|it| it.settled).fold(f32::NEG_INFINITY, f32::max);
        let mut push = |token: Option<usize>, worth: Worth| {
            let of_token = tokens[token.unwrap_or(tdt.blank as usize)] - all_tokens;
            for (frames, duration) in tdt.durations.iter().zip(durations) {
                let log_probability = log_probability + of_token + duration - all_durations;
                let token = token.map(|id| Token {
                    id: id as u32,
                    frame: place.at,
                    frames: *frames,
                    probability: of_token.exp(),
                });
                let (at, symbols) = tdt.behind(place, token.is_none(), *frames);
                let candidate = self.candidate(token, (at.min(self.length), symbols), log_probability, worth);
                // What is no number is not either.
                if candidate.settled >= best - self.farthest() {
                    best = best.max(candidate.settled);
                    candidates.push(Candidate { from: number, ..candidate });
                }
            }
        };
        push(None, self.worth(&place.progress));
        for id in self.likeliest(tdt, place, tokens) {
            let worth = self.boost.map_or_else(Worth::default, |boost| {
                let mut progress = place.progress.clone();
                boost.advance(&mut progress, id as u32, tokens[id] - all_tokens);
                self.worth(&progress)
            });
            push(Some(id), worth);
        }
    }

    /// As many tokens as there are beams, blank not among them.
    fn likeliest(&self, tdt: &Tdt, place: &Place, tokens: &[f32]) -> Vec<usize> {
        let blank = tdt.blank as usize;
        let mut likeliest = top(tokens, self.beams + 1);
        // Where the network hears no token there is none, whatever is expected.
        let is_blank = likeliest.first().is_none_or(|(id, _)| *id == blank);
        if let Some(boost) = self.boost.filter(|_| !is_blank) {
            let bonuses = boost.all_bonuses(&place.progress).into_iter();
            let expected =
                bonuses.filter_map(|(id, bonus)| Some((id as usize, tokens.get(id as usize)? + bonus)));
            likeliest.extend(expected);
            likeliest.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        }
        let mut ids: Vec<usize> = Vec::with_capacity(self.beams);
        for (id, _) in likeliest {
            if id != blank && !ids.contains(&id) && ids.len() < self.beams {
                ids.push(id);
            }
        }
        ids
    }

    /// Its tokens, the last one first: where texts differ, it is mostly there.
    fn text<'a>(&'a self, candidate: &'a Candidate) -> impl Iterator<Item = u32> + 'a {
        let before = self.hypotheses[candidate.from].place.tokens.iter().rev();
        candidate.token.iter().chain(before).map(|token| token.id)
    }

    /// The best of the candidates, those with the same text at the same frame counted as one.
    fn choose(&self, mut candidates: Vec<Candidate>) -> Vec<Candidate> {
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score));
        let mut chosen: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            let same = |other: &&mut Candidate| {
                other.behind.0 == candidate.behind.0 && self.text(other).eq(self.text(&candidate))
            };
            match chosen.iter_mut().find(same) {
                Some(other) => {
                    let both = log_sum_exp(&[other.log_probability, candidate.log_probability]);
                    other.score += both - other.log_probability;
                    other.settled += both - other.log_probability;
                    other.log_probability = both;
                }
                None => chosen.push(candidate),
            }
        }
        let settled = |it: &Candidate| it.settled;
        let best = chosen.iter().map(settled).fold(f32::NEG_INFINITY, f32::max);
        chosen.retain(|it| it.settled >= best - self.farthest());
        chosen.sort_by(|a, b| b.score.total_cmp(&a.score));
        // A word that is only hoped for may come to nothing: then there is a text to go back to.
        if let Some(surest) = chosen.iter().position(|it| it.settled == best).filter(|it| *it >= self.beams) {
            chosen.swap(self.beams - 1, surest);
        }
        chosen.truncate(self.beams);
        chosen
    }

    /// The likeliest text, words to expect counted.
    fn best(mut self) -> Vec<Token> {
        let score = |it: &Hypothesis| it.log_probability + self.worth(&it.place.progress).settled;
        let scores: Vec<f32> = self.hypotheses.iter().map(score).collect();
        match scores.is_empty() {
            true => Vec::new(),
            false => self.hypotheses.swap_remove(arg_max(&scores)).place.tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(id: u32, log_probability: f32, hoped: f32) -> Candidate {
        let token = Some(Token { id, frame: 0, frames: 1, probability: 1.0 });
        let (score, settled) = (log_probability + hoped, log_probability);
        Candidate { from: 0, token, behind: (1, 0), log_probability, score, settled }
    }

    fn choose(candidates: Vec<Candidate>) -> Vec<Candidate> {
        let hypotheses = vec![Hypothesis { log_probability: 0.0, place: Place::default() }];
        Search { frames: Vec::new(), length: 9, hypotheses, beams: 2, boost: None }.choose(candidates)
    }

    fn ids(candidates: &[Candidate]) -> Vec<u32> {
        candidates.iter().filter_map(|it| it.token).map(|token| token.id).collect()
    }

    #[test]
    fn the_surest_text_stays_beside_those_that_may_become_words_to_expect() {
        let hoped = [candidate(1, -3.0, 8.0), candidate(2, -2.0, 6.0)];
        let sure = candidate(3, -0.1, 0.0);
        assert_eq!(ids(&choose([&hoped[..], &[sure]].concat())), [1, 3]);
        assert_eq!(ids(&choose(hoped.to_vec())), [1, 2]);
    }

    #[test]
    fn equal_texts_at_one_frame_count_together_and_texts_far_behind_do_not_count() {
        let half = 0.5_f32.ln();
        let chosen = choose(vec![candidate(1, half, 0.0), candidate(1, half, 0.0), candidate(2, -5.0, 0.0)]);
        assert_eq!(ids(&chosen), [1]);
        assert!(chosen[0].log_probability.abs() < 1e-6 && chosen[0].settled.abs() < 1e-6);
    }
}
