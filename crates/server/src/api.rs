//! Steno's own endpoints: jobs that a client does not have to wait for, with all of their events and every format.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use transcript::export::{self, Format};
use transcript::{Span, Task, Time};
use utoipa::ToSchema;
use wire::{Channels, DecodingOptions, Event, SpeakerCount, VoiceActivity};

use crate::App;
use crate::access::allowed_file;
use crate::error::{ApiError, ErrorReply};
use crate::exporting::Export;
use crate::feed::{Follower, Heard};
use crate::form::{self, Form};
use crate::jobs::{self, JobView};
use crate::models::{self, Wanted};
use crate::reply::{self, JSON, Reply};
use crate::router::query;
use crate::sse;

/// A job to be added: as JSON with the path of a recording on the server, or as a form with the recording as `file`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct NewJob {
    /// A recording in a folder that the server allows (`--allow`).
    path: Option<String>,
    /// The name of an installed model; without it the server chooses.
    model: Option<String>,
    /// Two letters, such as `en`; detected where it is not given.
    language: Option<String>,
    /// `transcribe`, or `translate` for English.
    task: Option<String>,
    /// Text that the model treats as said before.
    prompt: Option<String>,
    /// Words to expect.
    vocabulary: Vec<String>,
    /// How strongly they are preferred, from 0 to 12; 8 where it is not given.
    vocabulary_strength: Option<f32>,
    /// From 0 to 1. With 0, higher temperatures follow where the text is not plausible.
    temperature: Option<f32>,
    /// Identify speakers: `true`, or how many there are.
    #[schema(value_type = Option<Object>)]
    speakers: Option<Value>,
    /// `mix`, `left`, `right`, or `separate` for each on its own.
    channels: Option<String>,
    /// Number of the audio track, from 0; the file's default one where it is not given.
    track: Option<usize>,
    /// Where the part to transcribe begins, in seconds; times stay those of the recording.
    from: Option<f64>,
    /// Where it ends.
    to: Option<f64>,
    /// `off`, or the probability of speech from 0 to 1 from which on sound is transcribed.
    #[schema(value_type = Option<String>)]
    voice_activity: Option<Value>,
    /// Number of candidate texts to compare.
    beam_size: Option<usize>,
    /// Detect the language of each passage, for recordings in several languages.
    language_per_region: bool,
    /// Put a translation to English beside the text.
    bilingual: bool,
}

impl NewJob {
    fn of_form(fields: Vec<(String, String)>) -> Result<Self, ApiError> {
        let mut object = serde_json::Map::new();
        for (name, value) in fields {
            let value = match name.trim_end_matches("[]") {
                "vocabulary" => {
                    let words = object.entry("vocabulary").or_insert_with(|| json!([]));
                    if let Value::Array(words) = words {
                        words.push(value.into());
                    }
                    continue;
                }
                "temperature"
                | "speakers"
                | "track"
                | "from"
                | "to"
                | "voice_activity"
                | "beam_size"
                | "vocabulary_strength"
                | "language_per_region"
                | "bilingual" => serde_json::from_str(&value).unwrap_or(Value::String(value)),
                "path" => {
                    return Err(ApiError::parameter(
                        "path",
                        "A form has a recording; a path is given as JSON.",
                    ));
                }
                _ => value.into(),
            };
            object.insert(name, value);
        }
        serde_json::from_value(object.into()).map_err(|error| {
            ApiError::new(
                StatusCode::BAD_REQUEST,
                "invalid_value",
                format!("The form can't be used: {error}."),
            )
        })
    }

    fn wanted(&self) -> Result<Wanted, ApiError> {
        let task = match self.task.as_deref() {
            None | Some("transcribe") => Task::Transcribe,
            Some("translate") => Task::Translate,
            Some(_) => return Err(ApiError::parameter("task", "Tasks are transcribe and translate.")),
        };
        let channels = match self.channels.as_deref() {
            None | Some("mix") => Channels::Mix,
            Some("left") => Channels::Left,
            Some("right") => Channels::Right,
            Some("separate") => Channels::Separate,
            Some(_) => {
                return Err(ApiError::parameter("channels", "Channels are mix, left, right and separate."));
            }
        };
        let count = |number: &Value| {
            let number = number.as_u64().and_then(|number| u32::try_from(number).ok());
            number.filter(|number| (1..=SpeakerCount::MOST).contains(number))
        };
        let speakers = match &self.speakers {
            None | Some(Value::Bool(false)) => None,
            Some(Value::Bool(true)) => Some(SpeakerCount::default()),
            Some(number) => Some(SpeakerCount::exactly(count(number).ok_or_else(|| {
                ApiError::parameter(
                    "speakers",
                    "This is true, false or how many speakers there are, from 1 to 50.",
                )
            })?)),
        };
        let voice_activity = self.voice_activity.as_ref().map(|value| match value {
            Value::String(text) if text == "off" => Ok(VoiceActivity::Off),
            value => {
                let threshold = value.as_f64().filter(|value| (0.0..=1.0).contains(value));
                let wrong = "This is off, or a probability from 0 to 1.";
                let threshold = threshold.ok_or_else(|| ApiError::parameter("voice_activity", wrong));
                threshold.map(|threshold| VoiceActivity::Threshold(threshold as f32))
            }
        });
        if self.beam_size == Some(0) {
            return Err(ApiError::parameter("beam_size", "This is a number from 1."));
        }
        let strengths = 0.0..=DecodingOptions::STRONGEST_VOCABULARY;
        if self.vocabulary_strength.is_some_and(|strength| !strengths.contains(&strength)) {
            let wrong = format!("This is a number from 0 to {}.", strengths.end());
            return Err(ApiError::parameter("vocabulary_strength", wrong));
        }
        if self.bilingual && self.task.as_deref() == Some("translate") {
            let message = "The translation of a bilingual transcript stands beside its text: leave out task.";
            return Err(ApiError::parameter("bilingual", message));
        }
        let temperature =
            self.temperature.map(|value| models::temperature(&value.to_string())).transpose()?.flatten();
        Ok(Wanted {
            model: self.model.clone(),
            language: self.language.as_deref().map_or(Ok(None), |text| models::language("language", text))?,
            task,
            prompt: self.prompt.clone().filter(|text| !text.trim().is_empty()),
            vocabulary: self.vocabulary.clone(),
            vocabulary_strength: self.vocabulary_strength,
            temperature,
            speakers,
            voice_activity: voice_activity.transpose()?,
            channels,
            track: self.track,
            span: self.span()?,
            beam_size: self.beam_size,
            language_per_region: self.language_per_region,
            bilingual: self.bilingual,
        })
    }

    /// The part to transcribe; `None`: everything.
    fn span(&self) -> Result<Option<Span>, ApiError> {
        let is_part = self.from.is_some() || self.to.is_some();
        let (from, to) = (self.from.unwrap_or(0.0), self.to);
        let is_time = |seconds: f64| seconds.is_finite() && seconds >= 0.0;
        if !is_time(from) {
            return Err(ApiError::parameter("from", "This is a number of seconds."));
        }
        if to.is_some_and(|to| !is_time(to) || to <= from) {
            return Err(ApiError::parameter(
                "to",
                "This is a number of seconds behind the start of the part.",
            ));
        }
        let end = to.map_or(Time::from_millis(u32::MAX), Time::from_seconds);
        Ok(is_part.then(|| Span::new(Time::from_seconds(from), end)))
    }
}

/// The jobs of a client.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// In the order in which they were accepted.
    jobs: Vec<JobView>,
}

/// Adds a job. It is accepted once the recording is on the disk; a server that is killed finishes it later. With the
/// header `Idempotency-Key` the same request can be repeated: where the client has a job of that key, it is answered
/// with status 200.
#[utoipa::path(post, path = "/jobs",
    request_body(content((NewJob = "application/json"), (NewJob = "multipart/form-data"))),
    responses((status = 200, body = JobView), (status = 202, body = JobView), (status = 400, body = ErrorReply),
        (status = 401, body = ErrorReply),
        (status = 403, body = ErrorReply), (status = 404, body = ErrorReply), (status = 413, body = ErrorReply),
        (status = 429, body = ErrorReply)))]
pub async fn add(app: &Arc<App>, client: String, request: Request<Incoming>) -> Result<Reply, ApiError> {
    let key = key(request.headers())?;
    if let Some(id) = key.as_deref().and_then(|key| app.jobs.of_key(&client, key)) {
        form::drain(app, request).await;
        let view = app.jobs.view(&client, &id).ok_or_else(|| ApiError::not_found("job"))?;
        return Ok(reply::json(StatusCode::OK, &view));
    }
    let place = match app.jobs.reserve(&client) {
        Ok(place) => place,
        Err(error) => {
            form::drain(app, request).await;
            return Err(error);
        }
    };
    let is_json = request
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|value| value.as_bytes().starts_with(JSON.as_bytes()));
    let (asked, upload) = if is_json {
        (form::json::<NewJob>(app, request).await?, None)
    } else {
        let form = Form::read(app, request).await?;
        let missing =
            || ApiError::parameter("file", "The recording is missing: send it as the field `file`.");
        (NewJob::of_form(form.fields)?, Some(form.upload.ok_or_else(missing)?))
    };
    let wanted = asked.wanted()?;
    let shared = Arc::clone(app);
    let accepted = tokio::task::spawn_blocking(move || {
        let (file, name, folder) = match upload {
            Some(upload) => (upload.folder.recording(), upload.name, Some(upload.folder)),
            None => {
                let named = asked.path.as_deref();
                let named =
                    named.ok_or_else(|| ApiError::parameter("path", "Name a recording on the server."))?;
                let file = allowed_file(&shared.allow, named)?;
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let name = wire::printable(&name);
                (file, name, None)
            }
        };
        let (job, model) = shared.models.job(&wanted, &file)?;
        place.accept(folder, job, jobs::Request { name, model, key, bilingual: wanted.bilingual })
    });
    let id = accepted.await.map_err(|_| ApiError::stopping())??;
    let view = app.jobs.view(&client, &id).ok_or_else(|| ApiError::not_found("job"))?;
    Ok(reply::json(StatusCode::ACCEPTED, &view))
}

/// What the client names the job by (draft-ietf-httpapi-idempotency-key-header).
fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    const MOST: usize = 128;
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().map(|key| key.trim_matches('"'));
    let key = key.filter(|key| !key.is_empty() && key.len() <= MOST);
    let key =
        key.ok_or_else(|| ApiError::parameter("Idempotency-Key", "This has 1 to 128 letters and digits."));
    key.map(|key| Some(key.to_owned()))
}

/// Lists the client's jobs.
#[utoipa::path(get, path = "/jobs", responses((status = 200, body = JobList)))]
pub fn list(app: &App, client: &str) -> Reply {
    reply::json(StatusCode::OK, &JobList { jobs: app.jobs.list(client) })
}

/// Says what a job is doing.
#[utoipa::path(get, path = "/jobs/{id}", params(("id" = String, Path)),
    responses((status = 200, body = JobView), (status = 404, body = ErrorReply)))]
pub fn one(app: &App, client: &str, id: &str) -> Result<Reply, ApiError> {
    let view = app.jobs.view(client, id).ok_or_else(|| ApiError::not_found("job"))?;
    Ok(reply::json(StatusCode::OK, &view))
}

/// Cancels a job where it is not over, and removes it with its text.
#[utoipa::path(delete, path = "/jobs/{id}", params(("id" = String, Path)),
    responses((status = 204, description = "It is gone."), (status = 404, body = ErrorReply)))]
pub async fn remove(app: &App, client: &str, id: &str) -> Result<Reply, ApiError> {
    app.jobs.remove(client, id).await?;
    Ok(reply::empty(StatusCode::NO_CONTENT))
}

/// The events of a job as server-sent events, from its beginning to its last one: those of `--json-events`, with the
/// job's id as `job`.
#[utoipa::path(get, path = "/jobs/{id}/events", params(("id" = String, Path)),
    responses((status = 200, description = "Events.", content_type = "text/event-stream", body = String),
        (status = 404, body = ErrorReply)))]
pub async fn events(app: &Arc<App>, client: String, id: String) -> Result<Reply, ApiError> {
    let view = app.jobs.view(&client, &id).ok_or_else(|| ApiError::not_found("job"))?;
    let (shared, of) = (Arc::clone(app), id.clone());
    let follower = tokio::task::spawn_blocking(move || shared.jobs.follow(&client, &of)).await;
    let follower = follower.ok().flatten().ok_or_else(|| ApiError::not_found("job"))?;
    let (pieces, body) = sse::channel();
    tokio::spawn(async move {
        let mut next = Some(sse::named(&json!({ "job": id, "event": "queued", "file": view.name })));
        let mut follower = follower;
        while let Some(piece) = next {
            // Fails where the client is gone.
            if pieces.send(piece).await.is_err() {
                return;
            }
            next = tokio::select! {
                piece = next_piece(&mut follower, &id) => piece,
                () = pieces.closed() => return,
                () = tokio::time::sleep(sse::KEEP_ALIVE) => Some(sse::comment()),
            };
        }
    });
    Ok(reply::events(body))
}

/// As [`wire::Envelope`], with the id by which clients know the job.
#[derive(Debug, Serialize)]
struct JobEvent<'a> {
    job: &'a str,
    #[serde(flatten)]
    event: &'a Event,
}

async fn next_piece(follower: &mut Follower, id: &str) -> Option<bytes::Bytes> {
    let event = match follower.next().await? {
        Heard::Event(event) => event,
        Heard::Stopped => return Some(sse::event("error", &json!({ "error": ApiError::stopping().body }))),
    };
    Some(sse::named(&JobEvent { job: id, event: &event }))
}

/// The text of a job that is over, in any format of an export; `json` where none is asked for. A job that failed or was
/// cancelled may have the beginning of its text, as json.
#[utoipa::path(get, path = "/jobs/{id}/transcript", params(("id" = String, Path),
        ("format" = Option<String>, Query, description = "The name of a format, such as srt."),
        ("shape" = Option<bool>, Query, description = "Divide subtitles into cues that fit the screen; implied by the next six."),
        ("line_width" = Option<usize>, Query, description = "Columns per line, 42 otherwise."),
        ("lines" = Option<usize>, Query, description = "Lines per cue, 2 otherwise."),
        ("reading_speed" = Option<f32>, Query, description = "Columns per second, 17 otherwise."),
        ("min_gap" = Option<f64>, Query, description = "Shortest time between two cues in seconds, 0.08 otherwise."),
        ("min_duration" = Option<f64>, Query, description = "Shortest cue in seconds where possible, 0.833 otherwise."),
        ("max_duration" = Option<f64>, Query, description = "Longest cue in seconds, 7 otherwise."),
        ("word_tags" = Option<bool>, Query, description = "Time stamps of words in vtt, ass and lrc."),
        ("bilingual" = Option<bool>, Query, description = "The translation below what was said; in csv beside it."),
        ("raw_text" = Option<bool>, Query, description = "In csv, tsv and srt, keep text that a program may take for a formula or a tag."),
        ("reproducible" = Option<bool>, Query, description = "Omit from json what differs between two runs."),
        ("omit" = Option<String>, Query, description = "In documents: times, speakers, paragraphs, separated by commas.")),
    responses((status = 200, description = "The text."), (status = 400, body = ErrorReply),
        (status = 404, body = ErrorReply), (status = 409, body = ErrorReply)))]
pub async fn transcript(
    app: &Arc<App>,
    client: String,
    id: String,
    asked: Option<&str>,
) -> Result<Reply, ApiError> {
    let Export { format, options } = Export::read(&query(asked))?;
    let shared = Arc::clone(app);
    let made = tokio::task::spawn_blocking(move || {
        let transcript = shared.jobs.transcript(&client, &id)?;
        if !transcript.complete && format != Format::Json {
            let message = "The job ended early: what there is of its text is available as json.";
            return Err(ApiError::new(StatusCode::CONFLICT, "incomplete", message));
        }
        if options.translation && transcript.segments.iter().all(|segment| segment.translation.is_none()) {
            let message =
                "This transcript has no translation: ask for it with bilingual when you add the job.";
            return Err(ApiError::new(StatusCode::CONFLICT, "no_translation", message));
        }
        transcript::save::check_content(&transcript, format, std::path::Path::new("")).map_err(|error| {
            ApiError::new(
                StatusCode::CONFLICT,
                error.code(),
                format!("There is no {format}. {}", error.message()),
            )
        })?;
        let mut text = Vec::new();
        export::export(&transcript, format, &options, &mut text).map_err(|error| {
            let message = format!("The text can't be written as {format} ({error}).");
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "export_failed", message)
        })?;
        Ok(text)
    });
    let text = made.await.map_err(|_| ApiError::stopping())??;
    Ok(reply::reply(StatusCode::OK, content_type(format), text))
}

fn content_type(format: Format) -> &'static str {
    match format {
        Format::Txt | Format::Ass | Format::Lrc | Format::Rttm | Format::Chapters => {
            "text/plain; charset=utf-8"
        }
        Format::Srt => "application/x-subrip; charset=utf-8",
        Format::Vtt | Format::ChaptersVtt => "text/vtt; charset=utf-8",
        Format::Json | Format::Whisperx => JSON,
        Format::Md => "text/markdown; charset=utf-8",
        Format::Html => "text/html; charset=utf-8",
        Format::Docx => "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        Format::Pdf => "application/pdf",
        Format::Csv => "text/csv; charset=utf-8",
        Format::Tsv => "text/tab-separated-values; charset=utf-8",
    }
}
