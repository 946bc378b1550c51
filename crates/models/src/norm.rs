//! Layer norm (Ba and others, arXiv:1607.06450) over the last dimension. On the host it adds several numbers at a time,
//! where candle's operation adds one after the other.

use candle_core::{CpuStorage, CustomOp3, Layout, Module, Shape, Tensor};
use rayon::prelude::*;

use crate::fused::{ACTIVATIONS_PER_TASK, LANES, is_host_f32};
use crate::vectorised::{Kernel, vectorised};

/// A layer norm with weights and a bias.
#[derive(Debug, Clone)]
pub(crate) struct LayerNorm {
    /// For other devices and types.
    candle: candle_nn::LayerNorm,
    weight: Tensor,
    bias: Tensor,
    epsilon: f64,
}

impl LayerNorm {
    /// `weight` and `bias` have one number for each element of a row; `epsilon` is added to the variance.
    pub fn new(weight: Tensor, bias: Tensor, epsilon: f64) -> Self {
        let candle = candle_nn::LayerNorm::new(weight.clone(), bias.clone(), epsilon);
        Self { candle, weight, bias, epsilon }
    }
}

impl Module for LayerNorm {
    fn forward(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        if is_host_f32(x) && x.is_contiguous() {
            let norm = NormaliseRows { epsilon: self.epsilon as f32 };
            return x.apply_op3_no_bwd(&self.weight, &self.bias, &norm);
        }
        self.candle.forward(x)
    }
}

struct NormaliseRows {
    epsilon: f32,
}

impl CustomOp3 for NormaliseRows {
    fn name(&self) -> &'static str {
        "normalise-rows"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        weight: &CpuStorage,
        weight_layout: &Layout,
        bias: &CpuStorage,
        bias_layout: &Layout,
    ) -> candle_core::Result<(CpuStorage, Shape)> {
        let (x, weight, bias) =
            (numbers(x, x_layout)?, numbers(weight, weight_layout)?, numbers(bias, bias_layout)?);
        let width = weight.len();
        if width == 0 || bias.len() != width || x_layout.dims().last() != Some(&width) {
            candle_core::bail!("rows of {:?} are not normalised by {width} numbers", x_layout.dims());
        }
        let mut out = vec![0.0; x.len()];
        let task = (ACTIVATIONS_PER_TASK / width).max(1) * width;
        let normalise = |(x, out)| {
            vectorised(NormaliseKernel { x, weight, bias, epsilon: self.epsilon, out });
        };
        x.par_chunks(task).zip(out.par_chunks_mut(task)).for_each(normalise);
        Ok((CpuStorage::F32(out), x_layout.shape().clone()))
    }
}

fn numbers<'a>(storage: &'a CpuStorage, layout: &Layout) -> candle_core::Result<&'a [f32]> {
    let (CpuStorage::F32(numbers), Some((start, end))) = (storage, layout.contiguous_offsets()) else {
        candle_core::bail!("rows of contiguous numbers of 32 bits are normalised only");
    };
    Ok(&numbers[start..end])
}

struct NormaliseKernel<'a> {
    x: &'a [f32],
    weight: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
    out: &'a mut [f32],
}

impl Kernel for NormaliseKernel<'_> {
    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let width = self.weight.len();
        for (row, out) in self.x.chunks_exact(width).zip(self.out.chunks_exact_mut(width)) {
            let mean = sum(row, |x| x) / width as f32;
            let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
            let factor = (variance + self.epsilon).sqrt().recip();
            for (((out, x), weight), bias) in out.iter_mut().zip(row).zip(self.weight).zip(self.bias) {
                *out = (x - mean) * factor * weight + bias;
            }
        }
    }
}

#[inline(always)]
fn sum(row: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    let mut lanes = [0.0; LANES];
    let (chunks, rest) = row.as_chunks::<LANES>();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += of(*x);
        }
    }
    lanes.iter().sum::<f32>() + rest.iter().map(|x| of(*x)).sum::<f32>()
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;

    #[test]
    fn rows_are_normalised_as_in_64_bits() {
        for (rows, width, mean) in [(1, 1, 0.0), (3, 7, 1.0), (70, 512, -3.0), (40, 1030, 20.0)] {
            let random =
                |mean: f32, shape: (usize, usize)| Tensor::randn(mean, 2.0, shape, &Device::Cpu).unwrap();
            let (x, weight, bias) =
                (random(mean, (rows, width)), random(1.0, (1, width)), random(0.0, (1, width)));
            let (weight, bias) = (weight.squeeze(0).unwrap(), bias.squeeze(0).unwrap());
            let found = LayerNorm::new(weight.clone(), bias.clone(), 1e-5).forward(&x).unwrap();
            let [x, weight, bias] = [x, weight, bias].map(|it| it.to_dtype(DType::F64).unwrap());
            let expected = candle_nn::LayerNorm::new(weight, bias, 1e-5);
            let expected =
                candle_nn::ops::layer_norm_slow(&x, expected.weight(), expected.bias().unwrap(), 1e-5);
            let off = (found.to_dtype(DType::F64).unwrap() - expected.unwrap()).unwrap();
            let off = off.abs().unwrap().max_all().unwrap().to_scalar::<f64>().unwrap();
            // Weights up to about 10 multiply what rounding costs numbers around 20.
            assert!(off < 5e-5, "{rows} x {width} around {mean}: off by {off}");
        }
    }

    #[test]
    fn parts_of_a_tensor_are_normalised_as_they_are() {
        let x = Tensor::randn(0f32, 1.0, (6, 20), &Device::Cpu).unwrap();
        let (weight, bias) =
            (Tensor::ones(20, DType::F32, &Device::Cpu), Tensor::zeros(20, DType::F32, &Device::Cpu));
        let norm = LayerNorm::new(weight.unwrap(), bias.unwrap(), 1e-5);
        let all = norm.forward(&x).unwrap().to_vec2::<f32>().unwrap();
        let part = norm.forward(&x.narrow(0, 2, 3).unwrap()).unwrap().to_vec2::<f32>().unwrap();
        assert_eq!(part, all[2..5]);
        // A width that is not that of the weights.
        assert!(norm.forward(&x.narrow(1, 0, 10).unwrap().contiguous().unwrap()).is_err());
    }
}
