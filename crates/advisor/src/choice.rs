//! The installed models side by side, for the user who chooses one: whether
//! each fits into what is free now, what it can do, and which to take.

use std::path::Path;

use memory::Parts;
use transcript::Task;
use wire::{Failure, Job, NO_JOB};

use crate::ModelRef;
use crate::alternatives::suits;
use crate::engines;
use crate::fit::{DeviceMemory, ModelFit, expects_gpu};
use crate::model_info::{self, Abilities, ModelInfo};
use crate::models::DEFAULT_MODEL;
use crate::recommend::{self, Candidate, Recommendation, advise};
use crate::speed::{self, Measured};
use supervisor::status::Gpus;

/// An installed model, as it can be used now.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// What it needs and whether that fits.
    pub fit: ModelFit,
    /// Of the peak that `fit` tells.
    pub parts: Parts,
    /// Numbers in the network.
    pub parameters: u64,
    /// All files of the model, bytes.
    pub disk: u64,
    /// Whether it knows other languages than English.
    pub multilingual: bool,
    /// Whether it was trained to translate.
    pub translates: bool,
    /// What it can be asked for.
    pub abilities: Abilities,
    /// Whether it can do what the job asks for.
    pub suits: bool,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

/// What there is to choose from, and where it would compute.
#[derive(Debug, Clone)]
pub struct Choices {
    /// `None` where the free memory can't be read.
    pub device: Option<DeviceMemory>,
    /// One per model, in their order; none without a device.
    pub models: Vec<Result<Choice, Failure>>,
    /// The index of the best installed model.
    pub recommended: Option<usize>,
    /// Whether that model is the best of the catalogue as well; `false` where a
    /// download would be better.
    pub is_best_of_all: bool,
    /// What is wrong with the card's driver, in a sentence or two.
    pub gpu_problem: Option<String>,
    /// What the download is called that would have a card compute; `None` where none would.
    pub engine: Option<&'static str>,
}

impl Choices {
    /// As it is now, for jobs like [`example`]. Waits for the card's driver and the disk.
    pub fn now(models: &[ModelRef], job: &Job, preferences: &config::Preferences) -> Self {
        let gpus = Gpus::now(Vec::new());
        let engine = engines::would_help(&gpus).then_some(engines::TRANSFER);
        let gpu_problem = gpus.gpu_problem;
        match DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory) {
            Ok(device) => {
                let measured = speed::measured();
                let choices = choices(models, job, &device, &measured);
                let recommended = recommended(models, job, &device, &measured);
                let of_all = recommend::now(preferences, job).ok();
                let of_all = of_all.as_ref().and_then(Recommendation::model);
                let best = recommended.and_then(|index| models.get(index));
                let is_best_of_all = best.is_some_and(|best| of_all.is_none_or(|name| name == best.name));
                Self {
                    device: Some(device),
                    models: choices,
                    recommended,
                    is_best_of_all,
                    gpu_problem,
                    engine,
                }
            }
            Err(_) => Self {
                device: None,
                models: Vec::new(),
                recommended: None,
                is_best_of_all: false,
                gpu_problem,
                engine,
            },
        }
    }
}

/// Each of `models` in `device`, for jobs with these settings; what is wrong
/// with it for one that can't be read.
fn choices(
    models: &[ModelRef],
    job: &Job,
    device: &DeviceMemory,
    measured: &[Measured],
) -> Vec<Result<Choice, Failure>> {
    models.iter().map(|model| choice(model, job, device, measured)).collect()
}

fn choice(
    model: &ModelRef,
    job: &Job,
    device: &DeviceMemory,
    measured: &[Measured],
) -> Result<Choice, Failure> {
    let network = model_info::read(&model.path)?;
    let precision = job.precision.unwrap_or_else(|| network.usual(device.kind));
    let footprint = model_info::footprint(&network, device.kind, precision, job);
    let fit = ModelFit::of(&model.name, precision.as_str(), &footprint, job, device);
    Ok(Choice {
        parts: footprint.parts(u64::from(fit.check.batch.max(1))),
        fit,
        parameters: network.dimensions.parameters().total(),
        disk: disk(&model.path),
        multilingual: network.multilingual,
        translates: network.translates,
        abilities: network.abilities,
        suits: suits(&network, job),
        speed: speed::predict(measured, &device.name, precision, &network.dimensions),
    })
}

/// A job of the settings that a window or a command line has in force.
pub fn example(language: Option<&str>, task: Task, preferences: &config::Preferences) -> Job {
    let mut job = Job::new(NO_JOB, "", "");
    job.language = language.map(str::to_owned);
    job.task = task;
    job.memory = preferences.memory.clone();
    job.precision = preferences.precision;
    job.device = preferences.engine.device;
    job
}

/// The one to take where the user named none: the one that is recommended, else a real one that can do the task in the
/// language, else any real one, else [`DEFAULT_MODEL`], else any demonstration. Waits for the card's driver and the
/// disk where there is a choice.
pub fn preferred(
    models: &[ModelRef],
    language: Option<&str>,
    task: Task,
    preferences: &config::Preferences,
) -> Option<ModelRef> {
    let real: Vec<&ModelRef> = models.iter().filter(|model| !model.demonstration).collect();
    let job = example(language, task, preferences);
    let recommended =
        || Choices::now(models, &job, preferences).recommended.and_then(|index| models.get(index));
    let can_do =
        |model: &&&ModelRef| model_info::read(&model.path).is_ok_and(|network| suits(&network, &job));
    // What has no choice needs no look at the machine.
    let several = real.len() > 1;
    let demonstration = || models.iter().find(|model| model.name == DEFAULT_MODEL).or(models.first());
    let any = || real.iter().find(can_do).or(real.first()).copied();
    let chosen = if several { recommended().or_else(any) } else { real.first().copied() };
    chosen.or_else(demonstration).cloned()
}

/// The index of the model to take of `models`, by the ranking of
/// [`crate::recommend`], each held as the next job would load it.
/// Never the demonstration.
pub(crate) fn recommended(
    models: &[ModelRef],
    job: &Job,
    device: &DeviceMemory,
    measured: &[Measured],
) -> Option<usize> {
    let candidate = |(index, model): (usize, &ModelRef)| {
        Some(Candidate {
            // Two folders may have one name.
            id: index.to_string(),
            network: model_info::read(&model.path).ok()?,
            installed: true,
            disk: None,
            languages: None,
            licence: None,
        })
    };
    let real = models.iter().enumerate().filter(|(_, model)| !model.demonstration);
    let candidates: Vec<Candidate> = real.filter_map(candidate).collect();
    let precisions = |network: &ModelInfo, kind| vec![job.precision.unwrap_or_else(|| network.usual(kind))];
    let advice = advise(device, &candidates, measured, job, precisions);
    let taken = advice.choices.get(advice.recommended?)?;
    taken.fit.model.parse().ok()
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
    use config::Preferences;
    use memory::DeviceKind;
    use memory::bytes::{GIB, MIB};
    use random_models::describe;

    fn models(folder: &Path, names: &[&str]) -> Vec<ModelRef> {
        let model = |name: &&str| ModelRef {
            name: (*name).into(),
            path: describe(folder, name, "F16", None).unwrap(),
            demonstration: *name == "tiny",
            note: None,
        };
        names.iter().map(model).collect()
    }

    fn device(kind: DeviceKind, free: u64) -> DeviceMemory {
        DeviceMemory { kind, name: "it".into(), free, total: 32 * GIB }
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
            let index = recommended(&models, &job, &device(kind, free * MIB), &[]);
            assert_eq!(index.map(|index| names[index]), expected, "{kind:?} {free} {language:?} {task:?}");
        }
    }

    /// A Canary, which is first in the alphabet and never recommended, can't do without a language.
    #[test]
    fn where_nothing_is_recommended_a_model_is_taken_that_can_do_the_job() {
        let folder = tempfile::tempdir().unwrap();
        let options = random_models::Options::default();
        let [canary, parakeet] = ["canary-tiny", "parakeet-tiny"].map(|name| folder.path().join(name));
        let size = random_models::CanarySize::named("canary-tiny").unwrap();
        random_models::write_canary_model(&canary, size, &options).unwrap();
        let size = random_models::ParakeetSize::named("parakeet-tiny").unwrap();
        random_models::write_parakeet_model(&parakeet, size, &options).unwrap();
        let model = |path: &Path, name: &str| ModelRef {
            name: name.into(),
            path: path.into(),
            demonstration: false,
            note: None,
        };
        let both = [model(&canary, "canary"), model(&parakeet, "parakeet")];
        let chosen = |language, task| preferred(&both, language, task, &Preferences::default()).unwrap().name;
        assert_eq!(chosen(None, Task::Transcribe), "parakeet");
        assert_eq!(chosen(Some("sv"), Task::Transcribe), "canary");
        assert_eq!(chosen(Some("de"), Task::Translate), "canary");
    }

    #[test]
    fn a_model_for_english_does_not_suit_german_and_a_broken_one_says_what_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let mut models = models(folder.path(), &["small.en", "base"]);
        std::fs::remove_file(models[1].path.join("config.json")).unwrap();
        models.push(ModelRef { path: models[0].path.clone(), ..models[0].clone() });
        let job = example(Some("de"), Task::Transcribe, &Preferences::default());
        let device = device(DeviceKind::Host, 8 * GIB);
        let found = choices(&models, &job, &device, &[]);
        assert!(!found[0].as_ref().unwrap().suits);
        assert!(found[0].as_ref().unwrap().disk > 0);
        let failure = found[1].as_ref().unwrap_err();
        assert_eq!(failure.code, wire::ErrorCode::ModelInvalid);
        assert_eq!(recommended(&models, &job, &device, &[]), None);
    }

    #[test]
    fn the_measured_speed_moves_the_list_as_it_moves_every_recommendation() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["base", "small", "medium"];
        let models = models(folder.path(), &names);
        let device = device(DeviceKind::Host, 32 * GIB);
        let job = example(None, Task::Transcribe, &Preferences::default());
        let small = model_info::read(&models[1].path).unwrap().dimensions;
        for (speed, expected) in [(None, "small"), (Some(0.5), "base"), (Some(60.0), "medium")] {
            let measured: Vec<Measured> = speed
                .map(|speed| Measured {
                    device: device.name.clone(),
                    precision: memory::Precision::F32,
                    dimensions: small,
                    speed,
                    useful_batch: None,
                })
                .into_iter()
                .collect();
            let index = recommended(&models, &job, &device, &measured);
            assert_eq!(index.map(|index| names[index]), Some(expected), "{speed:?}");
        }
    }
}
