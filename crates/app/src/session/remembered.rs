//! What the window remembers from one start to the next: a small file in the
//! user's configuration folder. Nothing depends on it, so that what of it can't
//! be read counts as not chosen; the user is told, and a copy of the file is kept.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use transcript::export::{DocumentOptions, Format, Options, Shaping};
use transcript::save::{Existing, SaveError, write_file};
use ts_rs::TS;
use wire::{ErrorCode, Failure, FilePath};

use super::another_machine::Machine;
use super::folders::WatchedFolder;
use super::settings::{Decoding, Output, Preset, Sound, Speakers};
use super::workers::WorkerQueue;
use config::folders;

const FILE: &str = "steno/window.json";

/// Choices that outlive the window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Remembered {
    /// The model that was last chosen, unless it was the demonstration.
    pub model: Option<FilePath>,
    /// Models that the user chose by their folder.
    pub models: Vec<FilePath>,
    /// ISO 639-1.
    pub language: Option<String>,
    /// Transcripts are translated into English.
    pub translate: bool,
    /// The original is kept, with the translation beside it.
    pub bilingual: bool,
    /// How text was last searched for.
    pub decoding: Decoding,
    /// What of the sound was last transcribed.
    pub sound: Sound,
    /// Whether speakers were last told apart.
    pub speakers: Speakers,
    /// Where transcripts last went, and under which names.
    pub output: Output,
    /// Folders for transcripts that the user chose.
    pub output_folders: Vec<FilePath>,
    /// Settings that were saved under a name.
    pub presets: Vec<Preset>,
    /// The shortest recording is transcribed first.
    pub shortest_first: bool,
    /// The watched folders.
    pub watched: Vec<WatchedFolder>,
    /// What the window may do beyond itself.
    pub switches: Switches,
    /// Which machine transcribes; its token is not here.
    pub machine: Machine,
    /// The queue of workers that the window looks at.
    pub workers: WorkerQueue,
    /// Where the window was when it was closed.
    pub window: Option<WindowBounds>,
    /// Light, dark, or as the system.
    #[serde(deserialize_with = "if_known")]
    pub theme: Theme,
    /// `None`: the system's.
    #[serde(deserialize_with = "if_known")]
    pub interface: Option<Language>,
    /// How transcripts were last saved.
    pub exporting: Exporting,
    /// Uncertain words are not marked.
    pub hide_unsure: bool,
    /// The pictures of a film are not shown while it is heard.
    pub hide_pictures: bool,
    /// Keys that the user chose, by what they do; all others have those of the page.
    #[serde(deserialize_with = "if_known")]
    pub keys: BTreeMap<String, Vec<String>>,
    /// The version of the web view whose usual renderer showed nothing.
    pub fallback_renderer: Option<String>,
}

/// What the window may do beyond itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Switches {
    /// The machine does not go to sleep while there is work.
    pub stay_awake: bool,
    /// Says when the queue ends while the user is elsewhere.
    pub notify: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self { stay_awake: true, notify: true }
    }
}

/// The colours of the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum Theme {
    /// As the system.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

/// The languages of the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    En,
    /// German.
    De,
    /// Spanish.
    Es,
    /// French.
    Fr,
    /// In simplified characters.
    Zh,
    /// Japanese.
    Ja,
}

/// How transcripts were last saved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct Exporting {
    /// The formats to write.
    pub formats: Vec<Format>,
    /// Subtitles divided into cues that fit a screen.
    pub shaped: bool,
    /// In vtt, ass and lrc, when each word is said.
    pub word_times: bool,
    /// In tables and SubRip, text that other programs take for a formula or a tag is kept.
    pub raw_text: bool,
    /// In subtitles and plain text, a translation stands below what was said.
    pub translation: bool,
    /// In documents, what stands beside the text.
    pub document: DocumentOptions,
}

impl Default for Exporting {
    fn default() -> Self {
        Self {
            formats: vec![Format::Srt],
            shaped: false,
            word_times: false,
            raw_text: false,
            translation: true,
            document: DocumentOptions::default(),
        }
    }
}

impl Exporting {
    /// The options of an export in these formats.
    pub fn options(&self) -> Options {
        Options {
            shaping: self.shaped.then(Shaping::default),
            word_times: self.word_times,
            raw_text: self.raw_text,
            translation: self.translation,
            document: self.document,
            ..Options::default()
        }
    }
}

/// In the desktop's own units, which don't depend on a screen's resolution.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct WindowBounds {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width without the frame.
    pub width: f64,
    /// Height without the frame.
    pub height: f64,
    /// It fills the screen; the rest is its size before.
    pub maximized: bool,
}

/// A value that another version knows and this one does not counts as none: all else is kept.
fn if_known<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).unwrap_or_default())
}

/// What of a value under this name can be read: of a list or a group those entries.
fn readable_part(name: &str, value: &Value) -> Option<Value> {
    let is_read = |value: &Value| serde_json::from_value::<Remembered>(json!({ name: value })).is_ok();
    if is_read(value) {
        return Some(value.clone());
    }
    let rest = match value {
        Value::Array(all) => all.iter().filter(|one| is_read(&json!([one]))).cloned().collect(),
        Value::Object(all) => {
            let entries = all.iter().filter(|(key, one)| is_read(&json!({ *key: one })));
            Value::Object(entries.map(|(key, one)| (key.clone(), one.clone())).collect())
        }
        _ => return None,
    };
    Some(rest).filter(is_read)
}

impl Remembered {
    /// The user's own, wherever this system keeps such files; `None` where it has no place for them.
    pub fn file() -> Option<PathBuf> {
        folders::config().map(|folder| folder.join(FILE))
    }

    /// Reads the file; the defaults in place of what can't be read.
    pub fn load(file: &Path) -> Self {
        Self::read(file).0
    }

    /// As [`Remembered::load`]. Where something can't be read, a copy of the file is made, since it is
    /// written anew with the next choice; then also what to tell the user, about that copy.
    pub fn open(file: &Path) -> (Self, Option<Failure>) {
        let (remembered, problem) = Self::read(file);
        let failure = problem.map(|problem| {
            let copy = file.with_extension("unreadable.json");
            match std::fs::copy(file, &copy) {
                Ok(_) => Failure::new(ErrorCode::BadSettings, problem)
                    .file(copy)
                    .remedy("This copy of the file has them."),
                Err(error) => Failure::new(
                    ErrorCode::BadSettings,
                    format!("{problem} No copy could be made ({error})."),
                )
                .file(file)
                .remedy("Copy the file before you change a setting."),
            }
        });
        (remembered, failure)
    }

    /// All that can be read, and a sentence about what can't.
    fn read(file: &Path) -> (Self, Option<String>) {
        let json = match std::fs::read(file) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Default::default(),
            Err(error) => {
                return (Self::default(), Some(format!("The window's settings can't be read ({error}).")));
            }
        };
        if let Ok(all) = serde_json::from_slice(&json) {
            return (all, None);
        }
        let all = match serde_json::from_slice(&json) {
            Ok(Value::Object(all)) => all,
            Ok(_) => {
                return (Self::default(), Some("The window's settings are not an object of JSON.".into()));
            }
            Err(error) => {
                return (Self::default(), Some(format!("The window's settings are not JSON ({error}).")));
            }
        };
        let (mut readable, mut unreadable) = (serde_json::Map::new(), Vec::new());
        for (name, value) in all {
            let rest = readable_part(&name, &value);
            if rest.as_ref() != Some(&value) {
                unreadable.push(format!("`{name}`"));
            }
            readable.extend(rest.map(|rest| (name, rest)));
        }
        let problem = format!("Some of the window's settings can't be read: {}.", unreadable.join(", "));
        (serde_json::from_value(Value::Object(readable)).unwrap_or_default(), Some(problem))
    }

    /// Writes the file whole or not at all. Makes the folder where there is none.
    ///
    /// # Errors
    /// Where the folder can't be made, or the file can't be written.
    pub fn save(&self, file: &Path) -> Result<(), SaveError> {
        let io = |source| SaveError::Io { path: file.into(), source };
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let json = serde_json::to_vec_pretty(self).map_err(|error| io(error.into()))?;
        write_file(file, Existing::Replace, |out| out.write_all(&json))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_remembered_comes_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("not there yet/window.json");
        assert_eq!(Remembered::load(&file), Remembered::default());
        let remembered = Remembered {
            model: Some("/models/Größe \u{1F399}".into()),
            models: vec!["/models/Größe \u{1F399}".into()],
            language: Some("de".into()),
            translate: true,
            bilingual: true,
            decoding: Decoding {
                beams: Some(5),
                several_languages: true,
                words: vec!["Ærø".into()],
                words_strength: Some(12),
                prompt: "A talk.".into(),
            },
            sound: Sound { channels: wire::Channels::Right, voice_activity: wire::VoiceActivity::Off },
            speakers: Speakers { tell_apart: true, count: Some(3) },
            output: Output { folder: Some("/texts".into()), name: "{name}".into(), when_finished: None },
            output_folders: vec!["/texts".into()],
            presets: vec![Preset { name: "Interviews".into(), ..Preset::default() }],
            shortest_first: true,
            watched: vec![WatchedFolder {
                folder: "/recorder".into(),
                exporting: Exporting::default(),
                into: Some("/texts".into()),
            }],
            switches: Switches { stay_awake: false, notify: true },
            machine: Machine { on: true, address: "http://studio:8642".into(), model: Some("small".into()) },
            workers: WorkerQueue { address: "nats://head:4222".into(), queue: "lab".into() },
            window: Some(WindowBounds { x: -20.0, y: 8.5, width: 900.0, height: 700.0, maximized: true }),
            theme: Theme::Dark,
            interface: Some(Language::De),
            exporting: Exporting {
                formats: vec![Format::Vtt, Format::Docx],
                shaped: true,
                word_times: true,
                raw_text: true,
                translation: false,
                document: DocumentOptions { times: false, ..DocumentOptions::default() },
            },
            hide_unsure: true,
            hide_pictures: true,
            keys: BTreeMap::from([("accept".into(), vec!["F12".into()])]),
            fallback_renderer: Some("2.48.1".into()),
        };
        remembered.save(&file).unwrap();
        assert_eq!(Remembered::load(&file), remembered);
    }

    #[test]
    fn one_wrong_value_takes_no_other_with_it_is_named_and_kept_in_a_copy() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("window.json");
        let copy = folder.path().join("window.unreadable.json");
        let json = r#"{
            "language": 7, "translate": true, "output_folders": ["/texts"],
            "exporting": {"formats": ["vtt"], "shaped": "very", "raw_text": true},
            "presets": [{"name": "Interviews"}, {"name": 3}, {"name": "Talks"}],
            "window": {"x": 1.0, "y": "left"}
        }"#;
        std::fs::write(&file, json).unwrap();
        let (read, failure) = Remembered::open(&file);
        let names: Vec<_> = read.presets.iter().map(|preset| preset.name.as_str()).collect();
        assert_eq!(names, ["Interviews", "Talks"]);
        assert!(read.translate && read.exporting.raw_text && !read.exporting.shaped);
        assert_eq!((read.exporting.formats, read.output_folders), (vec![Format::Vtt], vec!["/texts".into()]));
        assert_eq!((read.language, read.window), (None, None));
        let failure = failure.unwrap();
        for name in ["language", "exporting", "presets", "window"] {
            assert!(failure.message.contains(&format!("`{name}`")), "{failure}");
        }
        assert!(!failure.message.contains("translate"), "{failure}");
        assert_eq!(failure.file.unwrap().as_path(), copy);
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), json);

        // What is well is not copied, and one that is not there is not told of.
        std::fs::remove_file(&copy).unwrap();
        Remembered::default().save(&file).unwrap();
        assert_eq!(Remembered::open(&file), (Remembered::default(), None));
        std::fs::remove_file(&file).unwrap();
        assert_eq!(Remembered::open(&file), (Remembered::default(), None));
        assert!(!copy.exists());
        std::fs::write(&file, "{").unwrap();
        assert_eq!(Remembered::open(&file).1.unwrap().file.unwrap().as_path(), copy);
    }

    #[test]
    fn a_damaged_file_is_as_good_as_none_and_one_of_another_version_keeps_what_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("window.json");
        for (json, language) in [
            ("", None),
            ("{", None),
            ("[1]", None),
            (r#"{"language": "fr", "colour": "green"}"#, Some("fr")),
            (r#"{"language": "fr", "interface": "tlh", "theme": "sepia"}"#, Some("fr")),
        ] {
            std::fs::write(&file, json).unwrap();
            assert_eq!(Remembered::load(&file).language.as_deref(), language, "{json}");
        }
    }

    #[test]
    fn every_language_of_the_window_is_known_by_its_code() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("window.json");
        for code in ["en", "de", "es", "fr", "zh", "ja"] {
            std::fs::write(&file, format!(r#"{{"interface": "{code}"}}"#)).unwrap();
            let remembered = Remembered::load(&file);
            assert!(remembered.interface.is_some(), "{code}");
            remembered.save(&file).unwrap();
            assert_eq!(Remembered::load(&file).interface, remembered.interface, "{code}");
        }
    }
}
