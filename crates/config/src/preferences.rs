//! What the user wants of memory, of the engine and of the network, wherever it was said. A flag goes before the
//! environment, the environment before the config file, the file before a
//! profile, and a profile before the defaults.
//!
//! ```toml
//! # config.toml
//! [memory]
//! profile = "safe"
//! memory_limit = "6GiB"
//! batch_size = 8
//! keep = ["model", "speakers"]
//! precision = "q8_0"
//!
//! [engine]
//! threads = 4
//! priority = "low"
//! device = "cuda:1"
//!
//! [speakers]
//! model = "community-1"
//!
//! [models]
//! by_language = true
//!
//! [network]
//! hub = "https://mirror.example"
//! proxy = "http://proxy.example:3128"
//! off = true
//! ```

use std::path::{Path, PathBuf};
use std::time::Duration;

use memory::Precision;
use memory::settings::{BadSetting, MemorySettings, PROFILE, Profile, VARIABLES, key, truth};
use wire::{DeviceChoice, ErrorCode, Failure};

use crate::folders;

/// Names a config file in place of the user's own.
pub const CONFIG_VARIABLE: &str = "STENO_CONFIG";

/// How weights are held.
pub const PRECISION: (&str, &str) =
    ("STENO_PRECISION", "f32, f16, bf16 or a quantized form such as q8_0: how weights are held");

const FILE: &str = "steno/config.toml";

/// More than any machine has cores; each takes memory of its own.
const MOST_THREADS: usize = 1024;

/// The tables that the file may have.
const MEMORY: &str = "memory";
const NETWORK: &str = "network";
const ENGINE: &str = "engine";
const SPEAKERS: &str = "speakers";
const MODELS: &str = "models";

/// The number of threads: its variable, and what it takes.
pub const THREADS: (&str, &str) =
    ("STENO_THREADS", "a number from 1: threads that the engine computes with, at most one per core");
/// The priority of the engine: its variable, and what it takes.
pub const PRIORITY: (&str, &str) =
    ("STENO_PRIORITY", "low or normal: low gives other programs priority on the processor");

/// How long an idle engine keeps its model: the variable, and what it takes.
pub const IDLE_RELEASE: (&str, &str) = (
    "STENO_IDLE_RELEASE",
    "a number of seconds, or never: how long the window or the server keeps a model in memory after the last recording",
);
const IDLE_RELEASE_SECONDS: u64 = 600;
/// The device to compute on: its variable, and what it takes.
pub const DEVICE: (&str, &str) =
    ("STENO_DEVICE", "auto, cpu, cuda or cuda:N: the device to compute on, cards numbered as in nvidia-smi");

/// The model that tells speakers apart: its variable, and what it takes.
pub const SPEAKER_MODEL: (&str, &str) =
    ("STENO_SPEAKER_MODEL", "the name or folder of a speaker model, or built-in");
/// Stands for the networks that are in the program.
pub const BUILT_IN: &str = "built-in";

/// Whether a model follows from the language: the variable, and what it takes.
pub const MODEL_BY_LANGUAGE: (&str, &str) = (
    "STENO_MODEL_BY_LANGUAGE",
    "true or false: identify the language first, then transcribe with the model that is recommended for it",
);

/// Where models are downloaded from, through what, and whether at all: key,
/// variable, and what it takes.
const NETWORK_KEYS: [(&str, &str, &str); 3] = [
    ("hub", "HF_ENDPOINT", "the address of the hub or of a mirror of it, such as https://huggingface.co"),
    ("proxy", "STENO_PROXY", "the address of a proxy, such as http://HOST:PORT"),
    ("off", "STENO_OFFLINE", "true or false: never use the network"),
];

/// What is in force.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Preferences {
    /// What the user allows of memory.
    pub memory: MemorySettings,
    /// `None`: as stored.
    pub precision: Option<Precision>,
    /// How the engine computes.
    pub engine: EnginePreferences,
    /// The name or folder of the model that tells speakers apart; `None`: the one in the
    /// program.
    pub speaker_model: Option<String>,
    /// Where the language is to be detected and no model was named, it is identified first, and the model follows from it.
    pub model_by_language: bool,
    /// How downloads use the network.
    pub network: NetworkPreferences,
}

/// How the engine computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnginePreferences {
    /// `None`: one per core.
    pub threads: Option<usize>,
    /// Against other programs.
    pub priority: Priority,
    /// Where it computes.
    pub device: DeviceChoice,
    /// How long the model stays in memory once no recording waits; `None`: until the program ends.
    pub idle_release: Option<Duration>,
}

impl Default for EnginePreferences {
    fn default() -> Self {
        let idle_release = Some(Duration::from_secs(IDLE_RELEASE_SECONDS));
        Self { threads: None, priority: Priority::default(), device: DeviceChoice::default(), idle_release }
    }
}

/// How the engine's process stands against those of other programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Priority {
    /// Other programs go first.
    Low,
    /// As any program.
    #[default]
    Normal,
}

/// How downloads may use the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkPreferences {
    /// `None`: the public hub.
    pub hub: Option<String>,
    /// `None`: the one that the environment names for all programs.
    pub proxy: Option<String>,
    /// Never use it.
    pub off: bool,
}

/// Values by the names of their variables, as the user wrote them.
pub type Values = Vec<(&'static str, String)>;

/// Every variable that is read, with what it takes.
pub fn variables() -> impl Iterator<Item = (&'static str, &'static str)> {
    let network = NETWORK_KEYS.map(|(_, name, wanted)| (name, wanted));
    [PROFILE]
        .into_iter()
        .chain(VARIABLES)
        .chain([PRECISION, THREADS, PRIORITY, DEVICE, IDLE_RELEASE, SPEAKER_MODEL, MODEL_BY_LANGUAGE])
        .chain(network)
}

/// The table and the key that a variable has in the config file.
pub(crate) fn place_in_file(variable: &str) -> (&'static str, String) {
    match NETWORK_KEYS.iter().find(|(_, name, _)| *name == variable) {
        Some((key, ..)) => (NETWORK, (*key).to_owned()),
        None if [THREADS.0, PRIORITY.0, DEVICE.0, IDLE_RELEASE.0].contains(&variable) => {
            (ENGINE, key(variable))
        }
        None if variable == SPEAKER_MODEL.0 => (SPEAKERS, "model".into()),
        None if variable == MODEL_BY_LANGUAGE.0 => (MODELS, "by_language".into()),
        // The key of the profile is short: it lies in the table of memory already.
        None if variable == PROFILE.0 => (MEMORY, "profile".into()),
        None => (MEMORY, key(variable)),
    }
}

/// What this process's environment says.
pub fn environment() -> Values {
    variables()
        .filter_map(|(name, _)| Some((name, std::env::var_os(name)?.to_string_lossy().into_owned())))
        .filter(|(_, value)| !value.trim().is_empty())
        .collect()
}

/// Where the user's config file is, and whether it has to be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where it is, whether or not it exists.
    pub path: PathBuf,
    /// It was named: that it is missing is an error.
    pub named: bool,
}

impl ConfigFile {
    /// The one that `STENO_CONFIG` names, else `steno/config.toml` in the
    /// platform's folder for settings; `None` where there is no such folder.
    pub fn of_this_user() -> Option<Self> {
        if let Some(path) = std::env::var_os(CONFIG_VARIABLE).filter(|value| !value.is_empty()) {
            return Some(Self { path: path.into(), named: true });
        }
        folders::config().map(|folder| Self { path: folder.join(FILE), named: false })
    }

    /// Its values. Fails with `BadSettings`, naming the file, for one that
    /// can't be read, for what is not TOML, and for a key that is not known.
    ///
    /// # Errors
    /// `BadSettings`, naming the file, where it can't be read, is not TOML or
    /// has a key that is not known.
    pub fn read(&self) -> Result<Values, Failure> {
        let bytes = match std::fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !self.named => {
                return Ok(Vec::new());
            }
            Err(error) => {
                let message = format!("The config file can't be read ({error}).");
                return Err(Failure::new(ErrorCode::BadSettings, message).file(self.path.as_path()).remedy(
                    if self.named {
                        "STENO_CONFIG names it: set that to another file, or unset it."
                    } else {
                        "Change its permissions, or remove it."
                    },
                ));
            }
        };
        let text = String::from_utf8(bytes)
            .map_err(|_| self.wrong("The config file is not text in UTF-8.".into(), "Save it as UTF-8."))?;
        values(&text).map_err(|problem| self.wrong(problem, &known()))
    }

    fn wrong(&self, message: String, remedy: &str) -> Failure {
        Failure::new(ErrorCode::BadSettings, message).file(self.path.as_path()).remedy(remedy)
    }
}

impl Preferences {
    /// The settings of the user who runs this process, with `flags` on top.
    ///
    /// # Errors
    /// `BadSettings`, naming the variable, flag or file and what it takes.
    pub fn of_this_user(flags: &Values) -> Result<Self, Failure> {
        Self::of(ConfigFile::of_this_user().as_ref(), &environment(), flags)
    }

    /// As [`Preferences::of_this_user`], from these sources.
    ///
    /// # Errors
    /// As [`Preferences::of_this_user`].
    pub fn of(file: Option<&ConfigFile>, environment: &Values, flags: &Values) -> Result<Self, Failure> {
        let in_file = file.map(ConfigFile::read).transpose()?.unwrap_or_default();
        let sources: [(&Values, &dyn Fn(BadSetting) -> Failure); 3] = [
            (&in_file, &|bad| bad_value(bad, Said::InFile(file.map(|file| file.path.as_path())))),
            (environment, &|bad| bad_value(bad, Said::InEnvironment)),
            (flags, &|bad| bad_value(bad, Said::AsFlag)),
        ];
        let mut profile = None;
        for (values, explain) in sources {
            for (_, value) in values.iter().filter(|(name, _)| *name == PROFILE.0) {
                profile = Some(Profile::read(value).map_err(explain)?);
            }
        }
        let memory = profile.map_or_else(MemorySettings::default, MemorySettings::of_profile);
        let mut chosen = Self { memory, ..Self::default() };
        for (values, explain) in sources {
            for (name, value) in values {
                chosen.set(name, value).map_err(explain)?;
            }
        }
        Ok(chosen)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), BadSetting> {
        if let Some(network) = NETWORK_KEYS.iter().find(|(_, variable, _)| *variable == name) {
            return self.network.set(*network, value.trim());
        }
        if let Some(wish) =
            [THREADS, PRIORITY, DEVICE, IDLE_RELEASE].into_iter().find(|(variable, _)| *variable == name)
        {
            return self.engine.set(wish, value.trim());
        }
        if name == SPEAKER_MODEL.0 {
            let model = value.trim();
            if model.is_empty() {
                return Err(BadSetting {
                    name: SPEAKER_MODEL.0,
                    value: value.to_owned(),
                    wanted: SPEAKER_MODEL.1,
                });
            }
            self.speaker_model = (model != BUILT_IN).then(|| model.to_owned());
            return Ok(());
        }
        if name == MODEL_BY_LANGUAGE.0 {
            let (name, wanted) = MODEL_BY_LANGUAGE;
            let wrong = || BadSetting { name, value: value.to_owned(), wanted };
            self.model_by_language = truth(value).ok_or_else(wrong)?;
            return Ok(());
        }
        if name != PRECISION.0 {
            return self.memory.set(name, value);
        }
        let wrong = |_| BadSetting { name: PRECISION.0, value: value.to_owned(), wanted: PRECISION.1 };
        self.precision = Some(value.trim().parse().map_err(wrong)?);
        Ok(())
    }

    /// Whether a value would be taken; for a flag, as soon as it is read.
    ///
    /// # Errors
    /// What the setting takes, to follow "NAME: ".
    pub fn check(name: &'static str, value: &str) -> Result<(), String> {
        let checked = match name {
            name if name == PROFILE.0 => Profile::read(value).map(drop),
            name => Self::default().set(name, value),
        };
        checked.map_err(|bad| format!("it takes {}", bad.wanted))
    }
}

impl EnginePreferences {
    fn set(&mut self, (name, wanted): (&'static str, &'static str), value: &str) -> Result<(), BadSetting> {
        let wrong = || BadSetting { name, value: value.to_owned(), wanted };
        if name == THREADS.0 {
            let threads = value.parse().ok().filter(|threads| (1..=MOST_THREADS).contains(threads));
            self.threads = Some(threads.ok_or_else(wrong)?);
        } else if name == DEVICE.0 {
            self.device = device(value).ok_or_else(wrong)?;
        } else if name == IDLE_RELEASE.0 {
            self.idle_release = match value.to_ascii_lowercase().as_str() {
                "never" => None,
                seconds => Some(Duration::from_secs(seconds.parse().map_err(|_| wrong())?)),
            };
        } else {
            self.priority = match value.to_ascii_lowercase().as_str() {
                "low" => Priority::Low,
                "normal" => Priority::Normal,
                _ => return Err(wrong()),
            };
        }
        Ok(())
    }
}

fn device(text: &str) -> Option<DeviceChoice> {
    match text.to_ascii_lowercase().as_str() {
        "auto" => Some(DeviceChoice::Auto),
        "cpu" => Some(DeviceChoice::Cpu),
        "cuda" | "gpu" => Some(DeviceChoice::Cuda(0)),
        other => other.strip_prefix("cuda:")?.parse().ok().map(DeviceChoice::Cuda),
    }
}

impl NetworkPreferences {
    fn set(
        &mut self,
        (key, name, wanted): (&'static str, &'static str, &'static str),
        value: &str,
    ) -> Result<(), BadSetting> {
        let wrong = || BadSetting { name, value: value.to_owned(), wanted };
        let is_address = value.starts_with("http://") || value.starts_with("https://");
        match (key, value) {
            ("off", _) => self.off = truth(value).ok_or_else(wrong)?,
            ("hub", _) if is_address => self.hub = Some(value.to_owned()),
            ("proxy", _) if is_address => self.proxy = Some(value.to_owned()),
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// Where a value was said.
enum Said<'a> {
    InFile(Option<&'a Path>),
    InEnvironment,
    AsFlag,
}

fn bad_value(bad: BadSetting, said: Said) -> Failure {
    let BadSetting { name, value, wanted } = bad;
    let of = |name: &str| format!("{name} is \"{value}\"; it takes {wanted}.");
    let failure = |message| Failure::new(ErrorCode::BadSettings, message);
    match said {
        Said::InFile(path) => {
            let (table, key) = place_in_file(name);
            let failure = failure(of(&format!("{table}.{key}"))).remedy("Correct the file.");
            match path {
                Some(path) => failure.file(path),
                None => failure,
            }
        }
        Said::InEnvironment => {
            failure(of(name)).remedy("It is an environment variable: set it to another value, or unset it.")
        }
        Said::AsFlag => failure(of(&flag(name))),
    }
}

/// The flag of a variable's setting: `--batch-size`.
pub fn flag(variable: &str) -> String {
    match place_in_file(variable) {
        (NETWORK, key) if key == "off" => "--offline".into(),
        (NETWORK, key) => format!("--{key}"),
        _ => format!("--{}", key(variable).replace('_', "-")),
    }
}

fn known() -> String {
    let keys = |table: &str| {
        let places = variables().map(|(name, _)| place_in_file(name));
        let keys: Vec<String> =
            places.filter(|(in_table, _)| *in_table == table).map(|(_, key)| key).collect();
        keys.join(", ")
    };
    format!(
        "The file may have a table [{MEMORY}] with these keys: {}; a table [{ENGINE}] with these: {}; a table \
         [{SPEAKERS}] with this: {}; a table [{MODELS}] with this: {}; and a table [{NETWORK}] with these: {}.",
        keys(MEMORY),
        keys(ENGINE),
        keys(SPEAKERS),
        keys(MODELS),
        keys(NETWORK)
    )
}

/// The values of a config file's text; what is wrong with it otherwise, in a
/// sentence.
fn values(text: &str) -> Result<Values, String> {
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| {
        let place = error.span().map(|span| {
            let before = text.get(..span.start).unwrap_or(text);
            format!(" in line {}", before.matches('\n').count() + 1)
        });
        format!("The config file is not TOML{}: {}.", place.unwrap_or_default(), error.message())
    })?;
    let mut found = Vec::new();
    for (name, value) in &table {
        let toml::Value::Table(settings) = value else {
            return Err(format!("The config file has a key \"{name}\", which is not known."));
        };
        if ![MEMORY, ENGINE, SPEAKERS, MODELS, NETWORK].contains(&name.as_str()) {
            return Err(format!("The config file has a table [{name}], which is not known."));
        }
        let table = name;
        for (name, value) in settings {
            let place = (table.as_str(), name.as_str());
            let is_it = |variable: &str| {
                let (table, key) = place_in_file(variable);
                (table, key.as_str()) == place
            };
            let Some((variable, wanted)) = variables().find(|(variable, _)| is_it(variable)) else {
                return Err(format!("The config file has a key \"{table}.{name}\", which is not known."));
            };
            let value = as_text(value).ok_or_else(|| {
                format!(
                    "{table}.{name} is {}; it takes {wanted}.",
                    value.type_str().replace("array", "a list")
                )
            })?;
            found.push((variable, value));
        }
    }
    Ok(found)
}

/// A value as it would stand in the environment; a list becomes its words.
fn as_text(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(switch) => Some(switch.to_string()),
        toml::Value::Array(words) => {
            let words: Option<Vec<String>> =
                words.iter().map(|word| word.as_str().map(str::to_owned)).collect();
            Some(words?.join(","))
        }
        toml::Value::Table(_) | toml::Value::Datetime(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::bytes::GIB;
    use memory::ladder::Pins;

    /// Names of variables with values.
    type Pairs<'a> = &'a [(&'a str, &'a str)];

    /// The config file's text, then values of the environment and of flags.
    fn preferences(
        file: &str,
        environment: &[(&str, &str)],
        flags: &[(&str, &str)],
    ) -> Result<Preferences, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, file).unwrap();
        let owned = |values: &[(&str, &str)]| -> Values {
            let known = |name: &str| variables().find(|(known, _)| *known == name).unwrap().0;
            values.iter().map(|(name, value)| (known(name), (*value).to_owned())).collect()
        };
        let chosen =
            Preferences::of(Some(&ConfigFile { path, named: true }), &owned(environment), &owned(flags));
        let folder = format!("{}/", folder.path().display());
        chosen.map_err(|failure| failure.to_string().replace(&folder, ""))
    }

    #[test]
    fn flags_go_before_the_environment_before_the_file_before_the_profile() {
        let batch = "STENO_BATCH_SIZE";
        // (file, environment, flags) -> batch size, trim every, renew after
        type Case<'a> = (&'a str, Pairs<'a>, Pairs<'a>, (Option<u32>, u32, u32));
        let cases: [Case; 8] = [
            ("", &[], &[], (None, 5, 50)),
            ("[memory]\nprofile = 'safe'", &[], &[], (Some(4), 5, 25)),
            ("[memory]\nbatch_size = 6\nprofile = 'safe'", &[], &[], (Some(6), 5, 25)),
            ("[memory]\nbatch_size = 6", &[(batch, "7")], &[], (Some(7), 5, 50)),
            ("[memory]\nbatch_size = 6", &[(batch, "7")], &[(batch, "8")], (Some(8), 5, 50)),
            // Whichever profile is in force, single values go before it.
            ("[memory]\nprofile = 'safe'", &[("STENO_MEMORY_PROFILE", "fast")], &[], (None, 0, 0)),
            ("[memory]\nrenew_after = 9", &[], &[("STENO_MEMORY_PROFILE", "safe")], (Some(4), 5, 9)),
            (
                "[memory]\nrenew_after = 9",
                &[("STENO_RENEW_AFTER", "0")],
                &[("STENO_TRIM_EVERY", "1")],
                (None, 1, 0),
            ),
        ];
        for (file, environment, flags, expected) in cases {
            let chosen = preferences(file, environment, flags).unwrap().memory;
            let found = (chosen.batch_size, chosen.trim_every, chosen.renew_after);
            assert_eq!(found, expected, "{file:?} {environment:?} {flags:?}");
        }
    }

    #[test]
    fn the_file_sets_everything() {
        let file = r#"
            # Comments are welcome.
            [memory]
            batch_size = 3
            speaker_batch_size = 2
            skip_speakers = true
            fast_path = false
            memory_fraction = 0.5
            trim_every = 7
            renew_after = 8
            memory_limit = "6GiB"
            ram_limit = 4294967296
            keep = ["model", "gpu"]
            precision = "q8_0"
            [engine]
            threads = 3
            priority = "low"
            device = "cuda:1"
            [speakers]
            model = "community-1"
            [models]
            by_language = true
            [network]
            hub = "https://mirror.example"
            proxy = "http://proxy.example:3128"
            off = true
        "#;
        let expected = Preferences {
            memory: MemorySettings {
                batch_size: Some(3),
                speaker_batch_size: Some(2),
                skip_speakers: true,
                fast_path: false,
                memory_fraction: Some(0.5),
                trim_every: 7,
                renew_after: 8,
                memory_limit: Some(6 * GIB),
                ram_limit: Some(4 * GIB),
                pins: Pins { model: true, cpu: true, ..Pins::default() },
                ..MemorySettings::default()
            },
            precision: Some(Precision::Q8_0),
            engine: EnginePreferences {
                threads: Some(3),
                priority: Priority::Low,
                device: DeviceChoice::Cuda(1),
                ..EnginePreferences::default()
            },
            speaker_model: Some("community-1".into()),
            model_by_language: true,
            network: NetworkPreferences {
                hub: Some("https://mirror.example".into()),
                proxy: Some("http://proxy.example:3128".into()),
                off: true,
            },
        };
        assert_eq!(preferences(file, &[], &[]), Ok(expected));
    }

    #[test]
    fn devices() {
        for (text, expected) in [
            ("auto", DeviceChoice::Auto),
            ("CPU", DeviceChoice::Cpu),
            ("cuda", DeviceChoice::Cuda(0)),
            ("cuda:3", DeviceChoice::Cuda(3)),
        ] {
            assert_eq!(device(text), Some(expected));
        }
        for text in ["", "cuda:", "cuda:x", "cuda:-1", "tpu"] {
            assert_eq!(device(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place_and_what_would_be_right() {
        let keys = "The file may have a table [memory] with these keys: profile, batch_size, ";
        type Case<'a> = (&'a str, Pairs<'a>, Pairs<'a>, &'a [&'a str]);
        let cases: [Case; 18] = [
            (
                "[models]\nby_language = 'always'",
                &[],
                &[],
                &["config.toml: models.by_language is \"always\"; it takes true or false: "],
            ),
            (
                "[engine]\nthreads = 0",
                &[],
                &[],
                &["config.toml: engine.threads is \"0\"; it takes a number from 1: "],
            ),
            ("", &[], &[("STENO_PRIORITY", "high")], &["--priority is \"high\"; it takes low or normal: "]),
            (
                "[engine]\ncores = 2",
                &[],
                &[],
                &["a key \"engine.cores\", which is not known", "threads, priority, device, idle_release; "],
            ),
            (
                "[network]\nhub = 'mirror'",
                &[],
                &[],
                &["network.hub is \"mirror\"; it takes the address of the hub"],
            ),
            (
                "[network]\nfast = true",
                &[],
                &[],
                &["a key \"network.fast\", which is not known", "hub, proxy, off."],
            ),
            ("", &[("STENO_OFFLINE", "maybe")], &[], &["STENO_OFFLINE is \"maybe\"; it takes true or false"]),
            (
                "[memory]\nbatchsize = 1",
                &[],
                &[],
                &["config.toml: The config file has a key \"memory.batchsize\", which is not known.", keys],
            ),
            (
                "batch_size = 1",
                &[],
                &[],
                &["config.toml: The config file has a key \"batch_size\", which is not known.", keys],
            ),
            (
                "[people]\n",
                &[],
                &[],
                &["config.toml: The config file has a table [people], which is not known.", keys],
            ),
            ("[memory]\nbatch_size =\n", &[], &[], &["config.toml: The config file is not TOML in line 2: "]),
            (
                "[memory]\nbatch_size = 0",
                &[],
                &[],
                &["config.toml: memory.batch_size is \"0\"; it takes a number from 1: "],
            ),
            (
                "[memory]\nbatch_size = 1.5",
                &[],
                &[],
                &["config.toml: memory.batch_size is \"1.5\"; it takes a number from 1: "],
            ),
            ("[memory]\nkeep = [1]", &[], &[], &["memory.keep is a list; it takes any of model, "]),
            ("[memory]\nprofile = 'quick'", &[], &[], &["it takes safe or fast: "]),
            (
                "[memory]\nprecision = 'q3'",
                &[],
                &[],
                &["config.toml: memory.precision is \"q3\"; it takes f32, "],
            ),
            (
                "",
                &[("STENO_RAM_LIMIT", "much")],
                &[],
                &[
                    "STENO_RAM_LIMIT is \"much\"; it takes an amount such as 4GiB",
                    "It is an environment variable",
                ],
            ),
            (
                "",
                &[],
                &[("STENO_RAM_LIMIT", "much")],
                &["--ram-limit is \"much\"; it takes an amount such as 4GiB"],
            ),
        ];
        for (file, environment, flags, parts) in cases {
            let error = preferences(file, environment, flags).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{file:?}: no {part:?} in {error:?}");
            }
        }
    }

    #[test]
    fn the_networks_in_the_program_go_before_a_model_of_the_file() {
        let file = "[speakers]\nmodel = 'community-1'";
        let model = |flags: Pairs| preferences(file, &[], flags).unwrap().speaker_model;
        assert_eq!(model(&[]).as_deref(), Some("community-1"));
        assert_eq!(model(&[("STENO_SPEAKER_MODEL", "/models/mine")]).as_deref(), Some("/models/mine"));
        assert_eq!(model(&[("STENO_SPEAKER_MODEL", BUILT_IN)]), None);
        assert!(preferences("[speakers]\nmodel = ' '", &[], &[]).unwrap_err().contains("speakers.model is"));
    }

    #[test]
    fn a_file_that_was_named_must_be_there_and_the_usual_one_need_not() {
        let path = tempfile::tempdir().unwrap().path().join("none.toml");
        assert_eq!(ConfigFile { path: path.clone(), named: false }.read(), Ok(Vec::new()));
        let failure = ConfigFile { path, named: true }.read().unwrap_err();
        assert!(failure.to_string().contains("none.toml: The config file can't be read"), "{failure}");
    }
}
