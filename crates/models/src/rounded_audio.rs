//! Keys and values of what a decoder hears, on the host in 8 bits. Every token reads all of them: with small's dimensions
//! 29 MB per window and not 55 as in 16 bits.
//!
//! They are computed by matrices that multiply in 8 bits, so that 8 bits of the result cost little more. Queries and shares
//! have about 16 bits, as a decoder's other activations.

use std::ops::Range;

use candle_core::Tensor;
use rayon::prelude::*;

use crate::Error;
use crate::eight_bits::{EightBitMatrix, FineScratch};
use crate::fused::{columns_of_heads, exponentials_of_rows};
use crate::kv_cache::side_by_side;
use crate::matrix::with_values;

/// The keys and values of some windows in one layer.
#[derive(Debug)]
pub struct RoundedAudio {
    heads: usize,
    head_width: usize,
    positions: usize,
    /// Of each window and head, (positions x head width).
    keys: Vec<Vec<EightBitMatrix>>,
    /// The same, (head width x positions): a right factor of products with shares.
    values: Vec<Vec<EightBitMatrix>>,
}

impl RoundedAudio {
    /// `keys` and `values` compute (windows, positions, heads x head width), contiguous; one after the other, so that what
    /// they compute is not in memory together.
    pub fn new(
        heads: usize,
        keys: impl FnOnce() -> Result<Tensor, Error>,
        values: impl FnOnce() -> Result<Tensor, Error>,
    ) -> Result<Self, Error> {
        let (shape, keys) = rounded(&keys()?, heads, EightBitMatrix::of_rows)?;
        let (shape_of_values, values) = rounded(&values()?, heads, EightBitMatrix::of_columns)?;
        if shape != shape_of_values {
            let text = format!("keys of {shape:?} and values of {shape_of_values:?}");
            return Err(candle_core::Error::Msg(text).into());
        }
        let (_, positions, width) = shape;
        Ok(Self { heads, head_width: width / heads, positions, keys, values })
    }

    /// Attention of the queries `q`, (windows x n, count, heads x head width), to all positions; the result has the shape
    /// of `q`. The n sequences of a window share its keys and values.
    pub fn attend(&self, q: &Tensor, scale: f32) -> Result<Tensor, Error> {
        let queries = self.queries_per_window(q)?;
        let attended = with_values(q, |q| {
            let mut by_head = vec![0.0; q.len()];
            by_head.par_chunks_mut(queries * self.head_width).enumerate().for_each_init(
                || (vec![0.0; queries * self.positions], FineScratch::default()),
                |(scores, scratch), (number, out)| {
                    self.write_scores(scratch, scores, q, number, scale);
                    let sums = exponentials_of_rows(scores, self.positions);
                    let shares = (&scores[..], self.positions, 0..self.positions);
                    let values = &self.values[number / self.heads][number % self.heads];
                    values.fine_scaled_product(scratch, out, shares, 1.0);
                    for (out, sum) in out.chunks_exact_mut(self.head_width).zip(sums) {
                        out.iter_mut().for_each(|value| *value /= sum);
                    }
                },
            );
            side_by_side(&by_head, self.heads, queries, self.head_width)
        })?;
        Ok(Tensor::from_vec(attended, q.dims(), q.device())?)
    }

    /// The scores of one head before the softmax, (windows x n, count, positions).
    pub fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error> {
        let queries = self.queries_per_window(q)?;
        let found = with_values(q, |q| {
            let mut found = vec![0.0; self.keys.len() * queries * self.positions];
            let of_window = queries * self.positions;
            found.par_chunks_exact_mut(of_window).enumerate().for_each_init(
                FineScratch::default,
                |scratch, (window, scores)| {
                    self.write_scores(scratch, scores, q, window * self.heads + head, scale);
                },
            );
            found
        })?;
        Ok(Tensor::from_vec(found, (q.dim(0)?, q.dim(1)?, self.positions), q.device())?)
    }

    /// Writes the scores of a window's queries by head `number`, counted over all windows.
    fn write_scores(
        &self,
        scratch: &mut FineScratch,
        scores: &mut [f32],
        q: &[f32],
        number: usize,
        scale: f32,
    ) {
        let (window, head) = (number / self.heads, number % self.heads);
        let width = self.heads * self.head_width;
        let length = scores.len() / self.positions * width;
        let q = &q[window * length..][..length];
        let columns = head * self.head_width..(head + 1) * self.head_width;
        self.keys[window][head].fine_scaled_product(scratch, scores, (q, width, columns), scale);
    }

    /// Keeps only these windows, in ascending order, and frees the memory of the others.
    pub fn keep(&mut self, windows: &[usize]) {
        for held in [&mut self.keys, &mut self.values] {
            let mut number = 0;
            held.retain(|_| {
                number += 1;
                windows.contains(&(number - 1))
            });
        }
    }

    fn queries_per_window(&self, q: &Tensor) -> Result<usize, Error> {
        let (rows, count, width) = q.dims3()?;
        let windows = self.keys.len();
        if width != self.heads * self.head_width || windows == 0 || !rows.is_multiple_of(windows) {
            return Err(candle_core::Error::Msg(format!("{q:?} can't attend to {windows} windows")).into());
        }
        Ok(rows / windows * count)
    }
}

/// (windows, positions, width) of `x`, and of each window what `round` makes of the columns of each head.
#[expect(clippy::type_complexity, reason = "a shape, and matrices by window and head")]
fn rounded(
    x: &Tensor,
    heads: usize,
    round: impl Fn(&[f32], usize, Range<usize>) -> EightBitMatrix + Sync,
) -> Result<((usize, usize, usize), Vec<Vec<EightBitMatrix>>), Error> {
    let shape @ (_, positions, width) = x.dims3()?;
    if positions == 0 || width == 0 || heads == 0 || !width.is_multiple_of(heads) {
        return Err(candle_core::Error::Msg(format!("{x:?} of {heads} heads")).into());
    }
    let windows = with_values(x, |x| {
        let of_window = |x| columns_of_heads(width, heads).map(|columns| round(x, width, columns)).collect();
        x.chunks_exact(positions * width).map(of_window).collect()
    })?;
    Ok((shape, windows))
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;
    use crate::kv_cache::{AttentionMask, KvCache};

    /// (windows, sequences of each, queries, positions, heads, head width)
    const CASES: [(usize, usize, usize, usize, usize, usize); 4] =
        [(1, 1, 1, 1500, 6, 64), (2, 5, 1, 1500, 2, 64), (1, 1, 40, 100, 3, 80), (3, 1, 4, 7, 2, 16)];

    fn random(rows: usize, count: usize, width: usize) -> Tensor {
        Tensor::randn(0f32, 1.5, (rows, count, width), &Device::Cpu).unwrap()
    }

    fn of(k: &Tensor, v: &Tensor, heads: usize) -> Result<RoundedAudio, Error> {
        RoundedAudio::new(heads, || Ok(k.clone()), || Ok(v.clone()))
    }

    /// What is lost is what keys and values lose in 8 bits, in the mean: single results are off by more.
    #[test]
    fn attention_is_near_that_to_32_bits() {
        for (windows, n, count, positions, heads, head_width) in CASES {
            let width = heads * head_width;
            let (k, v) = (random(windows, positions, width), random(windows, positions, width));
            let q = random(windows * n, count, width);
            let mut exact = KvCache::<f32>::new(windows, heads, head_width, positions);
            exact.write_keys(0, &k).unwrap();
            exact.write_values(0, &v).unwrap();
            let rounded = of(&k, &v, heads).unwrap();
            let off = |a: Tensor, b: Tensor| {
                assert_eq!(a.dims(), b.dims());
                (a - b).unwrap().abs().unwrap().mean_all().unwrap().to_scalar::<f32>().unwrap()
            };
            let expected = exact.attend(&q, AttentionMask::Full(positions), 0.2).unwrap();
            let case = (windows, n, count, positions, heads, head_width);
            let of_attention = off(rounded.attend(&q, 0.2).unwrap(), expected);
            let of_scores =
                off(rounded.scores(&q, heads - 1, 0.2).unwrap(), exact.scores(&q, heads - 1, 0.2).unwrap());
            assert!(of_attention < 0.02 && of_scores < 0.03, "{case:?}: {of_attention} {of_scores}");
        }
    }

    #[test]
    fn windows_are_kept_with_what_they_hold() {
        let (k, v, q) = (random(3, 50, 32), random(3, 50, 32), random(3, 2, 32));
        let mut all = of(&k, &v, 2).unwrap();
        let expected = all.attend(&q, 0.3).unwrap().to_vec3::<f32>().unwrap();
        all.keep(&[0, 2]);
        let rows = Tensor::new(&[0u32, 2], &Device::Cpu).unwrap();
        let found = all.attend(&q.index_select(&rows, 0).unwrap(), 0.3).unwrap();
        assert_eq!(found.to_vec3::<f32>().unwrap(), [expected[0].clone(), expected[2].clone()]);
        assert!(all.attend(&q, 0.3).is_err(), "three rows, two windows");
        assert!(of(&k, &v, 5).is_err());
        assert!(of(&k, &random(3, 49, 32), 2).is_err());
    }
}
