//! Damaged recordings in the real player: each is refused or heard, in good time and within the
//! player's memory, and nothing panics. In the tests of the audio crate decoders are called as a
//! library; here they are a process, with its allocator's limit.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, helpers included")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use wire::{PlayerAnswer, PlayerCommand};

/// Longer than opening any of these small files takes on a starved machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// What opening and what scanning may allocate, and what the process takes besides.
const MOST_KILOBYTES: u64 = (2 * player::DECODING_BYTES as u64 + (64 << 20)) >> 10;

/// How the allocator ends a program that asks for too much.
const SIGABRT: i32 = 6;

/// More of them to search for faults: `STENO_DAMAGE_ROUNDS=1000`.
fn rounds() -> u64 {
    std::env::var("STENO_DAMAGE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(2)
}

#[test]
fn damaged_recordings_are_refused_or_heard_by_a_player_that_lives_on() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/fixtures");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension != "sh"));
    files.sort();
    let folder = tempfile::tempdir().unwrap();
    let mut player = Running::start();
    let (mut heard, mut refused, mut ended) = (0, 0, 0);
    for path in &files {
        let bytes = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        for round in 0..rounds() {
            let damaged = folder.path().join(name);
            std::fs::write(&damaged, damage(&bytes, round)).unwrap();
            let told = format!("{name}, round {round}");
            match player.try_recording(&damaged, &told) {
                Some(true) => heard += 1,
                Some(false) => refused += 1,
                // By its own limit, as `Running` has seen; the window starts another.
                None => {
                    ended += 1;
                    player = Running::start();
                }
            }
        }
    }
    println!("{heard} heard, {refused} refused, {ended} ended by the limit of memory");
    assert!(heard > 0 && refused > 0);
    // The limit is for what no check can foresee.
    assert!(ended * 50 <= heard + refused, "{ended} of {}", heard + refused + ended);
}

/// Flipped bits anywhere or in the header, or a length field that is absurd.
fn damage(bytes: &[u8], round: u64) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(bytes.len() as u64 ^ (round << 32));
    let mut damaged = bytes.to_vec();
    let reach = if random.bool() { bytes.len() } else { bytes.len().min(1024) };
    for _ in 0..1 << random.u8(..4) {
        let at = random.usize(..reach);
        let extreme: &[u8] =
            [&[0xff; 8][..], &[0x7f, 0xff, 0xff, 0xff], &[0; 4], &[0xff; 4]][random.usize(..4)];
        match random.u8(..3) {
            0 => damaged[at] ^= 1 << random.u8(..8),
            1 => damaged[at] = random.u8(..),
            _ => {
                let length = extreme.len().min(damaged.len() - at);
                damaged[at..at + length].copy_from_slice(&extreme[..length]);
            }
        }
    }
    damaged
}

/// A real player.
struct Running {
    process: Child,
    input: ChildStdin,
    answers: Receiver<String>,
    complaints: Receiver<String>,
}

impl Running {
    fn start() -> Self {
        let mut process = Command::new(env!("CARGO_BIN_EXE_steno-player"))
            // Decoders that are a part of the program.
            .env("STENO_FFMPEG", "none")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let answers = lines(process.stdout.take().unwrap());
        let complaints = lines(process.stderr.take().unwrap());
        Self { process, input, answers, complaints }
    }

    /// Looks at a recording, opens it, reads some of it, closes it. True where it was opened; `None` where the
    /// player ended by its limit of memory.
    fn try_recording(&mut self, path: &Path, told: &str) -> Option<bool> {
        self.ask(&PlayerCommand::Probe { path: path.into() }, told)?;
        let is_open =
            match self.ask(&PlayerCommand::Open { path: path.into(), keep: None, track: None }, told)? {
                PlayerAnswer::Opened(opened) => {
                    for range in ["bytes=0-99999", "bytes=-4000"] {
                        read(&opened.audio, range);
                    }
                    self.ask(&PlayerCommand::Close { token: opened.token }, told)?;
                    true
                }
                PlayerAnswer::Failed { failure } => {
                    assert!(!failure.message.is_empty(), "{told}");
                    false
                }
                answer => panic!("{told}: {answer:?}"),
            };
        let peak = self.peak_kilobytes();
        assert!(peak < MOST_KILOBYTES, "{told}: {peak} KB");
        Some(is_open)
    }

    fn ask(&mut self, command: &PlayerCommand, told: &str) -> Option<PlayerAnswer> {
        let line = serde_json::to_string(command).unwrap();
        // Where the player is gone its answer is missing, too.
        let _ = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
        let answer = match self.answers.recv_timeout(PATIENCE) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("{told}: no answer to {line}"),
        };
        let complaints: Vec<String> = self.complaints.try_iter().collect();
        assert!(!complaints.iter().any(|line| line.contains("panicked")), "{told}: {complaints:#?}");
        match answer {
            Some(answer) => Some(serde_json::from_str(&answer).unwrap()),
            None => {
                use std::os::unix::process::ExitStatusExt;

                let status = self.process.wait().unwrap();
                assert_eq!(status.signal(), Some(SIGABRT), "{told}: {status}, {complaints:#?}");
                None
            }
        }
    }

    /// Most resident memory so far; 0 where the system does not tell.
    fn peak_kilobytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// What the player answers does not matter here, only that it outlives the question.
fn read(address: &str, range: &str) {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let Ok(mut stream) = TcpStream::connect(host) else { return };
    let _ = stream.set_read_timeout(Some(PATIENCE));
    let _ = write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nRange: {range}\r\n\r\n");
    let _ = stream.read_to_end(&mut Vec::new());
}
