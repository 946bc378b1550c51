//! What networks are built of, whatever their family: linear layers, attention's projections, feed-forward parts, and
//! how their tensors are loaded.

use std::cell::RefCell;
use std::collections::HashMap;

use candle_core::{D, DType, Device, Tensor};
use memory::Precision;

#[cfg(feature = "cuda")]
use crate::finish::{self, Finish, SplitHeads};
use crate::fused::{AddBias, AddTo, is_host_f32};
use crate::matrix::Matrix;
use crate::norm::LayerNorm;
use crate::right_factor::AttentionPrecision;
use crate::{Error, Weights};
use formats::Activation;

/// A callback after every layer, which returns whether to continue. It makes a
/// long computation cancellable and shows a watchdog that it progresses.
pub type Tick<'a> = dyn Fn() -> bool + 'a;

/// Calls `tick`; [`Error::Interrupted`] if it returns `false`.
pub(crate) fn tick(tick: &Tick) -> Result<(), Error> {
    if tick() { Ok(()) } else { Err(Error::Interrupted) }
}

/// Loads tensors and counts their bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loader<'a> {
    pub weights: &'a Weights,
    /// The precision of matrices. All other tensors are held in `dtype`.
    pub precision: Precision,
    pub dtype: DType,
    /// Whether matrices are an encoder's, which are multiplied with many rows at once.
    pub is_encoder: bool,
    pub device: &'a Device,
    pub loaded: &'a LoadedBytes,
    /// What stands before all names in the file.
    pub prefix: &'a str,
}

/// Counts the bytes of loaded weights by precision.
#[derive(Debug, Default)]
pub(crate) struct LoadedBytes {
    matrices: RefCell<HashMap<Precision, u64>>,
    others: RefCell<u64>,
}

impl LoadedBytes {
    /// The bytes of all weights.
    pub fn bytes(&self) -> u64 {
        self.matrices.borrow().values().sum::<u64>() + *self.others.borrow()
    }

    /// The precision that takes the most bytes among the matrices.
    pub fn precision(&self) -> Option<Precision> {
        let matrices = self.matrices.borrow();
        matrices.iter().max_by_key(|(_, bytes)| **bytes).map(|(precision, _)| *precision)
    }
}

impl Loader<'_> {
    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Whether there is a tensor of that name.
    pub fn has(&self, name: &str) -> bool {
        self.weights.contains(&self.full(name))
    }

    /// Reads a tensor without counting its bytes among the weights, for one that is only computed with.
    pub fn read(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        self.weights.get(&self.full(name), shape, self.dtype, self.device)
    }

    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let tensor = self.read(name, shape)?;
        *self.loaded.others.borrow_mut() += (tensor.elem_count() * self.dtype.size_in_bytes()) as u64;
        Ok(tensor)
    }

    /// Loads a matrix of (output, input).
    pub fn matrix(&self, name: &str, output: usize, input: usize) -> Result<Matrix, Error> {
        let load = if self.is_encoder { Weights::encoder_matrix } else { Weights::matrix };
        let name = self.full(name);
        let matrix = load(self.weights, &name, (output, input), self.precision, self.dtype, self.device)?;
        *self.loaded.matrices.borrow_mut().entry(matrix.format()).or_default() += matrix.bytes();
        Ok(matrix)
    }

    pub fn linear(&self, name: &str, input: usize, output: usize, bias: bool) -> Result<Linear, Error> {
        let weight = self.matrix(&format!("{name}.weight"), output, input)?;
        let bias = bias.then(|| self.get(&format!("{name}.bias"), &[output])).transpose()?;
        Ok(Linear { weight, bias })
    }

    pub fn norm(&self, name: &str, width: usize) -> Result<LayerNorm, Error> {
        /// As in torch.nn.LayerNorm, which Whisper was trained with.
        const EPSILON: f64 = 1e-5;
        let weight = self.get(&format!("{name}.weight"), &[width])?;
        let bias = self.get(&format!("{name}.bias"), &[width])?;
        Ok(LayerNorm::new(weight, bias, EPSILON))
    }
}

/// `y = x W' + b`, `W` stored as (output, input).
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    weight: Matrix,
    bias: Option<Tensor>,
}

impl Linear {
    /// Without a bias.
    pub fn new(weight: Matrix) -> Self {
        Self { weight, bias: None }
    }

    /// The same layer with a bias.
    pub fn with_bias(self, bias: Tensor) -> Self {
        Self { bias: Some(bias), ..self }
    }

    /// The same layer as part of an encoder.
    pub fn of_encoder(self) -> Result<Self, Error> {
        Ok(Self { weight: self.weight.for_encoder()?, ..self })
    }

    /// The precision of attention to this layer's results.
    pub fn attention_precision(&self) -> AttentionPrecision {
        self.weight.attention_precision()
    }

    /// Whether its weights are converted as they are used.
    pub fn is_compressed(&self) -> bool {
        self.weight.is_compressed()
    }

    /// `x` is (..., input), contiguous; the result is (..., output).
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.activated(x, None)
    }

    /// As [`forward`](Self::forward), followed by an activation.
    pub fn activated(&self, x: &Tensor, activation: Option<Activation>) -> Result<Tensor, Error> {
        let y = self.product(x)?;
        match &self.bias {
            Some(bias) => biased(y, bias, activation),
            None => activated(y, activation),
        }
    }

    /// As [`forward`](Self::forward), multiplied by a factor.
    pub fn scaled(&self, x: &Tensor, scale: f64) -> Result<Tensor, Error> {
        #[cfg(feature = "cuda")]
        if let Some(bias) = &self.bias {
            let y = self.product(x)?;
            if finish::serves(&[&y, bias], bias.elem_count()) {
                y.inplace_op2(bias, &Finish { scale, activation: None })?;
                return Ok(y);
            }
            return Ok((biased(y, bias, None)? * scale)?);
        }
        Ok((self.forward(x)? * scale)?)
    }

    /// `other` plus what [`forward`](Self::forward) returns, which has the same shape.
    pub fn added(&self, x: &Tensor, other: &Tensor) -> Result<Tensor, Error> {
        self.added_in_part(x, 1.0, other)
    }

    /// As [`added`](Self::added), what is added being multiplied by `factor` first.
    pub fn added_in_part(&self, x: &Tensor, factor: f64, other: &Tensor) -> Result<Tensor, Error> {
        #[cfg(feature = "cuda")]
        if let Some(bias) = &self.bias {
            let y = self.product(x)?;
            if finish::serves(&[&y, bias, other], bias.elem_count()) {
                y.inplace_op3(bias, other, &Finish { scale: factor, activation: None })?;
                return Ok(y);
            }
            return sum(other, factor, biased(y, bias, None)?);
        }
        sum(other, factor, self.forward(x)?)
    }

    /// (rows, length, input) -> (rows, heads, length, output / heads), multiplied by a factor.
    fn split(&self, x: &Tensor, heads: usize, scale: f64) -> Result<Tensor, Error> {
        let (rows, length, _) = x.dims3()?;
        let head_width = self.weight.output()? / heads;
        #[cfg(feature = "cuda")]
        if length > 1 {
            let y = self.product(x)?;
            // The operation takes two tensors; without a bias it does not read the second.
            let bias = self.bias.as_ref().unwrap_or(&y);
            let is_plain = self.bias.is_none() && scale != 1.0;
            if !is_plain && finish::serves(&[&y, bias], head_width) {
                let split = SplitHeads { heads, scale, has_bias: self.bias.is_some() };
                return Ok(y.apply_op2_no_bwd(bias, &split)?);
            }
        }
        let y = if scale == 1.0 { self.forward(x)? } else { self.scaled(x, scale)? };
        Ok(y.reshape((rows, length, heads, head_width))?.transpose(1, 2)?.contiguous()?)
    }

    /// `x W'`, (..., output).
    fn product(&self, x: &Tensor) -> Result<Tensor, Error> {
        let input = x.dim(D::Minus1)?;
        let output = self.weight.output()?;
        let rows = x.elem_count() / input;
        let mut shape = x.dims().to_vec();
        // One product of two matrices is much faster than one per row of a batch.
        let x = x.reshape((rows, input))?;
        let y = self.weight.product(&x)?;
        if let Some(last) = shape.last_mut() {
            *last = output;
        }
        Ok(y.reshape(shape)?)
    }
}

/// What a family of models calls the parts of its layers in its files, and whether keys have a bias.
#[derive(Debug)]
pub(crate) struct LayerNames {
    /// The norms before attention to tokens, to the sound, and before the feed-forward part.
    pub self_norm: &'static str,
    pub cross_norm: &'static str,
    pub feed_forward_norm: &'static str,
    /// Attention's output projection.
    pub out: &'static str,
    /// The linear layers of the feed-forward part.
    pub up: &'static str,
    pub down: &'static str,
    pub key_bias: bool,
}

/// The four projections of an attention layer.
#[derive(Debug, Clone)]
pub(crate) struct Projections {
    pub q: Linear,
    pub k: Linear,
    pub v: Linear,
    pub out: Linear,
    pub heads: usize,
    pub head_width: usize,
}

impl Projections {
    pub fn load(
        loader: Loader,
        name: &str,
        names: &LayerNames,
        width: usize,
        heads: usize,
    ) -> Result<Self, Error> {
        let linear = |part: &str, bias| loader.linear(&format!("{name}.{part}"), width, width, bias);
        Ok(Self {
            q: linear("q_proj", true)?,
            k: linear("k_proj", names.key_bias)?,
            v: linear("v_proj", true)?,
            out: linear(names.out, true)?,
            heads,
            head_width: width / heads,
        })
    }

    /// With keys and values of an encoder's output, which has many rows.
    pub fn of_encoded(self) -> Result<Self, Error> {
        Ok(Self { k: self.k.of_encoder()?, v: self.v.of_encoder()?, ..self })
    }

    /// The keys of `x`, (rows, heads, length, head width).
    pub fn keys(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.k.split(x, self.heads, 1.0)
    }

    /// The values of `x`, (rows, heads, length, head width).
    pub fn values(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.v.split(x, self.heads, 1.0)
    }

    /// The factor of the scores: 1 / sqrt(head width).
    pub fn scale(&self) -> f64 {
        (self.head_width as f64).powf(-0.5)
    }

    /// The queries multiplied by [`scale`](Self::scale), (rows, heads, length, head
    /// width).
    pub fn queries(&self, x: &Tensor) -> Result<Tensor, Error> {
        self.q.split(x, self.heads, self.scale())
    }

    /// Joins the heads, applies the output projection and adds `residual`: (rows, heads, length, head width) ->
    /// (rows, length, width).
    pub fn join(&self, x: &Tensor, residual: &Tensor) -> Result<Tensor, Error> {
        let (rows, _, length, _) = x.dims4()?;
        let joined = x.transpose(1, 2)?.reshape((rows, length, self.heads * self.head_width))?;
        self.out.added(&joined, residual)
    }
}

/// The feed-forward part of a block: a norm and two linear layers.
#[derive(Debug, Clone)]
pub(crate) struct FeedForward {
    norm: LayerNorm,
    up: Linear,
    down: Linear,
    activation: Activation,
}

impl FeedForward {
    pub fn load(
        loader: Loader,
        name: &str,
        names: &LayerNames,
        (width, hidden): (usize, usize),
        activation: Activation,
    ) -> Result<Self, Error> {
        let linear =
            |part: &str, input, output| loader.linear(&format!("{name}.{part}"), input, output, true);
        Ok(Self {
            norm: loader.norm(&format!("{name}.{}", names.feed_forward_norm), width)?,
            up: linear(names.up, width, hidden)?,
            down: linear(names.down, hidden, width)?,
            activation,
        })
    }

    /// Returns `x` plus the result.
    pub fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let y = self.up.activated(&candle_core::Module::forward(&self.norm, x)?, Some(self.activation))?;
        self.down.added(&y, x)
    }
}

/// Adds a bias to `y` and applies an activation. `y` may be overwritten and must
/// not be shared.
pub(crate) fn biased(y: Tensor, bias: &Tensor, activation: Option<Activation>) -> Result<Tensor, Error> {
    if is_host_f32(&y) {
        let gelu = activation == Some(Activation::Gelu);
        y.inplace_op2(bias, &AddBias { gelu })?;
        return activated(y, activation.filter(|_| !gelu));
    }
    #[cfg(feature = "cuda")]
    if finish::serves(&[&y, bias], bias.elem_count()) {
        y.inplace_op2(bias, &Finish { scale: 1.0, activation })?;
        return Ok(y);
    }
    activated(y.broadcast_add(bias)?, activation)
}

/// `x + factor y`; `y` may be overwritten and must not be shared.
fn sum(x: &Tensor, factor: f64, y: Tensor) -> Result<Tensor, Error> {
    if is_host_f32(&y) && x.is_contiguous() {
        y.inplace_op2(x, &AddTo { factor: factor as f32 })?;
        return Ok(y);
    }
    Ok(if factor == 1.0 { (x + y)? } else { (x + (y * factor)?)? })
}

fn activated(x: Tensor, activation: Option<Activation>) -> Result<Tensor, Error> {
    Ok(match activation {
        Some(Activation::Gelu) => x.gelu_erf()?,
        Some(Activation::GeluNew) => x.gelu()?,
        Some(Activation::Relu) => x.relu()?,
        None => x,
    })
}

/// The precision that stands in for `precision` on a device.
pub(crate) fn computed_in(device: &Device, precision: Precision) -> Result<Precision, Error> {
    #[cfg(feature = "cuda")]
    if precision == Precision::Bf16 && device.is_cuda() && !crate::card::has_bf16(device)? {
        return Ok(Precision::F16);
    }
    let _ = device;
    Ok(precision)
}

/// The type of numbers that are held in a precision without blocks; 32 bits for one with blocks.
pub(crate) fn dense_dtype(precision: Precision) -> DType {
    match precision {
        Precision::F16 => DType::F16,
        Precision::Bf16 => DType::BF16,
        _ => DType::F32,
    }
}

/// The type of activations.
pub(crate) fn dtype(device: &Device, precision: Precision) -> DType {
    match precision {
        _ if device.is_cpu() => DType::F32,
        Precision::F32 => DType::F32,
        Precision::Bf16 => DType::BF16,
        _ => DType::F16,
    }
}
