//! Operations of the network with their gradients. candle would compute a gradient for every
//! operand, the frozen weights among them, and keep the scores of attention for it; these
//! compute those of activations alone, and the scores again.

use std::fmt;
use std::sync::{Arc, Mutex};

use candle_core::backend::BackendStorage;
use candle_core::{
    CpuStorage, CudaStorage, CustomOp1, CustomOp3, D, DType, Error, Layout, Result, Shape, Storage, Tensor,
};
use candle_nn::ops::softmax_last_dim;

/// Queries whose scores are there at a time.
const QUERY_BLOCK: usize = 256;

/// Called on the way through the network, and on the way back; it returns whether to go on.
#[derive(Clone)]
pub struct Ticker(Arc<dyn Fn() -> bool + Send + Sync>);

impl Ticker {
    /// Calls `tick` from the thread that computes.
    pub fn new(tick: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(tick))
    }

    pub(super) fn goes_on(&self) -> bool {
        (self.0)()
    }

    fn tick(&self) -> Result<()> {
        if self.goes_on() { Ok(()) } else { Err(Error::Msg("interrupted".into())) }
    }
}

impl fmt::Debug for Ticker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Ticker")
    }
}

/// `x W' + b` with frozen `W`, (output, input), and `b`: (rows, input) -> (rows, output). `W` may be held in 16 bits; it
/// is computed in 32.
pub fn frozen_linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, ticker: &Ticker) -> Result<Tensor> {
    ticker.tick()?;
    let y = x.detach().matmul(&weight.to_dtype(DType::F32)?.t()?)?;
    let y = match bias {
        Some(bias) => y.broadcast_add(bias)?,
        None => y,
    };
    let (weight, ticker) = (weight.clone(), ticker.clone());
    with_gradient(x, y, move |gradient| {
        ticker.tick()?;
        gradient.contiguous()?.matmul(&weight.to_dtype(DType::F32)?)
    })
}

/// As [`frozen_linear`] with `scale B A` added to the weight; A is (rank, input), B (output, rank).
pub fn adapted_linear(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    (a, b): (&Tensor, &Tensor),
    scale: f64,
    ticker: &Ticker,
) -> Result<Tensor> {
    ticker.tick()?;
    let (input, a_value, b_value) = (x.detach(), a.detach(), b.detach());
    let low = (input.matmul(&a_value.t()?)? * scale)?;
    let y = (input.matmul(&weight.to_dtype(DType::F32)?.t()?)? + low.matmul(&b_value.t()?)?)?;
    let y = match bias {
        Some(bias) => y.broadcast_add(bias)?,
        None => y,
    };
    let (weight, ticker) = (weight.clone(), ticker.clone());
    // Nothing before the sound that a decoder reads learns, unless the encoder does.
    let wanted = x.track_op();
    let backward = move |gradient: &Tensor| {
        ticker.tick()?;
        let gradient = gradient.contiguous()?;
        let to_low = (gradient.matmul(&b_value)? * scale)?;
        let to_x = || gradient.matmul(&weight.to_dtype(DType::F32)?)? + to_low.matmul(&a_value)?;
        let to_x = wanted.then(to_x).transpose()?;
        Ok((to_x, to_low.t()?.matmul(&input)?, gradient.t()?.matmul(&low)?))
    };
    x.apply_op3(a, b, Attached { value: Mutex::new(Some(y)), backward })
}

/// Layer normalisation over the last dimension, with frozen scale and shift.
pub fn layer_norm(x: &Tensor, scale: &Tensor, shift: &Tensor) -> Result<Tensor> {
    /// As in torch.nn.LayerNorm, which Whisper was trained with.
    const EPSILON: f64 = 1e-5;
    let input = x.detach();
    let centred = input.broadcast_sub(&input.mean_keepdim(D::Minus1)?)?;
    let deviation = (centred.sqr()?.mean_keepdim(D::Minus1)? + EPSILON)?.sqrt()?;
    let normal = centred.broadcast_div(&deviation)?;
    let y = normal.broadcast_mul(scale)?.broadcast_add(shift)?;
    let scale = scale.clone();
    with_gradient(x, y, move |gradient| {
        let gradient = gradient.broadcast_mul(&scale)?;
        let mean = gradient.mean_keepdim(D::Minus1)?;
        let along = (&gradient * &normal)?.mean_keepdim(D::Minus1)?;
        let across = gradient.broadcast_sub(&mean)?.sub(&normal.broadcast_mul(&along)?)?;
        across.broadcast_div(&deviation)
    })
}

/// GELU by the error function. candle's own gradient has constants of six digits.
pub fn gelu(x: &Tensor) -> Result<Tensor> {
    let input = x.detach();
    let y = input.gelu_erf()?;
    with_gradient(x, y, move |gradient| {
        let density = (input.sqr()?.affine(-0.5, 0.0)?.exp()? * (0.5 * std::f64::consts::FRAC_2_SQRT_PI))?;
        let density = (density * std::f64::consts::FRAC_1_SQRT_2)?;
        let below = input.affine(std::f64::consts::FRAC_1_SQRT_2, 0.0)?.erf()?.affine(0.5, 0.5)?;
        gradient * (below + (&input * density)?)?
    })
}

/// Scaled dot-product attention: queries (rows, heads, length, head width), keys and values
/// (rows, heads, positions, head width), all contiguous. With `causal`, query i sees positions up to i.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor, causal: bool) -> Result<Tensor> {
    let shares = Shares { keys: k.detach(), scale: (q.dim(3)? as f64).powf(-0.5), causal };
    let (queries, values) = (q.detach(), v.detach());
    let blocks = blocks(&queries)?
        .map(|(start, count)| {
            shares.of(&queries.narrow(2, start, count)?.contiguous()?, start)?.matmul(&values)
        })
        .collect::<Result<Vec<_>>>()?;
    let y = Tensor::cat(&blocks, 2)?;
    let backward = move |gradient: &Tensor| {
        let keys = &shares.keys;
        let (mut to_keys, mut to_values) = (keys.zeros_like()?, values.zeros_like()?);
        let mut to_queries = Vec::new();
        for (start, count) in self::blocks(&queries)? {
            let queries = queries.narrow(2, start, count)?.contiguous()?;
            let gradient = gradient.narrow(2, start, count)?.contiguous()?;
            let shares_here = shares.of(&queries, start)?;
            to_values = (to_values + shares_here.t()?.matmul(&gradient)?)?;
            let to_shares = gradient.matmul(&values.t()?)?;
            let along = (&to_shares * &shares_here)?.sum_keepdim(D::Minus1)?;
            let to_scores = ((to_shares.broadcast_sub(&along)? * shares_here)? * shares.scale)?;
            to_queries.push(to_scores.matmul(keys)?);
            to_keys = (to_keys + to_scores.t()?.matmul(&queries)?)?;
        }
        Ok((Some(Tensor::cat(&to_queries, 2)?), to_keys, to_values))
    };
    q.apply_op3(k, v, Attached { value: Mutex::new(Some(y)), backward })
}

/// What attention shares out.
struct Shares {
    keys: Tensor,
    scale: f64,
    causal: bool,
}

impl Shares {
    /// The softmax of the scores of these queries, the first of which is query `start`.
    fn of(&self, queries: &Tensor, start: usize) -> Result<Tensor> {
        let scores = (queries.matmul(&self.keys.t()?)? * self.scale)?;
        let scores = match self.causal {
            true => scores.broadcast_add(&mask(queries.dim(2)?, start, &self.keys)?)?,
            false => scores,
        };
        softmax_last_dim(&scores)
    }
}

/// The first query and the number of queries of each block.
fn blocks(queries: &Tensor) -> Result<impl Iterator<Item = (usize, usize)> + use<>> {
    let length = queries.dim(2)?;
    Ok((0..length).step_by(QUERY_BLOCK).map(move |start| (start, QUERY_BLOCK.min(length - start))))
}

/// 0 where query `start` + i sees a key, minus infinity elsewhere: (count, positions).
fn mask(count: usize, start: usize, keys: &Tensor) -> Result<Tensor> {
    let positions = keys.dim(2)?;
    let mask: Vec<f32> = (0..count * positions)
        .map(|at| if at % positions > start + at / positions { f32::NEG_INFINITY } else { 0.0 })
        .collect();
    Tensor::from_vec(mask, (count, positions), keys.device())
}

/// The sum over rows of `weight` times the cross-entropy of the logits `hidden E'` with the token
/// of the row. `hidden` is (rows, width), `embedding` (vocabulary, width), frozen.
pub fn cross_entropy(hidden: &Tensor, embedding: &Tensor, tokens: &[u32], weight: f32) -> Result<Tensor> {
    let logits = logits(hidden, embedding)?;
    let tokens = Tensor::new(tokens, hidden.device())?.unsqueeze(1)?;
    let entropy = log_softmax(&logits)?.gather(&tokens, 1)?;
    let value = (entropy.sum_all()? * -f64::from(weight))?;
    let embedding = embedding.clone();
    with_gradient(hidden, value, move |gradient| {
        let probabilities = softmax_last_dim(&logits)?;
        let expected = tokens.zeros_like()?.to_dtype(DType::F32)?.affine(0.0, -1.0)?;
        let to_logits = probabilities.scatter_add(&tokens, &expected, 1)?;
        (to_logits * f64::from(weight))?.broadcast_mul(&gradient.reshape((1, 1))?)?.matmul(&embedding)
    })
}

/// The sum over rows of `weight` times the Kullback-Leibler divergence of the probabilities of the logits `hidden E'` from
/// those of `before E'`. Both are (rows, width), `embedding` (vocabulary, width), frozen, and so is `before`.
pub fn divergence(hidden: &Tensor, before: &Tensor, embedding: &Tensor, weight: f32) -> Result<Tensor> {
    let logits = logits(hidden, embedding)?;
    let (expected, value) = {
        let before = self::logits(before, embedding)?;
        // As on the way back: where nothing has changed, the gradient is zero to the last bit.
        let expected = softmax_last_dim(&before)?;
        let value = ((log_softmax(&before)? - log_softmax(&logits)?)? * &expected)?.sum_all()?;
        (expected, (value * f64::from(weight))?)
    };
    let embedding = embedding.clone();
    with_gradient(hidden, value, move |gradient| {
        let to_logits = (softmax_last_dim(&logits)? - &expected)?;
        (to_logits * f64::from(weight))?.broadcast_mul(&gradient.reshape((1, 1))?)?.matmul(&embedding)
    })
}

fn logits(hidden: &Tensor, embedding: &Tensor) -> Result<Tensor> {
    hidden.detach().matmul(&embedding.t()?)?.to_dtype(DType::F32)
}

fn log_softmax(logits: &Tensor) -> Result<Tensor> {
    let shifted = logits.broadcast_sub(&logits.max_keepdim(D::Minus1)?)?;
    let normaliser = shifted.exp()?.sum_keepdim(D::Minus1)?.log()?;
    shifted.broadcast_sub(&normaliser)
}

/// `value`, which was computed of `x` without candle's knowledge, as a function of `x` with this gradient.
fn with_gradient(
    x: &Tensor,
    value: Tensor,
    backward: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static,
) -> Result<Tensor> {
    if !x.track_op() {
        return Ok(value);
    }
    x.apply_op1(Attached { value: Mutex::new(Some(value)), backward })
}

/// An operation whose value is there already.
struct Attached<F> {
    value: Mutex<Option<Tensor>>,
    backward: F,
}

impl<F> Attached<F> {
    const NAME: &'static str = "with_gradient";

    fn take(&self) -> Result<Tensor> {
        let value = self.value.lock().ok().and_then(|mut value| value.take());
        value.ok_or_else(|| Error::Msg("a value is attached once".into()))?.contiguous()
    }

    fn on_cpu(&self) -> Result<(CpuStorage, Shape)> {
        let value = self.take()?;
        let (storage, layout) = value.storage_and_layout();
        match &*storage {
            Storage::Cpu(storage) => Ok((storage.try_clone(layout)?, layout.shape().clone())),
            _ => Err(Error::Msg("the value is not on the host".into())),
        }
    }

    fn on_cuda(&self) -> Result<(CudaStorage, Shape)> {
        let value = self.take()?;
        let (storage, layout) = value.storage_and_layout();
        match &*storage {
            Storage::Cuda(storage) => Ok((storage.try_clone(layout)?, layout.shape().clone())),
            _ => Err(Error::Msg("the value is not on the card".into())),
        }
    }
}

impl<F: Fn(&Tensor) -> Result<Tensor>> CustomOp1 for Attached<F> {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        self.on_cpu()
    }

    fn cuda_fwd(&self, _: &CudaStorage, _: &Layout) -> Result<(CudaStorage, Shape)> {
        self.on_cuda()
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        (self.backward)(gradient).map(Some)
    }
}

impl<F: Fn(&Tensor) -> Result<(Option<Tensor>, Tensor, Tensor)>> CustomOp3 for Attached<F> {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn cpu_fwd(
        &self,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.on_cpu()
    }

    fn cuda_fwd(
        &self,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
        _: &CudaStorage,
        _: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        self.on_cuda()
    }

    fn bwd(
        &self,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        _: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let (first, second, third) = (self.backward)(gradient)?;
        Ok((first, Some(second), Some(third)))
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{Device, Var};

    use super::*;

    #[test]
    fn a_divergence_has_the_gradient_that_candle_finds() {
        let random = |rows, columns| Tensor::randn(0f32, 1.0, (rows, columns), &Device::Cpu).unwrap();
        let (embedding, before) = (random(50, 8), random(6, 8));
        let hidden = Var::from_tensor(&random(6, 8)).unwrap();
        let found = divergence(&hidden, &before, &embedding, 0.25).unwrap();
        let logs = |x: &Tensor| log_softmax(&x.matmul(&embedding.t().unwrap()).unwrap()).unwrap();
        let expected = logs(&before).exp().unwrap();
        let apart = ((logs(&before) - logs(&hidden)).unwrap() * expected).unwrap();
        let expected = (apart.sum_all().unwrap() * 0.25).unwrap();
        let value = |x: &Tensor| x.to_scalar::<f32>().unwrap();
        assert!((value(&found) - value(&expected)).abs() < 1e-4);
        let gradient = |of: &Tensor| of.backward().unwrap().remove(&hidden).unwrap();
        let difference = (gradient(&found) - gradient(&expected)).unwrap().abs().unwrap();
        let most = difference.flatten_all().unwrap().max(0).unwrap();
        assert!(value(&most) < 1e-4, "{}", value(&most));
    }
}
