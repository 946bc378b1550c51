//! Products of a matrix with few rows of activations, as in a step of a decoder.
//! Their speed is bound by memory bandwidth, so each row of weights is read once
//! and multiplied by all rows of activations.

use rayon::prelude::*;

use crate::vectorised::{Kernel, mul_add, vectorised};

/// Weights that a thread processes at a time: tens of microseconds of work.
pub const WEIGHTS_PER_TASK: usize = 1 << 15;
/// Partial sums of a dot product. Their number is fixed, so that a result does
/// not depend on how many rows are multiplied together.
const LANES: usize = 16;

/// A matrix of weights that can be multiplied row by row.
pub trait WeightRows: Sync {
    /// Writes to `out` the dot products of row `number` with each row of `x`.
    /// `scratch` is as long as a row.
    fn multiply_row<const FMA: bool>(&self, number: usize, scratch: &mut [f32], x: &[f32], out: &mut [f32]);
}

/// Rows of 32-bit floats.
pub struct DenseRows<'a>(pub &'a [f32]);

impl WeightRows for DenseRows<'_> {
    #[inline(always)]
    fn multiply_row<const FMA: bool>(&self, number: usize, scratch: &mut [f32], x: &[f32], out: &mut [f32]) {
        row_times::<FMA>(&self.0[number * scratch.len()..][..scratch.len()], x, out);
    }
}

/// `x W'`: `x` is (count, columns), W is `rows` rows of `columns`; the result
/// is (count, rows).
pub fn product_of_few_rows(weights: &impl WeightRows, rows: usize, columns: usize, x: &[f32]) -> Vec<f32> {
    let count = x.len() / columns.max(1);
    let rows_per_task = (WEIGHTS_PER_TASK / columns.max(1)).max(1);
    let mut transposed_product = vec![0.0; rows * count];
    transposed_product.par_chunks_mut((rows_per_task * count).max(1)).enumerate().for_each_init(
        || vec![0.0; columns],
        |scratch, (task, out)| {
            vectorised(Products { weights, first: task * rows_per_task, scratch, x, out });
        },
    );
    if count == 1 { transposed_product } else { transposed(&transposed_product, count) }
}

/// A range of rows of weights times each row of `x`.
struct Products<'a, R> {
    weights: &'a R,
    first: usize,
    /// As long as a row of weights.
    scratch: &'a mut [f32],
    x: &'a [f32],
    /// (rows of weights, rows of x)
    out: &'a mut [f32],
}

impl<R: WeightRows> Kernel for Products<'_, R> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let count = self.x.len() / self.scratch.len();
        for (number, out) in self.out.chunks_exact_mut(count).enumerate() {
            self.weights.multiply_row::<FMA>(self.first + number, self.scratch, self.x, out);
        }
    }
}

/// Rows of `x` that are multiplied by each part of a row of weights while it is
/// in registers.
const ROWS_TOGETHER: usize = 4;

/// Writes to `out` the dot products of `row` with each row of `x`.
#[inline(always)]
pub fn row_times<const FMA: bool>(row: &[f32], x: &[f32], out: &mut [f32]) {
    let (fours, rest) = out.as_chunks_mut::<ROWS_TOGETHER>();
    let (x_fours, x_rest) = x.split_at(fours.len() * ROWS_TOGETHER * row.len());
    for (out, x) in fours.iter_mut().zip(x_fours.chunks_exact(ROWS_TOGETHER * row.len())) {
        *out = dot_rows::<FMA, ROWS_TOGETHER>(row, x);
    }
    for (out, x) in rest.iter_mut().zip(x_rest.chunks_exact(row.len())) {
        [*out] = dot_rows::<FMA, 1>(row, x);
    }
}

/// Weights that are converted to 32 bits at a time.
pub const BLOCK_WEIGHTS: usize = 32;

/// As [`row_times`] for a row in blocks of `BYTES` bytes. `decode` turns a block
/// into a scale and [`BLOCK_WEIGHTS`] weights, which stay in registers; the scale
/// is applied to the sums of the block.
#[inline(always)]
pub fn blocks_times<const FMA: bool, const BYTES: usize>(
    row: &[[u8; BYTES]],
    x: &[f32],
    out: &mut [f32],
    decode: impl Fn(&[u8; BYTES]) -> (f32, [f32; BLOCK_WEIGHTS]),
) {
    let columns = row.len() * BLOCK_WEIGHTS;
    let (fours, rest) = out.as_chunks_mut::<ROWS_TOGETHER>();
    let (x_fours, x_rest) = x.split_at(fours.len() * ROWS_TOGETHER * columns);
    for (out, x) in fours.iter_mut().zip(x_fours.chunks_exact(ROWS_TOGETHER * columns)) {
        *out = dot_block_rows::<FMA, BYTES, ROWS_TOGETHER>(row, x, &decode);
    }
    for (out, x) in rest.iter_mut().zip(x_rest.chunks_exact(columns)) {
        [*out] = dot_block_rows::<FMA, BYTES, 1>(row, x, &decode);
    }
}

#[inline(always)]
fn dot_block_rows<const FMA: bool, const BYTES: usize, const N: usize>(
    row: &[[u8; BYTES]],
    x: &[f32],
    decode: impl Fn(&[u8; BYTES]) -> (f32, [f32; BLOCK_WEIGHTS]),
) -> [f32; N] {
    let columns = row.len() * BLOCK_WEIGHTS;
    let mut sums = [[0.0; LANES]; N];
    for (at, block) in row.iter().enumerate() {
        let (scale, weights) = decode(block);
        for (number, sums) in sums.iter_mut().enumerate() {
            let x = &x[number * columns + at * BLOCK_WEIGHTS..][..BLOCK_WEIGHTS];
            for lane in 0..LANES {
                let other = lane + LANES;
                let of_block = mul_add::<FMA>(weights[other], x[other], weights[lane] * x[lane]);
                sums[lane] = mul_add::<FMA>(scale, of_block, sums[lane]);
            }
        }
    }
    // As in `dot_rows`.
    std::hint::black_box(sums).map(sum_of_lanes)
}

/// The sum of all lanes, each half added to the other: four additions wait for one another where there would be fifteen.
#[inline(always)]
fn sum_of_lanes(lanes: [f32; LANES]) -> f32 {
    let mut sums = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            sums[lane] += sums[lane + half];
        }
        half /= 2;
    }
    sums[0]
}

/// The dot products of `row` with each of the `N` rows of `x`.
#[inline(always)]
fn dot_rows<const FMA: bool, const N: usize>(row: &[f32], x: &[f32]) -> [f32; N] {
    let columns = row.len();
    let mut sums = [[0.0; LANES]; N];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for (at, weights) in chunks.iter().enumerate() {
        for (number, sums) in sums.iter_mut().enumerate() {
            let x = &x[number * columns + at * LANES..][..LANES];
            for lane in 0..LANES {
                sums[lane] = mul_add::<FMA>(weights[lane], x[lane], sums[lane]);
            }
        }
    }
    // Hides the sum of the lanes from the optimiser, which would otherwise
    // compile the loop above to vectors of only two numbers to suit the sum.
    let sums = std::hint::black_box(sums);
    let mut out = [0.0; N];
    for (number, (out, sums)) in out.iter_mut().zip(sums).enumerate() {
        let x = &x[(number + 1) * columns - rest.len()..][..rest.len()];
        *out = sum_of_lanes(sums) + rest.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
    }
    out
}

/// (n, count) -> (count, n)
fn transposed(values: &[f32], count: usize) -> Vec<f32> {
    let rows = values.len() / count.max(1);
    let mut out = vec![0.0; values.len()];
    for (number, out) in out.chunks_exact_mut(rows.max(1)).enumerate() {
        for (out, column) in out.iter_mut().zip(values.chunks_exact(count)) {
            *out = column[number];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Products equal plain sums, and are bit-identical for a row alone and among
    /// others.
    #[test]
    fn products_equal_plain_sums() {
        let number = |i: usize| ((i * 2_654_435_761) % 1_000) as f32 / 500.0 - 1.0;
        for (rows, columns, count) in [(1, 1, 1), (5, 17, 3), (300, 384, 5), (70, 512, 8), (2, 40, 13)] {
            let weights: Vec<f32> = (0..rows * columns).map(number).collect();
            let x: Vec<f32> = (0..count * columns).map(|i| number(i + 7)).collect();
            let found = product_of_few_rows(&DenseRows(&weights), rows, columns, &x);
            for (i, x) in x.chunks_exact(columns).enumerate() {
                for (j, row) in weights.chunks_exact(columns).enumerate() {
                    let expected: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let found = f64::from(found[i * rows + j]);
                    assert!((found - expected).abs() < 1e-4, "{rows} x {columns}, {i} {j}: {found}");
                }
                let alone = product_of_few_rows(&DenseRows(&weights), rows, columns, x);
                assert_eq!(alone, &found[i * rows..][..rows], "{rows} x {columns}: row {i} alone");
            }
        }
    }
}
