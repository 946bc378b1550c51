//! A line per request: when it was answered, for whom, what, with which status, how much and how long. Nothing of what was
//! sent or said, and no name of a recording, is in it.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use hyper::Method;
use wire::{ErrorCode, Failure};

use crate::reply::{Body, Reply};

/// The file, or none.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Option<Arc<Mutex<File>>>);

/// A request that is being answered: its line is written when this is dropped, with its answer.
#[derive(Debug)]
pub struct Line {
    log: RequestLog,
    method: Method,
    path: String,
    begun: Instant,
    client: Option<String>,
    status: u16,
    bytes: u64,
}

impl RequestLog {
    /// Appends to the file, which is made where it is not there, for this user alone.
    pub fn open(file: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = file else { return Ok(Self::default()) };
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = options.open(path).map_err(|error| {
            Failure::new(
                ErrorCode::OutputUnwritable,
                format!("The log of requests can't be written ({error})."),
            )
            .file(path)
            .remedy("Name another file with --request-log.")
        })?;
        Ok(Self(Some(Arc::new(Mutex::new(opened)))))
    }

    /// `path`: that of an endpoint; what else is asked for may have anything in it, and is not logged.
    pub fn begin(&self, method: &Method, path: Option<&str>) -> Line {
        let (method, path) = (method.clone(), path.unwrap_or("?").to_owned());
        Line { log: self.clone(), method, path, begun: Instant::now(), client: None, status: 0, bytes: 0 }
    }
}

impl Line {
    /// The name of the token that it came with.
    pub fn client(&mut self, name: &str) {
        self.client = Some(name.to_owned()).filter(|name| !name.is_empty());
    }

    /// The request is over with the last byte of its answer.
    pub fn until_the_end_of(mut self, answer: Reply) -> Reply {
        self.status = answer.status().as_u16();
        answer.map(|body| LoggedBody { body, line: self }.boxed_unsync())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let Some(file) = &self.log.0 else { return };
        let now = jiff::Timestamp::now().round(jiff::Unit::Second).unwrap_or_default();
        let client = self.client.as_deref().unwrap_or("-");
        let Self { method, path, status, bytes, .. } = self;
        let seconds = self.begun.elapsed().as_secs_f64();
        let line = format!("{now} {client} {method} {path} {status} {bytes} {seconds:.3}\n");
        // A full disk is no reason to answer nobody.
        let _ = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(line.as_bytes());
    }
}

struct LoggedBody {
    body: Body,
    line: Line,
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = Pin::new(&mut self.body).poll_frame(context);
        if let Poll::Ready(Some(Ok(frame))) = &frame {
            self.line.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
