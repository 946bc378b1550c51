//! Keys and values of attention on the host, laid out so that a decoder's step,
//! which has few queries, reads them in one pass without copying.

use candle_core::Tensor;
use rayon::prelude::*;

use crate::Error;
use crate::fused::exponentials;
use crate::matrix::with_values;
use crate::vectorised::{Kernel, mul_add, vectorised};

/// Positions whose scores are computed together. This many partial sums fit the
/// vector registers of a processor.
const BLOCK_POSITIONS: usize = 32;
/// Positions whose values are applied to all queries before the next ones are
/// read. This many values fit the first-level cache.
const VALUES_PER_PASS: usize = 64;

/// The KV cache of one attention layer.
///
/// Keys are stored in blocks of [`BLOCK_POSITIONS`] positions. Within a block the
/// same component of all positions' keys is contiguous, so that the scores of a
/// block are sums of whole vectors.
#[derive(Debug)]
pub struct KvCache {
    rows: usize,
    heads: usize,
    head_width: usize,
    /// Capacity in positions.
    positions: usize,
    /// Capacity in blocks.
    blocks: usize,
    /// (rows, heads, blocks, head width, [`BLOCK_POSITIONS`])
    keys: Vec<f32>,
    /// (rows, heads, blocks x [`BLOCK_POSITIONS`], head width)
    values: Vec<f32>,
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

impl KvCache {
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
            keys: vec![0.0; numbers],
            values: vec![0.0; numbers],
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
        let head_width = self.head_width;
        let offset = |position: usize| {
            position / BLOCK_POSITIONS * head_width * BLOCK_POSITIONS + position % BLOCK_POSITIONS
        };
        with_values(keys, |keys| {
            each_head(keys, self.heads, head_width, count, &mut self.keys, |position, key, cache| {
                let slots = cache[offset(at + position)..].iter_mut().step_by(BLOCK_POSITIONS);
                slots.zip(key).for_each(|(slot, key)| *slot = *key);
            });
        })
    }

    /// Writes values as [`write_keys`](Self::write_keys) writes keys.
    pub fn write_values(&mut self, at: usize, values: &Tensor) -> Result<(), Error> {
        let count = self.check_write(at, values)?;
        let head_width = self.head_width;
        with_values(values, |values| {
            each_head(values, self.heads, head_width, count, &mut self.values, |position, value, cache| {
                cache[(at + position) * head_width..][..head_width].copy_from_slice(value);
            });
        })
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
            self.side_by_side(&by_head, queries)
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
        let row_length = self.heads * self.head_length();
        let kept = |numbers: &[f32]| {
            rows.iter().flat_map(|row| &numbers[row * row_length..][..row_length]).copied().collect()
        };
        self.keys = kept(&self.keys);
        self.values = kept(&self.values);
        self.rows = rows.len();
    }

    /// Replaces the first `length` positions of each row r by those of row `sources[r]`.
    pub fn reorder(&mut self, sources: &[usize], length: usize) {
        let (head_length, used) =
            (self.head_length(), length.div_ceil(BLOCK_POSITIONS) * BLOCK_POSITIONS * self.head_width);
        for numbers in [&mut self.keys, &mut self.values] {
            let before: Vec<f32> =
                numbers.chunks_exact(head_length).flat_map(|head| &head[..used]).copied().collect();
            for (number, head) in numbers.chunks_exact_mut(head_length).enumerate() {
                let (row, head_number) = (number / self.heads, number % self.heads);
                if sources[row] != row {
                    let source = sources[row] * self.heads + head_number;
                    head[..used].copy_from_slice(&before[source * used..][..used]);
                }
            }
        }
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
    ) -> HeadAttention<'a> {
        let (row, head) = (number / self.heads, number % self.heads);
        let width = self.heads * self.head_width;
        let head_length = self.head_length();
        HeadAttention {
            q: &q[row * queries * width + head * self.head_width..],
            width,
            queries,
            keys: &self.keys[number * head_length..][..head_length],
            values: &self.values[number * head_length..][..head_length],
            head_width: self.head_width,
            padded: self.blocks * BLOCK_POSITIONS,
            mask,
            scale,
            scores,
            out,
        }
    }

    /// (rows, heads, queries, head width) -> (rows, queries, heads, head width).
    fn side_by_side(&self, by_head: &[f32], queries: usize) -> Vec<f32> {
        let head_width = self.head_width;
        if queries == 1 {
            return by_head.to_vec();
        }
        let mut out = Vec::with_capacity(by_head.len());
        for row in by_head.chunks_exact(self.heads * queries * head_width) {
            for query in 0..queries {
                for head in 0..self.heads {
                    out.extend_from_slice(&row[(head * queries + query) * head_width..][..head_width]);
                }
            }
        }
        out
    }
}

/// Calls `put` for each position and head of `x`, (rows, count, heads x head
/// width), with the position's number, its slice of `x` and the head's part of
/// the cache.
fn each_head(
    x: &[f32],
    heads: usize,
    head_width: usize,
    count: usize,
    cache: &mut [f32],
    put: impl Fn(usize, &[f32], &mut [f32]),
) {
    let width = heads * head_width;
    if count == 0 || width == 0 {
        return;
    }
    let head_length = cache.len() / (x.len() / (count * head_width)).max(1);
    for (number, cache) in cache.chunks_exact_mut(head_length.max(1)).enumerate() {
        let (row, head) = (number / heads, number % heads);
        for (position, x) in x[row * count * width..][..count * width].chunks_exact(width).enumerate() {
            put(position, &x[head * head_width..][..head_width], cache);
        }
    }
}

/// Attention of the queries of one row by one head.
struct HeadAttention<'a> {
    /// All queries, from the first one's part for this head on. Consecutive
    /// queries are `width` apart.
    q: &'a [f32],
    width: usize,
    queries: usize,
    keys: &'a [f32],
    values: &'a [f32],
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

impl HeadAttention<'_> {
    #[inline(always)]
    /// The number of positions that a query attends to.
    fn visible_to(&self, query: usize) -> usize {
        match self.mask {
            AttentionMask::Full(positions) => positions,
            AttentionMask::Causal(before) => before + query + 1,
        }
    }
}

impl Kernel for HeadAttention<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let most = self.visible_to(self.queries - 1);
        for (number, keys) in self
            .keys
            .chunks_exact(self.head_width * BLOCK_POSITIONS)
            .take(most.div_ceil(BLOCK_POSITIONS))
            .enumerate()
        {
            for (query, scores) in self.scores.chunks_exact_mut(self.padded).take(self.queries).enumerate() {
                let q = &self.q[query * self.width..][..self.head_width];
                let (blocks, _) = scores.as_chunks_mut::<BLOCK_POSITIONS>();
                blocks[number] = block_of_scores::<FMA>(q, keys, self.scale);
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
        let values = self.values[..most * self.head_width].chunks(VALUES_PER_PASS * self.head_width);
        for (number, values) in values.enumerate() {
            for query in 0..self.queries {
                let count = values.len() / self.head_width;
                let shares = &self.scores[query * self.padded + number * VALUES_PER_PASS..][..count];
                let out = &mut self.out[query * self.head_width..][..self.head_width];
                add_weighted::<FMA>(shares, values, out);
            }
        }
    }
}

#[inline(always)]
fn block_of_scores<const FMA: bool>(q: &[f32], keys: &[f32], scale: f32) -> [f32; BLOCK_POSITIONS] {
    let mut sums = [0.0; BLOCK_POSITIONS];
    let (keys, _) = keys.as_chunks::<BLOCK_POSITIONS>();
    for (q, keys) in q.iter().zip(keys) {
        for (sum, key) in sums.iter_mut().zip(keys) {
            *sum = mul_add::<FMA>(*q, *key, *sum);
        }
    }
    sums.map(|sum| sum * scale)
}

/// Adds each row of `values` times its share to `out`.
#[inline(always)]
fn add_weighted<const FMA: bool>(shares: &[f32], values: &[f32], out: &mut [f32]) {
    let width = out.len();
    let mut at = 0;
    while at + 64 <= width {
        add_weighted_part::<FMA, 64>(shares, values, &mut out[at..], width, at);
        at += 64;
    }
    while at + 8 <= width {
        add_weighted_part::<FMA, 8>(shares, values, &mut out[at..], width, at);
        at += 8;
    }
    while at < width {
        add_weighted_part::<FMA, 1>(shares, values, &mut out[at..], width, at);
        at += 1;
    }
}

#[inline(always)]
fn add_weighted_part<const FMA: bool, const WIDTH: usize>(
    shares: &[f32],
    values: &[f32],
    out: &mut [f32],
    width: usize,
    at: usize,
) {
    let Some((out, _)) = out.split_first_chunk_mut::<WIDTH>() else { return };
    let mut sums = *out;
    for (share, value) in shares.iter().zip(values.chunks_exact(width)) {
        let Some((value, _)) = value[at..].split_first_chunk::<WIDTH>() else { return };
        for (sum, value) in sums.iter_mut().zip(value) {
            *sum = mul_add::<FMA>(*share, *value, *sum);
        }
    }
    *out = sums;
}

#[cfg(test)]
mod tests {
    use candle_core::{D, Device};

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
            let (q, k, v) = (random(rows * n, count), random(rows, positions), random(rows, positions));
            let mut cache = KvCache::new(rows, heads, head_width, positions);
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
            let mut cache = KvCache::new(k.dim(0).unwrap(), heads, head_width, positions + 30);
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
        cache.reorder(&[1, 0, 2, 2], positions);
        let same = made(&pick(&k, &[1, 0, 2, 2]), &pick(&v, &[1, 0, 2, 2]));
        assert_eq!(largest_difference(&look(&cache, 4), &look(&same, 4)), 0.0);
        cache.keep(&[0, 3]);
        let same = made(&pick(&k, &[1, 2]), &pick(&v, &[1, 2]));
        assert_eq!(largest_difference(&look(&cache, 2), &look(&same, 2)), 0.0);
    }

    #[test]
    fn mismatched_shapes_are_refused() {
        let x = |rows: usize, count: usize, width: usize| {
            Tensor::zeros((rows, count, width), candle_core::DType::F32, &Device::Cpu).unwrap()
        };
        let mut cache = KvCache::new(2, 2, 4, 32);
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
