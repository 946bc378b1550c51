//! Bodies of requests: forms with a recording, which goes straight to the disk, and JSON. Both are bounded in size and
//! must go on: a client that sends a byte now and then holds no place.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, StatusCode};
use multer::{Field, Multipart};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::App;
use crate::error::ApiError;
use crate::jobs::JobFolder;

/// Bytes that must arrive in each [`Limits::body_time`](crate::Limits::body_time).
const LEAST: u64 = 16 << 10;
/// Of all fields of a form but the recording, and of a body in JSON.
const TEXT_BYTES: usize = 1 << 20;
/// Fields of a form.
const FIELDS: usize = 256;
/// Other programs need some of the disk too.
const MARGIN: u64 = 64 << 20;
/// Between two looks at the disk.
const LOOK_EVERY: u64 = 16 << 20;
/// Pieces on their way to the disk.
const PIECES: usize = 16;
/// Of a body that is not wanted: read all the same, so that the client, which reads no answer before it has sent
/// everything, gets one.
const DRAINED: u64 = 16 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);
const MAX_NAME: usize = 200;

/// A form as it came.
#[derive(Debug, Default)]
pub struct Form {
    /// All fields but the recording, in order.
    pub fields: Vec<(String, String)>,
    pub upload: Option<Upload>,
}

/// A recording on the disk.
#[derive(Debug)]
pub struct Upload {
    pub folder: JobFolder,
    /// What the client calls it.
    pub name: String,
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
enum Fault {
    #[error("too large")]
    TooLarge,
    #[error("too slow")]
    TooSlow,
    #[error("broken off")]
    Broken,
}

impl Form {
    /// Reads a form; its field `file` is the recording.
    pub async fn read(app: &App, request: Request<Incoming>) -> Result<Self, ApiError> {
        let limit = app.limits.upload;
        let type_of = |headers: &HeaderMap| headers.get(CONTENT_TYPE)?.to_str().ok().map(str::to_owned);
        let boundary = type_of(request.headers()).and_then(|text| multer::parse_boundary(text).ok());
        let body =
            Paced::new(request.into_body(), limit.saturating_add(TEXT_BYTES as u64), app.limits.body_time);
        let Some(boundary) = boundary else {
            body.drain().await;
            return Err(ApiError::parameter(
                "file",
                "Send a form (multipart/form-data) with the recording as `file`.",
            ));
        };
        if body.announced() > body.limit {
            body.drain().await;
            return Err(too_large(limit));
        }
        let mut form = Self::default();
        let body = Lent::new(body);
        let mut parts = Multipart::new(body.clone().into_data_stream(), boundary);
        let mut text_bytes = 0;
        while let Some(mut field) = parts.next_field().await.map_err(|error| fault(&error, limit))? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                if form.upload.is_some() {
                    return Err(ApiError::parameter("file", "One request takes one recording."));
                }
                form.upload = Some(receive(app, &mut field).await?);
                continue;
            }
            let text = read_text(&mut field, &mut text_bytes, limit).await?;
            if form.fields.len() >= FIELDS {
                return Err(ApiError::parameter(&printable(&name), "The form has too many fields."));
            }
            form.fields.push((name, text));
        }
        // Up to its last byte: a connection whose request is not read to its end is not watched for its own.
        body.finish().await.map_err(|fault| of_fault(fault, limit))?;
        Ok(form)
    }
}

/// Reads a body in JSON.
pub async fn json<T: DeserializeOwned>(app: &App, request: Request<Incoming>) -> Result<T, ApiError> {
    let body = Paced::new(request.into_body(), TEXT_BYTES as u64, app.limits.body_time);
    let bytes = match body.collect().await {
        Ok(collected) => collected.to_bytes(),
        Err(fault) => return Err(of_fault(fault, TEXT_BYTES as u64)),
    };
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::new(StatusCode::BAD_REQUEST, "invalid_json", format!("The body can't be used: {error}."))
    })
}

/// Reads a body that is not wanted, as far as that is no burden.
pub async fn drain(app: &App, request: Request<Incoming>) {
    Paced::new(request.into_body(), DRAINED, app.limits.body_time).drain().await;
}

async fn read_text(field: &mut Field<'_>, total: &mut usize, limit: u64) -> Result<String, ApiError> {
    let name = printable(field.name().unwrap_or_default());
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await.map_err(|error| fault(&error, limit))? {
        *total += piece.len();
        if *total > TEXT_BYTES {
            return Err(ApiError::parameter(&name, "The fields of the form are too long."));
        }
        bytes.extend_from_slice(&piece);
    }
    String::from_utf8(bytes).map_err(|_| ApiError::parameter(&name, "The field is not text in UTF-8."))
}

/// Writes a recording to the disk, and returns once it is there.
async fn receive(app: &App, field: &mut Field<'_>) -> Result<Upload, ApiError> {
    let limit = app.limits.upload;
    let name = printable(field.file_name().unwrap_or_default());
    let name = if name.is_empty() { "recording".to_owned() } else { name };
    let jobs = app.jobs.clone();
    let blocked = |_| ApiError::storage(&"it is being stopped");
    let folder = tokio::task::spawn_blocking(move || jobs.new_folder()).await.map_err(blocked)??;
    let (pieces, received) = mpsc::channel(PIECES);
    let (path, jobs) = (folder.recording(), app.jobs.clone());
    let writer = tokio::task::spawn_blocking(move || write(&path, received, || jobs.free_space()));
    let mut bytes = 0;
    let mut full = false;
    while let Some(piece) = field.chunk().await.map_err(|error| fault(&error, limit))? {
        bytes += piece.len() as u64;
        if bytes > limit {
            return Err(too_large(limit));
        }
        if pieces.send(piece).await.is_err() {
            full = true;
            break;
        }
    }
    drop(pieces);
    let written = writer.await.map_err(io::Error::other).flatten();
    written.map_err(|error| ApiError::storage(&error))?;
    if full || bytes == 0 {
        return Err(ApiError::parameter("file", "The recording is empty."));
    }
    app.metrics.uploaded(bytes);
    Ok(Upload { folder, name })
}

/// Returns once everything is on the disk.
fn write(path: &Path, mut pieces: mpsc::Receiver<Bytes>, free: impl Fn() -> Option<u64>) -> io::Result<()> {
    let mut file = File::create(path)?;
    let mut since_look = LOOK_EVERY;
    while let Some(piece) = pieces.blocking_recv() {
        since_look += piece.len() as u64;
        if since_look >= LOOK_EVERY {
            since_look = 0;
            if free().is_some_and(|free| free < MARGIN + LOOK_EVERY) {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    // The folder's entry of it too, where the system has folders that can be opened.
    match path.parent().and_then(|folder| File::open(folder).ok()) {
        Some(folder) => folder.sync_all(),
        None => Ok(()),
    }
}

/// The last part of a name, for people to read: it names no file.
fn printable(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    wire::printable(last).trim().chars().take(MAX_NAME).collect()
}

fn fault(error: &multer::Error, limit: u64) -> ApiError {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return of_fault(*fault, limit);
        }
        if let Some(multer::Error::StreamReadFailed(inner)) = error.downcast_ref::<multer::Error>()
            && let Some(fault) = inner.downcast_ref::<Fault>()
        {
            return of_fault(*fault, limit);
        }
        source = error.source();
    }
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_form", format!("The form can't be read: {error}."))
}

fn of_fault(fault: Fault, limit: u64) -> ApiError {
    match fault {
        Fault::TooLarge => too_large(limit),
        Fault::TooSlow => {
            let message = "The body of the request stopped arriving.";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message)
        }
        Fault::Broken => {
            ApiError::new(StatusCode::BAD_REQUEST, "broken_off", "The body of the request broke off.")
        }
    }
}

fn too_large(limit: u64) -> ApiError {
    let message = format!("The upload is larger than this server allows ({}).", memory::bytes::human(limit));
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

/// A body that is bounded and must go on.
struct Paced {
    body: Incoming,
    limit: u64,
    seen: u64,
    /// Since when `seen_before` is counted.
    pause: Pin<Box<Sleep>>,
    time: Duration,
    seen_before: u64,
}

impl Paced {
    fn new(body: Incoming, limit: u64, time: Duration) -> Self {
        Self { body, limit, seen: 0, pause: Box::pin(tokio::time::sleep(time)), time, seen_before: 0 }
    }

    /// Bytes that the client says it sends.
    fn announced(&self) -> u64 {
        self.body.size_hint().lower()
    }

    async fn drain(mut self) {
        self.limit = DRAINED;
        let _ =
            tokio::time::timeout(DRAIN_TIME, async { while let Some(Ok(_)) = self.frame().await {} }).await;
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            return Poll::Ready(frame.map(|frame| {
                let frame = frame.map_err(|_| Fault::Broken)?;
                self.seen += frame.data_ref().map_or(0, |data| data.len() as u64);
                if self.seen > self.limit { Err(Fault::TooLarge) } else { Ok(frame) }
            }));
        }
        while self.pause.as_mut().poll(context).is_ready() {
            if self.seen - self.seen_before < LEAST {
                return Poll::Ready(Some(Err(Fault::TooSlow)));
            }
            self.seen_before = self.seen;
            self.pause = Box::pin(tokio::time::sleep(self.time));
        }
        Poll::Pending
    }
}

/// A body that is read by others, and then to its end.
#[derive(Clone)]
struct Lent(Arc<Mutex<Paced>>);

impl Lent {
    fn new(body: Paced) -> Self {
        Self(Arc::new(Mutex::new(body)))
    }

    async fn finish(mut self) -> Result<(), Fault> {
        while let Some(frame) = self.frame().await {
            frame?;
        }
        Ok(())
    }
}

impl http_body::Body for Lent {
    type Data = Bytes;
    type Error = Fault;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Fault>>> {
        let mut body = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Pin::new(&mut *body).poll_frame(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_for_reading_only() {
        for (name, expected) in [
            ("talk.mp3", "talk.mp3"),
            ("../../etc/passwd", "passwd"),
            ("C:\\Users\\Ada\\talk.mp3", "talk.mp3"),
            ("/", ""),
            (" a\nb\u{1b}[2J ", "a\u{fffd}b\u{fffd}[2J"),
        ] {
            assert_eq!(printable(name), expected);
        }
        assert_eq!(printable(&"é".repeat(1000)).chars().count(), MAX_NAME);
    }
}
