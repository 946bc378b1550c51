//! What a recording is transcribed with: at hand for all that come, of its own
//! for some, or kept under a name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript::Task;
use wire::{ErrorCode, Failure, FilePath, Job, SpeakerCount};

use advisor::ModelRef;
use advisor::models::model_at;

/// Most beams that the window offers; more take time and find nothing.
pub const MOST_BEAMS: u32 = 8;

/// What the user may choose for a recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobSettings {
    /// `None`: there is no model at all.
    pub model: Option<ModelRef>,
    /// ISO 639-1; `None`: detect.
    pub language: Option<String>,
    /// Transcribe, or translate into English.
    pub task: Task,
    /// The original is kept, with the translation beside it.
    pub bilingual: bool,
    /// How text is searched for.
    pub decoding: Decoding,
    /// Whether speakers are told apart.
    pub speakers: Speakers,
}

/// Whether speakers are told apart, and how many there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Speakers {
    /// Tell them apart.
    pub tell_apart: bool,
    /// How many there are; `None`: as many as are found.
    pub count: Option<u32>,
}

/// What of the decoding a user may choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decoding {
    /// From 1 to [`MOST_BEAMS`]; 1 is the quickest.
    pub beams: u32,
    /// Detect the language of each stretch anew.
    pub several_languages: bool,
    /// Names and words to be expected.
    pub words: Vec<String>,
}

impl Default for Decoding {
    fn default() -> Self {
        Self { beams: 1, several_languages: false, words: Vec::new() }
    }
}

/// Settings as they are written down: the model by its path.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stored {
    /// The model's path.
    pub model: Option<FilePath>,
    /// ISO 639-1; `None`: detect.
    pub language: Option<String>,
    /// Translate into English.
    pub translate: bool,
    /// The original is kept, with the translation beside it.
    pub bilingual: bool,
    /// How text is searched for.
    pub decoding: Decoding,
    /// Whether speakers are told apart.
    pub speakers: Speakers,
}

/// Settings under a name.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preset {
    /// The name that the user gave.
    pub name: String,
    /// The settings.
    #[serde(flatten)]
    pub settings: Stored,
}

impl JobSettings {
    /// Whatever else of a job is set already stays.
    pub fn fill(&self, job: &mut Job) {
        job.language.clone_from(&self.language);
        // The translation follows, once there is what it stands beside.
        job.task = if self.wants_both() { Task::Transcribe } else { self.task };
        let Decoding { beams, several_languages, words } = &self.decoding;
        job.decoding.beam_size = (*beams).clamp(1, MOST_BEAMS) as usize;
        job.decoding.language_per_region = *several_languages;
        job.decoding.vocabulary.clone_from(words);
        let Speakers { tell_apart, count } = self.speakers;
        job.speakers = tell_apart;
        let count = count.map(|count| count.clamp(1, SpeakerCount::MOST));
        job.speaker_count = count.map(SpeakerCount::exactly).unwrap_or_default();
    }

    /// Whether a translation is to stand beside the text.
    pub fn wants_both(&self) -> bool {
        self.bilingual && self.task == Task::Translate
    }

    /// Whether the model is the demonstration.
    pub fn is_demonstration(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.demonstration)
    }
}

impl From<&JobSettings> for Stored {
    fn from(settings: &JobSettings) -> Self {
        Self {
            model: settings.model.as_ref().map(|model| model.path.clone().into()),
            language: settings.language.clone(),
            translate: settings.task == Task::Translate,
            bilingual: settings.bilingual,
            decoding: settings.decoding.clone(),
            speakers: settings.speakers,
        }
    }
}

impl Stored {
    /// A model that is gone since is named all the same: its job says so.
    pub fn settings(self) -> JobSettings {
        let task = if self.translate { Task::Translate } else { Task::Transcribe };
        let model = self.model.map(|path| find(path.as_path()));
        let Self { language, bilingual, decoding, speakers, .. } = self;
        JobSettings { model, language, task, bilingual, decoding, speakers }
    }
}

fn find(path: &Path) -> ModelRef {
    model_at(path).unwrap_or_else(|_| ModelRef {
        name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        path: PathBuf::from(path),
        demonstration: false,
        note: None,
    })
}

/// Keeps settings under a name, in place of those that had it.
///
/// # Errors
/// `BadSettings` for a name of nothing but spaces.
pub fn save_preset(presets: &mut Vec<Preset>, name: &str, settings: Stored) -> Result<(), Failure> {
    let name = checked(name)?;
    match presets.iter_mut().find(|preset| preset.name == name) {
        Some(preset) => preset.settings = settings,
        None => {
            presets.push(Preset { name, settings });
            presets.sort_by_cached_key(|preset| preset.name.to_lowercase());
        }
    }
    Ok(())
}

/// # Errors
/// `BadSettings` where there is no such preset, and for a name that is taken
/// or none.
pub fn rename_preset(presets: &mut [Preset], name: &str, to: &str) -> Result<(), Failure> {
    let to = checked(to)?;
    if to != name && presets.iter().any(|preset| preset.name == to) {
        let message = format!("There are settings named \"{to}\" already.");
        return Err(Failure::new(ErrorCode::NameTaken, message).remedy("Choose another name."));
    }
    let preset = presets.iter_mut().find(|preset| preset.name == name).ok_or_else(|| {
        Failure::new(ErrorCode::BadSettings, format!("There are no settings named \"{name}\"."))
            .remedy("They may have been deleted.")
    })?;
    preset.name = to;
    presets.sort_by_cached_key(|preset| preset.name.to_lowercase());
    Ok(())
}

fn checked(name: &str) -> Result<String, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::new(ErrorCode::NameMissing, "Settings can't be kept without a name.")
            .remedy("Enter a name."));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(language: &str) -> Stored {
        Stored { language: Some(language.into()), ..Stored::default() }
    }

    #[test]
    fn presets_are_saved_renamed_and_replaced_by_name() {
        let mut presets = Vec::new();
        save_preset(&mut presets, " Interviews ", stored("de")).unwrap();
        save_preset(&mut presets, "fast", stored("en")).unwrap();
        save_preset(&mut presets, "Interviews", stored("fr")).unwrap();
        let named = |presets: &[Preset]| -> Vec<String> {
            presets
                .iter()
                .map(|it| format!("{} {}", it.name, it.settings.language.as_deref().unwrap()))
                .collect()
        };
        assert_eq!(named(&presets), ["fast en", "Interviews fr"]);
        rename_preset(&mut presets, "fast", "Quick").unwrap();
        assert_eq!(named(&presets), ["Interviews fr", "Quick en"]);
        rename_preset(&mut presets, "Quick", "quick").unwrap();
        for (name, to, code, part) in [
            ("quick", "Interviews", ErrorCode::NameTaken, "There are settings named \"Interviews\" already."),
            ("quick", "  ", ErrorCode::NameMissing, "without a name"),
            ("slow", "slower", ErrorCode::BadSettings, "There are no settings named \"slow\"."),
        ] {
            let failure = rename_preset(&mut presets, name, to).unwrap_err();
            assert!(failure.code == code && failure.to_string().contains(part), "{failure}");
        }
        assert_eq!(save_preset(&mut presets, "", stored("en")).unwrap_err().code, ErrorCode::NameMissing);
        assert_eq!(named(&presets), ["Interviews fr", "quick en"]);
    }

    #[test]
    fn what_is_chosen_is_what_the_job_is_and_what_was_written_down_comes_back() {
        let decoding = Decoding { beams: 5, several_languages: true, words: vec!["Aarhus".into()] };
        let settings = JobSettings {
            language: Some("da".into()),
            task: Task::Translate,
            bilingual: false,
            decoding,
            model: Some(find(Path::new("/no/such/model"))),
            speakers: Speakers { tell_apart: true, count: Some(3) },
        };
        let mut job = Job::new(1, "talk.wav", "model");
        settings.fill(&mut job);
        assert_eq!((job.language.as_deref(), job.task), (Some("da"), Task::Translate));
        JobSettings { bilingual: true, ..settings.clone() }.fill(&mut job);
        assert_eq!(job.task, Task::Transcribe, "both: the translation follows");
        assert_eq!((job.decoding.beam_size, job.decoding.language_per_region), (5, true));
        assert_eq!(job.decoding.vocabulary, ["Aarhus"]);
        assert_eq!((job.speakers, job.speaker_count), (true, SpeakerCount::exactly(3)));
        let json = serde_json::to_string(&Stored::from(&settings)).unwrap();
        assert_eq!(serde_json::from_str::<Stored>(&json).unwrap().settings(), settings);
        // A file of an earlier version, and values that Steno never writes.
        let old: Stored = serde_json::from_str(r#"{"language": "de", "decoding": {"beams": 900}}"#).unwrap();
        old.settings().fill(&mut job);
        assert_eq!(job.decoding.beam_size, MOST_BEAMS as usize);
    }
}
