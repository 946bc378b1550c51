//! Which model is in use where the user has not said so.

use std::path::Path;

use transcript::Task;

use super::{JobSettings, Remembered};
use advisor::models::{Places, model_at};
use advisor::{ModelRef, choice};
use config::Preferences;

/// The models that there are and the settings of the last time, as far as they still hold.
pub fn start_with(
    places: &Places,
    remembered: &Remembered,
    preferences: &Preferences,
) -> (Vec<ModelRef>, JobSettings) {
    let models = all_models(places, remembered);
    let last = |model: &&ModelRef| remembered.model.as_ref().is_some_and(|path| path.as_path() == model.path);
    let task = if remembered.translate { Task::Translate } else { Task::Transcribe };
    let decoding = remembered.decoding.clone();
    let (language, sound, speakers) = (remembered.language.clone(), remembered.sound, remembered.speakers);
    let (bilingual, output) = (remembered.bilingual, remembered.output.clone());
    let mut settings =
        JobSettings { model: None, language, task, bilingual, decoding, sound, speakers, output };
    let last = models.iter().find(last).filter(|model| may_stay(model, &models)).cloned();
    settings.model = last.or_else(|| preferred(&models, &settings, preferences));
    (models, settings)
}

/// Those that are found by name, and those that the user chose by their folder.
pub fn all_models(places: &Places, remembered: &Remembered) -> Vec<ModelRef> {
    let mut all = places.list();
    for path in remembered.models.iter().map(AsRef::<Path>::as_ref) {
        if !all.iter().any(|model| model.path == path) {
            all.extend(model_at(path).ok());
        }
    }
    all
}

/// A demonstration makes way for any real model.
fn may_stay(chosen: &ModelRef, models: &[ModelRef]) -> bool {
    !chosen.demonstration || models.iter().all(|model| model.demonstration)
}

/// The settings after models were installed or removed. One that is still there stays;
/// a demonstration makes way for the model that was installed.
pub fn with_models(
    settings: JobSettings,
    models: &[ModelRef],
    installed: Option<&str>,
    preferences: &Preferences,
) -> JobSettings {
    let stays = |now: &&ModelRef| models.iter().any(|model| model.path == now.path) && may_stay(now, models);
    let new = || models.iter().find(|model| installed == Some(model.name.as_str())).cloned();
    let current = settings.model.as_ref().filter(stays).cloned();
    let model = current.or_else(new).or_else(|| preferred(models, &settings, preferences));
    JobSettings { model, ..settings }
}

fn preferred(models: &[ModelRef], settings: &JobSettings, preferences: &Preferences) -> Option<ModelRef> {
    choice::preferred(models, settings.language.as_deref(), settings.task, preferences)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> ModelRef {
        let path = Path::new("/models").join(name);
        ModelRef { name: name.into(), path, demonstration: name.starts_with("starter"), note: None }
    }

    #[test]
    fn a_model_that_arrives_takes_the_place_of_the_demonstration_and_of_no_other() {
        // (in use, there are now, installed) -> in use
        for (now, there, installed, expected) in [
            (Some("starter"), &["small", "starter"][..], Some("small"), Some("small")),
            (Some("base"), &["base", "small", "starter"], Some("small"), Some("base")),
            (None, &["small"], Some("small"), Some("small")),
            // What is removed can't be in use.
            (Some("small"), &["starter"], None, Some("starter")),
            (Some("small"), &["base", "starter"], None, Some("base")),
            (Some("small"), &[], None, None),
            (Some("starter"), &["starter"], None, Some("starter")),
            // Of several demonstrations the one that was chosen stays.
            (Some("starter-b"), &["starter-a", "starter-b"], None, Some("starter-b")),
            (Some("starter-b"), &["small", "starter-a", "starter-b"], None, Some("small")),
        ] {
            let models: Vec<_> = there.iter().map(|name| model(name)).collect();
            let settings = JobSettings { model: now.map(model), ..JobSettings::default() };
            let settings = with_models(settings, &models, installed, &Preferences::default());
            let found = settings.model.as_ref().map(|model| model.name.as_str());
            assert_eq!(found, expected, "{now:?} {there:?} {installed:?}");
        }
    }
}
