use candle_core::{DType, Tensor};
use memory::FastConformerDimensions;
use rayon::prelude::*;

use super::encoder::{Together, silu};
use crate::Error;
use crate::fused::{is_host_f32, sigmoid};
use crate::layers::{Linear, Loader};
use crate::matrix::with_values;
use crate::vectorised::{Kernel, mul_add, vectorised};

/// Frames that a thread convolves at once.
const FRAMES_PER_TASK: usize = 32;

/// The convolution of a layer: a gate, a convolution over time of each channel alone with its
/// batch norm, an activation, between two linear layers.
#[derive(Debug)]
pub(super) struct Convolution {
    into: Linear,
    /// The weights of each tap, (kernel, width), and what is added, (width); the norm is in both.
    taps: Tensor,
    bias: Tensor,
    out: Linear,
}

impl Convolution {
    pub fn load(loader: Loader, name: &str, of: &FastConformerDimensions) -> Result<Self, Error> {
        /// As in torch.nn.BatchNorm1d.
        const EPSILON: f64 = 1e-5;
        let (width, kernel, has_bias) = (of.width as usize, of.kernel as usize, of.convolution_bias);
        // Folded in 32 bits, whatever the device computes in.
        let exact = Loader { dtype: DType::F32, ..loader };
        let get = |part: &str| exact.read(&format!("{name}.{part}"), &[width]);
        let weights = exact.get(&format!("{name}.depthwise_conv.weight"), &[width, 1, kernel])?;
        let scale = (get("norm.weight")? / (get("norm.running_var")? + EPSILON)?.sqrt()?)?;
        let mut bias = (get("norm.bias")? - (get("norm.running_mean")? * &scale)?)?;
        if has_bias {
            bias = (bias + (get("depthwise_conv.bias")? * &scale)?)?;
        }
        let taps = weights.reshape((width, kernel))?.t()?.contiguous()?.broadcast_mul(&scale)?;
        Ok(Self {
            into: loader.linear(&format!("{name}.pointwise_conv1"), width, 2 * width, has_bias)?,
            taps: taps.to_dtype(loader.dtype)?,
            bias: bias.to_dtype(loader.dtype)?,
            out: loader.linear(&format!("{name}.pointwise_conv2"), width, width, has_bias)?,
        })
    }

    /// `residual` plus what becomes of `x`, which is `residual` normalised: (frames of all windows, width).
    pub fn forward(&self, residual: &Tensor, x: &Tensor, together: &Together) -> Result<Tensor, Error> {
        let gated = self.into.forward(x)?;
        let convolved = if is_host_f32(&gated) {
            convolve_on_host(&gated, &self.taps, &self.bias)?
        } else {
            convolve(&gated, &self.taps, &self.bias, together)?
        };
        drop(gated);
        self.out.added(&convolved, residual)
    }
}

/// (frames, 2 width), the values and their gates -> (frames, width), by candle's operations.
///
/// Between two windows there are as many rows of padding as the kernel reaches over.
fn convolve(gated: &Tensor, taps: &Tensor, bias: &Tensor, together: &Together) -> Result<Tensor, Error> {
    let (kernel, width) = taps.dims2()?;
    let length = gated.dim(0)?;
    let gates = candle_nn::ops::sigmoid(&gated.narrow(1, width, width)?.contiguous()?)?;
    let mut values = (gated.narrow(1, 0, width)? * gates)?;
    if let Some(padding) = &together.padding {
        values = values.broadcast_mul(&padding.frames)?;
    }
    let padded = values.pad_with_zeros(0, kernel / 2, kernel / 2)?;
    let mut sum = bias.broadcast_as((length, width))?.contiguous()?;
    for tap in 0..kernel {
        let shifted = padded.narrow(0, tap, length)?;
        sum = (sum + shifted.broadcast_mul(&taps.narrow(0, tap, 1)?)?)?;
    }
    silu(sum)
}

/// As [`convolve`]: threads take frames, and gate those that theirs reach over.
fn convolve_on_host(gated: &Tensor, taps: &Tensor, bias: &Tensor) -> Result<Tensor, Error> {
    let ((kernel, width), length) = (taps.dims2()?, gated.dim(0)?);
    let mut out = vec![0.0; length * width];
    with_values(gated, |gated| {
        with_values(taps, |taps| {
            with_values(bias, |bias| {
                let tasks = out.par_chunks_mut(FRAMES_PER_TASK * width).enumerate();
                tasks.for_each_init(
                    || vec![0.0; (FRAMES_PER_TASK + kernel) * width],
                    |values, (task, out)| {
                        let first = task * FRAMES_PER_TASK;
                        vectorised(Rows { gated, taps, bias, values, first, out });
                    },
                );
            })
        })
    })???;
    Ok(Tensor::from_vec(out, (length, width), gated.device())?)
}

struct Rows<'a> {
    gated: &'a [f32],
    taps: &'a [f32],
    bias: &'a [f32],
    /// Room for the gated values of all frames that are reached over.
    values: &'a mut [f32],
    first: usize,
    out: &'a mut [f32],
}

impl Kernel for Rows<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let width = self.bias.len();
        let half = self.taps.len() / width / 2;
        for (number, values) in self.values.chunks_exact_mut(width).enumerate() {
            // The frame that this is, counted from before the first one.
            let frame = (self.first + number).checked_sub(half);
            let row = frame.and_then(|frame| self.gated.get(2 * width * frame..2 * width * (frame + 1)));
            let Some(row) = row else {
                values.fill(0.0);
                continue;
            };
            let (of_row, gates) = row.split_at(width);
            for ((value, x), gate) in values.iter_mut().zip(of_row).zip(gates) {
                *value = x * sigmoid(*gate);
            }
        }
        for (number, out) in self.out.chunks_exact_mut(width).enumerate() {
            out.copy_from_slice(self.bias);
            for (tap, weights) in self.taps.chunks_exact(width).enumerate() {
                let values = &self.values[(number + tap) * width..][..width];
                for ((out, value), weight) in out.iter_mut().zip(values).zip(weights) {
                    *out = mul_add::<FMA>(*value, *weight, *out);
                }
            }
            out.iter_mut().for_each(|x| *x *= sigmoid(*x));
        }
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Device;

    use super::*;

    #[test]
    fn the_host_computes_what_candle_does() {
        for (length, width, kernel) in [(1, 4, 9), (5, 16, 9), (100, 33, 5), (33, 8, 1)] {
            let random = |shape: (usize, usize)| Tensor::randn(0f32, 1.0, shape, &Device::Cpu).unwrap();
            let (gated, taps) = (random((length, 2 * width)), random((kernel, width)));
            let bias = random((1, width)).reshape(width).unwrap();
            let expected = convolve(&gated, &taps, &bias, &Together::alone(length)).unwrap();
            let found = convolve_on_host(&gated, &taps, &bias).unwrap();
            let off = (found - expected).unwrap().abs().unwrap().max_all().unwrap();
            let off = off.to_scalar::<f32>().unwrap();
            assert!(off < 1e-5, "{length} x {width} by {kernel}: off by {off}");
        }
    }

    #[test]
    fn windows_are_convolved_together_as_each_alone() {
        let (width, kernel, lengths) = (8, 9, [3, 20, 11]);
        let random = |shape: (usize, usize)| Tensor::randn(0f32, 1.0, shape, &Device::Cpu).unwrap();
        let (taps, bias) = (random((kernel, width)), random((1, width)).reshape(width).unwrap());
        let together = Together::of(&lengths, kernel / 2, &taps).unwrap();
        let gated = random((together.windows * together.length, 2 * width));
        let all = convolve(&gated, &taps, &bias, &together).unwrap();
        for (number, length) in lengths.into_iter().enumerate() {
            let of = |x: &Tensor| x.narrow(0, number * together.length, length).unwrap();
            let alone = convolve(&of(&gated), &taps, &bias, &Together::alone(length)).unwrap();
            let off = (of(&all) - alone).unwrap().abs().unwrap().max_all().unwrap();
            let off = off.to_scalar::<f32>().unwrap();
            assert!(off < 1e-5, "{length} frames: off by {off}");
        }
    }
}
