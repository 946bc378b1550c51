//! From a request to its answer. Every endpoint is listed in [`route`].

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, HeaderValue, ORIGIN};
use hyper::{Method, Request, StatusCode};
use transcript::Task;

use crate::error::ApiError;
use crate::reply::{JSON, Reply, empty, json, reply};
use crate::{App, api, document, form, openai};

/// The version of Prometheus' text format.
const PROMETHEUS: &str = "text/plain; version=0.0.4";

/// What a request asks for.
#[derive(Debug, PartialEq)]
enum Endpoint {
    Health,
    Metrics,
    OpenApi,
    Speech(Task),
    Models,
    Model(String),
    AddJob,
    Jobs,
    Job(String),
    RemoveJob(String),
    Events(String),
    Transcript(String),
}

/// The endpoint, or the methods that the path has.
fn route(method: &Method, path: &str) -> Result<Endpoint, Option<&'static str>> {
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let is = |wanted: Method| *method == wanted || wanted == Method::GET && *method == Method::HEAD;
    let (endpoint, methods) = match parts[..] {
        ["healthz"] => (is(Method::GET).then_some(Endpoint::Health), "GET"),
        ["metrics"] => (is(Method::GET).then_some(Endpoint::Metrics), "GET"),
        ["openapi.json"] => (is(Method::GET).then_some(Endpoint::OpenApi), "GET"),
        ["v1", "audio", "transcriptions"] => {
            (is(Method::POST).then_some(Endpoint::Speech(Task::Transcribe)), "POST")
        }
        ["v1", "audio", "translations"] => {
            (is(Method::POST).then_some(Endpoint::Speech(Task::Translate)), "POST")
        }
        ["v1", "models"] => (is(Method::GET).then_some(Endpoint::Models), "GET"),
        ["v1", "models", id] => (is(Method::GET).then(|| Endpoint::Model(id.into())), "GET"),
        ["jobs"] if is(Method::POST) => (Some(Endpoint::AddJob), "GET, POST"),
        ["jobs"] => (is(Method::GET).then_some(Endpoint::Jobs), "GET, POST"),
        ["jobs", id] if is(Method::DELETE) => (Some(Endpoint::RemoveJob(id.into())), "GET, DELETE"),
        ["jobs", id] => (is(Method::GET).then(|| Endpoint::Job(id.into())), "GET, DELETE"),
        ["jobs", id, "events"] => (is(Method::GET).then(|| Endpoint::Events(id.into())), "GET"),
        ["jobs", id, "transcript"] => (is(Method::GET).then(|| Endpoint::Transcript(id.into())), "GET"),
        _ => return Err(None),
    };
    endpoint.ok_or(Some(methods))
}

/// Answers any request.
pub async fn answer(app: Arc<App>, request: Request<Incoming>) -> Reply {
    let headers = request.headers().clone();
    let path = route(request.method(), request.uri().path()).is_ok().then(|| request.uri().path());
    let mut line = app.log.begin(request.method(), path);
    let mut answer = match find(&app, &request).await {
        Ok(Found::Answer(answer)) => answer,
        Ok(Found::Endpoint(endpoint, client)) => {
            line.client(&client);
            match call(&app, endpoint, client, request).await {
                Ok(answer) => answer,
                Err(error) => refuse(&app, error),
            }
        }
        Err(error) => {
            form::drain(&app, request).await;
            refuse(&app, error)
        }
    };
    app.access.allow_origin(&headers, answer.headers_mut());
    line.until_the_end_of(answer)
}

enum Found {
    Answer(Reply),
    /// With the client that asks.
    Endpoint(Endpoint, String),
}

/// What needs no body.
async fn find(app: &App, request: &Request<Incoming>) -> Result<Found, ApiError> {
    let (method, path) = (request.method(), request.uri().path());
    let endpoint = route(method, path);
    if endpoint == Ok(Endpoint::Health) {
        return Ok(Found::Answer(health()));
    }
    // A browser asks without the token whether the page may use it.
    if *method == Method::OPTIONS && request.headers().contains_key(ORIGIN) {
        return Ok(Found::Answer(empty(StatusCode::NO_CONTENT)));
    }
    let client = app.access.client(request.headers()).await?;
    match endpoint {
        Ok(endpoint) => Ok(Found::Endpoint(endpoint, client)),
        Err(None) => Err(ApiError::not_found("endpoint")),
        Err(Some(methods)) => {
            let message = format!("This endpoint has the methods {methods}.");
            let mut answer =
                ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message).reply();
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
            Ok(Found::Answer(answer))
        }
    }
}

async fn call(
    app: &Arc<App>,
    endpoint: Endpoint,
    client: String,
    request: Request<Incoming>,
) -> Result<Reply, ApiError> {
    match endpoint {
        Endpoint::Health => Ok(health()),
        Endpoint::Metrics => Ok(metrics(app)),
        Endpoint::OpenApi => Ok(json(StatusCode::OK, &document::document())),
        Endpoint::Speech(task) => openai::speech(app, client, task, request).await,
        Endpoint::Models => openai::models(app).await,
        Endpoint::Model(id) => openai::model(app, id).await,
        Endpoint::AddJob => api::add(app, client, request).await,
        Endpoint::Jobs => Ok(api::list(app, &client)),
        Endpoint::Job(id) => api::one(app, &client, &id),
        Endpoint::RemoveJob(id) => api::remove(app, &client, &id).await,
        Endpoint::Events(id) => api::events(app, client, id).await,
        Endpoint::Transcript(id) => api::transcript(app, client, id, request.uri().query()).await,
    }
}

fn refuse(app: &App, error: ApiError) -> Reply {
    app.metrics.refused(error.body.code.as_deref().unwrap_or_default());
    let mut answer = error.reply();
    // What is left of the body is not read.
    if matches!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}

/// Whether the server answers.
#[utoipa::path(get, path = "/healthz", responses((status = 200, description = "The server answers.")))]
fn health() -> Reply {
    reply(StatusCode::OK, JSON, r#"{"status":"ok"}"#)
}

/// Figures for Prometheus.
#[utoipa::path(get, path = "/metrics", responses((status = 200, description = "Figures in Prometheus' text format.", content_type = "text/plain", body = String)))]
fn metrics(app: &App) -> Reply {
    reply(StatusCode::OK, PROMETHEUS, app.metrics.text(app.jobs.gauges()))
}

/// A part of a path or query without its escapes.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, hex.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The parameters of a query.
pub fn query(text: Option<&str>) -> Vec<(String, String)> {
    let pairs = text.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(&name.replace('+', " ")), decoded(&value.replace('+', " ")))
    };
    pairs.map(split).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_endpoint_is_answered_and_the_other_way_round() {
        let document = serde_json::to_value(document::document()).unwrap();
        let paths = document["paths"].as_object().unwrap();
        let mut count = 0;
        for (path, methods) in paths {
            for method in methods.as_object().unwrap().keys() {
                let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
                let found = route(&method, &path.replace("{id}", "x"));
                assert!(found.is_ok(), "{method} {path}: {found:?}");
                count += 1;
            }
        }
        // One per variant of `Endpoint`, of which one has two tasks.
        assert_eq!(count, 13);
    }

    #[test]
    fn a_path_has_its_methods() {
        for (method, path, expected) in [
            (Method::GET, "/v1/models/a%20b", Ok(Endpoint::Model("a b".into()))),
            (Method::HEAD, "/jobs", Ok(Endpoint::Jobs)),
            (Method::DELETE, "/jobs/a", Ok(Endpoint::RemoveJob("a".into()))),
            (Method::PUT, "/jobs/a", Err(Some("GET, DELETE"))),
            (Method::GET, "/v1/audio/transcriptions", Err(Some("POST"))),
            (Method::GET, "/", Err(None)),
            (Method::GET, "/jobs/a/b", Err(None)),
        ] {
            assert_eq!(route(&method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn queries_are_read() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            query(Some("format=srt&a=%C3%A9+b&c")),
            [pair("format", "srt"), pair("a", "é b"), pair("c", "")]
        );
        assert_eq!(query(Some("a=%&b=%4")), [pair("a", "%"), pair("b", "%4")]);
        assert!(query(None).is_empty());
    }
}
