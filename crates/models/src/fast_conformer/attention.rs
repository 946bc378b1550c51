//! Attention that hears how far apart two frames are (Dai and others, arXiv:1901.02860).

use std::ops::Range;

use candle_core::{D, Tensor};
use memory::FastConformerDimensions;
use rayon::prelude::*;

use super::encoder::Together;
use crate::Error;
use crate::fused::{AttentionHead, columns_of_heads, is_host_f32, queries_per_block};
use crate::layers::{Linear, Loader};
use crate::matrix::with_values;
use crate::right_factor::{self, AttentionPrecision, RightFactor};

pub(super) const MOST_FRAMES: usize = FastConformerDimensions::MOST_FRAMES;
/// Distances that are multiplied together on the host: a block of queries needs only some of the segments.
const SEGMENT: usize = 128;

/// The layer's projections, and what is added to queries before they meet keys and before
/// they meet distances.
#[derive(Debug)]
pub(super) struct Attention {
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    distances: Distances,
    /// (heads, head width)
    content_bias: Tensor,
    position_bias: Tensor,
    heads: usize,
}

/// The projections of the distances between frames, from the largest one down: the same in every window.
#[derive(Debug)]
enum Distances {
    /// Of each head, on the host, projected once and held in place of the matrix.
    OfHeads(Vec<HeadDistances>),
    /// The same elsewhere, (2 [`MOST_FRAMES`] - 1, width).
    Projected(Tensor),
    /// By a matrix that takes less memory than what it projects: for each window anew.
    PerWindow { relative: Linear, positions: Tensor },
}

impl Distances {
    /// `positions` are those of [`MOST_FRAMES`].
    fn new(
        relative: Linear,
        positions: &Tensor,
        heads: usize,
        precision: AttentionPrecision,
    ) -> Result<Self, Error> {
        if relative.is_compressed() {
            return Ok(Self::PerWindow { relative, positions: positions.clone() });
        }
        let projected = relative.forward(positions)?;
        match is_host_f32(&projected) {
            true => Ok(Self::OfHeads(HeadDistances::of_all(&projected, heads, precision)?)),
            false => Ok(Self::Projected(projected)),
        }
    }

    /// (2 `length` - 1, width)
    fn of_window(&self, length: usize) -> Result<Tensor, Error> {
        let within = |all: &Tensor| all.narrow(0, MOST_FRAMES - length, 2 * length - 1);
        match self {
            Self::PerWindow { relative, positions } => relative.forward(&within(positions)?),
            Self::Projected(projected) => Ok(within(projected)?),
            Self::OfHeads(_) => {
                Err(candle_core::Error::Msg("distances held for the host were asked for on a device".into())
                    .into())
            }
        }
    }
}

impl Attention {
    /// `positions` are those of [`MOST_FRAMES`] frames.
    pub fn load(
        loader: Loader,
        name: &str,
        of: &FastConformerDimensions,
        positions: &Tensor,
    ) -> Result<Self, Error> {
        let (width, heads) = (of.width as usize, of.heads as usize);
        let linear = |part: &str, bias| loader.linear(&format!("{name}.{part}"), width, width, bias);
        let bias = |part: &str| loader.get(&format!("{name}.{part}"), &[heads, width / heads]);
        let k = linear("k_proj", of.attention_bias)?;
        let relative = linear("relative_k_proj", false)?;
        Ok(Self {
            q: linear("q_proj", of.attention_bias)?,
            distances: Distances::new(relative, positions, heads, k.attention_precision())?,
            k,
            v: linear("v_proj", of.attention_bias)?,
            out: linear("o_proj", of.attention_bias)?,
            content_bias: bias("bias_u")?,
            position_bias: bias("bias_v")?,
            heads,
        })
    }

    /// `residual` plus what `x`, which is `residual` normalised, attends to in its window: (frames of all windows,
    /// width).
    pub fn forward(&self, residual: &Tensor, x: &Tensor, together: &Together) -> Result<Tensor, Error> {
        let q = self.q.forward(x)?;
        let (k, v) = (self.k.forward(x)?, self.v.forward(x)?);
        let biases = (&self.content_bias, &self.position_bias);
        let attended = if is_host_f32(x) {
            let precision = self.k.attention_precision();
            let attend = |distances: &[HeadDistances]| {
                attend_on_host([&q, &k, &v], distances, biases, self.heads, precision)
            };
            match &self.distances {
                Distances::OfHeads(distances) => attend(distances)?,
                distances => {
                    let of_window = distances.of_window(together.length)?;
                    attend(&HeadDistances::of_all(&of_window, self.heads, precision)?)?
                }
            }
        } else {
            let p = self.distances.of_window(together.length)?;
            attend([&q, &k, &v, &p], biases, self.heads, together)?
        };
        drop((q, k, v));
        self.out.added(&attended, residual)
    }
}

/// ((q_i + u) k_j + (q_i + v) p_{n-1-i+j}) / sqrt(head width), by candle's operations.
fn attend(
    [q, k, v, p]: [&Tensor; 4],
    (content, position): (&Tensor, &Tensor),
    heads: usize,
    &Together { windows, length, ref padding }: &Together,
) -> Result<Tensor, Error> {
    let (rows, width) = q.dims2()?;
    let (head, parts) = (width / heads, heads * windows);
    // (rows, width) -> (heads, rows, head width)
    let split = |x: &Tensor| x.reshape(((), heads, head))?.transpose(0, 1)?.contiguous();
    let by_window = |x: Tensor| x.reshape((parts, length, ()));
    let biased = |bias: &Tensor| split(&q.broadcast_add(&bias.reshape(width)?)?);
    let scores = by_window(biased(content)?)?.matmul(&by_window(split(k)?)?.t()?)?;
    // The distances are those of every window. What was the input of a step is freed behind it.
    let mut relative = by_window(biased(position)?.matmul(&split(p)?.t()?)?)?;
    // Each row begins one further to the left than the one above it.
    relative = relative.pad_with_zeros(2, 1, 0)?;
    relative = relative.reshape((parts, 2 * length, length))?;
    relative = relative.narrow(1, 1, 2 * length - 1)?.contiguous()?;
    relative = relative.reshape((parts, length, 2 * length - 1))?.narrow(2, 0, length)?;
    let mut scores = (scores + relative)?;
    scores = (scores * (head as f64).powf(-0.5))?;
    if let Some(padding) = padding {
        scores = scores.reshape((heads, windows, length, length))?.broadcast_add(&padding.keys)?;
        scores = by_window(scores)?;
    }
    let shares = candle_nn::ops::softmax(&scores, D::Minus1)?;
    let attended = shares.matmul(&by_window(split(v)?)?)?.reshape((heads, rows, head))?;
    Ok(attended.transpose(0, 1)?.reshape((rows, width))?)
}

/// As [`attend`] for one window: threads take blocks of queries.
fn attend_on_host(
    [q, k, v]: [&Tensor; 3],
    distances: &[HeadDistances],
    (content, position): (&Tensor, &Tensor),
    heads: usize,
    precision: AttentionPrecision,
) -> Result<Tensor, Error> {
    let (length, width) = q.dims2()?;
    let (content, position) = (content.flatten_all()?.to_vec1()?, position.flatten_all()?.to_vec1()?);
    let heads = with_values(k, |k| {
        with_values(v, |v| {
            let head = |columns| AttentionHead::new(precision, (k, v), width, columns);
            columns_of_heads(width, heads).map(head).collect::<Result<Vec<_>, Error>>()
        })
    })???;
    let heads = Heads { heads, distances, length, width, content: &content, position: &position };
    let attended = with_values(q, |q| heads.attend(q))??;
    Ok(Tensor::from_vec(attended, (length, width), q.device())?)
}

/// The distances between frames as a head hears them.
#[derive(Debug)]
struct HeadDistances {
    /// Columns of products, [`SEGMENT`] of them at a time.
    segments: Vec<RightFactor>,
    /// Frames of the longest window that has no others.
    frames: usize,
}

impl HeadDistances {
    /// Those of each head; `projected` is (2 frames - 1, width).
    fn of_all(projected: &Tensor, heads: usize, precision: AttentionPrecision) -> Result<Vec<Self>, Error> {
        let (count, width) = projected.dims2()?;
        with_values(projected, |projected| {
            let head = |columns: Range<usize>| {
                let segments = projected.chunks(SEGMENT * width);
                let segments =
                    segments.map(|rows| RightFactor::of_rows(precision, rows, width, columns.clone()));
                Ok(Self { segments: segments.collect::<Result<_, Error>>()?, frames: count.div_ceil(2) })
            };
            columns_of_heads(width, heads).map(head).collect()
        })?
    }

    /// Adds to the scores of the queries `x`, (queries, keys), those of their distances to the keys, times `scale`.
    /// `start` is the number of the first query in its window.
    fn add_scores(
        &self,
        (of_segment, of_products): (&mut [f32], &mut right_factor::Scratch),
        scores: &mut [f32],
        (x, width): (&[f32], usize),
        start: usize,
        scale: f32,
    ) -> Result<(), Error> {
        let queries = x.len() / width;
        let keys = scores.len() / queries;
        // Of the distances to the first key, that of the last query comes first.
        let first_key = |query: usize| self.frames - 1 - start - query;
        let met = first_key(queries - 1)..first_key(0) + keys;
        for number in met.start / SEGMENT..met.end.div_ceil(SEGMENT) {
            let segment = number * SEGMENT..(2 * self.frames - 1).min((number + 1) * SEGMENT);
            let of_segment = &mut of_segment[..queries * segment.len()];
            self.segments[number].scaled_product(of_products, of_segment, (x, width, 0..width), scale)?;
            let rows = scores.chunks_exact_mut(keys).zip(of_segment.chunks_exact(segment.len()));
            for (query, (scores, of_segment)) in rows.enumerate() {
                // A key's distance grows from one query to the next.
                let first = first_key(query);
                let (start, end) = (segment.start.max(first), segment.end.min(first + keys));
                if start < end {
                    let scores = &mut scores[start - first..end - first];
                    let of_segment = &of_segment[start - segment.start..];
                    scores.iter_mut().zip(of_segment).for_each(|(score, distance)| *score += distance);
                }
            }
        }
        Ok(())
    }
}

struct Heads<'a> {
    heads: Vec<AttentionHead>,
    distances: &'a [HeadDistances],
    length: usize,
    width: usize,
    content: &'a [f32],
    position: &'a [f32],
}

/// What a thread computes with.
struct Scratch {
    scores: Vec<f32>,
    /// Queries of a head with one of the biases.
    biased: Vec<f32>,
    of_segment: Vec<f32>,
    of_products: right_factor::Scratch,
}

impl Heads<'_> {
    fn attend(&self, q: &[f32]) -> Result<Vec<f32>, Error> {
        let mut out = vec![0.0; q.len()];
        let most = queries_per_block(self.length);
        let block = most * self.width;
        out.par_chunks_mut(block).zip(q.par_chunks(block)).enumerate().try_for_each_init(
            || Scratch {
                scores: vec![0.0; most * self.length],
                biased: Vec::with_capacity(block / self.heads.len().max(1)),
                of_segment: vec![0.0; most * SEGMENT],
                of_products: right_factor::Scratch::default(),
            },
            |scratch, (number, (out, q))| self.attend_block(scratch, out, q, number * most),
        )?;
        Ok(out)
    }

    /// The queries from number `start` on.
    fn attend_block(
        &self,
        Scratch { scores, biased, of_segment, of_products }: &mut Scratch,
        out: &mut [f32],
        q: &[f32],
        start: usize,
    ) -> Result<(), Error> {
        let width = self.width;
        let scores = &mut scores[..q.len() / width * self.length];
        for (head, distances) in self.heads.iter().zip(self.distances) {
            let columns = head.columns.clone();
            let scale = (columns.len() as f32).powf(-0.5);
            let with_bias = |biased: &mut Vec<f32>, bias: &[f32]| {
                biased.clear();
                for q in q.chunks_exact(width) {
                    let of_head = q[columns.clone()].iter().zip(&bias[columns.clone()]);
                    biased.extend(of_head.map(|(q, bias)| q + bias));
                }
            };
            with_bias(biased, self.content);
            let x = (&biased[..], columns.len(), 0..columns.len());
            head.keys.scaled_product(of_products, scores, x, scale)?;
            with_bias(biased, self.position);
            distances.add_scores((of_segment, of_products), scores, (biased, columns.len()), start, scale)?;
            head.weigh(of_products, scores, out, width)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    /// (frames, heads, head width, frames of the longest window that has no other distances): one block of queries,
    /// several, and an incomplete last one; one segment of distances, several, and those of longer windows.
    #[test]
    fn the_host_computes_what_candle_does() {
        let cases = [
            (1, 1, 4, 1),
            (7, 2, 8, 7),
            (130, 3, 16, 130),
            (300, 2, 32, 300),
            (1, 2, 8, 512),
            (301, 1, 16, 512),
        ];
        for (length, heads, head, frames) in cases {
            let random = |rows: usize| Tensor::randn(0f32, 1.0, (rows, heads * head), &Device::Cpu).unwrap();
            let [q, k, v] = [(); 3].map(|()| random(length));
            let p = random(2 * frames - 1);
            let of_window = p.narrow(0, frames - length, 2 * length - 1).unwrap();
            let bias = || Tensor::randn(0f32, 1.0, (heads, head), &Device::Cpu).unwrap();
            let (content, position) = (bias(), bias());
            let alone = Together::alone(length);
            let expected = attend([&q, &k, &v, &of_window], (&content, &position), heads, &alone).unwrap();
            for (precision, most) in [
                (AttentionPrecision::F32, 2e-5),
                (AttentionPrecision::Bf16, 0.1),
                (AttentionPrecision::EightBits, 0.15),
            ] {
                let distances = HeadDistances::of_all(&p, heads, precision).unwrap();
                let found = attend_on_host([&q, &k, &v], &distances, (&content, &position), heads, precision);
                let found = found.unwrap();
                let off = (found - &expected).unwrap().abs().unwrap().max_all().unwrap();
                let off = off.to_scalar::<f32>().unwrap();
                assert!(off < most, "{precision:?}, {length} x {heads} x {head}: off by {off}");
            }
        }
    }

    #[test]
    fn windows_attend_together_as_each_alone() {
        let (heads, head, lengths, gap) = (2, 8, [7, 30, 1], 4);
        let random = |rows: usize| Tensor::randn(0f32, 1.0, (rows, heads * head), &Device::Cpu).unwrap();
        let together = Together::of(&lengths, gap, &random(1)).unwrap();
        let rows = together.windows * together.length;
        // What stands in the padding is heard by nothing.
        let [q, k, v] = [(); 3].map(|()| random(rows));
        let p = random(2 * together.length - 1);
        let bias = || Tensor::randn(0f32, 1.0, (heads, head), &Device::Cpu).unwrap();
        let (content, position) = (bias(), bias());
        let all = attend([&q, &k, &v, &p], (&content, &position), heads, &together).unwrap();
        for (number, length) in lengths.into_iter().enumerate() {
            let of = |x: &Tensor| x.narrow(0, number * together.length, length).unwrap();
            let p = p.narrow(0, together.length - length, 2 * length - 1).unwrap();
            let inputs = [&of(&q), &of(&k), &of(&v), &p];
            let alone = attend(inputs, (&content, &position), heads, &Together::alone(length)).unwrap();
            let off = (of(&all) - alone).unwrap().abs().unwrap().max_all().unwrap();
            let off = off.to_scalar::<f32>().unwrap();
            assert!(off < 2e-5, "{length} frames: off by {off}");
        }
    }
}
