//! Products of matrices in 8 bits: weights in blocks of Q8_0, activations rounded to 8 bits in blocks of the same
//! length, as GGML does. Sums of 32 products are exact in 32-bit integers; the sums of the blocks are added in 32-bit
//! floats, in their order. So a row of the result depends on its row of activations alone. Attention's keys and values,
//! which are computed anew for each window, and its distances are rounded here.
//!
//! Many rows, as in an encoder, are computed four to five times as fast as in 32 bits with AVX-512 VNNI, in vectors of 256
//! bits two to three times, with AVX2 alone up to one and a half times. Few rows, as in a step of a decoder, are bound by memory: converting each weight to 32 bits
//! would take longer than reading it.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod kernels;

use std::fmt;
use std::ops::Range;

use half::f16;
use memory::Precision;
use rayon::prelude::*;

use crate::blocks::bytes_of;
use crate::packed::PackedMatrix;
use crate::panels::{
    BLOCK, PANEL, ROWS_TOGETHER, Tile, padded, product_by_rows, tiles_of_columns, tiles_of_rows,
};
use crate::vectorised::{self, vectorised};
use kernels::{Kernel, Panel};

/// Bytes of a block of Q8_0: a scale in 16 bits, then the weights.
const BLOCK_BYTES: usize = 2 + BLOCK;
/// Four weights of each column of a panel.
const STEP: usize = 4 * PANEL;
/// Up to so many rows, threads share the columns of a product whatever their number.
const FEW_ROWS: usize = 64;
/// Rows of activations of 16 bits that are multiplied together: bounds what a thread keeps of a large vocabulary's logits
/// where each takes two products.
const MOST_FINE_ROWS: usize = 4 * ROWS_TOGETHER;
/// Weights that a thread takes at a time where there are few rows of activations: some microseconds of work.
const WEIGHTS_PER_TASK: usize = 1 << 16;

/// Whether there are so few rows of activations that threads share the columns of the result: if they shared the rows, some
/// threads would have none.
fn is_few(count: usize) -> bool {
    count <= FEW_ROWS.max(ROWS_TOGETHER * rayon::current_num_threads())
}

/// Four numbers of a row: the first and the third, then the second and the fourth.
type Pairs = [[i16; 2]; 2];

/// Rows of rounded activations, padded. A thread keeps them from one [`EightBitMatrix::scaled_product`] to the next, so
/// that it allocates once.
#[derive(Debug, Default)]
pub struct RoundedRows {
    values: Vec<i8>,
    /// For each block its scale, and 128 times the sum of its values, which the weights' offset adds to a product.
    blocks: Vec<(f32, i32)>,
    /// For kernels that multiply in 16 bits, which don't read `values`.
    pairs: Vec<Pairs>,
}

impl RoundedRows {
    /// Those of the `part` of the rows of `x`, of `width` numbers each; their scales are multiplied by `scale`.
    fn set(&mut self, kernel: Kernel, x: &[f32], width: usize, part: Range<usize>, scale: f32) {
        let numbers = x.len() / width * padded(part.len());
        if kernel.multiplies_pairs() {
            return self.set_pairs(numbers, LARGEST, x, (width, part), scale);
        }
        let Self { values, blocks, .. } = self;
        values.resize(numbers, 0);
        blocks.resize(numbers / BLOCK, (0.0, 0));
        vectorised(Rounding { values, blocks, x, width, part, scale });
    }

    /// As [`set`](Self::set) in about 16 bits: behind all rows is what rounding left of each, rounded too, unless the kernel
    /// multiplies in 16 bits.
    fn set_fine(&mut self, kernel: Kernel, x: &[f32], width: usize, part: Range<usize>, scale: f32) {
        let numbers = x.len() / width * padded(part.len());
        if kernel.multiplies_pairs() {
            return self.set_pairs(numbers, LARGEST_FINE, x, (width, part), scale);
        }
        let Self { values, blocks, .. } = self;
        values.resize(2 * numbers, 0);
        blocks.resize(2 * numbers / BLOCK, (0.0, 0));
        vectorised(FineRounding { values, blocks, x, width, part, scale });
    }

    fn set_pairs(
        &mut self,
        numbers: usize,
        largest: f32,
        x: &[f32],
        (width, part): (usize, Range<usize>),
        scale: f32,
    ) {
        let Self { pairs, blocks, .. } = self;
        pairs.resize(numbers / 4, Pairs::default());
        blocks.resize(numbers / BLOCK, (0.0, 0));
        vectorised(PairRounding { pairs, blocks, largest, x, width, part, scale });
    }
}

/// What a thread keeps from one [`EightBitMatrix::fine_scaled_product`] to the next.
#[derive(Debug, Default)]
pub struct FineScratch {
    rounded: RoundedRows,
    products: Vec<f32>,
}

/// Weights in the order that the kernels read them in: panel after panel, of each panel block after block.
pub struct EightBitMatrix {
    blocks: Vec<WeightBlock>,
    rows: usize,
    columns: usize,
}

/// A block of every column of a panel; no vector of it lies in two lines of the cache.
#[derive(Clone)]
#[repr(C, align(64))]
struct WeightBlock {
    /// Four weights of every column, then the next four. 128 is added to each, since VNNI's instruction takes one unsigned
    /// factor; without it, such weights are widened without regard to a sign.
    steps: [[u8; STEP]; BLOCK / 4],
    /// One per column; zero for columns behind the last.
    scales: [f16; PANEL],
}

impl WeightBlock {
    const ZERO: Self = Self { steps: [[0; STEP]; BLOCK / 4], scales: [f16::ZERO; PANEL] };
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
        let mut matrix = Self::of_zeros(rows, columns);
        let panels = matrix.blocks.par_chunks_mut((columns / BLOCK).max(1));
        let rows = bytes.par_chunks(bytes_of(stored, PANEL * columns).max(1));
        panels.zip(rows).try_for_each(|(blocks, bytes)| {
            let shape = (bytes.len() / bytes_of(stored, columns), columns);
            let packed = PackedMatrix::convert(stored, bytes, shape, Precision::Q8_0)?;
            write_panel(blocks, packed.bytes());
            Ok::<_, String>(())
        })?;
        Ok(matrix)
    }

    /// W of the `part` of the rows of `w`, each of `width` numbers.
    pub fn of_rows(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(w.len() / width, part.len());
        tiles_of_rows(w, width, part, matrix.rounding());
        matrix
    }

    /// W of the columns of `w` in the `part` of its rows, each of `width` numbers.
    pub fn of_columns(w: &[f32], width: usize, part: Range<usize>) -> Self {
        let mut matrix = Self::of_zeros(part.len(), w.len() / width);
        tiles_of_columns(w, width, part, matrix.rounding());
        matrix
    }

    fn of_zeros(rows: usize, columns: usize) -> Self {
        let blocks = vec![WeightBlock::ZERO; rows.div_ceil(PANEL) * columns.div_ceil(BLOCK)];
        Self { blocks, rows, columns }
    }

    /// Writes each tile that it is given, rounded, behind the one before.
    fn rounding(&mut self) -> impl FnMut(&Tile) {
        let mut blocks = self.blocks.iter_mut();
        move |tile| {
            if let Some(block) = blocks.next() {
                vectorised(TileRounding { tile, block });
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

    /// As [`product`](Self::product), activations having about 16 bits: where the kernel multiplies in 8, what rounding to 8
    /// leaves is multiplied too.
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn fine_product(&self, x: &[f32]) -> Vec<f32> {
        self.fine_product_with(Kernel::of_this_processor(), x)
    }

    fn fine_product_with(&self, kernel: Kernel, x: &[f32]) -> Vec<f32> {
        let (rows, columns) = self.shape();
        assert!(x.len().is_multiple_of(columns.max(1)));
        let count = x.len() / columns.max(1);
        let computed = kernel.fine_rows() * count;
        if is_few(computed) {
            let mut rounded = RoundedRows::default();
            rounded.set_fine(kernel, x, columns.max(1), 0..columns, 1.0);
            let mut products = self.product_by_panels(kernel, &rounded, computed);
            // There is no rest where the kernel multiplies in 16 bits.
            let (whole, rest) = products.split_at_mut(count * rows);
            whole.iter_mut().zip(rest).for_each(|(whole, rest)| *whole += *rest);
            products.truncate(count * rows);
            products.shrink_to_fit();
            return products;
        }
        product_by_rows(x, (rows, columns), |scratch, out, x| {
            self.fine_scaled_product_with(kernel, scratch, out, (x, columns, 0..columns), 1.0);
        })
    }

    fn product_with(&self, kernel: Kernel, x: &[f32]) -> Vec<f32> {
        let (rows, columns) = self.shape();
        assert!(x.len().is_multiple_of(columns.max(1)));
        let count = x.len() / columns.max(1);
        if is_few(count) {
            let mut rounded = RoundedRows::default();
            rounded.set(kernel, x, columns.max(1), 0..columns, 1.0);
            return self.product_by_panels(kernel, &rounded, count);
        }
        product_by_rows(x, (rows, columns), |scratch, out, x| {
            self.scaled_product_with(kernel, scratch, out, (x, columns, 0..columns), 1.0);
        })
    }

    /// Threads take some panels each. `x` is `count` rows.
    fn product_by_panels(&self, kernel: Kernel, x: &RoundedRows, count: usize) -> Vec<f32> {
        let (rows, columns) = self.shape();
        let mut out = vec![0.0; count * rows];
        if out.is_empty() || columns == 0 {
            return out;
        }
        // Panel after panel, of each panel row after row.
        let of_panel = count * PANEL;
        let mut by_panel = vec![0.0; rows.div_ceil(PANEL) * of_panel];
        let panels = (WEIGHTS_PER_TASK / (PANEL * columns)).max(1);
        by_panel.par_chunks_mut(panels * of_panel).enumerate().for_each(|(task, out)| {
            for (number, out) in out.chunks_exact_mut(of_panel).enumerate() {
                let panel = self.panel(task * panels + number, 0);
                kernel.rows_times_panel(out, PANEL, x, &panel);
            }
        });
        if count == 1 {
            by_panel.truncate(rows);
            return by_panel;
        }
        for (number, out) in out.chunks_exact_mut(rows).enumerate() {
            let panels = by_panel.chunks_exact(of_panel).map(|panel| &panel[number * PANEL..][..PANEL]);
            out.chunks_mut(PANEL).zip(panels).for_each(|(out, row)| out.copy_from_slice(&row[..out.len()]));
        }
        out
    }

    /// Panel `number`, whose columns of the result are those from `first` on.
    fn panel(&self, number: usize, first: usize) -> Panel<'_> {
        let depth = self.columns.div_ceil(BLOCK);
        Panel { blocks: &self.blocks[number * depth..][..depth], first }
    }

    /// The numbers of a row.
    ///
    /// # Panics
    /// Where there is no such row.
    pub fn row(&self, number: usize) -> Vec<f32> {
        assert!(number < self.rows);
        let column = number % PANEL;
        let blocks = self.panel(number / PANEL, 0).blocks.iter();
        let numbers = blocks.flat_map(|WeightBlock { steps, scales }| {
            let values = steps.iter().flat_map(|step| &step[4 * column..4 * column + 4]);
            values.map(|value| f32::from((value ^ 0x80).cast_signed()) * scales[column].to_f32())
        });
        numbers.take(self.columns).collect()
    }

    /// Writes to `out`, (count, rows), `scale` times the products of the `part` of each row of `x`, of `width` numbers, on
    /// this thread.
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn scaled_product(
        &self,
        scratch: &mut RoundedRows,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        self.scaled_product_with(Kernel::of_this_processor(), scratch, out, (x, width, part), scale);
    }

    /// As [`scaled_product`](Self::scaled_product), with activations as in [`fine_product`](Self::fine_product).
    ///
    /// # Panics
    /// Where the lengths don't fit.
    pub fn fine_scaled_product(
        &self,
        scratch: &mut FineScratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        self.fine_scaled_product_with(Kernel::of_this_processor(), scratch, out, (x, width, part), scale);
    }

    fn fine_scaled_product_with(
        &self,
        kernel: Kernel,
        FineScratch { rounded, products }: &mut FineScratch,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        assert!(part.len() == self.columns && out.len() == x.len() / width.max(1) * self.rows);
        if out.is_empty() || self.columns == 0 {
            return out.fill(0.0);
        }
        for (out, x) in out.chunks_mut(MOST_FINE_ROWS * self.rows).zip(x.chunks(MOST_FINE_ROWS * width)) {
            rounded.set_fine(kernel, x, width, part.clone(), scale);
            if kernel.fine_rows() == 1 {
                self.rows_times_all_panels(kernel, out, rounded);
                continue;
            }
            products.resize(2 * out.len(), 0.0);
            self.rows_times_all_panels(kernel, products, rounded);
            let (whole, rest) = products.split_at(out.len());
            out.iter_mut().zip(whole.iter().zip(rest)).for_each(|(out, (whole, rest))| *out = whole + rest);
        }
    }

    fn scaled_product_with(
        &self,
        kernel: Kernel,
        scratch: &mut RoundedRows,
        out: &mut [f32],
        (x, width, part): (&[f32], usize, Range<usize>),
        scale: f32,
    ) {
        assert!(part.len() == self.columns && out.len() == x.len() / width.max(1) * self.rows);
        if out.is_empty() || self.columns == 0 {
            return out.fill(0.0);
        }
        scratch.set(kernel, x, width, part, scale);
        self.rows_times_all_panels(kernel, out, scratch);
    }

    fn rows_times_all_panels(&self, kernel: Kernel, out: &mut [f32], x: &RoundedRows) {
        for number in 0..self.rows.div_ceil(PANEL) {
            kernel.rows_times_panel(out, self.rows, x, &self.panel(number, number * PANEL));
        }
    }
}

/// Writes the weights of a panel's columns, rows of Q8_0.
fn write_panel(blocks: &mut [WeightBlock], weights: &[u8]) {
    for (column, row) in weights.chunks_exact((blocks.len() * BLOCK_BYTES).max(1)).enumerate() {
        for (stored, block) in row.as_chunks::<BLOCK_BYTES>().0.iter().zip(&mut *blocks) {
            block.scales[column] = f16::from_le_bytes([stored[0], stored[1]]);
            for (four, step) in stored[2..].as_chunks::<4>().0.iter().zip(&mut block.steps) {
                // Adding 128 to a signed number turns its highest bit.
                step[4 * column..4 * column + 4].copy_from_slice(&four.map(|weight| weight ^ 0x80));
            }
        }
    }
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
/// What the largest number of a block becomes in 8 bits.
const LARGEST: f32 = 127.0;
/// The same in 16 bits, less than they hold, so that rounding can't exceed them.
const LARGEST_FINE: f32 = 32512.0;
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

/// As [`Rounding`] for the first half of the rows of `values`; the second is what that leaves, rounded in the same way.
struct FineRounding<'a> {
    values: &'a mut [i8],
    blocks: &'a mut [(f32, i32)],
    x: &'a [f32],
    width: usize,
    part: Range<usize>,
    scale: f32,
}

impl vectorised::Kernel for FineRounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let (values, _) = self.values.as_chunks_mut::<BLOCK>();
        let half = values.len() / 2;
        let (values, rest_values) = values.split_at_mut(half);
        let (blocks, rest_blocks) = self.blocks.split_at_mut(half);
        let mut places = values.iter_mut().zip(blocks).zip(rest_values.iter_mut().zip(rest_blocks));
        for x in self.x.chunks_exact(self.width) {
            for x in x[self.part.clone()].chunks(BLOCK) {
                let mut block = [0.0; BLOCK];
                block[..x.len()].copy_from_slice(x);
                let Some(((values, of_block), (rest_values, of_rest))) = places.next() else { return };
                *of_block = round_block(values, &block, 1.0);
                for (x, value) in block.iter_mut().zip(values) {
                    *x -= f32::from(*value) * of_block.0;
                }
                of_block.0 *= self.scale;
                *of_rest = round_block(rest_values, &block, self.scale);
            }
        }
    }
}

/// As [`Rounding`], in the order of [`RoundedRows::pairs`].
struct PairRounding<'a> {
    pairs: &'a mut [Pairs],
    blocks: &'a mut [(f32, i32)],
    /// What the largest value of a block becomes.
    largest: f32,
    x: &'a [f32],
    width: usize,
    part: Range<usize>,
    scale: f32,
}

impl vectorised::Kernel for PairRounding<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let mut places = self.pairs.as_chunks_mut::<{ BLOCK / 4 }>().0.iter_mut().zip(self.blocks);
        for x in self.x.chunks_exact(self.width) {
            let (whole, rest) = x[self.part.clone()].as_chunks::<BLOCK>();
            for (x, (pairs, of_block)) in whole.iter().zip(&mut places) {
                *of_block = round_to_pairs(pairs, x, self.largest, self.scale);
            }
            if !rest.is_empty()
                && let Some((pairs, of_block)) = places.next()
            {
                let mut x = [0.0; BLOCK];
                x[..rest.len()].copy_from_slice(rest);
                *of_block = round_to_pairs(pairs, &x, self.largest, self.scale);
            }
        }
    }
}

/// As [`round_block`], in the order of [`RoundedRows::pairs`].
#[inline(always)]
fn round_to_pairs(pairs: &mut [Pairs; BLOCK / 4], x: &[f32; BLOCK], most: f32, factor: f32) -> (f32, i32) {
    let scale = largest(x) / most;
    let inverse = inverse(scale);
    let mut values = [0i16; BLOCK];
    let mut sum = 0i32;
    for (value, x) in values.iter_mut().zip(x) {
        *value = rounded(x * inverse) as i16;
        // As in `round_block`.
        sum = sum.wrapping_add(i32::from(*value));
    }
    for (pairs, [a, b, c, d]) in pairs.iter_mut().zip(values.as_chunks::<4>().0) {
        *pairs = [[*a, *c], [*b, *d]];
    }
    (scale * factor, 128 * sum)
}

/// Rounds a block and returns what belongs to it in [`RoundedRows::blocks`].
#[inline(always)]
fn round_block(values: &mut [i8; BLOCK], x: &[f32; BLOCK], factor: f32) -> (f32, i32) {
    let scale = largest(x) / LARGEST;
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
    block: &'a mut WeightBlock,
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
        self.block.scales = scales;
        for (rows, step) in self.tile.as_chunks::<4>().0.iter().zip(&mut self.block.steps) {
            for (at, row) in rows.iter().enumerate() {
                for (column, (x, inverse)) in row.iter().zip(inverses).enumerate() {
                    // A scale that was rounded down makes the largest number larger than 127.
                    let value = rounded((x * inverse).clamp(-127.0, 127.0));
                    step[4 * column + at] = value as u8 ^ 0x80;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::tests::numbers;

    fn matrix_of(values: &[f32], shape: (usize, usize)) -> EightBitMatrix {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        EightBitMatrix::convert(Precision::F32, &bytes, shape).unwrap()
    }

    fn all_kernels() -> Vec<Kernel> {
        [vec![Kernel::Plain], Kernel::of_this_machine()].concat()
    }

    /// The kernels of this processor, all of them bit by bit; a row alone and among others.
    #[test]
    fn kernels_compute_the_same_numbers() {
        let kernels = Kernel::of_this_machine();
        if !memory::processor::has_avx2() {
            println!("skipped: this processor has no AVX2");
        }
        if !memory::processor::has_vnni() {
            println!("skipped: this processor has no VNNI");
        }
        for (count, rows, columns) in [(1, 1, 32), (6, 65, 96), (7, 33, 64), (13, 64, 512), (200, 70, 96)] {
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
        let kernels = all_kernels();
        for (count, rows, width, part) in
            [(1, 1, 8, 0..8), (7, 50, 80, 16..80), (13, 33, 200, 7..108), (200, 1500, 64, 0..64)]
        {
            let (w, x) = (numbers(rows * width, 1), numbers(count * width.max(rows), 2));
            let by_rows = EightBitMatrix::of_rows(&w, width, part.clone());
            let by_columns = EightBitMatrix::of_columns(&w, width, part.clone());
            let check = |matrix: &EightBitMatrix, x: (&[f32], usize, Range<usize>), exact: &[f32]| {
                let outs = kernels.iter().map(|kernel| {
                    let (mut scratch, mut out) = (RoundedRows::default(), vec![f32::NAN; exact.len()]);
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
        for (count, rows, columns) in [(1, 33, 64), (5, 64, 512), (6, 65, 96), (200, 70, 96)] {
            let (weights, x) = (numbers(rows * columns, 1), numbers(count * columns, 2));
            let matrix = matrix_of(&weights, (rows, columns));
            for kernel in all_kernels() {
                let found = matrix.fine_product_with(kernel, &x);
                for (number, found) in found.iter().enumerate() {
                    let (row, x) = (matrix.row(number % rows), &x[number / rows * columns..][..columns]);
                    let exact: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!((f64::from(*found) - exact).abs() < 1e-5, "{kernel:?}: {found}, not {exact}");
                }
                let alone = matrix.fine_product_with(kernel, &x[(count - 1) * columns..]);
                assert_eq!(alone, found[(count - 1) * rows..], "{kernel:?}");
            }
        }
    }

    /// No sum overflows where all weights and activations are as large as they can be, also those of files, down to -128.
    #[test]
    fn sums_hold_the_largest_products() {
        let columns = 4096;
        for weight in [127i8, -127, -128] {
            let block = [&half::f16::ONE.to_le_bytes()[..], &[weight.cast_unsigned(); BLOCK]].concat();
            let matrix =
                EightBitMatrix::convert(Precision::Q8_0, &block.repeat(columns / BLOCK), (1, columns))
                    .unwrap();
            for activation in [1.0f32, -1.0] {
                let x = vec![activation; columns];
                let exact = columns as f32 * f32::from(weight) * activation;
                for kernel in all_kernels() {
                    for found in [matrix.product_with(kernel, &x), matrix.fine_product_with(kernel, &x)] {
                        assert!(
                            (found[0] - exact).abs() < 1e-6 * exact.abs(),
                            "{kernel:?}: {found:?}, not {exact}"
                        );
                    }
                }
            }
        }
    }

    /// Of parts of rows that begin within them and fill no block, with what is left from a product before.
    #[test]
    fn fine_products_of_parts_are_those_of_activations_that_are_not_rounded() {
        let mut scratch = FineScratch::default();
        for (count, rows, width, part) in [(13, 33, 200, 7..108), (1, 1500, 64, 0..64), (30, 50, 80, 16..80)]
        {
            let (w, x) = (numbers(rows * width, 1), numbers(count * width, 2));
            let matrix = EightBitMatrix::of_rows(&w, width, part.clone());
            for kernel in all_kernels() {
                let mut found = vec![f32::NAN; count * rows];
                let x = (&x[..], width, part.clone());
                matrix.fine_scaled_product_with(kernel, &mut scratch, &mut found, x.clone(), 0.5);
                for (number, found) in found.iter().enumerate() {
                    let (row, x) = (matrix.row(number % rows), &x.0[number / rows * width..][part.clone()]);
                    let exact: f64 = row.iter().zip(x).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                    assert!(
                        (f64::from(*found) - 0.5 * exact).abs() < 1e-5,
                        "{kernel:?}: {found}, not {exact}"
                    );
                }
            }
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
            let x = vec![value; columns];
            for kernel in all_kernels() {
                for found in [matrix.product_with(kernel, &x), matrix.fine_product_with(kernel, &x)] {
                    assert!(found.iter().all(|found| is_expected(*found)), "{kernel:?}, {value}: {found:?}");
                }
            }
        }
    }
}
