//! The HTTP server.
//!
//! Threads and `httparse` serve it: one window asks, and decoding is no work for an
//! async task. Port and token are random and told to the host alone; a request that
//! names another host, or comes from another page, is refused.
//!
//! The window plays one format alone, a WAV file, because WebKit plays by GStreamer,
//! which seeks wrongly in VBR mp3, stops in long FLAC and depends on installed plugins.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::{ErrorCode, Failure, Opened};

use crate::failure;
use crate::http::{HttpRequest, RequestedRange, write_head};
use crate::pacing::SendBudget;
use crate::recording::OpenRecording;

/// Timeout for reading a request and for writing a response.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Lengths of the pieces that are decoded and sent, in seconds of the recording.
/// The first one is shorter, so that playback starts sooner.
const PIECE_SECONDS: f64 = 0.5;
const FIRST_PIECE_SECONDS: f64 = 0.05;

/// Times from here on are in no recording, in seconds: a month.
const LONGEST: f64 = 31.0 * 24.0 * 3600.0;

/// Open recordings by their tokens.
type Recordings = Arc<Mutex<HashMap<String, Arc<OpenRecording>>>>;

/// Serves recordings to the window's pages.
#[derive(Debug)]
pub struct Server {
    recordings: Recordings,
    host: String,
}

impl Server {
    /// Starts listening at a random port of the loopback interface.
    ///
    /// # Errors
    /// If no port can be opened.
    pub fn start() -> io::Result<Self> {
        Self::start_at(0)
    }

    /// Starts listening at this port of the loopback interface; 0 stands for a random one.
    ///
    /// # Errors
    /// If the port can't be opened.
    pub fn start_at(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let host = listener.local_addr()?.to_string();
        let recordings = Recordings::default();
        let (known, name) = (Arc::clone(&recordings), host.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, name) = (Arc::clone(&known), name.clone());
                // Errors are ignored: a page may close its connection at any time.
                std::thread::spawn(move || drop(answer(stream, &known, &name)));
            }
        });
        Ok(Self { recordings, host })
    }

    /// Opens a recording. `keep` is its cache file, which is read if it exists and
    /// else written after scanning.
    ///
    /// # Errors
    /// If the recording can't be decoded.
    pub fn open(&self, path: &Path, track: Option<usize>, keep: Option<&Path>) -> Result<Opened, Failure> {
        let recording = OpenRecording::open(path, track, keep).map_err(|error| failure::of(&error, path))?;
        let token = token().map_err(|error| {
            Failure::new(ErrorCode::Internal, format!("This system gives no random numbers: {error}."))
        })?;
        let address = |what: &str| format!("http://{}/{token}/{what}", self.host);
        let (audio, peaks, speed) = (address("audio.wav"), address("peaks"), address("speed/"));
        let pictures = address("pictures");
        let seconds = recording.wave().seconds();
        lock(&self.recordings).insert(token.clone(), Arc::new(recording));
        Ok(Opened { token, audio, peaks, pictures, speed, seconds })
    }

    /// Closes a recording. Its addresses are invalid from then on.
    pub fn close(&self, token: &str) {
        lock(&self.recordings).remove(token);
    }
}

/// 128 random bits.
fn token() -> Result<String, getrandom::Error> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits)?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn answer(mut stream: TcpStream, recordings: &Recordings, host: &str) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.set_nodelay(true)?;
    let Some(request) = HttpRequest::read(&mut stream)? else {
        return write_head(&mut stream, "400 Bad HttpRequest", None, 0, &[]);
    };
    if !request.is_of_the_window(host) {
        return write_head(&mut stream, "403 Forbidden", None, 0, &[]);
    }
    let origin = request.origin.as_deref();
    let is_head = request.method == "HEAD";
    if !is_head && request.method != "GET" {
        let allow = ["Allow: GET, HEAD".to_owned()];
        return write_head(&mut stream, "405 Method Not Allowed", origin, 0, &allow);
    }
    let (token, what) =
        request.path.strip_prefix('/').and_then(|path| path.split_once('/')).unwrap_or_default();
    let recording = lock(recordings).get(token).cloned();
    match (recording, what) {
        (Some(recording), "audio.wav") => audio(&mut stream, &request, &recording, is_head),
        (Some(recording), "peaks" | "pictures") => {
            let text = if what == "peaks" { recording.peaks() } else { recording.pictures() };
            let kind = ["Content-Type: application/json".to_owned()];
            write_head(&mut stream, "200 OK", origin, text.len() as u64, &kind)?;
            if is_head { Ok(()) } else { stream.write_all(text.as_bytes()) }
        }
        (Some(recording), what) if let Some(time) = what.strip_prefix("pictures/") => {
            let seconds = time.parse().ok().filter(|seconds: &f64| (0.0..LONGEST).contains(seconds));
            let Some(picture) = seconds.and_then(|seconds| recording.picture(seconds)) else {
                return write_head(&mut stream, "404 Not Found", origin, 0, &[]);
            };
            let kind = ["Content-Type: image/jpeg".to_owned()];
            write_head(&mut stream, "200 OK", origin, picture.len() as u64, &kind)?;
            if is_head { Ok(()) } else { stream.write_all(&picture) }
        }
        (Some(recording), what) if what.strip_prefix("speed/").is_some_and(|it| recording.set_speed(it)) => {
            write_head(&mut stream, "204 No Content", origin, 0, &[])
        }
        _ => write_head(&mut stream, "404 Not Found", origin, 0, &[]),
    }
}

fn audio(
    stream: &mut TcpStream,
    request: &HttpRequest,
    recording: &Arc<OpenRecording>,
    is_head: bool,
) -> io::Result<()> {
    let origin = request.origin.as_deref();
    let total = recording.wave().total();
    let mut lines = vec!["Content-Type: audio/wav".to_owned(), "Accept-Ranges: bytes".to_owned()];
    let (status, range) = match request.range(total) {
        RequestedRange::Whole => ("200 OK", 0..total),
        RequestedRange::Part(range) => {
            lines.push(format!("Content-Range: bytes {}-{}/{total}", range.start, range.end - 1));
            ("206 Partial Content", range)
        }
        RequestedRange::Unsatisfiable => {
            lines.push(format!("Content-Range: bytes */{total}"));
            return write_head(stream, "416 Range Not Satisfiable", origin, 0, &lines);
        }
    };
    write_head(stream, status, origin, range.end - range.start, &lines)?;
    if is_head { Ok(()) } else { send(stream, recording, range) }
}

fn send(stream: &mut TcpStream, recording: &Arc<OpenRecording>, range: Range<u64>) -> io::Result<()> {
    let mut reader = recording.reader().map_err(io::Error::other)?;
    let per_second = recording.wave().bytes_per_second();
    let (mut budget, mut checked) = (SendBudget::new(), Instant::now());
    let mut piece = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let seconds = if at == range.start { FIRST_PIECE_SECONDS } else { PIECE_SECONDS };
        let end = range.end.min(at + (seconds * per_second) as u64 + 1);
        piece.clear();
        reader.read(at..end, &mut piece);
        stream.write_all(&piece)?;
        budget.sent((end - at) as f64 / per_second);
        at = end;
        let mut passed = || std::mem::replace(&mut checked, Instant::now()).elapsed();
        while let Some(pause) = budget.passed(passed(), recording.speed()) {
            std::thread::sleep(pause);
        }
    }
    Ok(())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
