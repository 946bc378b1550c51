//! Models by name, and the job that a request asks for.

use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use advisor::{JobTemplate, ModelRef};
use config::Preferences;
use hyper::StatusCode;
use transcript::{Span, Task, Time};
use wire::{Channels, DeviceChoice, Job, NO_JOB, SpeakerCount, VoiceActivity};

use crate::Options;
use crate::error::ApiError;

/// The name by which OpenAI's clients ask for a Whisper model: the server's own choice.
pub const ANY: &str = "whisper-1";

/// The models of this machine and what the user set of the engine.
#[derive(Debug)]
pub struct Models {
    preferences: Preferences,
    default: Option<ModelRef>,
    device: DeviceChoice,
    longest: Time,
}

/// What a request asks for.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// `None`: the server's choice.
    pub model: Option<String>,
    /// `None`: detect.
    pub language: Option<String>,
    pub task: Task,
    pub prompt: Option<String>,
    pub vocabulary: Vec<String>,
    /// `None`: as usual.
    pub vocabulary_strength: Option<f32>,
    /// `None`: those of a job that names none, one after the other.
    pub temperature: Option<f32>,
    /// `None`: speakers are not identified.
    pub speakers: Option<SpeakerCount>,
    /// `None`: as usual.
    pub voice_activity: Option<VoiceActivity>,
    pub channels: Channels,
    /// Audio track by number from 0; `None`: the file's default one.
    pub track: Option<usize>,
    /// `None`: all of the recording.
    pub span: Option<Span>,
    /// `None`: as usual.
    pub beam_size: Option<usize>,
    /// Detect the language of each passage.
    pub language_per_region: bool,
    /// A translation to English stands beside the text.
    pub bilingual: bool,
}

impl Models {
    pub fn new(options: &Options) -> Self {
        Self {
            preferences: options.preferences.clone(),
            default: options.model.clone(),
            device: options.device,
            longest: options.limits.duration,
        }
    }

    /// The model of a request that names none. Waits for the disk and, where there are several, for the card's driver.
    fn default(&self, language: Option<&str>, task: Task) -> Result<ModelRef, ApiError> {
        if let Some(model) = &self.default {
            return Ok(model.clone());
        }
        let preferred =
            advisor::choice::preferred(&advisor::list_models(), language, task, &self.preferences);
        preferred.map_or_else(|| advisor::find_model(None), Ok).map_err(ApiError::from)
    }

    /// Every model that a request can name: the installed ones, and the server's.
    pub fn list(&self) -> Vec<ModelRef> {
        let mut all = advisor::list_models();
        if let Some(model) = &self.default
            && !all.iter().any(|other| other.name == model.name)
        {
            all.push(model.clone());
        }
        all
    }

    /// Names alone: a path would let clients ask what lies where.
    fn named(&self, name: &str) -> Result<ModelRef, ApiError> {
        let known = self.default.iter().cloned().chain(advisor::list_models());
        known.into_iter().find(|model| model.name == name).ok_or_else(|| {
            let names: Vec<String> = self.list().into_iter().map(|model| model.name).collect();
            let message = format!("There is no model of that name. There are: {ANY}, {}.", names.join(", "));
            let mut error = ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message);
            error.body.param = Some("model".into());
            error
        })
    }

    /// The job that transcribes `file` as it is asked for, and the name of its model. Waits for the disk.
    pub fn job(&self, wanted: &Wanted, file: &Path) -> Result<(Job, String), ApiError> {
        let language = wanted.language.as_deref();
        let model = match wanted.model.as_deref() {
            None | Some("" | ANY) => self.default(language, wanted.task)?,
            Some(name) => self.named(name)?,
        };
        let mut job = Job::new(NO_JOB, file, absolute(&model.path));
        job.device = self.device;
        job.language.clone_from(&wanted.language);
        job.task = wanted.task;
        job.channels = wanted.channels;
        job.speakers = wanted.speakers.is_some();
        job.speaker_count = wanted.speakers.unwrap_or_default();
        if job.speakers && self.preferences.memory.skip_speakers {
            return Err(ApiError::parameter(
                "speakers",
                "Identifying speakers is switched off on this server.",
            ));
        }
        job.voice_activity = wanted.voice_activity.unwrap_or(job.voice_activity);
        job.track = wanted.track;
        job.span = wanted.span;
        job.decoding.beam_size = wanted.beam_size.or(job.decoding.beam_size);
        job.decoding.language_per_region = wanted.language_per_region;
        // A little longer, so that a recording that is too long is known from one that is just long enough.
        job.limit = Some(self.longest + Time::from_millis(1000));
        job.decoding.initial_prompt.clone_from(&wanted.prompt);
        job.decoding.vocabulary.clone_from(&wanted.vocabulary);
        if let Some(strength) = wanted.vocabulary_strength {
            job.decoding.vocabulary_strength = strength;
        }
        if let Some(temperature) = wanted.temperature {
            job.decoding.temperatures = vec![temperature];
        }
        let name = model.name.clone();
        let is_named = wanted.model.as_deref().is_some_and(|name| !name.is_empty() && name != ANY);
        if let Ok(network) = advisor::model_info::read(&model.path) {
            let translated = wanted.bilingual.then(|| Job { task: Task::Translate, ..job.clone() });
            let refused = std::iter::once(&job)
                .chain(&translated)
                .find_map(|job| advisor::model_info::refusal(&network, &name, is_named, job));
            if let Some(failure) = refused {
                return Err(failure.into());
            }
        }
        if !is_named && self.default.is_none() {
            job.by_language = advisor::by_language::request(&model, &job, &self.preferences);
        }
        let mut job = JobTemplate::new(self.preferences.clone(), model, self.device).fill(job);
        for other in &mut job.alternatives {
            other.path = absolute(other.path.as_path()).into();
        }
        Ok((job, name))
    }
}

/// When a model was installed, in seconds since 1970.
pub fn installed_at(model: &ModelRef) -> u64 {
    let modified = std::fs::metadata(&model.path).and_then(|metadata| metadata.modified()).ok();
    let since = modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| since.as_secs())
}

/// The server that goes on with the job may have another working folder.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// The language of a parameter; `None` where it is to be detected.
pub fn language(name: &str, text: &str) -> Result<Option<String>, ApiError> {
    let code = text.trim().to_ascii_lowercase();
    match code.as_str() {
        "" | "auto" => Ok(None),
        _ if (2..=3).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_lowercase()) => {
            Ok(Some(code))
        }
        _ => Err(ApiError::parameter(name, "This is not a language code: use one such as en, de or fr.")),
    }
}

/// The temperature of a parameter; `None` for 0, where higher ones follow if the text is not plausible.
pub fn temperature(text: &str) -> Result<Option<f32>, ApiError> {
    let value: Option<f32> = text.trim().parse().ok().filter(|value| (0.0..=1.0).contains(value));
    let value = value
        .ok_or_else(|| ApiError::parameter("temperature", "The temperature is a number from 0 to 1."))?;
    Ok((value > 0.0).then_some(value))
}
