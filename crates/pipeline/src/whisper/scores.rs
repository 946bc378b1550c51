//! Arithmetic on one row of logits.

use models::choose::{Candidates, Chance};
use models::log_sum_exp;

/// What a search knows of one row: all logits, those that are not allowed masked; or the likeliest of them, or the one
/// that was drawn.
#[derive(Debug)]
pub enum Scores {
    Logits(Vec<f32>),
    Candidates(Candidates),
}

impl Scores {
    /// The logarithm of the sum of the exponentials of all that is allowed.
    pub fn total(&self) -> f32 {
        match self {
            Self::Logits(logits) => log_sum_exp(logits),
            Self::Candidates(candidates) => candidates.total,
        }
    }

    /// The likeliest token, or the one that was drawn, with its logit.
    pub fn first(&self) -> (usize, f32) {
        match self {
            Self::Logits(logits) => {
                let token = arg_max(logits);
                (token, logits.get(token).copied().unwrap_or(f32::NEG_INFINITY))
            }
            Self::Candidates(candidates) => candidates
                .best
                .first()
                .map_or((0, f32::NEG_INFINITY), |(token, logit)| (*token as usize, *logit)),
        }
    }

    /// The `count` likeliest tokens with their logits, as [`top`].
    pub fn best(&self, count: usize) -> Vec<(usize, f32)> {
        match self {
            Self::Logits(logits) => top(logits, count),
            Self::Candidates(candidates) => {
                candidates.best.iter().take(count).map(|(token, logit)| (*token as usize, *logit)).collect()
            }
        }
    }
}

/// The token that `chance` falls on when the softmax divides 0 to 1 up among the tokens in their order. The kernel in
/// crates/models/kernels/choose.cu draws the same one.
pub fn drawn(logits: &[f32], Chance { temperature, number }: Chance) -> Candidates {
    let mut shares: Vec<f32> = logits.iter().map(|x| x / temperature).collect();
    softmax(&mut shares);
    let mut left = number;
    let mut chosen = arg_max(logits);
    for (token, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
        chosen = token;
        left -= share;
        if left < 0.0 {
            break;
        }
    }
    Candidates { total: log_sum_exp(logits), best: vec![(chosen as u32, logits[chosen])] }
}

pub fn max(logits: &[f32]) -> f32 {
    // Without a case for what is no number it is one instruction.
    logits.iter().fold(f32::NEG_INFINITY, |most, x| if *x > most { *x } else { most })
}

/// The first of the largest entries.
pub fn arg_max(logits: &[f32]) -> usize {
    let max = max(logits);
    logits.iter().position(|x| *x == max).unwrap_or_default()
}

/// The `count` largest entries with their values, largest first, earlier ones
/// before later ones of the same value. Masked entries are left out.
pub fn top(logits: &[f32], count: usize) -> Vec<(usize, f32)> {
    let mut best: Vec<(usize, f32)> = Vec::with_capacity(count + 1);
    for (index, value) in logits.iter().enumerate() {
        if *value == f32::NEG_INFINITY {
            continue;
        }
        if best.len() == count && best.last().is_some_and(|(_, worst)| worst >= value) {
            continue;
        }
        let place = best.partition_point(|(_, other)| other >= value);
        best.insert(place, (index, *value));
        best.truncate(count);
    }
    best
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
    fn top_is_ordered_and_skips_masked_entries() {
        let row = [0.5, f32::NEG_INFINITY, 2.0, 2.0, -1.0];
        assert_eq!(top(&row, 3), [(2, 2.0), (3, 2.0), (0, 0.5)]);
        assert_eq!(top(&row, 9).len(), 4);
        assert_eq!(arg_max(&row), 2);
    }

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
            let found = drawn(&row, Chance { temperature, number });
            assert_eq!(found.best, [(expected, row[expected as usize])], "{temperature}, {number}");
            // Its probability is that of temperature 1.
            assert!((found.total - (2.0 + f32::ln(4.0))).abs() < 1e-6);
        }
    }

    #[test]
    fn softmax_sums_to_one() {
        let mut row = [90.0, 89.0, f32::NEG_INFINITY];
        softmax(&mut row);
        assert!((row[0] - 0.7310586).abs() < 1e-5 && row[2] == 0.0);
    }
}
