use std::path::Path;

use candle_core::{D, Device, Tensor};

use super::lstm::Lstm;
use super::tensors::NamedTensors;
use crate::Error;

/// Finds who speaks when in [`PyanNet::WINDOW`] samples: SincNet (Ravanelli and
/// Bengio, arXiv:1808.00158), a bidirectional LSTM and a powerset head (Plaquet
/// and Bredin, arXiv:2310.13025). Layout and names of tensors are those of
/// pyannote.audio's `PyanNet`; all dimensions come from the weights.
#[derive(Debug)]
pub struct PyanNet {
    /// Scale and offset of the normalised waveform.
    wave: (f64, f64),
    /// The sinc filters, (251, 80).
    filters: Tensor,
    /// Weights, (kernel x input, output), and bias of the convolutions.
    convolutions: Vec<(Tensor, Tensor)>,
    /// Scale and offset, (channels, 1), after each block.
    norms: Vec<(Tensor, Tensor)>,
    lstm: Lstm,
    /// Weights, (input, output), and bias; the last is the head.
    linear: Vec<(Tensor, Tensor)>,
    device: Device,
}

const SAMPLE_RATE: f64 = 16_000.0;
/// Samples between two outputs of the sinc filters.
const SINC_STRIDE: usize = 10;
const SINC_KERNEL: usize = 251;
/// Taps of the other convolutions.
const KERNEL: usize = 5;
const MIN_LOW_HERTZ: f64 = 50.0;
const MIN_BAND_HERTZ: f64 = 50.0;
const EPSILON: f64 = 1e-5;
const LEAK: f64 = 0.01;

impl PyanNet {
    /// Samples of an input: ten seconds at 16 kHz.
    pub const WINDOW: usize = 160_000;
    /// Frames of an output.
    pub const FRAMES: usize = 589;
    /// Samples from one frame to the next.
    pub const FRAME_STEP: usize = 270;
    /// Samples that one frame depends on, from 270 i on.
    pub const FRAME_WIDTH: usize = 991;
    /// Speakers that are told apart within one input.
    pub const SPEAKERS: usize = 3;
    /// Sets of speakers: nobody, one, two at once.
    pub const CLASSES: [[bool; Self::SPEAKERS]; 7] = [
        [false, false, false],
        [true, false, false],
        [false, true, false],
        [false, false, true],
        [true, true, false],
        [true, false, true],
        [false, true, true],
    ];

    /// The network that is in the program: crates/models/bundled/starter-segmentation.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device has no room for it.
    pub fn bundled(device: &Device) -> Result<Self, Error> {
        Self::from_safetensors(include_bytes!("../../bundled/starter-segmentation/model.safetensors"), device)
    }

    /// Reads a safetensors file that is in memory.
    ///
    /// # Errors
    /// [`Error::Candle`] if it is damaged, if a tensor is missing or has
    /// another shape, or if the device has no room for it.
    pub fn from_safetensors(file: &[u8], device: &Device) -> Result<Self, Error> {
        Self::read(&NamedTensors::read(file, device)?)
    }

    /// Opens a safetensors file or a checkpoint that pyannote saved.
    ///
    /// # Errors
    /// [`Error::Files`] if it can't be read or is damaged, [`Error::Candle`] if the
    /// device has no room for it.
    pub fn open(path: &Path, device: &Device) -> Result<Self, Error> {
        Self::read(&NamedTensors::open(path, device)?)
    }

    fn read(tensors: &NamedTensors) -> Result<Self, Error> {
        let scalar = |name: &str| -> Result<f64, Error> {
            Ok(f64::from(tensors.get(name, &[1])?.squeeze(0)?.to_scalar::<f32>()?))
        };
        let mut convolutions = Vec::new();
        for number in [1, 2] {
            let weights = tensors.any(&format!("sincnet.conv1d.{number}.weight"))?;
            let (output, input, _) = weights.dims3()?;
            let name = format!("sincnet.conv1d.{number}.weight");
            let weights = tensors.get(&name, &[output, input, KERNEL])?;
            // (output, input, kernel) -> (kernel x input, output)
            let weights = weights.permute((2, 1, 0))?.contiguous()?.reshape((KERNEL * input, output))?;
            convolutions.push((weights, tensors.get(&format!("sincnet.conv1d.{number}.bias"), &[output])?));
        }
        let mut norms = Vec::new();
        for number in 0..3 {
            let of = |part: &str| -> Result<Tensor, Error> {
                Ok(tensors.any(&format!("sincnet.norm1d.{number}.{part}"))?.unsqueeze(0)?)
            };
            norms.push((of("weight")?, of("bias")?));
        }
        let mut linear = Vec::new();
        for name in ["linear.0", "linear.1", "classifier"] {
            let weights = tensors.any(&format!("{name}.weight"))?.t()?.contiguous()?;
            linear.push((weights, tensors.any(&format!("{name}.bias"))?));
        }
        let classes = linear[2].1.dim(0)?;
        if classes != Self::CLASSES.len() {
            let text = format!("the segmentation has {classes} classes; 7 are supported");
            return Err(tensors.invalid(text));
        }
        Ok(Self {
            wave: (scalar("sincnet.wav_norm1d.weight")?, scalar("sincnet.wav_norm1d.bias")?),
            filters: sinc_filters(tensors)?,
            convolutions,
            norms,
            lstm: Lstm::read(tensors)?,
            linear,
            device: tensors.device().clone(),
        })
    }

    /// Logarithms of the probabilities of [`PyanNet::CLASSES`], (windows, 589, 7).
    ///
    /// # Errors
    /// [`Error::Candle`] if a window has not [`PyanNet::WINDOW`] samples, or the
    /// device has no room for the intermediate results.
    pub fn forward(&self, windows: &[&[f32]]) -> Result<Tensor, Error> {
        let mut features = Vec::with_capacity(windows.len());
        for window in windows {
            features.push(self.sincnet(window)?);
        }
        // The recurrence goes step by step: (frames, windows, 60).
        let x = Tensor::stack(&features, 1)?;
        let mut x = self.lstm.forward(&x)?;
        let (frames, count, width) = x.dims3()?;
        x = x.reshape((frames * count, width))?;
        for (number, (weights, bias)) in self.linear.iter().enumerate() {
            x = x.matmul(weights)?.broadcast_add(bias)?;
            if number + 1 < self.linear.len() {
                x = leaky(&x)?;
            }
        }
        let x = candle_nn::ops::log_softmax(&x, D::Minus1)?;
        Ok(x.reshape((frames, count, Self::CLASSES.len()))?.transpose(0, 1)?.contiguous()?)
    }

    /// The features of one window, (589, 60).
    fn sincnet(&self, window: &[f32]) -> Result<Tensor, Error> {
        if window.len() != Self::WINDOW {
            let text = format!("a window of {} samples, not {}", window.len(), Self::WINDOW);
            return Err(candle_core::Error::Msg(text).into());
        }
        let count = window.len() as f64;
        let mean = window.iter().map(|x| f64::from(*x)).sum::<f64>() / count;
        let variance = window.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / count;
        let scale = self.wave.0 / (variance + EPSILON).sqrt();
        let normalised = window.iter().map(|x| ((f64::from(*x) - mean) * scale + self.wave.1) as f32);
        let normalised: Vec<f32> = normalised.collect();
        let outputs = (Self::WINDOW - SINC_KERNEL) / SINC_STRIDE + 1;
        let mut rows = Vec::with_capacity(outputs * SINC_KERNEL);
        for output in 0..outputs {
            rows.extend_from_slice(&normalised[output * SINC_STRIDE..][..SINC_KERNEL]);
        }
        let x = Tensor::from_vec(rows, (outputs, SINC_KERNEL), &self.device)?;
        let mut x = pooled(&x.matmul(&self.filters)?.abs()?)?;
        x = leaky(&normed(&x, &self.norms[0])?)?;
        for ((weights, bias), norm) in self.convolutions.iter().zip(&self.norms[1..]) {
            let frames = x.dim(0)? + 1 - KERNEL;
            let taps: Vec<Tensor> =
                (0..KERNEL).map(|tap| x.narrow(0, tap, frames)).collect::<Result<_, _>>()?;
            let convolved = Tensor::cat(&taps, 1)?.matmul(weights)?.broadcast_add(bias)?;
            x = leaky(&normed(&pooled(&convolved)?, norm)?)?;
        }
        Ok(x)
    }
}

/// The largest of each three rows.
fn pooled(x: &Tensor) -> Result<Tensor, Error> {
    let (rows, columns) = x.dims2()?;
    let x = x.narrow(0, 0, rows / 3 * 3)?.reshape((rows / 3, 3, columns))?;
    let row = |number: usize| x.narrow(1, number, 1)?.squeeze(1)?.contiguous();
    Ok(row(0)?.maximum(&row(1)?)?.maximum(&row(2)?)?)
}

/// Each column with mean 0 and variance 1, then scaled and shifted.
fn normed(x: &Tensor, (scale, offset): &(Tensor, Tensor)) -> Result<Tensor, Error> {
    let x = x.broadcast_sub(&x.mean_keepdim(0)?)?;
    let variance = x.sqr()?.mean_keepdim(0)?;
    let scale = scale.broadcast_div(&(variance + EPSILON)?.sqrt()?)?;
    Ok(x.broadcast_mul(&scale)?.broadcast_add(offset)?)
}

fn leaky(x: &Tensor) -> Result<Tensor, Error> {
    Ok(x.maximum(&(x * LEAK)?)?)
}

/// Band-pass filters from two frequencies each, (251, 80): forty even ones, then
/// forty odd ones, as asteroid's `ParamSincFB` makes them.
fn sinc_filters(tensors: &NamedTensors) -> Result<Tensor, Error> {
    const HALF: usize = SINC_KERNEL / 2;
    let name = |part: &str| format!("sincnet.conv1d.0.filterbank.{part}");
    let column = |part: &str| -> Result<Vec<f32>, Error> {
        Ok(tensors.any(&name(part))?.flatten_all()?.to_vec1::<f32>()?)
    };
    let (lows, bands) = (column("low_hz_")?, column("band_hz_")?);
    let count = lows.len();
    let mut filters = vec![0.0f32; SINC_KERNEL * 2 * count];
    for (number, (low, band)) in lows.iter().zip(&bands).enumerate() {
        let low = MIN_LOW_HERTZ + f64::from(*low).abs();
        let high = (low + MIN_BAND_HERTZ + f64::from(*band).abs()).clamp(MIN_LOW_HERTZ, SAMPLE_RATE / 2.0);
        let band = high - low;
        let mut set = |tap: usize, even: f64, odd: f64| {
            filters[tap * 2 * count + number] = (even / (2.0 * band)) as f32;
            filters[tap * 2 * count + count + number] = (odd / (2.0 * band)) as f32;
        };
        set(HALF, 2.0 * band, 0.0);
        for tap in 0..HALF {
            let position = tap as f64 - HALF as f64;
            let n = 2.0 * std::f64::consts::PI * position / SAMPLE_RATE;
            // The left half of a Hamming window of 251 points.
            let hamming =
                0.54 - 0.46 * (2.0 * std::f64::consts::PI * tap as f64 / (SINC_KERNEL - 1) as f64).cos();
            let even = ((high * n).sin() - (low * n).sin()) / (n / 2.0) * hamming;
            let odd = ((low * n).cos() - (high * n).cos()) / (n / 2.0) * hamming;
            set(tap, even, odd);
            set(SINC_KERNEL - 1 - tap, even, -odd);
        }
    }
    Ok(Tensor::from_vec(filters, (SINC_KERNEL, 2 * count), tensors.device())?)
}
