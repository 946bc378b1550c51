//! Keys and values of attention on the host, laid out so that a decoder's step,
//! which has few queries, reads them in one pass without copying.

use std::borrow::Cow;

use candle_core::Tensor;
use half::f16;
use half::slice::HalfFloatSliceExt;
use rayon::prelude::*;

use crate::Error;
use crate::blocks::{f16_value, f16_weights};
use crate::fused::exponentials;
use crate::matrix::with_values;
use crate::vectorised::{Kernel, mul_add, vectorised};

/// Positions whose scores are computed together. This many partial sums fit the
/// vector registers of a processor.
const BLOCK_POSITIONS: usize = 32;
/// Positions whose values are applied to all queries before the next ones are
/// read. This many values fit the first-level cache.
const VALUES_PER_PASS: usize = 64;

/// A number that keys and values are held in. Attention computes in 32 bits.
pub trait Element: Copy + Default + Send + Sync {
    /// The numbers nearest to `values`.
    fn nearest(values: &[f32]) -> Cow<'_, [Self]>;

    /// The same number in 32 bits.
    fn wide(self) -> f32;

    /// As [`wide`](Self::wide), of as many as are computed together; to be called from a [`Kernel`].
    fn wide_block<const FMA: bool>(block: &[Self; BLOCK_POSITIONS]) -> [f32; BLOCK_POSITIONS];
}

impl Element for f32 {
    fn nearest(values: &[f32]) -> Cow<'_, [Self]> {
        values.into()
    }

    #[inline(always)]
    fn wide(self) -> f32 {
        self
    }

    #[inline(always)]
    fn wide_block<const FMA: bool>(block: &[Self; BLOCK_POSITIONS]) -> [f32; BLOCK_POSITIONS] {
        *block
    }
}

/// A number of 16 bits, its lower byte first.
pub type Half = [u8; 2];

impl Element for Half {
    fn nearest(values: &[f32]) -> Cow<'_, [Self]> {
        let mut halves = vec![f16::ZERO; values.len()];
        halves.convert_from_f32_slice(values);
        halves.iter().map(|half| half.clamp(f16::MIN, f16::MAX).to_le_bytes()).collect()
    }

    #[inline(always)]
    fn wide(self) -> f32 {
        f16_value(self)
    }

    #[inline(always)]
    fn wide_block<const FMA: bool>(block: &[Self; BLOCK_POSITIONS]) -> [f32; BLOCK_POSITIONS] {
        match block.as_flattened().first_chunk() {
            Some(bytes) => f16_weights::<FMA>(bytes),
            None => block.map(f16_value),
        }
    }
}

/// The KV cache of one attention layer, its numbers held as `E`.
///
/// Keys are stored in blocks of [`BLOCK_POSITIONS`] positions. Within a block the
/// same component of all positions' keys is contiguous, so that the scores of a
/// block are sums of whole vectors.
///
/// Sequences that go on from the same past share its blocks: [`reorder`](Self::reorder) changes
/// an index alone, and a block is copied when one of those that share it is about to write into it.
#[derive(Debug)]
pub struct KvCache<E = f32> {
    rows: usize,
    heads: usize,
    head_width: usize,
    /// Capacity in positions.
    positions: usize,
    /// Capacity in blocks.
    blocks: usize,
    /// (rows, blocks): in which row of `keys` and `values` a sequence's block is.
    index: Vec<usize>,
    /// (rows, heads, blocks, head width, [`BLOCK_POSITIONS`])
    keys: Vec<E>,
    /// (rows, heads, blocks x [`BLOCK_POSITIONS`], head width)
    values: Vec<E>,
}

/// The positions that the queries of a row attend to.
#[derive(Debug, Clone, Copy)]
pub enum AttentionMask {
    /// Every query attends to the first this many positions.
    Full(usize),
    /// A query attends to this many positions before the first query, to those
    /// of earlier queries and to its own.
    Causal(usize),
}

impl<E: Element> KvCache<E> {
    /// A cache of zeros for `capacity` positions of `rows` sequences.
    pub fn new(rows: usize, heads: usize, head_width: usize, capacity: usize) -> Self {
        let blocks = capacity.div_ceil(BLOCK_POSITIONS);
        let numbers = rows * heads * blocks * BLOCK_POSITIONS * head_width;
        Self {
            rows,
            heads,
            head_width,
            positions: capacity,
            blocks,
            index: (0..rows * blocks).map(|at| at / blocks).collect(),
            keys: vec![E::default(); numbers],
            values: vec![E::default(); numbers],
        }
    }

    /// The capacity in positions.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Writes the keys of positions `at` to `at + count`: (rows, count, heads x
    /// head width), contiguous.
    pub fn write_keys(&mut self, at: usize, keys: &Tensor) -> Result<(), Error> {
        let count = self.check_write(at, keys)?;
        let (heads, head_width) = (self.heads, self.head_width);
        self.own(at, count);
        let (blocks, head_length) = (self.blocks, self.head_length());
        with_values(keys, |keys| {
            let keys = E::nearest(keys);
            for (number, key) in keys.chunks_exact(head_width.max(1)).enumerate() {
                let (row, position, head) =
                    (number / heads / count, at + number / heads % count, number % heads);
                let block = position / BLOCK_POSITIONS;
                let held = self.index[row * blocks + block] * heads + head;
                let first =
                    held * head_length + block * head_width * BLOCK_POSITIONS + position % BLOCK_POSITIONS;
                let slots = self.keys[first..].iter_mut().step_by(BLOCK_POSITIONS);
                slots.zip(key).for_each(|(slot, key)| *slot = *key);
            }
        })
    }

    /// Writes values as [`write_keys`](Self::write_keys) writes keys.
    pub fn write_values(&mut self, at: usize, values: &Tensor) -> Result<(), Error> {
        let count = self.check_write(at, values)?;
        let (heads, head_width) = (self.heads, self.head_width);
        self.own(at, count);
        let (blocks, head_length) = (self.blocks, self.head_length());
        with_values(values, |values| {
            let values = E::nearest(values);
            for (number, value) in values.chunks_exact(head_width.max(1)).enumerate() {
                let (row, position, head) =
                    (number / heads / count, at + number / heads % count, number % heads);
                let held = self.index[row * blocks + position / BLOCK_POSITIONS] * heads + head;
                self.values[held * head_length + position * head_width..][..head_width]
                    .copy_from_slice(value);
            }
        })
    }

    /// Makes sure that no two rows share a block of the positions `at` to `at + count`, which are about to be written.
    fn own(&mut self, at: usize, count: usize) {
        for block in at / BLOCK_POSITIONS..(at + count).div_ceil(BLOCK_POSITIONS) {
            let mut is_taken = vec![false; self.rows];
            let mut shared = Vec::new();
            for row in 0..self.rows {
                if std::mem::replace(&mut is_taken[self.index[row * self.blocks + block]], true) {
                    shared.push(row);
                }
            }
            let mut free = (0..self.rows).filter(|held| !is_taken[*held]);
            for row in shared {
                // There are as many places for a block as rows.
                let Some(to) = free.next() else { continue };
                let from = std::mem::replace(&mut self.index[row * self.blocks + block], to);
                // Of a block that begins here nothing is kept.
                if at > block * BLOCK_POSITIONS {
                    self.copy_block(from, to, block);
                }
            }
        }
    }

    fn copy_block(&mut self, from: usize, to: usize, block: usize) {
        let (head_length, length) = (self.head_length(), BLOCK_POSITIONS * self.head_width);
        for head in 0..self.heads {
            let at = |row: usize| (row * self.heads + head) * head_length + block * length;
            for numbers in [&mut self.keys, &mut self.values] {
                numbers.copy_within(at(from)..at(from) + length, at(to));
            }
        }
    }

    /// Checks that `x` fits at position `at`, and returns its number of positions.
    fn check_write(&self, at: usize, x: &Tensor) -> Result<usize, Error> {
        let (rows, count, width) = x.dims3()?;
        let capacity = self.positions;
        if rows != self.rows || width != self.heads * self.head_width || at + count > capacity {
            return Err(candle_core::Error::Msg(format!("{x:?} at {at} into {capacity} positions")).into());
        }
        Ok(count)
    }

    /// Scaled dot-product attention of the queries `q`, (rows x n, count, heads x
    /// head width), to the cached keys and values; the result has the shape of
    /// `q`. The n sequences of a row share its keys and values.
    pub fn attend(&self, q: &Tensor, mask: AttentionMask, scale: f32) -> Result<Tensor, Error> {
        let queries = self.queries_per_row(q, mask)?;
        let attended = with_values(q, |q| {
            let mut by_head = vec![0.0; q.len()];
            by_head.par_chunks_mut(queries * self.head_width).enumerate().for_each_init(
                || vec![0.0; queries * self.blocks * BLOCK_POSITIONS],
                |scores, (number, out)| {
                    vectorised(self.head_attention(q, number, queries, mask, scale, scores, out))
                },
            );
            side_by_side(&by_head, self.heads, queries, self.head_width)
        })?;
        Ok(Tensor::from_vec(attended, q.dims(), q.device())?)
    }

    /// The scores of one head before the softmax, (rows x n, count, positions).
    pub fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error> {
        let positions = self.positions;
        let mask = AttentionMask::Full(positions);
        let queries = self.queries_per_row(q, mask)?;
        let padded = self.blocks * BLOCK_POSITIONS;
        let found = with_values(q, |q| {
            let mut found = Vec::with_capacity(self.rows * queries * positions);
            let mut scores = vec![0.0; queries * padded];
            for row in 0..self.rows {
                let number = row * self.heads + head;
                vectorised(self.head_attention(q, number, queries, mask, scale, &mut scores, &mut []));
                for scores in scores.chunks_exact(padded) {
                    found.extend_from_slice(&scores[..positions]);
                }
            }
            found
        })?;
        Ok(Tensor::from_vec(found, (q.dim(0)?, q.dim(1)?, positions), q.device())?)
    }

    /// Keeps only these rows and frees the memory of the others.
    pub fn keep(&mut self, rows: &[usize]) {
        let (head_length, length) = (self.head_length(), BLOCK_POSITIONS * self.head_width);
        let kept = |numbers: &[E]| {
            let mut kept = Vec::with_capacity(rows.len() * self.heads * head_length);
            for row in rows {
                let held = &self.index[row * self.blocks..][..self.blocks];
                for head in 0..self.heads {
                    for (block, held) in held.iter().enumerate() {
                        let first = (held * self.heads + head) * head_length + block * length;
                        kept.extend_from_slice(&numbers[first..][..length]);
                    }
                }
            }
            kept
        };
        let (keys, values) = (kept(&self.keys), kept(&self.values));
        (self.keys, self.values) = (keys, values);
        self.rows = rows.len();
        self.index = (0..self.rows * self.blocks).map(|at| at / self.blocks).collect();
    }

    /// Each row r goes on from what row `sources[r]` holds.
    pub fn reorder(&mut self, sources: &[usize]) {
        let of = |source: &usize| self.index[source * self.blocks..][..self.blocks].to_vec();
        self.index = sources.iter().flat_map(of).collect();
    }

    /// The length of one head of one row, in the keys as in the values.
    fn head_length(&self) -> usize {
        self.blocks * BLOCK_POSITIONS * self.head_width
    }

    fn queries_per_row(&self, q: &Tensor, mask: AttentionMask) -> Result<usize, Error> {
        let (rows, count, width) = q.dims3()?;
        let most = match mask {
            AttentionMask::Full(positions) => positions,
            AttentionMask::Causal(before) => before + count,
        };
        let fits = width == self.heads * self.head_width
            && self.rows > 0
            && rows.is_multiple_of(self.rows)
            && (1..=self.positions).contains(&most)
            // Each sequence's first query follows the same number of positions.
            && (rows == self.rows || matches!(mask, AttentionMask::Full(_)));
        if !fits {
            return Err(candle_core::Error::Msg(format!("{q:?} can't attend to {most} positions")).into());
        }
        Ok(rows / self.rows * count)
    }

    #[allow(clippy::too_many_arguments)]
    fn head_attention<'a>(
        &'a self,
        q: &'a [f32],
        number: usize,
        queries: usize,
        mask: AttentionMask,
        scale: f32,
        scores: &'a mut [f32],
        out: &'a mut [f32],
    ) -> HeadAttention<'a, E> {
        let (row, head) = (number / self.heads, number % self.heads);
        let width = self.heads * self.head_width;
        let head_length = self.head_length();
        HeadAttention {
            q: &q[row * queries * width + head * self.head_width..],
            width,
            queries,
            keys: &self.keys[head * head_length..],
            values: &self.values[head * head_length..],
            row_length: self.heads * head_length,
            held: &self.index[row * self.blocks..][..self.blocks],
            head_width: self.head_width,
            padded: self.blocks * BLOCK_POSITIONS,
            mask,
            scale,
            scores,
            out,
        }
    }
}

/// (rows, heads, queries, head width) -> (rows, queries, heads, head width).
pub(crate) fn side_by_side(by_head: &[f32], heads: usize, queries: usize, head_width: usize) -> Vec<f32> {
    if queries == 1 {
        return by_head.to_vec();
    }
    let mut out = Vec::with_capacity(by_head.len());
    for row in by_head.chunks_exact(heads * queries * head_width) {
        for query in 0..queries {
            for head in 0..heads {
                out.extend_from_slice(&row[(head * queries + query) * head_width..][..head_width]);
            }
        }
    }
    out
}

/// Attention of the queries of one row by one head.
struct HeadAttention<'a, E> {
    /// All queries, from the first one's part for this head on. Consecutive
    /// queries are `width` apart.
    q: &'a [f32],
    width: usize,
    queries: usize,
    /// Those of all rows, from the first one's part for this head on. Rows are `row_length` apart.
    keys: &'a [E],
    values: &'a [E],
    row_length: usize,
    /// In which row each block is.
    held: &'a [usize],
    head_width: usize,
    /// Positions rounded up to whole blocks: the length of a row of scores.
    padded: usize,
    mask: AttentionMask,
    scale: f32,
    /// (queries, padded): receives the scores.
    scores: &'a mut [f32],
    /// (queries, head width): receives the result. Empty to compute only the scores.
    out: &'a mut [f32],
}

impl<E> HeadAttention<'_, E> {
    /// The number of positions that a query attends to.
    #[inline(always)]
    fn visible_to(&self, query: usize) -> usize {
        match self.mask {
            AttentionMask::Full(positions) => positions,
            AttentionMask::Causal(before) => before + query + 1,
        }
    }
}

impl<E: Element> Kernel for HeadAttention<'_, E> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let most = self.visible_to(self.queries - 1);
        let block_length = self.head_width * BLOCK_POSITIONS;
        for (number, held) in self.held.iter().enumerate().take(most.div_ceil(BLOCK_POSITIONS)) {
            let keys = &self.keys[held * self.row_length + number * block_length..][..block_length];
            for (query, scores) in self.scores.chunks_exact_mut(self.padded).take(self.queries).enumerate() {
                let q = &self.q[query * self.width..][..self.head_width];
                let (blocks, _) = scores.as_chunks_mut::<BLOCK_POSITIONS>();
                blocks[number] = block_of_scores::<FMA, E>(q, keys, self.scale);
            }
        }
        if self.out.is_empty() {
            return;
        }
        self.out.fill(0.0);
        for query in 0..self.queries {
            let visible = self.visible_to(query);
            let scores = &mut self.scores[query * self.padded..][..self.padded];
            let sum = exponentials(&mut scores[..visible]);
            scores[..visible].iter_mut().for_each(|share| *share /= sum);
            scores[visible..].fill(0.0);
        }
        let mut first = 0;
        while first < most {
            let held = self.held[first / BLOCK_POSITIONS];
            // As far as the blocks behind this one are in the same row.
            let blocks = self.held[first / BLOCK_POSITIONS..].iter().take(VALUES_PER_PASS / BLOCK_POSITIONS);
            let blocks = blocks.take_while(|other| **other == held).count();
            let count = (blocks * BLOCK_POSITIONS).min(most - first);
            let values = &self.values[held * self.row_length + first * self.head_width..];
            let values = &values[..count * self.head_width];
            for query in 0..self.queries {
                let shares = &self.scores[query * self.padded + first..][..count];
                let out = &mut self.out[query * self.head_width..][..self.head_width];
                add_weighted::<FMA, E>(shares, values, out);
            }
            first += count;
        }
    }
}

#[inline(always)]
fn block_of_scores<const FMA: bool, E: Element>(q: &[f32], keys: &[E], scale: f32) -> [f32; BLOCK_POSITIONS] {
    let mut sums = [0.0; BLOCK_POSITIONS];
    let (keys, _) = keys.as_chunks::<BLOCK_POSITIONS>();
    for (q, keys) in q.iter().zip(keys) {
        for (sum, key) in sums.iter_mut().zip(E::wide_block::<FMA>(keys)) {
            *sum = mul_add::<FMA>(*q, key, *sum);
        }
    }
    sums.map(|sum| sum * scale)
}

/// Adds each row of `values` times its share to `out`.
#[inline(always)]
fn add_weighted<const FMA: bool, E: Element>(shares: &[f32], values: &[E], out: &mut [f32]) {
    let width = out.len();
    let mut at = 0;
    while at + 64 <= width {
        add_weighted_blocks::<FMA, E, 2>(shares, values, &mut out[at..], width, at);
        at += 64;
    }
    while at + BLOCK_POSITIONS <= width {
        add_weighted_blocks::<FMA, E, 1>(shares, values, &mut out[at..], width, at);
        at += BLOCK_POSITIONS;
    }
    for (at, out) in out.iter_mut().enumerate().skip(at) {
        for (share, value) in shares.iter().zip(values.chunks_exact(width)) {
            *out = mul_add::<FMA>(*share, value[at].wide(), *out);
        }
    }
}

#[inline(always)]
fn add_weighted_blocks<const FMA: bool, E: Element, const BLOCKS: usize>(
    shares: &[f32],
    values: &[E],
    out: &mut [f32],
    width: usize,
    at: usize,
) {
    let (out, _) = out.as_chunks_mut::<BLOCK_POSITIONS>();
    let Some((out, _)) = out.split_first_chunk_mut::<BLOCKS>() else { return };
    let mut sums = *out;
    for (share, value) in shares.iter().zip(values.chunks_exact(width)) {
        let (value, _) = value[at..].as_chunks::<BLOCK_POSITIONS>();
        let Some((value, _)) = value.split_first_chunk::<BLOCKS>() else { return };
        for (sums, value) in sums.iter_mut().zip(value) {
            for (sum, value) in sums.iter_mut().zip(E::wide_block::<FMA>(value)) {
                *sum = mul_add::<FMA>(*share, value, *sum);
            }
        }
    }
    *out = sums;
}

#[cfg(test)]
mod tests {
    use candle_core::{D, DType, Device};

    use super::*;

    /// (rows, count, heads x head width) -> (rows, heads, count, head width).
    fn split(x: &Tensor, heads: usize) -> Tensor {
        let (rows, count, width) = x.dims3().unwrap();
        x.reshape((rows, count, heads, width / heads)).unwrap().transpose(1, 2).unwrap().contiguous().unwrap()
    }

    fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
        assert_eq!(a.dims(), b.dims());
        (a - b).unwrap().abs().unwrap().max_all().unwrap().to_scalar().unwrap()
    }

    /// Attention by its definition, one tensor per step.
    fn expected(q: &Tensor, k: &Tensor, v: &Tensor, heads: usize, causal: bool) -> (Tensor, Tensor) {
        let (rows, count, width) = q.dims3().unwrap();
        let n = rows / k.dim(0).unwrap();
        let copies = |x: &Tensor| {
            let each: Vec<_> = (0..rows).map(|row| x.narrow(0, row / n, 1).unwrap()).collect();
            split(&Tensor::cat(&each, 0).unwrap(), heads)
        };
        let keys = k.dim(1).unwrap();
        let mut scores = (split(q, heads).matmul(&copies(k).t().unwrap()).unwrap() * 0.3).unwrap();
        let raw = scores.clone();
        if causal {
            let before = keys - count;
            let mask: Vec<f32> = (0..count * keys)
                .map(|i| if i % keys > before + i / keys { f32::NEG_INFINITY } else { 0.0 })
                .collect();
            let mask = Tensor::from_vec(mask, (count, keys), &Device::Cpu).unwrap();
            scores = scores.broadcast_add(&mask).unwrap();
        }
        let shares = candle_nn::ops::softmax(&scores, D::Minus1).unwrap();
        let out = shares.matmul(&copies(v)).unwrap().transpose(1, 2).unwrap().reshape((rows, count, width));
        (out.unwrap(), raw)
    }

    #[test]
    fn attention_equals_candle_step_by_step() {
        attention_equals_candle_in::<f32>(DType::F32);
    }

    /// Of the numbers that are held: what is lost when they are rounded is the model's business.
    #[test]
    fn attention_to_numbers_of_16_bits_equals_candle_step_by_step() {
        attention_equals_candle_in::<Half>(DType::F16);
    }

    #[test]
    fn numbers_beyond_16_bits_are_the_largest_there_are() {
        let numbers: Vec<f32> =
            Half::nearest(&[1e9, -1e9, 0.1, -2.5]).iter().map(|half| half.wide()).collect();
        assert_eq!(numbers, [65504.0, -65504.0, 0.099975586, -2.5]);
    }

    fn attention_equals_candle_in<E: Element>(held: DType) {
        // rows of the cache, sequences per row, queries, positions, heads, head width, causal
        for (rows, n, count, positions, heads, head_width, causal) in [
            (1, 1, 1, 1, 1, 4, false),
            (1, 1, 1, 1500, 6, 64, false),
            (2, 5, 1, 1500, 2, 64, false),
            (1, 1, 40, 1500, 2, 64, false),
            (3, 1, 4, 4, 2, 16, true),
            (2, 1, 7, 39, 3, 20, true),
            (2, 1, 1, 100, 1, 130, true),
        ] {
            let case = (rows, n, count, positions, heads, head_width, causal);
            let random = |rows, count| {
                Tensor::randn(0f32, 1.5, (rows, count, heads * head_width), &Device::Cpu).unwrap()
            };
            let rounded = |x: Tensor| x.to_dtype(held).unwrap().to_dtype(DType::F32).unwrap();
            let q = random(rows * n, count);
            let (k, v) = (rounded(random(rows, positions)), rounded(random(rows, positions)));
            let mut cache = KvCache::<E>::new(rows, heads, head_width, positions);
            // In two parts, as a prompt and the tokens after it.
            let first = positions / 2;
            for (at, length) in [(0, first), (first, positions - first)] {
                if length > 0 {
                    let part = |x: &Tensor| x.narrow(1, at, length).unwrap().contiguous().unwrap();
                    cache.write_keys(at, &part(&k)).unwrap();
                    cache.write_values(at, &part(&v)).unwrap();
                }
            }
            let seen = if causal {
                AttentionMask::Causal(positions - count)
            } else {
                AttentionMask::Full(positions)
            };
            let (out, scores) = expected(&q, &k, &v, heads, causal);
            let off = largest_difference(&cache.attend(&q, seen, 0.3).unwrap(), &out);
            // The difference of summing 1500 products in another order.
            assert!(off < 1e-4, "{case:?}: off by {off}");
            let head = heads - 1;
            let scores = scores.narrow(1, head, 1).unwrap().squeeze(1).unwrap();
            let off = largest_difference(&cache.scores(&q, head, 0.3).unwrap(), &scores);
            assert!(off < 1e-3, "scores of {case:?}: off by {off}");
        }
    }

    #[test]
    fn rows_are_kept_and_reordered() {
        let (rows, heads, head_width, positions) = (4, 2, 8, 40);
        let random =
            || Tensor::randn(0f32, 1.0, (rows, positions, heads * head_width), &Device::Cpu).unwrap();
        let (k, v) = (random(), random());
        let pick =
            |x: &Tensor, rows: &[u32]| x.index_select(&Tensor::new(rows, &Device::Cpu).unwrap(), 0).unwrap();
        let made = |k: &Tensor, v: &Tensor| {
            let mut cache = KvCache::<f32>::new(k.dim(0).unwrap(), heads, head_width, positions + 30);
            cache.write_keys(0, k).unwrap();
            cache.write_values(0, v).unwrap();
            cache
        };
        let q = random().narrow(1, 0, 1).unwrap().contiguous().unwrap();
        let look = |cache: &KvCache, rows| {
            let q = q.narrow(0, 0, rows).unwrap();
            cache.attend(&q, AttentionMask::Full(positions), 1.0).unwrap()
        };
        let mut cache = made(&k, &v);
        cache.reorder(&[1, 0, 2, 2]);
        let same = made(&pick(&k, &[1, 0, 2, 2]), &pick(&v, &[1, 0, 2, 2]));
        assert_eq!(largest_difference(&look(&cache, 4), &look(&same, 4)), 0.0);
        cache.keep(&[0, 3]);
        let same = made(&pick(&k, &[1, 2]), &pick(&v, &[1, 2]));
        assert_eq!(largest_difference(&look(&cache, 2), &look(&same, 2)), 0.0);
    }

    /// Against caches that are written anew with all that a row has. Positions go beyond two blocks, and at the end back
    /// into the first one, which rows share by then.
    #[test]
    fn rows_that_share_a_past_write_their_own_future() {
        let (rows, heads, head_width, positions) = (4, 2, 8, 80);
        let random =
            |count| Tensor::randn(0f32, 1.0, (rows, count, heads * head_width), &Device::Cpu).unwrap();
        let write = |cache: &mut KvCache, at, k: &Tensor, v: &Tensor| {
            cache.write_keys(at, k).unwrap();
            cache.write_values(at, v).unwrap();
        };
        let mut cache = KvCache::<f32>::new(rows, heads, head_width, positions);
        let (mut k, mut v) = (random(20), random(20));
        write(&mut cache, 0, &k, &v);
        let (mut length, mut forks) = (20, 0);
        let steps = [[0, 0, 1, 2], [1, 0, 2, 3], [3, 3, 3, 3], [0, 1, 2, 2], [2, 1, 1, 0], [0, 1, 2, 3]];
        for (step, sources) in steps.iter().cycle().take(58).enumerate() {
            if step == 50 {
                // Dropped again, as a state is truncated.
                length = 9;
            }
            let pick = |x: &Tensor| {
                let sources: Vec<u32> = sources.iter().map(|source| *source as u32).collect();
                let x = x.index_select(&Tensor::new(sources, &Device::Cpu).unwrap(), 0).unwrap();
                x.narrow(1, 0, length).unwrap()
            };
            let (next_k, next_v) = (random(1), random(1));
            (k, v) = (
                Tensor::cat(&[&pick(&k), &next_k], 1).unwrap(),
                Tensor::cat(&[&pick(&v), &next_v], 1).unwrap(),
            );
            cache.reorder(sources);
            write(&mut cache, length, &next_k, &next_v);
            length += 1;
            forks += usize::from(sources.iter().any(|a| sources.iter().filter(|b| a == *b).count() > 1));
            let mut anew = KvCache::new(rows, heads, head_width, positions);
            write(&mut anew, 0, &k.contiguous().unwrap(), &v.contiguous().unwrap());
            let q = random(1);
            let look = |cache: &KvCache| cache.attend(&q, AttentionMask::Full(length), 1.0).unwrap();
            assert_eq!(largest_difference(&look(&cache), &look(&anew)), 0.0, "step {step}");
        }
        assert!(forks > 30 && length < 20);
    }

    #[test]
    fn mismatched_shapes_are_refused() {
        let x = |rows: usize, count: usize, width: usize| {
            Tensor::zeros((rows, count, width), DType::F32, &Device::Cpu).unwrap()
        };
        let mut cache = KvCache::<f32>::new(2, 2, 4, 32);
        assert!(cache.write_keys(30, &x(2, 3, 8)).is_err());
        assert!(cache.write_keys(0, &x(1, 3, 8)).is_err());
        assert!(cache.write_values(30, &x(2, 3, 8)).is_err());
        assert!(cache.write_values(0, &x(2, 3, 4)).is_err());
        assert!(cache.attend(&x(3, 1, 8), AttentionMask::Full(3), 1.0).is_err());
        assert!(cache.attend(&x(4, 1, 8), AttentionMask::Causal(3), 1.0).is_err());
        assert!(cache.attend(&x(2, 1, 8), AttentionMask::Full(33), 1.0).is_err());
        assert!(cache.attend(&x(2, 1, 4), AttentionMask::Full(3), 1.0).is_err());
    }
}
