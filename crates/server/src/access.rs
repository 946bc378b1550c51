//! Who may ask for something: tokens, and what protects a server without them from the pages of a browser.

use std::net::IpAddr;
use std::path::Path;

use hyper::StatusCode;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_REQUEST_HEADERS, AUTHORIZATION, HOST, HeaderMap,
    HeaderValue, ORIGIN, VARY,
};
use wire::{ErrorCode, Failure};

use crate::Options;
use crate::error::ApiError;
use crate::tokens::Tokens;

/// Who asks where no token is needed.
const LOCAL: &str = "";

/// What requests must bring.
#[derive(Debug)]
pub struct Access {
    needs_token: bool,
    tokens: Tokens,
    origins: Vec<HeaderValue>,
}

impl Access {
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let needs_token = options.require_token || !options.listen.ip().is_loopback();
        let tokens = Tokens::of(&options.state);
        if needs_token && !tokens.any()? {
            let message =
                "Other machines can reach this address, or tokens are required, and there is no token.";
            return Err(Failure::new(ErrorCode::BadSettings, message)
                .remedy("Create one: `steno serve --create-token NAME`."));
        }
        let origin = |text: &String| {
            HeaderValue::from_str(text.trim_end_matches('/')).map_err(|_| {
                Failure::new(ErrorCode::BadSettings, format!("{text} is not the origin of a web page."))
                    .remedy("An origin has a scheme and a host, as https://app.example has.")
            })
        };
        let origins = options.origins.iter().map(origin).collect::<Result<_, _>>()?;
        Ok(Self { needs_token, tokens, origins })
    }

    /// The name of the client, for its own list of jobs.
    pub async fn client(&self, headers: &HeaderMap) -> Result<String, ApiError> {
        self.check_origin(headers)?;
        if !self.needs_token {
            check_host(headers)?;
            return Ok(LOCAL.to_owned());
        }
        let refused = || {
            let message = "A valid token is needed: send the header `Authorization: Bearer TOKEN`.";
            ApiError::new(StatusCode::UNAUTHORIZED, "invalid_api_key", message)
        };
        let token = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(bearer);
        let (token, tokens) = (token.ok_or_else(refused)?.to_owned(), self.tokens.clone());
        let client = tokio::task::spawn_blocking(move || tokens.client(&token)).await;
        client.ok().flatten().ok_or_else(refused)
    }

    /// A page sends its origin with every request that could change something. One that was not allowed is refused,
    /// because a browser sends a form to any server without asking.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        match headers.get(ORIGIN) {
            Some(origin) if !self.origins.contains(origin) => {
                let message = "This web page may not use the server. It is allowed with --origin.";
                Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", message))
            }
            _ => Ok(()),
        }
    }

    /// What a browser needs to let the page ask, and read the answer.
    pub fn allow_origin(&self, asked: &HeaderMap, answer: &mut HeaderMap) {
        let Some(origin) = asked.get(ORIGIN).filter(|origin| self.origins.contains(origin)) else { return };
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        answer.insert(VARY, HeaderValue::from_static("origin"));
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST, DELETE"));
        // Clients for browsers send headers of their own.
        if let Some(headers) = asked.get(ACCESS_CONTROL_REQUEST_HEADERS) {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
        }
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("retry-after"));
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// A page whose name was made to mean this machine (DNS rebinding) names itself as the host.
fn check_host(headers: &HeaderMap) -> Result<(), ApiError> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let is_local = name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    if is_local {
        return Ok(());
    }
    let message = "Without a token, the server answers only requests for localhost. A server behind a proxy needs \
                   --require-token.";
    Err(ApiError::new(StatusCode::FORBIDDEN, "host_not_allowed", message))
}

/// A recording that a client names by its path, if it lies in a folder that the server was told to allow. What is said
/// of any other path is the same, whether or not there is such a file.
pub fn allowed_file(allowed: &[std::path::PathBuf], named: &str) -> Result<std::path::PathBuf, ApiError> {
    let refused = || {
        let message = "There is no such file in a folder that the server allows (--allow).";
        let mut error = ApiError::new(StatusCode::FORBIDDEN, "path_not_allowed", message);
        error.body.param = Some("path".into());
        error
    };
    let file = Path::new(named);
    let candidates: Vec<_> = match file.is_absolute() {
        true => vec![file.to_owned()],
        false => allowed.iter().map(|folder| folder.join(file)).collect(),
    };
    let within = |file: &std::path::PathBuf| allowed.iter().any(|folder| file.starts_with(folder));
    let real = candidates.iter().filter_map(|file| file.canonicalize().ok());
    real.filter(within).find(|file| file.is_file()).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_meant_without_a_token() {
        for (host, allowed) in [
            ("localhost:8642", true),
            ("127.0.0.1", true),
            ("127.9.9.9:1", true),
            ("[::1]:8642", true),
            ("LOCALHOST", true),
            ("evil.example:8642", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("192.168.0.7:8642", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static(host))]);
            assert_eq!(check_host(&headers).is_ok(), allowed, "{host}");
        }
        assert!(check_host(&HeaderMap::new()).is_err());
    }

    #[test]
    fn only_files_within_allowed_folders_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["open", "open/inner", "closed"] {
            std::fs::create_dir(root.join(name)).unwrap();
        }
        for name in ["open/a.wav", "open/inner/b.wav", "closed/c.wav", "openly.wav"] {
            std::fs::write(root.join(name), "").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root.join("closed/c.wav"), root.join("open/link.wav")).unwrap();
        let allowed = [root.join("open")];
        let absolute = |name: &str| root.join(name).to_str().unwrap().to_owned();
        for (named, expected) in [
            ("a.wav".into(), Some("open/a.wav")),
            ("inner/b.wav".into(), Some("open/inner/b.wav")),
            (absolute("open/a.wav"), Some("open/a.wav")),
            (absolute("open/inner/../a.wav"), Some("open/a.wav")),
            ("../closed/c.wav".into(), None),
            (absolute("open/../closed/c.wav"), None),
            (absolute("closed/c.wav"), None),
            (absolute("openly.wav"), None),
            ("link.wav".into(), None),
            ("inner".into(), None),
            ("missing.wav".into(), None),
            ("/etc/passwd".into(), None),
            ("a.wav\0".into(), None),
            (String::new(), None),
        ] {
            let found = allowed_file(&allowed, &named);
            assert_eq!(found.as_ref().ok(), expected.map(|name| root.join(name)).as_ref(), "{named}");
        }
    }
}
