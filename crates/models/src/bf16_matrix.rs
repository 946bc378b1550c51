//! Products of matrices in BF16: weights and activations rounded to 16 bits, sums in 32-bit floats. A row of the result
//! depends on its row of activations alone.
//!
//! For encoders, which compute many rows, on processors with AVX-512 BF16: twice the products of 32 bits per cycle.

use std::fmt;
use std::ops::Range;

use half::bf16;
use memory::Precision;
use rayon::prelude::*;

use crate::blocks::{bytes_of, to_f32};
use crate::panels::{BLOCK, PANEL, Tile, padded, product_by_rows, tiles_of_columns, tiles_of_rows};
use crate::vectorised::{self, vectorised};

/// Two numbers, which one instruction multiplies with two others and adds.
type Pair = [bf16; 2];

/// Whether this processor has an instruction for products in BF16.
pub fn is_fast_here() -> bool {
    Kernel::of_this_processor() != Kernel::Plain
}

/// Ways to compute the same sums, in other orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Number by number, for tests.
    Plain,
}

impl Kernel {
    fn of_this_processor() -> Self {
        #[cfg(target_arch = "x86_64")]
        if memory::processor::multiplies_in_bf16() {
            return Self::Avx512;
        }
        Self::Plain
    }
}

/// Weights in the order that the kernel reads them in: panel after panel, of each panel step after step.
pub struct Bf16Matrix {
    steps: Vec<Step>,
    rows: usize,
    columns: usize,
}

/// A pair of every column of a panel; no vector of it lies in two lines of the cache.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Step([Pair; PANEL]);

impl fmt::Debug for Bf16Matrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bf16Matrix({} x {})", self.rows, self.columns)
    }
}

/// Activations that a thread keeps from one product to the next, so that it allocates once.
pub type Scratch = Vec<Pair>;

impl Bf16Matrix {
    /// `weights` is `rows` rows of `columns` numbers of 16 bits.
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn new(weights: &[u8], rows: usize, columns: usize) -> Self {
        assert_eq!(weights.len(), rows * bytes_of(Precision::Bf16, columns));
        let mut matrix = Self::of_zeros(rows, columns);
        matrix
            .steps
            .par_chunks_mut((padded(columns) / 2).max(1))
            .zip(weights.par_chunks(bytes_of(Precision::Bf16, PANEL * columns).max(1)))
            .for_each(|(steps, weights)| {
                let mut values = vec![0.0; weights.len() / 2];
                to_f32(Precision::Bf16, weights, &mut values);
                tiles_of_rows(&values, columns, 0..columns, rounding(steps));
            });
        matrix
    }

    /// W of the `part` of the rows of `w`, each of `width` numbers.
    pub fn of_rows(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(w.len() / width, part.len());
        tiles_of_rows(w, width, part, rounding(&mut matrix.steps));
        matrix
    }

    /// W of the columns of `w` in the `part` of its rows, each of `width` numbers.
    pub fn of_columns(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(part.len(), w.len() / width);
        tiles_of_columns(w, width, part, rounding(&mut matrix.steps));
        matrix
    }

    fn of_zeros(rows: usize, columns: usize) -> Self {
        let zeros = Step([Pair::default(); PANEL]);
        Self { steps: vec![zeros; rows.div_ceil(PANEL) * padded(columns) / 2], rows, columns }
    }

    /// (rows, columns)
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// `x W'`: `x` is (count, columns); the result is (count, rows).
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn product(&self, x: &[f32]) -> Vec<f32> {
        let (rows, columns) = self.shape();
        assert!(x.len().is_multiple_of(columns.max(1)));
        product_by_rows(x, (rows, columns), |scratch, out, x| {
            self.scaled_product(scratch, out, (x, columns, 0..columns), 1.0);
        })
    }

    /// Writes to `out`, (count, rows), `scale` times the products of the `part` of each row of `x`, of `width` numbers, on
    /// this thread.
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn scaled_product(
        &self,
        scratch: &mut Scratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        self.scaled_product_with(Kernel::of_this_processor(), scratch, out, (x, width, part), scale);
    }

    fn scaled_product_with(
        &self,
        kernel: Kernel,
        scratch: &mut Scratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        let count = x.len() / width.max(1);
        assert!(part.len() == self.columns && out.len() == count * self.rows);
        if out.is_empty() || self.columns == 0 {
            return out.fill(0.0);
        }
        let pairs = padded(self.columns) / 2;
        // Zeros behind each row's numbers.
        scratch.clear();
        scratch.resize(count * pairs, Pair::default());
        vectorised(Rounding { pairs: scratch, stride: pairs, x, width, part });
        for (number, steps) in self.steps.chunks_exact(pairs).enumerate() {
            let panel = Panel { steps, first: number * PANEL, scale };
            match kernel {
                // SAFETY: the kernel is chosen where the processor has what its functions enable.
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx512 => unsafe { avx512::rows_times_panel(out, self.rows, scratch, &panel) },
                Kernel::Plain => plain(out, self.rows, scratch, &panel),
            }
        }
    }
}

/// Writes each tile that it is given, rounded, behind the one before.
fn rounding(steps: &mut [Step]) -> impl FnMut(&Tile) {
    let mut tiles = steps.as_chunks_mut().0.iter_mut();
    move |tile| {
        if let Some(steps) = tiles.next() {
            vectorised(TileRounding { tile, steps });
        }
    }
}

/// Weights of [`PANEL`] columns of the result from `first` on.
struct Panel<'a> {
    steps: &'a [Step],
    first: usize,
    /// By which the sums are multiplied.
    scale: f32,
}

/// To the nearest, ties to even.
#[inline(always)]
fn rounded(x: f32) -> bf16 {
    let bits = x.to_bits();
    let bits = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
    // Adding could carry a NaN over to zero.
    bf16::from_bits(if x.is_nan() { 0x7fc0 } else { bits as u16 })
}

/// Rounds the `part` of rows of `width` numbers to the beginnings of rows of `stride` pairs; what is behind stays as it is.
struct Rounding<'a> {
    pairs: &'a mut [Pair],
    stride: usize,
    x: &'a [f32],
    width: usize,
    part: Range<usize>,
}

impl vectorised::Kernel for Rounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let rows = self.pairs.chunks_exact_mut(self.stride).zip(self.x.chunks_exact(self.width));
        for (pairs, x) in rows {
            let halves = pairs.as_flattened_mut().iter_mut();
            halves.zip(&x[self.part.clone()]).for_each(|(half, x)| *half = rounded(*x));
        }
    }
}

struct TileRounding<'a> {
    tile: &'a Tile,
    steps: &'a mut [Step; BLOCK / 2],
}

impl vectorised::Kernel for TileRounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let rows = self.tile.as_chunks::<2>().0.iter().zip(self.steps);
        for ([first, second], Step(pairs)) in rows {
            for (pair, (first, second)) in pairs.iter_mut().zip(first.iter().zip(second)) {
                *pair = [rounded(*first), rounded(*second)];
            }
        }
    }
}

/// What the kernel computes, number by number.
fn plain(out: &mut [f32], width: usize, x: &[Pair], panel: &Panel) {
    for (out, x) in out.chunks_exact_mut(width).zip(x.chunks_exact(panel.steps.len())) {
        for (column, out) in out[panel.first..].iter_mut().take(PANEL).enumerate() {
            let weights = panel.steps.iter().map(|Step(pairs)| pairs[column]);
            let products = x.iter().zip(weights).flat_map(|(x, weights)| x.iter().zip(weights));
            *out = products.map(|(x, weight)| x.to_f32() * weight.to_f32()).sum::<f32>() * panel.scale;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        __m512, __m512bh, _mm512_dpbf16_ps, _mm512_loadu_si512, _mm512_mul_ps, _mm512_set1_epi32,
        _mm512_set1_ps, _mm512_setzero_ps, _mm512_storeu_ps,
    };
    use std::mem::transmute;

    use super::{PANEL, Pair, Panel, Step};
    use crate::panels::ROWS_TOGETHER;

    const LANES: usize = 16;
    const VECTORS: usize = PANEL / LANES;
    #[target_feature(enable = "avx512f,avx512bf16")]
    pub(super) fn rows_times_panel(out: &mut [f32], width: usize, x: &[Pair], panel: &Panel) {
        let (mut out, mut x) = (out, x);
        while !out.is_empty() {
            let count = match out.len() / width {
                ROWS_TOGETHER.. => ROWS_TOGETHER,
                6.. => 6,
                3.. => 3,
                _ => 1,
            };
            let (rows, of_rows);
            (rows, out) = out.split_at_mut(count * width);
            (of_rows, x) = x.split_at(count * panel.steps.len());
            match count {
                ROWS_TOGETHER => tile::<ROWS_TOGETHER>(rows, width, of_rows, panel),
                6 => tile::<6>(rows, width, of_rows, panel),
                3 => tile::<3>(rows, width, of_rows, panel),
                _ => tile::<1>(rows, width, of_rows, panel),
            }
        }
    }

    /// `N` rows times a panel. Compiled by itself: where it is inlined, other tiles take its registers.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512bf16")]
    fn tile<const N: usize>(out: &mut [f32], width: usize, x: &[Pair], panel: &Panel) {
        let per_row = panel.steps.len();
        let rows: [&[Pair]; N] = std::array::from_fn(|row| &x[row * per_row..][..per_row]);
        let mut sums = [[_mm512_setzero_ps(); VECTORS]; N];
        for (step, Step(weights)) in panel.steps.iter().enumerate() {
            let weights: [__m512bh; VECTORS] =
                std::array::from_fn(|vector| load(&weights[vector * LANES..(vector + 1) * LANES]));
            for (row, sums) in rows.iter().zip(&mut sums) {
                let pair = broadcast(row[step]);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = _mm512_dpbf16_ps(*sum, weights, pair);
                }
            }
        }
        for (out, sums) in out.chunks_exact_mut(width).zip(sums) {
            for (vector, sum) in sums.into_iter().enumerate() {
                // The last panel has columns that the result has not.
                let start = (panel.first + vector * LANES).min(width);
                store(&mut out[start..], _mm512_mul_ps(sum, _mm512_set1_ps(panel.scale)));
            }
        }
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    fn load(pairs: &[Pair]) -> __m512bh {
        assert!(pairs.len() == LANES);
        // SAFETY: all of them are there, and every pattern of bits is a vector of either type.
        unsafe { transmute(_mm512_loadu_si512(pairs.as_ptr().cast())) }
    }

    #[target_feature(enable = "avx512f,avx512bf16")]
    fn broadcast([first, second]: Pair) -> __m512bh {
        let both = u32::from(first.to_bits()) | u32::from(second.to_bits()) << 16;
        // SAFETY: every pattern of bits is a vector of either type.
        unsafe { transmute(_mm512_set1_epi32(both.cast_signed())) }
    }

    /// Writes as many of the lanes as there is room for.
    #[target_feature(enable = "avx512f")]
    fn store(out: &mut [f32], sums: __m512) {
        if let Some(out) = out.first_chunk_mut::<LANES>() {
            // SAFETY: there is room for all of them.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
            return;
        }
        let mut lanes = [0.0; LANES];
        // SAFETY: as above.
        unsafe { _mm512_storeu_ps(lanes.as_mut_ptr(), sums) };
        out.copy_from_slice(&lanes[..out.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::numbers;

    /// Against sums in 64 bits of what is rounded; parts of rows, W as it is and transposed, a row alone and among others.
    #[test]
    fn products_equal_plain_sums_of_rounded_numbers() {
        if !is_fast_here() {
            println!("skipped: this processor has no AVX-512 BF16");
        }
        for kernel in [Kernel::Plain, Kernel::of_this_processor()] {
            for (count, rows, width, part) in
                [(1, 1, 1, 0..1), (7, 50, 80, 16..80), (25, 33, 200, 7..108), (130, 70, 64, 0..64)]
            {
                let (w, x) = (numbers(rows * width, 1), numbers(count * width.max(rows), 2));
                let check = |matrix: &Bf16Matrix,
                             (x, width, part): (&[f32], usize, Range<usize>),
                             right: &dyn Fn(usize, usize) -> f32| {
                    let (mut scratch, mut out) = (Scratch::default(), vec![f32::NAN; count * matrix.rows]);
                    matrix.scaled_product_with(kernel, &mut scratch, &mut out, (x, width, part.clone()), 0.5);
                    for (out, x) in out.chunks_exact(matrix.rows).zip(x.chunks_exact(width)) {
                        for (column, found) in out.iter().enumerate() {
                            let pairs = x[part.clone()].iter().enumerate();
                            let pairs =
                                pairs.map(|(at, x)| (bf16::from_f32(*x), bf16::from_f32(right(at, column))));
                            let exact: f64 = pairs.map(|(a, b)| a.to_f64() * b.to_f64()).sum();
                            assert!(
                                (f64::from(*found) - 0.5 * exact).abs() < 1e-5,
                                "{kernel:?}: {found}, not {exact}"
                            );
                        }
                        let mut alone = vec![f32::NAN; matrix.rows];
                        matrix.scaled_product_with(
                            kernel,
                            &mut scratch,
                            &mut alone,
                            (x, width, part.clone()),
                            0.5,
                        );
                        assert_eq!(alone, out);
                    }
                };
                let matrix = Bf16Matrix::of_rows(&w, width, part.clone());
                check(&matrix, (&x[..count * width], width, part.clone()), &|at, row| {
                    w[row * width + part.start + at]
                });
                let matrix = Bf16Matrix::of_columns(&w, width, part.clone());
                check(&matrix, (&x[..count * rows], rows, 0..rows), &|at, column| {
                    w[at * width + part.start + column]
                });
            }
        }
    }

    /// Weights of a file and weights that are rounded here give the same numbers, however threads share the rows.
    #[test]
    fn products_of_stored_weights_are_those_of_rounded_ones() {
        let (count, rows, columns) = (130, 70, 40);
        let (weights, x) = (numbers(rows * columns, 3), numbers(count * columns, 4));
        let bytes: Vec<u8> =
            weights.iter().flat_map(|weight| bf16::from_f32(*weight).to_le_bytes()).collect();
        let stored = Bf16Matrix::new(&bytes, rows, columns).product(&x);
        let matrix = Bf16Matrix::of_rows(&weights, columns, 0..columns);
        let mut expected = vec![f32::NAN; count * rows];
        for (x, expected) in x.chunks(columns).zip(expected.chunks_mut(rows)) {
            matrix.scaled_product(&mut Scratch::default(), expected, (x, columns, 0..columns), 1.0);
        }
        assert_eq!(stored, expected);
    }

    #[test]
    fn numbers_are_rounded_as_half_does() {
        let special = [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-40];
        for x in numbers(10_000, 5).into_iter().chain(special) {
            assert_eq!(rounded(x), bf16::from_f32(x), "{x}");
        }
        for nan in [f32::NAN, f32::from_bits(0x7fff_ffff), f32::from_bits(0xffff_ffff)] {
            assert!(rounded(nan).is_nan());
        }
    }
}
