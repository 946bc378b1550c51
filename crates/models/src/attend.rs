//! Attention on a CUDA device to keys and values that sequences share.

use candle_core::backend::BackendStorage;
use candle_core::cuda_backend::cudarc::driver::{CudaSlice, DeviceRepr, LaunchConfig, PushKernelArg};
use candle_core::cuda_backend::{CudaDType, WrapErr};
use candle_core::{
    CpuStorage, CudaDevice, CudaStorage, CustomOp3, DType, Device, Layout, Result, Shape, Tensor, bail,
};

use crate::choose::kernels;

/// In which rows the caches of a device hold the past of sequences that share it. A row's new tokens are always written
/// into its own.
#[derive(Debug)]
pub struct SharedPast {
    beams: usize,
    capacity: usize,
    /// (rows, capacity): the row within its window.
    held: Vec<u16>,
}

impl SharedPast {
    /// Each row has its own past.
    pub fn new(rows: usize, beams: usize, capacity: usize) -> Self {
        let held = (0..rows * capacity).map(|at| own(at / capacity, beams)).collect();
        Self { beams, capacity, held }
    }

    /// The first `length` positions of each row r become those of row `sources[r]` of the same window.
    pub fn reorder(&mut self, sources: &[usize], length: usize) {
        let before = self.held.clone();
        for (row, source) in sources.iter().enumerate() {
            let held = &mut self.held[row * self.capacity..][..length];
            held.copy_from_slice(&before[source * self.capacity..][..length]);
        }
    }

    /// Forgets all positions from `length` on.
    pub fn truncate(&mut self, length: usize) {
        for (row, held) in self.held.chunks_exact_mut(self.capacity).enumerate() {
            held[length.min(self.capacity)..].fill(own(row, self.beams));
        }
    }

    /// Keeps only these rows, which are all of some windows.
    pub fn keep(&mut self, rows: &[usize]) {
        let held = |row: &usize| self.held[row * self.capacity..][..self.capacity].to_vec();
        self.held = rows.iter().flat_map(held).collect();
    }

    /// The first `length` positions on a CUDA device, for [`AttendToShared`].
    pub fn upload(&self, device: &Device, length: usize) -> Result<CudaSlice<u16>> {
        let held: Vec<u16> =
            self.held.chunks_exact(self.capacity).flat_map(|held| &held[..length]).copied().collect();
        device.as_cuda_device()?.clone_htod(&held)
    }
}

/// The number of a row within its window.
fn own(row: usize, beams: usize) -> u16 {
    (row % beams) as u16
}

/// Whether the kernel finds what is known: two rows that share the first one's past.
pub(crate) fn is_right(device: &Device) -> Result<bool> {
    let q = Tensor::new(&[[[[1f32, 0.0]]], [[[0.0, 1.0]]]], device)?;
    let ln_2 = std::f32::consts::LN_2;
    let keys = Tensor::new(&[[[[ln_2, 0.0], [0.0, ln_2]]], [[[9.0, 9.0], [0.0, 0.0]]]], device)?;
    let values = Tensor::new(&[[[[3f32, 6.0], [0.0, 3.0]]], [[[9.0, 9.0], [6.0, 0.0]]]], device)?;
    let mut past = SharedPast::new(2, 2, 2);
    past.reorder(&[0, 0], 1);
    let op = AttendToShared { sources: &past.upload(device, 1)?, beams: 2, before: 1 };
    let found = q.apply_op3_no_bwd(&keys, &values, &op)?.flatten_all()?.to_vec1::<f32>()?;
    // The first row takes two parts of its first value and one of its second; the second row takes as much of the first
    // row's value as of its own.
    let expected = [2.0, 5.0, 4.5, 3.0];
    Ok(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4))
}

/// Attends from queries, (rows, heads, tokens, head width) and scaled, to keys and values, (rows, heads, capacity, head
/// width), whose positions from `before` on are those of the queries' own tokens.
#[derive(Debug)]
pub struct AttendToShared<'a> {
    /// (rows, `before`): in which of the rows of its own window a row's position is.
    pub sources: &'a CudaSlice<u16>,
    /// Rows of a window.
    pub beams: usize,
    /// Positions before the queries.
    pub before: usize,
}

impl CustomOp3 for AttendToShared<'_> {
    fn name(&self) -> &'static str {
        "attend-to-shared"
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
        bail!("the host has an attention of its own")
    }

    fn cuda_fwd(
        &self,
        q: &CudaStorage,
        q_layout: &Layout,
        k: &CudaStorage,
        k_layout: &Layout,
        v: &CudaStorage,
        v_layout: &Layout,
    ) -> Result<(CudaStorage, Shape)> {
        let layouts = [q_layout, k_layout, v_layout];
        match q.dtype() {
            DType::F32 => self.launch::<f32>("attend_f32", [q, k, v], layouts),
            DType::F16 => self.launch::<half::f16>("attend_f16", [q, k, v], layouts),
            DType::BF16 => self.launch::<half::bf16>("attend_bf16", [q, k, v], layouts),
            dtype => bail!("no attention in {dtype:?}"),
        }
    }
}

impl AttendToShared<'_> {
    fn launch<T: CudaDType + DeviceRepr>(
        &self,
        kernel: &str,
        storages: [&CudaStorage; 3],
        layouts: [&Layout; 3],
    ) -> Result<(CudaStorage, Shape)> {
        /// As in the kernel.
        const THREADS: u32 = 128;
        let [q_layout, k_layout, v_layout] = layouts;
        let (rows, heads, tokens, head_width) = q_layout.shape().dims4()?;
        let (cached_rows, cached_heads, capacity, cached_width) = k_layout.shape().dims4()?;
        let fits = (rows, heads, head_width) == (cached_rows, cached_heads, cached_width)
            && k_layout.shape() == v_layout.shape()
            && layouts.iter().all(|layout| layout.is_contiguous())
            && self.before + tokens <= capacity
            && self.beams > 0
            && rows.is_multiple_of(self.beams)
            && self.sources.len() >= rows * self.before;
        if !fits {
            bail!("{q_layout:?} can't attend to {k_layout:?} with {} positions before", self.before);
        }
        let device: &CudaDevice = storages[0].device();
        let view = |number: usize| -> Result<_> {
            Ok(storages[number].as_cuda_slice::<T>()?.slice(layouts[number].start_offset()..))
        };
        let (q, k, v) = (view(0)?, view(1)?, view(2)?);
        let function = device.get_or_load_custom_func(kernel, "steno_attend", kernels::ATTEND)?;
        // SAFETY: the kernel writes every element.
        let out = unsafe { device.alloc::<T>(rows * heads * tokens * head_width)? };
        let numbers = [heads, self.beams, capacity, head_width, self.before].map(|number| number as u32);
        let mut launch = function.builder();
        launch.arg(&q).arg(&k).arg(&v).arg(self.sources).arg(&out);
        for number in &numbers {
            launch.arg(number);
        }
        let config = LaunchConfig {
            grid_dim: ((rows * heads) as u32, tokens as u32, 1),
            block_dim: (THREADS, 1, 1),
            shared_mem_bytes: ((self.before + tokens) * size_of::<f32>()) as u32,
        };
        // SAFETY: the arguments are those of the kernel, which reads within the shapes that were compared above: the
        // state of a decoding names rows of a window only.
        unsafe { launch.launch(config) }.w()?;
        Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), q_layout.shape().clone()))
    }
}
