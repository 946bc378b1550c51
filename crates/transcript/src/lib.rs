//! Transcripts: segments, words, speakers, and where they came from. Edits of
//! them, saving and loading, and one exporter per file format.
//!
//! A leaf crate: it depends on no other crate of the project and knows nothing
//! of audio, models or windows. Start with [`Transcript`].
#![warn(missing_docs, clippy::missing_errors_doc)]

mod again;
pub mod chapters;
pub mod edit;
pub mod errors;
pub mod export;
mod load;
pub mod naming;
pub mod passages;
pub mod review;
pub mod save;
pub mod speakers;
mod time;
mod translation;

pub use load::LoadError;
pub use time::{Span, Time};

use serde::{Deserialize, Serialize};

/// Version of the JSON form. Raised whenever a field changes its meaning.
pub const SCHEMA_VERSION: u32 = 1;

/// A transcript of one recording: what is saved, edited and exported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Transcript {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The recording.
    pub source: Source,
    /// The model that wrote the text.
    pub model: Model,
    /// ISO 639-1 code of the (main) language, e.g. `en`.
    pub language: String,
    /// Probability of that language, 0 to 1, if it was detected; `None` if the user chose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language_probability: Option<f32>,
    /// Whether the text was transcribed or translated.
    pub task: Task,
    /// The settings that the job ran with, defaults included. Their form is the engine's.
    pub settings: serde_json::Value,
    /// The text, ordered by start.
    pub segments: Vec<Segment>,
    /// Who is heard when, in order of starts, where speakers were told apart. Names are
    /// those that were given then; the segments have the current ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<speakers::NamedTurn>,
    /// What it is about, part by part, in order; empty where that was not asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chapters: Vec<chapters::Chapter>,
    /// Segments over silence that the model doubted. They are left out of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub discarded: Vec<Segment>,
    /// How much of the speech has text.
    pub completeness: Completeness,
    /// What the user should know about the result.
    #[serde(default)]
    pub notices: Vec<Notice>,
    /// False for the partial result of a cancelled or failed job.
    pub complete: bool,
    /// What varies from run to run; `--reproducible` leaves it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunInfo>,
}

impl Transcript {
    /// Whether each channel of the recording was transcribed on its own.
    pub fn has_channels(&self) -> bool {
        self.segments.iter().any(|segment| segment.channel.is_some())
    }

    /// What is said, on one line.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for segment in &self.segments {
            let more = export::text::one_line(&segment.text);
            if !text.is_empty() && !more.is_empty() {
                text += export::space_between(&text, &more);
            }
            text += &more;
        }
        text
    }
}

/// The recording that was transcribed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// File name without its folder, lossy where it is not UTF-8.
    pub name: String,
    /// Length of the recording.
    pub duration: Time,
    /// Samples per second in the file, before resampling.
    pub sample_rate: u32,
    /// Number of channels in the file.
    pub channels: u32,
    /// Container and codec, e.g. `matroska, opus`.
    pub format: String,
}

/// The model that wrote the text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Name of the model as the user sees it, e.g. `small`.
    pub name: String,
    /// `f32`, `f16`, `bf16` or the name of a quantised type.
    pub precision: String,
    /// True for the demonstration model, whose text carries a warning in every export.
    pub demonstration: bool,
    /// Name of the adapter that it was used with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapter: Option<String>,
}

/// What the model was asked to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// The text in the language that was spoken.
    #[default]
    Transcribe,
    /// A translation to English.
    Translate,
}

/// A stretch of text with one start and one end: a sentence or a part of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Identifies the segment while the transcript is edited, see [`edit`]; 0 elsewhere.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub id: edit::SegmentId,
    /// Start within the recording.
    pub start: Time,
    /// End within the recording, not before the start.
    pub end: Time,
    /// Text without surrounding white space.
    pub text: String,
    /// The text in English, if it was translated besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub translation: Option<String>,
    /// The words of the text with their times; empty if word times were not computed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub words: Vec<Word>,
    /// ISO 639-1 code, if it differs from the transcript's language.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Name of the speaker, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaker: Option<String>,
    /// Channel, counted from 0, if channels were transcribed separately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<u32>,
    /// Temperature at which the text was sampled; 0 is greedy or beam search.
    #[serde(default, deserialize_with = "load::number")]
    pub temperature: f32,
    /// Mean log-probability per token, natural logarithm.
    #[serde(default, deserialize_with = "load::number")]
    pub mean_log_probability: f32,
    /// The model's probability, 0 to 1, that the window holds no speech.
    #[serde(default, deserialize_with = "load::number")]
    pub no_speech_probability: f32,
    /// Length of the text over its length when compressed with zlib. Repetitions make it high.
    #[serde(default, deserialize_with = "load::number")]
    pub compression_ratio: f32,
    /// Reasons to doubt the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspicions: Vec<Suspicion>,
    /// The model's text, if a repair changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_text: Option<String>,
}

fn is_zero(id: &edit::SegmentId) -> bool {
    *id == 0
}

/// A reason to doubt a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum Suspicion {
    /// The same words are repeated.
    Loop,
    /// More words per second than people speak.
    TooFast,
    /// Text where voice activity detection found no speech.
    OverSilence,
    /// Mean log-probability below the threshold at every temperature.
    LowConfidence,
}

/// A word of a segment and when it is said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The word with the white space before it and its punctuation, as the model wrote it.
    pub text: String,
    /// Start within the recording.
    pub start: Time,
    /// End within the recording.
    pub end: Time,
    /// Mean probability of its tokens, 0 to 1.
    #[serde(default, deserialize_with = "load::number")]
    pub probability: f32,
}

/// How much of the speech in a recording has text.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Completeness {
    /// Length of the speech that voice activity detection found; 0 if it was off.
    pub speech: Time,
    /// Length of the speech that a segment covers.
    pub covered: Time,
    /// Stretches of speech of over 2 s without text, with more than a second of voice in them.
    pub gaps: Vec<Span>,
}

/// Something the user should know about a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Notice {
    /// Stable name to branch on, e.g. `audio.truncated`. Never match on `text`.
    pub code: String,
    /// How far the result differs from what was asked for.
    pub severity: Severity,
    /// One or more sentences for the user, in English.
    pub text: String,
    /// Where in the recording, if the notice concerns one place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// What the text is made of, so that it can be said in another language; `None` in
    /// what an earlier version saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<serde_json::Map<String, serde_json::Value>>,
}

impl Notice {
    /// A notice about the whole recording.
    pub fn new(code: &str, severity: Severity, text: impl Into<String>) -> Self {
        Self { code: code.into(), severity, text: text.into(), at: None, data: None }
    }

    /// The same notice about one place of the recording.
    pub fn at(mut self, time: Time) -> Self {
        self.at = Some(time);
        self
    }
}

/// How far a result differs from what was asked for; later variants are worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The result is what was asked for.
    Info,
    /// The result is complete but of lower quality than asked for.
    Degraded,
    /// Something asked for is missing.
    Failed,
}

/// What differs between two runs of the same job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RunInfo {
    /// End of the job, RFC 3339 in UTC.
    pub finished_at: String,
    /// The device that computed, e.g. `cpu` or `cuda:0`.
    pub device: String,
    /// Version of the engine.
    pub engine: String,
    /// What the time went into, in the order in which it began. No time is counted twice.
    pub stages: Vec<StageTime>,
    /// Wall time over recording time.
    pub real_time_factor: f64,
    /// Peak memory of the engine's process, if the system reports it.
    pub peak_memory_bytes: Option<u64>,
}

/// What a stage of a job took.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredStageTime")]
pub struct StageTime {
    /// The stage's name, e.g. `encode`.
    pub name: String,
    /// Wall time.
    pub seconds: f64,
    /// Time of all cores together, in seconds; at most their number times `seconds`.
    pub processor_seconds: f64,
}

/// A stage as it is stored, also by versions that knew its wall time alone.
#[derive(Deserialize)]
#[serde(untagged)]
enum StoredStageTime {
    Whole { name: String, seconds: f64, processor_seconds: f64 },
    Wall(String, f64),
}

impl From<StoredStageTime> for StageTime {
    fn from(stored: StoredStageTime) -> Self {
        match stored {
            StoredStageTime::Whole { name, seconds, processor_seconds } => {
                Self { name, seconds, processor_seconds }
            }
            StoredStageTime::Wall(name, seconds) => Self { name, seconds, processor_seconds: 0.0 },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::StageTime;
    use crate::export::tests::{segment, transcript};

    #[test]
    fn stages_of_earlier_versions_are_read() {
        let read: Vec<StageTime> = serde_json::from_str(
            r#"[["load_model", 0.5], {"name": "encode", "seconds": 2.0, "processor_seconds": 3.5}]"#,
        )
        .unwrap();
        let stage = |name: &str, seconds, processor_seconds| StageTime {
            name: name.into(),
            seconds,
            processor_seconds,
        };
        assert_eq!(read, [stage("load_model", 0.5, 0.0), stage("encode", 2.0, 3.5)]);
    }

    #[test]
    fn the_text_is_one_line_with_the_spaces_of_its_script() {
        for (texts, expected) in [
            (vec!["Good morning.", "", "Who is\nthere?"], "Good morning. Who is there?"),
            (vec!["おはよう。", "誰ですか。", "Steno."], "おはよう。誰ですか。 Steno."),
            (vec![], ""),
        ] {
            let segments = texts.iter().map(|text| segment(0, 1, text)).collect();
            assert_eq!(transcript(segments).text(), expected);
        }
    }
}
