//! What recordings are transcribed with, watched folders, and what the window
//! may do beyond itself.

use crate::session::{self, Stored};
use advisor::ModelRef;
use serde::{Deserialize, Serialize};
use transcript::Task;
use ts_rs::TS;
use wire::FilePath;

use super::{Exporting, Failure};

/// What recordings are transcribed with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
pub struct Settings {
    /// The number of the model; null: there is none.
    pub model: Option<u32>,
    /// ISO 639-1; null: detect.
    pub language: Option<String>,
    /// To English.
    pub translate: bool,
    /// The original is kept, with the translation beside it.
    pub bilingual: bool,
    /// Searched for the likeliest text at once, from 1 to 8; 1 is the quickest.
    pub beams: u32,
    /// Detect the language of each stretch anew.
    pub several_languages: bool,
    /// Names and words to be expected.
    pub words: Vec<String>,
    /// Tell speakers apart.
    pub speakers: bool,
    /// How many speakers there are; null: as many as are found.
    pub speaker_count: Option<u32>,
}

/// Settings of one recording: the model by its folder and name, since it need
/// not be among those there are.
#[derive(Debug, Clone, Serialize, TS)]
pub struct OwnSettings {
    /// The name of the model.
    pub model_name: Option<String>,
    /// The folder of the model.
    pub model_folder: Option<String>,
    /// ISO 639-1; null: detect.
    pub language: Option<String>,
    /// To English.
    pub translate: bool,
    /// The original is kept, with the translation beside it.
    pub bilingual: bool,
    /// As in `Settings`.
    pub beams: u32,
    /// As in `Settings`.
    pub several_languages: bool,
    /// As in `Settings`.
    pub words: Vec<String>,
    /// As in `Settings`.
    pub speakers: bool,
    /// As in `Settings`.
    pub speaker_count: Option<u32>,
}

/// Settings under a name.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Preset {
    /// The name that the user gave.
    pub name: String,
    /// The settings.
    pub settings: Settings,
    /// The folder of its model, where that is not among those there are.
    pub missing_model: Option<String>,
}

/// A folder whose new recordings are transcribed.
#[derive(Debug, Clone, Serialize, TS)]
pub struct WatchedFolder {
    /// Its path.
    pub folder: String,
    /// How its texts are written; with no format they are not.
    pub exporting: Exporting,
    /// Where to; null: beside the recording.
    pub into: Option<String>,
    /// Why nothing can be found in it.
    pub failure: Option<Failure>,
}

impl Settings {
    /// The session's settings, their model by its number among `models`.
    pub fn new(settings: session::JobSettings, models: &[ModelRef]) -> Self {
        let index = |wanted: &ModelRef| models.iter().position(|model| model.path == wanted.path);
        let session::Decoding { beams, several_languages, words } = settings.decoding;
        Self {
            model: settings.model.as_ref().and_then(index).and_then(|index| u32::try_from(index).ok()),
            language: settings.language,
            translate: settings.task == Task::Translate,
            bilingual: settings.bilingual,
            beams,
            several_languages,
            words,
            speakers: settings.speakers.tell_apart,
            speaker_count: settings.speakers.count,
        }
    }

    /// The settings, their model by number among these.
    pub fn chosen(self, models: &[ModelRef]) -> session::JobSettings {
        let Self {
            model,
            language,
            translate,
            bilingual,
            beams,
            several_languages,
            words,
            speakers,
            speaker_count,
        } = self;
        session::JobSettings {
            model: model.and_then(|id| models.get(id as usize).cloned()),
            language,
            task: if translate { Task::Translate } else { Task::Transcribe },
            bilingual,
            decoding: session::Decoding { beams, several_languages, words },
            speakers: session::Speakers { tell_apart: speakers, count: speaker_count },
        }
    }
}

impl From<session::JobSettings> for OwnSettings {
    fn from(settings: session::JobSettings) -> Self {
        let session::Decoding { beams, several_languages, words } = settings.decoding;
        Self {
            model_folder: settings.model.as_ref().map(|model| model.path.display().to_string()),
            model_name: settings.model.map(|model| model.name),
            language: settings.language,
            translate: settings.task == Task::Translate,
            bilingual: settings.bilingual,
            beams,
            several_languages,
            words,
            speakers: settings.speakers.tell_apart,
            speaker_count: settings.speakers.count,
        }
    }
}

impl Preset {
    /// A preset, its model by its number among `models`.
    pub fn new(preset: session::Preset, models: &[ModelRef]) -> Self {
        let Stored { model, language, translate, bilingual, decoding, speakers } = preset.settings;
        let wanted = model.as_ref();
        let index = |wanted: &FilePath| models.iter().position(|model| model.path == wanted.as_path());
        let number = wanted.and_then(index).and_then(|index| u32::try_from(index).ok());
        let session::Decoding { beams, several_languages, words } = decoding;
        Self {
            name: preset.name,
            missing_model: model.filter(|_| number.is_none()).map(|path| path.to_string()),
            settings: Settings {
                model: number,
                language,
                translate,
                bilingual,
                beams,
                several_languages,
                words,
                speakers: speakers.tell_apart,
                speaker_count: speakers.count,
            },
        }
    }
}

impl From<session::Watched> for WatchedFolder {
    fn from(watched: session::Watched) -> Self {
        let session::Watched { folder, failure } = watched;
        Self {
            folder: folder.folder.to_string(),
            exporting: folder.exporting,
            into: folder.into.map(|folder| folder.to_string()),
            failure: failure.map(Failure::from),
        }
    }
}
