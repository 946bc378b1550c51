//! Three convolutions of stride 2 over time and bands, which make one frame of eight.

use std::ops::Range;

use candle_core::{Device, Tensor};
use memory::FastConformerDimensions;
use rayon::prelude::*;

use crate::Error;
use crate::fused::matrix_product;
use crate::layers::{Linear, Loader};
use crate::matrix::with_values;
use crate::vectorised::{Kernel, mul_add, vectorised};

/// Frames of the result that a thread computes at once. What the first convolution makes of a
/// whole window would take a hundred megabytes.
const FRAMES_PER_TASK: usize = 8;
/// Places of a kernel.
const TAPS: usize = 9;

#[derive(Debug)]
pub(super) struct Subsampling {
    /// From one channel to all.
    first: Taps,
    /// Each channel alone, then all together, (input, output).
    stages: [(Taps, Tensor, Tensor); 2],
    linear: Linear,
    bands: usize,
    device: Device,
}

/// A kernel of 3 x 3 for each channel, (9, channels), and its biases.
#[derive(Debug)]
struct Taps {
    weights: Tensor,
    bias: Tensor,
}

impl Subsampling {
    pub fn load(loader: Loader, of: &FastConformerDimensions) -> Result<Self, Error> {
        let (channels, width) = (of.channels as usize, of.width as usize);
        let name = |layer: usize| format!("encoder.subsampling.layers.{layer}");
        let bias = |layer| loader.get(&format!("{}.bias", name(layer)), &[channels]);
        let taps = |layer| -> Result<Taps, Error> {
            let weights = loader.get(&format!("{}.weight", name(layer)), &[channels, 1, 3, 3])?;
            let weights = weights.reshape((channels, TAPS))?.t()?.contiguous()?;
            Ok(Taps { weights, bias: bias(layer)? })
        };
        let stage = |layer| -> Result<(Taps, Tensor, Tensor), Error> {
            let point = loader.get(&format!("{}.weight", name(layer + 1)), &[channels, channels, 1, 1])?;
            let point = point.reshape((channels, channels))?.t()?.contiguous()?;
            Ok((taps(layer)?, point, bias(layer + 1)?))
        };
        let input = of.subsampled() as usize;
        Ok(Self {
            first: taps(0)?,
            stages: [stage(2)?, stage(5)?],
            linear: loader.linear("encoder.subsampling.linear", input, width, true)?,
            bands: of.mel_bins as usize,
            device: loader.device.clone(),
        })
    }

    pub fn is_on_host(&self) -> bool {
        self.device.is_cpu()
    }

    /// `spectrogram` is (rows, bands); the result (frames, width).
    pub fn forward(&self, spectrogram: &[f32], rows: usize) -> Result<Tensor, Error> {
        let flat = if self.is_on_host() {
            self.convolve_on_host(spectrogram, rows)?
        } else {
            self.convolve(spectrogram, rows)?
        };
        self.linear.forward(&flat)
    }

    /// (frames, channels x bands / 8), by candle's operations.
    fn convolve(&self, spectrogram: &[f32], rows: usize) -> Result<Tensor, Error> {
        let x = Tensor::from_slice(spectrogram, (1, 1, rows, self.bands), &Device::Cpu)?;
        let x = x.to_device(&self.device)?.to_dtype(self.first.weights.dtype())?;
        let channels = self.first.bias.dim(0)?;
        let kernel = self.first.weights.t()?.contiguous()?.reshape((channels, 1, 3, 3))?;
        // (rows, columns, channels) from here on.
        let mut x = x.conv2d(&kernel, 1, 2, 1, 1)?.squeeze(0)?.permute((1, 2, 0))?;
        // Assigned step by step: what was the input of a step is freed behind it.
        x = x.contiguous()?;
        x = x.broadcast_add(&self.first.bias)?;
        x = x.relu()?;
        for (taps, point, bias) in &self.stages {
            x = taps.over_each(x)?;
            let (rows, columns, channels) = x.dims3()?;
            // A matrix product over the channels of each place.
            x = x.reshape((rows * columns, channels))?.matmul(point)?;
            x = x.broadcast_add(bias)?.relu()?.reshape((rows, columns, channels))?;
        }
        let (rows, columns, channels) = x.dims3()?;
        Ok(x.transpose(1, 2)?.contiguous()?.reshape((rows, channels * columns))?)
    }

    /// As [`Self::convolve`]: threads take frames of the result, and compute what theirs reach over.
    fn convolve_on_host(&self, spectrogram: &[f32], rows: usize) -> Result<Tensor, Error> {
        let channels = self.first.bias.dim(0)?;
        let after = |size: usize| [halved(size), halved(halved(size)), halved(halved(halved(size)))];
        let (lengths, columns) = (after(rows), after(self.bands));
        let last = columns[2];
        let mut out = vec![0.0; lengths[2] * channels * last];
        let values = |x: &Tensor| -> Result<Vec<f32>, Error> { Ok(x.flatten_all()?.to_vec1()?) };
        let host = |taps: &Taps| -> Result<HostTaps, Error> {
            Ok(HostTaps { weights: values(&taps.weights)?, bias: values(&taps.bias)? })
        };
        let first = host(&self.first)?;
        let mut stages = Vec::with_capacity(2);
        for (taps, point, bias) in &self.stages {
            stages.push((host(taps)?, point, values(bias)?));
        }
        let task = (FRAMES_PER_TASK * channels * last).max(1);
        out.par_chunks_mut(task).enumerate().try_for_each(|(number, out)| {
            let start = number * FRAMES_PER_TASK;
            let wanted = start..(start + FRAMES_PER_TASK).min(lengths[2]);
            // Rows of each stage that the next one reaches over.
            let second = reached(&wanted, lengths[1]);
            let earliest = reached(&second, lengths[0]);
            let input =
                Plane { first: 0, rows, columns: self.bands, channels: 1, values: spectrogram.into() };
            let mut plane = first.over_one_channel(&input, earliest, columns[0], channels);
            for (stage, (taps, point, bias)) in stages.iter().enumerate() {
                let range = if stage == 0 { second.clone() } else { wanted.clone() };
                let alone = taps.over_each_channel(&plane, range, columns[stage + 1]);
                plane = with_values(point, |point| alone.mixed(point, bias))?;
            }
            // The channels of a frame, each with all of its columns.
            for (frame, out) in out.chunks_exact_mut(channels * last).enumerate() {
                let row = &plane.values[frame * last * channels..][..last * channels];
                for (column, place) in row.chunks_exact(channels).enumerate() {
                    place.iter().enumerate().for_each(|(channel, x)| out[channel * last + column] = *x);
                }
            }
            Ok::<_, Error>(())
        })?;
        Ok(Tensor::from_vec(out, (lengths[2], channels * last), &Device::Cpu)?)
    }
}

impl Taps {
    /// Each channel of (rows, columns, channels) alone, by candle's operations. candle's own convolution of groups computes
    /// each channel in calls of its own, some ten thousand for a window.
    fn over_each(&self, x: Tensor) -> Result<Tensor, Error> {
        let (rows, columns, channels) = x.dims3()?;
        let (rows_out, columns_out) = (halved(rows), halved(columns));
        let mut padded = x.pad_with_zeros(0, 1, 2 * rows_out + 1 - rows)?;
        drop(x);
        padded = padded.pad_with_zeros(1, 1, 2 * columns_out + 1 - columns)?;
        // Places of even and of odd numbers apart: a tap takes every second one.
        let apart = padded.reshape((rows_out + 1, 2, columns_out + 1, 2, channels))?;
        let mut sum = self.bias.broadcast_as((rows_out, 1, columns_out, 1, channels))?.contiguous()?;
        for tap in 0..TAPS {
            let (row, column) = (tap / 3, tap % 3);
            let places = apart.narrow(0, row / 2, rows_out)?.narrow(1, row % 2, 1)?;
            let places = places.narrow(2, column / 2, columns_out)?.narrow(3, column % 2, 1)?;
            sum = (sum + places.broadcast_mul(&self.weights.narrow(0, tap, 1)?.squeeze(0)?)?)?;
        }
        Ok(sum.reshape((rows_out, columns_out, channels))?)
    }
}

/// Places that a convolution of stride 2 over three with zeros around them leaves.
fn halved(size: usize) -> usize {
    (size - 1) / 2 + 1
}

/// Rows of the input, of `length` rows, that these rows of the result reach over.
fn reached(rows: &Range<usize>, length: usize) -> Range<usize> {
    (2 * rows.start).saturating_sub(1)..(2 * rows.end).min(length)
}

/// Some rows of an image, from number `first` on, (rows, columns, channels).
struct Plane<'a> {
    first: usize,
    rows: usize,
    columns: usize,
    channels: usize,
    values: std::borrow::Cow<'a, [f32]>,
}

impl Plane<'_> {
    /// A row by its number in the whole image.
    fn row(&self, number: Option<usize>) -> Option<&[f32]> {
        let number = number?.checked_sub(self.first).filter(|number| *number < self.rows)?;
        let length = self.columns * self.channels;
        self.values.get(number * length..(number + 1) * length)
    }

    /// All channels of each place together: (input, output) weights, biases, and no negative numbers.
    fn mixed(&self, weights: &[f32], bias: &[f32]) -> Plane<'static> {
        let channels = bias.len();
        let places = self.rows * self.columns;
        let mut values = vec![0.0; places * channels];
        matrix_product(&mut values, &self.values, weights, (places, self.channels, channels));
        vectorised(BiasAndRelu { values: &mut values, bias });
        let Self { first, rows, columns, .. } = *self;
        Plane { first, rows, columns, channels, values: values.into() }
    }
}

struct HostTaps {
    weights: Vec<f32>,
    bias: Vec<f32>,
}

impl HostTaps {
    /// From one channel to all, and no negative numbers.
    fn over_one_channel(
        &self,
        x: &Plane,
        rows: Range<usize>,
        columns: usize,
        channels: usize,
    ) -> Plane<'static> {
        let mut values = vec![0.0; rows.len() * columns * channels];
        for (row, out) in rows.clone().zip(values.chunks_exact_mut(columns * channels)) {
            let input = [0, 1, 2].map(|tap| x.row((2 * row + tap).checked_sub(1)));
            vectorised(FromOne { input, taps: self, out });
        }
        Plane { first: rows.start, rows: rows.len(), columns, channels, values: values.into() }
    }

    /// Each channel alone.
    fn over_each_channel(&self, x: &Plane, rows: Range<usize>, columns: usize) -> Plane<'static> {
        let channels = x.channels;
        let mut values = vec![0.0; rows.len() * columns * channels];
        for (row, out) in rows.clone().zip(values.chunks_exact_mut(columns * channels)) {
            let input = [0, 1, 2].map(|tap| x.row((2 * row + tap).checked_sub(1)));
            vectorised(OfEach { input, taps: self, out });
        }
        Plane { first: rows.start, rows: rows.len(), columns, channels, values: values.into() }
    }
}

struct FromOne<'a> {
    input: [Option<&'a [f32]>; 3],
    taps: &'a HostTaps,
    out: &'a mut [f32],
}

impl Kernel for FromOne<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let bias = &self.taps.bias;
        for (column, out) in self.out.chunks_exact_mut(bias.len()).enumerate() {
            out.copy_from_slice(bias);
            for (row, input) in self.input.iter().enumerate() {
                let Some(input) = input else { continue };
                for tap in 0..3 {
                    let place = (2 * column + tap).checked_sub(1).and_then(|place| input.get(place));
                    let Some(x) = place else { continue };
                    let weights = &self.taps.weights[(3 * row + tap) * bias.len()..][..bias.len()];
                    for (out, weight) in out.iter_mut().zip(weights) {
                        *out = mul_add::<FMA>(*x, *weight, *out);
                    }
                }
            }
            out.iter_mut().for_each(|x| *x = x.max(0.0));
        }
    }
}

struct OfEach<'a> {
    input: [Option<&'a [f32]>; 3],
    taps: &'a HostTaps,
    out: &'a mut [f32],
}

impl Kernel for OfEach<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let bias = &self.taps.bias;
        let channels = bias.len();
        for (column, out) in self.out.chunks_exact_mut(channels).enumerate() {
            out.copy_from_slice(bias);
            for (row, input) in self.input.iter().enumerate() {
                let Some(input) = input else { continue };
                for tap in 0..3 {
                    let place = (2 * column + tap).checked_sub(1);
                    let place = place.and_then(|at| input.get(at * channels..(at + 1) * channels));
                    let Some(place) = place else { continue };
                    let weights = &self.taps.weights[(3 * row + tap) * channels..][..channels];
                    for ((out, x), weight) in out.iter_mut().zip(place).zip(weights) {
                        *out = mul_add::<FMA>(*x, *weight, *out);
                    }
                }
            }
        }
    }
}

struct BiasAndRelu<'a> {
    values: &'a mut [f32],
    bias: &'a [f32],
}

impl Kernel for BiasAndRelu<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        for place in self.values.chunks_exact_mut(self.bias.len()) {
            place.iter_mut().zip(self.bias).for_each(|(x, bias)| *x = (*x + bias).max(0.0));
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::DType;

    use super::*;
    use crate::matrix::Matrix;

    #[test]
    fn the_host_computes_what_candle_does() {
        let random = |shape: &[usize]| Tensor::randn(0f32, 0.5, shape, &Device::Cpu).unwrap();
        for (rows, bands, channels) in [(1, 8, 3), (9, 16, 4), (130, 24, 5), (257, 128, 16)] {
            let taps = || Taps { weights: random(&[TAPS, channels]), bias: random(&[channels]) };
            let stage = || (taps(), random(&[channels, channels]), random(&[channels]));
            let linear = Linear::new(Matrix::Dense(Tensor::zeros((1, 1), DType::F32, &Device::Cpu).unwrap()));
            let subsampling =
                Subsampling { first: taps(), stages: [stage(), stage()], linear, bands, device: Device::Cpu };
            let spectrogram: Vec<f32> = random(&[rows * bands]).to_vec1().unwrap();
            let expected = subsampling.convolve(&spectrogram, rows).unwrap();
            let found = subsampling.convolve_on_host(&spectrogram, rows).unwrap();
            let off = (found - expected).unwrap().abs().unwrap().max_all().unwrap();
            let off = off.to_scalar::<f32>().unwrap();
            assert!(off < 1e-4, "{rows} x {bands} in {channels}: off by {off}");
        }
    }
}
