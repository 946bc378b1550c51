//! A model that follows from the language of the recording: identified by one model, transcribed by
//! the one that is recommended for it.

use std::path::Path;

use transcript::Task;
use wire::{ByLanguage, Job};

use crate::adapters::Adapters;
use crate::alternatives::with_alternatives;
use crate::choice::recommended;
use crate::fit::{DeviceMemory, expects_gpu};
use crate::model_info::{self, ModelInfo};
use crate::speed::{self, Measured};
use crate::{ModelRef, list_models};
use config::Preferences;
use supervisor::ModelChoice;

/// Less sure than this, a language does not change the model.
const SURE: f32 = 0.5;

/// The request that the model of a job with `model` follow from its language, where the user wants that and it may make a
/// difference: no language is named, and a model is installed that is recommended for some languages alone. The language
/// is identified by `model` itself, or, where that can't identify languages, by the one that is recommended for all of them.
/// `None`: the job keeps its model. Reads what the models' files and the device say.
pub fn request(model: &ModelRef, job: &Job, preferences: &Preferences) -> Option<ByLanguage> {
    let is_open = job.language.is_none() && job.task == Task::Transcribe;
    if !preferences.model_by_language || !is_open || job.decoding.language_per_region {
        return None;
    }
    let device = DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory).ok();
    let identifier = identifier(&list_models(), model, job, device.as_ref(), &speed::measured())?;
    Some(ByLanguage { identifier: absolute(&identifier.path).into(), answer: None })
}

fn identifier(
    models: &[ModelRef],
    model: &ModelRef,
    job: &Job,
    device: Option<&DeviceMemory>,
    measured: &[Measured],
) -> Option<ModelRef> {
    let network = |model: &ModelRef| model_info::read(&model.path).ok();
    let may_follow = |model: &&ModelRef| {
        !model.demonstration && network(model).is_some_and(|network| is_for_some_languages(&network))
    };
    // What knows English alone takes everything for English.
    let identifies = |model: &&ModelRef| {
        network(model).is_some_and(|network| network.multilingual && network.abilities.finds_language)
    };
    models.iter().find(may_follow)?;
    if identifies(&model) {
        return Some(model.clone());
    }
    models.get(recommended(models, job, device?, measured)?).filter(identifies).cloned()
}

/// Whether it is recommended for some languages, of which there are several: those that know English alone write it without
/// punctuation.
fn is_for_some_languages(network: &ModelInfo) -> bool {
    network.abilities.good_at.is_some() && network.abilities.is_measured && network.multilingual
}

/// Prepares the choice of the installed model that is recommended for the language of a job: with the memory that is free
/// now, before a model is loaded to identify it. See [`supervisor::ChooseModel`].
pub fn choose(job: &Job) -> ModelChoice {
    let (models, measured) = (list_models(), speed::measured());
    let device = DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory).ok();
    let job = job.clone();
    Box::new(move |languages| {
        let device = device?;
        choose_among(&models, &job, languages, &device, &measured)
    })
}

/// `None` where the language is not sure, where the job's own model is as good for it, and where the job asks for what the
/// other one can't do.
fn choose_among(
    models: &[ModelRef],
    job: &Job,
    languages: &[(String, f32)],
    device: &DeviceMemory,
    measured: &[Measured],
) -> Option<(Job, String)> {
    let (language, _) = languages.first().filter(|(_, probability)| *probability >= SURE)?;
    let of_language = Job { language: Some(language.clone()), ..job.clone() };
    let model = models.get(recommended(models, &of_language, device, measured)?)?;
    let network = model_info::read(&model.path).ok()?;
    let own = model_info::read(job.model.as_path()).ok()?;
    // A larger or smaller one of the same kind was not chosen.
    let is_better = match own.abilities.good_at {
        None => is_for_some_languages(&network) || !own.multilingual,
        Some(languages) => !languages.contains(&language.as_str()),
    };
    let is_refused = model_info::refusal(&network, &model.name, false, job).is_some();
    if model.path == job.model.as_path() || !is_better || is_refused {
        return None;
    }
    let (path, adapter) = (absolute(&model.path), Adapters::switched_on(&model.path));
    let mut next = with_alternatives(Job { model: path.into(), adapter, ..of_language });
    for other in &mut next.alternatives {
        other.path = absolute(other.path.as_path()).into();
    }
    model_info::restrict(&network, &mut next);
    Some((next, model.name.clone()))
}

/// A journal may be read in another working folder.
fn absolute(path: &Path) -> std::path::PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::DeviceKind;
    use memory::bytes::GIB;
    use random_models::{Options, ParakeetSize, describe, write_parakeet_model};
    use wire::NO_JOB;

    struct Installed {
        _folder: tempfile::TempDir,
        models: Vec<ModelRef>,
    }

    /// Whisper base, a Parakeet for many languages, and one of each for English alone.
    fn installed() -> Installed {
        let folder = tempfile::tempdir().unwrap();
        let model = |name: &str, path| ModelRef { name: name.into(), path, demonstration: false, note: None };
        let whisper = |name: &str| model(name, describe(folder.path(), name, "F16", None).unwrap());
        let parakeet = |name: &str| {
            let path = folder.path().join(name);
            write_parakeet_model(&path, ParakeetSize::named(name).unwrap(), &Options::default()).unwrap();
            model(name, path)
        };
        let models = vec![
            whisper("base"),
            parakeet("parakeet-tiny"),
            whisper("base.en"),
            parakeet("parakeet-tiny-ctc"),
        ];
        Installed { _folder: folder, models }
    }

    fn device() -> DeviceMemory {
        DeviceMemory { kind: DeviceKind::Host, name: "it".into(), free: 16 * GIB, total: 32 * GIB }
    }

    #[test]
    fn the_model_that_is_recommended_for_the_language_takes_over() {
        let installed = installed();
        // The one for English alone has as many parameters, and no punctuation.
        let models = &installed.models[..3];
        let job = |model: usize| Job::new(NO_JOB, "talk.wav", models[model].path.as_path());
        let chosen = |job: &Job, language: &str, probability| {
            let identified = [(language.to_owned(), probability), ("xx".to_owned(), 0.0)];
            choose_among(models, job, &identified, &device(), &[]).map(|(_, name)| name)
        };
        // Japanese it does not know, and Swedish not well.
        for (own, language, probability, expected) in [
            (0, "de", 0.9, Some("parakeet-tiny")),
            (0, "en", 0.5, Some("parakeet-tiny")),
            (0, "de", 0.4, None),
            (0, "ja", 0.9, None),
            (0, "sv", 0.9, None),
            (1, "de", 0.9, None),
            (1, "ja", 0.9, Some("base")),
            (1, "sv", 0.9, Some("base")),
            // Whatever it may be, the chosen one stays.
            (1, "sv", 0.4, None),
            (2, "ja", 0.9, Some("base")),
        ] {
            let found = chosen(&job(own), language, probability);
            assert_eq!(found.as_deref(), expected, "{own} {language} {probability}");
        }
        // What the other model can't be asked for keeps the job where it is.
        let mut prompted = job(0);
        prompted.decoding.initial_prompt = Some("Ada".into());
        assert_eq!(chosen(&prompted, "de", 0.9), None);

        let identified = [("de".to_owned(), 0.9)];
        let (next, _) = choose_among(models, &job(0), &identified, &device(), &[]).unwrap();
        assert_eq!(next.model.as_path(), models[1].path);
        // It finds the language by itself, and its own ways to be held come first on the ladder.
        assert_eq!(next.language, None);
        assert_eq!(next.alternatives[0].path, next.model);
    }

    #[test]
    fn the_language_is_identified_where_that_may_make_a_difference() {
        let installed = installed();
        let [whisper, parakeet, english, ctc] = &installed.models[..] else { panic!() };
        let identified_by = |models: &[&ModelRef], model: &ModelRef| {
            let models: Vec<ModelRef> = models.iter().copied().cloned().collect();
            let job = Job::new(NO_JOB, "talk.wav", model.path.as_path());
            identifier(&models, model, &job, Some(&device()), &[]).map(|model| model.name)
        };
        assert_eq!(identified_by(&[whisper, parakeet], whisper).as_deref(), Some("base"));
        // Neither can identify languages, so that a Whisper for all of them does.
        assert_eq!(identified_by(&[whisper, parakeet], parakeet).as_deref(), Some("base"));
        assert_eq!(identified_by(&[whisper, parakeet, english], english).as_deref(), Some("base"));
        assert_eq!(identified_by(&[whisper], whisper), None);
        assert_eq!(identified_by(&[parakeet], parakeet), None);
        assert_eq!(identified_by(&[english, parakeet], english), None);
        assert_eq!(identified_by(&[whisper, ctc], whisper), None);
        let demonstration = ModelRef { demonstration: true, ..parakeet.clone() };
        assert_eq!(identified_by(&[whisper, &demonstration], whisper), None);
    }

    #[test]
    fn a_job_that_leaves_nothing_open_keeps_its_model() {
        let preferences = Preferences { model_by_language: true, ..Preferences::default() };
        let starter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
        let model = crate::models::model_at(&starter).unwrap();
        let job = || Job::new(NO_JOB, "talk.wav", starter.as_path());
        let mut per_region = job();
        per_region.decoding.language_per_region = true;
        let told = Job { language: Some("de".into()), ..job() };
        let translated = Job { task: Task::Translate, ..job() };
        for closed in [per_region, told, translated] {
            assert_eq!(request(&model, &closed, &preferences), None);
        }
        assert_eq!(request(&model, &job(), &Preferences::default()), None);
    }
}
