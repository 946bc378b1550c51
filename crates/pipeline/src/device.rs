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
        DeviceChoice::Cpu => Ok(cpu(Some("The CPU was chosen.".into()))),
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
    Err(match has_nvidia_card(std::path::Path::new("/sys/bus/pci/devices")) {
        Some(false) => "There is no NVIDIA graphics card here.".into(),
        _ => "This engine is built for the CPU; the one for NVIDIA cards is steno-engine-cuda.".into(),
    })
}

/// Whether a graphics card of NVIDIA's is among the PCI devices of this folder; `None` where the
/// system has no such folder.
#[cfg(not(feature = "cuda"))]
fn has_nvidia_card(devices: &std::path::Path) -> Option<bool> {
    const NVIDIA: &str = "0x10de";
    /// The class of display controllers, in the upper byte of three.
    const DISPLAY: &str = "0x03";
    let entries = std::fs::read_dir(devices).ok()?;
    let is_card = |device: &std::path::Path| {
        let is = |file: &str, what: &str| {
            std::fs::read_to_string(device.join(file)).is_ok_and(|text| text.trim().starts_with(what))
        };
        is("vendor", NVIDIA) && is("class", DISPLAY)
    };
    Some(entries.flatten().any(|entry| is_card(&entry.path())))
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

#[cfg(all(test, not(feature = "cuda")))]
mod tests {
    use super::has_nvidia_card;

    #[test]
    fn a_card_is_a_display_controller_of_nvidias() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(has_nvidia_card(&folder.path().join("none")), None);
        let device = |name: &str, vendor: &str, class: &str| {
            let device = folder.path().join(name);
            std::fs::create_dir(&device).unwrap();
            std::fs::write(device.join("vendor"), format!("{vendor}\n")).unwrap();
            std::fs::write(device.join("class"), format!("{class}\n")).unwrap();
        };
        // A card of another maker, and the sound output of one of NVIDIA's.
        device("0000:00:02.0", "0x8086", "0x030000");
        device("0000:01:00.1", "0x10de", "0x040300");
        assert_eq!(has_nvidia_card(folder.path()), Some(false));
        // 3D controller, as cards for computing are.
        device("0000:01:00.0", "0x10de", "0x030200");
        assert_eq!(has_nvidia_card(folder.path()), Some(true));
    }
}
