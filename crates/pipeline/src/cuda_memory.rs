//! The memory of an NVIDIA GPU, as its driver and its pool tell it.

use std::fmt;
use std::sync::Arc;

use candle_core::cuda_backend::cudarc::driver::result::{device, mem_pool};
use candle_core::cuda_backend::cudarc::driver::sys::{CUmemPool_attribute, CUmemoryPool};
use candle_core::cuda_backend::cudarc::driver::{CudaContext, DriverError};
use memory::nvml::{Driver, GpuId, NvmlProbe};
use memory::{Cause, Device, DeviceError, DeviceKind, Ours, Probe, ProcessUse, Reading, Unavailable};

/// Watches the pool that candle's tensors come from, and through NVML, where
/// that is there, who else holds what.
pub struct CudaMemory {
    context: Arc<CudaContext>,
    nvml: Option<NvmlProbe>,
}

/// A pool grows and shrinks by blocks of this size.
const POOL_BLOCK: u64 = 32 << 20;

impl CudaMemory {
    pub fn new(context: Arc<CudaContext>) -> Self {
        let nvml = context.uuid().ok().and_then(|uuid| {
            // `c_char` is signed on some machines and unsigned on others.
            #[allow(clippy::unnecessary_cast)]
            let id = GpuId::from_cuda_uuid(uuid.bytes.map(|byte| byte as u8));
            Driver::open().ok()?.probe(id).ok()
        });
        Self { context, nvml }
    }

    fn pool(&self) -> Result<CUmemoryPool, DriverError> {
        // SAFETY: the handle of the device is valid for as long as its context.
        unsafe { device::get_mem_pool(self.context.cu_device()) }
    }

    fn attribute(&self, attribute: CUmemPool_attribute) -> Result<u64, DriverError> {
        let mut value = 0u64;
        // SAFETY: the attributes asked for are all 64 bits wide.
        unsafe { mem_pool::get_attribute(self.pool()?, attribute, (&raw mut value).cast()) }?;
        Ok(value)
    }

    fn ours(&self) -> Result<Ours, DriverError> {
        use CUmemPool_attribute as A;
        Ok(Ours {
            allocated: self.attribute(A::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            reserved: self.attribute(A::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
            fixed: 0,
            peak: Some(self.attribute(A::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)?),
        })
    }
}

impl fmt::Debug for CudaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaMemory").field("ordinal", &self.context.ordinal()).finish_non_exhaustive()
    }
}

impl Probe for CudaMemory {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Gpu
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        let lost = |error: DriverError| Unavailable {
            cause: Cause::DeviceLost,
            reason: format!("The GPU does not say how much memory it has: {error}."),
        };
        let (free, total) = self.context.mem_get_info().map_err(lost)?;
        let (free, total) = (free as u64, total as u64);
        let mut reading = Reading { total, used: total - free.min(total), free, ..Reading::default() };
        // Only a number by process knows of contexts and modules.
        let by_process = self.nvml.as_ref().and_then(|nvml| nvml.read().ok()?.ours).map(|ours| ours.held());
        // A device without pools is allocated from directly.
        reading.attribute(by_process, self.ours().ok());
        Ok(reading)
    }

    fn reset_peak(&self) {
        let mut zero = 0u64;
        let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH;
        if let Ok(pool) = self.pool() {
            // SAFETY: the attribute is 64 bits wide. A peak that is not reset is
            // too high and nothing worse.
            let _ = unsafe { mem_pool::set_attribute(pool, attribute, (&raw mut zero).cast()) };
        }
    }

    fn noise(&self) -> u64 {
        POOL_BLOCK
    }

    fn processes(&self) -> Vec<ProcessUse> {
        self.nvml.as_ref().map(Probe::processes).unwrap_or_default()
    }
}

impl Device for CudaMemory {
    fn synchronise(&self) -> Result<(), DeviceError> {
        self.context.synchronize().map_err(|error| DeviceError(error.to_string()))
    }

    fn trim(&self) -> Result<(), DeviceError> {
        // Without a pool nothing is kept back.
        let Ok(pool) = self.pool() else { return Ok(()) };
        // SAFETY: the pool is the device's own and lives as long as it.
        unsafe { mem_pool::trim_to(pool, 0) }.map_err(|error| DeviceError(error.to_string()))
    }
}
