//! The process that decodes recordings for listening: started when a host
//! first listens, started anew when it is gone, ended with the host.

use std::fmt::Write as _;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use library::Identity;
use transcript::Span;
use wire::{ErrorCode, Failure, Opened, PlayerAnswer, PlayerCommand, Probed};

use config::folders;

use crate::{find, platform};
use config::Priority;

/// Opening a recording whose container says nothing of its length takes a
/// pass over it, at a hundred times its speed.
const PATIENCE: Duration = Duration::from_secs(300);
/// A part at the end of ten hours may take a pass over them.
const CLIPPING: Duration = Duration::from_secs(900);
/// The beginning of a recording is read at once, unless its disk is away.
const PROBING: Duration = Duration::from_secs(10);
/// For it to end by itself.
const LAST_MOMENTS: Duration = Duration::from_millis(500);

/// At most one process, and one recording in it.
#[derive(Debug, Default)]
pub struct Player {
    /// `None`: the one that [`find::find_player`] finds.
    program: Option<PathBuf>,
    /// Where it serves; `None`: where a port is free.
    port: Option<u16>,
    running: Mutex<Option<Running>>,
}

/// Below the ports that systems give to connections, above those of services.
const PORTS: std::ops::Range<u16> = 20_000..32_768;
/// More than a few taken ones in a row are no chance.
const PORT_ATTEMPTS: u64 = 100;

/// A port of this machine that nothing serves now, to be a player's for as long as a host
/// runs. Random, so that hosts of several users don't meet.
pub fn free_port() -> Option<u16> {
    let random = RandomState::new();
    let at = |attempt| PORTS.start + (random.hash_one(attempt) % u64::from(PORTS.end - PORTS.start)) as u16;
    (0..PORT_ATTEMPTS).map(at).find(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

impl Player {
    /// A player whose executable is `program`.
    pub fn with_program(program: PathBuf) -> Self {
        Self { program: Some(program), ..Self::default() }
    }

    /// A player that serves at this port alone, so that a page may be kept from all others.
    pub fn at_port(port: Option<u16>) -> Self {
        Self { port, ..Self::default() }
    }

    /// Makes a recording's sound available in place of the one before. A player
    /// that died is started anew, once. Blocks: call it where that is allowed.
    ///
    /// `track`: as `Job::track`.
    ///
    /// # Errors
    /// `PlayerFailed`, and those of opening the recording.
    pub fn open(&self, path: &Path, track: Option<usize>) -> Result<Opened, Failure> {
        // Said by us too, since an identity can't be had of what is not there.
        let keep = kept_file(path, track);
        let command = PlayerCommand::Open { path: path.into(), track, keep: keep.map(Into::into) };
        match self.converse(path, 2, |process| process.open(&command))? {
            PlayerAnswer::Opened(opened) => Ok(opened),
            _ => Err(strange(path)),
        }
    }

    /// Whether a recording can be decoded, as far as its beginning tells, and
    /// what that says of it. Blocks, ten seconds at most.
    ///
    /// # Errors
    /// As [`Player::open`].
    pub fn probe(&self, path: &Path) -> Result<Probed, Failure> {
        let command = PlayerCommand::Probe { path: path.into() };
        match self.converse(path, 1, |process| process.ask(&command, PROBING))? {
            PlayerAnswer::Probed(probed) => Ok(probed),
            _ => Err(strange(path)),
        }
    }

    /// Writes a part of a recording as a sound file, WAV or FLAC by the name's ending, whole or not
    /// at all. Blocks.
    ///
    /// # Errors
    /// As [`Player::open`]; where the part is none of the recording's, or the file can't be written.
    pub fn clip(
        &self,
        path: &Path,
        track: Option<usize>,
        span: Span,
        out: &Path,
        replace: bool,
    ) -> Result<(), Failure> {
        let command = PlayerCommand::Clip { path: path.into(), track, span, out: out.into(), replace };
        match self.converse(path, 1, |process| process.ask(&command, CLIPPING))? {
            PlayerAnswer::Clipped => Ok(()),
            _ => Err(strange(path)),
        }
    }

    /// Ends the process until it is asked for again.
    pub fn rest(&self) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// A process that has died is started anew while there are attempts left.
    fn converse(
        &self,
        path: &Path,
        attempts: usize,
        say: impl Fn(&mut Running) -> io::Result<PlayerAnswer>,
    ) -> Result<PlayerAnswer, Failure> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let mut died = String::new();
        for _ in 0..attempts {
            let process = match &mut *running {
                Some(process) => process,
                none => {
                    let program = self.program.clone().map_or_else(find::find_player, Ok)?;
                    none.insert(Running::start(&program, self.port)?)
                }
            };
            match say(process) {
                Ok(PlayerAnswer::Failed { failure }) => return Err(failure),
                Ok(answer) => return Ok(answer),
                Err(error) => died = error.to_string(),
            }
            *running = None;
        }
        Err(failed(format!("The player stopped while it opened this recording: {died}."), path))
    }
}

fn strange(path: &Path) -> Failure {
    failed("The player gave an unexpected answer.".to_owned(), path)
}

fn failed(text: String, path: &Path) -> Failure {
    Failure::new(ErrorCode::PlayerFailed, text)
        .file(path)
        .remedy("The recording may be damaged. Try again, or convert it to wav or flac first.")
}

/// Where what is learned of a recording's track is kept, by what is in it and not by
/// its name.
fn kept_file(path: &Path, track: Option<usize>) -> Option<PathBuf> {
    let identity = Identity::of(path).ok()?;
    let mut name = format!("{:x}-", identity.bytes);
    for byte in &identity.digest[..16] {
        let _ = write!(name, "{byte:02x}");
    }
    if let Some(track) = track {
        let _ = write!(name, "-{track}");
    }
    Some(folders::cache()?.join("steno/sound").join(name + ".json"))
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// `None` once it is to end.
    input: Option<ChildStdin>,
    answers: Receiver<String>,
    /// What it serves.
    token: Option<String>,
}

impl Running {
    fn start(program: &Path, port: Option<u16>) -> Result<Self, Failure> {
        let cannot = |error: io::Error| {
            Failure::new(ErrorCode::PlayerFailed, format!("The player can't be started: {error}."))
                .file(program)
                .remedy("Install Steno again, or set STENO_PLAYER to the path of a `steno-player`.")
        };
        let mut command = Command::new(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some(port) = port {
            command.arg("--port").arg(port.to_string());
        }
        platform::lead_own_group(&mut command, Priority::default());
        let mut child = command.spawn().map_err(cannot)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (lines, answers) = mpsc::channel();
        let process = Self { child, input, answers, token: None };
        let output = output.ok_or_else(|| cannot(io::ErrorKind::BrokenPipe.into()))?;
        let reader = move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if lines.send(line).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("player-output".into()).spawn(reader).map_err(cannot)?;
        Ok(process)
    }

    fn open(&mut self, command: &PlayerCommand) -> io::Result<PlayerAnswer> {
        if let Some(token) = self.token.take() {
            self.ask(&PlayerCommand::Close { token }, PATIENCE)?;
        }
        let answer = self.ask(command, PATIENCE)?;
        if let PlayerAnswer::Opened(opened) = &answer {
            self.token = Some(opened.token.clone());
        }
        Ok(answer)
    }

    fn ask(&mut self, command: &PlayerCommand, patience: Duration) -> io::Result<PlayerAnswer> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut line = serde_json::to_string(command)?;
        line.push('\n');
        input.write_all(line.as_bytes())?;
        input.flush()?;
        let answer = self.answers.recv_timeout(patience).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => io::Error::other("it gives no answer"),
            mpsc::RecvTimeoutError::Disconnected => {
                let how = self.child.wait().map(platform::describe_status);
                io::Error::other(how.map_or("it is gone".to_owned(), |how| format!("it {how}")))
            }
        })?;
        Ok(serde_json::from_str(&answer)?)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It ends when its input does; a decoder that hangs is no reason to wait.
        self.input = None;
        let deadline = Instant::now() + LAST_MOMENTS;
        while !platform::has_ended(&mut self.child) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        platform::kill_group(&mut self.child);
        let _ = self.child.wait();
    }
}
