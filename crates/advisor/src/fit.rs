//! Whether a model fits into what is free now, told before it is loaded.

use std::path::Path;

use formats::speaker_footprint;
use memory::fit::{self, BatchLimits, Candidate, Fit, FitCheck};
use memory::nvml::Gpu;
use memory::settings::MemorySettings;
use memory::{
    Checkpoint, DeviceKind, Footprint, Host, Mark, Message, Notice, Precision, Probe, Stage, Unavailable,
};
use serde::Serialize;
use wire::{Alternative, DeviceChoice, FilePath, Job};

use crate::model_info;
use supervisor::find;
use supervisor::status::Gpus;

/// Where a job would compute, and what is free there. Bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct DeviceMemory {
    /// Whether it is a GPU or the host.
    pub kind: DeviceKind,
    /// To follow "on": `the CPU`, or a card's name.
    pub name: String,
    /// Free now, within the user's limits.
    pub free: u64,
    /// In all, within the user's limits.
    pub total: u64,
}

/// Whether a job with this choice can be expected to compute on a GPU, as far
/// as that shows without starting an engine.
pub fn expects_gpu(choice: DeviceChoice) -> bool {
    let is_cuda = |program: std::path::PathBuf| program.to_string_lossy().contains("steno-engine-cuda");
    if choice == DeviceChoice::Cpu || !find::find_engine().is_ok_and(is_cuda) {
        return false;
    }
    let gpus = Gpus::now(Vec::new());
    // Where the driver does not say which cards there are, the engine may find one all the same.
    gpus.cards.is_empty() || gpus.card(choice).is_some()
}

impl DeviceMemory {
    /// The device of a job: on a GPU where `gpu` says that the engine computes on
    /// one, else on the host; no more than the settings' limits.
    ///
    /// # Errors
    /// Where the driver or the system does not say what is free, or there is no
    /// such card.
    pub fn of(gpu: bool, choice: DeviceChoice, settings: &MemorySettings) -> Result<Self, Unavailable> {
        if gpu {
            let gpus = Gpus::now(Vec::new());
            let card = gpus.card(choice).ok_or_else(|| Unavailable {
                cause: memory::Cause::NoSuchDevice,
                reason: gpus.gpu_problem.clone().unwrap_or_else(|| match choice {
                    DeviceChoice::Cuda(number) => format!("There is no card cuda:{number} that can compute."),
                    _ => "There is no NVIDIA card in this machine.".into(),
                }),
            })?;
            return Ok(Self::of_card(&card.gpu, settings));
        }
        let reading = Host::new().read()?;
        let device =
            Self { kind: DeviceKind::Host, name: "the CPU".into(), free: reading.free, total: reading.total };
        // The device that computes is the host itself: both limits hold.
        Ok(device.limited(settings.memory_limit).limited(settings.ram_limit))
    }

    /// A card, within the settings' limit.
    pub(crate) fn of_card(card: &Gpu, settings: &MemorySettings) -> Self {
        let device =
            Self { kind: DeviceKind::Gpu, name: card.name.clone(), free: card.free, total: card.total };
        device.limited(settings.memory_limit)
    }

    fn limited(self, limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(u64::MAX);
        Self { free: self.free.min(limit), total: self.total.min(limit), ..self }
    }
}

/// What a model needs for a job, against the device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFit {
    /// The model's name.
    pub model: String,
    /// How its weights would be held.
    pub precision: String,
    /// The prediction against what is free.
    pub check: FitCheck,
    /// Windows that fit together, no more than make anything faster; 0: not
    /// even one fits.
    pub largest_batch: u32,
}

/// What telling speakers apart takes, where the job asks for it.
fn speakers_of(job: &Job, kind: DeviceKind) -> Option<Footprint> {
    let folder = job.speaker_model.as_ref().map(FilePath::as_path);
    (job.speakers && !job.memory.skip_speakers).then(|| speaker_footprint(folder, kind))
}

impl ModelFit {
    /// `batch` windows at a time where the user wants so many, else one: what
    /// the model needs at the least.
    pub fn of(model: &str, precision: &str, footprint: &Footprint, job: &Job, device: &DeviceMemory) -> Self {
        let limits = batch_limits(job, device.kind);
        let largest = fit::batch(footprint, device.free, &limits).windows;
        let speakers = speakers_of(job, device.kind);
        let batch = job.memory.batch_size.filter(|_| job.is_batched()).unwrap_or(1);
        Self {
            model: model.to_owned(),
            precision: precision.to_owned(),
            check: fit::check(footprint, speakers.as_ref(), device.free, batch),
            largest_batch: largest,
        }
    }

    /// As [`ModelFit::of`], for the model in a folder.
    ///
    /// # Errors
    /// As [`crate::model_info::read`].
    pub fn read(model: &str, folder: &Path, job: &Job, device: &DeviceMemory) -> Result<Self, wire::Failure> {
        let network = model_info::read(folder)?;
        let precision = job.precision.unwrap_or_else(|| network.usual(device.kind));
        let footprint = model_info::footprint(&network, device.kind, precision, job);
        Ok(Self::of(model, precision.as_str(), &footprint, job, device))
    }

    /// One word or three.
    pub fn word(&self) -> &'static str {
        match self.check.fit {
            Fit::Comfortable => "fits",
            Fit::Tight => "just fits",
            Fit::DoesNotFit => "does not fit",
        }
    }

    fn windows(&self) -> String {
        match self.largest_batch {
            1 => "one window at a time".into(),
            windows => format!("up to {windows} windows at once"),
        }
    }
}

/// What a queue is told before it starts: the model's fit, and where it does
/// not fit, the largest of the job's alternatives that does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Announcement {
    /// Where the job would compute, and what is free there.
    pub device: DeviceMemory,
    /// Of the job's own model.
    pub fit: ModelFit,
    /// What fits, where the job's own model does not.
    pub instead: Option<ModelFit>,
    /// The user's limit in bytes, where it is lower than what would be free without it.
    pub limit: Option<u64>,
}

impl Announcement {
    /// `model` is what the job's model is called.
    ///
    /// # Errors
    /// Where the driver or the system does not say what is free, or there is no
    /// such card.
    pub fn of(model: &str, job: &Job, device: DeviceMemory) -> Result<Self, wire::Failure> {
        let fit = ModelFit::read(model, job.model.as_path(), job, &device)?;
        let instead = (fit.check.fit == Fit::DoesNotFit).then(|| instead(job, &device)).flatten();
        let limits =
            [job.memory.memory_limit, job.memory.ram_limit.filter(|_| device.kind == DeviceKind::Host)];
        let limit = limits.into_iter().flatten().min().filter(|limit| *limit <= device.free);
        Ok(Self { device, fit, instead, limit })
    }

    /// In a line.
    pub fn text(&self) -> String {
        let Self { device, fit, .. } = self;
        let reason = match fit.check.fit {
            Fit::DoesNotFit => match self.limit {
                Some(limit) => fit.check.reason_of_limit(limit),
                None => fit.check.reason(),
            },
            _ => format!("{} {}.", fit.check.reason(), capital(&fit.windows())),
        };
        format!("{} ({}) on {}: {}. {reason}", fit.model, fit.precision, device.name, fit.word())
    }

    /// What is to be warned of: that it will not fit, and what will be done.
    pub fn notice(&self) -> Option<Notice> {
        if self.fit.check.fit != Fit::DoesNotFit {
            return None;
        }
        let instead = match &self.instead {
            Some(other) if other.model == self.fit.model && other.precision == self.fit.precision => {
                format!("With {} it fits.", other.windows())
            }
            Some(other) => format!("{} ({}) fits, {}.", other.model, other.precision, other.windows()),
            None => "None of the installed models for this job fits.".into(),
        };
        let remedy = if self.limit.is_some() { "raise the limit" } else { "close other programs" };
        let text = format!(
            "{} {instead} The job starts anyway and continues in smaller steps. To avoid that, {remedy} or choose a \
             smaller model.",
            self.text()
        );
        let (model, precision) = (self.fit.model.clone(), self.fit.precision.clone());
        Some(Message::WillNotFit { model, precision, detail: text }.into())
    }
}

/// The best of the job's alternatives that fits; its own model with a smaller
/// batch goes before all others.
fn instead(job: &Job, device: &DeviceMemory) -> Option<ModelFit> {
    let mut open: Vec<(&Alternative, Footprint)> = job
        .alternatives
        .iter()
        .filter(|alternative| alternative.installed.suits)
        .filter_map(|alternative| {
            let precision: Precision = alternative.installed.precision.parse().ok()?;
            let network = model_info::read(alternative.path.as_path()).ok()?;
            Some((alternative, model_info::footprint(&network, device.kind, precision, job)))
        })
        .collect();
    open.sort_by_key(|(alternative, footprint)| {
        let own = alternative.path == job.model;
        std::cmp::Reverse((own, alternative.installed.parameters, footprint.weights))
    });
    let name = |alternative: &Alternative| {
        format!("{} {}", alternative.installed.model, alternative.installed.precision)
    };
    let candidates: Vec<Candidate> = open
        .iter()
        .map(|(alternative, footprint)| Candidate { name: name(alternative), footprint: *footprint })
        .collect();
    let speakers = speakers_of(job, device.kind);
    let limits = batch_limits(job, device.kind);
    let (found, batch, check) = fit::best_that_fits(&candidates, speakers.as_ref(), device.free, &limits)?;
    let (alternative, _) = open.iter().find(|(alternative, _)| name(alternative) == found.name)?;
    Some(ModelFit {
        model: alternative.installed.model.clone(),
        precision: alternative.installed.precision.clone(),
        check,
        largest_batch: batch.windows,
    })
}

/// One window decides where the next one begins, unless they are batched.
fn batch_limits(job: &Job, kind: DeviceKind) -> BatchLimits {
    let limits = job.memory.batch_limits(kind);
    if job.is_batched() { limits } else { BatchLimits { user: Some(1), ..limits } }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// The highest bytes that this program held in each stage, by what an engine
/// reported; stages in the order in which they were entered.
pub fn used(marks: &[Mark]) -> Vec<(Stage, u64)> {
    let mut highest: Vec<(Stage, u64)> = Vec::new();
    for mark in marks {
        let Mark::Sample(sample) = mark else { continue };
        let (Some(levels), Some(stage)) = (sample.levels, stage_before(sample.checkpoint)) else { continue };
        let held = levels.peak.max(levels.reserved) + levels.fixed;
        match highest.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, most)) => *most = held.max(*most),
            None => highest.push((stage, held)),
        }
    }
    highest
}

/// The stage that worked until a checkpoint: a sample's peak is that of the
/// time since the sample before it.
fn stage_before(checkpoint: Checkpoint) -> Option<Stage> {
    use Checkpoint as C;
    Some(match checkpoint {
        C::AfterPreprocess => Stage::Preprocess,
        C::AfterSpeechModelLoad => Stage::SpeechModel,
        C::Batch | C::AfterTranscribe => Stage::Transcribe,
        C::AfterSpeakerModelLoad => Stage::SpeakerModel,
        C::AfterDiarize => Stage::Diarize,
        C::AfterAlign => Stage::Align,
        C::AfterEmbeddingModelLoad => Stage::EmbeddingModel,
        C::AfterEmbed => Stage::Embed,
        C::AfterAdapt => Stage::Adapt,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ModelRef, alternatives};
    use memory::bytes::{GIB, MIB};
    use memory::{Levels, Sample};
    use random_models::describe;
    use wire::Strategy;

    fn device(free: u64) -> DeviceMemory {
        DeviceMemory { kind: DeviceKind::Host, name: "the CPU".into(), free, total: 16 * GIB }
    }

    /// `tiny`, `small` and `large-v3` are installed, in 16 bits.
    fn announce(chosen: &str, free: u64, batch: Option<u32>) -> Announcement {
        let folder = tempfile::tempdir().unwrap();
        let models: Vec<ModelRef> = ["tiny", "small", "large-v3"]
            .into_iter()
            .map(|name| ModelRef {
                name: name.into(),
                path: describe(folder.path(), name, "F16", None).unwrap(),
                demonstration: false,
                note: None,
            })
            .collect();
        let chosen = models.iter().find(|model| model.name == chosen).unwrap();
        let mut job = Job::new(1, "talk.flac", chosen.path.as_path());
        job.memory.batch_size = batch;
        job.strategy = if batch.is_some() { Strategy::Batched } else { Strategy::Auto };
        job.alternatives = alternatives(chosen, &models, &job, DeviceKind::Host);
        Announcement::of(&chosen.name, &job, device(free)).unwrap()
    }

    #[test]
    fn what_fits_is_said_before_anything_is_loaded() {
        // (model, MB free, batch asked for) -> word, what fits instead
        for (model, free, batch, word, instead) in [
            ("tiny", 8192, None, "fits", None),
            ("small", 1536, None, "just fits", None),
            ("large-v3", 16_384, None, "fits", None),
            ("large-v3", 5120, None, "does not fit", Some(("large-v3", "f16"))),
            ("large-v3", 1536, None, "does not fit", Some(("small", "f32"))),
            ("large-v3", 1024, None, "does not fit", Some(("small", "f16"))),
            // The batch that was asked for is too large, the model is not.
            ("small", 8192, Some(64), "does not fit", Some(("small", "f32"))),
            ("tiny", 0, None, "does not fit", None),
        ] {
            let told = announce(model, free * MIB, batch);
            let found = told.instead.as_ref().map(|fit| (fit.model.as_str(), fit.precision.as_str()));
            assert_eq!((told.fit.word(), found), (word, instead), "{model} in {free} MB: {told:?}");
            assert_eq!(told.notice().is_some(), word == "does not fit");
            if let Some(other) = &told.instead {
                assert!(other.check.fit > Fit::DoesNotFit && other.largest_batch > 0);
            }
        }
    }

    #[test]
    fn the_line_says_how_much_and_how_many() {
        for (batch, windows) in [
            (None, "Up to 4 windows at once."),
            (Some(1), "One window at a time."),
            (Some(3), "Up to 3 windows at once."),
        ] {
            let text = announce("tiny", 8 * GIB, batch).text();
            assert!(text.starts_with("tiny (f32) on the CPU: fits. It needs "), "{text}");
            assert!(text.ends_with(&format!("; 8.0 GB is free. {windows}")), "{text}");
        }
        let notice = announce("large-v3", 2 * GIB, None).notice().unwrap();
        assert_eq!(notice.code, memory::Code::WillNotFit);
        for part in [
            "large-v3 (f32) on the CPU: does not fit. The transcription needs ",
            " short). small (f32) fits, ",
            "continues in smaller steps",
        ] {
            assert!(notice.text.contains(part), "no {part:?} in {:?}", notice.text);
        }
        let notice = announce("small", 8 * GIB, Some(64)).notice().unwrap();
        assert!(notice.text.contains("With up to ") && notice.text.contains("it fits."), "{}", notice.text);
    }

    #[test]
    fn limits_make_the_room_smaller() {
        let free = |memory_limit, ram_limit| {
            let settings = MemorySettings { memory_limit, ram_limit, ..MemorySettings::default() };
            DeviceMemory::of(false, DeviceChoice::Auto, &settings).map(|device| device.free)
        };
        let Ok(all) = free(None, None) else { return println!("skipped: no /proc") };
        for (memory_limit, ram_limit) in [(Some(MIB), None), (None, Some(MIB)), (Some(MIB), Some(all))] {
            assert_eq!(free(memory_limit, ram_limit), Ok(MIB));
        }
    }

    #[test]
    fn what_was_used_is_the_highest_of_each_stage() {
        let sample = |checkpoint, reserved, peak| {
            let levels = Levels { reserved, peak, fixed: 10, ..Levels::default() };
            Mark::Sample(Sample {
                checkpoint,
                batch: None,
                at_ms: 0,
                kind: DeviceKind::Gpu,
                levels: Some(levels),
                reason: None,
            })
        };
        let marks = [
            sample(Checkpoint::PipelineStart, 1, 1),
            sample(Checkpoint::AfterSpeechModelLoad, 50, 70),
            sample(Checkpoint::Batch, 60, 90),
            sample(Checkpoint::Batch, 60, 80),
            sample(Checkpoint::AfterTranscribe, 60, 60),
            // A peak that belongs to no stage.
            sample(Checkpoint::AfterRecovery, 60, 500),
        ];
        assert_eq!(used(&marks), [(Stage::SpeechModel, 80), (Stage::Transcribe, 100)]);
    }
}
