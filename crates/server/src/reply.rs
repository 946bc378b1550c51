//! What answers are made of.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde::Serialize;
use tokio::sync::mpsc;

/// The body of any answer.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// An answer.
pub type Reply = Response<Body>;

pub const JSON: &str = "application/json";

/// An answer of this type. What is said in recordings is for the client alone: nothing is cached.
pub fn reply(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Reply {
    let mut response = Response::new(Full::new(body.into()).boxed_unsync());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

/// An answer in JSON.
pub fn json(status: StatusCode, value: &impl Serialize) -> Reply {
    match serde_json::to_vec(value) {
        Ok(body) => reply(status, JSON, body),
        Err(_) => reply(StatusCode::INTERNAL_SERVER_ERROR, JSON, "{}"),
    }
}

/// An answer without a body.
pub fn empty(status: StatusCode) -> Reply {
    let mut response = Response::new(Full::default().boxed_unsync());
    *response.status_mut() = status;
    response
}

/// Server-sent events, as they are put into the channel.
pub fn events(pieces: mpsc::Receiver<Bytes>) -> Reply {
    let mut response = reply(StatusCode::OK, "text/event-stream", "");
    *response.body_mut() = Pieces(pieces).boxed_unsync();
    // nginx, as a proxy, would keep events back until it has a page of them.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

struct Pieces(mpsc::Receiver<Bytes>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
