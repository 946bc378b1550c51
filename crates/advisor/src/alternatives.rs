//! Which installed models may take over from the one that was chosen, and in
//! which precisions: what the ladder steps down to.

use std::collections::BTreeSet;
use std::path::Path;

use memory::ladder::Installed;
use memory::{DeviceKind, Footprint};
use transcript::Task;
use wire::{Alternative, Job};

use crate::fit::{DeviceMemory, expects_gpu};
use crate::model_info::{self, ModelInfo};
use crate::{ModelRef, models, speed};

/// Every way to hold `chosen` first, then every way to hold one of `models`,
/// in their order. Models that can't be read are left out: they could not take
/// over.
///
/// Precisions are those of a device of this kind, the one that a job has where
/// it asks for none among them ([`ModelInfo::precisions`]).
pub fn alternatives(chosen: &ModelRef, models: &[ModelRef], job: &Job, kind: DeviceKind) -> Vec<Alternative> {
    let mut seen = BTreeSet::new();
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for model in std::iter::once(chosen).chain(models) {
        if !seen.insert(identity(&model.path)) {
            continue;
        }
        let Ok(network) = model_info::read(&model.path) else { continue };
        // A folder that was named may be called as an installed model is.
        let name =
            if names.contains(&model.name) { model.path.display().to_string() } else { model.name.clone() };
        names.insert(name.clone());
        let is_chosen = identity(&model.path) == identity(&chosen.path);
        let suits = is_chosen || (suits(&network, job) && (chosen.demonstration || !model.demonstration));
        for precision in network.precisions(kind) {
            let weights = |kind| -> u64 {
                let footprint: Footprint = model_info::footprint(&network, kind, precision, job);
                footprint.weights
            };
            found.push(Alternative {
                path: model.path.clone().into(),
                installed: Installed {
                    model: name.clone(),
                    precision: precision.to_string(),
                    parameters: network.dimensions.parameters().total(),
                    gpu_bytes: weights(DeviceKind::Gpu),
                    host_bytes: weights(DeviceKind::Host),
                    suits,
                },
            });
        }
    }
    found
}

/// A job with whatever of the installed models may take over from its own;
/// without, where its own can't be read: it then fails for that.
pub fn with_alternatives(mut job: Job) -> Job {
    if let Ok(model) = models::model_at(job.model.as_path()) {
        let kind = if expects_gpu(job.device) { DeviceKind::Gpu } else { DeviceKind::Host };
        job.alternatives = alternatives(&model, &models::list_models(), &job, kind);
        job.memory.useful_batch = useful_batch(&model, &job, kind);
    }
    job
}

/// Windows that are worth decoding together in this job, where that was measured on its device.
pub(crate) fn useful_batch(model: &ModelRef, job: &Job, kind: DeviceKind) -> Option<u32> {
    let measured = Some(speed::measured()).filter(|all| job.is_batched() && !all.is_empty())?;
    let device = DeviceMemory::of(kind == DeviceKind::Gpu, job.device, &job.memory).ok()?;
    let network = model_info::read(&model.path).ok()?;
    let precision = job.precision.unwrap_or_else(|| network.usual(kind));
    speed::useful_batch(&measured, &device.name, precision, &network.dimensions)
}

/// Whether a network knows the job's language well enough, and can do its task.
pub(crate) fn suits(network: &ModelInfo, job: &Job) -> bool {
    let language = job.language.as_deref();
    let can = network.abilities;
    let knows_language = (network.multilingual || language == Some("en"))
        && (language.is_some() || can.finds_language || !can.told_language)
        && can.good_at.zip(language).is_none_or(|(known, language)| known.contains(&language));
    let does_task = match job.task {
        Task::Transcribe => true,
        Task::Translate => network.translates,
    };
    knows_language && does_task
}

/// The same folder under any of its names.
fn identity(path: &Path) -> std::path::PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;
    use random_models::describe;

    #[test]
    fn a_model_that_must_be_told_the_language_suits_where_one_that_it_knows_is_named() {
        let canary = ModelInfo {
            dimensions: memory::Network::of_public("canary-1b-v2").unwrap(),
            stored: memory::Precision::F32,
            multilingual: true,
            translates: true,
            abilities: formats::Abilities::CANARY,
        };
        for (language, expected) in [(None, false), (Some("sv"), true), (Some("ja"), false)] {
            for task in [Task::Transcribe, Task::Translate] {
                let mut job = Job::new(1, "talk.flac", "model");
                (job.language, job.task) = (language.map(str::to_owned), task);
                assert_eq!(suits(&canary, &job), expected, "{language:?} {task:?}");
            }
        }
    }

    struct Machine {
        folder: tempfile::TempDir,
        models: Vec<ModelRef>,
    }

    fn machine() -> Machine {
        let folder = tempfile::tempdir().unwrap();
        let mut models = Vec::new();
        for (name, dtype, demonstration) in [
            ("tiny", "F16", true),
            ("base.en", "F16", false),
            ("small", "F32", false),
            ("large-v3-turbo", "F16", false),
        ] {
            let path = describe(folder.path(), name, dtype, None).unwrap();
            models.push(ModelRef { name: name.into(), path, demonstration, note: None });
        }
        Machine { folder, models }
    }

    impl Machine {
        fn model(&self, name: &str) -> &ModelRef {
            self.models.iter().find(|model| model.name == name).unwrap()
        }

        /// `name precision`, those that may take over.
        fn suitable(&self, chosen: &str, language: Option<&str>, task: Task) -> Vec<String> {
            let chosen = self.model(chosen);
            let mut job = Job::new(1, "talk.flac", chosen.path.as_path());
            (job.language, job.task) = (language.map(str::to_owned), task);
            alternatives(chosen, &self.models, &job, DeviceKind::Gpu)
                .into_iter()
                .filter(|alternative| alternative.installed.suits)
                .map(|alternative| {
                    format!("{} {}", alternative.installed.model, alternative.installed.precision)
                })
                .collect()
        }
    }

    #[test]
    fn what_takes_over_can_do_the_job() {
        let machine = machine();
        let turbo = ["large-v3-turbo f16", "large-v3-turbo q8_0"];
        let small = ["small f16", "small q8_0"];
        let base = ["base.en f16", "base.en q8_0"];
        let tiny = ["tiny f16", "tiny q8_0"];
        let (write, english) = (Task::Transcribe, Some("en"));
        for (chosen, language, task, expected) in [
            ("large-v3-turbo", None, write, [turbo, small].concat()),
            ("large-v3-turbo", Some("de"), write, [turbo, small].concat()),
            ("large-v3-turbo", english, write, [turbo, base, small].concat()),
            // Turbo does not translate, but was chosen all the same.
            ("large-v3-turbo", Some("de"), Task::Translate, [turbo, small].concat()),
            ("small", Some("de"), Task::Translate, small.to_vec()),
            // A demonstration takes over from a demonstration only.
            ("small", english, write, [small, base, turbo].concat()),
            ("tiny", english, write, [tiny, base, small, turbo].concat()),
        ] {
            assert_eq!(machine.suitable(chosen, language, task), expected, "{chosen} {language:?} {task:?}");
        }
    }

    #[test]
    fn each_has_its_size_in_every_precision_that_it_can_be_held_in() {
        let machine = machine();
        let sizes = |name: &str, kind: DeviceKind| -> Vec<(String, u64, u64)> {
            let chosen = machine.model(name);
            let job = Job::new(1, "talk.flac", chosen.path.as_path());
            alternatives(chosen, &[], &job, kind)
                .into_iter()
                .map(|Alternative { path, installed }| {
                    assert_eq!((path.as_path(), installed.parameters), (chosen.path.as_path(), 808_878_080));
                    // Bytes for a hundred weights.
                    let per_weight = |bytes| 100 * bytes / 808_878_080;
                    (installed.precision, per_weight(installed.host_bytes), per_weight(installed.gpu_bytes))
                })
                .collect()
        };
        let of = |precision: &str, host, gpu| (precision.to_owned(), host, gpu);
        // What the file has in 16 bits can be held so on the host too; the
        // biases and convolutions are in 32 bits there.
        assert_eq!(
            sizes("large-v3-turbo", DeviceKind::Host),
            [of("f32", 400, 400), of("f16", 202, 200), of("q8_0", 109, 107)]
        );
        assert_eq!(sizes("large-v3-turbo", DeviceKind::Gpu), [of("f16", 202, 200), of("q8_0", 109, 107)]);
    }

    #[test]
    fn a_folder_that_was_named_is_among_them_once_and_under_a_name_of_its_own() {
        let machine = machine();
        let elsewhere = machine.folder.path().join("elsewhere");
        let path = describe(&elsewhere, "small", "F16", None).unwrap();
        let chosen = ModelRef { name: "small".into(), path: path.clone(), demonstration: false, note: None };
        let job = Job::new(1, "talk.flac", path);
        let names = |models: &[ModelRef]| -> BTreeSet<String> {
            alternatives(&chosen, models, &job, DeviceKind::Host)
                .into_iter()
                .map(|it| it.installed.model)
                .collect()
        };
        let other = machine.model("small").path.display().to_string();
        assert_eq!(
            names(&machine.models),
            BTreeSet::from(["small".into(), other, "base.en".into(), "large-v3-turbo".into(), "tiny".into()])
        );
        let again = ModelRef { path: elsewhere.join("../elsewhere/small"), ..chosen.clone() };
        assert_eq!(names(&[again]), BTreeSet::from(["small".into()]));
    }

    #[test]
    fn a_damaged_model_is_none() {
        let machine = machine();
        std::fs::write(machine.model("small").path.join("config.json"), "{").unwrap();
        assert!(
            !machine.suitable("large-v3-turbo", None, Task::Transcribe).iter().any(|it| it.contains("small"))
        );
    }
}
