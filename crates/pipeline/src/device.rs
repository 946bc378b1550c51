use candle_core::Device;
use memory::{Mark, Tracker};
use wire::{DeviceChoice, ErrorCode, Failure};

#[cfg(feature = "cuda")]
use crate::{cuda_memory::CudaMemory, error::first_line};

/// The device that computes, its id (`cpu`, `cuda:N`), and why it is the CPU
/// where a GPU was wished for.
#[derive(Debug, Clone)]
pub struct Chosen {
    pub device: Device,
    pub id: String,
    pub cpu_reason: Option<String>,
}

pub fn choose(choice: DeviceChoice) -> Result<Chosen, Failure> {
    let cpu = |reason: Option<String>| Chosen { device: Device::Cpu, id: "cpu".into(), cpu_reason: reason };
    match choice {
        DeviceChoice::Cpu => Ok(cpu(Some("The CPU was asked for.".into()))),
        DeviceChoice::Auto => Ok(match open_cuda(0) {
            Ok(device) => Chosen { device, id: "cuda:0".into(), cpu_reason: None },
            Err(reason) => cpu(Some(reason)),
        }),
        DeviceChoice::Cuda(number) => open_cuda(number)
            .map(|device| Chosen { device, id: format!("cuda:{number}"), cpu_reason: None })
            .map_err(|reason| {
                Failure::new(ErrorCode::DeviceUnavailable, format!("cuda:{number} can't be used. {reason}"))
                    .remedy("Use --device cpu, or auto.")
            }),
    }
}

/// The reason is a sentence.
#[cfg(feature = "cuda")]
fn open_cuda(number: usize) -> Result<Device, String> {
    // One stream for all: tensors of candle's per-thread streams are unordered.
    Device::new_cuda_with_stream(number).map_err(|error| {
        let line = first_line(&error);
        if line.contains("CUDA_ERROR_NO_DEVICE") {
            "There is no NVIDIA card here that can be used, or no driver for it.".into()
        } else {
            format!("The NVIDIA driver or a CUDA library refused: {line}.")
        }
    })
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_number: usize) -> Result<Device, String> {
    Err("This engine is built for the CPU; the one for NVIDIA cards is steno-engine-cuda.".into())
}

/// Watches the memory of a GPU, under a limit where there is one, in bytes.
#[cfg(feature = "cuda")]
pub fn watch(
    device: &Device,
    limit: Option<u64>,
    sink: impl Fn(&Mark) + Send + Sync + 'static,
) -> Result<Tracker, Failure> {
    let Ok(cuda) = device.as_cuda_device() else {
        return Err(Failure::new(ErrorCode::Internal, "The device is none of NVIDIA's."));
    };
    let memory = CudaMemory::new(std::sync::Arc::clone(cuda.cuda_stream().context()));
    Ok(match limit {
        Some(limit) => Tracker::with_sink(memory::Budgeted::new(memory, limit), sink),
        None => Tracker::with_sink(memory, sink),
    })
}

#[cfg(not(feature = "cuda"))]
pub fn watch(
    _device: &Device,
    _limit: Option<u64>,
    _sink: impl Fn(&Mark) + Send + Sync + 'static,
) -> Result<Tracker, Failure> {
    Err(Failure::new(ErrorCode::DeviceUnavailable, "This engine is built for the CPU."))
}
