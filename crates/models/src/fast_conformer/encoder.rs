use candle_core::{D, Device, Module, Tensor};
use memory::FastConformerDimensions;

use super::attention::{Attention, MOST_FRAMES};
use super::convolution::Convolution;
use super::subsampling::Subsampling;
use crate::Error;
use crate::fused::{Silu, is_host_f32};
use crate::layers::{Linear, Loader, Tick, tick};
use crate::norm::LayerNorm;

/// Windows that are encoded together on a card: their frames one below the other, those of each window as many as the
/// longest one has.
#[derive(Debug)]
pub(super) struct Together {
    pub windows: usize,
    /// Rows of each.
    pub length: usize,
    /// `None` where no row is padding.
    pub padding: Option<Padding>,
}

/// What keeps rows of padding from being heard.
#[derive(Debug)]
pub(super) struct Padding {
    /// 1 for a frame, 0 for padding: (windows x length, 1).
    pub frames: Tensor,
    /// 0 for a frame, minus infinity for padding: (1, windows, 1, length).
    pub keys: Tensor,
}

impl Together {
    /// One window of so many frames.
    pub fn alone(length: usize) -> Self {
        Self { windows: 1, length, padding: None }
    }

    /// Windows of so many frames, in the order of the result, with `gap` rows of padding at least behind each;
    /// no padding where there is one window.
    pub fn of(lengths: &[usize], gap: usize, like: &Tensor) -> Result<Self, Error> {
        let longest = lengths.iter().copied().max().unwrap_or_default();
        if lengths.len() == 1 {
            return Ok(Self::alone(longest));
        }
        let (windows, length) = (lengths.len(), longest + gap);
        let rows = |frame: f32, padding: f32| -> Vec<f32> {
            let of_window = |of: &usize| {
                let of = *of;
                (0..length).map(move |row| if row < of { frame } else { padding })
            };
            lengths.iter().flat_map(of_window).collect()
        };
        let tensor = |values: Vec<f32>, shape: &[usize]| {
            Tensor::from_vec(values, shape, &Device::Cpu)?.to_dtype(like.dtype())?.to_device(like.device())
        };
        let padding = Padding {
            frames: tensor(rows(1.0, 0.0), &[windows * length, 1])?,
            keys: tensor(rows(0.0, f32::NEG_INFINITY), &[1, windows, 1, length])?,
        };
        Ok(Self { windows, length, padding: Some(padding) })
    }
}

/// The encoder, which turns the spectrogram of a window into frames of 80 ms.
#[derive(Debug)]
pub struct Encoder {
    subsampling: Subsampling,
    layers: Vec<Layer>,
    /// By which frames are multiplied before the layers.
    scale: Option<f64>,
    /// Frames that a layer's convolution reaches over.
    kernel: usize,
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
    /// `scale_input`: frames are multiplied by the root of their width before the layers.
    pub(crate) fn load(
        loader: Loader,
        of: &FastConformerDimensions,
        scale_input: bool,
        on_layer: &Tick,
    ) -> Result<Self, Error> {
        let loader = Loader { is_encoder: true, ..loader };
        let (width, inner) = (of.width as usize, of.ffn as usize);
        let subsampling = Subsampling::load(loader, of)?;
        let positions = positions(MOST_FRAMES, width)?.to_dtype(loader.dtype)?.to_device(loader.device)?;
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
                attention: Attention::load(loader, &format!("{name}.self_attn"), of, &positions)?,
                convolution_norm: norm("norm_conv")?,
                convolution: Convolution::load(loader, &format!("{name}.conv"), of)?,
                second: feed_forward("feed_forward2")?,
                norm: norm("norm_out")?,
            })
        };
        Ok(Self {
            subsampling,
            layers: (0..of.layers).map(layer).collect::<Result<_, _>>()?,
            scale: scale_input.then(|| (width as f64).sqrt()),
            kernel: of.kernel as usize,
            bands: of.mel_bins as usize,
        })
    }

    /// Encodes the spectrogram of one window, frame after frame of 10 ms. The result is
    /// (frames, width), a frame for each eight of them.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`] if there is no
    /// frame or there are more than [`memory::FastConformerDimensions::MOST_FRAMES`], or the device fails or has no memory left.
    pub fn forward(&self, spectrogram: &[f32], on_layer: &Tick) -> Result<Tensor, Error> {
        let x = self.subsample(spectrogram)?;
        tick(on_layer)?;
        let together = Together::alone(x.dim(0)?);
        self.layers(x, &together, on_layer)
    }

    /// As [`forward`](Self::forward) for several windows, each as if it were alone. A card encodes them together, since
    /// one window leaves most of it idle; a processor takes one after the other, since one keeps all its cores busy.
    ///
    /// # Errors
    /// As [`forward`](Self::forward). Where they are encoded together, the padding behind the longest window counts among
    /// its frames.
    pub fn forward_all(&self, spectrograms: &[Vec<f32>], on_layer: &Tick) -> Result<Vec<Tensor>, Error> {
        if self.is_on_host() || spectrograms.len() < 2 {
            return spectrograms.iter().map(|spectrogram| self.forward(spectrogram, on_layer)).collect();
        }
        let mut windows = Vec::with_capacity(spectrograms.len());
        for spectrogram in spectrograms {
            windows.push(self.subsample(spectrogram)?);
            tick(on_layer)?;
        }
        let lengths = windows.iter().map(|window| window.dim(0)).collect::<Result<Vec<_>, _>>()?;
        let together = Together::of(&lengths, self.kernel / 2, &windows[0])?;
        let padded = windows.iter().zip(&lengths);
        let padded = padded.map(|(window, length)| window.pad_with_zeros(0, 0, together.length - length));
        let x = Tensor::cat(&padded.collect::<Result<Vec<_>, _>>()?, 0)?;
        drop(windows);
        let x = self.layers(x, &together, on_layer)?;
        // Each in memory of its own: a window that is copied to the host would take all others along.
        let of_window = |(number, length): (usize, usize)| {
            x.narrow(0, number * together.length, length)?.force_contiguous()
        };
        Ok(lengths.into_iter().enumerate().map(of_window).collect::<Result<_, _>>()?)
    }

    fn layers(&self, mut x: Tensor, together: &Together, on_layer: &Tick) -> Result<Tensor, Error> {
        if let Some(scale) = self.scale {
            x = (x * scale)?;
        }
        if together.length > MOST_FRAMES {
            let length = together.length;
            let reason = format!("a window of {length} frames, more than {MOST_FRAMES}");
            return Err(candle_core::Error::Msg(reason).into());
        }
        for layer in &self.layers {
            x = layer.forward(x, together)?;
            tick(on_layer)?;
        }
        Ok(x)
    }

    /// Whether it computes on the host.
    pub fn is_on_host(&self) -> bool {
        self.subsampling.is_on_host()
    }

    /// Whether weights are converted as they are used: each window that is encoded then has a matrix in 32 bits beside it.
    pub fn is_compressed(&self) -> bool {
        self.layers.iter().any(|layer| layer.first.up.is_compressed())
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
    fn forward(&self, x: Tensor, together: &Together) -> Result<Tensor, Error> {
        let x = self.first.forward(&x)?;
        let x = self.attention.forward(&x, &self.attention_norm.forward(&x)?, together)?;
        let x = self.convolution.forward(&x, &self.convolution_norm.forward(&x)?, together)?;
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
