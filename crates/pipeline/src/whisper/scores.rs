//! Arithmetic on one row of logits.

use models::choose::Candidates;
use models::log_sum_exp;

/// What a search knows of one row: all logits, those that are not allowed masked, or the likeliest of them.
#[derive(Debug)]
pub enum Scores {
    Logits(Vec<f32>),
    #[cfg_attr(not(feature = "cuda"), allow(dead_code, reason = "a card alone chooses"))]
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

    /// The likeliest token with its logit.
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
    fn softmax_sums_to_one() {
        let mut row = [90.0, 89.0, f32::NEG_INFINITY];
        softmax(&mut row);
        assert!((row[0] - 0.7310586).abs() < 1e-5 && row[2] == 0.0);
    }
}
