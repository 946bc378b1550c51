//! The one shape of every error: OpenAI's.

use hyper::StatusCode;
use hyper::header::{HeaderValue, RETRY_AFTER};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wire::{ErrorCode, Failure};

use crate::reply::{Reply, json};
use crate::scrub::without_paths;

/// Why a request was refused or a job failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorBody {
    /// One or two sentences: what happened, and what to do.
    pub message: String,
    /// `invalid_request_error` where the request is at fault, else `server_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The parameter that is at fault.
    pub param: Option<String>,
    /// What programs branch on.
    pub code: Option<String>,
}

/// The body of every answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorReply {
    /// What happened.
    pub error: ErrorBody,
}

/// An error as it is answered.
#[derive(Debug, Clone)]
pub struct ApiError {
    pub status: StatusCode,
    pub body: ErrorBody,
    /// Seconds after which it may be tried again.
    retry_after: Option<u64>,
}

pub const BAD_REQUEST: &str = "invalid_request_error";
const SERVER_ERROR: &str = "server_error";

impl ApiError {
    pub fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        let kind = if status.is_server_error() { SERVER_ERROR } else { BAD_REQUEST };
        let (message, kind) = (message.into(), kind.to_owned());
        let body = ErrorBody { message, kind, param: None, code: Some(code.to_owned()) };
        Self { status, body, retry_after: None }
    }

    /// A parameter has a value that can't be used.
    pub fn parameter(name: &str, message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::BAD_REQUEST, "invalid_value", message);
        error.body.param = Some(name.to_owned());
        error
    }

    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("There is no such {what}."))
    }

    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The server is being stopped; what was accepted goes on at its next start.
    pub fn stopping() -> Self {
        let message = "The server is being stopped. Jobs that it has accepted go on at its next start.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", message).after(5)
    }

    /// The state folder or the journal can't be written.
    pub fn storage(error: &dyn std::fmt::Display) -> Self {
        let message = format!("The server can't store the recording ({error}). Try again later.");
        Self::new(StatusCode::INSUFFICIENT_STORAGE, "storage", without_paths(&message))
    }

    /// The answer where a job failed with this.
    pub fn of_job(body: ErrorBody) -> Self {
        let is_fault_of_request = body.kind == BAD_REQUEST;
        let status =
            if is_fault_of_request { StatusCode::BAD_REQUEST } else { StatusCode::INTERNAL_SERVER_ERROR };
        Self { status, body, retry_after: None }
    }

    pub fn reply(self) -> Reply {
        let mut response = json(self.status, &ErrorReply { error: self.body });
        let headers = response.headers_mut();
        match self.retry_after {
            Some(seconds) => {
                headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
            }
            // The official clients repeat a request after any other error of the server: the job would fail again.
            None => {
                headers.insert("x-should-retry", HeaderValue::from_static("false"));
            }
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(hyper::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl ErrorBody {
    /// Why a job failed, without the paths of this machine.
    pub fn of(failure: &Failure) -> Self {
        let remedy = failure.remedy.as_ref().map(|remedy| format!(" {remedy}")).unwrap_or_default();
        let code = serde_json::to_value(failure.code).unwrap_or_default();
        let kind = if is_fault_of_request(failure.code) { BAD_REQUEST } else { SERVER_ERROR };
        Self {
            message: without_paths(&format!("{}{remedy}", failure.message)),
            kind: kind.to_owned(),
            param: None,
            code: code.as_str().map(str::to_owned),
        }
    }
}

impl From<Failure> for ApiError {
    fn from(failure: Failure) -> Self {
        Self::of_job(ErrorBody::of(&failure))
    }
}

fn is_fault_of_request(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::FileNotFound
            | ErrorCode::FileUnreadable
            | ErrorCode::NotAFile
            | ErrorCode::FileEmpty
            | ErrorCode::FileIncomplete
            | ErrorCode::NoAudioTrack
            | ErrorCode::NoSuchTrack
            | ErrorCode::UnknownFormat
            | ErrorCode::UnsupportedCodec
            | ErrorCode::NeedsFfmpeg
            | ErrorCode::AudioBroken
            | ErrorCode::LanguageUnknown
            | ErrorCode::RecordingRefused
            | ErrorCode::BadSettings
    )
}
