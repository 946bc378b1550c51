//! What the user chooses from: models and how they fit, and the settings of
//! the config file.

use advisor::choice::{Choice, Choices};
use advisor::fit::Room;
use config::edit::{Stands, change_of_this_user, stand_of_this_user};
use memory::fit::Fit;
use serde::Serialize;
use ts_rs::TS;

use super::Failure;
use super::memory_use::{DeviceKind, MemoryParts};

/// The models against what is free now.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFits {
    /// Where the next job can be expected to compute; null where nobody can say.
    pub room: Option<MemoryRoom>,
    pub models: Vec<ModelFit>,
    /// The number of the best installed model.
    pub recommended: Option<u32>,
    /// Whether no model of the catalogue would be better.
    pub is_best_of_all: bool,
    /// What is wrong with the card's driver, in a sentence or two.
    pub gpu_problem: Option<String>,
}

#[derive(Debug, Clone, Serialize, TS)]
pub struct MemoryRoom {
    pub kind: DeviceKind,
    pub name: String,
    pub free: u64,
    pub total: u64,
}

/// How one model fits. Amounts are bytes.
#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFit {
    /// Its number.
    pub model: u32,
    /// Why it can't be used; then there is no `facts`.
    pub failure: Option<Failure>,
    pub facts: Option<ModelFacts>,
}

#[derive(Debug, Clone, Serialize, TS)]
pub struct ModelFacts {
    pub fit: FitWord,
    /// How its weights would be held.
    pub precision: String,
    /// Needed at the least.
    pub peak: u64,
    pub parts: MemoryParts,
    /// What would have to become free.
    pub missing: u64,
    /// Numbers in the network.
    pub parameters: u64,
    pub disk: u64,
    pub multilingual: bool,
    pub translates: bool,
    /// Whether it knows the language and the task that are set.
    pub suits: bool,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum FitWord {
    Comfortable,
    Tight,
    DoesNotFit,
}

/// One setting of the config file.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Preference {
    #[ts(type = "PreferenceName")]
    pub name: String,
    pub value: Option<String>,
    /// What the environment says instead, which goes before the file.
    pub overruled: Option<String>,
}

impl From<Room> for MemoryRoom {
    fn from(room: Room) -> Self {
        Self { kind: room.kind.into(), name: room.name, free: room.free, total: room.total }
    }
}

impl From<Choices> for ModelFits {
    fn from(choices: Choices) -> Self {
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        let fits = choices.models.into_iter().enumerate();
        Self {
            room: choices.room.map(Into::into),
            models: fits.map(|(index, one)| ModelFit::new(number(index), one)).collect(),
            recommended: choices.recommended.map(number),
            is_best_of_all: choices.is_best_of_all,
            gpu_problem: choices.gpu_problem,
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
            fit: check.fit.into(),
            missing: check.missing(),
            peak: check.peak,
            precision: choice.fit.precision,
            parts: choice.parts.into(),
            parameters: choice.parameters,
            disk: choice.disk,
            multilingual: choice.multilingual,
            translates: choice.translates,
            suits: choice.suits,
            speed: choice.speed,
        }
    }
}

impl From<Fit> for FitWord {
    fn from(fit: Fit) -> Self {
        match fit {
            Fit::Comfortable => Self::Comfortable,
            Fit::Tight => Self::Tight,
            Fit::DoesNotFit => Self::DoesNotFit,
        }
    }
}

impl Preference {
    /// All of them, as they are now.
    pub fn all() -> Result<Vec<Self>, wire::Failure> {
        Ok(stand_of_this_user()?.into_iter().map(Self::from).collect())
    }

    /// Writes one to the config file, or takes it out.
    ///
    /// # Errors
    /// As [`config::edit::change`].
    pub fn change(name: &str, value: Option<&str>) -> Result<(), wire::Failure> {
        change_of_this_user(name, value)
    }
}

impl From<Stands> for Preference {
    fn from(stands: Stands) -> Self {
        Self {
            name: memory::settings::key(stands.name),
            value: stands.in_file,
            overruled: stands.in_environment,
        }
    }
}
