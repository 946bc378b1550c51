//! Products of matrices in 8 bits: weights in blocks of Q8_0, activations rounded to 8 bits in blocks of the same
//! length, as GGML does. Sums of 32 products are exact in 32-bit integers; the sums of the blocks are added in 32-bit
//! floats, in their order. So a row of the result depends on its row of activations alone. Attention's keys and values,
//! which are computed anew for each window, are rounded as weights are.
//!
//! Many rows, as in an encoder, are computed four to five times as fast as in 32 bits with AVX-512 VNNI, in vectors of 256
//! bits two to three times. Few rows, as in a step of a decoder, are bound by memory, where converting each weight to 32
//! bits took longer than reading it.

use std::fmt;
use std::ops::Range;

use half::f16;
use memory::Precision;
use rayon::prelude::*;

use crate::blocks::bytes_of;
use crate::packed::{FEW_ROWS, PackedMatrix};
use crate::panels::{BLOCK, PANEL, Tile, rows_per_task, tiles_of, tiles_of_transposed};
use crate::vectorised::{self, vectorised};

/// Bytes of a block of Q8_0: a scale in 16 bits, then the weights.
const BLOCK_BYTES: usize = 2 + BLOCK;
/// Four weights of each column of a panel.
const STEP: usize = 4 * PANEL;
/// Weights that a thread takes at a time where there are few rows of activations: some microseconds of work.
const WEIGHTS_PER_TASK: usize = 1 << 16;

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
                    && is_x86_feature_detected!("f16c")
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
#[derive(Debug, Default)]
struct Rounded {
    values: Vec<i8>,
    /// For each block its scale, and 128 times the sum of its values, which the weights' offset adds to a product.
    blocks: Vec<(f32, i32)>,
}

/// What a thread keeps from one [`EightBitMatrix::scaled_product`] to the next, so that it allocates once.
#[derive(Debug, Default)]
pub struct Scratch {
    rounded: Rounded,
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
    /// `rows` x `columns` weights in the format `stored`, a panel at a time.
    ///
    /// # Errors
    /// A reason for [`Error::Files`](crate::Error::Files).
    pub fn convert(stored: Precision, bytes: &[u8], (rows, columns): (usize, usize)) -> Result<Self, String> {
        if bytes.len() != rows * bytes_of(stored, columns) || !columns.is_multiple_of(BLOCK) {
            return Err(format!("{rows} x {columns} weights don't fit {} bytes of {stored}", bytes.len()));
        }
        // Columns behind the last have weights of zero and a scale of zero.
        let mut matrix = Self::of_zeros(rows, columns);
        let places = matrix
            .values
            .par_chunks_mut((PANEL * columns).max(1))
            .zip(matrix.scales.par_chunks_mut((PANEL * columns / BLOCK).max(1)));
        let panels = bytes.par_chunks(bytes_of(stored, PANEL * columns).max(1));
        places.zip(panels).try_for_each(|((values, scales), bytes)| {
            let shape = (bytes.len() / bytes_of(stored, columns), columns);
            let packed = PackedMatrix::convert(stored, bytes, shape, Precision::Q8_0)?;
            write_panel(values, scales, packed.bytes(), columns);
            Ok::<_, String>(())
        })?;
        Ok(matrix)
    }

    /// W of its rows, each of `width` numbers, of which the `part` is taken, rounded in blocks of it.
    pub fn rounded(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(w.len() / width, part.len());
        tiles_of_transposed(w, width, part, matrix.rounding());
        matrix
    }

    /// As [`rounded`](Self::rounded), W having been given transposed.
    pub fn rounded_transposed(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(part.len(), w.len() / width);
        tiles_of(w, width, part, matrix.rounding());
        matrix
    }

    fn of_zeros(rows: usize, depth: usize) -> Self {
        let columns = depth.next_multiple_of(BLOCK);
        let numbers = rows.next_multiple_of(PANEL) * columns;
        Self { values: vec![0; numbers], scales: vec![f16::ZERO; numbers / BLOCK], rows, columns }
    }

    /// Writes each tile that it is given, rounded, behind the one before.
    fn rounding(&mut self) -> impl FnMut(&Tile) {
        let mut places = self.values.as_chunks_mut().0.iter_mut().zip(self.scales.as_chunks_mut().0);
        move |tile| {
            if let Some((values, scales)) = places.next() {
                vectorised(TileRounding { tile, values, scales });
            }
        }
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

    /// As [`product`](Self::product), activations having about 16 bits: what rounding them to 8 leaves is multiplied too.
    pub fn fine_product(&self, x: &[f32]) -> Vec<f32> {
        /// Bounds what is in memory beside the result.
        const ROWS_TOGETHER: usize = 128;
        let mut out = Vec::with_capacity(x.len() / self.columns.max(1) * self.rows);
        for x in x.chunks((ROWS_TOGETHER * self.columns).max(1)) {
            let mut both = vec![0.0; 2 * x.len()];
            let (rounded, rest) = both.split_at_mut(x.len());
            vectorised(Splitting { rounded, rest, x });
            let product = self.product(&both);
            let (of_rounded, of_rest) = product.split_at(product.len() / 2);
            out.extend(of_rounded.iter().zip(of_rest).map(|(rounded, rest)| rounded + rest));
        }
        out
    }

    fn product_with(&self, kernel: Kernel, x: &[f32]) -> Vec<f32> {
        let columns = self.columns;
        assert!(columns.is_multiple_of(BLOCK) && x.len().is_multiple_of(columns.max(1)));
        let count = x.len() / columns.max(1);
        if count <= FEW_ROWS {
            return self.product_of_few_rows(kernel, x, count);
        }
        let task = rows_per_task(count);
        let mut out = vec![0.0; count * self.rows];
        out.par_chunks_mut((task * self.rows).max(1)).zip(x.par_chunks(task * columns)).for_each_init(
            Scratch::default,
            |scratch, (out, x)| {
                self.scaled_product_with(kernel, scratch, out, (x, columns, 0..columns), 1.0);
            },
        );
        out
    }

    /// Threads take panels, not rows.
    fn product_of_few_rows(&self, kernel: Kernel, x: &[f32], count: usize) -> Vec<f32> {
        if count == 0 {
            return Vec::new();
        }
        let columns = self.columns;
        let mut x_rounded = Rounded { values: vec![0; x.len()], blocks: vec![(0.0, 0); x.len() / BLOCK] };
        let Rounded { values, blocks } = &mut x_rounded;
        vectorised(Rounding { values, blocks, x, width: columns, part: 0..columns, scale: 1.0 });
        let x = RoundedRows { values: &x_rounded.values, blocks: &x_rounded.blocks };
        // Panel after panel, of each panel row after row.
        let of_panel = count * PANEL;
        let mut by_panel = vec![0.0; self.rows.div_ceil(PANEL) * of_panel];
        let panels = (WEIGHTS_PER_TASK / (PANEL * columns).max(1)).max(1);
        by_panel.par_chunks_mut(panels * of_panel).enumerate().for_each(|(task, out)| {
            for (number, out) in out.chunks_exact_mut(of_panel).enumerate() {
                self.times_panel(kernel, task * panels + number, (out, PANEL, 0), &x);
            }
        });
        if count == 1 {
            by_panel.truncate(self.rows);
            return by_panel;
        }
        let mut out = vec![0.0; count * self.rows];
        for (number, out) in out.chunks_exact_mut(self.rows).enumerate() {
            let rows = by_panel.chunks_exact(of_panel).map(|panel| &panel[number * PANEL..][..PANEL]);
            out.chunks_mut(PANEL).zip(rows).for_each(|(out, row)| out.copy_from_slice(&row[..out.len()]));
        }
        out
    }

    /// The numbers of a row.
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn row(&self, number: usize) -> Vec<f32> {
        assert!(number < self.rows);
        let (panel, column) = (number / PANEL, number % PANEL);
        let values = &self.values[panel * PANEL * self.columns..][..PANEL * self.columns];
        let scales = self.scales[panel * PANEL * self.columns / BLOCK..].as_chunks::<PANEL>().0;
        let blocks = values.as_chunks::<{ PANEL * BLOCK }>().0.iter().zip(scales);
        let numbers = blocks.flat_map(|(values, scales)| {
            let fours =
                values.as_chunks::<STEP>().0.iter().flat_map(move |step| &step[4 * column..4 * column + 4]);
            fours.map(move |value| f32::from((value ^ 0x80).cast_signed()) * scales[column].to_f32())
        });
        numbers.collect()
    }

    /// Writes to `out`, (count, rows), `scale` times the products of the `part` of each row of `x`, of `width` numbers, on
    /// this thread. The part has as many numbers as this matrix has columns, or less than a block fewer.
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
        Scratch { rounded: Rounded { values, blocks } }: &mut Scratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        let count = x.len() / width;
        assert!(part.len().next_multiple_of(BLOCK) == self.columns && out.len() == count * self.rows);
        values.resize(count * self.columns, 0);
        blocks.resize(values.len() / BLOCK, (0.0, 0));
        vectorised(Rounding { values, blocks, x, width, part, scale });
        for number in 0..self.rows.div_ceil(PANEL) {
            let out = (&mut *out, self.rows, number * PANEL);
            self.times_panel(kernel, number, out, &RoundedRows { values, blocks });
        }
    }

    /// Writes to `out` from `first` on, in rows of `width`, the products of rows of activations with the columns of panel
    /// `number`.
    fn times_panel(
        &self,
        kernel: Kernel,
        number: usize,
        (out, width, first): (&mut [f32], usize, usize),
        x: &RoundedRows,
    ) {
        let (columns, of_panel) = (self.columns, PANEL * self.columns);
        let scales = &self.scales[number * of_panel / BLOCK..][..of_panel / BLOCK];
        let values = &self.values[number * of_panel..][..of_panel];
        let panel = Panel { values, scales, first, columns };
        match kernel {
            // SAFETY: a kernel is chosen where the processor has what its functions enable.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx512 => unsafe { avx512::rows_times_panel(out, width, x, &panel) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Kernel::Avx2 => unsafe { avx2::rows_times_panel(out, width, x, &panel) },
            Kernel::Plain => plain(out, width, x, &panel),
        }
    }
}

/// Writes rows of weights in Q8_0 in the order of the kernels.
fn write_panel(values: &mut [u8], scales: &mut [f16], weights: &[u8], columns: usize) {
    for (column, row) in weights.chunks_exact(columns / BLOCK * BLOCK_BYTES).enumerate() {
        let blocks = row.as_chunks::<BLOCK_BYTES>().0.iter();
        let places = values.chunks_exact_mut(PANEL * BLOCK).zip(scales.as_chunks_mut::<PANEL>().0);
        for (block, (values, scales)) in blocks.zip(places) {
            scales[column] = f16::from_le_bytes([block[0], block[1]]);
            let fours = block[2..].as_chunks::<4>().0.iter();
            for (four, values) in fours.zip(values.as_chunks_mut::<STEP>().0) {
                // Adding 128 to a signed number turns its highest bit.
                values[4 * column..4 * column + 4].copy_from_slice(&four.map(|weight| weight ^ 0x80));
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
    scales: &'a [f16],
    first: usize,
    /// Weights of each column.
    columns: usize,
}

/// Rounds each block of the `part` of rows of `width` numbers to multiples of its scale, a 127th of its largest value.
/// Blocks that are not full are filled up with zeros; the scales of the blocks are multiplied by `scale`.
struct Rounding<'a> {
    values: &'a mut [i8],
    blocks: &'a mut [(f32, i32)],
    x: &'a [f32],
    width: usize,
    part: Range<usize>,
    scale: f32,
}

/// A number that leaves no bits for fractions when it is added: what is added is rounded, ties to even.
const ROUNDER: f32 = 1.5 * (1u32 << 23) as f32;
/// Below this a scale has no finite inverse.
const LEAST_SCALE: f32 = 1e-30;

impl vectorised::Kernel for Rounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let per_row = self.part.len().div_ceil(BLOCK);
        let rows = self
            .values
            .chunks_exact_mut((per_row * BLOCK).max(1))
            .zip(self.blocks.chunks_exact_mut(per_row.max(1)));
        for ((values, blocks), x) in rows.zip(self.x.chunks_exact(self.width)) {
            let (whole, rest) = x[self.part.clone()].as_chunks::<BLOCK>();
            let mut places = values.as_chunks_mut::<BLOCK>().0.iter_mut().zip(blocks);
            for (x, (values, of_block)) in whole.iter().zip(&mut places) {
                *of_block = round_block(values, x, self.scale);
            }
            for (values, of_block) in places {
                let mut x = [0.0; BLOCK];
                x[..rest.len()].copy_from_slice(rest);
                *of_block = round_block(values, &x, self.scale);
            }
        }
    }
}

/// Splits whole blocks into what [`Rounding`] makes of them and the rest.
struct Splitting<'a> {
    rounded: &'a mut [f32],
    rest: &'a mut [f32],
    x: &'a [f32],
}

impl vectorised::Kernel for Splitting<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let places =
            self.rounded.as_chunks_mut::<BLOCK>().0.iter_mut().zip(self.rest.as_chunks_mut::<BLOCK>().0);
        for (x, (whole, rest)) in self.x.as_chunks::<BLOCK>().0.iter().zip(places) {
            let scale = largest(x) / 127.0;
            let inverse = inverse(scale);
            for ((whole, rest), x) in whole.iter_mut().zip(rest).zip(x) {
                *whole = rounded(x * inverse) as f32 * scale;
                *rest = x - *whole;
            }
        }
    }
}

/// Rounds a block and returns what belongs to it in [`Rounded::blocks`].
#[inline(always)]
fn round_block(values: &mut [i8; BLOCK], x: &[f32; BLOCK], factor: f32) -> (f32, i32) {
    let scale = largest(x) / 127.0;
    let inverse = inverse(scale);
    let mut sum = 0i32;
    for (value, x) in values.iter_mut().zip(x) {
        let rounded = rounded(x * inverse);
        *value = rounded as i8;
        // It can't overflow; a check would keep the loop from being vectorised.
        sum = sum.wrapping_add(i32::from(*value));
    }
    (scale * factor, 128 * sum)
}

/// The largest absolute value. As whole numbers the bits of positive floats have the same order, and NaN is the largest.
#[inline(always)]
fn largest(x: &[f32; BLOCK]) -> f32 {
    f32::from_bits(x.iter().fold(0, |largest: u32, x| largest.max(x.abs().to_bits())))
}

/// Zero where there is none.
#[inline(always)]
fn inverse(scale: f32) -> f32 {
    if scale < LEAST_SCALE { 0.0 } else { 1.0 / scale }
}

/// The nearest whole number, of magnitudes below 2^22.
#[inline(always)]
fn rounded(x: f32) -> i32 {
    (x + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()).cast_signed()
}

/// Rounds a block of each column of a tile, and writes it in the order of the kernels.
struct TileRounding<'a> {
    tile: &'a Tile,
    values: &'a mut [u8; PANEL * BLOCK],
    scales: &'a mut [f16; PANEL],
}

impl vectorised::Kernel for TileRounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut largest = [0u32; PANEL];
        for row in self.tile {
            for (largest, x) in largest.iter_mut().zip(row) {
                *largest = (*largest).max(x.abs().to_bits());
            }
        }
        let scales = largest.map(|largest| f16::from_f32(f32::from_bits(largest) / 127.0));
        // Of what the scale is in 16 bits, so that its own rounding adds no error.
        let inverses = scales.map(|scale| inverse(scale.to_f32()));
        *self.scales = scales;
        for (rows, values) in self.tile.as_chunks::<4>().0.iter().zip(self.values.as_chunks_mut::<STEP>().0) {
            for (at, row) in rows.iter().enumerate() {
                for (column, (x, inverse)) in row.iter().zip(inverses).enumerate() {
                    // A scale that was rounded down makes the largest number larger than 127.
                    let value = rounded((x * inverse).clamp(-127.0, 127.0));
                    values[4 * column + at] = value as u8 ^ 0x80;
                }
            }
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
                let weight_scale = panel.scales[number * PANEL + column].to_f32();
                sum = (whole as f32).mul_add(scale * weight_scale, sum);
            }
            *out = sum;
        }
    }
}

/// A kernel for vectors of one width.
#[cfg(target_arch = "x86_64")]
macro_rules! kernel {
    ($name:ident, $features:literal, lanes: $lanes:literal, vectors: $vectors:literal, rows: $rows:literal,
     $floats:ident, $zero:ident, $set:ident, $set_whole:ident, $load_halves:ident, $halves:ident,
     $load_whole:ident as $whole:ident, $store:ident, $dot:ident, $convert:ident, $multiply:ident, $fused:ident) => {
        mod $name {
            use std::arch::x86_64::{
                $convert, $dot, $floats, $fused, $halves, $load_halves, $load_whole, $multiply, $set,
                $set_whole, $store, $whole, $zero,
            };

            use super::{BLOCK, PANEL, Panel, RoundedRows, STEP, f16};

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
                        // In tiles of four the compiler runs out of registers.
                        let pairs = out
                            .chunks_mut(2 * width)
                            .zip(values.chunks(2 * columns))
                            .zip(blocks.chunks(2 * columns / BLOCK));
                        for ((out, values), blocks) in pairs {
                            if out.len() == 2 * width {
                                tile::<2>(out, (part, width), values, blocks, panel);
                            } else {
                                tile::<1>(out, (part, width), values, blocks, panel);
                            }
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
                        load_scales(&scales[start..start + LANES])
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
                        let out = &mut out[row * width + start..(row + 1) * width];
                        if let Some(out) = out.first_chunk_mut::<LANES>() {
                            // SAFETY: there is room for all of them.
                            unsafe { $store(out.as_mut_ptr(), sum) };
                        } else {
                            let mut lanes = [0.0; LANES];
                            // SAFETY: as above.
                            unsafe { $store(lanes.as_mut_ptr(), sum) };
                            out.copy_from_slice(&lanes[..out.len()]);
                        }
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
            fn load_scales(halves: &[f16]) -> $floats {
                assert!(halves.len() == LANES);
                // SAFETY: all of them are there.
                $halves(unsafe { $load_halves(halves.as_ptr().cast()) })
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernel!(
    avx512, "avx512f,avx512vnni", lanes: 16, vectors: 2, rows: 6, __m512, _mm512_setzero_ps, _mm512_set1_ps,
    _mm512_set1_epi32, _mm256_loadu_si256, _mm512_cvtph_ps, _mm512_loadu_si512 as __m512i, _mm512_storeu_ps, _mm512_dpbusd_epi32,
    _mm512_cvtepi32_ps, _mm512_mul_ps, _mm512_fmadd_ps
);
#[cfg(target_arch = "x86_64")]
kernel!(
    avx2, "avx2,fma,f16c,avxvnni", lanes: 8, vectors: 2, rows: 3, __m256, _mm256_setzero_ps, _mm256_set1_ps,
    _mm256_set1_epi32, _mm_loadu_si128, _mm256_cvtph_ps, _mm256_loadu_si256 as __m256i, _mm256_storeu_ps, _mm256_dpbusd_avx_epi32,
    _mm256_cvtepi32_ps, _mm256_mul_ps, _mm256_fmadd_ps
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::numbers;

    fn matrix_of(values: &[f32], shape: (usize, usize)) -> EightBitMatrix {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        EightBitMatrix::convert(Precision::F32, &bytes, shape).unwrap()
    }

    /// The kernels of this processor, all of them bit by bit; a row alone and among others.
    #[test]
    fn kernels_compute_the_same_numbers() {
        let kernels = Kernel::of_this_machine();
        if !is_fast_here() {
            println!("skipped: this processor has no VNNI");
        }
        for (count, rows, columns) in [(1, 1, 32), (7, 33, 64), (13, 64, 512), (200, 70, 96)] {
            let x = numbers(count * columns, 2);
            let weights = matrix_of(&numbers(rows * columns, 1), (rows, columns));
            let expected = weights.product_with(Kernel::Plain, &x);
            for kernel in &kernels {
                let found = weights.product_with(*kernel, &x);
                assert_eq!(found, expected, "{kernel:?}, {count} x {columns} times {rows}");
            }
            let alone = weights.product_with(Kernel::Plain, &x[(count - 1) * columns..]);
            assert_eq!(alone, expected[(count - 1) * rows..]);
        }
    }

    /// Whatever they were stored in, the rows are those of Q8_0.
    #[test]
    fn rows_are_those_of_the_weights() {
        let shape = (70, 96);
        let bytes: Vec<u8> =
            numbers(shape.0 * shape.1, 6).iter().flat_map(|value| value.to_le_bytes()).collect();
        let packed = PackedMatrix::convert(Precision::F32, &bytes, shape, Precision::Q8_0).unwrap();
        for (stored, bytes) in [(Precision::F32, &bytes[..]), (Precision::Q8_0, packed.bytes())] {
            let matrix = EightBitMatrix::convert(stored, bytes, shape).unwrap();
            let found: Vec<f32> = [0, 33, 69].into_iter().flat_map(|number| matrix.row(number)).collect();
            let expected =
                packed.rows(&[0, 33, 69]).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            assert_eq!(found, expected, "{stored}");
        }
        assert!(EightBitMatrix::convert(Precision::F32, &bytes[4..], shape).is_err());
    }

    /// What is rounded here, of parts of rows and of columns, that fill no block: with every kernel the same numbers, near
    /// the exact ones, and a row's the same among others as alone.
    #[test]
    fn factors_that_are_rounded_here_give_products_near_the_exact_ones() {
        let kernels = [vec![Kernel::Plain], Kernel::of_this_machine()].concat();
        for (count, rows, width, part) in
            [(1, 1, 8, 0..8), (7, 50, 80, 16..80), (13, 33, 200, 7..108), (200, 1500, 64, 0..64)]
        {
            let (w, x) = (numbers(rows * width, 1), numbers(count * width.max(rows), 2));
            let by_rows = EightBitMatrix::rounded(&w, width, part.clone());
            let by_columns = EightBitMatrix::rounded_transposed(&w, width, part.clone());
            let check = |matrix: &EightBitMatrix, x: (&[f32], usize, Range<usize>), exact: &[f32]| {
                let outs = kernels.iter().map(|kernel| {
                    let (mut scratch, mut out) = (Scratch::default(), vec![f32::NAN; exact.len()]);
                    matrix.scaled_product_with(*kernel, &mut scratch, &mut out, x.clone(), 0.5);
                    // With what is left from the product before, and rows alone.
                    for (out, x_row) in out.chunks_exact(matrix.rows).zip(x.0.chunks_exact(x.1)) {
                        let (mut alone, x) = (vec![f32::NAN; matrix.rows], (x_row, x.1, x.2.clone()));
                        matrix.scaled_product_with(*kernel, &mut scratch, &mut alone, x, 0.5);
                        assert_eq!(alone, out);
                    }
                    out
                });
                let outs: Vec<Vec<f32>> = outs.collect();
                assert!(outs.iter().all(|out| out == &outs[0]));
                let largest = exact.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
                let off = outs[0].iter().zip(exact).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
                assert!(off < 0.015 * largest, "{count} x {rows} x {part:?}: {off} of {largest}");
            };
            let of_rows = x[..count * width].chunks(width).flat_map(|x| {
                let x = &x[part.clone()];
                let product =
                    |w: &[f32]| w[part.clone()].iter().zip(x).map(|(a, b)| a * b).sum::<f32>() * 0.5;
                w.chunks(width).map(product).collect::<Vec<_>>()
            });
            check(&by_rows, (&x[..count * width], width, part.clone()), &of_rows.collect::<Vec<_>>());
            let of_columns = x[..count * rows].chunks(rows).flat_map(|x| {
                let product = |column| x.iter().zip(w.chunks(width)).map(|(x, w)| x * w[column]).sum::<f32>();
                part.clone().map(|column| 0.5 * product(column)).collect::<Vec<_>>()
            });
            check(&by_columns, (&x[..count * rows], rows, 0..rows), &of_columns.collect::<Vec<_>>());
        }
    }

    #[test]
    fn fine_products_are_those_of_activations_that_are_not_rounded() {
        for (count, rows, columns) in [(1, 33, 64), (5, 64, 512), (40, 70, 96)] {
            let (weights, x) = (numbers(rows * columns, 1), numbers(count * columns, 2));
            let matrix = matrix_of(&weights, (rows, columns));
            let found = matrix.fine_product(&x);
            for (number, found) in found.iter().enumerate() {
                let (row, x) = (matrix.row(number % rows), &x[number / rows * columns..][..columns]);
                let exact: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                assert!((f64::from(*found) - exact).abs() < 5e-4, "{found}, not {exact}");
            }
            let alone = matrix.fine_product(&x[(count - 1) * columns..]);
            assert_eq!(alone, found[(count - 1) * rows..]);
        }
    }

    /// What rounding costs, as a part of the largest number; and values that have no scale.
    #[test]
    fn products_are_near_those_of_exact_activations() {
        let (count, rows, columns) = (50, 40, 512);
        let values = numbers(rows * columns, 3);
        let x = numbers(count * columns, 4);
        let matrix = matrix_of(&values, (rows, columns));
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
            for found in [matrix.product(&vec![value; columns]), matrix.fine_product(&vec![value; columns])] {
                assert!(found.iter().all(|found| is_expected(*found)), "{value}: {found:?}");
            }
        }
    }
}
