//! Attention and activations on the host, each in one pass. candle's operations
//! write every intermediate result to memory and compute exponentials one at a
//! time.
//!
//! Blocks of queries are distributed over the threads.

use std::ops::Range;

use candle_core::{CpuStorage, DType, InplaceOp1, InplaceOp2, Layout, Tensor};
use gemm::Parallelism;
use rayon::prelude::*;

use crate::Error;
use crate::matrix::with_values;
use crate::panels::ROWS_TOGETHER;
use crate::right_factor::{AttentionPrecision, RightFactor, Scratch};
use crate::vectorised::{Kernel, vectorised};

/// Queries that a thread processes at once, at most. With more, the scores do not fit the core's cache.
const MOST_QUERIES_PER_BLOCK: usize = 10 * ROWS_TOGETHER;
/// Activations that a thread processes at a time: tens of microseconds of work.
pub(crate) const ACTIVATIONS_PER_TASK: usize = 1 << 15;
/// 32-bit floats in the widest vectors.
pub(crate) const LANES: usize = 16;

/// Whether the functions of this module support a tensor: on the host, in 32 bits.
pub fn is_host_f32(x: &Tensor) -> bool {
    x.device().is_cpu() && x.dtype() == DType::F32
}

/// Scaled dot-product attention of `heads` heads, each a slice of the width. `q` is
/// (windows, queries, width), `k` and `v` are (windows, keys, width), all
/// contiguous; the result has the shape of `q`. Scores are multiplied by `scale`.
pub fn attention(
    [q, k, v]: [&Tensor; 3],
    heads: usize,
    scale: f32,
    precision: AttentionPrecision,
) -> Result<Tensor, Error> {
    let (windows, queries, width) = q.dims3()?;
    let keys = k.dim(1)?;
    let shape = AttentionShape { queries, keys, width, heads, scale, precision };
    if k.dims() != [windows, keys, width] || v.dims() != k.dims() || !width.is_multiple_of(heads.max(1)) {
        return Err(candle_core::Error::Msg(format!("{q:?} can't attend to {k:?} and {v:?}")).into());
    }
    let attended = with_values(q, |q| with_values(k, |k| with_values(v, |v| attend(q, k, v, shape))))????;
    Ok(Tensor::from_vec(attended, (windows, queries, width), q.device())?)
}

#[derive(Debug, Clone, Copy)]
struct AttentionShape {
    queries: usize,
    keys: usize,
    width: usize,
    heads: usize,
    scale: f32,
    precision: AttentionPrecision,
}

/// Queries that a thread processes at once, so that all threads have nearly equally many.
pub(crate) fn queries_per_block(queries: usize) -> usize {
    let threads = rayon::current_num_threads().max(1);
    let rounds = queries.div_ceil(threads * MOST_QUERIES_PER_BLOCK).max(1);
    queries.div_ceil(threads * rounds).max(1).next_multiple_of(ROWS_TOGETHER)
}

fn attend(q: &[f32], k: &[f32], v: &[f32], shape: AttentionShape) -> Result<Vec<f32>, Error> {
    let AttentionShape { queries, keys, width, heads, precision, .. } = shape;
    let mut out = vec![0.0; q.len()];
    if out.is_empty() || keys == 0 {
        return Ok(out);
    }
    let per_block = queries_per_block(queries);
    for ((out, q), (k, v)) in out
        .chunks_mut(queries * width)
        .zip(q.chunks(queries * width))
        .zip(k.chunks(keys * width).zip(v.chunks(keys * width)))
    {
        let heads: Vec<AttentionHead> = columns_of_heads(width, heads)
            .map(|columns| AttentionHead::new(precision, (k, v), width, columns))
            .collect::<Result<_, _>>()?;
        let blocks = out.par_chunks_mut(per_block * width).zip(q.par_chunks(per_block * width));
        blocks.try_for_each_init(
            || (vec![0.0; per_block * keys], Scratch::default()),
            |(scores, scratch), (out, q)| attend_block(scores, scratch, out, q, &heads, shape),
        )?;
    }
    Ok(out)
}

/// The part of a row that each head has.
pub(crate) fn columns_of_heads(
    width: usize,
    heads: usize,
) -> impl IndexedParallelIterator<Item = Range<usize>> {
    let head = width / heads.max(1);
    (0..heads).into_par_iter().map(move |number| number * head..(number + 1) * head)
}

/// What the queries of a head meet.
pub(crate) struct AttentionHead {
    pub columns: Range<usize>,
    pub keys: RightFactor,
    values: RightFactor,
}

impl AttentionHead {
    pub fn new(
        precision: AttentionPrecision,
        (k, v): (&[f32], &[f32]),
        width: usize,
        columns: Range<usize>,
    ) -> Result<Self, Error> {
        let keys = RightFactor::of_rows(precision, k, width, columns.clone())?;
        let values = RightFactor::of_columns(precision, v, width, columns.clone())?;
        Ok(Self { columns, keys, values })
    }

    /// Writes the means of the values, weighted by the exponentials of the scores, to this head's part of the rows of
    /// `out`; overwrites the scores, (queries, keys).
    pub fn weigh(
        &self,
        scratch: &mut Scratch,
        scores: &mut [f32],
        out: &mut [f32],
        width: usize,
    ) -> Result<(), Error> {
        let queries = out.len() / width;
        let keys = scores.len() / queries;
        let mut values = vec![0.0; queries * self.columns.len()];
        let sums = exponentials_of_rows(scores, keys);
        self.values.scaled_product(scratch, &mut values, (scores, keys, 0..keys), 1.0)?;
        // The result has fewer elements to divide than the scores.
        let rows = out.chunks_exact_mut(width).zip(values.chunks_exact(self.columns.len()));
        for ((out, values), sum) in rows.zip(sums) {
            out[self.columns.clone()].iter_mut().zip(values).for_each(|(out, value)| *out = value / sum);
        }
        Ok(())
    }
}

/// Attention of a block of queries by all heads.
fn attend_block(
    scores: &mut [f32],
    scratch: &mut Scratch,
    out: &mut [f32],
    q: &[f32],
    heads: &[AttentionHead],
    AttentionShape { keys, width, scale, .. }: AttentionShape,
) -> Result<(), Error> {
    let scores = &mut scores[..q.len() / width * keys];
    for head in heads {
        head.keys.scaled_product(scratch, scores, (q, width, head.columns.clone()), scale)?;
        head.weigh(scratch, scores, out, width)?;
    }
    Ok(())
}

/// Applies [`exponentials`] to every row.
struct ExponentialsKernel<'a> {
    scores: &'a mut [f32],
    keys: usize,
    sums: &'a mut [f32],
}

impl Kernel for ExponentialsKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for (row, sum) in self.scores.chunks_exact_mut(self.keys).zip(self.sums) {
            *sum = exponentials(row);
        }
    }
}

/// Applies [`exponentials`] to the rows of `scores`, of `keys` numbers each, and returns their sums.
pub(crate) fn exponentials_of_rows(scores: &mut [f32], keys: usize) -> Vec<f32> {
    let mut sums = vec![0.0; scores.len() / keys];
    vectorised(ExponentialsKernel { scores, keys, sums: &mut sums });
    sums
}

/// Replaces each x of the row by exp(x - maximum of the row) and returns their sum.
#[inline(always)]
pub fn exponentials(row: &mut [f32]) -> f32 {
    let highest = maximum(row);
    let mut lanes = [0.0; LANES];
    let mut chunks = row.chunks_exact_mut(LANES);
    for chunk in &mut chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = exp(*x - highest);
            *lane += *x;
        }
    }
    let mut sum = lanes.iter().sum();
    for x in chunks.into_remainder() {
        *x = exp(*x - highest);
        sum += *x;
    }
    sum
}

/// The logarithm of the sum of exponentials, within 1e-6. Minus infinity if all
/// elements are.
pub fn log_sum_exp(row: &[f32]) -> f32 {
    let (mut highest, mut sum) = (f32::NEG_INFINITY, 0.0);
    vectorised(LogSumExp { row, highest: &mut highest, sum: &mut sum });
    if highest == f32::NEG_INFINITY { highest } else { highest + sum.ln() }
}

struct LogSumExp<'a> {
    row: &'a [f32],
    highest: &'a mut f32,
    sum: &'a mut f32,
}

impl Kernel for LogSumExp<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let highest = maximum(self.row);
        let mut lanes = [0.0; LANES];
        let (chunks, rest) = self.row.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane += exp(*x - highest);
            }
        }
        *self.sum = lanes.iter().sum::<f32>() + rest.iter().map(|x| exp(*x - highest)).sum::<f32>();
        *self.highest = highest;
    }
}

#[inline(always)]
fn maximum(row: &[f32]) -> f32 {
    let larger = |a: f32, b: f32| if b > a { b } else { a };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let chunks = row.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = larger(*lane, *x);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// `a b` on this thread: `a` is (m, k), `b` is (k, n) and `out` is (m, n), all
/// contiguous.
pub fn matrix_product(out: &mut [f32], a: &[f32], b: &[f32], sizes: (usize, usize, usize)) {
    set_or_add_product(out, a, sizes.1, b, sizes, false);
}

/// Adds `a b` to `out` on this thread. The rows of `a` begin `row` elements apart
/// and may overlap, as the inputs of a convolution do; `b` is (k, n) and `out` is
/// (m, n), both contiguous.
pub fn add_product_of_overlapping_rows(
    out: &mut [f32],
    a: &[f32],
    row: usize,
    b: &[f32],
    sizes: (usize, usize, usize),
) {
    set_or_add_product(out, a, row, b, sizes, true);
}

/// # Panics
/// If one of the matrices does not lie within its slice.
fn set_or_add_product(
    out: &mut [f32],
    a: &[f32],
    row: usize,
    b: &[f32],
    (m, k, n): (usize, usize, usize),
    adds: bool,
) {
    if m == 0 || n == 0 || k == 0 {
        return;
    }
    assert!((m - 1) * row + k <= a.len() && k * n <= b.len() && m * n <= out.len());
    // SAFETY: the assertion above checks that every element that is read or
    // written lies within its slice. Strides are at most the length of a slice,
    // which fits an isize.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            out.as_mut_ptr(),
            1,
            n as isize,
            adds,
            a.as_ptr(),
            1,
            row as isize,
            b.as_ptr(),
            1,
            n as isize,
            if adds { 1.0 } else { 0.0 },
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// exp(x) for x <= 88, within 2 units in the last place; 0 below -87. Range
/// reduction and polynomial are those of Cephes' `expf`.
#[inline(always)]
pub fn exp(x: f32) -> f32 {
    /// 1.5 x 2^23. Adding it to a number of smaller magnitude rounds that to an
    /// integer, which is then in the lowest bits of the sum.
    const ROUNDER: f32 = 12_582_912.0;
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let is_small = x < -87.0;
    let x = if is_small { -87.0 } else { x };
    let rounded = x * std::f32::consts::LOG2_E + ROUNDER;
    let n = rounded - ROUNDER;
    let x = x - n * LN_2_HIGH - n * LN_2_LOW;
    let mut y = 1.987_569_1e-4;
    for coefficient in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        y = y * x + coefficient;
    }
    let y = y * x * x + x + 1.0;
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(127 << 23));
    if is_small { 0.0 } else { y * power }
}

#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp((-x).min(80.0)))
}

/// The error function within 1e-6, by the rational approximation of Eigen.
#[inline(always)]
fn erf(x: f32) -> f32 {
    let x = x.clamp(-4.0, 4.0);
    let square = x * x;
    let mut numerator = -2.726_142_3e-10;
    for coefficient in
        [2.770_681_4e-8, -2.101_024e-6, -5.692_506_5e-5, -7.349_906_3e-4, -2.954_6e-3, -1.609_603_3e-2]
    {
        numerator = numerator * square + coefficient;
    }
    let mut denominator = -1.456_607_2e-5;
    for coefficient in [-2.133_740_5e-4, -1.682_827e-3, -7.373_329e-3, -1.426_473_9e-2] {
        denominator = denominator * square + coefficient;
    }
    x * numerator / denominator
}

#[inline(always)]
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// Adds a bias to every row in place, and optionally applies GELU in its exact
/// form (by the error function). The tensor must be contiguous and, as it is
/// written to, not be shared.
#[derive(Debug, Clone, Copy)]
pub struct AddBias {
    /// Whether to apply GELU.
    pub gelu: bool,
}

impl InplaceOp2 for AddBias {
    fn name(&self) -> &'static str {
        "add-bias"
    }

    fn cpu_fwd(
        &self,
        x: &mut CpuStorage,
        x_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> candle_core::Result<()> {
        let (CpuStorage::F32(x), CpuStorage::F32(bias)) = (x, bias) else {
            candle_core::bail!("a bias is added in place in 32 bits only");
        };
        let (Some(x_at), Some(bias_at)) = (x_layout.contiguous_offsets(), bias_layout.contiguous_offsets())
        else {
            candle_core::bail!("a bias is added in place to contiguous numbers only");
        };
        let (x, bias) = (&mut x[x_at.0..x_at.1], &bias[bias_at.0..bias_at.1]);
        let width = bias.len().max(1);
        if !x.len().is_multiple_of(width) {
            candle_core::bail!("{} numbers are no rows of {width}", x.len());
        }
        let task = (ACTIVATIONS_PER_TASK / width).max(1) * width;
        x.par_chunks_mut(task).for_each(|x| vectorised(AddBiasKernel { x, bias, gelu: self.gelu }));
        Ok(())
    }
}

struct AddBiasKernel<'a> {
    x: &'a mut [f32],
    bias: &'a [f32],
    gelu: bool,
}

impl Kernel for AddBiasKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for row in self.x.chunks_exact_mut(self.bias.len()) {
            if self.gelu {
                row.iter_mut().zip(self.bias).for_each(|(x, bias)| *x = gelu(*x + bias));
            } else {
                row.iter_mut().zip(self.bias).for_each(|(x, bias)| *x += bias);
            }
        }
    }
}

/// Replaces y by `other + factor y`, `other` having the same shape. Both tensors must be contiguous; y is not shared, as
/// it is written to.
#[derive(Debug, Clone, Copy)]
pub struct AddTo {
    /// By which y is multiplied.
    pub factor: f32,
}

impl InplaceOp2 for AddTo {
    fn name(&self) -> &'static str {
        "add-to"
    }

    fn cpu_fwd(
        &self,
        y: &mut CpuStorage,
        y_layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> candle_core::Result<()> {
        let (CpuStorage::F32(y), CpuStorage::F32(other)) = (y, other) else {
            candle_core::bail!("numbers are added in place in 32 bits only");
        };
        let places = y_layout.contiguous_offsets().zip(other_layout.contiguous_offsets());
        let Some((y_at, other_at)) = places.filter(|_| y_layout.dims() == other_layout.dims()) else {
            candle_core::bail!("numbers are added in place to as many contiguous ones only");
        };
        let (y, other) = (&mut y[y_at.0..y_at.1], &other[other_at.0..other_at.1]);
        let factor = self.factor;
        let parts = y.par_chunks_mut(ACTIVATIONS_PER_TASK).zip(other.par_chunks(ACTIVATIONS_PER_TASK));
        parts.for_each(|(y, other)| vectorised(AddToKernel { y, other, factor }));
        Ok(())
    }
}

struct AddToKernel<'a> {
    y: &'a mut [f32],
    other: &'a [f32],
    factor: f32,
}

impl Kernel for AddToKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let factor = self.factor;
        self.y.iter_mut().zip(self.other).for_each(|(y, other)| *y = other + *y * factor);
    }
}

/// x times its sigmoid, in place. The tensor must be contiguous and not be shared.
#[derive(Debug, Clone, Copy)]
pub struct Silu;

impl InplaceOp1 for Silu {
    fn name(&self) -> &'static str {
        "silu"
    }

    fn cpu_fwd(&self, x: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        let (CpuStorage::F32(x), Some((start, end))) = (x, layout.contiguous_offsets()) else {
            candle_core::bail!("silu is computed in place of contiguous numbers of 32 bits only");
        };
        x[start..end].par_chunks_mut(ACTIVATIONS_PER_TASK).for_each(|x| vectorised(SiluKernel(x)));
        Ok(())
    }
}

struct SiluKernel<'a>(&'a mut [f32]);

impl Kernel for SiluKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        self.0.iter_mut().for_each(|x| *x *= sigmoid(*x));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use candle_core::{D, Device};

    #[test]
    fn silu_equals_candles() {
        let x = Tensor::randn(0f32, 8.0, (70, 1030), &Device::Cpu).unwrap();
        let expected = x.silu().unwrap();
        x.inplace_op1(&Silu).unwrap();
        let off = (x - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
        assert!(off < 2e-6, "off by {off}");
    }

    #[test]
    fn what_is_added_in_place_is_what_candle_adds() {
        let [y, other] = [(); 2].map(|()| Tensor::randn(0f32, 1.0, (70, 1030), &Device::Cpu).unwrap());
        let y = y.narrow(0, 3, 60).unwrap().copy().unwrap();
        let other = other.narrow(0, 3, 60).unwrap();
        let expected = (&other + (&y * 0.5).unwrap()).unwrap();
        y.inplace_op2(&other, &AddTo { factor: 0.5 }).unwrap();
        assert_eq!(y.to_vec2::<f32>().unwrap(), expected.to_vec2::<f32>().unwrap());
        assert!(y.inplace_op2(&other.t().unwrap(), &AddTo { factor: 0.5 }).is_err());
    }

    #[test]
    fn exponentials_and_error_function_are_accurate() {
        for step in -4_000..=4_000 {
            let x = step as f32 * 0.022;
            let (found, expected) = (f64::from(exp(x)), f64::from(x).exp());
            if x < -87.0 {
                assert_eq!(found, 0.0, "exp {x}");
            } else {
                assert!((found / expected - 1.0).abs() < 3e-7, "exp {x}: {found}, not {expected}");
            }
        }
        // candle's error function is in 64 bits.
        let xs: Vec<f64> = (-6_000..=6_000).map(|step| f64::from(step) * 1e-3).collect();
        let expected = Tensor::new(&xs[..], &Device::Cpu).unwrap().erf().unwrap().to_vec1::<f64>().unwrap();
        for (x, expected) in xs.into_iter().zip(expected) {
            let found = f64::from(erf(x as f32));
            assert!((found - expected).abs() < 1e-6, "erf {x}: {found}, not {expected}");
        }
    }

    #[test]
    fn log_sum_exp_of_a_vocabulary_is_accurate() {
        for (count, spread) in [(1, 1.0), (17, 30.0), (51_865, 4.0), (51_865, 90.0)] {
            let mut row: Vec<f32> =
                (0..count).map(|i| ((i * 7919) % 1009) as f32 / 1009.0 * spread - spread).collect();
            row[count / 2] = f32::NEG_INFINITY;
            row[0] = 1.5;
            let sum: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            let off = (f64::from(log_sum_exp(&row)) - sum.ln()).abs();
            assert!(off < 2e-6, "{count} numbers over {spread}: off by {off}");
        }
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY; 20]), f32::NEG_INFINITY);
    }

    /// (windows, queries, keys, heads, head width): one block of queries, several,
    /// and an incomplete last one.
    #[test]
    fn attention_equals_candle_step_by_step() {
        for (windows, queries, keys, heads, head_width) in
            [(1, 1, 1, 1, 4), (1, 7, 33, 2, 8), (2, 130, 130, 3, 16), (3, 300, 57, 2, 64)]
        {
            let random = |rows: usize| {
                Tensor::randn(0f32, 1.5, (windows, rows, heads * head_width), &Device::Cpu).unwrap()
            };
            let (q, k, v) = (random(queries), random(keys), random(keys));
            let scale = 0.3;
            let found = attention([&q, &k, &v], heads, scale, AttentionPrecision::F32).unwrap();
            let split = |x: &Tensor| {
                let rows = x.dim(1).unwrap();
                let x = x.reshape((windows, rows, heads, head_width)).unwrap();
                x.transpose(1, 2).unwrap().contiguous().unwrap()
            };
            let scores = (split(&q).matmul(&split(&k).t().unwrap()).unwrap() * f64::from(scale)).unwrap();
            let shares = candle_nn::ops::softmax(&scores, D::Minus1).unwrap();
            let expected = shares.matmul(&split(&v)).unwrap().transpose(1, 2).unwrap();
            let expected = expected.reshape((windows, queries, heads * head_width)).unwrap();
            let off = |found: Tensor| (found - &expected).unwrap().abs().unwrap();
            let off_by = off(found).max_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(off_by < 1e-5, "{windows} x {queries} to {keys}: off by {off_by}");
            // The mean, since single results of the largest scores are off by more.
            for (precision, most) in
                [(AttentionPrecision::Bf16, 0.015), (AttentionPrecision::EightBits, 0.03)]
            {
                let found = attention([&q, &k, &v], heads, scale, precision).unwrap();
                let off_by = off(found).mean_all().unwrap().to_scalar::<f32>().unwrap();
                assert!(off_by < most, "{precision:?}, {windows} x {queries} to {keys}: off by {off_by}");
            }
        }
        let one = Tensor::zeros((1, 2, 6), DType::F32, &Device::Cpu).unwrap();
        assert!(attention([&one; 3], 4, 1.0, AttentionPrecision::F32).is_err());
    }

    #[test]
    fn a_bias_is_added_to_every_row() {
        for gelu in [false, true] {
            let x = Tensor::randn(0f32, 2.0, (600, 130), &Device::Cpu).unwrap();
            let bias = Tensor::randn(0f32, 2.0, 130, &Device::Cpu).unwrap();
            let expected = x.broadcast_add(&bias).unwrap();
            let expected = if gelu { expected.gelu_erf().unwrap() } else { expected };
            x.inplace_op2(&bias, &AddBias { gelu }).unwrap();
            let off = (x - expected).unwrap().abs().unwrap().max_all().unwrap().to_scalar::<f32>().unwrap();
            assert!(off < 2e-6, "off by {off}");
        }
    }
}
