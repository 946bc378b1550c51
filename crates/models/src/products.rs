//! Products of a matrix with few rows of activations, as a decoder's step
//! needs them: what bounds them is how fast the weights are read, so that each
//! row of weights is read once and multiplied by all rows of activations.

use rayon::prelude::*;

use crate::vectorised::{Work, mul_add, vectorised};

/// Weights that a thread takes at a time: some tens of microseconds of work.
const PIECE: usize = 1 << 15;
/// Sums of a product that are added up at the end. Always as many, so that a
/// result does not depend on how many rows are multiplied together.
const LANES: usize = 16;

/// Rows of weights, in whichever way they are held.
pub trait Rows: Sync {
    /// Row `number` times each row of `x`; `room` has place for a row.
    fn times<const FMA: bool>(&self, number: usize, room: &mut [f32], x: &[f32], out: &mut [f32]);
}

/// Rows in 32-bit floats.
pub struct Wide<'a>(pub &'a [f32]);

impl Rows for Wide<'_> {
    #[inline(always)]
    fn times<const FMA: bool>(&self, number: usize, room: &mut [f32], x: &[f32], out: &mut [f32]) {
        row_times::<FMA>(&self.0[number * room.len()..][..room.len()], x, out);
    }
}

/// `x W'`: `x` is (count, columns), W is `rows` rows of `columns`; the result
/// is (count, rows).
pub fn product_of_few(weights: &impl Rows, rows: usize, columns: usize, x: &[f32]) -> Vec<f32> {
    let count = x.len() / columns.max(1);
    let at_once = (PIECE / columns.max(1)).max(1);
    let mut columns_first = vec![0.0; rows * count];
    columns_first.par_chunks_mut((at_once * count).max(1)).enumerate().for_each_init(
        || vec![0.0; columns],
        |room, (piece, out)| {
            vectorised(Products { weights, first: piece * at_once, room, x, out });
        },
    );
    if count == 1 { columns_first } else { transposed(&columns_first, count) }
}

/// Rows of weights times each row of `x`.
struct Products<'a, R> {
    weights: &'a R,
    first: usize,
    /// As long as a row.
    room: &'a mut [f32],
    x: &'a [f32],
    /// (rows of weights, rows of x)
    out: &'a mut [f32],
}

impl<R: Rows> Work for Products<'_, R> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let count = self.x.len() / self.room.len();
        for (number, out) in self.out.chunks_exact_mut(count).enumerate() {
            self.weights.times::<FMA>(self.first + number, self.room, self.x, out);
        }
    }
}

/// Rows of `x` that share what is loaded of a row of weights.
const TOGETHER: usize = 4;

/// A row of weights times each row of `x`.
#[inline(always)]
pub fn row_times<const FMA: bool>(row: &[f32], x: &[f32], out: &mut [f32]) {
    let (fours, rest) = out.as_chunks_mut::<TOGETHER>();
    let (x_fours, x_rest) = x.split_at(fours.len() * TOGETHER * row.len());
    for (out, x) in fours.iter_mut().zip(x_fours.chunks_exact(TOGETHER * row.len())) {
        *out = dots::<FMA, TOGETHER>(row, x);
    }
    for (out, x) in rest.iter_mut().zip(x_rest.chunks_exact(row.len())) {
        [*out] = dots::<FMA, 1>(row, x);
    }
}

/// Weights that are widened at a time.
pub const BLOCK: usize = 32;

/// As [`row_times`], of a row in blocks of `BYTES` that `widen` makes [`BLOCK`]
/// weights and their scale of: what is widened stays in registers, and a scale
/// is applied to a block's sums.
#[inline(always)]
pub fn blocks_times<const FMA: bool, const BYTES: usize>(
    row: &[[u8; BYTES]],
    x: &[f32],
    out: &mut [f32],
    widen: impl Fn(&[u8; BYTES]) -> (f32, [f32; BLOCK]),
) {
    let columns = row.len() * BLOCK;
    let (fours, rest) = out.as_chunks_mut::<TOGETHER>();
    let (x_fours, x_rest) = x.split_at(fours.len() * TOGETHER * columns);
    for (out, x) in fours.iter_mut().zip(x_fours.chunks_exact(TOGETHER * columns)) {
        *out = block_dots::<FMA, BYTES, TOGETHER>(row, x, &widen);
    }
    for (out, x) in rest.iter_mut().zip(x_rest.chunks_exact(columns)) {
        [*out] = block_dots::<FMA, BYTES, 1>(row, x, &widen);
    }
}

#[inline(always)]
fn block_dots<const FMA: bool, const BYTES: usize, const N: usize>(
    row: &[[u8; BYTES]],
    x: &[f32],
    widen: impl Fn(&[u8; BYTES]) -> (f32, [f32; BLOCK]),
) -> [f32; N] {
    let columns = row.len() * BLOCK;
    let mut sums = [[0.0; LANES]; N];
    for (at, block) in row.iter().enumerate() {
        let (scale, weights) = widen(block);
        for (number, sums) in sums.iter_mut().enumerate() {
            let x = &x[number * columns + at * BLOCK..][..BLOCK];
            for lane in 0..LANES {
                let other = lane + LANES;
                let of_block = mul_add::<FMA>(weights[other], x[other], weights[lane] * x[lane]);
                sums[lane] = mul_add::<FMA>(scale, of_block, sums[lane]);
            }
        }
    }
    // As in `dots`.
    std::hint::black_box(sums).map(|sums| sums.iter().sum())
}

/// `row` times each of the `N` rows of `x`.
#[inline(always)]
fn dots<const FMA: bool, const N: usize>(row: &[f32], x: &[f32]) -> [f32; N] {
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
    // Where the compiler sees how lanes are added up, it cuts the loop above
    // into vectors of two numbers that suit this sum.
    let sums = std::hint::black_box(sums);
    let mut out = [0.0; N];
    for (number, (out, sums)) in out.iter_mut().zip(sums).enumerate() {
        let x = &x[(number + 1) * columns - rest.len()..][..rest.len()];
        *out = sums.iter().sum::<f32>() + rest.iter().zip(x).map(|(a, b)| a * b).sum::<f32>();
    }
    out
}

/// (n, count) -> (count, n)
fn transposed(columns_first: &[f32], count: usize) -> Vec<f32> {
    let rows = columns_first.len() / count.max(1);
    let mut out = vec![0.0; columns_first.len()];
    for (number, out) in out.chunks_exact_mut(rows.max(1)).enumerate() {
        for (out, column) in out.iter_mut().zip(columns_first.chunks_exact(count)) {
            *out = column[number];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the numbers of rows: those of the plain sum, and the same for
    /// a row alone as among others.
    #[test]
    fn products_are_those_of_plain_sums() {
        let number = |i: usize| ((i * 2_654_435_761) % 1_000) as f32 / 500.0 - 1.0;
        for (rows, columns, count) in [(1, 1, 1), (5, 17, 3), (300, 384, 5), (70, 512, 8), (2, 40, 13)] {
            let weights: Vec<f32> = (0..rows * columns).map(number).collect();
            let x: Vec<f32> = (0..count * columns).map(|i| number(i + 7)).collect();
            let found = product_of_few(&Wide(&weights), rows, columns, &x);
            for (i, x) in x.chunks_exact(columns).enumerate() {
                for (j, row) in weights.chunks_exact(columns).enumerate() {
                    let expected: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    let found = f64::from(found[i * rows + j]);
                    assert!((found - expected).abs() < 1e-4, "{rows} x {columns}, {i} {j}: {found}");
                }
                let alone = product_of_few(&Wide(&weights), rows, columns, x);
                assert_eq!(alone, &found[i * rows..][..rows], "{rows} x {columns}: row {i} alone");
            }
        }
    }
}
