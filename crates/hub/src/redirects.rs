use reqwest::header::LOCATION;
use reqwest::{Response, Url};

use crate::Error;
use crate::retry::Trouble;
use crate::settings::HubSettings;

/// The hub sends on twice at most.
pub(crate) const MOST: usize = 8;

/// Where an answer sends us; `None` where it is the answer itself. Fails for a
/// redirect that leads from an encrypted connection to an open one.
pub(crate) fn target(
    response: &Response,
    from: &Url,
    settings: &HubSettings,
) -> Result<Option<Url>, Trouble> {
    if !response.status().is_redirection() || response.status() == reqwest::StatusCode::NOT_MODIFIED {
        return Ok(None);
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let host = from.host_str().unwrap_or_default().to_owned();
    let wrong = |problem: &str| Error::Unreachable { host: host.clone(), problem: problem.into() };
    let location = location.ok_or_else(|| wrong("it redirects without an address"))?;
    let url = from.join(location).map_err(|_| wrong("it redirects to an invalid address"))?;
    let is_open = url.scheme() != "https" && settings.endpoint.scheme() == "https";
    if is_open || !matches!(url.scheme(), "http" | "https") {
        return Err(wrong("it redirects to a connection that is not encrypted").into());
    }
    Ok(Some(url))
}

pub(crate) fn too_many(url: &Url) -> Error {
    let host = url.host_str().unwrap_or_default().to_owned();
    Error::Unreachable { host, problem: "it redirects in a loop".into() }
}
