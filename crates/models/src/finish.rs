//! What follows a matrix product on a CUDA device, in one pass over its result. candle takes a pass, and memory of its
//! own, for each addition, factor, activation and change of layout.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{DeviceRepr, LaunchConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, WrapErr};
use candle_core::{
    CpuStorage, CudaStorage, CustomOp2, DType, Device, InplaceOp2, InplaceOp3, Layout, Result, Shape, Tensor,
    bail,
};
use formats::Activation;

use crate::choose::kernels;

/// Numbers that a thread computes at once, as in the kernels.
const LANES: usize = 8;

/// The name that candle keeps the kernels by.
const MODULE: &str = "steno_finish";

/// Whether the kernels serve rows of this width and what is added to them: in the types that they are compiled for,
/// contiguous, and in whole groups of numbers. All others are candle's.
pub fn serves(tensors: &[&Tensor], width: usize) -> bool {
    tensors.iter().all(|tensor| {
        tensor.device().is_cuda()
            && matches!(tensor.dtype(), DType::F32 | DType::F16 | DType::BF16)
            && tensor.is_contiguous()
            && tensor.layout().start_offset().is_multiple_of(LANES)
    }) && width.is_multiple_of(LANES)
}

/// Changes rows, (..., width), in place: `activation((y + bias) * scale)`, and with a third tensor of the same shape
/// their sum with it.
#[derive(Debug, Clone, Copy)]
pub struct Finish {
    /// The factor of the sum with the bias.
    pub scale: f64,
    /// What follows.
    pub activation: Option<Activation>,
}

impl Finish {
    fn run(
        self,
        y: (&mut CudaStorage, &Layout),
        bias: (&CudaStorage, &Layout),
        other: Option<(&CudaStorage, &Layout)>,
    ) -> Result<()> {
        let fits = y.0.dtype() == bias.0.dtype()
            && bias.1.shape().dims() == [y.1.shape().dims().last().copied().unwrap_or(0)]
            && other.is_none_or(|other| other.0.dtype() == y.0.dtype() && other.1.shape() == y.1.shape())
            && [Some(y.1), Some(bias.1), other.map(|it| it.1)].into_iter().flatten().all(is_whole);
        if !fits {
            bail!("{:?} has not {:?} and {:?} for a bias and a sum", y.1, bias.1, other.map(|it| it.1));
        }
        match y.0.dtype() {
            DType::F32 => self.launch::<f32>("finish_f32", y, bias, other),
            DType::F16 => self.launch::<half::f16>("finish_f16", y, bias, other),
            DType::BF16 => self.launch::<half::bf16>("finish_bf16", y, bias, other),
            dtype => bail!("nothing is finished in {dtype:?}"),
        }
    }

    fn launch<T: CudaDType + DeviceRepr>(
        self,
        kernel: &str,
        (y, y_layout): (&mut CudaStorage, &Layout),
        (bias, bias_layout): (&CudaStorage, &Layout),
        other: Option<(&CudaStorage, &Layout)>,
    ) -> Result<()> {
        let device = y.device().clone();
        let function = device.get_or_load_custom_func(kernel, MODULE, kernels::FINISH)?;
        let width = bias_layout.shape().elem_count() as u32;
        let groups = groups(y_layout);
        let y = y.as_cuda_slice::<T>()?.slice(y_layout.start_offset()..);
        let bias = bias.as_cuda_slice::<T>()?.slice(bias_layout.start_offset()..);
        let others = match other {
            Some((other, layout)) => other.as_cuda_slice::<T>()?.slice(layout.start_offset()..),
            // Not read.
            None => bias.slice(0..),
        };
        let (scale, activation) = (self.scale as f32, number(self.activation));
        let is_added = u32::from(other.is_some());
        let mut launch = function.builder();
        launch.arg(&y).arg(&bias).arg(&others);
        launch.arg(&groups).arg(&width).arg(&scale).arg(&activation).arg(&is_added);
        // SAFETY: the arguments are those of the kernel, which stays within the shapes that were compared.
        unsafe { launch.launch(grid(groups)) }.w()?;
        Ok(())
    }
}

/// The kernel's number of an activation.
fn number(activation: Option<Activation>) -> u32 {
    match activation {
        None => 0,
        Some(Activation::Gelu) => 1,
        Some(Activation::GeluNew) => 2,
        Some(Activation::Relu) => 3,
    }
}

impl InplaceOp2 for Finish {
    fn name(&self) -> &'static str {
        "finish"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<()> {
        bail!("the host has operations of its own")
    }

    fn cuda_fwd(
        &self,
        y: &mut CudaStorage,
        y_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<()> {
        self.run((y, y_layout), (bias, bias_layout), None)
    }
}

impl InplaceOp3 for Finish {
    fn name(&self) -> &'static str {
        "finish-and-add"
    }

    fn cpu_fwd(
        &self,
        _: &mut CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
        _: &CpuStorage,
        _: &Layout,
    ) -> Result<()> {
        bail!("the host has operations of its own")
    }

    fn cuda_fwd(
        &self,
        y: &mut CudaStorage,
        y_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
        other: &CudaStorage,
        other_layout: &Layout,
    ) -> Result<()> {
        self.run((y, y_layout), (bias, bias_layout), Some((other, other_layout)))
    }
}

/// (rows, length, heads x head width) to (rows, heads, length, head width): `(y + bias) * scale`, the bias being
/// the second tensor. Without `has_bias` the numbers stay as they are and the second tensor is not read.
#[derive(Debug, Clone, Copy)]
pub struct SplitHeads {
    /// How many heads.
    pub heads: usize,
    /// The factor of the sum with the bias.
    pub scale: f64,
    /// Whether there is a bias.
    pub has_bias: bool,
}

impl CustomOp2 for SplitHeads {
    fn name(&self) -> &'static str {
        "split-heads"
    }

    fn cpu_fwd(&self, _: &CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<(CpuStorage, Shape)> {
        bail!("the host has operations of its own")
    }

    fn cuda_fwd(
        &self,
        y: &CudaStorage,
        y_layout: &Layout,
        bias: &CudaStorage,
        bias_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let (y, bias) = ((y, y_layout), (bias, bias_layout));
        match y.0.dtype() {
            DType::F32 => self.launch::<f32>("split_heads_f32", y, bias),
            DType::F16 => self.launch::<half::f16>("split_heads_f16", y, bias),
            DType::BF16 => self.launch::<half::bf16>("split_heads_bf16", y, bias),
            dtype => bail!("no heads in {dtype:?}"),
        }
    }
}

impl SplitHeads {
    fn launch<T: CudaDType + DeviceRepr>(
        self,
        kernel: &str,
        (y, y_layout): (&CudaStorage, &Layout),
        (bias, bias_layout): (&CudaStorage, &Layout),
    ) -> Result<(CudaStorage, Shape)> {
        let (rows, length, width) = y_layout.shape().dims3()?;
        let head_width = width / self.heads.max(1);
        let fits = head_width * self.heads == width
            && head_width.is_multiple_of(LANES)
            && is_whole(y_layout)
            && (!self.has_bias || (bias_layout.shape().dims() == [width] && is_whole(bias_layout)));
        if !fits {
            bail!("{y_layout:?} is not {} heads with {bias_layout:?}", self.heads);
        }
        let device = y.device();
        let function = device.get_or_load_custom_func(kernel, MODULE, kernels::FINISH)?;
        let groups = groups(y_layout);
        // SAFETY: the kernel writes every element.
        let out = unsafe { device.alloc::<T>(rows * length * width)? };
        let y = y.as_cuda_slice::<T>()?.slice(y_layout.start_offset()..);
        let bias = bias.as_cuda_slice::<T>()?.slice(bias_layout.start_offset()..);
        let numbers = [length, self.heads, head_width].map(|number| number as u32);
        let (scale, has_bias) = (self.scale as f32, u32::from(self.has_bias));
        let mut launch = function.builder();
        launch.arg(&y).arg(&bias).arg(&out).arg(&groups);
        for number in &numbers {
            launch.arg(number);
        }
        launch.arg(&scale).arg(&has_bias);
        // SAFETY: the arguments are those of the kernel, which stays within the shapes that were compared.
        unsafe { launch.launch(grid(groups)) }.w()?;
        let shape = Shape::from((rows, self.heads, length, head_width));
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), shape))
    }
}

/// Writes (rows, heads, count, head width) to the positions from `start` on of (rows, length, heads x head width).
#[derive(Debug, Clone, Copy)]
pub struct JoinHeads {
    /// The first position that is written.
    pub start: usize,
}

impl InplaceOp2 for JoinHeads {
    fn name(&self) -> &'static str {
        "join-heads"
    }

    fn cpu_fwd(&self, _: &mut CpuStorage, _: &Layout, _: &CpuStorage, _: &Layout) -> Result<()> {
        bail!("the host has operations of its own")
    }

    fn cuda_fwd(
        &self,
        out: &mut CudaStorage,
        out_layout: &Layout,
        y: &CudaStorage,
        y_layout: &Layout,
    ) -> Result<()> {
        let (out, y) = ((out, out_layout), (y, y_layout));
        match y.0.dtype() {
            DType::F32 => self.launch::<f32>("join_heads_f32", out, y),
            DType::F16 => self.launch::<half::f16>("join_heads_f16", out, y),
            DType::BF16 => self.launch::<half::bf16>("join_heads_bf16", out, y),
            dtype => bail!("no heads in {dtype:?}"),
        }
    }
}

impl JoinHeads {
    fn launch<T: CudaDType + DeviceRepr>(
        self,
        kernel: &str,
        (out, out_layout): (&mut CudaStorage, &Layout),
        (y, y_layout): (&CudaStorage, &Layout),
    ) -> Result<()> {
        let (rows, length, width) = out_layout.shape().dims3()?;
        let (own_rows, heads, count, head_width) = y_layout.shape().dims4()?;
        let fits = rows == own_rows
            && heads * head_width == width
            && head_width.is_multiple_of(LANES)
            && self.start + count <= length
            && is_whole(out_layout)
            && is_whole(y_layout);
        if !fits {
            bail!("{y_layout:?} does not fit {out_layout:?} from {} on", self.start);
        }
        let device = y.device();
        let function = device.get_or_load_custom_func(kernel, MODULE, kernels::FINISH)?;
        let groups = groups(y_layout);
        let out = out.as_cuda_slice::<T>()?.slice(out_layout.start_offset()..);
        let y = y.as_cuda_slice::<T>()?.slice(y_layout.start_offset()..);
        let numbers = [count, heads, head_width, length, self.start].map(|number| number as u32);
        let mut launch = function.builder();
        launch.arg(&out).arg(&y).arg(&groups);
        for number in &numbers {
            launch.arg(number);
        }
        // SAFETY: the arguments are those of the kernel, which stays within the shapes that were compared.
        unsafe { launch.launch(grid(groups)) }.w()?;
        Ok(())
    }
}

/// Contiguous, and at a place that groups of numbers can be read from.
fn is_whole(layout: &Layout) -> bool {
    layout.is_contiguous() && layout.start_offset().is_multiple_of(LANES)
}

fn groups(layout: &Layout) -> u32 {
    (layout.shape().elem_count() / LANES) as u32
}

fn grid(groups: u32) -> LaunchConfig {
    const THREADS: u32 = 256;
    LaunchConfig {
        grid_dim: (groups.div_ceil(THREADS), 1, 1),
        block_dim: (THREADS, 1, 1),
        shared_mem_bytes: 0,
    }
}

/// Whether the kernels find what the host does, for two rows of two positions and two heads.
pub(crate) fn is_right(device: &Device) -> Result<bool> {
    let (rows, length, heads, width) = (2, 2, 2, 2 * LANES);
    let numbers = |count: usize, step: usize| -> Vec<f32> {
        (0..count).map(|i| (i * step % 64) as f32 / 32.0 - 1.0).collect()
    };
    let (y, bias) = (numbers(rows * length * width, 23), numbers(width, 7));
    let on = |device: &Device| -> Result<(Tensor, Tensor)> {
        Ok((
            Tensor::from_slice(&y, (rows, length, width), device)?,
            Tensor::from_slice(&bias, width, device)?,
        ))
    };
    let near = |found: &Tensor, expected: &Tensor| -> Result<bool> {
        let values = |x: &Tensor| x.to_device(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>();
        Ok(values(found)?.iter().zip(values(expected)?).all(|(a, b)| (a - b).abs() < 1e-4))
    };
    let (host, host_bias) = on(&Device::Cpu)?;
    let (card, card_bias) = on(device)?;
    let sum = (host.broadcast_add(&host_bias)? * 0.5)?;
    let expected = (sum.gelu_erf()? + &host)?;
    let finished = card.copy()?;
    finished.inplace_op3(&card_bias, &card, &Finish { scale: 0.5, activation: Some(Activation::Gelu) })?;
    let split = SplitHeads { heads, scale: 0.5, has_bias: true };
    let split = card.apply_op2_no_bwd(&card_bias, &split)?;
    let joined = card.zeros_like()?;
    joined.inplace_op2(&split, &JoinHeads { start: 0 })?;
    let heads_apart = sum.reshape((rows, length, heads, width / heads))?.transpose(1, 2)?.contiguous()?;
    Ok(near(&finished, &expected)? && near(&split, &heads_apart)? && near(&joined, &sum)?)
}
