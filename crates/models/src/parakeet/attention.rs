//! Attention that hears how far apart two frames are (Dai and others, arXiv:1901.02860).

use std::ops::Range;

use candle_core::{D, Tensor};
use memory::ParakeetDimensions;
use rayon::prelude::*;

use super::encoder::Together;
use crate::Error;
use crate::fused::{AttentionHead, columns_of_heads, is_host_f32, queries_per_block};
use crate::matrix::with_values;
use crate::right_factor::{self, AttentionPrecision, RightFactor};
use crate::whisper::layers::{Linear, Loader};

/// The layer's projections, and what is added to queries before they meet keys and before
/// they meet distances.
#[derive(Debug)]
pub(super) struct Attention {
    q: Linear,
    k: Linear,
    v: Linear,
    out: Linear,
    relative: Linear,
    /// (heads, head width)
    content_bias: Tensor,
    position_bias: Tensor,
    heads: usize,
}

impl Attention {
    pub fn load(loader: Loader, name: &str, of: &ParakeetDimensions) -> Result<Self, Error> {
        let (width, heads) = (of.width as usize, of.heads as usize);
        let linear = |part: &str, bias| loader.linear(&format!("{name}.{part}"), width, width, bias);
        let bias = |part: &str| loader.get(&format!("{name}.{part}"), &[heads, width / heads]);
        Ok(Self {
            q: linear("q_proj", of.attention_bias)?,
            k: linear("k_proj", of.attention_bias)?,
            v: linear("v_proj", of.attention_bias)?,
            out: linear("o_proj", of.attention_bias)?,
            relative: linear("relative_k_proj", false)?,
            content_bias: bias("bias_u")?,
            position_bias: bias("bias_v")?,
            heads,
        })
    }

    /// `residual` plus what `x`, which is `residual` normalised, attends to in its window: (frames of all windows,
    /// width); `positions` is (2 frames of a window - 1, width).
    pub fn forward(
        &self,
        residual: &Tensor,
        x: &Tensor,
        positions: &Tensor,
        together: &Together,
    ) -> Result<Tensor, Error> {
        let q = self.q.forward(x)?;
        let (k, v) = (self.k.forward(x)?, self.v.forward(x)?);
        let p = self.relative.forward(positions)?;
        let biases = (&self.content_bias, &self.position_bias);
        let attended = if is_host_f32(x) {
            attend_on_host([&q, &k, &v, &p], biases, self.heads, self.k.attention_precision())?
        } else {
            attend([&q, &k, &v, &p], biases, self.heads, together)?
        };
        drop((q, k, v, p));
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

/// As [`attend`]: threads take blocks of queries.
fn attend_on_host(
    [q, k, v, p]: [&Tensor; 4],
    (content, position): (&Tensor, &Tensor),
    heads: usize,
    precision: AttentionPrecision,
) -> Result<Tensor, Error> {
    let (length, width) = q.dims2()?;
    let (content, position) = (content.flatten_all()?.to_vec1()?, position.flatten_all()?.to_vec1()?);
    let heads = with_values(k, |k| {
        with_values(v, |v| {
            with_values(p, |p| {
                let head = |columns: Range<usize>| {
                    let positions = RightFactor::of_rows(precision, p, width, columns.clone())?;
                    let head = AttentionHead::new(precision, (k, v), width, columns)?;
                    Ok(RelativeHead { head, positions })
                };
                columns_of_heads(width, heads).map(head).collect::<Result<Vec<_>, Error>>()
            })
        })
    })????;
    let heads = Heads { heads, length, width, content: &content, position: &position };
    let attended = with_values(q, |q| heads.attend(q))??;
    Ok(Tensor::from_vec(attended, (length, width), q.device())?)
}

struct Heads<'a> {
    heads: Vec<RelativeHead>,
    length: usize,
    width: usize,
    content: &'a [f32],
    position: &'a [f32],
}

struct RelativeHead {
    head: AttentionHead,
    positions: RightFactor,
}

/// What a thread computes with.
struct Scratch {
    scores: Vec<f32>,
    relative: Vec<f32>,
    /// Queries with one of the biases.
    biased: Vec<f32>,
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
                relative: vec![0.0; most * (2 * self.length - 1)],
                biased: Vec::new(),
                of_products: right_factor::Scratch::default(),
            },
            |scratch, (number, (out, q))| self.attend_block(scratch, out, q, number * most),
        )?;
        Ok(out)
    }

    /// The queries from number `start` on.
    fn attend_block(
        &self,
        scratch: &mut Scratch,
        out: &mut [f32],
        q: &[f32],
        start: usize,
    ) -> Result<(), Error> {
        let (length, width, distances) = (self.length, self.width, 2 * self.length - 1);
        let count = q.len() / width;
        let scores = &mut scratch.scores[..count * length];
        let relative = &mut scratch.relative[..count * distances];
        for RelativeHead { head, positions } in &self.heads {
            let columns = head.columns.clone();
            let scale = (columns.len() as f32).powf(-0.5);
            let mut product = |out: &mut [f32], right: &RightFactor, bias: &[f32]| {
                scratch.biased.clear();
                for q in q.chunks_exact(width) {
                    let of_head = q[columns.clone()].iter().zip(&bias[columns.clone()]);
                    scratch.biased.extend(of_head.map(|(q, bias)| q + bias));
                }
                let x = (&scratch.biased[..], columns.len(), 0..columns.len());
                right.scaled_product(&mut scratch.of_products, out, x, scale)
            };
            product(scores, &head.keys, self.content)?;
            product(relative, positions, self.position)?;
            for (number, scores) in scores.chunks_exact_mut(length).enumerate() {
                // A key's distance grows from one query to the next.
                let of_row = &relative[number * distances + length - 1 - start - number..][..length];
                scores.iter_mut().zip(of_row).for_each(|(score, relative)| *score += relative);
            }
            head.weigh(&mut scratch.of_products, scores, out, width)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    /// (frames, heads, head width): one block of queries, several, and an incomplete last one.
    #[test]
    fn the_host_computes_what_candle_does() {
        for (length, heads, head) in [(1, 1, 4), (7, 2, 8), (130, 3, 16), (300, 2, 32)] {
            let random = |rows: usize| Tensor::randn(0f32, 1.0, (rows, heads * head), &Device::Cpu).unwrap();
            let [q, k, v] = [(); 3].map(|()| random(length));
            let p = random(2 * length - 1);
            let bias = || Tensor::randn(0f32, 1.0, (heads, head), &Device::Cpu).unwrap();
            let (content, position) = (bias(), bias());
            let alone = Together::alone(length);
            let expected = attend([&q, &k, &v, &p], (&content, &position), heads, &alone).unwrap();
            for (precision, most) in [
                (AttentionPrecision::F32, 2e-5),
                (AttentionPrecision::Bf16, 0.1),
                (AttentionPrecision::EightBits, 0.15),
            ] {
                let found =
                    attend_on_host([&q, &k, &v, &p], (&content, &position), heads, precision).unwrap();
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
