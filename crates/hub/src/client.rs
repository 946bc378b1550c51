use std::time::Duration;

use reqwest::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, ETAG, HeaderMap, HeaderName, HeaderValue,
};
use reqwest::{Method, Proxy, Response, StatusCode, Url};

use crate::connections::{Connections, Open, Purpose};
use crate::digest::Digest;
use crate::retry::Trouble;
use crate::settings::{HubSettings, Proxying};
use crate::{Error, redirects};

/// On the hub's first answer for a large file, the redirect itself.
const LINKED_SIZE: HeaderName = HeaderName::from_static("x-linked-size");
const LINKED_ETAG: HeaderName = HeaderName::from_static("x-linked-etag");
const COMMIT: HeaderName = HeaderName::from_static("x-repo-commit");

/// Speaks HTTP to the hub and to the hosts that it redirects to. Makes only the
/// requests that the caller asks for: retries are decided by the caller.
#[derive(Debug)]
pub(crate) struct Client {
    http: reqwest::Client,
    pub settings: HubSettings,
    log: Connections,
}

/// What a server says of a file without sending it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub size: Option<u64>,
    pub digest: Option<Digest>,
    pub commit: Option<String>,
}

/// An answer whose headers are here; the body is still to come.
#[derive(Debug)]
pub(crate) struct Reply {
    response: Response,
    open: Open,
    pub url: Url,
}

impl Client {
    pub fn new(settings: HubSettings, log: Connections) -> Result<Self, Error> {
        // Fails where the process has a provider already, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("steno/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(settings.limits.connect);
        builder = match &settings.proxy {
            Proxying::AsEnvironment => builder,
            Proxying::Never => builder.no_proxy(),
            Proxying::Through(address) => {
                builder.proxy(Proxy::all(address).map_err(|error| Error::Invalid {
                    path: address.into(),
                    problem: format!("it is not a valid proxy address ({error})"),
                    remedy: "Write it as http://HOST:PORT.".into(),
                })?)
            }
        };
        let http = builder.build().map_err(|error| Error::NoCertificates { problem: causes(&error) })?;
        Ok(Self { http, settings, log })
    }

    /// Size, digest and commit of a file, from the first answer that has them.
    pub async fn look(&self, url: &Url, why: &Purpose) -> Result<Remote, Trouble> {
        let mut url = url.clone();
        let mut commit = None;
        for _ in 0..redirects::MOST {
            let reply = self.send(Method::HEAD, &url, HeaderMap::new(), why).await?;
            let is_described = reply.response.headers().contains_key(LINKED_ETAG);
            commit = commit.or_else(|| reply.header(COMMIT).map(str::to_owned));
            match redirects::target(&reply.response, &url, &self.settings)? {
                // Small files may lie behind a redirect within the hub.
                Some(next) if !is_described => url = next,
                _ => return Ok(Remote::of(&reply, commit, &self.settings)),
            }
        }
        Err(redirects::too_many(&url).into())
    }

    /// The answer with the content itself, wherever it lies.
    pub async fn get(&self, url: &Url, headers: HeaderMap, why: &Purpose) -> Result<Reply, Trouble> {
        let mut url = url.clone();
        for _ in 0..redirects::MOST {
            let reply = self.send(Method::GET, &url, headers.clone(), why).await?;
            match redirects::target(&reply.response, &url, &self.settings)? {
                Some(next) => url = next,
                None => return Ok(reply),
            }
        }
        Err(redirects::too_many(&url).into())
    }

    /// One request. Answers that are errors are errors here.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        mut headers: HeaderMap,
        why: &Purpose,
    ) -> Result<Reply, Trouble> {
        let host = url.host_str().unwrap_or_default().to_owned();
        if self.settings.offline {
            return Err(Error::NetworkOff { host }.into());
        }
        // Sizes and positions are those of the file, not of an archive of it.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if let Some(token) = self.settings.token_for(url)
            && let Ok(mut value) = HeaderValue::from_str(&format!("Bearer {}", token.secret()))
        {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let had_token = headers.contains_key(AUTHORIZATION);
        let open = self.log.begin(&host, why)?;
        let request = self.http.request(method, url.clone()).headers(headers).send();
        let response = match tokio::time::timeout(self.settings.limits.answer, request).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(Trouble::passing(unreachable(&host, &error))),
            Err(_) => {
                let window = self.settings.limits.answer;
                return Err(Trouble::passing(Error::TooSlow { host, window }));
            }
        };
        let status = response.status();
        let is_fine = status.is_success() || status.is_redirection();
        if is_fine || status == StatusCode::RANGE_NOT_SATISFIABLE {
            return Ok(Reply { response, open, url: url.clone() });
        }
        let wait = retry_after(response.headers());
        Err(refusal(url, &self.settings, status, wait, had_token))
    }
}

impl Reply {
    pub fn status(&self) -> StatusCode {
        self.response.status()
    }

    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.response.headers().get(name)?.to_str().ok()
    }

    /// The next piece of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Trouble> {
        let host = self.url.host_str().unwrap_or_default();
        let chunk = self.response.chunk().await;
        let chunk = chunk.map_err(|error| Trouble::passing(unreachable(host, &error)))?;
        if let Some(chunk) = &chunk {
            self.open.bytes += chunk.len() as u64;
        }
        Ok(chunk.map(Vec::from))
    }

    /// A short body as a whole; fails where it has more than `most` bytes.
    pub async fn text(mut self, most: usize, limit: Duration) -> Result<Vec<u8>, Trouble> {
        let host = self.url.host_str().unwrap_or_default().to_owned();
        let too_slow = || Trouble::passing(Error::TooSlow { host: host.clone(), window: limit });
        let whole = async {
            let mut text = Vec::new();
            while let Some(chunk) = self.chunk().await? {
                text.extend(chunk);
                if text.len() > most {
                    let problem = "its answer is longer than any real one".to_owned();
                    return Err(Error::Unreachable { host: host.clone(), problem }.into());
                }
            }
            Ok(text)
        };
        tokio::time::timeout(limit, whole).await.map_err(|_| too_slow())?
    }
}

impl Remote {
    fn of(reply: &Reply, commit: Option<String>, settings: &HubSettings) -> Self {
        let linked = reply.header(LINKED_ETAG);
        let size = reply.header(if linked.is_some() { LINKED_SIZE } else { CONTENT_LENGTH });
        // Elsewhere than on the hub a tag of that form may mean anything.
        let is_hub = reply.url.origin() == settings.endpoint.origin() && commit.is_some();
        let etag = linked.or_else(|| reply.header(ETAG).filter(|_| is_hub));
        Self { size: size.and_then(|text| text.parse().ok()), digest: etag.and_then(Digest::of_etag), commit }
    }
}

/// What an answer that is an error means, and whether another try may help.
fn refusal(
    url: &Url,
    settings: &HubSettings,
    status: StatusCode,
    wait: Option<Duration>,
    had_token: bool,
) -> Trouble {
    let host = url.host_str().unwrap_or_default().to_owned();
    let what = url.path().trim_start_matches('/').to_owned();
    let is_endpoint = url.origin() == settings.endpoint.origin();
    match status {
        // Elsewhere an address is made for a while, and gets stale.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN if is_endpoint => {
            Error::Refused { what, host, had_token }.into()
        }
        StatusCode::NOT_FOUND | StatusCode::GONE => Error::NotThere { what, host }.into(),
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS | StatusCode::FORBIDDEN => {
            Trouble::Passing { error: Error::Status { what, host, status: status.as_u16(), wait }, wait }
        }
        status if status.is_server_error() => {
            Trouble::Passing { error: Error::Status { what, host, status: status.as_u16(), wait }, wait }
        }
        status => Error::Status { what, host, status: status.as_u16(), wait: None }.into(),
    }
}

/// Seconds; the form with a date is rare and stands for an ordinary wait.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(reqwest::header::RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

fn unreachable(host: &str, error: &reqwest::Error) -> Error {
    Error::Unreachable { host: host.to_owned(), problem: causes(error) }
}

/// The innermost cause is the one that says something. Addresses are left out:
/// those of a content network carry signatures.
fn causes(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
