//! What the text looks like in an answer.

use hyper::StatusCode;
use serde_json::{Value, json};
use transcript::export::{self, DEMONSTRATION_WARNING, Format, Options};
use transcript::{Task, Transcript};
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

pub fn reply(transcript: &Transcript, parameters: &Parameters) -> Reply {
    let value = match parameters.format {
        ResponseFormat::Text => return plain(transcript),
        ResponseFormat::Srt => {
            return subtitles(transcript, Format::Srt, "application/x-subrip; charset=utf-8");
        }
        ResponseFormat::Vtt => return subtitles(transcript, Format::Vtt, "text/vtt; charset=utf-8"),
        ResponseFormat::Json => json!({ "text": transcript.text() }),
        ResponseFormat::VerboseJson => verbose(transcript, parameters),
        ResponseFormat::DiarizedJson => json!({
            "task": task(transcript),
            "duration": transcript.source.duration,
            "text": transcript.text(),
            "segments": speaker_segments(transcript).collect::<Vec<_>>(),
        }),
    };
    let mut value = value;
    value["usage"] = json!({ "type": "duration", "seconds": transcript.source.duration.seconds().ceil() });
    if transcript.model.demonstration {
        value["warning"] = DEMONSTRATION_WARNING.into();
    }
    reply::json(StatusCode::OK, &value)
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

fn task(transcript: &Transcript) -> &'static str {
    if transcript.task == Task::Translate { "translate" } else { "transcribe" }
}

fn verbose(transcript: &Transcript, parameters: &Parameters) -> Value {
    let mut value = json!({
        "task": task(transcript),
        "language": transcript.language,
        "duration": transcript.source.duration,
        "text": transcript.text(),
    });
    if parameters.segments {
        let segments = transcript.segments.iter().enumerate().map(|(number, segment)| {
            json!({
                "id": number,
                // Windows and tokens are not part of a transcript.
                "seek": 0,
                "tokens": [],
                "start": segment.start,
                "end": segment.end,
                "text": segment.text,
                "temperature": segment.temperature,
                "avg_logprob": segment.mean_log_probability,
                "compression_ratio": segment.compression_ratio,
                "no_speech_prob": segment.no_speech_probability,
            })
        });
        value["segments"] = segments.collect();
    }
    if parameters.words {
        let words = transcript.segments.iter().flat_map(|segment| &segment.words);
        let words =
            words.map(|word| json!({ "word": word.text.trim(), "start": word.start, "end": word.end }));
        value["words"] = words.collect();
    }
    value
}

/// Segments with who says them.
pub fn speaker_segments(transcript: &Transcript) -> impl Iterator<Item = Value> {
    transcript.segments.iter().enumerate().map(|(number, segment)| {
        json!({
            "type": SPEAKER_SEGMENT,
            "id": format!("seg_{number:03}"),
            "start": segment.start,
            "end": segment.end,
            "text": segment.text,
            "speaker": segment.speaker.as_deref().unwrap_or("Unknown"),
        })
    })
}
