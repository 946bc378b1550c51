//! Products of matrices in 8 bits: weights in blocks of Q8_0, activations rounded to 8 bits in blocks of the same
//! length, as GGML does. Sums of 32 products are exact in 32-bit integers; the sums of the blocks are added in 32-bit
//! floats, in their order. So a row of the result depends on its row of activations alone.
//!
//! For encoders, which compute many rows: with AVX-512 VNNI four to five times as fast as in 32 bits, in vectors of 256
//! bits two to three times. A decoder's few rows are bound by memory, and gain nothing.

use std::fmt;

use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::vectorised::{self, vectorised};

/// Weights that share a scale.
const BLOCK: usize = 32;
/// Bytes of a block of Q8_0: a scale in 16 bits, then the weights.
const BLOCK_BYTES: usize = 2 + BLOCK;
/// Columns of the result that are computed together: two vectors of 16.
const PANEL: usize = 32;
/// Four weights of each column of a panel.
const STEP: usize = 4 * PANEL;
/// Rows that a thread takes at a time: their activations stay in the second-level cache.
const ROWS_PER_TASK: usize = 96;

/// Whether this processor multiplies 8 bits faster than 32: with VNNI, in vectors of 512 or of 256 bits.
pub fn is_fast_here() -> bool {
    Kernel::of_this_processor() != Kernel::Plain
}

/// Ways to compute the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kernel {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// Number by number, for tests.
    Plain,
}

impl Kernel {
    #[cfg(target_arch = "x86_64")]
    fn of_this_processor() -> Self {
        [Self::Avx512, Self::Avx2].into_iter().find(|kernel| kernel.runs_here()).unwrap_or(Self::Plain)
    }

    #[cfg(target_arch = "x86_64")]
    fn runs_here(self) -> bool {
        match self {
            Self::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni"),
            Self::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("avxvnni")
            }
            Self::Plain => true,
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn of_this_processor() -> Self {
        Self::Plain
    }

    /// All that this processor can run.
    #[cfg(test)]
    fn of_this_machine() -> Vec<Self> {
        #[cfg(target_arch = "x86_64")]
        return [Self::Avx512, Self::Avx2].into_iter().filter(|kernel| kernel.runs_here()).collect();
        #[cfg(not(target_arch = "x86_64"))]
        return Vec::new();
    }
}

/// Rounded activations.
struct Rounded {
    values: Vec<i8>,
    /// For each block its scale, and 128 times the sum of its values, which the weights' offset adds to a product.
    blocks: Vec<(f32, i32)>,
}

/// Weights in the order that the kernels read them in: panel after panel, of each panel block after block, of each
/// block four weights of every column, then the next four. 128 is added to each, since the instruction takes one unsigned
/// factor.
pub struct EightBitMatrix {
    values: Vec<u8>,
    /// In the same order, one per column and block.
    scales: Vec<f16>,
    rows: usize,
    columns: usize,
}

impl fmt::Debug for EightBitMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EightBitMatrix({} x {})", self.rows, self.columns)
    }
}

impl EightBitMatrix {
    /// `weights` is `rows` rows of `columns` in Q8_0.
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn new(weights: &[u8], rows: usize, columns: usize) -> Self {
        let row_bytes = columns / BLOCK * BLOCK_BYTES;
        assert_eq!(weights.len(), rows * row_bytes);
        let panels = rows.div_ceil(PANEL);
        // Columns behind the last have weights of zero and a scale of zero.
        let mut values = vec![0; panels * PANEL * columns];
        let mut scales = vec![f16::ZERO; panels * PANEL * columns / BLOCK];
        values
            .par_chunks_mut(PANEL * columns)
            .zip(scales.par_chunks_mut(PANEL * columns / BLOCK))
            .zip(weights.par_chunks(PANEL * row_bytes))
            .for_each(|((values, scales), weights)| {
                for (column, row) in weights.chunks_exact(row_bytes).enumerate() {
                    let blocks = row.as_chunks::<BLOCK_BYTES>().0.iter();
                    let places =
                        values.chunks_exact_mut(PANEL * BLOCK).zip(scales.as_chunks_mut::<PANEL>().0);
                    for (block, (values, scales)) in blocks.zip(places) {
                        scales[column] = f16::from_le_bytes([block[0], block[1]]);
                        let fours = block[2..].as_chunks::<4>().0.iter();
                        for (four, values) in fours.zip(values.as_chunks_mut::<STEP>().0) {
                            // Adding 128 to a signed number turns its highest bit.
                            values[4 * column..4 * column + 4]
                                .copy_from_slice(&four.map(|weight| weight ^ 0x80));
                        }
                    }
                }
            });
        Self { values, scales, rows, columns }
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
        self.product_with(Kernel::of_this_processor(), x)
    }

    fn product_with(&self, kernel: Kernel, x: &[f32]) -> Vec<f32> {
        let (rows, columns) = self.shape();
        let x = round(x, columns);
        let count = x.values.len() / columns;
        let mut out = vec![0.0; count * rows];
        let blocks = columns / BLOCK;
        out.par_chunks_mut((ROWS_PER_TASK * rows).max(1))
            .zip(x.values.par_chunks(ROWS_PER_TASK * columns))
            .zip(x.blocks.par_chunks(ROWS_PER_TASK * blocks))
            .for_each_init(
                || vec![0.0; PANEL * blocks],
                |of_panel, ((out, values), scales)| {
                    self.times_rows(kernel, out, &RoundedRows { values, blocks: scales }, of_panel);
                },
            );
        out
    }

    /// Writes to `out` the products of rows of activations with all columns. `scales` has room for those of a panel.
    fn times_rows(&self, kernel: Kernel, out: &mut [f32], x: &RoundedRows, scales: &mut [f32]) {
        let values = self.values.chunks_exact(PANEL * self.columns);
        let panels = values.zip(self.scales.chunks_exact(PANEL * self.columns / BLOCK));
        for (number, (values, halves)) in panels.enumerate() {
            halves.convert_to_f32_slice(scales);
            let panel = Panel { values, scales, first: number * PANEL, columns: self.columns };
            match kernel {
                // SAFETY: a kernel is chosen where the processor has what its functions enable.
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx512 => unsafe { avx512::rows_times_panel(out, self.rows, x, &panel) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Kernel::Avx2 => unsafe { avx2::rows_times_panel(out, self.rows, x, &panel) },
                Kernel::Plain => plain(out, self.rows, x, &panel),
            }
        }
    }
}

/// Some rows of rounded activations.
struct RoundedRows<'a> {
    values: &'a [i8],
    blocks: &'a [(f32, i32)],
}

/// Weights of [`PANEL`] columns of the result from `first` on.
struct Panel<'a> {
    values: &'a [u8],
    scales: &'a [f32],
    first: usize,
    /// Weights of each column.
    columns: usize,
}

/// Rounds each block of activations to multiples of its scale, a 127th of its largest value.
fn round(x: &[f32], columns: usize) -> Rounded {
    assert!(columns.is_multiple_of(BLOCK) && x.len().is_multiple_of(columns.max(1)));
    let mut values = vec![0; x.len()];
    let mut blocks = vec![(0.0, 0); x.len() / BLOCK];
    let task = ROWS_PER_TASK * columns.max(1);
    values
        .par_chunks_mut(task)
        .zip(blocks.par_chunks_mut(task / BLOCK))
        .zip(x.par_chunks(task))
        .for_each(|((values, blocks), x)| vectorised(Rounding { values, blocks, x }));
    Rounded { values, blocks }
}

struct Rounding<'a> {
    values: &'a mut [i8],
    blocks: &'a mut [(f32, i32)],
    x: &'a [f32],
}

/// A number that leaves no bits for fractions when it is added: what is added is rounded, ties to even.
const ROUNDER: f32 = 1.5 * (1u32 << 23) as f32;
/// Below this a scale has no finite inverse.
const LEAST_SCALE: f32 = 1e-30;

impl vectorised::Kernel for Rounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let values = self.values.as_chunks_mut::<BLOCK>().0.iter_mut();
        for ((values, of_block), x) in values.zip(self.blocks).zip(self.x.as_chunks::<BLOCK>().0) {
            // As whole numbers the bits of positive floats have the same order, and NaN is the largest.
            let largest = x.iter().fold(0, |largest: u32, x| largest.max(x.abs().to_bits()));
            let scale = f32::from_bits(largest) / 127.0;
            let inverse = if scale < LEAST_SCALE { 0.0 } else { 1.0 / scale };
            let mut sum = 0i32;
            for (value, x) in values.iter_mut().zip(x) {
                let rounded = (x * inverse + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits());
                *value = rounded.cast_signed() as i8;
                sum += i32::from(*value);
            }
            *of_block = (scale, 128 * sum);
        }
    }
}

/// What the kernels compute, number by number.
fn plain(out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
    let columns = panel.columns;
    let rows = x.values.chunks_exact(columns).zip(x.blocks.chunks_exact(columns / BLOCK));
    for (out, (values, blocks)) in out.chunks_exact_mut(width).zip(rows) {
        for (column, out) in out[panel.first..].iter_mut().take(PANEL).enumerate() {
            let mut sum = 0.0f32;
            for (number, (scale, offset)) in blocks.iter().enumerate() {
                let mut whole = -offset;
                for at in 0..BLOCK {
                    let weight = panel.values[number * PANEL * BLOCK + at / 4 * STEP + 4 * column + at % 4];
                    whole += i32::from(weight) * i32::from(values[number * BLOCK + at]);
                }
                sum = (whole as f32).mul_add(scale * panel.scales[number * PANEL + column], sum);
            }
            *out = sum;
        }
    }
}

/// A kernel for vectors of one width.
#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($name:ident, $features:literal, lanes: $lanes:literal, vectors: $vectors:literal, rows: $rows:literal,
     $floats:ident, $zero:ident, $set:ident, $set_whole:ident, $load:ident, $load_whole:ident as $whole:ident,
     $store:ident, $dot:ident, $convert:ident, $multiply:ident, $fused:ident) => {
        mod $name {
            use std::arch::x86_64::{
                $convert, $dot, $floats, $fused, $load, $load_whole, $multiply, $set, $set_whole, $store,
                $whole, $zero,
            };

            use super::{BLOCK, PANEL, Panel, RoundedRows, STEP};

            /// Columns of a vector.
            const LANES: usize = $lanes;
            /// Vectors and rows that are computed together: as many as there are registers for.
            const VECTORS: usize = $vectors;
            const ROWS: usize = $rows;
            /// Columns that are computed together.
            const PART: usize = LANES * VECTORS;

            #[target_feature(enable = $features)]
            pub(super) fn rows_times_panel(out: &mut [f32], width: usize, x: &RoundedRows, panel: &Panel) {
                let columns = panel.columns;
                let tiles = out
                    .chunks_mut(ROWS * width)
                    .zip(x.values.chunks(ROWS * columns))
                    .zip(x.blocks.chunks(ROWS * columns / BLOCK));
                for ((out, values), blocks) in tiles {
                    for part in 0..PANEL / PART {
                        if out.len() == ROWS * width {
                            tile::<ROWS>(out, (part, width), values, blocks, panel);
                            continue;
                        }
                        let rows = out
                            .chunks_exact_mut(width)
                            .zip(values.chunks_exact(columns))
                            .zip(blocks.chunks_exact(columns / BLOCK));
                        for ((out, values), blocks) in rows {
                            tile::<1>(out, (part, width), values, blocks, panel);
                        }
                    }
                }
            }

            /// `N` rows times a part of a panel.
            #[target_feature(enable = $features)]
            fn tile<const N: usize>(
                out: &mut [f32],
                (part, width): (usize, usize),
                values: &[i8],
                blocks: &[(f32, i32)],
                &Panel { values: weights, scales, first, columns }: &Panel,
            ) {
                let mut sums = [[$zero(); VECTORS]; N];
                let per_row = columns / BLOCK;
                let fours = values.as_chunks::<4>().0;
                let weights = weights.as_chunks::<{ PANEL * BLOCK }>().0;
                let of_panel = weights.iter().zip(scales.as_chunks::<PANEL>().0);
                for (number, (weights, scales)) in of_panel.enumerate() {
                    let mut whole: [[$whole; VECTORS]; N] =
                        std::array::from_fn(|row| [$set_whole(-blocks[row * per_row + number].1); VECTORS]);
                    for (step, weights) in weights.as_chunks::<STEP>().0.iter().enumerate() {
                        let weights: [$whole; VECTORS] = std::array::from_fn(|vector| {
                            let start = 4 * (part * PART + vector * LANES);
                            load_weights(&weights[start..start + 4 * LANES])
                        });
                        for (row, whole) in whole.iter_mut().enumerate() {
                            let at = row * columns / 4 + number * (BLOCK / 4) + step;
                            let four = $set_whole(i32::from_ne_bytes(fours[at].map(i8::cast_unsigned)));
                            for (whole, weights) in whole.iter_mut().zip(weights) {
                                *whole = $dot(*whole, weights, four);
                            }
                        }
                    }
                    let scales: [$floats; VECTORS] = std::array::from_fn(|vector| {
                        let start = part * PART + vector * LANES;
                        load_floats(&scales[start..start + LANES])
                    });
                    for (row, (sums, whole)) in sums.iter_mut().zip(whole).enumerate() {
                        let scale = $set(blocks[row * per_row + number].0);
                        for ((sum, whole), scales) in sums.iter_mut().zip(whole).zip(scales) {
                            *sum = $fused($convert(whole), $multiply(scale, scales), *sum);
                        }
                    }
                }
                for (row, sums) in sums.into_iter().enumerate() {
                    for (vector, sum) in sums.into_iter().enumerate() {
                        // The last panel has columns that the result has not.
                        let start = (first + part * PART + vector * LANES).min(width);
                        let count = LANES.min(width - start);
                        let mut lanes = [0.0; LANES];
                        // SAFETY: there is room for all of them.
                        unsafe { $store(lanes.as_mut_ptr(), sum) };
                        out[row * width + start..][..count].copy_from_slice(&lanes[..count]);
                    }
                }
            }

            #[target_feature(enable = $features)]
            fn load_weights(bytes: &[u8]) -> $whole {
                assert!(bytes.len() == 4 * LANES);
                // SAFETY: all of them are there.
                unsafe { $load_whole(bytes.as_ptr().cast()) }
            }

            #[target_feature(enable = $features)]
            fn load_floats(floats: &[f32]) -> $floats {
                assert!(floats.len() == LANES);
                // SAFETY: all of them are there.
                unsafe { $load(floats.as_ptr()) }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(
    avx512, "avx512f,avx512vnni", lanes: 16, vectors: 2, rows: 6, __m512, _mm512_setzero_ps, _mm512_set1_ps,
    _mm512_set1_epi32, _mm512_loadu_ps, _mm512_loadu_si512 as __m512i, _mm512_storeu_ps, _mm512_dpbusd_epi32,
    _mm512_cvtepi32_ps, _mm512_mul_ps, _mm512_fmadd_ps
);
#[cfg(target_arch = "x86_64")]
kernel!(
    avx2, "avx2,fma,avxvnni", lanes: 8, vectors: 2, rows: 3, __m256, _mm256_setzero_ps, _mm256_set1_ps,
    _mm256_set1_epi32, _mm256_loadu_ps, _mm256_loadu_si256 as __m256i, _mm256_storeu_ps, _mm256_dpbusd_avx_epi32,
    _mm256_cvtepi32_ps, _mm256_mul_ps, _mm256_fmadd_ps
);

#[cfg(test)]
mod tests {
    use memory::Precision;

    use super::*;
    use crate::packed::PackedMatrix;
    use crate::packed::tests::numbers;

    fn q8_0(values: &[f32], shape: (usize, usize)) -> Vec<u8> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        PackedMatrix::convert(Precision::F32, &bytes, shape, Precision::Q8_0).unwrap().bytes().to_vec()
    }

    /// The kernels of this processor, all of them bit by bit; a row alone and among others.
    #[test]
    fn kernels_compute_the_same_numbers() {
        let kernels = Kernel::of_this_machine();
        if !is_fast_here() {
            println!("skipped: this processor has no VNNI");
        }
        for (count, rows, columns) in [(1, 1, 32), (7, 33, 64), (13, 64, 512), (200, 70, 96)] {
            let weights = q8_0(&numbers(rows * columns, 1), (rows, columns));
            let x = numbers(count * columns, 2);
            let weights = EightBitMatrix::new(&weights, rows, columns);
            let expected = weights.product_with(Kernel::Plain, &x);
            for kernel in &kernels {
                let found = weights.product_with(*kernel, &x);
                assert_eq!(found, expected, "{kernel:?}, {count} x {columns} times {rows}");
            }
            let alone = weights.product_with(Kernel::Plain, &x[(count - 1) * columns..]);
            assert_eq!(alone, expected[(count - 1) * rows..]);
        }
    }

    /// What rounding costs, as a part of the largest number; and values that have no scale.
    #[test]
    fn products_are_near_those_of_exact_activations() {
        let (count, rows, columns) = (50, 40, 512);
        let values = numbers(rows * columns, 3);
        let weights = q8_0(&values, (rows, columns));
        let x = numbers(count * columns, 4);
        let matrix = EightBitMatrix::new(&weights, rows, columns);
        let found = matrix.product_with(Kernel::Plain, &x);
        let exact: Vec<f32> = x
            .chunks(columns)
            .flat_map(|x| {
                values.chunks(columns).map(move |row| row.iter().zip(x).map(|(a, b)| a * b).sum::<f32>())
            })
            .collect();
        let largest = exact.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
        let off = found.iter().zip(&exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(off < 0.01 * largest, "{off} of {largest}");
        for (value, is_expected) in [
            (0.0, (|found: f32| found == 0.0) as fn(f32) -> bool),
            (f32::MIN_POSITIVE, |found| found.abs() < 1e-30),
            (f32::NAN, f32::is_nan),
            (f32::INFINITY, |found| !found.is_finite()),
        ] {
            let found = matrix.product(&vec![value; columns]);
            assert!(found.iter().all(|found| is_expected(*found)), "{value}: {found:?}");
        }
    }
}
