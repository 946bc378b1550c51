//! What a recording is transcribed with: at hand for all that come, of its own
//! for some, or kept under a name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use transcript::naming::NameTemplate;
use transcript::{Span, Task, Time};
use wire::{Channels, ErrorCode, Failure, FilePath, Job, SpeakerCount, VoiceActivity};

use super::Exporting;
use super::save::Naming;
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
    /// What of the sound is transcribed.
    pub sound: Sound,
    /// Whether speakers are told apart.
    pub speakers: Speakers,
    /// Where transcripts go, and under which names.
    pub output: Output,
}

/// Where transcripts go, and under which names, where the user does not choose a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Output {
    /// `None`: the recording's folder.
    pub folder: Option<FilePath>,
    /// A [`NameTemplate`]; empty, or one that can't be used: the recording's name.
    pub name: String,
    /// What is written as soon as a transcript is finished; `None`: nothing.
    pub when_finished: Option<Exporting>,
}

impl Output {
    /// The folder and the names.
    pub fn naming(&self) -> Naming {
        let folder = self.folder.as_ref().map(|folder| folder.0.clone());
        Naming { folder, template: self.name.parse::<NameTemplate>().ok() }
    }
}

/// What of a recording's sound is transcribed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sound {
    /// What becomes of several channels.
    pub channels: Channels,
    /// Which parts count as speech.
    pub voice_activity: VoiceActivity,
}

/// Which part of one recording is transcribed. Not among its settings, which several can have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Audio track by number from 0; `None`: the file's default one.
    pub track: Option<u32>,
    /// Where it begins; `None`: with the recording.
    pub from: Option<Time>,
    /// Where it ends; `None`, or beyond its end: with the recording.
    pub to: Option<Time>,
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decoding {
    /// From 1 to [`MOST_BEAMS`]; 1 is the quickest, `None` what suits the model.
    pub beams: Option<u32>,
    /// Detect the language of each stretch anew.
    pub several_languages: bool,
    /// Names and words to be expected.
    pub words: Vec<String>,
    /// How far from its own choice the model may be to write one of them, in nats; `None`: as far as usual.
    pub words_strength: Option<u32>,
    /// Text that the model takes for what was said before, for names and style; empty: none.
    pub prompt: String,
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
    /// What of the sound is transcribed.
    pub sound: Sound,
    /// Whether speakers are told apart.
    pub speakers: Speakers,
    /// Where transcripts go, and under which names.
    pub output: Output,
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
        let Decoding { beams, several_languages, words, words_strength, prompt } = &self.decoding;
        job.decoding.beam_size = beams.map(|beams| beams.clamp(1, MOST_BEAMS) as usize);
        job.decoding.language_per_region = *several_languages;
        job.decoding.vocabulary.clone_from(words);
        if let Some(nats) = words_strength {
            job.decoding.vocabulary_strength = *nats as f32;
        }
        job.decoding.initial_prompt = Some(prompt.trim().to_owned()).filter(|prompt| !prompt.is_empty());
        let Sound { channels, voice_activity } = self.sound;
        job.channels = channels;
        job.voice_activity = match voice_activity {
            VoiceActivity::Threshold(threshold) => VoiceActivity::Threshold(threshold.clamp(0.0, 1.0)),
            VoiceActivity::Off => VoiceActivity::Off,
        };
        let Speakers { tell_apart, count } = self.speakers;
        job.speakers = tell_apart;
        let count = count.map(|count| count.clamp(1, SpeakerCount::MOST));
        job.speaker_count = count.map(SpeakerCount::exactly).unwrap_or_default();
    }

    /// Whether a translation is to stand beside the text.
    pub fn wants_both(&self) -> bool {
        self.bilingual && self.task == Task::Translate
    }

    /// Whether the model is a demonstration.
    pub fn is_demonstration(&self) -> bool {
        self.model.as_ref().is_some_and(|model| model.demonstration)
    }
}

impl Part {
    /// The job of this part.
    pub fn fill(self, job: &mut Job) {
        job.track = self.track.map(|track| track as usize);
        let end = self.to.unwrap_or(Time::from_millis(u32::MAX));
        let is_part = self.from.is_some() || self.to.is_some();
        job.span = is_part.then(|| Span::new(self.from.unwrap_or(Time::ZERO), end));
    }

    /// Checks it against the length of its recording in seconds, where that is known.
    ///
    /// # Errors
    /// `BadSettings` where nothing lies between its ends.
    pub fn check(self, length: Option<f64>) -> Result<(), Failure> {
        let from = self.from.unwrap_or(Time::ZERO);
        if self.to.is_some_and(|to| to <= from) {
            return Err(Failure::new(ErrorCode::BadSettings, "The part ends before it begins.")
                .remedy("Enter an end that is after the start."));
        }
        match length {
            Some(length) if from.seconds() >= length && from > Time::ZERO => {
                Err(Failure::new(ErrorCode::BadSettings, "The part begins after the end of the recording.")
                    .remedy("Enter an earlier start."))
            }
            _ => Ok(()),
        }
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
            sound: settings.sound,
            speakers: settings.speakers,
            output: settings.output.clone(),
        }
    }
}

impl Stored {
    /// A model that is gone since is named all the same: its job says so.
    pub fn settings(self) -> JobSettings {
        let task = if self.translate { Task::Translate } else { Task::Transcribe };
        let model = self.model.map(|path| find(path.as_path()));
        let Self { language, bilingual, decoding, sound, speakers, output, .. } = self;
        JobSettings { model, language, task, bilingual, decoding, sound, speakers, output }
    }
}

/// The model at a path, also where it is gone.
pub(super) fn find(path: &Path) -> ModelRef {
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
        let message = format!("A preset named \"{to}\" already exists.");
        return Err(Failure::new(ErrorCode::NameTaken, message).remedy("Choose another name."));
    }
    let preset = presets.iter_mut().find(|preset| preset.name == name).ok_or_else(|| {
        Failure::new(ErrorCode::BadSettings, format!("There is no preset named \"{name}\"."))
            .remedy("It may have been deleted.")
    })?;
    preset.name = to;
    presets.sort_by_cached_key(|preset| preset.name.to_lowercase());
    Ok(())
}

fn checked(name: &str) -> Result<String, Failure> {
    let name = name.trim();
    if name.is_empty() {
        return Err(Failure::new(ErrorCode::NameMissing, "A preset can't be saved without a name.")
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
            ("quick", "Interviews", ErrorCode::NameTaken, "A preset named \"Interviews\" already exists."),
            ("quick", "  ", ErrorCode::NameMissing, "without a name"),
            ("slow", "slower", ErrorCode::BadSettings, "There is no preset named \"slow\"."),
        ] {
            let failure = rename_preset(&mut presets, name, to).unwrap_err();
            assert!(failure.code == code && failure.to_string().contains(part), "{failure}");
        }
        assert_eq!(save_preset(&mut presets, "", stored("en")).unwrap_err().code, ErrorCode::NameMissing);
        assert_eq!(named(&presets), ["Interviews fr", "quick en"]);
    }

    #[test]
    fn what_is_chosen_is_what_the_job_is_and_what_was_written_down_comes_back() {
        let (words, prompt) = (vec!["Aarhus".into()], " A talk in Aarhus. ".into());
        let decoding =
            Decoding { beams: Some(5), several_languages: true, words, words_strength: Some(4), prompt };
        let settings = JobSettings {
            language: Some("da".into()),
            task: Task::Translate,
            bilingual: false,
            decoding,
            model: Some(find(Path::new("/no/such/model"))),
            sound: Sound { channels: Channels::Separate, voice_activity: VoiceActivity::Threshold(0.25) },
            speakers: Speakers { tell_apart: true, count: Some(3) },
            output: Output {
                folder: Some("/texts".into()),
                name: "{name}_{language}".into(),
                when_finished: Some(Exporting::default()),
            },
        };
        let mut job = Job::new(1, "talk.wav", "model");
        settings.fill(&mut job);
        assert_eq!((job.language.as_deref(), job.task), (Some("da"), Task::Translate));
        JobSettings { bilingual: true, ..settings.clone() }.fill(&mut job);
        assert_eq!(job.task, Task::Transcribe, "both: the translation follows");
        assert_eq!((job.decoding.beam_size, job.decoding.language_per_region), (Some(5), true));
        assert_eq!(job.decoding.vocabulary, ["Aarhus"]);
        assert_eq!(job.decoding.vocabulary_strength, 4.0);
        assert_eq!(job.decoding.initial_prompt.as_deref(), Some("A talk in Aarhus."));
        assert_eq!((job.channels, job.voice_activity), (Channels::Separate, VoiceActivity::Threshold(0.25)));
        assert_eq!((job.speakers, job.speaker_count), (true, SpeakerCount::exactly(3)));
        let json = serde_json::to_string(&Stored::from(&settings)).unwrap();
        assert_eq!(serde_json::from_str::<Stored>(&json).unwrap().settings(), settings);
        // A file of an earlier version, and values that Steno never writes.
        let old: Stored = serde_json::from_str(r#"{"language": "de", "decoding": {"beams": 900}}"#).unwrap();
        old.settings().fill(&mut job);
        assert_eq!(job.decoding.beam_size, Some(MOST_BEAMS as usize));
        assert_eq!((job.channels, job.voice_activity), (Channels::Mix, VoiceActivity::default()));
        assert_eq!(job.decoding.initial_prompt, None);
        let sound = Sound { voice_activity: VoiceActivity::Off, ..Sound::default() };
        JobSettings { sound, ..JobSettings::default() }.fill(&mut job);
        assert_eq!(job.voice_activity, VoiceActivity::Off);
    }

    #[test]
    fn a_part_of_a_recording_is_the_jobs_and_one_that_is_none_is_refused() {
        let at = |seconds: u32| Some(Time::from_millis(1000 * seconds));
        let span = |from, to| Some(Span::new(Time::from_millis(from), Time::from_millis(to)));
        for (track, from, to, expected) in [
            (None, None, None, None),
            (Some(1), None, None, None),
            (None, at(10), None, span(10_000, u32::MAX)),
            (Some(0), None, at(20), span(0, 20_000)),
            (Some(2), at(10), at(20), span(10_000, 20_000)),
        ] {
            let mut job = Job::new(1, "talk.wav", "model");
            Part { track, from, to }.fill(&mut job);
            assert_eq!((job.track, job.span), (track.map(|track| track as usize), expected));
        }
        for (from, to, length, part) in [
            (at(20), at(10), None, Some("ends before it begins")),
            (at(10), at(10), None, Some("ends before it begins")),
            (None, at(0), None, Some("ends before it begins")),
            (at(60), None, Some(60.0), Some("after the end of the recording")),
            (at(60), None, None, None),
            (None, None, Some(0.0), None),
            // It is transcribed to its end; the page says so.
            (at(10), at(90), Some(60.0), None),
        ] {
            let failure =
                Part { track: None, from, to }.check(length).err().map(|failure| failure.to_string());
            let matches = match (&failure, part) {
                (Some(failure), Some(part)) => failure.contains(part),
                (failure, part) => failure.is_none() && part.is_none(),
            };
            assert!(matches, "{from:?} {to:?} {length:?}: {failure:?}");
        }
    }
}
