//! OpenAI's endpoints. `parameters` says which parameters are honoured and which are refused, `formats` what the answers
//! look like.

mod formats;
mod parameters;

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc::Sender;
use transcript::export::{DEMONSTRATION_WARNING, space_between};
use transcript::{Task, Transcript};
use utoipa::ToSchema;
use wire::Event;

use crate::App;
use crate::error::{ApiError, ErrorBody, ErrorReply};
use crate::feed::{Follower, Heard};
use crate::form::{self, Form};
use crate::models::{self, ANY};
use crate::reply::{self, Reply};
use crate::sse;

pub use formats::ResponseFormat;
pub use parameters::{Parameters, SpeechRequest};

/// A model as OpenAI describes one.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelView {
    /// Its name.
    id: String,
    /// When it was installed, in seconds since 1970.
    created: u64,
    /// Always `model`.
    object: &'static str,
    /// Always `steno`.
    owned_by: &'static str,
}

/// A list of models.
#[derive(Debug, Serialize, ToSchema)]
pub struct ModelList {
    /// Always `list`.
    object: &'static str,
    /// The installed models, and `whisper-1` for the server's choice.
    data: Vec<ModelView>,
}

async fn all(app: &Arc<App>) -> Vec<ModelView> {
    let app = Arc::clone(app);
    let view = |id: String, created| ModelView { id, created, object: "model", owned_by: "steno" };
    let listed = tokio::task::spawn_blocking(move || {
        let installed = app.models.list().into_iter().map(|model| {
            let created = models::installed_at(&model);
            view(model.name, created)
        });
        std::iter::once(view(ANY.to_owned(), 0)).chain(installed).collect()
    });
    listed.await.unwrap_or_default()
}

/// Lists the models that a request can name.
#[utoipa::path(get, path = "/v1/models", responses((status = 200, body = ModelList)))]
pub async fn models(app: &Arc<App>) -> Result<Reply, ApiError> {
    let list = ModelList { object: "list", data: all(app).await };
    Ok(reply::json(StatusCode::OK, &list))
}

/// Describes one model.
#[utoipa::path(get, path = "/v1/models/{id}", params(("id" = String, Path)),
    responses((status = 200, body = ModelView), (status = 404, body = ErrorReply)))]
pub async fn model(app: &Arc<App>, id: String) -> Result<Reply, ApiError> {
    let found = all(app).await.into_iter().find(|model| model.id == id);
    let not_found =
        || ApiError::new(StatusCode::NOT_FOUND, "model_not_found", "There is no model of that name.");
    Ok(reply::json(StatusCode::OK, &found.ok_or_else(not_found)?))
}

/// Transcribes a recording. The answer comes when it is done, or piece by piece with `stream`.
#[utoipa::path(post, path = "/v1/audio/transcriptions",
    request_body(content = SpeechRequest, content_type = "multipart/form-data"),
    responses((status = 200, description = "The text in the format that was asked for."),
        (status = 400, body = ErrorReply), (status = 401, body = ErrorReply), (status = 404, body = ErrorReply),
        (status = 413, body = ErrorReply), (status = 429, body = ErrorReply)))]
#[allow(dead_code, reason = "`speech` answers both; each has a description of its own")]
pub fn transcriptions() {}

/// Translates a recording to English. Parameters are those of a transcription but `stream`.
#[utoipa::path(post, path = "/v1/audio/translations",
    request_body(content = SpeechRequest, content_type = "multipart/form-data"),
    responses((status = 200, description = "The text in the format that was asked for."),
        (status = 400, body = ErrorReply), (status = 401, body = ErrorReply), (status = 404, body = ErrorReply),
        (status = 413, body = ErrorReply), (status = 429, body = ErrorReply)))]
#[allow(dead_code, reason = "`speech` answers both; each has a description of its own")]
pub fn translations() {}

/// Answers both.
pub async fn speech(
    app: &Arc<App>,
    client: String,
    task: Task,
    request: Request<Incoming>,
) -> Result<Reply, ApiError> {
    let place = match app.jobs.reserve(&client) {
        Ok(place) => place,
        Err(error) => {
            form::drain(app, request).await;
            return Err(error);
        }
    };
    let form = Form::read(app, request).await?;
    let parameters = Parameters::read(task, &form.fields)?;
    let missing = || ApiError::parameter("file", "The recording is missing: send it as the field `file`.");
    let upload = form.upload.ok_or_else(missing)?;
    let (shared, wanted) = (Arc::clone(app), parameters.wanted.clone());
    let accepted = tokio::task::spawn_blocking(move || {
        let (job, model) = shared.models.job(&wanted, &upload.folder.recording())?;
        let request = crate::jobs::Request { name: upload.name, model, ..Default::default() };
        let id = place.accept(Some(upload.folder), job, request)?;
        // A client that goes away, and may ask again, leaves no work behind, also where it goes at this moment.
        Ok::<_, ApiError>(Waiting { app: shared, client, id, is_over: false })
    });
    let waiting = accepted.await.map_err(|_| ApiError::stopping())??;
    let follower = app.jobs.follow(&waiting.client, &waiting.id).ok_or_else(|| ApiError::not_found("job"))?;
    if !parameters.stream {
        let transcript = finished(follower, waiting).await?;
        return Ok(formats::reply(&transcript, &parameters));
    }
    let (pieces, body) = sse::channel();
    tokio::spawn(async move {
        // Fails where the client is gone.
        let _ = stream(follower, waiting, &parameters, &pieces).await;
    });
    Ok(reply::events(body))
}

/// A client that waits for its job, which is cancelled when it goes away.
struct Waiting {
    app: Arc<App>,
    client: String,
    id: String,
    is_over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.is_over {
            self.app.jobs.cancel(&self.client, &self.id);
        }
    }
}

async fn finished(mut follower: Follower, mut waiting: Waiting) -> Result<Transcript, ApiError> {
    while let Some(heard) = follower.next().await {
        let Heard::Event(event) = heard else { break };
        if event.is_last() {
            waiting.is_over = true;
            return outcome(&event, &waiting).cloned();
        }
    }
    // It goes on when the server does.
    waiting.is_over = true;
    Err(ApiError::stopping())
}

fn outcome<'a>(event: &'a Event, waiting: &Waiting) -> Result<&'a Transcript, ApiError> {
    match event {
        Event::Finished { transcript, .. } => Ok(transcript),
        Event::Failed { error, .. } => {
            // Its own code: the engine's events have none for what the server decides.
            let view = waiting.app.jobs.view(&waiting.client, &waiting.id);
            Err(ApiError::of_job(view.and_then(|view| view.error).unwrap_or_else(|| ErrorBody::of(error))))
        }
        _ => Err(ApiError::new(StatusCode::CONFLICT, "cancelled", "The job was cancelled.")),
    }
}

/// The client is gone.
struct Gone;

async fn stream(
    mut follower: Follower,
    mut waiting: Waiting,
    parameters: &Parameters,
    pieces: &Sender<Bytes>,
) -> Result<(), Gone> {
    let mut text = String::new();
    loop {
        let heard = tokio::select! {
            heard = follower.next() => heard,
            () = pieces.closed() => return Err(Gone),
            () = tokio::time::sleep(sse::KEEP_ALIVE) => {
                send(pieces, sse::comment()).await?;
                continue;
            }
        };
        let event = match heard {
            Some(Heard::Event(event)) => event,
            Some(Heard::Stopped) | None => {
                waiting.is_over = true;
                return fail(pieces, ApiError::stopping()).await;
            }
        };
        if let Event::Segment { segment } = &*event {
            let said = segment.text.trim();
            let space = if text.is_empty() || said.is_empty() { "" } else { space_between(&text, said) };
            let delta = format!("{space}{said}");
            text += &delta;
            const DELTA: &str = "transcript.text.delta";
            send(pieces, sse::event(DELTA, &json!({ "type": DELTA, "delta": delta }))).await?;
        }
        if !event.is_last() {
            continue;
        }
        waiting.is_over = true;
        let transcript = match outcome(&event, &waiting) {
            Ok(transcript) => transcript,
            Err(error) => return fail(pieces, error).await,
        };
        if parameters.format == ResponseFormat::DiarizedJson {
            const SEGMENT: &str = formats::SPEAKER_SEGMENT;
            for segment in formats::speaker_segments(transcript) {
                send(pieces, sse::event(SEGMENT, &segment)).await?;
            }
        }
        const DONE: &str = "transcript.text.done";
        let mut done = json!({ "type": DONE, "text": transcript.text() });
        if transcript.model.demonstration {
            done["warning"] = DEMONSTRATION_WARNING.into();
        }
        return send(pieces, sse::event(DONE, &done)).await;
    }
}

async fn fail(pieces: &Sender<Bytes>, error: ApiError) -> Result<(), Gone> {
    send(pieces, sse::event("error", &json!({ "error": error.body }))).await
}

async fn send(pieces: &Sender<Bytes>, piece: Bytes) -> Result<(), Gone> {
    pieces.send(piece).await.map_err(|_| Gone)
}
