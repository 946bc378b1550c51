//! A model that follows from the language of the recording: heard with a model that hears languages, transcribed with
//! the one that is recommended for it.

use std::path::Path;

use transcript::Task;
use wire::Job;

use crate::adapters::Adapters;
use crate::alternatives::with_alternatives;
use crate::choice::recommended;
use crate::fit::{DeviceMemory, expects_gpu};
use crate::model_info::{self, ModelInfo};
use crate::speed::{self, Measured};
use crate::{ModelRef, list_models};
use config::Preferences;

/// Less sure than this, a language does not change the model.
const SURE: f32 = 0.5;

/// The model that hears the language of a job with `model`, which then follows from it, where the user wants that and it
/// may make a difference: no language is named, and a model is installed that is recommended for some languages alone.
/// It is `model` itself, or, where that does not hear languages, the one that is recommended for all of them. `None`:
/// the job keeps its model. Reads what the models' files and the device say.
pub fn hearer(model: &ModelRef, job: &Job, preferences: &Preferences) -> Option<ModelRef> {
    let is_open = job.language.is_none() && job.task == Task::Transcribe;
    if !preferences.model_by_language || !is_open || job.decoding.language_per_region {
        return None;
    }
    let device = DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory).ok();
    hearer_among(&list_models(), model, job, device.as_ref(), &speed::measured())
}

fn hearer_among(
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
    let hears = |model: &&ModelRef| network(model).is_some_and(|network| network.abilities.finds_language);
    models.iter().find(may_follow)?;
    if hears(&model) {
        return Some(model.clone());
    }
    // The choice is made among the installed models, of which a folder that was named may be none.
    models.iter().find(|installed| installed.path == model.path)?;
    models.get(recommended(models, job, device?, measured)?).filter(hears).cloned()
}

fn is_for_some_languages(network: &ModelInfo) -> bool {
    network.abilities.good_at.is_some() && network.abilities.is_measured
}

/// The job with the installed model that is recommended for the language that was heard, and that model's name. `None`
/// where the language is not sure, where no other model is recommended for it, and where the job asks for what that
/// model can't do. To be given to a `Supervisor` as its `choose_model`; `heard` has the likeliest language first.
pub fn choose(job: &Job, heard: &[(String, f32)]) -> Option<(Job, String)> {
    let device = DeviceMemory::of(expects_gpu(job.device), job.device, &job.memory).ok()?;
    choose_among(&list_models(), job, heard, &device, &speed::measured())
}

fn choose_among(
    models: &[ModelRef],
    job: &Job,
    heard: &[(String, f32)],
    device: &DeviceMemory,
    measured: &[Measured],
) -> Option<(Job, String)> {
    let (language, _) = heard.first().filter(|(_, probability)| *probability >= SURE)?;
    let of_language = Job { language: Some(language.clone()), ..job.clone() };
    let model = models.get(recommended(models, &of_language, device, measured)?)?;
    let network = model_info::read(&model.path).ok().filter(is_for_some_languages)?;
    if model.path == job.model.as_path() || model_info::refusal(&network, &model.name, false, job).is_some() {
        return None;
    }
    // A journal may be read in another working folder.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into());
    let adapter = Adapters::switched_on(&model.path);
    let next = Job { model: absolute(&model.path).into(), adapter, model_by_language: false, ..of_language };
    let mut next = with_alternatives(next);
    for other in &mut next.alternatives {
        other.path = absolute(other.path.as_path()).into();
    }
    model_info::restrict(&network, &mut next);
    Some((next, model.name.clone()))
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

    /// Whisper base, and a Parakeet.
    fn installed() -> Installed {
        let folder = tempfile::tempdir().unwrap();
        let whisper = describe(folder.path(), "base", "F16", None).unwrap();
        let parakeet = folder.path().join("parakeet");
        let size = ParakeetSize::named("parakeet-tiny").unwrap();
        write_parakeet_model(&parakeet, size, &Options::default()).unwrap();
        let model =
            |name: &str, path| ModelRef { name: name.into(), path, demonstration: false, note: None };
        let models = vec![model("base", whisper), model("parakeet", parakeet)];
        Installed { _folder: folder, models }
    }

    fn device() -> DeviceMemory {
        DeviceMemory { kind: DeviceKind::Host, name: "it".into(), free: 16 * GIB, total: 32 * GIB }
    }

    #[test]
    fn the_model_that_is_recommended_for_the_language_takes_over() {
        let installed = installed();
        let job = Job::new(NO_JOB, "talk.wav", installed.models[0].path.as_path());
        let chosen = |job: &Job, language: &str, probability| {
            let heard = [(language.to_owned(), probability), ("xx".to_owned(), 0.0)];
            choose_among(&installed.models, job, &heard, &device(), &[]).map(|(_, name)| name)
        };
        // Japanese it does not know, and Swedish not well.
        for (language, probability, expected) in [
            ("de", 0.9, Some("parakeet")),
            ("en", 0.5, Some("parakeet")),
            ("de", 0.4, None),
            ("ja", 0.9, None),
            ("sv", 0.9, None),
        ] {
            assert_eq!(chosen(&job, language, probability).as_deref(), expected, "{language} {probability}");
        }
        // What the other model can't be asked for keeps the job where it is.
        let mut prompted = job.clone();
        prompted.decoding.initial_prompt = Some("Ada".into());
        assert_eq!(chosen(&prompted, "de", 0.9), None);

        let heard = [("de".to_owned(), 0.9)];
        let (next, _) = choose_among(&installed.models, &job, &heard, &device(), &[]).unwrap();
        assert_eq!(next.model.as_path(), installed.models[1].path);
        // It finds the language by itself, and its own ways to be held come first on the ladder.
        assert_eq!((next.language.as_deref(), next.model_by_language), (None, false));
        assert_eq!(next.alternatives[0].path, next.model);
    }

    #[test]
    fn the_language_is_heard_where_that_may_make_a_difference() {
        let installed = installed();
        let [whisper, parakeet] = [&installed.models[0], &installed.models[1]];
        let heard_by = |models: &[ModelRef], model: &ModelRef| {
            let job = Job::new(NO_JOB, "talk.wav", model.path.as_path());
            hearer_among(models, model, &job, Some(&device()), &[]).map(|model| model.name)
        };
        assert_eq!(heard_by(&installed.models, whisper).as_deref(), Some("base"));
        // A Parakeet does not hear languages, so that a Whisper does.
        assert_eq!(heard_by(&installed.models, parakeet).as_deref(), Some("base"));
        assert_eq!(heard_by(&installed.models[..1], whisper), None);
        let elsewhere = ModelRef { path: "elsewhere".into(), ..parakeet.clone() };
        assert_eq!(heard_by(&installed.models, &elsewhere), None);
        assert_eq!(heard_by(&installed.models[1..], parakeet), None);
        let demonstration = ModelRef { demonstration: true, ..parakeet.clone() };
        assert_eq!(heard_by(&[whisper.clone(), demonstration], whisper), None);
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
            assert_eq!(hearer(&model, &closed, &preferences), None);
        }
        assert_eq!(hearer(&model, &job(), &Preferences::default()), None);
    }
}
