//! Arithmetic on one row of logits.

use models::boost::likeliest;
use models::choose::{Candidates, Chance};
use models::{arg_max, log_sum_exp, top};

/// What a search knows of one row: all logits, those that are not allowed masked, and what is added to some of them
/// before one is chosen; or the likeliest of them, or the one that was drawn.
#[derive(Debug)]
pub enum Scores {
    Logits { logits: Vec<f32>, bonuses: Vec<(u32, f32)> },
    Candidates(Candidates),
}

impl Scores {
    /// The logarithm of the sum of the exponentials of all that is allowed.
    pub fn total(&self) -> f32 {
        match self {
            Self::Logits { logits, .. } => log_sum_exp(logits),
            Self::Candidates(candidates) => candidates.total,
        }
    }

    /// The likeliest token, or the one that was drawn, with its logit; and whether it is the model's own choice,
    /// whatever is added.
    pub fn first(&self) -> (usize, f32, bool) {
        match self {
            Self::Logits { logits, bonuses } => {
                let own = arg_max(logits);
                let token = likeliest(logits, own, bonuses.iter().copied());
                (token, logits.get(token).copied().unwrap_or(f32::NEG_INFINITY), token == own)
            }
            Self::Candidates(candidates) => {
                candidates.best.first().map_or((0, f32::NEG_INFINITY, true), |(token, logit)| {
                    (*token as usize, *logit, candidates.own == Some(*token))
                })
            }
        }
    }

    /// The `count` likeliest tokens with their logits, as [`top`] of the sums of logits and what is added.
    pub fn best(&self, count: usize) -> Vec<(usize, f32)> {
        match self {
            Self::Logits { logits, bonuses } => {
                let raised = |(token, bonus): &(u32, f32)| {
                    let logit = logits.get(*token as usize).filter(|logit| **logit > f32::NEG_INFINITY);
                    logit.map(|logit| (*token as usize, logit + bonus))
                };
                if bonuses.is_empty() {
                    return top(logits, count);
                }
                let mut others = logits.clone();
                for (token, _) in bonuses {
                    if let Some(logit) = others.get_mut(*token as usize) {
                        *logit = f32::NEG_INFINITY;
                    }
                }
                let mut best = top(&others, count);
                best.extend(bonuses.iter().filter_map(raised));
                best.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
                best.truncate(count);
                best.into_iter().map(|(token, _)| (token, logits[token])).collect()
            }
            Self::Candidates(candidates) => {
                candidates.best.iter().take(count).map(|(token, logit)| (*token as usize, *logit)).collect()
            }
        }
    }
}

/// The token that `chance` falls on when the softmax of logits and bonuses divides 0 to 1 up among the tokens in their
/// order. The kernel in crates/models/kernels/choose.cu draws the same one.
pub fn drawn(logits: &[f32], bonuses: &[(u32, f32)], Chance { temperature, number }: Chance) -> Candidates {
    let mut shares = logits.to_vec();
    for (token, bonus) in bonuses {
        if let Some(share) = shares.get_mut(*token as usize) {
            *share += bonus;
        }
    }
    let mut chosen = arg_max(&shares);
    shares.iter_mut().for_each(|share| *share /= temperature);
    softmax(&mut shares);
    let mut left = number;
    for (token, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        chosen = token;
        left -= share;
        if left < 0.0 {
            break;
        }
    }
    let (own, best) = (Some(arg_max(logits) as u32), vec![(chosen as u32, logits[chosen])]);
    Candidates { total: log_sum_exp(logits), best, own }
}

pub fn max(logits: &[f32]) -> f32 {
    // Without a case for what is no number it is one instruction.
    logits.iter().fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most })
}

/// The softmax of a row, in place.
pub fn softmax(logits: &mut [f32]) {
    let total = log_sum_exp(logits);
    for x in logits {
        *x = (*x - total).exp();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_drawn_by_their_shares() {
        let row = [2.0, f32::NEG_INFINITY, 2.0, 2.0 + f32::ln(2.0)];
        for (temperature, number, expected) in [
            (1.0, 0.0, 0),
            (1.0, 0.24, 0),
            (1.0, 0.26, 2),
            (1.0, 0.49, 2),
            (1.0, 0.51, 3),
            (1.0, 1.0, 3),
            // The likelier one has 16 of 18 parts.
            (0.25, 0.1, 2),
            (0.25, 0.12, 3),
        ] {
            let found = drawn(&row, &[], Chance { temperature, number });
            assert_eq!(found.best, [(expected, row[expected as usize])], "{temperature}, {number}");
            // Its probability is that of temperature 1.
            assert!((found.total - (2.0 + f32::ln(4.0))).abs() < 1e-6);
        }
    }

    #[test]
    fn what_is_expected_is_chosen_by_its_sum_and_keeps_its_logit() {
        let row = [0.5, f32::NEG_INFINITY, 2.0, 2.0, -1.0];
        let with =
            |bonuses: &[(u32, f32)]| Scores::Logits { logits: row.to_vec(), bonuses: bonuses.to_vec() };
        type Case<'a> = (&'a [(u32, f32)], (usize, f32, bool), &'a [(usize, f32)]);
        let cases: [Case; 5] = [
            (&[], (2, 2.0, true), &[(2, 2.0), (3, 2.0), (0, 0.5)]),
            (&[(3, 0.5)], (3, 2.0, false), &[(3, 2.0), (2, 2.0), (0, 0.5)]),
            // What is not allowed stays so.
            (&[(0, 1.0), (1, 9.0)], (2, 2.0, true), &[(2, 2.0), (3, 2.0), (0, 0.5)]),
            (&[(0, 1.5), (4, 3.5)], (4, -1.0, false), &[(4, -1.0), (0, 0.5), (2, 2.0)]),
            (&[(2, 1.0), (9, 9.0)], (2, 2.0, true), &[(2, 2.0), (3, 2.0), (0, 0.5)]),
        ];
        for (bonuses, first, best) in cases {
            let scores = with(bonuses);
            assert_eq!((scores.first(), &scores.best(3)[..]), (first, best), "{bonuses:?}");
            assert_eq!(scores.total(), with(&[]).total());
        }
        // A share that is raised by a hundred takes all numbers.
        let found = drawn(&row, &[(4, 100.0)], Chance { temperature: 1.0, number: 0.01 });
        assert_eq!((found.best, found.total), (vec![(4, -1.0)], with(&[]).total()));
    }

    #[test]
    fn softmax_sums_to_one() {
        let mut row = [90.0, 89.0, f32::NEG_INFINITY];
        softmax(&mut row);
        assert!((row[0] - 0.7310586).abs() < 1e-5 && row[2] == 0.0);
    }
}
