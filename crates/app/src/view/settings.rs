//! What recordings are transcribed with, watched folders, and what the window
//! may do beyond itself.

use std::ffi::OsStr;

use crate::session::{self, Stored};
use advisor::ModelRef;
use serde::{Deserialize, Serialize};
use transcript::naming::{NameFacts, NameTemplate, TemplateError, today};
use transcript::{Task, Time};
use ts_rs::TS;
use wire::{Channels, FilePath, VoiceActivity};

use super::{Exporting, Failure};
use crate::session::AppState;

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
    /// Searched for the likeliest text at once, from 1 to 8; 1 is the quickest, null what suits the model.
    pub beams: Option<u32>,
    /// Detect the language of each stretch anew.
    pub several_languages: bool,
    /// Names and words to be expected.
    pub words: Vec<String>,
    /// How far from its own choice the model may be to write one of them, in nats, 0 to 12; null: as far as usual.
    pub words_strength: Option<u32>,
    /// Text that the model takes for what was said before; empty: none.
    pub prompt: String,
    /// What becomes of several channels.
    pub channels: Channels,
    /// Probability of speech from which on sound is transcribed, 0 to 1; null: all of it is.
    pub voice_activity: Option<f32>,
    /// Tell speakers apart.
    pub speakers: bool,
    /// How many speakers there are; null: as many as are found.
    pub speaker_count: Option<u32>,
    /// Where transcripts go: the number of a folder; null: next to the recording.
    pub output_folder: Option<u32>,
    /// How files are named, without their endings: a text with placeholders such as {name}; empty: as
    /// the recording.
    pub name_template: String,
    /// What is written as soon as a transcript is finished; null: nothing.
    pub when_finished: Option<Exporting>,
}

/// What files would be called.
#[derive(Debug, Clone, Serialize, TS)]
pub struct NamePreview {
    /// An example without its ending; null: the template can't be used.
    pub name: Option<String>,
    /// Why not.
    pub problem: Option<TemplateError>,
}

/// Which part of a recording is transcribed. Times are seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, TS)]
pub struct Part {
    /// Audio track by number from 0; null: the file's default one.
    pub track: Option<u32>,
    /// Null: from the start.
    pub from: Option<f64>,
    /// Null: to the end.
    pub to: Option<f64>,
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
    pub beams: Option<u32>,
    /// As in `Settings`.
    pub several_languages: bool,
    /// As in `Settings`.
    pub words: Vec<String>,
    /// How far from its own choice the model may be to write one of them, in nats, 0 to 12; null: as far as usual.
    pub words_strength: Option<u32>,
    /// As in `Settings`.
    pub prompt: String,
    /// As in `Settings`.
    pub channels: Channels,
    /// As in `Settings`.
    pub voice_activity: Option<f32>,
    /// As in `Settings`.
    pub speakers: bool,
    /// As in `Settings`.
    pub speaker_count: Option<u32>,
    /// The folder for transcripts; null: next to the recording.
    pub output_folder: Option<String>,
    /// As in `Settings`.
    pub name_template: String,
    /// As in `Settings`.
    pub when_finished: Option<Exporting>,
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
    /// The session's settings, their model by its number among `models`, and their folder among
    /// `folders`.
    pub fn new(settings: session::JobSettings, models: &[ModelRef], folders: &[FilePath]) -> Self {
        let index = |wanted: &ModelRef| models.iter().position(|model| model.path == wanted.path);
        let session::Decoding { beams, several_languages, words, words_strength, prompt } = settings.decoding;
        Self {
            model: settings.model.as_ref().and_then(index).and_then(|index| u32::try_from(index).ok()),
            language: settings.language,
            translate: settings.task == Task::Translate,
            bilingual: settings.bilingual,
            beams,
            several_languages,
            words,
            words_strength,
            prompt,
            channels: settings.sound.channels,
            voice_activity: threshold(settings.sound.voice_activity),
            speakers: settings.speakers.tell_apart,
            speaker_count: settings.speakers.count,
            output_folder: folder_number(settings.output.folder.as_ref(), folders),
            name_template: settings.output.name,
            when_finished: settings.output.when_finished,
        }
    }

    /// The settings, their model and folder by number among these.
    pub fn chosen(self, models: &[ModelRef], folders: &[FilePath]) -> session::JobSettings {
        let Self { beams, several_languages, words, words_strength, prompt, .. } = self;
        let voice_activity = self.voice_activity.map_or(VoiceActivity::Off, VoiceActivity::Threshold);
        session::JobSettings {
            model: self.model.and_then(|id| models.get(id as usize).cloned()),
            language: self.language,
            task: if self.translate { Task::Translate } else { Task::Transcribe },
            bilingual: self.bilingual,
            decoding: session::Decoding { beams, several_languages, words, words_strength, prompt },
            sound: session::Sound { channels: self.channels, voice_activity },
            speakers: session::Speakers { tell_apart: self.speakers, count: self.speaker_count },
            output: session::Output {
                folder: self.output_folder.and_then(|number| folders.get(number as usize).cloned()),
                name: self.name_template,
                when_finished: self.when_finished,
            },
        }
    }
}

fn folder_number(folder: Option<&FilePath>, folders: &[FilePath]) -> Option<u32> {
    let index = folders.iter().position(|known| Some(known) == folder)?;
    u32::try_from(index).ok()
}

impl NamePreview {
    /// What a recording of this name would be called with the settings in force.
    pub fn of(template: &str, name: &str, state: &AppState) -> Self {
        let settings = state.session.settings();
        let (date, model) = (today(), settings.model.map(|model| model.name));
        let facts = NameFacts {
            name: OsStr::new(name),
            date: &date,
            language: Some(settings.language.as_deref().unwrap_or("en")),
            model: Some(model.as_deref().unwrap_or("model")),
        };
        match template.parse::<NameTemplate>() {
            Ok(template) => {
                let name = template.fill(&facts);
                Self { name: name.map(|name| name.to_string_lossy().into_owned()), problem: None }
            }
            Err(problem) => Self { name: None, problem: Some(problem) },
        }
    }
}

/// From which probability of speech on; `None`: everything.
fn threshold(voice_activity: VoiceActivity) -> Option<f32> {
    match voice_activity {
        VoiceActivity::Off => None,
        VoiceActivity::Threshold(threshold) => Some(threshold),
    }
}

impl From<session::Part> for Part {
    fn from(part: session::Part) -> Self {
        let session::Part { track, from, to } = part;
        Self { track, from: from.map(Time::seconds), to: to.map(Time::seconds) }
    }
}

impl From<Part> for session::Part {
    fn from(part: Part) -> Self {
        let Part { track, from, to } = part;
        Self { track, from: from.map(Time::from_seconds), to: to.map(Time::from_seconds) }
    }
}

impl From<session::JobSettings> for OwnSettings {
    fn from(settings: session::JobSettings) -> Self {
        let session::Decoding { beams, several_languages, words, words_strength, prompt } = settings.decoding;
        Self {
            model_folder: settings.model.as_ref().map(|model| model.path.display().to_string()),
            model_name: settings.model.map(|model| model.name),
            language: settings.language,
            translate: settings.task == Task::Translate,
            bilingual: settings.bilingual,
            beams,
            several_languages,
            words,
            words_strength,
            prompt,
            channels: settings.sound.channels,
            voice_activity: threshold(settings.sound.voice_activity),
            speakers: settings.speakers.tell_apart,
            speaker_count: settings.speakers.count,
            output_folder: settings.output.folder.map(|folder| folder.to_string()),
            name_template: settings.output.name,
            when_finished: settings.output.when_finished,
        }
    }
}

impl Preset {
    /// A preset, its model by its number among `models`, and its folder among `folders`.
    pub fn new(preset: session::Preset, models: &[ModelRef], folders: &[FilePath]) -> Self {
        let Stored { model, language, translate, bilingual, decoding, sound, speakers, output } =
            preset.settings;
        let wanted = model.as_ref();
        let index = |wanted: &FilePath| models.iter().position(|model| model.path == wanted.as_path());
        let number = wanted.and_then(index).and_then(|index| u32::try_from(index).ok());
        let session::Decoding { beams, several_languages, words, words_strength, prompt } = decoding;
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
                words_strength,
                prompt,
                channels: sound.channels,
                voice_activity: threshold(sound.voice_activity),
                speakers: speakers.tell_apart,
                speaker_count: speakers.count,
                output_folder: folder_number(output.folder.as_ref(), folders),
                name_template: output.name,
                when_finished: output.when_finished,
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
