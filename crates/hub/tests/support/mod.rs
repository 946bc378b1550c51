//! A server that speaks the hub's protocol, on this machine: repositories on
//! one address, large files on another, to which it redirects. What goes wrong
//! is decided by the test, request by request.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use hub::{Connections, HubSettings, NetworkLimits, Proxying, Puller};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use sha1::Digest as _;
use tokio::net::TcpListener;

/// Pieces in which a body is sent.
pub const BLOCK: usize = 16 << 10;

/// What goes wrong with one answer.
#[derive(Debug, Clone)]
pub enum Fault {
    None,
    Status(u16),
    /// With the header `Retry-After`, in seconds.
    Later(u16, u64),
    /// The connection breaks after so many bytes of the body.
    Cut(usize),
    /// The byte at this place of the file is another one.
    WrongByte(usize),
    /// More is sent than there is.
    Longer,
    /// Everything is sent, whatever range was asked for.
    NoRanges,
    /// After so many bytes nothing more comes, and the test is told.
    Hold(usize),
    /// A byte now and then, for ever.
    Trickle,
    /// Zeros without end, of which no size is stated.
    Endless,
    /// No answer at all.
    Silent,
    To(String),
}

#[derive(Debug, Clone)]
pub struct Seen {
    pub at: Instant,
    pub method: String,
    /// Of the host that was asked: `hub` or `cdn`.
    pub host: &'static str,
    pub path: String,
    pub range: Option<String>,
    pub token: Option<String>,
}

#[derive(Default)]
struct World {
    /// By `owner/name/file`.
    files: HashMap<String, Vec<u8>>,
    commit: String,
    /// By the end of the path that is asked for.
    faults: HashMap<(String, String), VecDeque<Fault>>,
    seen: Vec<Seen>,
    /// The hub says that files have another size than they have.
    sizes: HashMap<String, u64>,
    token: Option<String>,
    /// Small files lie behind a redirect within the hub, as they do today.
    redirects_within: bool,
}

pub struct Server {
    pub hub: SocketAddr,
    pub cdn: SocketAddr,
    world: Arc<Mutex<World>>,
    pub held: Mutex<mpsc::Receiver<()>>,
    _runtime: tokio::runtime::Runtime,
}

impl Server {
    pub fn start() -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let world = Arc::new(Mutex::new(World { commit: "c0ffee".repeat(6) + "1234", ..World::default() }));
        let (sender, held) = mpsc::channel();
        let (hub, cdn) = runtime.block_on(async {
            let hub = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let cdn = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let addresses = (hub.local_addr().unwrap(), cdn.local_addr().unwrap());
            tokio::spawn(serve(hub, "hub", addresses.1, Arc::clone(&world), sender.clone()));
            tokio::spawn(serve(cdn, "cdn", addresses.1, Arc::clone(&world), sender));
            addresses
        });
        Self { hub, cdn, world, held: Mutex::new(held), _runtime: runtime }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.hub)
    }

    pub fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        self.world.lock().unwrap().files.insert(path.into(), content.into());
    }

    /// Every file of a folder, as a repository.
    pub fn put_folder(&self, repository: &str, folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = entry.file_name().into_string().unwrap();
            self.put(&format!("{repository}/{name}"), std::fs::read(entry.path()).unwrap());
        }
    }

    pub fn commit(&self, commit: &str) {
        self.world.lock().unwrap().commit = commit.into();
    }

    pub fn claim_size(&self, path: &str, size: u64) {
        self.world.lock().unwrap().sizes.insert(path.into(), size);
    }

    pub fn redirect_within(&self) {
        self.world.lock().unwrap().redirects_within = true;
    }

    pub fn needs_token(&self, token: &str) {
        self.world.lock().unwrap().token = Some(token.into());
    }

    /// What happens to the next requests of this method whose path ends so.
    pub fn faults(&self, method: &str, path: &str, faults: impl IntoIterator<Item = Fault>) {
        let key = (method.into(), path.into());
        self.world.lock().unwrap().faults.entry(key).or_default().extend(faults);
    }

    pub fn no_more_faults(&self) {
        self.world.lock().unwrap().faults.clear();
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.world.lock().unwrap().seen.clone()
    }

    pub fn forget(&self) {
        self.world.lock().unwrap().seen.clear();
    }

    /// Waits until an answer is held.
    pub fn wait_until_held(&self) {
        self.held.lock().unwrap().recv_timeout(Duration::from_secs(60)).expect("nothing was held");
    }

    pub fn settings(&self) -> HubSettings {
        let mut settings = HubSettings::of_hub(&self.url()).unwrap();
        settings.proxy = Proxying::Never;
        settings.limits = NetworkLimits { pause: Duration::from_millis(5), ..NetworkLimits::default() };
        settings
    }

    pub fn puller(&self) -> Puller {
        Puller::new(self.settings(), Connections::nowhere()).unwrap()
    }
}

/// The same bytes in every run.
pub fn content(length: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    (0..length)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) as u8
        })
        .collect()
}

pub fn sha256(bytes: &[u8]) -> String {
    format!("{:x}", sha2::Sha256::digest(bytes))
}

async fn serve(
    listener: TcpListener,
    host: &'static str,
    cdn: SocketAddr,
    world: Arc<Mutex<World>>,
    held: mpsc::Sender<()>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { return };
        let (world, held) = (Arc::clone(&world), held.clone());
        let service = service_fn(move |request| {
            let (world, held) = (Arc::clone(&world), held.clone());
            async move { answer(request, host, cdn, &world, held).await }
        });
        tokio::spawn(async move {
            let stream = hyper_util::rt::TokioIo::new(stream);
            // A connection that was broken on purpose is an error here.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(stream, service).await;
        });
    }
}

/// Longer than anybody waits in these tests.
async fn for_ever() {
    tokio::time::sleep(Duration::from_secs(3600)).await;
}

async fn answer(
    request: Request<Incoming>,
    host: &'static str,
    cdn: SocketAddr,
    world: &Mutex<World>,
    held: mpsc::Sender<()>,
) -> Result<Response<Sent>, Infallible> {
    let path = request.uri().path().trim_start_matches('/').to_owned();
    let method = request.method().as_str().to_owned();
    let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (range, token, condition) = (header("range"), header("authorization"), header("if-range"));
    let fault = {
        let mut world = world.lock().unwrap();
        world.seen.push(Seen {
            at: Instant::now(),
            method: method.clone(),
            host,
            path: path.clone(),
            range: range.clone(),
            token: token.clone(),
        });
        let queue = world
            .faults
            .iter_mut()
            .find(|((of, end), queue)| *of == method && path.ends_with(end.as_str()) && !queue.is_empty());
        queue.and_then(|(_, queue)| queue.pop_front()).unwrap_or(Fault::None)
    };
    let plain = |status: u16| Response::builder().status(status).body(Sent::of(Vec::new())).unwrap();
    match &fault {
        Fault::Status(status) => return Ok(plain(*status)),
        Fault::Later(status, seconds) => {
            let mut response = plain(*status);
            response.headers_mut().insert("retry-after", (*seconds).into());
            return Ok(response);
        }
        Fault::Silent => {
            for_ever().await;
            return Ok(plain(500));
        }
        Fault::To(url) => {
            let mut response = plain(302);
            response.headers_mut().insert("location", url.parse().unwrap());
            return Ok(response);
        }
        _ => {}
    }
    let (commit, needed) = {
        let world = world.lock().unwrap();
        (world.commit.clone(), world.token.clone())
    };
    if host == "hub" && needed.is_some_and(|needed| token != Some(format!("Bearer {needed}"))) {
        return Ok(plain(401));
    }
    if let Some(rest) = path.strip_prefix("api/models/") {
        let repository = rest.split("/revision/").next().unwrap();
        let names: Vec<serde_json::Value> = world
            .lock()
            .unwrap()
            .files
            .keys()
            .filter_map(|path| path.strip_prefix(&format!("{repository}/")))
            .map(|name| serde_json::json!({ "rfilename": name }))
            .collect();
        if names.is_empty() {
            return Ok(plain(404));
        }
        let text = serde_json::json!({ "sha": commit, "siblings": names }).to_string();
        return Ok(Response::new(Sent::of(text.into_bytes())));
    }
    let within = world.lock().unwrap().redirects_within;
    if let Some((repository, rest)) = path.split_once("/resolve/")
        && within
        && rest.ends_with(".json")
    {
        let name = rest.split_once('/').unwrap().1;
        let mut response = plain(307);
        let target = format!("/api/resolve-cache/models/{repository}/{commit}/{name}?a=b");
        response.headers_mut().insert("location", target.parse().unwrap());
        response.headers_mut().insert("x-repo-commit", commit.parse().unwrap());
        return Ok(response);
    }
    let path = match path.strip_prefix("api/resolve-cache/models/") {
        Some(rest) => rest.replacen(&format!("{commit}/"), "", 1),
        None => path,
    };
    let key = match path.split_once("/resolve/") {
        Some((repository, rest)) => format!("{repository}/{}", rest.split_once('/').unwrap().1),
        None => path.clone(),
    };
    let Some(file) = world.lock().unwrap().files.get(&key).cloned() else { return Ok(plain(404)) };
    // As on the hub: weights lie elsewhere, small files in git.
    let is_large = key.ends_with(".safetensors") || key.ends_with(".bin");
    let size = world.lock().unwrap().sizes.get(&key).copied().unwrap_or(file.len() as u64);
    let mut response = if host == "hub" && path.contains("/resolve/") && is_large {
        let mut response = plain(302);
        let headers = response.headers_mut();
        headers.insert("location", format!("http://{cdn}/{key}?signature=s").parse().unwrap());
        headers.insert("x-linked-size", size.into());
        headers.insert("x-linked-etag", format!("\"{}\"", sha256(&file)).parse().unwrap());
        headers.insert("content-length", 0.into());
        response
    } else {
        let git = sha1::Sha1::digest([format!("blob {}\0", file.len()).as_bytes(), &file].concat());
        let etag = if is_large { format!("\"v-{}\"", &sha256(&file)[..8]) } else { format!("\"{git:x}\"") };
        contents(file, &etag, range.filter(|_| condition.is_none_or(|it| it == etag)), &fault, held)
    };
    if host == "hub" && !within {
        response.headers_mut().insert("x-repo-commit", commit.parse().unwrap());
    }
    Ok(response)
}

fn contents(
    mut file: Vec<u8>,
    etag: &str,
    range: Option<String>,
    fault: &Fault,
    held: mpsc::Sender<()>,
) -> Response<Sent> {
    if let Fault::WrongByte(at) = fault {
        file[*at] ^= 1;
    }
    let range = range.filter(|_| !matches!(fault, Fault::NoRanges));
    let start: usize = range
        .as_deref()
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok())
        .unwrap_or(0);
    let length = file.len();
    if start >= length && start > 0 {
        return Response::builder().status(416).body(Sent::of(Vec::new())).unwrap();
    }
    let mut builder = Response::builder().header("etag", etag).header("accept-ranges", "bytes");
    if range.is_some() {
        builder = builder
            .status(StatusCode::PARTIAL_CONTENT)
            .header("content-range", format!("bytes {start}-{}/{length}", length - 1));
    }
    let mut sent = Sent::of(file.split_off(start));
    sent.held = Some(held);
    match fault {
        Fault::Cut(at) => sent.ends = End::Cut(*at),
        Fault::Hold(at) => sent.ends = End::Hold(*at),
        Fault::Trickle => sent.ends = End::Trickle,
        Fault::Endless => {
            sent.ends = End::Never;
            sent.bytes = vec![0; 16 * BLOCK].into();
            sent.is_long = true;
        }
        Fault::Longer => {
            sent.bytes = [&sent.bytes[..], b"more"].concat().into();
            // Without a length it can only be noticed as it comes.
            sent.is_long = true;
        }
        _ => {}
    }
    builder.body(sent).unwrap()
}

enum End {
    Well,
    Cut(usize),
    Hold(usize),
    Trickle,
    Never,
}

/// A body that may end badly.
pub struct Sent {
    bytes: Bytes,
    at: usize,
    ends: End,
    is_long: bool,
    held: Option<mpsc::Sender<()>>,
    wait: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Sent {
    fn of(bytes: Vec<u8>) -> Self {
        Self { bytes: bytes.into(), at: 0, ends: End::Well, is_long: false, held: None, wait: None }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let this = &mut *self;
        let mut end = (this.at + BLOCK).min(this.bytes.len());
        match this.ends {
            End::Well => {}
            End::Cut(at) if this.at >= at => {
                // What was sent is to arrive: then it can be counted.
                return Poll::Ready(Some(Err(std::io::ErrorKind::ConnectionReset.into())));
            }
            End::Hold(at) if this.at >= at => {
                if let Some(held) = this.held.take() {
                    let _ = held.send(());
                }
                return Poll::Pending;
            }
            End::Cut(at) | End::Hold(at) => end = end.min(at),
            End::Never => {
                return Poll::Ready(Some(Ok(Frame::data(this.bytes.clone()))));
            }
            End::Trickle => {
                let wait =
                    this.wait.get_or_insert_with(|| Box::pin(tokio::time::sleep(Duration::from_millis(20))));
                if wait.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                this.wait = None;
                end = this.at + 1;
            }
        }
        if this.at >= this.bytes.len() {
            return Poll::Ready(None);
        }
        let piece = this.bytes.slice(this.at..end);
        this.at = end;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn size_hint(&self) -> SizeHint {
        if self.is_long { SizeHint::new() } else { SizeHint::with_exact((self.bytes.len() - self.at) as u64) }
    }
}

use std::future::Future;
