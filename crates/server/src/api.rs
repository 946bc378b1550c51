//! Steno's own endpoints: jobs that a client does not have to wait for, with all of their events and every format.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::{Request, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use transcript::Task;
use transcript::export::{self, Format, Options};
use utoipa::ToSchema;
use wire::{Channels, Event, SpeakerCount};

use crate::App;
use crate::access::allowed_file;
use crate::error::{ApiError, ErrorReply};
use crate::feed::{Follower, Heard};
use crate::form::{self, Form};
use crate::jobs::JobView;
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
    /// From 0 to 1. With 0, higher temperatures follow where the text is not plausible.
    temperature: Option<f32>,
    /// Identify speakers: `true`, or how many there are.
    #[schema(value_type = Option<Object>)]
    speakers: Option<Value>,
    /// `mix`, `left`, `right`, or `separate` for each on its own.
    channels: Option<String>,
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
                "temperature" | "speakers" => serde_json::from_str(&value).unwrap_or(Value::String(value)),
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
        let temperature =
            self.temperature.map(|value| models::temperature(&value.to_string())).transpose()?.flatten();
        Ok(Wanted {
            model: self.model.clone(),
            language: self.language.as_deref().map_or(Ok(None), |text| models::language("language", text))?,
            task,
            prompt: self.prompt.clone().filter(|text| !text.trim().is_empty()),
            vocabulary: self.vocabulary.clone(),
            temperature,
            speakers,
            voice_threshold: None,
            channels,
        })
    }
}

/// The jobs of a client.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobList {
    /// In the order in which they were accepted.
    jobs: Vec<JobView>,
}

/// Adds a job. It is accepted once the recording is on the disk; a server that is killed finishes it later.
#[utoipa::path(post, path = "/jobs",
    request_body(content((NewJob = "application/json"), (NewJob = "multipart/form-data"))),
    responses((status = 202, body = JobView), (status = 400, body = ErrorReply), (status = 401, body = ErrorReply),
        (status = 403, body = ErrorReply), (status = 404, body = ErrorReply), (status = 413, body = ErrorReply),
        (status = 429, body = ErrorReply)))]
pub async fn add(app: &Arc<App>, client: String, request: Request<Incoming>) -> Result<Reply, ApiError> {
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
        place.accept(folder, job, name, model)
    });
    let id = accepted.await.map_err(|_| ApiError::stopping())??;
    let view = app.jobs.view(&client, &id).ok_or_else(|| ApiError::not_found("job"))?;
    Ok(reply::json(StatusCode::ACCEPTED, &view))
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
        ("format" = Option<String>, Query, description = "The name of a format, such as srt.")),
    responses((status = 200, description = "The text."), (status = 400, body = ErrorReply),
        (status = 404, body = ErrorReply), (status = 409, body = ErrorReply)))]
pub async fn transcript(
    app: &Arc<App>,
    client: String,
    id: String,
    asked: Option<&str>,
) -> Result<Reply, ApiError> {
    let mut format = Format::Json;
    for (name, value) in query(asked) {
        match name.as_str() {
            "format" => {
                format = value.parse().map_err(|error: export::UnknownFormat| {
                    ApiError::parameter("format", wire::sentence(&error.to_string()))
                })?;
            }
            _ => return Err(ApiError::parameter(&name, "The only parameter here is format.")),
        }
    }
    let shared = Arc::clone(app);
    let made = tokio::task::spawn_blocking(move || {
        let transcript = shared.jobs.transcript(&client, &id)?;
        if !transcript.complete && format != Format::Json {
            let message = "The job ended early: what there is of its text is available as json.";
            return Err(ApiError::new(StatusCode::CONFLICT, "incomplete", message));
        }
        let mut text = Vec::new();
        export::export(&transcript, format, &Options::default(), &mut text).map_err(|error| {
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
