//! The user's settings about memory. Flags, the config file and environment variables
//! set the same fields.

use serde::{Deserialize, Serialize};

use crate::DeviceKind;
use crate::bytes;
use crate::fit::BatchLimits;
use crate::ladder::Pins;

/// The user's settings about memory. [`VARIABLES`] lists their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemorySettings {
    /// The most windows decoded together. A number above 1 makes the default strategy batched in any case;
    /// `None`: what fits.
    pub batch_size: Option<u32>,
    /// Windows of the speakers' models together; `None`: what fits.
    pub speaker_batch_size: Option<u32>,
    /// Never identify speakers.
    pub skip_speakers: bool,
    /// Whether speakers may be skipped when memory runs out.
    pub fast_path: bool,
    /// Share of the free memory that a batch may use, 0 to 1.
    pub memory_fraction: Option<f64>,
    /// Batches between checks for fragmentation; 0: never.
    pub trim_every: u32,
    /// Files after which the engine is restarted; 0: never.
    pub renew_after: u32,
    /// Limit on the memory of the computing device, in bytes.
    pub memory_limit: Option<u64>,
    /// Limit on main memory, in bytes.
    pub ram_limit: Option<u64>,
    /// Windows beyond which more together are no faster, where that was measured for the job's
    /// model and device (`steno models probe`). No setting of the user's.
    pub useful_batch: Option<u32>,
    /// How many texts are embedded together, and in which precision on a GPU.
    pub embedding_profile: EmbeddingProfile,
    /// What must not change when memory runs out.
    pub pins: Pins,
    /// For measuring what they save and cost only: models of a stage that is
    /// done are freed, and memory is watched.
    pub release: bool,
    /// Whether memory is watched at all; for measurements only.
    pub watch: bool,
}

/// Several settings at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// For long unattended runs: small batches, frequent clean-up.
    Safe,
    /// For a few files: no checks for fragmentation, no restarts of the engine.
    Fast,
}

/// What embedding texts is tuned for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmbeddingProfile {
    /// 256 texts at a time; a GPU computes in 16 bits.
    Speed,
    /// 128 texts at a time, in 32 bits everywhere.
    #[default]
    Quality,
}

impl EmbeddingProfile {
    /// The most texts that are embedded together.
    pub fn batch(self) -> u32 {
        match self {
            Self::Speed => 256,
            Self::Quality => 128,
        }
    }

    /// Reads the value of `STENO_EMBEDDING_PROFILE`.
    fn read(value: &str) -> Option<Self> {
        match value.to_ascii_lowercase().as_str() {
            "speed" => Some(Self::Speed),
            "quality" => Some(Self::Quality),
            _ => None,
        }
    }
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            batch_size: None,
            speaker_batch_size: None,
            skip_speakers: false,
            fast_path: true,
            memory_fraction: None,
            trim_every: 5,
            renew_after: 50,
            memory_limit: None,
            ram_limit: None,
            useful_batch: None,
            embedding_profile: EmbeddingProfile::default(),
            pins: Pins::default(),
            release: true,
            watch: true,
        }
    }
}

/// A value of an environment variable or flag that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name} is \"{value}\"; it takes {wanted}")]
pub struct BadSetting {
    /// The variable's name.
    pub name: &'static str,
    /// What it was set to.
    pub value: String,
    /// What it takes, as in [`VARIABLES`].
    pub wanted: &'static str,
}

/// The environment variables, each with what it takes, for `--help`. The config
/// file has the same settings under the names that [`key`] gives.
pub const VARIABLES: [(&str, &str); 11] = [
    ("STENO_BATCH_SIZE", "a number from 1: the most windows decoded together"),
    ("STENO_SPEAKER_BATCH_SIZE", "a number from 1: batch size of the speaker models"),
    ("STENO_SKIP_SPEAKERS", "true or false: never identify speakers"),
    ("STENO_FAST_PATH", "true or false: skip speakers when memory runs out"),
    ("STENO_MEMORY_FRACTION", "a number above 0 and up to 1: share of the free memory for a batch"),
    ("STENO_TRIM_EVERY", "a number: batches between checks for fragmentation; 0: never"),
    ("STENO_RENEW_AFTER", "a number: files after which the engine is restarted; 0: never"),
    ("STENO_MEMORY_LIMIT", "an amount such as 6GiB: limit on the memory of the computing device"),
    ("STENO_RAM_LIMIT", "an amount such as 4GiB: limit on main memory"),
    ("STENO_EMBEDDING_PROFILE", "speed or quality: how texts are embedded for the search by meaning"),
    ("STENO_KEEP", "any of model, precision, gpu and speakers, separated by commas: what must not change"),
];

/// Names a [`Profile`]. Not among [`VARIABLES`]: it comes before all of them,
/// wherever it is said.
pub const PROFILE: (&str, &str) =
    ("STENO_MEMORY_PROFILE", "safe or fast: sets several of the other settings");

/// The name of a variable's setting in the config file: `batch_size`.
pub fn key(variable: &str) -> String {
    variable.trim_start_matches("STENO_").to_ascii_lowercase()
}

impl Profile {
    /// Reads the value of [`PROFILE`].
    ///
    /// # Errors
    ///
    /// Fails with [`BadSetting`] for another word.
    pub fn read(value: &str) -> Result<Self, BadSetting> {
        match value.trim().to_ascii_lowercase().as_str() {
            "safe" => Ok(Self::Safe),
            "fast" => Ok(Self::Fast),
            _ => Err(BadSetting { name: PROFILE.0, value: value.to_owned(), wanted: PROFILE.1 }),
        }
    }
}

impl Pins {
    /// `model,precision,gpu,speakers`: whichever of them must be kept.
    fn read(value: &str) -> Option<Self> {
        let mut pins = Self::default();
        for word in value.split(',').map(|word| word.trim().to_ascii_lowercase()) {
            match word.as_str() {
                "model" => pins.model = true,
                "precision" => pins.precision = true,
                // To keep the GPU is never to go to the CPU.
                "gpu" => pins.cpu = true,
                "speakers" => pins.speakers = true,
                "" => {}
                _ => return None,
            }
        }
        Some(pins)
    }
}

impl MemorySettings {
    /// The defaults, changed as the profile says.
    pub fn of_profile(profile: Profile) -> Self {
        match profile {
            Profile::Safe => Self {
                batch_size: Some(4),
                speaker_batch_size: Some(4),
                memory_fraction: Some(0.125),
                trim_every: 5,
                renew_after: 25,
                ..Self::default()
            },
            Profile::Fast => Self { trim_every: 0, renew_after: 0, ..Self::default() },
        }
    }

    /// Takes over what the environment says; `lookup` is
    /// `|name| std::env::var(name).ok()`. Empty values count as not set.
    ///
    /// # Errors
    ///
    /// Fails with the first [`BadSetting`]; variables before it are taken over.
    pub fn read_environment(&mut self, lookup: impl Fn(&str) -> Option<String>) -> Result<(), BadSetting> {
        for (name, _) in VARIABLES {
            let Some(value) = lookup(name).filter(|value| !value.trim().is_empty()) else { continue };
            self.set(name, &value)?;
        }
        Ok(())
    }

    /// Takes over one setting, by the name of its variable: flags, environment
    /// and config file are all read this way. A name that is not among
    /// [`VARIABLES`] changes nothing.
    ///
    /// # Errors
    ///
    /// Fails with [`BadSetting`] where the setting does not take the value; it then stays as it was.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        let Some((name, wanted)) = VARIABLES.into_iter().find(|(known, _)| *known == name) else {
            return Ok(());
        };
        self.take(name, value.trim()).ok_or_else(|| BadSetting { name, value: value.to_owned(), wanted })
    }

    fn take(&mut self, name: &str, value: &str) -> Option<()> {
        let at_least_1 = || value.parse().ok().filter(|number: &u32| *number > 0);
        let switch = || truth(value);
        match name {
            "STENO_BATCH_SIZE" => self.batch_size = Some(at_least_1()?),
            "STENO_SPEAKER_BATCH_SIZE" => self.speaker_batch_size = Some(at_least_1()?),
            "STENO_SKIP_SPEAKERS" => self.skip_speakers = switch()?,
            "STENO_FAST_PATH" => self.fast_path = switch()?,
            "STENO_MEMORY_FRACTION" => {
                let fraction: f64 = value.parse().ok()?;
                self.memory_fraction = Some(fraction).filter(|part| *part > 0.0 && *part <= 1.0);
                self.memory_fraction?;
            }
            "STENO_TRIM_EVERY" => self.trim_every = value.parse().ok()?,
            "STENO_RENEW_AFTER" => self.renew_after = value.parse().ok()?,
            "STENO_MEMORY_LIMIT" => self.memory_limit = Some(bytes::parse(value).ok()?),
            "STENO_RAM_LIMIT" => self.ram_limit = Some(bytes::parse(value).ok()?),
            "STENO_EMBEDDING_PROFILE" => self.embedding_profile = EmbeddingProfile::read(value)?,
            "STENO_KEEP" => self.pins = Pins::read(value)?,
            _ => return None,
        }
        Some(())
    }

    /// The pins in force: speakers are pinned where the fast path is off.
    pub fn pins(&self) -> Pins {
        Pins { speakers: self.pins.speakers || !self.fast_path, ..self.pins }
    }

    /// What bounds a batch on a device.
    pub fn batch_limits(&self, kind: DeviceKind) -> BatchLimits {
        BatchLimits {
            // A number that the user names goes before the one that is usually fastest.
            max_useful_batch: self.batch_size.is_none().then(|| self.useful_batch(kind)),
            user: self.batch_size,
            buffer_fraction: self.memory_fraction,
        }
    }

    /// Windows beyond which more together are no faster: measured, else estimated.
    pub fn useful_batch(&self, kind: DeviceKind) -> u32 {
        self.useful_batch.unwrap_or(match kind {
            DeviceKind::Host => 4,
            DeviceKind::Gpu => 16,
        })
    }
}

/// What a switch is set to, in the words that every switch takes: `true` or `false`, `1` or `0`, `yes` or `no`, `on` or
/// `off`.
pub fn truth(value: &str) -> Option<bool> {
    match value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Some(true),
        "0" | "false" | "no" | "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::GIB;

    fn read(name: &str, value: &str) -> Result<MemorySettings, String> {
        let mut settings = MemorySettings::default();
        let lookup = |asked: &str| (asked == name).then(|| value.to_owned());
        settings.read_environment(lookup).map_err(|error| error.to_string())?;
        Ok(settings)
    }

    #[test]
    fn the_environment_sets_every_field() {
        let default = MemorySettings::default;
        for (name, value, expected) in [
            ("STENO_BATCH_SIZE", "8", MemorySettings { batch_size: Some(8), ..default() }),
            ("STENO_SPEAKER_BATCH_SIZE", " 2 ", MemorySettings { speaker_batch_size: Some(2), ..default() }),
            ("STENO_SKIP_SPEAKERS", "yes", MemorySettings { skip_speakers: true, ..default() }),
            ("STENO_FAST_PATH", "0", MemorySettings { fast_path: false, ..default() }),
            ("STENO_MEMORY_FRACTION", "0.125", MemorySettings { memory_fraction: Some(0.125), ..default() }),
            ("STENO_TRIM_EVERY", "0", MemorySettings { trim_every: 0, ..default() }),
            ("STENO_RENEW_AFTER", "10", MemorySettings { renew_after: 10, ..default() }),
            ("STENO_MEMORY_LIMIT", "6GiB", MemorySettings { memory_limit: Some(6 * GIB), ..default() }),
            ("STENO_RAM_LIMIT", "4g", MemorySettings { ram_limit: Some(4 * GIB), ..default() }),
            (
                "STENO_EMBEDDING_PROFILE",
                "Speed",
                MemorySettings { embedding_profile: EmbeddingProfile::Speed, ..default() },
            ),
            (
                "STENO_KEEP",
                "model, GPU",
                MemorySettings { pins: Pins { model: true, cpu: true, ..Pins::default() }, ..default() },
            ),
            (
                "STENO_KEEP",
                "precision,speakers",
                MemorySettings {
                    pins: Pins { precision: true, speakers: true, ..Pins::default() },
                    ..default()
                },
            ),
            ("STENO_BATCH_SIZE", "", default()),
        ] {
            assert_eq!(read(name, value), Ok(expected), "{name}={value}");
        }
    }

    #[test]
    fn a_bad_value_is_named_with_what_it_takes() {
        for (name, value) in [
            ("STENO_BATCH_SIZE", "0"),
            ("STENO_SPEAKER_BATCH_SIZE", "many"),
            ("STENO_SKIP_SPEAKERS", "maybe"),
            ("STENO_MEMORY_FRACTION", "0"),
            ("STENO_MEMORY_FRACTION", "1.5"),
            ("STENO_MEMORY_FRACTION", "NaN"),
            ("STENO_TRIM_EVERY", "-1"),
            ("STENO_MEMORY_LIMIT", "6 apples"),
            ("STENO_KEEP", "model,cpu"),
            ("STENO_EMBEDDING_PROFILE", "best"),
        ] {
            let error = read(name, value).unwrap_err();
            assert!(
                error.starts_with(&format!("{name} is \"{value}\"; it takes a"))
                    || ["STENO_SKIP_SPEAKERS", "STENO_EMBEDDING_PROFILE"].contains(&name),
                "{error}"
            );
        }
        assert_eq!(
            read("STENO_SKIP_SPEAKERS", "maybe").unwrap_err(),
            "STENO_SKIP_SPEAKERS is \"maybe\"; it takes true or false: never identify speakers"
        );
        assert!(
            read("STENO_EMBEDDING_PROFILE", "best").unwrap_err().contains("it takes speed or quality"),
            "the choices are named"
        );
    }

    #[test]
    fn profiles_go_by_name() {
        assert_eq!((Profile::read("safe"), Profile::read(" Fast")), (Ok(Profile::Safe), Ok(Profile::Fast)));
        assert_eq!(
            Profile::read("quick").unwrap_err().to_string(),
            "STENO_MEMORY_PROFILE is \"quick\"; it takes safe or fast: sets several of the other settings"
        );
        assert_eq!(key("STENO_BATCH_SIZE"), "batch_size");
    }

    #[test]
    fn without_the_fast_path_speakers_are_not_dropped() {
        let settings = MemorySettings { fast_path: false, ..MemorySettings::default() };
        assert!(settings.pins().speakers && !MemorySettings::default().pins().speakers);
        let safe = MemorySettings::of_profile(Profile::Safe).batch_limits(DeviceKind::Gpu);
        assert_eq!((safe.user, safe.max_useful_batch, safe.buffer_fraction), (Some(4), None, Some(0.125)));
        let asked = MemorySettings { batch_size: Some(64), ..MemorySettings::default() };
        assert_eq!(asked.batch_limits(DeviceKind::Gpu).max_useful_batch, None, "so many were asked for");
        let measured = MemorySettings { useful_batch: Some(32), ..MemorySettings::default() };
        assert_eq!(measured.batch_limits(DeviceKind::Gpu).max_useful_batch, Some(32));
    }
}
