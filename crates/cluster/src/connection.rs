//! The connection to NATS, and what a queue has there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_nats::client::Statistics;
use async_nats::jetstream::object_store::ObjectStore;
use async_nats::jetstream::stream::{self, DiscardPolicy, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, kv, object_store};
use async_nats::{ConnectErrorKind, ConnectOptions, ServerAddr};
use hub::{Connections, Open, Purpose};
use wire::{ErrorCode, Failure};

use crate::job;

/// Longest pause between two attempts to connect again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How often, and after which pause, something is looked for that another process may be making.
const TRIES_TO_FIND: usize = 10;
const PAUSE_TO_FIND: Duration = Duration::from_millis(50);
/// In place of an attempt that can't be logged.
const NEVER: Duration = Duration::from_secs(3600 * 24 * 365);
/// A job that is submitted twice within this time is queued once, whatever else happens.
const DUPLICATES: Duration = Duration::from_secs(3600);
/// A worker that said nothing for so long is gone from the list.
pub(crate) const WORKER_GONE: Duration = Duration::from_secs(30);

/// How NATS is reached.
#[derive(Debug, Clone)]
pub struct Access {
    /// Addresses such as `nats://host:4222`, separated by commas; `tls://` for an encrypted connection.
    pub servers: String,
    /// A file of credentials, as NATS's tools write it.
    pub credentials: Option<PathBuf>,
    /// The queue's name: workers and those who submit must agree on it.
    pub queue: String,
    /// Copies of everything in a cluster of servers, for what is made anew.
    pub replicas: usize,
    /// The user forbids any use of the network.
    pub offline: bool,
    /// Where every connection is written down.
    pub log: Connections,
}

/// A queue in NATS. Clones share one connection.
#[derive(Clone)]
pub struct Cluster {
    pub(crate) queue: String,
    pub(crate) context: jetstream::Context,
    /// Ids of jobs, until they are over.
    pub(crate) jobs: Stream,
    /// Steps of jobs under way, and dead letters.
    pub(crate) log: Stream,
    pub(crate) records: kv::Store,
    pub(crate) workers: kv::Store,
    pub(crate) files: ObjectStore,
    link: Arc<Link>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("queue", &self.queue)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

/// What the log of connections says of this one.
#[derive(Debug)]
struct Link {
    log: Connections,
    hosts: String,
    statistics: OnceLock<Arc<Statistics>>,
    /// The latest connection, and the bytes that came before it.
    open: Mutex<Option<(Open, u64)>>,
    /// The next attempt is the first: it is in the log already.
    is_first: AtomicBool,
}

impl Access {
    /// Connects, and makes what the queue needs.
    ///
    /// # Errors
    /// `BadSettings` for an address or a name that can't be one, `NetworkOff`, `NetworkFailed` where no server can be
    /// reached, refuses the credentials or has no JetStream.
    pub async fn connect(&self) -> Result<Cluster, Failure> {
        if !job::is_token(&self.queue) {
            let message = format!("\"{}\" can't be the name of a queue.", self.queue.escape_debug());
            return Err(Failure::new(ErrorCode::BadSettings, message)
                .remedy("Use up to 32 letters, digits, - and _."));
        }
        let servers = self.addresses()?;
        let hosts: Vec<&str> = servers.iter().map(ServerAddr::host).collect();
        let hosts = hosts.join(", ");
        if self.offline {
            let message = format!("The network is switched off, so {hosts} can't be reached.");
            return Err(Failure::new(ErrorCode::NetworkOff, message)
                .remedy("Unset STENO_OFFLINE, and network.off in the config file."));
        }
        let opened = self.log.begin(&hosts, &Purpose::Jobs).map_err(advisor::store::failure)?;
        let link = Arc::new(Link {
            log: self.log.clone(),
            hosts: hosts.clone(),
            statistics: OnceLock::new(),
            open: Mutex::new(Some((opened, 0))),
            is_first: AtomicBool::new(true),
        });
        let attempt = Arc::clone(&link);
        let mut options = ConnectOptions::new()
            .name("steno")
            // Others would not be in the log.
            .ignore_discovered_servers()
            .reconnect_delay_callback(move |attempts| attempt.begin(attempts));
        if let Some(file) = &self.credentials {
            options = options.credentials_file(file).await.map_err(|error| {
                Failure::new(ErrorCode::FileUnreadable, format!("The credentials can't be read ({error})."))
                    .file(file.as_path())
                    .remedy("Name the file that NATS's tools made for this user (it ends in .creds).")
            })?;
        }
        let client = options.connect(servers).await.map_err(|error| {
            let refused = matches!(
                error.kind(),
                ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication
            );
            let remedy = if refused {
                "Give the right credentials with --creds FILE, or in the address: nats://USER:PASSWORD@HOST."
            } else {
                "Check the address, and whether the server runs: nats-server -js."
            };
            let message = format!("NATS at {hosts} can't be reached ({error}).");
            let code = if refused { ErrorCode::DownloadRefused } else { ErrorCode::NetworkFailed };
            Failure::new(code, message).remedy(remedy)
        })?;
        // Set once: this client is new.
        let _ = link.statistics.set(client.statistics());
        self.open(jetstream::new(client), link).await
    }

    fn addresses(&self) -> Result<Vec<ServerAddr>, Failure> {
        let wrong = || {
            let message = "The address of NATS can't be read.";
            Failure::new(ErrorCode::BadSettings, message)
                .remedy("Write it as nats://HOST:4222; several are separated by commas.")
        };
        let parsed = self.servers.split(',').map(|text| text.trim().parse().map_err(|_| wrong()));
        let servers: Vec<ServerAddr> = parsed.collect::<Result<_, _>>()?;
        let is_known =
            |server: &ServerAddr| matches!(server.scheme(), "nats" | "tls") && !server.host().is_empty();
        if servers.is_empty() || !servers.iter().all(is_known) { Err(wrong()) } else { Ok(servers) }
    }

    async fn open(&self, context: jetstream::Context, link: Arc<Link>) -> Result<Cluster, Failure> {
        let queue = self.queue.clone();
        let jobs =
            self.stream(&context, "jobs", &["jobs.*", "languages.*"], RetentionPolicy::WorkQueue).await?;
        let log = self.stream(&context, "log", &["steps.*", "dead.*"], RetentionPolicy::Limits).await?;
        let records = self.keys(&context, "records", Duration::ZERO, StorageType::File).await?;
        let workers = self.keys(&context, "workers", WORKER_GONE, StorageType::Memory).await?;
        let name = format!("{queue}-files");
        let files = get_or_make(
            || async { context.get_object_store(&name).await.ok() },
            || async {
                let config = object_store::Config {
                    bucket: name.clone(),
                    num_replicas: self.replicas,
                    ..object_store::Config::default()
                };
                context.create_object_store(config).await.map_err(|error| unusable(&error))
            },
        )
        .await?;
        Ok(Cluster { queue, context, jobs, log, records, workers, files, link })
    }

    async fn stream(
        &self,
        context: &jetstream::Context,
        name: &str,
        subjects: &[&str],
        retention: RetentionPolicy,
    ) -> Result<Stream, Failure> {
        let config = stream::Config {
            name: format!("{}-{name}", self.queue),
            subjects: subjects.iter().map(|subject| format!("{}.{subject}", self.queue)).collect(),
            retention,
            num_replicas: self.replicas,
            duplicate_window: DUPLICATES,
            allow_direct: true,
            ..stream::Config::default()
        };
        get_or_make(
            || async { context.get_stream(&config.name).await.ok() },
            || async { context.create_stream(&config).await.map_err(|error| unusable(&error)) },
        )
        .await
    }

    async fn keys(
        &self,
        context: &jetstream::Context,
        name: &str,
        max_age: Duration,
        storage: StorageType,
    ) -> Result<kv::Store, Failure> {
        let bucket = format!("{}-{name}", self.queue);
        // As the client's own function makes it, which asks for more of an account than servers before 2.10 tell.
        let config = stream::Config {
            name: format!("KV_{bucket}"),
            subjects: vec![format!("$KV.{bucket}.>")],
            max_messages_per_subject: 1,
            max_age,
            storage,
            num_replicas: self.replicas,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            ..stream::Config::default()
        };
        get_or_make(
            || async { context.get_key_value(&bucket).await.ok() },
            || async {
                context.create_stream(&config).await.map_err(|error| unusable(&error))?;
                context.get_key_value(&bucket).await.map_err(|error| unusable(&error))
            },
        )
        .await
    }
}

impl Cluster {
    /// Bytes that came over the connection so far.
    pub fn received(&self) -> u64 {
        self.link.received()
    }

    pub(crate) fn subject(&self, kind: &str, name: &str) -> String {
        format!("{}.{kind}.{name}", self.queue)
    }

    /// Waits until what was sent has left this machine.
    pub async fn flush(&self) {
        // Where it fails there is no connection, and no listener to tell.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.context.client().flush()).await;
    }
}

impl Link {
    /// Called before every attempt to connect: writes it down, and says how long to wait before it.
    fn begin(&self, attempts: usize) -> Duration {
        if self.is_first.swap(false, Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let Ok(opened) = self.log.begin(&self.hosts, &Purpose::Jobs) else { return NEVER };
        self.replace(Some((opened, self.received())));
        match u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX) {
            0 => Duration::ZERO,
            again => LONGEST_PAUSE.min(Duration::from_millis(50).saturating_mul(1 << again.min(16))),
        }
    }

    fn received(&self) -> u64 {
        self.statistics.get().map_or(0, |statistics| statistics.in_bytes.load(Ordering::Relaxed))
    }

    /// Writes down the end of the connection before, with what came over it.
    fn replace(&self, next: Option<(Open, u64)>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((before, start)) = open.as_mut() {
            before.bytes = self.received().saturating_sub(*start);
        }
        *open = next;
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // The client's own task holds the link for the next attempt, so the last clone is known by its other owners.
        if Arc::strong_count(&self.link) <= 2 {
            self.link.replace(None);
        }
    }
}

/// What the queue has under a name, made if there is none.
///
/// Where two make it at once, the server refuses one of them, and for a moment neither finds it.
async fn get_or_make<T>(
    get: impl AsyncFn() -> Option<T>,
    make: impl AsyncFn() -> Result<T, Failure>,
) -> Result<T, Failure> {
    if let Some(known) = get().await {
        return Ok(known);
    }
    let refused = match make().await {
        Ok(made) => return Ok(made),
        Err(refused) => refused,
    };
    for _ in 0..TRIES_TO_FIND {
        tokio::time::sleep(PAUSE_TO_FIND).await;
        if let Some(known) = get().await {
            return Ok(known);
        }
    }
    Err(refused)
}

fn unusable(error: &dyn std::error::Error) -> Failure {
    let message = format!("NATS does not give what a queue needs ({error}).");
    Failure::new(ErrorCode::NetworkFailed, message).remedy(
        "Start the server with JetStream (nats-server -js), version 2.9 or later, with disk space left.",
    )
}

/// A request that NATS did not answer as it should.
pub(crate) fn failed(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::NetworkFailed, format!("NATS did not {what} ({error})."))
        .remedy("Check whether the server runs and has disk space left, then try again.")
}
