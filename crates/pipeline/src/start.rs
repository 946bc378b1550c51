use std::path::{Path, PathBuf};

use formats::speaker_footprint;
use memory::fit::{self, BatchLimits};
use memory::ladder::{Installed, LadderSettings, LadderState, Processor};
use memory::{DeviceKind, Footprint, Network, Precision, Situation, Stage};
use wire::{FilePath, Job};

use crate::device_context::DeviceContext;
use crate::loaded::{Loaded, Marker, adapter_name, footprint, name_of, network};
use crate::trouble::{Broken, during};
use crate::{Control, StageError};

/// The models that a job may use, the one that was asked for first.
#[derive(Debug)]
pub struct Models {
    known: Vec<(PathBuf, Installed)>,
    /// Name, precision and network of the one that was asked for.
    name: String,
    precision: Precision,
    network: Network,
    asked: PathBuf,
    adapter: Option<PathBuf>,
}

impl Models {
    /// The host's list; where the job's own model is not on it, that model as
    /// it is and quantised while it is loaded.
    pub fn of(job: &Job, kind: DeviceKind) -> Result<Self, StageError> {
        let path = job.model.as_path();
        let network = network(path)?;
        let precision = match job.precision {
            Some(precision) => precision,
            None => models::stored_precision(path)?.usual_on(kind),
        };
        let mut known: Vec<(PathBuf, Installed)> = job
            .alternatives
            .iter()
            .map(|other| (other.path.as_path().to_owned(), other.installed.clone()))
            .collect();
        let own = known.iter().find(|(known, _)| known == path).map(|(_, installed)| installed.model.clone());
        let name = own.unwrap_or_else(|| name_of(path, &Marker::read(path)));
        for precision in [precision, Precision::Q8_0] {
            let is = |(_, other): &(PathBuf, Installed)| {
                other.model == name && other.precision == precision.as_str()
            };
            if !known.iter().any(is) {
                known.push((path.to_owned(), installed(&name, &network, precision, job)));
            }
        }
        let adapter = job.adapter.as_ref().map(|file| file.as_path().to_owned());
        Ok(Self { known, name, precision, network, asked: path.to_owned(), adapter })
    }

    pub fn installed(&self) -> Vec<Installed> {
        self.known.iter().map(|(_, installed)| installed.clone()).collect()
    }

    /// Has the model that the settings name on the context.
    pub fn load<'a>(
        &self,
        context: &'a mut DeviceContext,
        settings: &LadderSettings,
        control: &Control,
    ) -> Result<&'a Loaded, Broken> {
        let path = self.path(settings);
        let precision = settings.precision.parse().unwrap_or(self.precision);
        let adapter = self.adapter(settings);
        if context.loaded.as_ref().is_none_or(|loaded| !loaded.is(path, adapter, precision)) {
            // The old one goes first: two models at once is what must never be.
            context.unload();
            during(Stage::SpeechModel, context.verify(control))?;
            context.loaded =
                Some(Loaded::load(path, adapter, precision, &context.chosen, &context.device, control)?);
        }
        crate::attempt::loaded(context, Stage::SpeechModel)
    }

    /// What could be changed to need less memory than `settings` do.
    pub fn situation(&self, settings: &LadderSettings) -> Situation {
        let known = || self.known.iter().map(|(_, installed)| installed).filter(|other| other.suits);
        let bytes = |installed: &Installed| match settings.place {
            Processor::Gpu => installed.gpu_bytes,
            Processor::Cpu => installed.host_bytes,
        };
        let now = known()
            .find(|other| other.model == settings.model && other.precision == settings.precision)
            .map(|installed| (bytes(installed), installed.parameters));
        let largest = |smaller: &dyn Fn(&&Installed) -> bool| {
            known().filter(smaller).max_by_key(|installed| bytes(installed)).cloned()
        };
        let lower_precision =
            now.and_then(|(held, _)| largest(&|other| other.model == settings.model && bytes(other) < held));
        let smaller_model = now.and_then(|(_, parameters)| {
            largest(&|other| other.model != settings.model && other.parameters < parameters)
        });
        Situation {
            batch: settings.batch,
            smaller_model: smaller_model.map(|installed| installed.model),
            lower_precision: lower_precision.map(|installed| installed.precision),
        }
    }

    /// The model that the settings name, without loading it.
    pub fn describe(&self, settings: &LadderSettings) -> transcript::Model {
        let demonstration = Marker::read(self.path(settings)).demonstration;
        let (name, precision) = (settings.model.clone(), settings.precision.clone());
        let adapter = self.adapter(settings).map(adapter_name);
        transcript::Model { name, precision, demonstration, adapter }
    }

    /// The adapter of the model that was asked for; a smaller one that takes over has none.
    fn adapter(&self, settings: &LadderSettings) -> Option<&Path> {
        self.adapter.as_deref().filter(|_| self.path(settings) == self.asked)
    }

    fn path(&self, settings: &LadderSettings) -> &Path {
        let is = |(_, other): &&(PathBuf, Installed)| {
            other.model == settings.model && other.precision == settings.precision
        };
        // The first one is the job's own where nothing else is known.
        let found = self.known.iter().find(is).or_else(|| self.known.first());
        found.map_or(Path::new(""), |(path, _)| path.as_path())
    }
}

fn installed(name: &str, network: &Network, precision: Precision, job: &Job) -> Installed {
    Installed {
        model: name.to_owned(),
        precision: precision.as_str().into(),
        parameters: network.parameters().total(),
        gpu_bytes: footprint(network, precision, DeviceKind::Gpu, job).weights,
        host_bytes: footprint(network, precision, DeviceKind::Host, job).weights,
        suits: true,
    }
}

/// The top of the ladder: what was asked for, and as many windows at once as fit.
pub fn state(models: &Models, job: &Job, context: &DeviceContext) -> Result<LadderState, StageError> {
    let kind = context.device.device().kind();
    let place = if context.is_cpu() { Processor::Cpu } else { Processor::Gpu };
    let footprint = footprint(&models.network, models.precision, kind, job);
    let free = context.device.device().read().map_or(u64::MAX, |reading| reading.free);
    let limits = job.memory.batch_limits(kind);
    // Otherwise one window decides where the next one begins.
    let batch = if job.is_batched() { batch(&footprint, free, &limits) } else { 1 };
    let speakers = speaker_footprint(job.speaker_model.as_ref().map(FilePath::as_path), kind);
    let speaker_batch = batch_of_speakers(&speakers, free, job.memory.speaker_batch_size);
    Ok(LadderState::new(LadderSettings {
        model: models.name.clone(),
        precision: models.precision.as_str().into(),
        batch,
        place,
        speakers: job.speakers && !job.memory.skip_speakers,
        speaker_batch,
        speaker_place: place,
    }))
}

/// Windows of different files whose language is detected together. On the host one window keeps all
/// cores busy, so that several are taken only where the user asks for them.
pub fn detection_batch(models: &Models, job: &Job, context: &DeviceContext) -> u32 {
    /// Of the free memory, where the user sets no other share.
    const FRACTION: f64 = 0.125;
    let kind = context.device.device().kind();
    let user = job.memory.batch_size;
    if kind == DeviceKind::Host && user.is_none() {
        return 1;
    }
    let footprint = footprint(&models.network, models.precision, kind, job);
    let free = context.device.device().read().map_or(u64::MAX, |reading| reading.free);
    let limits = job.memory.batch_limits(kind);
    let limits = BatchLimits { buffer_fraction: limits.buffer_fraction.or(Some(FRACTION)), ..limits };
    batch(&footprint, free, &limits)
}

/// Where not even one window fits the ladder decides what to do about it.
fn batch(footprint: &Footprint, free: u64, limits: &BatchLimits) -> u32 {
    fit::batch(footprint, free, limits).windows.max(1)
}

fn batch_of_speakers(footprint: &Footprint, free: u64, most: Option<u32>) -> u32 {
    // On the host more of them keep the cores no busier (docs/measurements.md).
    let useful = if footprint.kind == DeviceKind::Host { 4 } else { 32 };
    let max_useful_batch = most.is_none().then_some(useful);
    let limits = BatchLimits { max_useful_batch, user: most, buffer_fraction: None };
    batch(footprint, free, &limits)
}
