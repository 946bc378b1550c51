//! An HTTP API for the recordings of a household: OpenAI's endpoints, so that programs written for those work
//! unchanged, and Steno's own for what they have no word for. Start with [`Server`], then `router`, which lists
//! the endpoints, and `jobs`, where an accepted recording waits, is transcribed and is kept.
//!
//! A job is accepted once its recording is on the disk and the job is in the journal, so that a server that is
//! killed finishes it at its next start.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod access;
mod api;
mod connections;
mod document;
mod error;
mod exporting;
mod feed;
mod form;
mod jobs;
mod metrics;
mod models;
mod openai;
mod options;
mod reply;
mod request_log;
mod router;
mod scrub;
mod sse;
mod tls;
pub mod tokens;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;
use wire::{ErrorCode, Failure};

use access::Access;
use connections::{Connection, Connections};
use jobs::Jobs;
use metrics::Metrics;
use models::Models;
use request_log::RequestLog;

pub use options::{Limits, Options, TlsFiles};

/// Of a request's head. Bearer tokens and multipart boundaries are far smaller.
const HEAD_BYTES: usize = 32 << 10;
const HEADERS: usize = 64;
/// For answers under way when the server ends.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// After a connection could not be accepted, for instance because too many files are open.
const PAUSE: Duration = Duration::from_millis(50);

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<Arc<rustls::ServerConfig>>,
    app: Arc<App>,
}

/// What every request needs.
#[derive(Debug)]
struct App {
    access: Access,
    jobs: Jobs,
    models: Models,
    metrics: Arc<Metrics>,
    limits: Limits,
    /// Folders whose recordings may be named by their path, without links.
    allow: Vec<PathBuf>,
    log: RequestLog,
}

impl Server {
    /// Takes over the jobs of a server that is gone and listens.
    ///
    /// # Errors
    /// Where the address is taken, another server of this user runs, the state folder or the journal can't be
    /// written, the certificate can't be used, or an address that others can reach has no token.
    pub async fn bind(options: Options) -> Result<Self, Failure> {
        let access = Access::new(&options)?;
        let tls = options.tls.as_ref().map(tls::config).transpose()?;
        let metrics = Arc::new(Metrics::default());
        let jobs = Jobs::open(&options, Arc::clone(&metrics))?;
        let unusable = |error: std::io::Error| {
            let message = format!("The address {} can't be listened on ({error}).", options.listen);
            Failure::new(ErrorCode::BadSettings, message).remedy("Choose another one with --listen.")
        };
        let listener = TcpListener::bind(options.listen).await.map_err(unusable)?;
        let address = listener.local_addr().map_err(unusable)?;
        let allow = options.allow.iter().map(|folder| {
            folder.canonicalize().map_err(|error| {
                Failure::new(ErrorCode::FileNotFound, format!("The folder can't be used ({error})."))
                    .file(folder.as_path())
                    .remedy("Name a folder of recordings with --allow.")
            })
        });
        let allow = allow.collect::<Result<_, _>>()?;
        let models = Models::new(&options);
        let log = RequestLog::open(options.request_log.as_deref())?;
        let app = App { access, jobs, models, metrics, limits: options.limits, allow, log };
        Ok(Self { listener, address, tls, app: Arc::new(app) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers requests and runs jobs until `stop` is done. Jobs that are not finished then go on at the next start.
    pub async fn run(self, stop: impl Future<Output = ()>) {
        let Self { listener, tls, app, .. } = self;
        let tls = tls.map(TlsAcceptor::from);
        let connections = Arc::new(Connections::new(app.limits.connections));
        let (stopping, stopped) = watch::channel(false);
        let runner = tokio::spawn(app.jobs.clone().run());
        let mut stop = pin!(stop);
        loop {
            let stream = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    Err(_) => {
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                },
            };
            let Some(connection) = connections.admit() else {
                app.metrics.refused("too_many_connections");
                tokio::spawn(turn_away(stream));
                continue;
            };
            let _ = stream.set_nodelay(true);
            tokio::spawn(attend(stream, tls.clone(), Arc::clone(&app), connection, stopped.clone()));
        }
        drop(listener);
        let _ = stopping.send(true);
        app.jobs.stop().await;
        let _ = runner.await;
        connections.empty(LAST_WORDS).await;
    }
}

/// One connection, from its handshake to its end.
async fn attend(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Arc<App>,
    connection: Connection,
    stopped: watch::Receiver<bool>,
) {
    let Some(tls) = tls else { return converse(stream, app, connection, stopped).await };
    let shaken = tokio::select! {
        shaken = tokio::time::timeout(app.limits.header_time, tls.accept(stream)) => shaken,
        () = connection.closed() => return,
    };
    if let Ok(Ok(stream)) = shaken {
        converse(stream, app, connection, stopped).await;
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Arc<App>,
    connection: Connection,
    mut stopped: watch::Receiver<bool>,
) {
    let header_time = app.limits.header_time;
    let connection = Arc::new(connection);
    let current = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let (app, busy) = (Arc::clone(&app), current.busy());
        async move {
            let response = router::answer(app, request).await;
            Ok::<_, Infallible>(response.map(|body| busy.until_the_end_of(body)))
        }
    });
    let mut answering = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(header_time)
            .max_headers(HEADERS)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
    );
    tokio::select! {
        // A connection that breaks concerns its client alone.
        _ = answering.as_mut() => return,
        () = connection.closed() => return,
        _ = stopped.wait_for(|stopped| *stopped) => {}
    }
    answering.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(LAST_WORDS, answering).await;
}

/// Every connection is busy: the client is told so instead of waiting.
async fn turn_away(mut stream: TcpStream) {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_secs(1), async {
        let _ = stream.write_all(ANSWER).await;
        let _ = stream.shutdown().await;
    })
    .await;
}
