use candle_core::{Module, Tensor};

use super::NAMES;
use crate::Error;
#[cfg(feature = "cuda")]
use crate::finish::{self, JoinHeads};
use crate::fused::{self, is_host_f32};
use crate::layers::{FeedForward, Linear, Loader, Projections, Tick, biased, tick};
use crate::matrix::Matrix;
use crate::norm::LayerNorm;
use crate::right_factor::AttentionPrecision;
use formats::{Activation, WhisperConfig};
use memory::processor::has_vnni;

/// Queries per product on a GPU. Bounds the attention scores to heads x 256 x
/// positions instead of heads x positions squared: for the largest model 31 MB in
/// 32-bit floats instead of 180 MB.
const QUERY_BLOCK: usize = 256;

/// Whisper's encoder, which turns windows of log-mel frames into the sequences
/// that the decoder attends to.
#[derive(Debug)]
pub struct Encoder {
    conv1: Convolution,
    conv2: Convolution,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: LayerNorm,
}

#[derive(Debug)]
struct Layer {
    norm: LayerNorm,
    attention: Projections,
    feed_forward: FeedForward,
}

impl Encoder {
    pub(super) fn load(loader: Loader, config: &WhisperConfig, on_layer: &Tick) -> Result<Self, Error> {
        let loader = Loader { is_encoder: true, ..loader };
        let width = config.dimensions.width as usize;
        let name = "model.encoder";
        let conv1 =
            Convolution::load(loader, &format!("{name}.conv1"), config, config.dimensions.mel_bins as usize)?;
        let conv2 = Convolution::load(loader, &format!("{name}.conv2"), config, width)?;
        let positions = audio_positions(loader, config)?;
        let layers = (0..config.dimensions.encoder_layers as usize)
            .map(|number| {
                tick(on_layer)?;
                let name = format!("{name}.layers.{number}");
                Ok(Layer {
                    norm: loader.norm(&format!("{name}.self_attn_layer_norm"), width)?,
                    attention: Projections::load(
                        loader,
                        &format!("{name}.self_attn"),
                        &NAMES.layer,
                        width,
                        config.dimensions.encoder_heads as usize,
                    )?,
                    feed_forward: FeedForward::load(
                        loader,
                        &name,
                        &NAMES.layer,
                        (width, config.dimensions.encoder_ffn as usize),
                        config.activation,
                    )?,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self { conv1, conv2, positions, layers, norm: loader.norm(&format!("{name}.layer_norm"), width)? })
    }

    /// Encodes `mel`, (windows, mel bins, 2 x source positions). The result is
    /// (windows, source positions, width).
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`]
    /// if the shape is wrong, or the device fails or has no memory left.
    pub fn forward(&self, mel: &Tensor, on_layer: &Tick) -> Result<Tensor, Error> {
        // Scopes free the input of each step before the next one.
        let mut x = {
            let x = {
                let mel = mel.transpose(1, 2)?.contiguous()?;
                self.conv1.forward_stride_1(&mel)?
            };
            self.conv2.forward_stride_2(&x)?
        };
        x = x.broadcast_add(&self.positions)?;
        for layer in &self.layers {
            x = layer.forward(&x)?;
            tick(on_layer)?;
        }
        Ok(self.norm.forward(&x)?)
    }
}

impl Layer {
    fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        // A separate value, so that the tensors of attention are freed before
        // the feed-forward layers, which take the most memory.
        let x = self.attend(x)?;
        self.feed_forward.forward(&x)
    }

    /// `x` plus what it attends to.
    fn attend(&self, x: &Tensor) -> Result<Tensor, Error> {
        let normed = self.norm.forward(x)?;
        if is_host_f32(x) {
            let Projections { q, k, v, out, heads, .. } = &self.attention;
            // The products of a head are small: without VNNI they take longer in 8 bits than in 32.
            let precision = match k.attention_precision() {
                AttentionPrecision::EightBits if !has_vnni() => AttentionPrecision::F32,
                precision => precision,
            };
            let (q, k, v) = (q.forward(&normed)?, k.forward(&normed)?, v.forward(&normed)?);
            drop(normed);
            let attended = fused::attention([&q, &k, &v], *heads, self.attention.scale() as f32, precision)?;
            drop((q, k, v));
            return out.added(&attended, x);
        }
        let q = self.attention.queries(&normed)?;
        let k = self.attention.keys(&normed)?.t()?;
        let v = self.attention.values(&normed)?;
        let length = q.dim(2)?;
        let blocks = (0..length).step_by(QUERY_BLOCK).map(|start| {
            let q = q.narrow(2, start, QUERY_BLOCK.min(length - start))?;
            let shares = candle_nn::ops::softmax_last_dim(&q.matmul(&k)?)?;
            candle_core::Result::Ok((start, shares.matmul(&v)?))
        });
        #[cfg(feature = "cuda")]
        if finish::serves(&[&normed], self.attention.head_width) {
            // The blocks are written over the normalised input: it has their shape, and nothing reads it any more.
            for block in blocks {
                let (start, block) = block?;
                normed.inplace_op2(&block, &JoinHeads { start })?;
            }
            return self.attention.out.added(&normed, x);
        }
        let blocks = blocks.map(|block| Ok(block?.1)).collect::<candle_core::Result<Vec<_>>>()?;
        self.attention.join(&Tensor::cat(&blocks, 2)?, x)
    }
}

/// A convolution over time of width 3 with padding 1, computed as matrix products
/// of shifted views. Unlike im2col this does not copy every neighbourhood.
#[derive(Debug)]
struct Convolution {
    /// One linear layer per tap, (output, input) each.
    taps: [Linear; 3],
    bias: Tensor,
    activation: Activation,
}

impl Convolution {
    fn load(loader: Loader, name: &str, config: &WhisperConfig, input: usize) -> Result<Self, Error> {
        let weight = loader.get(&format!("{name}.weight"), &[config.dimensions.width as usize, input, 3])?;
        let bias = loader.get(&format!("{name}.bias"), &[config.dimensions.width as usize])?;
        let tap = |number: usize| {
            Linear::new(Matrix::Dense(weight.narrow(2, number, 1)?.squeeze(2)?.contiguous()?)).of_encoder()
        };
        Ok(Self { taps: [tap(0)?, tap(1)?, tap(2)?], bias, activation: config.activation })
    }

    /// (windows, time, input) -> (windows, time, output).
    fn forward_stride_1(&self, x: &Tensor) -> Result<Tensor, Error> {
        let length = x.dim(1)?;
        let padded = x.pad_with_zeros(1, 1, 1)?;
        self.convolve(|number| padded.narrow(1, number, length)?.contiguous())
    }

    /// (windows, time, input) -> (windows, time / 2, output).
    fn forward_stride_2(&self, x: &Tensor) -> Result<Tensor, Error> {
        let (windows, length, input) = x.dims3()?;
        let half = length / 2;
        // Pair i holds samples 2i and 2i + 1 of the padded signal.
        let pairs = x.pad_with_zeros(1, 1, 1)?.reshape((windows, half + 1, 2, input))?;
        self.convolve(|number| {
            pairs.narrow(1, number / 2, half)?.narrow(2, number % 2, 1)?.squeeze(2)?.contiguous()
        })
    }

    /// The sum of what the taps make of their views.
    fn convolve(&self, view: impl Fn(usize) -> candle_core::Result<Tensor>) -> Result<Tensor, Error> {
        let [first, second, third] = &self.taps;
        let sum = first.forward(&view(0)?)?;
        let sum = second.added(&view(1)?, &sum)?;
        let sum = third.added(&view(2)?, &sum)?;
        biased(sum, &self.bias, Some(self.activation))
    }
}

/// (source positions, width).
pub(crate) fn audio_positions(loader: Loader, config: &WhisperConfig) -> Result<Tensor, Error> {
    const NAME: &str = "model.encoder.embed_positions.weight";
    let (length, width) = (config.dimensions.audio_context as usize, config.dimensions.width as usize);
    match loader.weights.contains(NAME) {
        true => loader.get(NAME, &[length, width]),
        // Some conversions omit them, as they follow from a formula.
        false => sinusoids(length, width, loader),
    }
}

/// Sinusoidal position embeddings as in openai/whisper's `model.py`: sines, then
/// cosines, of wavelengths from 2 pi to 10,000 x 2 pi.
fn sinusoids(length: usize, width: usize, loader: Loader) -> Result<Tensor, Error> {
    let half = width / 2;
    let step = 10_000f64.ln() / (half.max(2) - 1) as f64;
    let mut data = vec![0f32; length * width];
    for (position, row) in data.chunks_mut(width).enumerate() {
        for i in 0..half {
            let angle = position as f64 * (-step * i as f64).exp();
            row[i] = angle.sin() as f32;
            row[half + i] = angle.cos() as f32;
        }
    }
    Ok(Tensor::from_vec(data, (length, width), &candle_core::Device::Cpu)?
        .to_dtype(loader.dtype)?
        .to_device(loader.device)?)
}
