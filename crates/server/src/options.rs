use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use advisor::ModelRef;
use config::Preferences;
use supervisor::Supervisor;
use transcript::Time;
use wire::DeviceChoice;

/// How a server works.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The folder in which it keeps jobs and tokens: this user's state folder.
    pub state: PathBuf,
    /// Runs its jobs; needs a journal.
    pub supervisor: Supervisor,
    /// What the user set of memory and of the engine.
    pub preferences: Preferences,
    /// The model where a request names none; `None`: the recommended installed one.
    pub model: Option<ModelRef>,
    /// What computes.
    pub device: DeviceChoice,
    /// Folders whose recordings may be named by their path.
    pub allow: Vec<PathBuf>,
    /// Origins of web pages that may use the API, such as `https://app.example`.
    pub origins: Vec<String>,
    /// Whether requests need a token on a loopback address too.
    pub require_token: bool,
    /// Serves HTTPS.
    pub tls: Option<TlsFiles>,
    /// What requests may take.
    pub limits: Limits,
    /// The file that gets a line per request.
    pub request_log: Option<PathBuf>,
}

/// A certificate with those above it, and its key, as PEM files.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificates.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// What requests may take.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most bytes of an uploaded recording.
    pub upload: u64,
    /// Longest recording.
    pub duration: Time,
    /// Most jobs that wait, uploads under way among them.
    pub waiting: usize,
    /// Most unfinished jobs of one token.
    pub jobs_per_token: usize,
    /// Most connections at once.
    pub connections: usize,
    /// For the head of a request to arrive, and for a connection to stay idle.
    pub header_time: Duration,
    /// In each such time, a body must go on.
    pub body_time: Duration,
    /// How long ended jobs and their texts are kept.
    pub keep: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            upload: 2 << 30,
            duration: Time::from_millis(12 * 3600 * 1000),
            waiting: 100,
            jobs_per_token: 50,
            connections: 256,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            keep: Duration::from_secs(24 * 3600),
        }
    }
}
