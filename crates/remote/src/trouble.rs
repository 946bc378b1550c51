//! Why a request came to nothing, and whether another one may help.

use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use wire::{ErrorCode, Failure};

/// Why a request came to nothing.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// For the user.
    pub failure: Failure,
    /// It may pass: the request is worth another try.
    pub passes: bool,
    /// Where the server says when to try again.
    pub wait: Option<Duration>,
}

/// The server's shape of every error.
#[derive(Debug, Default, Deserialize)]
struct ErrorReply {
    error: ErrorBody,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct ErrorBody {
    pub message: String,
    pub code: Option<String>,
}

impl Trouble {
    pub(crate) fn lasting(failure: Failure) -> Self {
        Self { failure, passes: false, wait: None }
    }

    /// The machine, or the way to it, is gone for now.
    pub(crate) fn lost(place: &str, why: &str) -> Self {
        let message = format!("{place} can't be reached ({why}).");
        let failure = Failure::new(ErrorCode::NetworkFailed, message)
            .remedy("Check that the machine is on and that `steno serve` runs there.");
        Self { failure, passes: true, wait: None }
    }

    /// Something answers that is no `steno serve`.
    pub(crate) fn stranger(place: &str) -> Self {
        let message = format!("What answers at {place} is not `steno serve`.");
        Self::lasting(
            Failure::new(ErrorCode::NetworkFailed, message)
                .remedy("Check the address: `steno serve` prints it when it starts."),
        )
    }

    /// What an answer means that is an error.
    pub(crate) fn of_answer(place: &str, status: StatusCode, wait: Option<Duration>, body: &[u8]) -> Self {
        let Ok(ErrorReply { error }) = serde_json::from_slice(body) else {
            return match status {
                // Of a proxy, or of a server with too many connections.
                status if status.is_server_error() => {
                    Self { wait, ..Self::lost(place, &format!("status {}", status.as_u16())) }
                }
                _ => Self::stranger(place),
            };
        };
        let ErrorBody { message, code } = error;
        let code = code.unwrap_or_default();
        let said = |code: ErrorCode, remedy: &str| {
            Failure::new(code, format!("{place}: {message}")).remedy(remedy.to_owned())
        };
        match (status, code.as_str()) {
            (StatusCode::UNAUTHORIZED, _) | (StatusCode::FORBIDDEN, "host_not_allowed") => {
                Self::lasting(said(
                    ErrorCode::ServerRefused,
                    "Enter a token of that machine: `steno serve --create-token NAME` prints one there.",
                ))
            }
            (StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE, _) => Self {
                failure: said(ErrorCode::ServerBusy, "Steno tries again by itself."),
                passes: true,
                wait,
            },
            (_, "too_large" | "recording_too_long") => Self::lasting(said(
                ErrorCode::RecordingRefused,
                "Allow more with the options of `steno serve`, or transcribe it on this computer.",
            )),
            (StatusCode::NOT_FOUND, "model_not_found") => Self::lasting(said(
                ErrorCode::ModelNotFound,
                "Choose another model of that machine in the settings, or install this one there.",
            )),
            // The body of the request did not arrive as it should: the connection is bad.
            (_, "too_slow" | "broken_off") => Self { wait, ..Self::lost(place, &message) },
            (status, _) if status == StatusCode::SERVICE_UNAVAILABLE => {
                Self { wait, ..Self::lost(place, &message) }
            }
            (_, code) => {
                let code = ErrorCode::from_name(code).unwrap_or(if status.is_server_error() {
                    ErrorCode::EngineFailed
                } else {
                    ErrorCode::BadSettings
                });
                Self::lasting(Failure::new(code, format!("{place}: {message}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_has_its_meaning() {
        let error =
            |code: &str| format!(r#"{{"error":{{"message":"So.","type":"","param":null,"code":"{code}"}}}}"#);
        for (status, body, code, passes) in [
            (401, error("invalid_api_key"), ErrorCode::ServerRefused, false),
            (403, error("host_not_allowed"), ErrorCode::ServerRefused, false),
            (429, error("queue_full"), ErrorCode::ServerBusy, true),
            (507, error("storage"), ErrorCode::ServerBusy, true),
            (413, error("too_large"), ErrorCode::RecordingRefused, false),
            (400, error("recording_too_long"), ErrorCode::RecordingRefused, false),
            (404, error("model_not_found"), ErrorCode::ModelNotFound, false),
            (503, error("stopping"), ErrorCode::NetworkFailed, true),
            (408, error("too_slow"), ErrorCode::NetworkFailed, true),
            (400, error("language_unknown"), ErrorCode::LanguageUnknown, false),
            (400, error("invalid_value"), ErrorCode::BadSettings, false),
            (502, "<html>".into(), ErrorCode::NetworkFailed, true),
            (404, "<html>".into(), ErrorCode::NetworkFailed, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let trouble = Trouble::of_answer("studio:8642", status, None, body.as_bytes());
            assert_eq!((trouble.failure.code, trouble.passes), (code, passes), "{status} {body}");
            assert!(trouble.failure.message.contains("studio:8642"), "{}", trouble.failure.message);
        }
    }
}
