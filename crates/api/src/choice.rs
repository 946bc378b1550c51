//! The installed models side by side, for whoever has to choose one: whether
//! each fits into what is free now, what it can do, and which to take.

use std::path::Path;

use memory::fit::Fit;
use memory::{DeviceKind, Parts};
use transcript::Task;
use wire::{Failure, Job, NO_JOB};

use crate::ModelRef;
use crate::alternatives::suits;
use crate::fit::{ModelFit, Room, expects_gpu};
use crate::network::Network;
use crate::speed::{self, Measured};
use crate::status::Gpus;

/// Weights beyond which the CPU is slower than the recording on the machines
/// that most people have: `small` has 244 million and took 11.6 s for the
/// encoder alone of a window of 30 s on two cores (docs/measurements.md).
const MOST_FOR_CPU: u64 = 300_000_000;

/// An installed model, as it can be used now.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    pub fit: ModelFit,
    /// Of the peak that `fit` tells.
    pub parts: Parts,
    /// Numbers in the network.
    pub parameters: u64,
    /// All files of the model, bytes.
    pub disk: u64,
    pub multilingual: bool,
    pub translates: bool,
    /// Whether it can do what the job asks for.
    pub suits: bool,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

/// What there is to choose from, and where it would compute.
#[derive(Debug, Clone)]
pub struct Choices {
    /// `None` where nobody can say what is free.
    pub room: Option<Room>,
    /// One per model, in their order; none without a room.
    pub models: Vec<Result<Choice, Failure>>,
    /// The index of the model to take.
    pub recommended: Option<usize>,
    /// What is wrong with the card's driver, in a sentence or two.
    pub gpu_problem: Option<String>,
}

impl Choices {
    /// As it is now, for jobs like [`example`]. Waits for the card's driver and the disk.
    pub fn now(models: &[ModelRef], job: &Job) -> Self {
        let gpu_problem = Gpus::now(Vec::new()).gpu_problem;
        match Room::of(expects_gpu(job.device), job.device, &job.memory) {
            Ok(room) => {
                let choices = choices(models, job, &room);
                let recommended = recommended(models, &choices, room.kind);
                Self { room: Some(room), models: choices, recommended, gpu_problem }
            }
            Err(_) => Self { room: None, models: Vec::new(), recommended: None, gpu_problem },
        }
    }
}

/// Each of `models` in `room`, for jobs with these settings; what is wrong
/// with it for one that can't be read.
fn choices(models: &[ModelRef], job: &Job, room: &Room) -> Vec<Result<Choice, Failure>> {
    let measured = speed::measured();
    models.iter().map(|model| choice(model, job, room, &measured)).collect()
}

fn choice(model: &ModelRef, job: &Job, room: &Room, measured: &[Measured]) -> Result<Choice, Failure> {
    let network = Network::read(&model.path)?;
    let precision = job.precision.unwrap_or_else(|| network.usual(room.kind));
    let footprint = network.footprint(room.kind, precision, job);
    let fit = ModelFit::of(&model.name, precision.as_str(), &footprint, job, room);
    Ok(Choice {
        parts: footprint.parts(u64::from(fit.check.batch.max(1))),
        fit,
        parameters: network.dimensions.parameters().total(),
        disk: disk(&model.path),
        multilingual: network.multilingual,
        translates: network.translates,
        suits: suits(&network, job),
        speed: speed::predict(measured, &room.name, precision, &network.dimensions),
    })
}

/// A job of the settings that a window or a command line has in force.
pub fn example(language: Option<&str>, task: Task, preferences: &crate::Preferences) -> Job {
    let mut job = Job::new(NO_JOB, "", "");
    job.language = language.map(str::to_owned);
    job.task = task;
    job.memory = preferences.memory.clone();
    job.precision = preferences.precision;
    job
}

/// The index of the model to recommend: the largest that can do the job and
/// fits with room to spare, else the largest that fits at all. Never the
/// demonstration, and on the CPU none that is slower than the recording where
/// there is a quicker one.
fn recommended(models: &[ModelRef], choices: &[Result<Choice, Failure>], kind: DeviceKind) -> Option<usize> {
    let rank = |(index, choice): (usize, &Result<Choice, Failure>)| {
        let choice = choice.as_ref().ok()?;
        if models.get(index)?.demonstration || !choice.suits || choice.fit.check.fit == Fit::DoesNotFit {
            return None;
        }
        let quick = kind == DeviceKind::Gpu || choice.parameters <= MOST_FOR_CPU;
        let size = if quick { choice.parameters } else { u64::MAX - choice.parameters };
        Some(((quick, choice.fit.check.fit, size), index))
    };
    let ranked = choices.iter().enumerate().filter_map(rank);
    ranked.max_by_key(|(rank, index)| (*rank, std::cmp::Reverse(*index))).map(|(_, index)| index)
}

/// Bytes of the files in a model's folder.
fn disk(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let sizes = entries.flatten().filter_map(|entry| std::fs::metadata(entry.path()).ok());
    sizes.filter(|meta| meta.is_file()).map(|meta| meta.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Preferences;
    use crate::network::tests::write_model;
    use memory::bytes::{GIB, MIB};

    fn models(folder: &Path, names: &[&str]) -> Vec<ModelRef> {
        let model = |name: &&str| ModelRef {
            name: (*name).into(),
            path: write_model(folder, name, "F16", None),
            demonstration: *name == "tiny",
            note: None,
        };
        names.iter().map(model).collect()
    }

    fn room(kind: DeviceKind, free: u64) -> Room {
        Room { kind, name: "it".into(), free, total: 32 * GIB }
    }

    #[test]
    fn the_largest_model_that_fits_and_can_do_the_job_is_recommended() {
        use DeviceKind::{Gpu, Host};
        let folder = tempfile::tempdir().unwrap();
        let names = ["tiny", "base", "small", "small.en", "medium", "large-v3", "large-v3-turbo"];
        let models = models(folder.path(), &names);
        // (where, MB free, language, task) -> model; tiny stands for the demonstration
        for (kind, free, language, task, expected) in [
            (Gpu, 24_576, None, Task::Transcribe, Some("large-v3")),
            (Gpu, 4096, None, Task::Transcribe, Some("large-v3-turbo")),
            (Gpu, 4096, None, Task::Translate, Some("medium")),
            (Gpu, 1024, None, Task::Transcribe, Some("base")),
            (Gpu, 256, None, Task::Transcribe, None),
            (Host, 32_768, None, Task::Transcribe, Some("small")),
            (Host, 32_768, Some("de"), Task::Transcribe, Some("small")),
            (Host, 1024, None, Task::Transcribe, Some("base")),
        ] {
            let job = example(language, task, &Preferences::default());
            let found = choices(&models, &job, &room(kind, free * MIB));
            let index = recommended(&models, &found, kind);
            assert_eq!(index.map(|index| names[index]), expected, "{kind:?} {free} {language:?} {task:?}");
        }
    }

    #[test]
    fn a_model_for_english_does_not_suit_german_and_a_broken_one_says_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let mut models = models(folder.path(), &["small.en", "base"]);
        std::fs::remove_file(models[1].path.join("config.json")).unwrap();
        models.push(ModelRef { path: models[0].path.clone(), ..models[0].clone() });
        let job = example(Some("de"), Task::Transcribe, &Preferences::default());
        let found = choices(&models, &job, &room(DeviceKind::Host, 8 * GIB));
        assert!(!found[0].as_ref().unwrap().suits);
        assert!(found[0].as_ref().unwrap().disk > 0);
        let failure = found[1].as_ref().unwrap_err();
        assert_eq!(failure.code, wire::ErrorCode::ModelInvalid);
        assert_eq!(recommended(&models, &found, DeviceKind::Host), None);
    }
}
