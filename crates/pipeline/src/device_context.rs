use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use candle_core::Device;
use memory::settings::MemorySettings;
use memory::{Budgeted, DeviceKind, Host, Mark, Tracker, Unwatched};
use wire::{DeviceChoice, Failure};

use crate::Control;
use crate::device::{self, Chosen};
use crate::loaded::Loaded;
use crate::text_embedding::Embedder;

/// Between looks at the host's memory, so that a peak between two checkpoints
/// is seen: the shortest buffer of a layer that matters lives longer than this.
const SAMPLING: Duration = Duration::from_millis(10);

/// What one job after the other works on: the device that computes, what is
/// loaded on it, and who watches its memory and the host's.
#[derive(Debug)]
pub struct DeviceContext {
    /// Kept for the next job with the same model. Freed before what watches it.
    pub loaded: Option<Loaded>,
    /// As `loaded`; never both, as one stage's models are on the device at a time.
    pub embedder: Option<Embedder>,
    pub chosen: Chosen,
    /// Watches the memory of the device that computes.
    pub device: Tracker,
    /// Watches the host's; the same one where the CPU computes.
    pub host: Tracker,
    choice: DeviceChoice,
    settings: Watching,
    marks: Marks,
    /// The device computed what it should.
    verified: bool,
}

type Marks = Arc<Mutex<Vec<Mark>>>;

impl DeviceContext {
    pub fn new(choice: DeviceChoice, settings: &MemorySettings) -> Result<Self, Failure> {
        let chosen = device::choose(choice)?;
        let marks = Marks::default();
        let sink = || {
            let marks = Arc::clone(&marks);
            move |mark: &Mark| marks.lock().unwrap_or_else(PoisonError::into_inner).push(mark.clone())
        };
        let host = |limit: Option<u64>| {
            if !settings.watch {
                return Tracker::with_sink(Unwatched(DeviceKind::Host), sink());
            }
            let host = Host::new().sampled(SAMPLING);
            match limit {
                Some(limit) => Tracker::with_sink(Budgeted::new(host, limit), sink()),
                None => Tracker::with_sink(host, sink()),
            }
        };
        let (device, host) = match &chosen.device {
            Device::Cpu => {
                let limits = [settings.memory_limit, settings.ram_limit];
                let tracker = host(limits.into_iter().flatten().min());
                (tracker.clone(), tracker)
            }
            other => (device::watch(other, settings.memory_limit, sink())?, host(settings.ram_limit)),
        };
        Ok(Self {
            loaded: None,
            embedder: None,
            chosen,
            device,
            host,
            choice,
            settings: Watching::of(settings),
            marks,
            verified: false,
        })
    }

    /// Whether a job that wants `choice` under these limits can work here.
    pub fn suits(&self, choice: DeviceChoice, settings: &MemorySettings) -> bool {
        self.choice == choice && self.settings == Watching::of(settings)
    }

    /// Has the device compute what is known already, once, before it computes a text. Not while it is opened: a card
    /// without room for it is then stepped down from as any other.
    pub fn verify(&mut self, control: &Control) -> Result<(), models::Error> {
        if !self.verified {
            device::self_test(&self.chosen.device, &|| {
                control.worked();
                !control.is_cancelled()
            })?;
            self.verified = true;
        }
        Ok(())
    }

    pub fn is_cpu(&self) -> bool {
        self.chosen.device.is_cpu()
    }

    /// Frees the model, verifies that its memory came back and says so.
    pub fn unload(&mut self) {
        if let Some(loaded) = self.loaded.take() {
            loaded.free();
        }
        if let Some(embedder) = self.embedder.take() {
            embedder.free();
        }
    }

    /// What was seen since the last call.
    pub fn take_marks(&self) -> Vec<Mark> {
        std::mem::take(&mut *self.marks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub fn begin_job(&self) {
        self.device.begin_job();
        if !self.is_cpu() {
            self.host.begin_job();
        }
    }

    pub fn end_job(&self) {
        self.device.end_job();
        if !self.is_cpu() {
            self.host.end_job();
        }
    }

    pub fn renewal(&self) -> Option<memory::Renewal> {
        self.device.renewal().or_else(|| self.host.renewal())
    }
}

/// Settings that a tracker is made for.
#[derive(Debug, PartialEq, Eq)]
struct Watching {
    limits: (Option<u64>, Option<u64>),
    watch: bool,
}

impl Watching {
    fn of(settings: &MemorySettings) -> Self {
        Self { limits: (settings.memory_limit, settings.ram_limit), watch: settings.watch }
    }
}
