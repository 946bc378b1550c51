//! What the text looks like in an answer.

use hyper::StatusCode;
use serde::Serialize;
use transcript::export::{self, DEMONSTRATION_WARNING, Format, Options};
use transcript::{Task, Time, Transcript};
use utoipa::ToSchema;

use super::Parameters;
use crate::error::ApiError;
use crate::reply::{self, Reply};

/// The type of a segment with its speaker, also the name of its event.
pub const SPEAKER_SEGMENT: &str = "transcript.text.segment";

/// How the text is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum ResponseFormat {
    /// The text, in JSON.
    #[default]
    Json,
    /// The text alone.
    Text,
    /// SubRip subtitles.
    Srt,
    /// Segments, and words where they are asked for.
    VerboseJson,
    /// WebVTT subtitles.
    Vtt,
    /// Segments with their speakers.
    DiarizedJson,
}

impl ResponseFormat {
    pub fn read(name: &str) -> Result<Self, ApiError> {
        Ok(match name {
            "json" => Self::Json,
            "text" => Self::Text,
            "srt" => Self::Srt,
            "verbose_json" => Self::VerboseJson,
            "vtt" => Self::Vtt,
            "diarized_json" => Self::DiarizedJson,
            _ => {
                let message = "Formats are json, text, srt, verbose_json, vtt and diarized_json.";
                return Err(ApiError::parameter("response_format", message));
            }
        })
    }
}

/// How long the recording is, which is what such a service counts.
#[derive(Debug, Serialize)]
struct Usage {
    #[serde(rename = "type")]
    kind: &'static str,
    seconds: f64,
}

/// `json`, `verbose_json` and `diarized_json`: what one of them does not have is left out.
#[derive(Debug, Default, Serialize)]
struct Answer<'a> {
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    segments: Option<Segments<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    words: Option<Vec<SpokenWord<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'static str>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Segments<'a> {
    Verbose(Vec<VerboseSegment<'a>>),
    Speakers(Vec<SpeakerSegment<'a>>),
}

#[derive(Debug, Serialize)]
struct VerboseSegment<'a> {
    id: usize,
    /// Windows and tokens are not part of a transcript.
    seek: u32,
    tokens: [u32; 0],
    start: Time,
    end: Time,
    text: &'a str,
    temperature: f32,
    avg_logprob: f32,
    compression_ratio: f32,
    no_speech_prob: f32,
}

#[derive(Debug, Serialize)]
struct SpokenWord<'a> {
    word: &'a str,
    start: Time,
    end: Time,
}

/// A segment with who says it.
#[derive(Debug, Serialize)]
pub struct SpeakerSegment<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: String,
    start: Time,
    end: Time,
    text: &'a str,
    speaker: &'a str,
}

pub fn reply(transcript: &Transcript, parameters: &Parameters) -> Reply {
    let mut answer = Answer {
        text: transcript.text(),
        usage: Some(Usage { kind: "duration", seconds: transcript.source.duration.seconds().ceil() }),
        warning: transcript.model.demonstration.then_some(DEMONSTRATION_WARNING),
        ..Answer::default()
    };
    match parameters.format {
        ResponseFormat::Text => return plain(transcript),
        ResponseFormat::Srt => {
            return subtitles(transcript, Format::Srt, "application/x-subrip; charset=utf-8");
        }
        ResponseFormat::Vtt => return subtitles(transcript, Format::Vtt, "text/vtt; charset=utf-8"),
        ResponseFormat::Json => return reply::json(StatusCode::OK, &answer),
        ResponseFormat::VerboseJson => {
            answer.language = Some(&transcript.language);
            answer.segments = parameters.segments.then(|| Segments::Verbose(verbose(transcript)));
            answer.words = parameters.words.then(|| words(transcript));
        }
        ResponseFormat::DiarizedJson => {
            answer.segments = Some(Segments::Speakers(speaker_segments(transcript).collect()));
        }
    }
    answer.task = Some(if transcript.task == Task::Translate { "translate" } else { "transcribe" });
    answer.duration = Some(transcript.source.duration);
    reply::json(StatusCode::OK, &answer)
}

fn plain(transcript: &Transcript) -> Reply {
    let mut text = transcript.text() + "\n";
    if transcript.model.demonstration {
        text = format!("[{DEMONSTRATION_WARNING}]\n{text}");
    }
    reply::reply(StatusCode::OK, "text/plain; charset=utf-8", text)
}

fn subtitles(transcript: &Transcript, format: Format, content_type: &'static str) -> Reply {
    let mut text = Vec::new();
    // Fails only where what is written to does.
    let _ = export::export(transcript, format, &Options::default(), &mut text);
    reply::reply(StatusCode::OK, content_type, text)
}

fn verbose(transcript: &Transcript) -> Vec<VerboseSegment<'_>> {
    let segments = transcript.segments.iter().enumerate().map(|(id, segment)| VerboseSegment {
        id,
        seek: 0,
        tokens: [],
        start: segment.start,
        end: segment.end,
        text: &segment.text,
        temperature: segment.temperature,
        avg_logprob: segment.mean_log_probability,
        compression_ratio: segment.compression_ratio,
        no_speech_prob: segment.no_speech_probability,
    });
    segments.collect()
}

fn words(transcript: &Transcript) -> Vec<SpokenWord<'_>> {
    let words = transcript.segments.iter().flat_map(|segment| &segment.words);
    words.map(|word| SpokenWord { word: word.text.trim(), start: word.start, end: word.end }).collect()
}

/// Segments with who says them.
pub fn speaker_segments(transcript: &Transcript) -> impl Iterator<Item = SpeakerSegment<'_>> {
    transcript.segments.iter().enumerate().map(|(number, segment)| SpeakerSegment {
        kind: SPEAKER_SEGMENT,
        id: format!("seg_{number:03}"),
        start: segment.start,
        end: segment.end,
        text: &segment.text,
        speaker: segment.speaker.as_deref().unwrap_or("Unknown"),
    })
}
