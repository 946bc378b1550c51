//! The NVIDIA driver's figures: which process holds how much of which card. Cards are
//! named by UUID or PCI address, never by number: CUDA counts them in another order.

use std::ffi::OsStr;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use serde::{Deserialize, Serialize};

use crate::platform;
use crate::probe::{Cause, DeviceKind, Probe, ProcessUse, Reading, Unavailable};

/// A card by a name that the driver and CUDA share.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuId {
    /// `GPU-8-4-4-4-12` in hexadecimal digits.
    Uuid(String),
    /// `00000000:01:00.0`: domain, bus, device, function.
    Pci(String),
}

impl GpuId {
    /// From the sixteen bytes that CUDA gives (`cuDeviceGetUuid`).
    pub fn from_cuda_uuid(bytes: [u8; 16]) -> Self {
        let mut text = String::from("GPU-");
        for (index, byte) in bytes.iter().enumerate() {
            if [4, 6, 8, 10].contains(&index) {
                text.push('-');
            }
            text.push_str(&format!("{byte:02x}"));
        }
        Self::Uuid(text)
    }
}

impl fmt::Display for GpuId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uuid(name) | Self::Pci(name) => f.write_str(name),
        }
    }
}

/// A card as the driver describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// As in [`GpuId::Uuid`].
    pub uuid: String,
    /// As in [`GpuId::Pci`].
    pub pci: String,
    /// The name that its vendor gave it.
    pub name: String,
    /// Bytes.
    pub total: u64,
    /// What is free of `total`.
    pub free: u64,
    /// Its compute capability, generation and step; `None` where the driver does not say.
    #[serde(default)]
    pub capability: Option<(u32, u32)>,
}

/// The driver's management library (NVML), loaded at run time.
#[derive(Debug, Clone)]
pub struct Driver {
    nvml: Arc<Nvml>,
}

impl Driver {
    /// The installed driver's library.
    ///
    /// # Errors
    ///
    /// Fails with [`Unavailable`] where there is no driver, or none that works.
    pub fn open() -> Result<Self, Unavailable> {
        Self::from(Nvml::init())
    }

    /// A library of another name or place.
    ///
    /// # Errors
    ///
    /// As [`Self::open`].
    pub fn open_library(library: &OsStr) -> Result<Self, Unavailable> {
        Self::from(Nvml::builder().lib_path(library).init())
    }

    fn from(nvml: Result<Nvml, NvmlError>) -> Result<Self, Unavailable> {
        Ok(Self { nvml: Arc::new(nvml.map_err(|error| unavailable(&error, None))?) })
    }

    /// The driver's own version, such as `580.65.06`.
    pub fn version(&self) -> Option<String> {
        self.nvml.sys_driver_version().ok()
    }

    /// Every card that can be read, in the order of their places on the bus.
    ///
    /// # Errors
    ///
    /// Fails with [`Unavailable`] where the driver does not answer at all.
    pub fn gpus(&self) -> Result<Vec<Gpu>, Unavailable> {
        let count = self.nvml.device_count().map_err(|error| unavailable(&error, None))?;
        let describe = |index| {
            let device = self.nvml.device_by_index(index)?;
            let memory = device.memory_info()?;
            Ok::<_, NvmlError>(Gpu {
                uuid: device.uuid()?,
                pci: device.pci_info()?.bus_id,
                name: device.name()?,
                total: memory.total,
                free: memory.free,
                capability: device.cuda_compute_capability().ok().and_then(|found| {
                    Some((u32::try_from(found.major).ok()?, u32::try_from(found.minor).ok()?))
                }),
            })
        };
        // A card that has failed must not hide the others.
        Ok((0..count).filter_map(|index| describe(index).ok()).collect())
    }

    /// A probe of one card. This process is taken to be ours.
    ///
    /// # Errors
    ///
    /// Fails with [`Unavailable`] where the card is not there or can't be read.
    pub fn probe(&self, id: GpuId) -> Result<NvmlProbe, Unavailable> {
        let probe =
            NvmlProbe { nvml: Arc::clone(&self.nvml), id, ours: Mutex::new(vec![std::process::id()]) };
        probe.read()?;
        Ok(probe)
    }
}

/// Reads one card.
#[derive(Debug)]
pub struct NvmlProbe {
    nvml: Arc<Nvml>,
    id: GpuId,
    ours: Mutex<Vec<u32>>,
}

impl NvmlProbe {
    /// The processes that count as ours: this one and its engines.
    pub fn set_ours(&self, pids: Vec<u32>) {
        *self.ours.lock().unwrap_or_else(PoisonError::into_inner) = pids;
    }

    /// The card that it reads.
    pub fn id(&self) -> &GpuId {
        &self.id
    }

    fn device(&self) -> Result<nvml_wrapper::Device<'_>, Unavailable> {
        match &self.id {
            GpuId::Uuid(uuid) => self.nvml.device_by_uuid(uuid.as_str()),
            GpuId::Pci(address) => self.nvml.device_by_pci_bus_id(address.as_str()),
        }
        .map_err(|error| unavailable(&error, Some(&self.id)))
    }
}

impl Probe for NvmlProbe {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Gpu
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        let memory = self.device()?.memory_info().map_err(|error| unavailable(&error, Some(&self.id)))?;
        let mut reading = Reading {
            total: memory.total,
            // What the driver reserves for itself counts as used.
            used: memory.total.saturating_sub(memory.free),
            free: memory.free,
            ..Reading::default()
        };
        let ours: Vec<ProcessUse> = self.processes().into_iter().filter(|process| process.ours).collect();
        // Where only part of our processes is accounted for, the sum would be
        // a wrong figure rather than none.
        let held: Option<u64> = ours.iter().map(|process| process.bytes).sum();
        reading.attribute(held.filter(|_| !ours.is_empty()), None);
        Ok(reading)
    }

    fn processes(&self) -> Vec<ProcessUse> {
        let Ok(device) = self.device() else { return Vec::new() };
        let ours = self.ours.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut listed = device.running_compute_processes().unwrap_or_default();
        listed.extend(device.running_graphics_processes().unwrap_or_default());
        merge(&listed, &ours)
    }
}

/// One entry per process: one that computes and draws is in both lists, with
/// the same figure.
fn merge(listed: &[ProcessInfo], ours: &[u32]) -> Vec<ProcessUse> {
    let mut found: Vec<ProcessUse> = Vec::new();
    for process in listed {
        let bytes = match process.used_gpu_memory {
            UsedGpuMemory::Used(bytes) => Some(bytes),
            UsedGpuMemory::Unavailable => None,
        };
        match found.iter_mut().find(|known| known.pid == process.pid) {
            Some(known) => known.bytes = known.bytes.max(bytes),
            None => found.push(ProcessUse {
                pid: process.pid,
                bytes,
                name: platform::process_name(process.pid),
                ours: ours.contains(&process.pid),
            }),
        }
    }
    found
}

fn unavailable(error: &NvmlError, id: Option<&GpuId>) -> Unavailable {
    let (cause, reason) = match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => {
            (Cause::NoLibrary, "No NVIDIA driver is installed on this machine.".to_owned())
        }
        NvmlError::DriverNotLoaded => (
            Cause::NoDriver,
            "The NVIDIA driver is installed but does not run; restarting the machine usually helps."
                .to_owned(),
        ),
        NvmlError::LibRmVersionMismatch => (
            Cause::VersionMismatch,
            "The NVIDIA driver was updated while it was running; restart the machine.".to_owned(),
        ),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => (
            Cause::VersionMismatch,
            "The NVIDIA driver is too old to say how much memory is in use; version 510 or newer is needed."
                .to_owned(),
        ),
        NvmlError::NoPermission | NvmlError::OperatingSystem => {
            (Cause::NoPermission, "This user may not ask the NVIDIA driver.".to_owned())
        }
        NvmlError::NotFound | NvmlError::InvalidArg => (
            Cause::NoSuchDevice,
            match id {
                Some(id) => format!("There is no NVIDIA card {id} in this machine."),
                None => "There is no NVIDIA card in this machine.".to_owned(),
            },
        ),
        NvmlError::GpuLost | NvmlError::ResetRequired | NvmlError::IrqIssue | NvmlError::Timeout => {
            (Cause::DeviceLost, "The NVIDIA card stopped answering; restart the machine.".to_owned())
        }
        other => {
            (Cause::Other, format!("The NVIDIA driver does not say how much memory is in use: {other}."))
        }
    };
    Unavailable { cause, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuda_and_the_driver_agree_on_a_cards_name() {
        let bytes = [0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 0, 1, 2, 3, 4, 5, 6, 0xff];
        assert_eq!(GpuId::from_cuda_uuid(bytes).to_string(), "GPU-12345678-9abc-def0-0001-0203040506ff");
    }

    #[test]
    fn without_a_driver_the_answer_is_a_sentence() {
        let error = Driver::open_library(OsStr::new("libnvidia-ml-that-is-not-there.so")).unwrap_err();
        assert_eq!(error.cause, Cause::NoLibrary);
        assert_eq!(error.reason, "No NVIDIA driver is installed on this machine.");
    }
}
