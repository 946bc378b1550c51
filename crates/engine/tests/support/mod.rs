//! An engine process as a host sees it.
// Each test file uses a part of it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command as Process, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wire::{Command, Envelope, Event, JobId, PROTOCOL_VERSION, read_frame, write_frame};

pub const SECOND: Duration = Duration::from_secs(1);

/// Longer than anything takes on a starved machine; reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(60);

pub fn real() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_steno-engine"))
}

pub fn double() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_steno-engine-double"))
}

pub struct Engine {
    process: Child,
    input: Option<ChildStdin>,
    events: Receiver<Envelope>,
    stop: mpsc::Sender<()>,
    errors: Option<JoinHandle<String>>,
}

impl Engine {
    pub fn start(program: &Path) -> Self {
        Self::start_with(program, &[])
    }

    pub fn start_with(program: &Path, environment: &[(&str, &str)]) -> Self {
        let mut process = Process::new(program)
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut output = process.stdout.take().unwrap();
        let mut error = process.stderr.take().unwrap();
        let (sender, events) = mpsc::channel();
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            while let Some(event) = read_frame(&mut output).expect("the events are no longer readable") {
                if sender.send(event).is_err() || stopped.try_recv().is_ok() {
                    return;
                }
            }
        });
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            error.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        Self { input: process.stdin.take(), process, events, stop, errors: Some(errors) }
    }

    pub fn greeted(program: &Path) -> Self {
        Self::greeted_with(program, &[])
    }

    pub fn greeted_with(program: &Path, environment: &[(&str, &str)]) -> Self {
        let mut engine = Self::start_with(program, environment);
        engine.send(Command::Hello { protocol: PROTOCOL_VERSION });
        assert!(matches!(engine.next(), Event::Hello { .. }));
        engine
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn send(&mut self, command: Command) {
        write_frame(self.input.as_mut().unwrap(), &command).unwrap();
    }

    /// For an engine that may be gone already.
    pub fn try_send(&mut self, command: Command) {
        let _ = write_frame(self.input.as_mut().unwrap(), &command);
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Has the reading end closed after one more event.
    pub fn stop_reading(&mut self) {
        self.stop.send(()).unwrap();
    }

    pub fn next(&mut self) -> Event {
        self.next_envelope().body
    }

    fn next_envelope(&mut self) -> Envelope {
        self.next_or_end().expect("the engine ended")
    }

    pub fn next_or_end(&mut self) -> Option<Envelope> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(event) => Some(event),
            Err(mpsc::RecvTimeoutError::Disconnected) => None,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("the engine says nothing"),
        }
    }

    /// Skips events up to one that `wanted` makes something of.
    pub fn until<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            if let Some(found) = wanted(self.next()) {
                return found;
            }
        }
    }

    /// As [`Engine::until`], of one job's events, or for `None` of the engine's own.
    pub fn until_of<T>(&mut self, job: Option<JobId>, wanted: impl Fn(Event) -> Option<T>) -> T {
        loop {
            let envelope = self.next_envelope();
            if envelope.job == job
                && let Some(found) = wanted(envelope.body)
            {
                return found;
            }
        }
    }

    pub fn until_finished(&mut self, wanted: JobId) {
        loop {
            let Envelope { job, body } = self.next_envelope();
            match body {
                Event::Finished { .. } if job == Some(wanted) => return,
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
    }

    pub fn is_running(&mut self) -> bool {
        self.process.try_wait().unwrap().is_none()
    }

    pub fn end(&mut self) -> ExitStatus {
        let started = Instant::now();
        loop {
            if let Some(status) = self.process.try_wait().unwrap() {
                return status;
            }
            assert!(started.elapsed() < PATIENCE, "the engine does not end");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// All of it; waits for the engine's end.
    pub fn standard_error(mut self) -> String {
        self.errors.take().unwrap().join().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// False for a process that ended, also where nobody has collected it yet.
pub fn is_running(id: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

pub fn wait_for_end(id: u32, deadline: Instant) {
    while is_running(id) {
        assert!(Instant::now() < deadline, "process {id} lives on");
        thread::sleep(Duration::from_millis(2));
    }
}

pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The sample over and over, with pauses: several windows.
pub fn recording(folder: &Path) -> PathBuf {
    let sample =
        audio::prepare(&project("tests/data/sample.flac"), &audio::PrepareOptions::default(), &mut |_, _| {
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    let mut samples = vec![0.0; sample.pcm.len() as usize];
    sample.pcm.read(0, &mut samples).unwrap();
    let once = samples.iter().map(|value| (value * 32767.0) as i16).chain([0; 40_000]);
    let pcm: Vec<u8> = once.flat_map(i16::to_le_bytes).collect::<Vec<u8>>().repeat(9);
    let mut wav = Vec::new();
    wav.extend(b"RIFF");
    wav.extend((36 + pcm.len() as u32).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16u32.to_le_bytes());
    for field in [1u16, 1] {
        wav.extend(field.to_le_bytes());
    }
    for field in [16_000u32, 32_000] {
        wav.extend(field.to_le_bytes());
    }
    for field in [2u16, 16] {
        wav.extend(field.to_le_bytes());
    }
    wav.extend(b"data");
    wav.extend((pcm.len() as u32).to_le_bytes());
    wav.extend(&pcm);
    let path = folder.join("recording.wav");
    std::fs::write(&path, wav).unwrap();
    path
}
