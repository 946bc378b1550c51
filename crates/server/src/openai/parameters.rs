//! The parameters of a transcription or translation. Every one is honoured or refused: a parameter that is not in
//! [`Parameters::read`] is refused by its name.

use std::collections::BTreeMap;

use transcript::Task;
use utoipa::ToSchema;
use wire::{SpeakerCount, VoiceActivity};

use super::ResponseFormat;
use crate::error::ApiError;
use crate::models::{self, Wanted};

/// What a request asks for.
#[derive(Debug, Clone, Default)]
pub struct Parameters {
    pub wanted: Wanted,
    pub format: ResponseFormat,
    pub stream: bool,
    /// In `verbose_json`.
    pub words: bool,
    pub segments: bool,
}

// For the description of the API alone: `Parameters::read` says what is read.
/// The form of a request for a transcription or a translation.
#[derive(Debug, ToSchema)]
#[allow(dead_code, reason = "for the description only")]
pub struct SpeechRequest {
    /// The recording: any audio or video file that Steno reads.
    #[schema(value_type = String, format = Binary)]
    file: String,
    /// The name of an installed model, or `whisper-1` for the server's choice.
    model: String,
    /// Two letters, such as `en`; where it is not given, the model finds it, or the request is refused if the model can't. `languages[]` with one language means the same.
    language: Option<String>,
    /// Text that the model treats as said before.
    prompt: Option<String>,
    /// Words to expect.
    #[schema(rename = "keywords[]")]
    keywords: Option<Vec<String>>,
    /// From 0 to 1. With 0, higher temperatures follow where the text is not plausible.
    temperature: Option<f32>,
    /// `json` where it is not given.
    response_format: Option<ResponseFormat>,
    /// `word` and `segment`, for `verbose_json`.
    #[schema(rename = "timestamp_granularities[]")]
    timestamp_granularities: Option<Vec<String>>,
    /// The text as server-sent events while it is written; for `json`, `text` and `diarized_json`.
    stream: Option<bool>,
    /// `auto`, or `server_vad` with a `threshold`.
    chunking_strategy: Option<String>,
}

impl Parameters {
    pub fn read(task: Task, fields: &[(String, String)]) -> Result<Self, ApiError> {
        let mut read = Self { wanted: Wanted { task, ..Wanted::default() }, ..Self::default() };
        let (mut granularities, mut seen) = (Vec::new(), Vec::new());
        let mut chunking = BTreeMap::new();
        for (name, value) in fields {
            let list = name.strip_suffix("[]");
            if list.is_none() && seen.contains(&name) {
                return Err(ApiError::parameter(name, "This parameter is given twice."));
            }
            seen.push(name);
            let wanted = &mut read.wanted;
            match list.unwrap_or(name) {
                "model" => wanted.model = Some(value.trim().to_owned()),
                "prompt" => wanted.prompt = Some(value.clone()).filter(|text| !text.trim().is_empty()),
                "response_format" => read.format = ResponseFormat::read(value)?,
                "temperature" => wanted.temperature = models::temperature(value)?,
                "keywords" => {
                    wanted.vocabulary.extend(Some(value.trim().to_owned()).filter(|it| !it.is_empty()))
                }
                // OpenAI's translations take none; a model that does not find the language needs it.
                "language" | "languages" => {
                    let language = models::language(name, value)?;
                    if wanted.language.is_some() && wanted.language != language {
                        return Err(ApiError::parameter(
                            name,
                            "One language can be given; without any, the model finds it.",
                        ));
                    }
                    wanted.language = language;
                }
                "timestamp_granularities" if task == Task::Transcribe => granularities.push(value.as_str()),
                "stream" if task == Task::Transcribe => read.stream = boolean(name, value)?,
                other if task == Task::Transcribe && other.starts_with("chunking_strategy") => {
                    chunking.insert(name.as_str(), value.as_str());
                }
                "include" => {
                    return Err(ApiError::parameter(
                        name,
                        "Probabilities of tokens are not available. verbose_json has those of segments.",
                    ));
                }
                "known_speaker_names" | "known_speaker_references" => {
                    return Err(ApiError::parameter(
                        name,
                        "Speakers are known by the voices that were added to Steno on the server (`steno voices`).",
                    ));
                }
                _ => {
                    let mut error = ApiError::parameter(name, format!("There is no parameter {name} here."));
                    error.body.code = Some("unknown_parameter".into());
                    return Err(error);
                }
            }
        }
        if read.wanted.model.as_deref().is_none_or(str::is_empty) {
            return Err(ApiError::parameter("model", "Name a model; whisper-1 is the server's choice."));
        }
        read.wanted.voice_activity = threshold(&chunking)?.map(VoiceActivity::Threshold);
        read.granularities(&granularities)?;
        match read.format {
            ResponseFormat::DiarizedJson if task == Task::Translate => {
                return Err(ApiError::parameter("response_format", "A translation has no diarized_json."));
            }
            ResponseFormat::DiarizedJson => read.wanted.speakers = Some(SpeakerCount::default()),
            ResponseFormat::Srt | ResponseFormat::Vtt | ResponseFormat::VerboseJson if read.stream => {
                return Err(ApiError::parameter(
                    "stream",
                    "Only json, text and diarized_json can be streamed.",
                ));
            }
            _ => {}
        }
        Ok(read)
    }

    fn granularities(&mut self, values: &[&str]) -> Result<(), ApiError> {
        const NAME: &str = "timestamp_granularities[]";
        if !values.is_empty() && self.format != ResponseFormat::VerboseJson {
            return Err(ApiError::parameter(
                NAME,
                "Timestamps are in verbose_json: set response_format to it.",
            ));
        }
        self.segments = values.is_empty();
        for value in values {
            match *value {
                "word" => self.words = true,
                "segment" => self.segments = true,
                _ => return Err(ApiError::parameter(NAME, "Granularities are word and segment.")),
            }
        }
        Ok(())
    }
}

fn boolean(name: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" | "True" | "1" => Ok(true),
        "false" | "False" | "0" | "" => Ok(false),
        _ => Err(ApiError::parameter(name, "This is true or false.")),
    }
}

/// The probability of speech of `server_vad`, which comes as JSON or as fields of their own. `auto` is what Steno does.
fn threshold(given: &BTreeMap<&str, &str>) -> Result<Option<f32>, ApiError> {
    const NAME: &str = "chunking_strategy";
    let refused = |message: &str| Err(ApiError::parameter(NAME, message));
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in given {
        match name.strip_prefix("chunking_strategy[").and_then(|rest| rest.strip_suffix(']')) {
            Some(part) => {
                parts.insert(part.to_owned(), (*value).to_owned());
            }
            None if *name != NAME => return refused("This part of a strategy is unknown."),
            None if matches!(*value, "auto" | "") => {}
            None => match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(value) {
                Ok(object) => parts.extend(object.into_iter().map(|(name, value)| {
                    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    (name, text)
                })),
                Err(_) => return refused("Strategies are auto and server_vad."),
            },
        }
    }
    let mut threshold = None;
    for (name, value) in &parts {
        match name.as_str() {
            "type" if value == "server_vad" => {}
            "type" => return refused("Strategies are auto and server_vad."),
            "threshold" => {
                let value: Option<f32> = value.parse().ok().filter(|value| (0.0..=1.0).contains(value));
                match value {
                    Some(value) => threshold = Some(value),
                    None => return refused("The threshold is a number from 0 to 1."),
                }
            }
            _ => return refused("Of server_vad, only the threshold can be set."),
        }
    }
    Ok(threshold)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(task: Task, fields: &[(&str, &str)]) -> Result<Parameters, ApiError> {
        let fields: Vec<_> = fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Parameters::read(task, &fields)
    }

    #[test]
    fn parameters_are_honoured() {
        let read = |fields: &[(&str, &str)]| {
            let fields = [&[("model", "whisper-1")][..], fields].concat();
            read(Task::Transcribe, &fields).unwrap()
        };
        assert_eq!(read(&[("language", "DE")]).wanted.language.as_deref(), Some("de"));
        assert_eq!(read(&[("languages[]", "fr")]).wanted.language.as_deref(), Some("fr"));
        assert_eq!(read(&[("prompt", "Ada")]).wanted.prompt.as_deref(), Some("Ada"));
        assert_eq!(
            read(&[("keywords[]", "Ada"), ("keywords[]", " Grace ")]).wanted.vocabulary,
            ["Ada", "Grace"]
        );
        assert_eq!(read(&[("temperature", "0")]).wanted.temperature, None);
        assert_eq!(read(&[("temperature", "0.4")]).wanted.temperature, Some(0.4));
        assert!(read(&[("stream", "true")]).stream && !read(&[("stream", "false")]).stream);
        let verbose = ("response_format", "verbose_json");
        let word = ("timestamp_granularities[]", "word");
        let both = read(&[verbose, word, ("timestamp_granularities[]", "segment")]);
        assert!(both.words && both.segments);
        let words = read(&[verbose, word]);
        assert!(words.words && !words.segments);
        assert!(read(&[verbose]).segments);
        assert!(read(&[("response_format", "diarized_json")]).wanted.speakers.is_some());
        assert_eq!(read(&[("chunking_strategy", "auto")]).wanted.voice_activity, None);
        let vad = r#"{"type": "server_vad", "threshold": 0.25}"#;
        assert_eq!(
            read(&[("chunking_strategy", vad)]).wanted.voice_activity,
            Some(VoiceActivity::Threshold(0.25))
        );
        let parts = [("chunking_strategy[type]", "server_vad"), ("chunking_strategy[threshold]", "0.75")];
        assert_eq!(read(&parts).wanted.voice_activity, Some(VoiceActivity::Threshold(0.75)));
    }

    #[test]
    fn what_is_not_honoured_is_refused_by_name() {
        let verbose = ("response_format", "verbose_json");
        for (task, fields, param) in [
            (Task::Transcribe, &[("language", "deutsch")][..], "language"),
            (Task::Transcribe, &[("languages[]", "de"), ("languages[]", "en")], "languages[]"),
            (Task::Transcribe, &[("response_format", "xml")], "response_format"),
            (Task::Transcribe, &[("temperature", "2")], "temperature"),
            (Task::Transcribe, &[("temperature", "NaN")], "temperature"),
            (Task::Transcribe, &[("timestamp_granularities[]", "word")], "timestamp_granularities[]"),
            (
                Task::Transcribe,
                &[verbose, ("timestamp_granularities[]", "hour")],
                "timestamp_granularities[]",
            ),
            (Task::Transcribe, &[verbose, ("stream", "true")], "stream"),
            (Task::Transcribe, &[("stream", "maybe")], "stream"),
            (Task::Transcribe, &[("include[]", "logprobs")], "include[]"),
            (Task::Transcribe, &[("known_speaker_names[]", "Ada")], "known_speaker_names[]"),
            (Task::Transcribe, &[("known_speaker_references[]", "data:")], "known_speaker_references[]"),
            (Task::Transcribe, &[("chunking_strategy", "manual")], "chunking_strategy"),
            (Task::Transcribe, &[("chunking_strategy[silence_duration_ms]", "9")], "chunking_strategy"),
            (Task::Transcribe, &[("user", "me")], "user"),
            (Task::Transcribe, &[("prompt", "a"), ("prompt", "b")], "prompt"),
            (Task::Translate, &[("stream", "true")], "stream"),
            (Task::Translate, &[("response_format", "diarized_json")], "response_format"),
            (Task::Translate, &[("timestamp_granularities[]", "word")], "timestamp_granularities[]"),
        ] {
            let fields = [&[("model", "whisper-1")][..], fields].concat();
            let error = read(task, &fields).unwrap_err();
            assert_eq!(
                (error.status.as_u16(), error.body.param.as_deref()),
                (400, Some(param)),
                "{fields:?}"
            );
        }
        assert_eq!(read(Task::Transcribe, &[]).unwrap_err().body.param.as_deref(), Some("model"));
    }
}
