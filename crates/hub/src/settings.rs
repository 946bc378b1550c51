use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Url;

use crate::Error;

/// The public hub.
pub const HUB: &str = "https://huggingface.co";

/// How the network may be used.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// The hub or a mirror of it.
    pub endpoint: Url,
    /// Through which proxy.
    pub proxy: Proxying,
    /// Sent to the endpoint's own host and to no other.
    pub token: Option<Token>,
    /// Never use the network.
    pub offline: bool,
    /// How long to wait.
    pub limits: NetworkLimits,
}

/// Which proxy connections take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proxying {
    /// `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`.
    AsEnvironment,
    /// The proxy at this address.
    Through(String),
    /// None, whatever the environment says.
    Never,
}

/// A secret: neither shown nor written anywhere.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// `None` for what can't be one.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned()))
    }

    /// For the header of a request, or the file that keeps it.
    pub fn secret(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How long to wait for what, and how often to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkLimits {
    /// Until a connection is made.
    pub connect: Duration,
    /// Until an answer's headers are there.
    pub answer: Duration,
    /// A connection that brings fewer than `least_bytes` in a `window` is closed: a
    /// server may keep it open for ever, sending a byte at a time.
    pub window: Duration,
    /// Bytes below which a `window` brought nothing.
    pub least_bytes: u64,
    /// Attempts in a row that may bring less than `least_bytes`.
    pub attempts: u32,
    /// The wait after the first of them; it doubles with each.
    pub pause: Duration,
    /// The longest wait; a server that asks for a longer one is an error.
    pub longest_pause: Duration,
}

impl Default for NetworkLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(20),
            answer: Duration::from_secs(60),
            window: Duration::from_secs(30),
            least_bytes: 16 << 10,
            attempts: 6,
            pause: Duration::from_secs(1),
            longest_pause: Duration::from_secs(300),
        }
    }
}

impl HubSettings {
    /// Of the hub at this address; everything else as it usually is. Fails for
    /// what is no address.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` for what is not an address.
    pub fn of_hub(endpoint: &str) -> Result<Self, Error> {
        Ok(Self {
            endpoint: address(endpoint)?,
            proxy: Proxying::AsEnvironment,
            token: None,
            offline: false,
            limits: NetworkLimits::default(),
        })
    }

    /// What the environment says, by the names that other programs of the hub
    /// know: `HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_OFFLINE`, and `STENO_OFFLINE`.
    /// Fails for an endpoint that is no address.
    ///
    /// The token that the hub's own program left in a file is for the public
    /// hub alone: a mirror gets one only where `HF_TOKEN` says so.
    ///
    /// # Errors
    ///
    /// Fails with `Invalid` for an endpoint that is not an address.
    pub fn of_environment(
        variable: &dyn Fn(&str) -> Option<String>,
        home: Option<&Path>,
    ) -> Result<Self, Error> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let mut settings = Self::of_hub(set("HF_ENDPOINT").as_deref().unwrap_or(HUB))?;
        settings.offline = ["STENO_OFFLINE", "HF_HUB_OFFLINE"]
            .iter()
            .filter_map(|name| set(name))
            .any(|value| is_on(&value));
        let given = ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"].iter().find_map(|name| set(name));
        let kept = || {
            let is_public_hub = settings.endpoint.as_str().trim_end_matches('/') == HUB;
            let file = set("HF_TOKEN_PATH")
                .map(PathBuf::from)
                .or_else(|| hub_folder(variable, home).map(|folder| folder.join("token")));
            std::fs::read_to_string(file.filter(|_| is_public_hub)?).ok()
        };
        settings.token = given.or_else(kept).as_deref().and_then(Token::new);
        Ok(settings)
    }

    /// The token, where a request to `url` may carry it.
    pub(crate) fn token_for(&self, url: &Url) -> Option<&Token> {
        let is_safe = url.scheme() == "https" || is_this_machine(url);
        self.token.as_ref().filter(|_| is_safe && url.origin() == self.endpoint.origin())
    }
}

fn address(text: &str) -> Result<Url, Error> {
    let url = Url::parse(text.trim()).ok();
    let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    url.ok_or_else(|| Error::Invalid {
        path: text.into(),
        problem: "it is not a valid address of a hub".into(),
        remedy: format!("Set HF_ENDPOINT to an address such as {HUB}, or unset it."),
    })
}

/// Where the hub's own programs keep things: `HF_HOME`, else `huggingface` in
/// the folder for caches.
pub(crate) fn hub_folder(variable: &dyn Fn(&str) -> Option<String>, home: Option<&Path>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty()).map(PathBuf::from);
    set("HF_HOME").or_else(|| {
        let caches = set("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
        Some(caches?.join("huggingface"))
    })
}

/// A switch as people write one.
pub(crate) fn is_on(value: &str) -> bool {
    matches!(value.trim().to_ascii_lowercase().as_str(), "1" | "true" | "yes" | "on")
}

/// Whether an address leads to this machine, so that nothing sent there leaves it.
pub fn is_this_machine(url: &Url) -> bool {
    url.host_str().is_some_and(|host| host == "localhost" || host == "127.0.0.1" || host == "[::1]")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(variables: &[(&str, &str)], home: &Path) -> Result<HubSettings, Error> {
        let get = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        HubSettings::of_environment(&get, Some(home))
    }

    #[test]
    fn a_token_goes_to_its_own_host_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".cache/huggingface");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("token"), "hf_kept\n").unwrap();
        let (hub, mirror) = ("https://huggingface.co/a", "https://mirror.example/a");
        let given = ("HF_TOKEN", "hf_given");
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a str, Option<&'a str>);
        let cases: [Case; 9] = [
            (&[], hub, Some("hf_kept")),
            (&[given], hub, Some("hf_given")),
            (&[given], "https://cdn.example/a", None),
            (&[given], "http://huggingface.co/a", None),
            (&[given], "https://huggingface.co:444/a", None),
            // The file's token was given to the public hub.
            (&[("HF_ENDPOINT", "https://mirror.example")], mirror, None),
            (&[("HF_ENDPOINT", "https://mirror.example"), given], mirror, Some("hf_given")),
            (&[("HF_ENDPOINT", "http://mirror.example"), given], "http://mirror.example/a", None),
            (&[("HF_ENDPOINT", "http://127.0.0.1:80"), given], "http://127.0.0.1:80/a", Some("hf_given")),
        ];
        for (variables, url, expected) in cases {
            let settings = settings(variables, home.path()).unwrap();
            let found = settings.token_for(&Url::parse(url).unwrap()).map(Token::secret);
            assert_eq!(found, expected, "{variables:?} {url}");
            assert!(!format!("{settings:?}").contains("hf_"), "a token is shown");
        }
    }

    #[test]
    fn switches_and_addresses_are_read_as_people_write_them() {
        let home = tempfile::tempdir().unwrap();
        for (name, value, offline) in [
            ("STENO_OFFLINE", "1", true),
            ("HF_HUB_OFFLINE", "TRUE", true),
            ("STENO_OFFLINE", "0", false),
            ("STENO_OFFLINE", "", false),
        ] {
            assert_eq!(settings(&[(name, value)], home.path()).unwrap().offline, offline, "{name}={value}");
        }
        for wrong in ["mirror", "ftp://mirror", "http://"] {
            let error = settings(&[("HF_ENDPOINT", wrong)], home.path()).unwrap_err().to_string();
            assert!(error.contains("HF_ENDPOINT"), "{error}");
        }
    }
}
