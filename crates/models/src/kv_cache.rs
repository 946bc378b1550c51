//! Keys and values of attention on the host, held as the few queries of a
//! decoder's step read them: in one pass over memory, nothing copied, whatever
//! the number of tokens so far.

use candle_core::Tensor;
use rayon::prelude::*;

use crate::Error;
use crate::fused::exponentials;
use crate::matrix::with_values;
use crate::vectorised::{Work, mul_add, vectorised};

/// Positions whose scores are computed together: as many sums as the vector
/// registers of a processor hold comfortably.
const BLOCK: usize = 32;
/// Positions whose values are weighed for all queries before the next ones are
/// read: as many as the nearest cache holds.
const WEIGHED: usize = 64;

/// The KV cache of one attention.
///
/// Keys lie in blocks of [`BLOCK`] positions, in which each number of a head's
/// width stands side by side with those of the other positions: scores of a
/// block are then sums of whole vectors.
#[derive(Debug)]
pub struct KvCache {
    rows: usize,
    heads: usize,
    head_width: usize,
    /// Positions that there is room for, and the blocks that hold them.
    positions: usize,
    blocks: usize,
    /// (rows, heads, blocks, head width, [`BLOCK`])
    keys: Vec<f32>,
    /// (rows, heads, blocks x [`BLOCK`], head width)
    values: Vec<f32>,
}

/// Which positions the queries of a row see.
#[derive(Debug, Clone, Copy)]
pub enum Seen {
    /// All of the first so many.
    All(usize),
    /// Those of so many before the first query, and each query's own and those
    /// of the queries before it.
    Causal(usize),
}

impl KvCache {
    /// Room for `capacity` positions of `rows` sequences.
    pub fn new(rows: usize, heads: usize, head_width: usize, capacity: usize) -> Self {
        let blocks = capacity.div_ceil(BLOCK);
        let numbers = rows * heads * blocks * BLOCK * head_width;
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

    /// Positions that there is room for.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// Writes keys of the positions from `at` on: (rows, count, heads x head
    /// width), contiguous.
    pub fn write_keys(&mut self, at: usize, keys: &Tensor) -> Result<(), Error> {
        let count = self.checked(at, keys)?;
        let head_width = self.head_width;
        let to = |position: usize| position / BLOCK * head_width * BLOCK + position % BLOCK;
        with_values(keys, |keys| {
            each_head(keys, self.heads, head_width, count, &mut self.keys, |position, key, cache| {
                let places = cache[to(at + position)..].iter_mut().step_by(BLOCK);
                places.zip(key).for_each(|(place, key)| *place = *key);
            });
        })
    }

    /// As [`write_keys`](Self::write_keys), of values.
    pub fn write_values(&mut self, at: usize, values: &Tensor) -> Result<(), Error> {
        let count = self.checked(at, values)?;
        let head_width = self.head_width;
        with_values(values, |values| {
            each_head(values, self.heads, head_width, count, &mut self.values, |position, value, cache| {
                cache[(at + position) * head_width..][..head_width].copy_from_slice(value);
            });
        })
    }

    /// How many positions are to be written.
    fn checked(&self, at: usize, x: &Tensor) -> Result<usize, Error> {
        let (rows, count, width) = x.dims3()?;
        let room = self.positions;
        if rows != self.rows || width != self.heads * self.head_width || at + count > room {
            return Err(candle_core::Error::Msg(format!("{x:?} at {at} into {room} positions")).into());
        }
        Ok(count)
    }

    /// What the queries, (rows x n, count, heads x head width), make of the
    /// values; the result is shaped as they are. The n sequences of a row look
    /// at the same keys.
    pub fn attend(&self, q: &Tensor, seen: Seen, scale: f32) -> Result<Tensor, Error> {
        let queries = self.queries_per_row(q, seen)?;
        let attended = with_values(q, |q| {
            let mut by_head = vec![0.0; q.len()];
            by_head.par_chunks_mut(queries * self.head_width).enumerate().for_each_init(
                || vec![0.0; queries * self.blocks * BLOCK],
                |scores, (number, out)| vectorised(self.look(q, number, queries, seen, scale, scores, out)),
            );
            self.side_by_side(&by_head, queries)
        })?;
        Ok(Tensor::from_vec(attended, q.dims(), q.device())?)
    }

    /// Scores of one head before the softmax: (rows x n, count, positions).
    pub fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error> {
        let positions = self.positions;
        let seen = Seen::All(positions);
        let queries = self.queries_per_row(q, seen)?;
        let room = self.blocks * BLOCK;
        let found = with_values(q, |q| {
            let mut found = Vec::with_capacity(self.rows * queries * positions);
            let mut scores = vec![0.0; queries * room];
            for row in 0..self.rows {
                let number = row * self.heads + head;
                vectorised(self.look(q, number, queries, seen, scale, &mut scores, &mut []));
                for scores in scores.chunks_exact(room) {
                    found.extend_from_slice(&scores[..positions]);
                }
            }
            found
        })?;
        Ok(Tensor::from_vec(found, (q.dim(0)?, q.dim(1)?, positions), q.device())?)
    }

    /// Goes on with these rows alone; the memory of the others is free afterwards.
    pub fn keep(&mut self, rows: &[usize]) {
        let of_row = self.heads * self.of_head();
        let kept = |numbers: &[f32]| {
            rows.iter().flat_map(|row| &numbers[row * of_row..][..of_row]).copied().collect()
        };
        self.keys = kept(&self.keys);
        self.values = kept(&self.values);
        self.rows = rows.len();
    }

    /// Row r gets the first `length` positions of what row `sources[r]` was.
    pub fn reorder(&mut self, sources: &[usize], length: usize) {
        let (of_head, used) = (self.of_head(), length.div_ceil(BLOCK) * BLOCK * self.head_width);
        for numbers in [&mut self.keys, &mut self.values] {
            let before: Vec<f32> =
                numbers.chunks_exact(of_head).flat_map(|head| &head[..used]).copied().collect();
            for (number, head) in numbers.chunks_exact_mut(of_head).enumerate() {
                let (row, head_number) = (number / self.heads, number % self.heads);
                if sources[row] != row {
                    let source = sources[row] * self.heads + head_number;
                    head[..used].copy_from_slice(&before[source * used..][..used]);
                }
            }
        }
    }

    /// Numbers of one head of one row, among the keys as among the values.
    fn of_head(&self) -> usize {
        self.blocks * BLOCK * self.head_width
    }

    fn queries_per_row(&self, q: &Tensor, seen: Seen) -> Result<usize, Error> {
        let (rows, count, width) = q.dims3()?;
        let most = match seen {
            Seen::All(positions) => positions,
            Seen::Causal(before) => before + count,
        };
        let fits = width == self.heads * self.head_width
            && self.rows > 0
            && rows.is_multiple_of(self.rows)
            && (1..=self.positions).contains(&most)
            // Each sequence's first query follows the same number of positions.
            && (rows == self.rows || matches!(seen, Seen::All(_)));
        if !fits {
            return Err(candle_core::Error::Msg(format!("{q:?} can't attend to {most} positions")).into());
        }
        Ok(rows / self.rows * count)
    }

    #[allow(clippy::too_many_arguments)]
    fn look<'a>(
        &'a self,
        q: &'a [f32],
        number: usize,
        queries: usize,
        seen: Seen,
        scale: f32,
        scores: &'a mut [f32],
        out: &'a mut [f32],
    ) -> Look<'a> {
        let (row, head) = (number / self.heads, number % self.heads);
        let width = self.heads * self.head_width;
        let of_head = self.of_head();
        Look {
            q: &q[row * queries * width + head * self.head_width..],
            width,
            queries,
            keys: &self.keys[number * of_head..][..of_head],
            values: &self.values[number * of_head..][..of_head],
            head_width: self.head_width,
            room: self.blocks * BLOCK,
            seen,
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

/// Hands each head's part of each position of `x`, (rows, count, heads x head
/// width), to `put`, with the position's number and that head's part of a cache.
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
    let of_head = cache.len() / (x.len() / (count * head_width)).max(1);
    for (number, cache) in cache.chunks_exact_mut(of_head.max(1)).enumerate() {
        let (row, head) = (number / heads, number % heads);
        for (position, x) in x[row * count * width..][..count * width].chunks_exact(width).enumerate() {
            put(position, &x[head * head_width..][..head_width], cache);
        }
    }
}

/// The queries of one row, looked at by one head.
struct Look<'a> {
    /// From the first query's part for this head on; each is `width` long.
    q: &'a [f32],
    width: usize,
    queries: usize,
    keys: &'a [f32],
    values: &'a [f32],
    head_width: usize,
    room: usize,
    seen: Seen,
    scale: f32,
    /// (queries, room): where the scores are left.
    scores: &'a mut [f32],
    /// (queries, head width); empty: only the scores are wanted.
    out: &'a mut [f32],
}

impl Look<'_> {
    #[inline(always)]
    fn seen_by(&self, query: usize) -> usize {
        match self.seen {
            Seen::All(positions) => positions,
            Seen::Causal(before) => before + query + 1,
        }
    }
}

impl Work for Look<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let most = self.seen_by(self.queries - 1);
        for (number, keys) in
            self.keys.chunks_exact(self.head_width * BLOCK).take(most.div_ceil(BLOCK)).enumerate()
        {
            for (query, scores) in self.scores.chunks_exact_mut(self.room).take(self.queries).enumerate() {
                let q = &self.q[query * self.width..][..self.head_width];
                let (blocks, _) = scores.as_chunks_mut::<BLOCK>();
                blocks[number] = block_of_scores::<FMA>(q, keys, self.scale);
            }
        }
        if self.out.is_empty() {
            return;
        }
        self.out.fill(0.0);
        for query in 0..self.queries {
            let seen = self.seen_by(query);
            let scores = &mut self.scores[query * self.room..][..self.room];
            let sum = exponentials(&mut scores[..seen]);
            scores[..seen].iter_mut().for_each(|share| *share /= sum);
            scores[seen..].fill(0.0);
        }
        let values = self.values[..most * self.head_width].chunks(WEIGHED * self.head_width);
        for (number, values) in values.enumerate() {
            for query in 0..self.queries {
                let count = values.len() / self.head_width;
                let shares = &self.scores[query * self.room + number * WEIGHED..][..count];
                let out = &mut self.out[query * self.head_width..][..self.head_width];
                weigh::<FMA>(shares, values, out);
            }
        }
    }
}

#[inline(always)]
fn block_of_scores<const FMA: bool>(q: &[f32], keys: &[f32], scale: f32) -> [f32; BLOCK] {
    let mut sums = [0.0; BLOCK];
    let (keys, _) = keys.as_chunks::<BLOCK>();
    for (q, keys) in q.iter().zip(keys) {
        for (sum, key) in sums.iter_mut().zip(keys) {
            *sum = mul_add::<FMA>(*q, *key, *sum);
        }
    }
    sums.map(|sum| sum * scale)
}

/// Adds to `out` each row of `values` times its share.
#[inline(always)]
fn weigh<const FMA: bool>(shares: &[f32], values: &[f32], out: &mut [f32]) {
    let width = out.len();
    let mut at = 0;
    while at + 64 <= width {
        weigh_part::<FMA, 64>(shares, values, &mut out[at..], width, at);
        at += 64;
    }
    while at + 8 <= width {
        weigh_part::<FMA, 8>(shares, values, &mut out[at..], width, at);
        at += 8;
    }
    while at < width {
        weigh_part::<FMA, 1>(shares, values, &mut out[at..], width, at);
        at += 1;
    }
}

#[inline(always)]
fn weigh_part<const FMA: bool, const WIDTH: usize>(
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

    /// As the textbook has it, each step a tensor.
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
    fn attention_is_what_candle_makes_of_it_step_by_step() {
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
            // In two parts, as a prompt and what follows it come.
            let first = positions / 2;
            for (at, length) in [(0, first), (first, positions - first)] {
                if length > 0 {
                    let part = |x: &Tensor| x.narrow(1, at, length).unwrap().contiguous().unwrap();
                    cache.write_keys(at, &part(&k)).unwrap();
                    cache.write_values(at, &part(&v)).unwrap();
                }
            }
            let seen = if causal { Seen::Causal(positions - count) } else { Seen::All(positions) };
            let (out, scores) = expected(&q, &k, &v, heads, causal);
            let off = largest_difference(&cache.attend(&q, seen, 0.3).unwrap(), &out);
            // Sums of 1500 random shares, in another order: rounding alone.
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
            cache.attend(&q, Seen::All(positions), 1.0).unwrap()
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
    fn what_does_not_fit_is_refused() {
        let x = |rows: usize, count: usize, width: usize| {
            Tensor::zeros((rows, count, width), candle_core::DType::F32, &Device::Cpu).unwrap()
        };
        let mut cache = KvCache::new(2, 2, 4, 32);
        assert!(cache.write_keys(30, &x(2, 3, 8)).is_err());
        assert!(cache.write_keys(0, &x(1, 3, 8)).is_err());
        assert!(cache.write_values(30, &x(2, 3, 8)).is_err());
        assert!(cache.write_values(0, &x(2, 3, 4)).is_err());
        assert!(cache.attend(&x(3, 1, 8), Seen::All(3), 1.0).is_err());
        assert!(cache.attend(&x(4, 1, 8), Seen::Causal(3), 1.0).is_err());
        assert!(cache.attend(&x(2, 1, 8), Seen::All(33), 1.0).is_err());
        assert!(cache.attend(&x(2, 1, 4), Seen::All(3), 1.0).is_err());
    }
}
