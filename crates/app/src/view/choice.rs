//! What the user chooses from: models and how they fit, and the settings of
//! the config file.

use advisor::choice::{Choice, Choices};
use advisor::fit::{Announcement, DeviceMemory};
use config::edit::{SettingStatus, change_user_setting, user_settings};
use config::preferences::{DEVICE, SPEAKER_MODEL};
use memory::fit::Fit;
use serde::Serialize;
use supervisor::status::{Card, Gpus};
use ts_rs::TS;

use super::Failure;
use super::memory_use::MemoryParts;

/// The models against what is free now.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFits {
    /// Where the next job is expected to compute; null where that can't be found out.
    pub device: Option<DeviceMemory>,
    /// One per model, by its number.
    pub models: Vec<ModelFit>,
    /// The number of the best installed model.
    pub recommended: Option<u32>,
    /// Whether no model of the catalogue would be better.
    pub is_best_of_all: bool,
    /// What is wrong with the card's driver, in a sentence or two.
    pub gpu_problem: Option<String>,
    /// The id of the download that would have a card compute; null where none would.
    pub engine: Option<String>,
}

/// How one model fits. Amounts are bytes.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFit {
    /// Its number.
    pub model: u32,
    /// Why it can't be used; then there is no `facts`.
    pub failure: Option<Failure>,
    /// What it needs, and what it can do.
    pub facts: Option<ModelFacts>,
}

/// What a model needs, and what it can do.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFacts {
    /// Whether it fits into what is free now.
    pub fit: Fit,
    /// How its weights would be held.
    pub precision: String,
    /// Needed at the least.
    pub peak: u64,
    /// What each purpose takes at the peak.
    pub parts: MemoryParts,
    /// What would have to become free.
    pub missing: u64,
    /// Numbers in the network.
    pub parameters: u64,
    /// Size of its files.
    pub disk: u64,
    /// It knows more languages than English.
    pub multilingual: bool,
    /// It translates into English.
    pub translates: bool,
    /// It can be told the language.
    pub takes_language: bool,
    /// It finds the language, in each region anew where that is asked for. One that does not and can be told it must be.
    pub finds_language: bool,
    /// It can be asked to translate.
    pub takes_translation: bool,
    /// It can be given a prompt.
    pub takes_prompt: bool,
    /// It can follow several texts at once.
    pub takes_beams: bool,
    /// How many it follows unless it is told.
    pub usual_beams: u32,
    /// Whether it knows the language and the task that are set.
    pub suits: bool,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

/// Warns before a model is loaded that it does not fit into the free memory. The job
/// starts all the same. Amounts are bytes.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct FitWarning {
    /// The name of the model.
    pub model: String,
    /// How its weights would be held.
    pub precision: String,
    /// Where it was to compute.
    pub device: DeviceMemory,
    /// Needed at the least.
    pub needed: u64,
    /// What would have to become free.
    pub missing: u64,
    /// What fits; null: none of the installed models that can do the job.
    pub instead: Option<FitInstead>,
}

/// What the job is likely to go on with when memory runs out.
#[derive(Debug, Clone, PartialEq, Serialize, TS)]
pub struct FitInstead {
    /// The name of the model.
    pub model: String,
    /// How its weights would be held.
    pub precision: String,
    /// Windows that fit together.
    pub windows: u32,
}

/// One setting of the config file.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Preference {
    /// Its key in the config file.
    #[ts(type = "PreferenceName")]
    pub name: String,
    /// What the file says; null: nothing.
    pub value: Option<String>,
    /// What the environment says instead, which goes before the file.
    pub overruled: Option<String>,
    /// What the user may choose from, where that depends on what is installed.
    pub options: Vec<String>,
    /// What each of them is called, where that is not its name.
    pub labels: Vec<String>,
}

impl From<Announcement> for FitWarning {
    fn from(announcement: Announcement) -> Self {
        let Announcement { device, fit, instead, .. } = announcement;
        Self {
            needed: fit.check.peak,
            missing: fit.check.missing(),
            model: fit.model,
            precision: fit.precision,
            device,
            instead: instead.map(|instead| FitInstead {
                model: instead.model,
                precision: instead.precision,
                windows: instead.largest_batch,
            }),
        }
    }
}

impl From<Choices> for ModelFits {
    fn from(choices: Choices) -> Self {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let fits = choices.models.into_iter().enumerate();
        Self {
            device: choices.device,
            models: fits.map(|(index, one)| ModelFit::new(number(index), one)).collect(),
            recommended: choices.recommended.map(number),
            is_best_of_all: choices.is_best_of_all,
            gpu_problem: choices.gpu_problem,
            engine: choices.engine.map(str::to_owned),
        }
    }
}

impl ModelFit {
    fn new(model: u32, choice: Result<Choice, wire::Failure>) -> Self {
        match choice {
            Ok(choice) => Self { model, failure: None, facts: Some(choice.into()) },
            Err(failure) => Self { model, failure: Some(failure.into()), facts: None },
        }
    }
}

impl From<Choice> for ModelFacts {
    fn from(choice: Choice) -> Self {
        let check = choice.fit.check;
        Self {
            fit: check.fit,
            missing: check.missing(),
            peak: check.peak,
            precision: choice.fit.precision,
            parts: choice.parts.into(),
            parameters: choice.parameters,
            disk: choice.disk,
            multilingual: choice.multilingual,
            translates: choice.translates,
            takes_language: choice.abilities.told_language,
            finds_language: choice.abilities.finds_language,
            takes_translation: choice.abilities.translation,
            takes_prompt: choice.abilities.prompt,
            takes_beams: choice.abilities.beams,
            usual_beams: choice.abilities.usual_beams as u32,
            suits: choice.suits,
            speed: choice.speed,
        }
    }
}

impl Preference {
    /// All preferences, as they are now.
    ///
    /// # Errors
    /// Where the config file can't be read.
    pub fn all() -> Result<Vec<Self>, wire::Failure> {
        Ok(user_settings()?.into_iter().map(Self::from).collect())
    }

    /// Writes one to the config file, or takes it out.
    ///
    /// # Errors
    /// As [`config::edit::change`].
    pub fn change(name: &str, value: Option<&str>) -> Result<(), wire::Failure> {
        change_user_setting(name, value)
    }
}

/// The cards that can compute, with their names, where there are several.
fn devices() -> (Vec<String>, Vec<String>) {
    let gpus = Gpus::now(Vec::new());
    let usable = gpus.cards.iter().filter(|card| card.lack.is_none());
    let named = |card: &Card| Some((format!("cuda:{}", card.number?), card.gpu.name.clone()));
    let cards: Vec<(String, String)> = usable.filter_map(named).collect();
    if cards.len() > 1 { cards.into_iter().unzip() } else { (Vec::new(), Vec::new()) }
}

impl From<SettingStatus> for Preference {
    fn from(stands: SettingStatus) -> Self {
        let (options, labels) = match stands.name {
            name if name == SPEAKER_MODEL.0 => {
                (advisor::list_speaker_models().into_iter().map(|model| model.name).collect(), Vec::new())
            }
            name if name == DEVICE.0 => devices(),
            _ => (Vec::new(), Vec::new()),
        };
        Self {
            name: memory::settings::key(stands.name),
            value: stands.in_file,
            overruled: stands.in_environment,
            options,
            labels,
        }
    }
}
