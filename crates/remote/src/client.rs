//! The requests, each logged before it is made.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hub::{Connections, Open, Proxying, Purpose, Token};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use reqwest::{Body, Method, Proxy, Request, Response, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use wire::{ErrorCode, Failure};

use crate::form::{Form, Prepared};
use crate::sse::{Events, ServerEvent};
use crate::trouble::Trouble;

const CONNECT: Duration = Duration::from_secs(10);
/// Until an answer's head, and until its body, where that is short.
const ANSWER: Duration = Duration::from_secs(60);
/// An upload of which nothing was taken for so long is broken off; also how long the server may take to store it.
const STANDSTILL: Duration = Duration::from_secs(60);
/// Between two looks at an upload.
const LOOK: Duration = Duration::from_millis(200);
/// The server sends something every 15 s, be it a comment.
const SILENCE: Duration = Duration::from_secs(45);
/// A list of jobs or models, or an error, is shorter.
const SHORT: usize = 16 << 20;

/// Where a `steno serve` is, and what is needed to use it.
#[derive(Debug, Clone)]
pub struct Access {
    /// Such as `http://studio:8642`; `http://` may be left out.
    pub address: String,
    /// `None` where the server needs none.
    pub token: Option<Token>,
    /// Through which proxy.
    pub proxy: Proxying,
    /// The user forbids any use of the network.
    pub offline: bool,
    /// Where every connection is written down.
    pub log: Connections,
}

/// Asks one server. Makes only the requests that the caller asks for.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    url: Url,
    place: String,
    token: Option<Token>,
    log: Connections,
}

#[derive(Debug, Deserialize)]
struct Models {
    data: Vec<Model>,
}

#[derive(Debug, Deserialize)]
struct Model {
    id: String,
}

#[derive(Debug, Deserialize)]
struct Jobs {
    jobs: Vec<Known>,
}

#[derive(Debug, Deserialize)]
struct Known {
    id: String,
    #[serde(default)]
    key: Option<String>,
}

/// The address in full, and nothing behind its port.
///
/// # Errors
/// `BadSettings` for what is no address.
pub fn origin(address: &str) -> Result<Url, Failure> {
    let text = address.trim();
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    // A password in an address would be shown with it.
    let url = url.filter(|url| url.username().is_empty() && url.password().is_none());
    let mut url = url.ok_or_else(|| {
        let message = format!("\"{}\" can't be the address of a machine.", address.trim().escape_debug());
        Failure::new(ErrorCode::BadSettings, message)
            .remedy("Write it as `steno serve` prints it, such as http://studio:8642.")
    })?;
    url.set_path("");
    url.set_query(None);
    url.set_fragment(None);
    Ok(url)
}

/// Host and port, as the user wrote them.
fn place(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

impl Access {
    /// Prepares requests; makes none.
    ///
    /// # Errors
    /// `NetworkOff` where the user forbids the network, `BadSettings` for an address or a proxy that can't be used,
    /// `NetworkFailed` where the system's certificates can't be read.
    pub fn client(&self) -> Result<Client, Failure> {
        let url = origin(&self.address)?;
        let place = place(&url);
        if self.offline {
            let message = format!("The network is switched off, so {place} can't be used.");
            return Err(Failure::new(ErrorCode::NetworkOff, message)
                .remedy("Unset STENO_OFFLINE, and network.off in the config file."));
        }
        // Fails where the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("steno/", env!("CARGO_PKG_VERSION")))
            // A token is for one machine alone.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT);
        builder = match &self.proxy {
            _ if hub::is_this_machine(&url) => builder.no_proxy(),
            Proxying::AsEnvironment => builder,
            Proxying::Never => builder.no_proxy(),
            Proxying::Through(address) => builder.proxy(Proxy::all(address).map_err(|error| {
                Failure::new(ErrorCode::BadSettings, format!("The proxy {address} can't be used ({error})."))
                    .remedy("Write it as http://HOST:PORT.")
            })?),
        };
        let http = builder.build().map_err(|error| {
            Failure::new(ErrorCode::NetworkFailed, format!("TLS can't be used ({}).", cause(&error)))
                .remedy("Install your system's CA certificates.")
        })?;
        Ok(Client { http, url, place, token: self.token.clone(), log: self.log.clone() })
    }
}

impl Client {
    /// Host and port, for the user.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// The names of the models that the server has. It needs the same token as everything else, so that it is also the
    /// test of a connection.
    ///
    /// # Errors
    /// Where the server can't be reached, refuses the token or is something else.
    pub async fn models(&self) -> Result<Vec<String>, Trouble> {
        let models: Models = self.json("v1/models").await?;
        Ok(models.data.into_iter().map(|model| model.id).collect())
    }

    /// The id of the job with this key, if the server has it.
    ///
    /// # Errors
    /// As [`Client::models`].
    pub async fn find(&self, key: &str) -> Result<Option<String>, Trouble> {
        let jobs: Jobs = self.json("jobs").await?;
        Ok(jobs.jobs.into_iter().find(|job| job.key.as_deref() == Some(key)).map(|job| job.id))
    }

    /// Uploads a recording, and returns the id of its job once the server has it on its disk. `sent` hears how much of it
    /// was sent, from 0 to 1.
    ///
    /// # Errors
    /// As [`Client::models`], and where the recording can't be read or the server refuses it.
    pub(crate) async fn add(
        &self,
        file: &Path,
        fields: Vec<(&'static str, String)>,
        key: &str,
        mut sent: impl FnMut(f64),
    ) -> Result<String, Trouble> {
        let (path, boundary) = (file.to_owned(), format!("steno-{key}"));
        let prepared = tokio::task::spawn_blocking(move || Form::prepare(&fields, &path, &boundary)).await;
        let internal = |_| Failure::new(ErrorCode::Internal, "The recording could not be opened.");
        let prepared = prepared.map_err(internal).flatten().map_err(Trouble::lasting)?;
        let Prepared { body, kind, bytes, sent: count } = prepared;
        let mut request = self.request(Method::POST, "jobs")?;
        let headers = request.headers_mut();
        if let (Ok(kind), Ok(key)) = (HeaderValue::from_str(&kind), HeaderValue::from_str(key)) {
            headers.insert(CONTENT_TYPE, kind);
            headers.insert("idempotency-key", key);
        }
        *request.body_mut() = Some(Body::wrap(body));
        let (open, answer) = (self.open()?, self.http.execute(request));
        let mut answer = std::pin::pin!(answer);
        let mut seen = (0, tokio::time::Instant::now());
        let response = loop {
            tokio::select! {
                response = answer.as_mut() => break response.map_err(|error| self.lost(&error))?,
                () = tokio::time::sleep(LOOK) => {}
            }
            let now = count.load(Ordering::Relaxed);
            if now != seen.0 {
                seen = (now, tokio::time::Instant::now());
                sent(now as f64 / bytes.max(1) as f64);
            } else if seen.1.elapsed() > STANDSTILL {
                return Err(Trouble::lost(&self.place, "the upload stands still"));
            }
        };
        let known: Known = self.read(response, open).await?;
        Ok(known.id)
    }

    /// The events of a job, from its beginning. `None`: the server has no such job.
    ///
    /// # Errors
    /// As [`Client::models`].
    pub(crate) async fn follow(&self, id: &str) -> Result<Option<Following>, Trouble> {
        let request = self.request(Method::GET, &format!("jobs/{id}/events"))?;
        let (response, open) = self.send(request).await?;
        if response.status() == reqwest::StatusCode::NOT_FOUND {
            return Ok(None);
        }
        if !response.status().is_success() {
            return Err(self.refused(response, open).await);
        }
        Ok(Some(Following { response, open, events: Events::default(), place: self.place.clone() }))
    }

    /// Removes a job with its text; one that the server does not have is removed.
    ///
    /// # Errors
    /// As [`Client::models`].
    pub async fn remove(&self, id: &str) -> Result<(), Trouble> {
        let request = self.request(Method::DELETE, &format!("jobs/{id}"))?;
        let (response, open) = self.send(request).await?;
        match response.status() {
            status if status.is_success() || status == reqwest::StatusCode::NOT_FOUND => Ok(()),
            _ => Err(self.refused(response, open).await),
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<Request, Trouble> {
        let url = self.url.join(path).map_err(|_| Trouble::stranger(&self.place))?;
        let mut request = Request::new(method, url);
        if let Some(token) = &self.token
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.secret()))
        {
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        Ok(request)
    }

    /// Writes down that a connection begins.
    fn open(&self) -> Result<Open, Trouble> {
        self.log.begin(&self.place, &Purpose::OtherMachine).map_err(|error| {
            let message = format!("The log of connections can't be written ({error}).");
            Trouble::lasting(Failure::new(ErrorCode::OutputUnwritable, message))
        })
    }

    async fn send(&self, request: Request) -> Result<(Response, Open), Trouble> {
        let open = self.open()?;
        let response = timeout(ANSWER, self.http.execute(request)).await;
        let response = response.map_err(|_| Trouble::lost(&self.place, "it does not answer"))?;
        Ok((response.map_err(|error| self.lost(&error))?, open))
    }

    async fn json<T: DeserializeOwned>(&self, path: &str) -> Result<T, Trouble> {
        let (response, open) = self.send(self.request(Method::GET, path)?).await?;
        self.read(response, open).await
    }

    async fn read<T: DeserializeOwned>(&self, response: Response, open: Open) -> Result<T, Trouble> {
        if !response.status().is_success() {
            return Err(self.refused(response, open).await);
        }
        let body = self.body(response, open).await?;
        serde_json::from_slice(&body).map_err(|_| Trouble::stranger(&self.place))
    }

    async fn body(&self, mut response: Response, mut open: Open) -> Result<Vec<u8>, Trouble> {
        let mut body = Vec::new();
        let whole = async {
            while let Some(piece) = response.chunk().await.map_err(|error| self.lost(&error))? {
                open.bytes += piece.len() as u64;
                body.extend_from_slice(&piece);
                if body.len() > SHORT {
                    return Err(Trouble::stranger(&self.place));
                }
            }
            Ok(())
        };
        timeout(ANSWER, whole).await.map_err(|_| Trouble::lost(&self.place, "its answer stopped"))??;
        Ok(body)
    }

    async fn refused(&self, response: Response, open: Open) -> Trouble {
        let status = response.status();
        let wait =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        match self.body(response, open).await {
            Ok(body) => Trouble::of_answer(&self.place, status, wait.map(Duration::from_secs), &body),
            Err(trouble) => trouble,
        }
    }

    fn lost(&self, error: &reqwest::Error) -> Trouble {
        Trouble::lost(&self.place, &cause(error))
    }
}

/// The events of a job, as they come.
#[derive(Debug)]
pub struct Following {
    response: Response,
    open: Open,
    events: Events,
    place: String,
}

impl Following {
    /// The next event; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<ServerEvent>, Trouble> {
        loop {
            if let Some(event) = self.events.next() {
                return Ok(Some(event));
            }
            let piece = timeout(SILENCE, self.response.chunk()).await;
            let piece = piece.map_err(|_| Trouble::lost(&self.place, "it sends nothing"))?;
            let Some(piece) = piece.map_err(|error| Trouble::lost(&self.place, &cause(&error)))? else {
                return Ok(None);
            };
            self.open.bytes += piece.len() as u64;
            if !self.events.push(&piece) {
                return Err(Trouble::stranger(&self.place));
            }
        }
    }
}

/// The innermost cause is the one that says something.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(address: &str) -> Access {
        let (token, log) = (Token::new("steno-secret"), Connections::nowhere());
        Access { address: address.into(), token, proxy: Proxying::Never, offline: false, log }
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (address, expected) in [
            ("http://studio:8642", Some("studio:8642")),
            (" studio:8642 ", Some("studio:8642")),
            ("https://studio.example/", Some("studio.example")),
            ("http://[::1]:8642/v1", Some("[::1]:8642")),
            ("192.168.0.7:8642", Some("192.168.0.7:8642")),
            ("", None),
            ("ftp://studio", None),
            ("http://ada:secret@studio:8642", None),
        ] {
            let client = access(address).client();
            assert_eq!(client.as_ref().ok().map(Client::place), expected, "{address}");
        }
    }

    #[test]
    fn offline_nothing_is_asked_and_the_token_is_never_shown() {
        let offline = Access { offline: true, ..access("studio:8642") };
        assert_eq!(offline.client().unwrap_err().code, ErrorCode::NetworkOff);
        let client = access("studio:8642").client().unwrap();
        let request = client.request(Method::GET, "jobs").unwrap();
        assert!(!format!("{offline:?} {client:?} {request:?}").contains("secret"));
        assert!(request.headers().contains_key(AUTHORIZATION));
    }
}
