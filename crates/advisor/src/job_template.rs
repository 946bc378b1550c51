//! What the jobs of one queue have of memory.

use std::path::Path;

use memory::DeviceKind;
use wire::{DeviceChoice, FilePath, Job};

use crate::adapters::Adapters;
use crate::alternatives::useful_batch;
use crate::fit::{Announcement, DeviceMemory, expects_gpu};
use crate::{ModelRef, alternatives, find_speaker_model, list_models};
use config::Preferences;
use supervisor::find_engine;

/// The folder of the model that the user wants to tell speakers apart with; `None`: the
/// one in the program. One that is not there is named all the same: its job says so.
pub fn speaker_model(preferences: &Preferences) -> Option<FilePath> {
    let wanted = preferences.speaker_model.as_deref()?;
    Some(
        find_speaker_model(wanted)
            .map_or_else(|_| FilePath::from(Path::new(wanted)), |model| model.path.into()),
    )
}

/// The user's wishes, the model that was chosen, and what may take over from it.
#[derive(Debug, Clone)]
pub struct JobTemplate {
    preferences: Preferences,
    model: ModelRef,
    installed: Vec<ModelRef>,
    /// Folder of the model that tells speakers apart.
    speaker_model: Option<FilePath>,
    /// Where the jobs can be expected to compute.
    kind: DeviceKind,
}

impl JobTemplate {
    /// For jobs with `model` on the device of that choice. Looks for the installed
    /// models.
    pub fn new(preferences: Preferences, model: ModelRef, device: DeviceChoice) -> Self {
        let kind = if expects_gpu(device) { DeviceKind::Gpu } else { DeviceKind::Host };
        let speaker_model = speaker_model(&preferences);
        Self { preferences, model, installed: list_models(), speaker_model, kind }
    }

    /// Adds to a job what the user wants of memory and of the engine, and which models may take
    /// over. To be called when everything else of the job is set.
    pub fn fill(&self, mut job: Job) -> Job {
        job.threads = self.preferences.engine.threads;
        job.memory = self.preferences.memory.clone();
        job.speaker_model.clone_from(&self.speaker_model);
        job.precision = self.preferences.precision;
        job.adapter = Adapters::switched_on(job.model.as_path());
        job.alternatives = alternatives(&self.model, &self.installed, &job, self.kind);
        job.memory.useful_batch = useful_batch(&self.model, &job, self.kind);
        job
    }

    /// Whether the model fits into what is free now, to be told before a queue
    /// starts. `None` for a model that can't be read and where there is no
    /// engine: the job itself says so. `None` too for a device that can't be
    /// ask.
    pub fn announcement(&self, job: &Job) -> Option<Announcement> {
        find_engine().ok()?;
        let device = DeviceMemory::of(self.kind == DeviceKind::Gpu, job.device, &job.memory).ok()?;
        Announcement::of(&self.model.name, job, device).ok()
    }
}
