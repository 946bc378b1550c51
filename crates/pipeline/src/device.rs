use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::Device;
use memory::{Mark, Tracker};
use models::Tick;
use wire::notice::CardProblem;
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
    /// A card that is there and can't be used, and why.
    pub unusable: Option<(String, CardProblem)>,
}

/// Why a card is not opened.
#[derive(Debug)]
pub struct NotOpened {
    /// A sentence.
    reason: String,
    /// Where there is a card.
    problem: Option<CardProblem>,
}

impl From<String> for NotOpened {
    fn from(reason: String) -> Self {
        Self { reason, problem: None }
    }
}

impl From<CardProblem> for NotOpened {
    fn from(problem: CardProblem) -> Self {
        Self { reason: problem.text(), problem: Some(problem) }
    }
}

impl Chosen {
    fn cpu(reason: String) -> Self {
        Self { device: Device::Cpu, id: "cpu".into(), cpu_reason: Some(reason), unusable: None }
    }

    /// The CPU, as the card has this problem.
    pub fn without_card(self, problem: CardProblem) -> Self {
        Self { unusable: Some((self.id, problem.clone())), ..Self::cpu(problem.text()) }
    }

    fn cuda(number: usize, device: Device) -> Self {
        Self { device, id: format!("cuda:{number}"), cpu_reason: None, unusable: None }
    }
}

pub fn choose(choice: DeviceChoice) -> Result<Chosen, Failure> {
    if choice != DeviceChoice::Cpu && is_lost() {
        // By these words a host knows that another engine may succeed (`memory::death`).
        let text = "The graphics card failed with a CUDA error earlier. The engine has to be started anew.";
        return Err(Failure::new(ErrorCode::DeviceUnavailable, text));
    }
    match choice {
        DeviceChoice::Cpu => Ok(Chosen::cpu("The CPU was chosen.".into())),
        DeviceChoice::Auto => Ok(card_or_cpu(0)),
        DeviceChoice::First(number) => Ok(card_or_cpu(number)),
        DeviceChoice::Cuda(number) => {
            open_cuda(number).map(|device| Chosen::cuda(number, device)).map_err(|not_opened| {
                let text = format!("cuda:{number} can't be used. {}", not_opened.reason);
                Failure::new(ErrorCode::DeviceUnavailable, text).remedy("Use --device cpu, or auto.")
            })
        }
    }
}

/// The first card that can be used, else the CPU and what is wrong with the first one; `None` after a card failed.
pub fn first_usable() -> Option<Chosen> {
    if is_lost() {
        return None;
    }
    let first = card_or_cpu(0);
    // Behind a card that is there and can't be used there may be another one.
    let others = (1..).map(card_or_cpu).take_while(|_| first.unusable.is_some());
    let usable =
        others.take_while(|next| next.id != "cpu" || next.unusable.is_some()).find(|next| next.id != "cpu");
    Some(usable.unwrap_or(first))
}

fn card_or_cpu(number: usize) -> Chosen {
    match open_cuda(number) {
        Ok(device) => Chosen::cuda(number, device),
        Err(NotOpened { reason, problem }) => {
            let unusable = problem.map(|problem| (format!("cuda:{number}"), problem));
            Chosen { unusable, ..Chosen::cpu(reason) }
        }
    }
}

/// Whether a card failed in this process, to which its driver then allows nothing more.
static LOST: AtomicBool = AtomicBool::new(false);

/// A card failed: none is opened in this process any more.
pub fn lose() {
    LOST.store(true, Ordering::Relaxed);
}

/// Whether a card failed in this process.
pub fn is_lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

#[cfg(feature = "cuda")]
fn open_cuda(number: usize) -> Result<Device, NotOpened> {
    use models::card::{Capability, built_for, is_served};

    let refused = |text: &dyn std::fmt::Display| -> NotOpened {
        let text = text.to_string();
        let line = text.lines().next().unwrap_or_default();
        if line.contains("CUDA_ERROR_NO_DEVICE") {
            "There is no NVIDIA card here that can be used, or no driver for it.".to_owned().into()
        } else {
            format!("The NVIDIA driver or a CUDA library refused: {line}.").into()
        }
    };
    // One stream for all: tensors of candle's per-thread streams are unordered.
    let device = Device::new_cuda_with_stream(number).map_err(|error| refused(&first_line(&error)))?;
    let cuda = device.as_cuda_device().map_err(|error| refused(&error))?;
    // SAFETY: every tensor is used on this one stream, in order, so that no events between streams are needed. They
    // would be seven of eight calls of the driver.
    unsafe { cuda.disable_event_tracking() };
    let capability = Capability::of(&device).map_err(|error| refused(&error))?;
    if !is_served(capability) {
        let card = cuda.cuda_stream().context().name().unwrap_or_else(|_| format!("cuda:{number}"));
        let built_for = built_for().iter().map(ToString::to_string).collect();
        return Err(CardProblem::Capability { card, found: capability.to_string(), built_for }.into());
    }
    Ok(device)
}

/// A card as jobs open it, for tests and measurements.
///
/// # Errors
/// Why it can't be used, in a sentence.
#[cfg(feature = "cuda")]
pub fn open_card(number: usize) -> Result<Device, String> {
    open_cuda(number).map_err(|not_opened| not_opened.reason)
}

/// Has a card compute what is known already.
pub fn self_test(device: &Device, tick: &Tick) -> Result<(), models::Error> {
    if device.is_cuda() { models::card::self_test(device, tick) } else { Ok(()) }
}

#[cfg(not(feature = "cuda"))]
fn open_cuda(_number: usize) -> Result<Device, NotOpened> {
    let reason = match has_nvidia_card(std::path::Path::new("/sys/bus/pci/devices")) {
        Some(false) => "There is no NVIDIA graphics card here.",
        _ => "This engine is built for the CPU; the one for NVIDIA cards is steno-engine-cuda.",
    };
    Err(reason.to_owned().into())
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
