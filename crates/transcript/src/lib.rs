//! What a recording said: segments, words, speakers and what is known about
//! how they came to be. A leaf crate: it knows no audio, no model, no window.

mod again;
pub mod edit;
pub mod export;
mod load;
pub mod review;
pub mod save;
mod time;

pub use load::LoadError;
pub use time::{Span, Time};

use serde::{Deserialize, Serialize};

/// Version of the saved form. Raised whenever a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// A whole transcript, the unit that is saved and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    pub schema_version: u32,
    pub source: Source,
    pub model: Model,
    /// ISO 639-1 code of the (main) language, e.g. `en`.
    pub language: String,
    /// Probability of that language where it was detected, `None` where it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_probability: Option<f32>,
    pub task: Task,
    /// The settings of the job as they were in force, so that none is ignored silently.
    pub settings: serde_json::Value,
    pub segments: Vec<Segment>,
    /// Text over silence that the model itself doubted: left out, but not lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Segment>,
    pub completeness: Completeness,
    #[serde(default)]
    pub notices: Vec<Notice>,
    /// False for what a cancelled or failed job left behind.
    pub complete: bool,
    /// What varies from run to run; `--reproducible` leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
}

/// The file that was transcribed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// File name without its folder, lossy where it is not UTF-8.
    pub name: String,
    pub duration: Time,
    pub sample_rate: u32,
    pub channels: u32,
    /// Container and codec in words, e.g. `matroska, opus`.
    pub format: String,
}

/// The model that wrote the text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    pub name: String,
    /// `f32`, `f16`, `bf16` or the name of a quantised type.
    pub precision: String,
    /// True for the starter model: its text must carry a warning wherever it goes.
    pub demonstration: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Task {
    #[default]
    Transcribe,
    /// Translate to English.
    Translate,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its name while it is edited, see [`edit`]; 0 elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub id: edit::SegmentId,
    pub start: Time,
    pub end: Time,
    /// Text without surrounding white space.
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
    /// Where it differs from the transcript's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Channel number where channels were transcribed separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// Temperature at which the text was drawn; 0 is greedy or beam search.
    #[serde(default, deserialize_with = "load::number")]
    pub temperature: f32,
    /// Mean log-probability per token, natural logarithm.
    #[serde(default, deserialize_with = "load::number")]
    pub mean_log_probability: f32,
    #[serde(default, deserialize_with = "load::number")]
    pub no_speech_probability: f32,
    #[serde(default, deserialize_with = "load::number")]
    pub compression_ratio: f32,
    /// Why this segment should not be trusted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<Suspicion>,
    /// What the model wrote before a repair changed the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
}

fn is_zero(id: &edit::SegmentId) -> bool {
    *id == 0
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Suspicion {
    /// The same words over and over.
    Loop,
    /// More words per second than anyone speaks.
    TooFast,
    /// Text where no speech was heard.
    OverSilence,
    /// Mean log-probability below the threshold at every temperature.
    LowConfidence,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The word with the white space before it and its punctuation, as the model wrote it.
    pub text: String,
    pub start: Time,
    pub end: Time,
    /// Mean probability of its tokens, 0 to 1.
    #[serde(default, deserialize_with = "load::number")]
    pub probability: f32,
}

/// Seconds of speech found against seconds covered by text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Completeness {
    /// Speech found by voice activity detection; 0 where it was off.
    pub speech: Time,
    /// How much of that speech lies under a segment.
    pub covered: Time,
    /// Stretches of speech of over 2 s without text.
    pub gaps: Vec<Span>,
}

/// Something the user should know, kept with the transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Notice {
    /// Stable name to branch on, e.g. `audio.truncated`. Never match on `text`.
    pub code: String,
    pub severity: Severity,
    pub text: String,
    /// Where in the recording, if anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "ts", ts(optional))]
    pub at: Option<Time>,
}

impl Notice {
    pub fn new(code: &str, severity: Severity, text: impl Into<String>) -> Self {
        Self { code: code.into(), severity, text: text.into(), at: None }
    }

    pub fn at(mut self, time: Time) -> Self {
        self.at = Some(time);
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The result is what was asked for.
    Info,
    /// The result is there, in a lesser form than asked for.
    Degraded,
    /// Something asked for is missing.
    Failed,
}

/// What differs between two runs of the same job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// RFC 3339, UTC.
    pub finished_at: String,
    pub device: String,
    pub engine: String,
    /// Seconds of wall time per stage, in order.
    pub stages: Vec<(String, f64)>,
    /// Wall time over recording time.
    pub real_time_factor: f64,
    pub peak_memory_bytes: Option<u64>,
}
