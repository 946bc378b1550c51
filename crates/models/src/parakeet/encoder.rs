use candle_core::{D, Device, Module, Tensor};
use formats::ParakeetConfig;

use super::attention::Attention;
use super::convolution::Convolution;
use super::subsampling::Subsampling;
use crate::Error;
use crate::fused::{Silu, is_host_f32};
use crate::norm::LayerNorm;
use crate::whisper::layers::{Linear, Loader, Tick, tick};

/// The encoder, which turns the spectrogram of a window into frames of 80 ms.
#[derive(Debug)]
pub struct Encoder {
    subsampling: Subsampling,
    layers: Vec<Layer>,
    /// By which frames are multiplied before the layers.
    scale: Option<f64>,
    width: usize,
    bands: usize,
}

/// Half a feed-forward part, attention, a convolution, the other half.
#[derive(Debug)]
struct Layer {
    first: FeedForward,
    attention_norm: LayerNorm,
    attention: Attention,
    convolution_norm: LayerNorm,
    convolution: Convolution,
    second: FeedForward,
    norm: LayerNorm,
}

#[derive(Debug)]
struct FeedForward {
    norm: LayerNorm,
    up: Linear,
    down: Linear,
}

impl Encoder {
    pub(super) fn load(loader: Loader, config: &ParakeetConfig, on_layer: &Tick) -> Result<Self, Error> {
        let loader = Loader { is_encoder: true, ..loader };
        let of = &config.dimensions;
        let (width, inner) = (of.width as usize, of.ffn as usize);
        let subsampling = Subsampling::load(loader, of)?;
        let layer = |number: u64| -> Result<Layer, Error> {
            tick(on_layer)?;
            let name = format!("encoder.layers.{number}");
            let norm = |part: &str| loader.norm(&format!("{name}.{part}"), width);
            let feed_forward = |part: &str| -> Result<FeedForward, Error> {
                let linear = |number, input, output| {
                    loader.linear(&format!("{name}.{part}.linear{number}"), input, output, of.attention_bias)
                };
                Ok(FeedForward {
                    norm: norm(&format!("norm_{part}"))?,
                    up: linear(1, width, inner)?,
                    down: linear(2, inner, width)?,
                })
            };
            Ok(Layer {
                first: feed_forward("feed_forward1")?,
                attention_norm: norm("norm_self_att")?,
                attention: Attention::load(loader, &format!("{name}.self_attn"), of)?,
                convolution_norm: norm("norm_conv")?,
                convolution: Convolution::load(loader, &format!("{name}.conv"), of)?,
                second: feed_forward("feed_forward2")?,
                norm: norm("norm_out")?,
            })
        };
        Ok(Self {
            subsampling,
            layers: (0..of.layers).map(layer).collect::<Result<_, _>>()?,
            scale: config.scale_input.then(|| (width as f64).sqrt()),
            width,
            bands: of.mel_bins as usize,
        })
    }

    /// Encodes the spectrogram of one window, frame after frame of 10 ms. The result is
    /// (frames, width), a frame for each eight of them.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`] if there is no
    /// frame, or the device fails or has no memory left.
    pub fn forward(&self, spectrogram: &[f32], on_layer: &Tick) -> Result<Tensor, Error> {
        let mut x = self.subsample(spectrogram)?;
        tick(on_layer)?;
        if let Some(scale) = self.scale {
            x = (x * scale)?;
        }
        let positions = positions(x.dim(0)?, self.width)?.to_dtype(x.dtype())?.to_device(x.device())?;
        for layer in &self.layers {
            x = layer.forward(x, &positions)?;
            tick(on_layer)?;
        }
        Ok(x)
    }

    /// What the convolutions before the layers make of a spectrogram, (frames, width).
    ///
    /// # Errors
    /// As [`Self::forward`].
    pub fn subsample(&self, spectrogram: &[f32]) -> Result<Tensor, Error> {
        let rows = spectrogram.len() / self.bands;
        if rows == 0 || !spectrogram.len().is_multiple_of(self.bands) {
            let count = spectrogram.len();
            return Err(candle_core::Error::Msg(format!("{count} numbers are no frames to encode")).into());
        }
        self.subsampling.forward(spectrogram, rows)
    }
}

impl Layer {
    fn forward(&self, x: Tensor, positions: &Tensor) -> Result<Tensor, Error> {
        let x = self.first.forward(&x)?;
        let x = self.attention.forward(&x, &self.attention_norm.forward(&x)?, positions)?;
        let x = self.convolution.forward(&x, &self.convolution_norm.forward(&x)?)?;
        Ok(self.norm.forward(&self.second.forward(&x)?)?)
    }
}

impl FeedForward {
    /// `x` and half of the result.
    fn forward(&self, x: &Tensor) -> Result<Tensor, Error> {
        let hidden = silu(self.up.forward(&self.norm.forward(x)?)?)?;
        self.down.added_in_part(&hidden, 0.5, x)
    }
}

/// x times its sigmoid; `x` may be overwritten and must not be shared.
pub(super) fn silu(x: Tensor) -> Result<Tensor, Error> {
    if is_host_f32(&x) {
        x.inplace_op1(&Silu)?;
        return Ok(x);
    }
    Ok(x.silu()?)
}

/// Sines and cosines of the distances from `length` - 1 down to 1 - `length`, by turns, (2 length - 1, width).
fn positions(length: usize, width: usize) -> Result<Tensor, Error> {
    let frequencies: Vec<f32> =
        (0..width).step_by(2).map(|at| 10_000f64.powf(-(at as f64) / width as f64) as f32).collect();
    let last = length as i64 - 1;
    let values: Vec<f32> = (-last..=last)
        .rev()
        .flat_map(|distance| {
            frequencies.iter().flat_map(move |frequency| {
                let (sin, cos) = (distance as f32 * frequency).sin_cos();
                [sin, cos]
            })
        })
        .collect();
    let rows = values.len() / width;
    let positions = Tensor::from_vec(values, (rows, width), &Device::Cpu)?;
    debug_assert_eq!(positions.dim(D::Minus1)?, width);
    Ok(positions)
}
