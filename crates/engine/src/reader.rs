use std::fmt::Display;
use std::io::{BufReader, Read, Write};
use std::process;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use wire::{
    Backend, Command, Description, Envelope, ErrorCode, Event, Failure, PROTOCOL_VERSION, exit_status,
    read_frame,
};

use crate::device::{self, Device};
use crate::ending::Ending;
use crate::output::Output;
use crate::queue::{Cancelled, Queue, Work};
use crate::{panics, platform};

/// How often the watcher looks whether the host still lives.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Serves one host until its commands end. `make` is called on the device
/// thread, again after a panic.
pub fn serve<D: Device>(
    (input, output): (impl Read, impl Write + Send + 'static),
    backend: Backend,
    make: impl Fn() -> D + Send + 'static,
) -> ! {
    panics::install_hook();
    platform::offer_self_to_the_out_of_memory_killer();

    let queue = Arc::new(Queue::default());
    let described = Arc::new(Described::default());
    let ending = Arc::new(Ending::new(Arc::clone(&queue)));
    let started = start_threads(&queue, &described, &ending, output, make);
    let output = started.unwrap_or_else(|error| {
        eprintln!("steno-engine: its threads can't be started: {error}");
        process::exit(1)
    });

    let mut reader =
        Reader { queue, described, ending: Arc::clone(&ending), output, backend, greeted: false };
    let mut input = BufReader::new(input);
    loop {
        match read_frame(&mut input) {
            Ok(Some(command)) => reader.handle_command(command),
            Ok(None) => ending.end(0),
            Err(error) => reader.refuse(
                exit_status::USAGE,
                Failure::new(
                    ErrorCode::ProtocolMismatch,
                    format!("The engine can't read its commands: {error}."),
                )
                .remedy("It is started by the window or by the command line of the same version of Steno."),
            ),
        }
    }
}

fn start_threads<D: Device>(
    queue: &Arc<Queue>,
    described: &Arc<Described>,
    ending: &Arc<Ending>,
    output: impl Write + Send + 'static,
    make: impl Fn() -> D + Send + 'static,
) -> std::io::Result<Output> {
    let when_broken = Arc::clone(ending);
    let output = Output::start(output, move || when_broken.end(0))?;
    ending.flush_before(output.clone());
    watch_host(Arc::clone(ending))?;
    device::start(Arc::clone(queue), output.clone(), Arc::clone(described), make)?;
    Ok(output)
}

/// The end of the input tells of the host's death, except where another
/// process inherited the other end of that pipe, and late where one of the
/// host's threads ends late. So the host itself is looked at as well.
/// `PR_SET_PDEATHSIG` would be quicker but fires when the *thread* that started
/// the engine ends, and a host may well have started it from a thread of a pool
/// that shrinks.
fn watch_host(ending: Arc<Ending>) -> std::io::Result<()> {
    let host = platform::host();
    thread::Builder::new().name("watcher".into()).spawn(move || {
        while host.lives() {
            thread::sleep(WATCH_INTERVAL);
        }
        ending.end(0)
    })?;
    Ok(())
}

struct Reader {
    queue: Arc<Queue>,
    described: Arc<Described>,
    ending: Arc<Ending>,
    output: Output,
    backend: Backend,
    greeted: bool,
}

impl Reader {
    fn handle_command(&mut self, command: Command) {
        match command {
            Command::Hello { protocol } => self.greet(protocol),
            _ if !self.greeted => self.refuse(exit_status::PROTOCOL, mismatch("no version at all")),
            Command::Ping { nonce } => self.tell(Event::Pong { nonce, work: self.queue.work() }),
            Command::Describe => match self.described.latest() {
                // Rather a little old than after an hour's job. Where there is
                // none yet it waits: finding out takes the device thread up to
                // a second, too much to spend before every first job.
                Some(description) if self.queue.is_running() => {
                    self.tell(Event::Description(Box::new(description)));
                }
                _ => self.enqueue(Work::Describe),
            },
            Command::Transcribe(job) => self.enqueue(Work::Transcribe(job)),
            Command::DetectLanguages { id, files, job } => {
                self.enqueue(Work::DetectLanguages { id, files, job });
            }
            Command::Quantise(asked) => self.enqueue(Work::Quantise(asked)),
            Command::KnowVoices { voices } => self.enqueue(Work::KnowVoices(voices)),
            Command::EncodeVoice(asked) => self.enqueue(Work::EncodeVoice(asked)),
            Command::Adapt(asked) => self.enqueue(Work::Adapt(asked)),
            Command::EmbedTexts(asked) => self.enqueue(Work::EmbedTexts(asked)),
            Command::Cancel { id } => {
                if self.queue.cancel(id) == Cancelled::Waiting {
                    self.output.send(Envelope::of_job(id, Event::Cancelled { partial: None }));
                }
            }
            Command::Shutdown => self.ending.end(0),
        }
    }

    fn greet(&mut self, protocol: u32) {
        self.tell(Event::Hello {
            protocol: PROTOCOL_VERSION,
            engine: env!("CARGO_PKG_VERSION").into(),
            backend: self.backend,
            pid: process::id(),
        });
        if protocol != PROTOCOL_VERSION {
            self.refuse(exit_status::PROTOCOL, mismatch(format!("version {protocol}")));
        }
        self.greeted = true;
    }

    fn enqueue(&self, work: Work) {
        let job = work.id();
        if !self.queue.push(work) {
            self.output.send(Envelope { job, body: Event::Cancelled { partial: None } });
        }
    }

    /// Sends an event that concerns the engine and no job.
    fn tell(&self, event: Event) {
        self.output.send(Envelope::of_engine(event));
    }

    fn refuse(&self, status: i32, error: Failure) -> ! {
        eprintln!("steno-engine: {error}");
        self.tell(Event::Failed { error, partial: None });
        self.ending.end(status)
    }
}

fn mismatch(theirs: impl Display) -> Failure {
    Failure::new(
        ErrorCode::ProtocolMismatch,
        format!("The engine speaks version {PROTOCOL_VERSION} of the protocol, the host {theirs}."),
    )
    .remedy("Install window, command line and engine of the same version of Steno.")
}

/// The latest description, for those who ask while the device is busy.
#[derive(Debug, Default)]
pub struct Described(Mutex<Option<Description>>);

impl Described {
    pub fn remember(&self, description: &Description) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(description.clone());
    }

    pub fn latest(&self) -> Option<Description> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
