use std::collections::VecDeque;
use std::io::{self, Read};
use std::process::{Child, Command as Program, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use wire::{Command, Envelope, ErrorCode, Failure, read_frame, write_frame};

use crate::cards::ORDER;
use crate::find::EngineProgram;
use crate::platform;
use config::Priority;

/// What the threads that read from an engine tell the one that watches it.
#[derive(Debug)]
pub enum ProcessEvent {
    Event(Envelope),
    /// Its output closed; the text says so where it could not be read.
    End(Option<String>),
}

/// How a process ended.
#[derive(Debug)]
pub struct End {
    /// `None` where a signal ended it.
    pub status: Option<i32>,
    pub signal: Option<i32>,
    /// It did not end by itself.
    pub forced: bool,
    /// To follow "it".
    pub how: String,
}

/// A child process with a thread for each of its three streams, so that none
/// of them can hold up another.
#[derive(Debug)]
pub struct Process {
    child: Child,
    commands: Sender<Command>,
    last_words: Arc<LastWords>,
    words_ended: Receiver<()>,
}

impl Process {
    pub fn start<M: Send + 'static>(
        candidate: &EngineProgram,
        priority: Priority,
        inbox: Sender<M>,
        wrap: impl Fn(ProcessEvent) -> M + Send + 'static,
    ) -> Result<Self, Failure> {
        let mut program = Program::new(&candidate.program);
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        program.env(ORDER.0, ORDER.1);
        if let Some(path) = &candidate.library_path {
            program.env("LD_LIBRARY_PATH", path);
        }
        platform::lead_own_group(&mut program, priority);
        let mut child = program.spawn().map_err(|error| cannot_start(candidate, &error))?;

        // Kept out of `child`, each moves to its thread and closes with it.
        let (Some(mut input), Some(mut output), Some(error)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(cannot_start(candidate, &io::Error::other("it has no streams")));
        };
        let (commands, to_write) = mpsc::channel::<Command>();
        let last_words = Arc::new(LastWords::default());
        let (words_end, words_ended) = mpsc::channel();
        let mut process = Self { child, commands, last_words: Arc::clone(&last_words), words_ended };

        let threads = [
            spawn("engine-input", move || {
                for command in to_write {
                    // That it is gone is seen at its other end.
                    if write_frame(&mut input, &command).is_err() {
                        return;
                    }
                }
            }),
            spawn("engine-output", move || {
                let end = loop {
                    match read_frame(&mut output) {
                        Ok(Some(event)) => {
                            if inbox.send(wrap(ProcessEvent::Event(event))).is_err() {
                                return;
                            }
                        }
                        Ok(None) => break None,
                        Err(error) => break Some(error.to_string()),
                    }
                };
                let _ = inbox.send(wrap(ProcessEvent::End(end)));
            }),
            spawn("engine-errors", move || {
                last_words.listen(error);
                drop(words_end);
            }),
        ];
        match threads.into_iter().collect::<io::Result<()>>() {
            Ok(()) => Ok(process),
            Err(error) => {
                process.end(Duration::ZERO);
                Err(cannot_start(candidate, &error))
            }
        }
    }

    pub fn tell(&self, command: Command) {
        // Fails where the input is closed already: see above.
        let _ = self.commands.send(command);
    }

    /// Ends the process and everything that it started, by force after
    /// `patience`.
    pub fn end(&mut self, patience: Duration) -> End {
        let deadline = Instant::now() + patience;
        while !platform::has_ended(&mut self.child) && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        let forced = !platform::has_ended(&mut self.child);
        // Before the process is collected: until then its number, which is
        // also its group's, can't become another process's.
        platform::kill_group(&mut self.child);
        let status = self.child.wait();
        // What it wrote may still be on its way through the pipe.
        let limit = Duration::from_millis(500);
        if let Err(RecvTimeoutError::Timeout) = self.words_ended.recv_timeout(limit) {
            self.last_words.add(b"\n(its standard error is still open)\n");
        }
        match status {
            Ok(status) => End {
                status: status.code(),
                signal: memory::platform::signal_of(status),
                forced,
                how: platform::describe_status(status),
            },
            Err(error) => {
                let how = format!("ended; how is unknown: {error}");
                End { status: None, signal: None, forced, how }
            }
        }
    }

    /// The last 64 KiB that it wrote on standard error.
    pub fn last_words(&self) -> String {
        self.last_words.text()
    }

    /// The last lines of that.
    pub fn last_lines(&self) -> Vec<String> {
        self.last_words.lines(5)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        platform::kill_group(&mut self.child);
        let _ = self.child.wait();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.into()).spawn(work).map(drop)
}

fn cannot_start(candidate: &EngineProgram, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::NotFound => ErrorCode::EngineNotFound,
        _ => ErrorCode::EngineFailed,
    };
    Failure::new(code, format!("The engine can't be started: {error}."))
        .file(candidate.program.as_path())
        .remedy("Install Steno again, or set STENO_ENGINE to the path of a `steno-engine`.")
}

/// The end of what an engine wrote on standard error. The end, since that is
/// where a crash explains itself.
#[derive(Debug, Default)]
struct LastWords(Mutex<VecDeque<u8>>);

const LAST_WORDS_BYTES: usize = 64 << 10;

/// Of a line that is shown.
const LINE_CHARS: usize = 500;

impl LastWords {
    fn listen(&self, mut from: impl Read) {
        let mut buffer = [0; 4096];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(count) => self.add(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn add(&self, bytes: &[u8]) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(bytes);
        let surplus = kept.len().saturating_sub(LAST_WORDS_BYTES);
        kept.drain(..surplus);
    }

    fn text(&self) -> String {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn lines(&self, count: usize) -> Vec<String> {
        let text = self.text();
        let lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let first = lines.len().saturating_sub(count);
        lines[first..].iter().map(|line| line.chars().take(LINE_CHARS).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_ones() {
        let words = LastWords::default();
        let long: String = (0..20_000).map(|n| format!("line {n}\n")).collect();
        words.listen(long.as_bytes());
        words.listen(&b"\xffabort\n\n  \n"[..]);
        assert_eq!(words.lines(2), ["line 19999", "\u{fffd}abort"]);
        assert!(words.0.lock().unwrap().len() <= LAST_WORDS_BYTES);
    }

    #[test]
    fn nothing_said_is_no_line() {
        assert!(LastWords::default().lines(5).is_empty());
    }
}
