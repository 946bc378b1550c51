//! What several unit tests begin with.

use crate::bytes::GIB;
use crate::simulated::Allocation;
use crate::{Demand, DeviceKind, Scope, Simulated, Stage, Tracker};

/// An empty card of 8 GB, and what watches it.
pub fn card() -> (Simulated, Tracker) {
    let device = Simulated::new(DeviceKind::Gpu, 8 * GIB);
    (device.clone(), Tracker::new(device))
}

/// Begins a job on `tracker` and loads a model of 1 GB.
pub fn load_model(device: &Simulated, tracker: &Tracker) -> (Scope, Allocation) {
    tracker.begin_job();
    let mut model = Scope::enter(tracker, Stage::SpeechModel, Demand::new("tiny", GIB)).unwrap();
    let weights = device.allocate(GIB).unwrap();
    model.loaded();
    (model, weights)
}
