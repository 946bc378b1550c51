use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use wire::{ErrorCode, Failure, Opened};

use crate::ahead::Ahead;
use crate::failure;
use crate::http::{Asked, Request, write_head};
use crate::recording::Recording;

/// A request that does not come, and an answer that nobody reads.
const PATIENCE: Duration = Duration::from_secs(60);

/// Of a recording, decoded and sent at once; the first piece is shorter, so
/// that sound begins sooner.
const PIECE_SECONDS: f64 = 0.5;
const FIRST_PIECE_SECONDS: f64 = 0.05;

/// Recordings by the token that they are known by.
type Recordings = Arc<Mutex<HashMap<String, Arc<Recording>>>>;

/// Serves recordings on this machine.
#[derive(Debug)]
pub struct Server {
    recordings: Recordings,
    host: String,
}

impl Server {
    /// Listens at a random port from now on.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let host = listener.local_addr()?.to_string();
        let recordings = Recordings::default();
        let (known, name) = (Arc::clone(&recordings), host.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (known, name) = (Arc::clone(&known), name.clone());
                // A page that is gone is no trouble; and no more threads than pages ask for.
                std::thread::spawn(move || drop(answer(stream, &known, &name)));
            }
        });
        Ok(Self { recordings, host })
    }

    /// Opens a recording; `keep`: the file that what is learned of it is kept in.
    ///
    /// # Errors
    /// Those of opening it, with the recording as their file.
    pub fn open(&self, path: &Path, keep: Option<&Path>) -> Result<Opened, Failure> {
        let recording = Recording::open(path, keep).map_err(|error| failure::of(&error, path))?;
        let token = token().map_err(|error| {
            Failure::new(ErrorCode::Internal, format!("This system gives no random numbers: {error}."))
        })?;
        let address = |what: &str| format!("http://{}/{token}/{what}", self.host);
        let (audio, peaks, speed) = (address("audio.wav"), address("peaks"), address("speed/"));
        let seconds = recording.wave().seconds();
        lock(&self.recordings).insert(token.clone(), Arc::new(recording));
        Ok(Opened { token, audio, peaks, speed, seconds })
    }

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
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    let Some(request) = Request::read(&mut stream)? else {
        return write_head(&mut stream, "400 Bad Request", None, 0, &[]);
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
        (Some(recording), "peaks") => {
            let text = recording.peaks();
            let kind = ["Content-Type: application/json".to_owned()];
            write_head(&mut stream, "200 OK", origin, text.len() as u64, &kind)?;
            if is_head { Ok(()) } else { stream.write_all(text.as_bytes()) }
        }
        (Some(recording), what) if what.strip_prefix("speed/").is_some_and(|it| recording.set_speed(it)) => {
            write_head(&mut stream, "204 No Content", origin, 0, &[])
        }
        _ => write_head(&mut stream, "404 Not Found", origin, 0, &[]),
    }
}

fn audio(
    stream: &mut TcpStream,
    request: &Request,
    recording: &Arc<Recording>,
    is_head: bool,
) -> io::Result<()> {
    let origin = request.origin.as_deref();
    let total = recording.wave().total();
    let mut lines = vec!["Content-Type: audio/wav".to_owned(), "Accept-Ranges: bytes".to_owned()];
    let (status, range) = match request.range(total) {
        Asked::Whole => ("200 OK", 0..total),
        Asked::Part(range) => {
            lines.push(format!("Content-Range: bytes {}-{}/{total}", range.start, range.end - 1));
            ("206 Partial Content", range)
        }
        Asked::Nothing => {
            lines.push(format!("Content-Range: bytes */{total}"));
            return write_head(stream, "416 Range Not Satisfiable", origin, 0, &lines);
        }
    };
    write_head(stream, status, origin, range.end - range.start, &lines)?;
    if is_head { Ok(()) } else { send(stream, recording, range) }
}

fn send(stream: &mut TcpStream, recording: &Arc<Recording>, range: Range<u64>) -> io::Result<()> {
    let mut listener = recording.listener().map_err(io::Error::other)?;
    let per_second = recording.wave().bytes_per_second();
    let (mut ahead, mut looked) = (Ahead::new(), Instant::now());
    let mut piece = Vec::new();
    let mut at = range.start;
    while at < range.end {
        let seconds = if at == range.start { FIRST_PIECE_SECONDS } else { PIECE_SECONDS };
        let end = range.end.min(at + (seconds * per_second) as u64 + 1);
        piece.clear();
        listener.read(at..end, &mut piece);
        stream.write_all(&piece)?;
        ahead.sent((end - at) as f64 / per_second);
        at = end;
        let mut passed = || std::mem::replace(&mut looked, Instant::now()).elapsed();
        while let Some(pause) = ahead.passed(passed(), recording.speed()) {
            std::thread::sleep(pause);
        }
    }
    Ok(())
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
