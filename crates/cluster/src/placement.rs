//! Which models a worker takes jobs for.

use advisor::fit::{DeviceMemory, ModelFit, expects_gpu};
use advisor::{JobTemplate, ModelRef};
use config::Preferences;
use memory::fit::Fit;
use serde::{Deserialize, Serialize};
use wire::{DeviceChoice, Failure, Job, NO_JOB};

/// A model that is installed on a worker's machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its name.
    pub model: String,
    /// Bytes that it needs at the least.
    pub needs: u64,
    /// Whether it fits: only then does the worker take jobs for it.
    pub fits: bool,
}

/// Each model against what is free on the device now, and the device. To be asked while no engine of this program
/// holds memory. A model that can't be read is left out.
///
/// # Errors
/// Where the system or the driver does not say what is free.
pub fn offers(
    models: &[ModelRef],
    preferences: &Preferences,
    device: DeviceChoice,
) -> Result<(DeviceMemory, Vec<Offer>), Failure> {
    let memory =
        DeviceMemory::of(expects_gpu(device), device, &preferences.memory).map_err(|unavailable| {
            let message = format!("The memory of this machine can't be read ({}).", unavailable.reason);
            Failure::new(wire::ErrorCode::DeviceUnavailable, message)
                .remedy("Choose another device with --device.")
        })?;
    let offer = |model: &ModelRef| {
        let mut job = Job::new(NO_JOB, "", model.path.as_path());
        job.device = device;
        let job = JobTemplate::new(preferences.clone(), model.clone(), device).fill(job);
        let fit = ModelFit::read(&model.name, &model.path, &job, &memory).ok()?;
        let fits = fit.check.fit != Fit::DoesNotFit;
        Some(Offer { model: model.name.clone(), needs: fit.check.peak, fits })
    };
    let offers = models.iter().filter_map(offer).collect();
    Ok((memory, offers))
}
