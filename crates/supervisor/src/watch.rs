//! The thread that watches one engine process. Everything about that process
//! (its jobs, who waits for what, when it last gave a sign of life) is owned
//! by this thread alone; everybody else sends it messages.

use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use memory::death::{self, Death, Evidence};
use memory::shortage::Shortage;
use tokio::sync::{mpsc::UnboundedSender, oneshot};
use transcript::Segment;
use wire::{
    Command, Description, Envelope, ErrorCode, Event, Failure, FilePath, JobId, PROTOCOL_VERSION, exit_status,
};

use crate::Limits;
use crate::engine::Hello;
use crate::find::EngineProgram;
use crate::process::{End, Process, ProcessEvent};
use config::Priority;

/// What a host wants of an engine.
#[derive(Debug)]
pub enum Request {
    Tell(Command),
    Run { id: JobId, file: FilePath, command: Command, events: UnboundedSender<Event> },
    Cancel(JobId),
    Describe(oneshot::Sender<Result<Description, Failure>>),
    Shutdown(Option<oneshot::Sender<()>>),
}

#[derive(Debug)]
enum Message {
    Request(Request),
    Process(ProcessEvent),
}

/// The way to the watching thread.
#[derive(Debug, Clone)]
pub struct Link {
    inbox: Sender<Message>,
    /// Set when the process is gone, before its jobs are told.
    end: Arc<OnceLock<(Failure, Death)>>,
}

impl Link {
    /// Dropped where the engine is gone: who waits for an answer then sees its
    /// channel close and asks for the [`Link::reason`].
    pub fn send(&self, request: Request) {
        let _ = self.inbox.send(Message::Request(request));
    }

    pub fn is_open(&self) -> bool {
        self.end.get().is_none()
    }

    /// What the process died of; `None` while it runs.
    pub fn death(&self) -> Option<Death> {
        self.end.get().map(|(_, death)| *death)
    }

    /// Why there is no answer.
    pub fn reason(&self) -> Failure {
        self.end.get().map(|(failure, _)| failure.clone()).unwrap_or_else(|| {
            Failure::new(ErrorCode::EngineFailed, "The engine is no longer watched.")
                .remedy("Start the job again.")
        })
    }
}

/// Starts an engine and the thread that watches it. `hello` learns whether it
/// can be talked to.
pub fn start(
    candidate: &EngineProgram,
    priority: Priority,
    limits: Limits,
    hello: oneshot::Sender<Result<Hello, Failure>>,
) -> Result<Link, Failure> {
    let (inbox, messages) = mpsc::channel();
    let process = Process::start(candidate, priority, inbox.clone(), Message::Process)?;
    let link = Link { inbox, end: Arc::new(OnceLock::new()) };
    let now = Instant::now();
    let watch = Watch {
        program: candidate.program.display().to_string(),
        messages,
        process,
        end: Arc::clone(&link.end),
        greeting: Greeting::Awaited { hello: Some(hello), deadline: now + limits.greeting },
        limits,
        jobs: BTreeMap::new(),
        askers: VecDeque::new(),
        leaving: None,
        shortage: Shortage::now(),
        ping: Ping { nonce: 0, sent: now, answered: now, work: 0, moved: now },
        looked: now,
        verdict: None,
    };
    std::thread::Builder::new().name("engine-watch".into()).spawn(move || watch.run()).map_err(|error| {
        Failure::new(ErrorCode::EngineFailed, format!("The engine can't be watched: {error}."))
            .remedy("Close other programs and try again.")
    })?;
    Ok(link)
}

struct Watch {
    program: String,
    limits: Limits,
    messages: Receiver<Message>,
    process: Process,
    end: Arc<OnceLock<(Failure, Death)>>,
    greeting: Greeting,
    jobs: BTreeMap<JobId, Watched>,
    /// In the order in which the engine will answer them.
    askers: VecDeque<oneshot::Sender<Result<Description, Failure>>>,
    leaving: Option<Leaving>,
    /// How the machine's memory stood a moment ago.
    shortage: Shortage,
    ping: Ping,
    /// When the clock was last looked at.
    looked: Instant,
    /// Set when this thread, not the engine, decided that it ends.
    verdict: Option<Verdict>,
}

enum Greeting {
    Awaited { hello: Option<oneshot::Sender<Result<Hello, Failure>>>, deadline: Instant },
    Done,
}

struct Watched {
    file: FilePath,
    /// Whether an event is what the command asked for.
    is_answer: fn(&Event) -> bool,
    events: UnboundedSender<Event>,
    cancelled: Option<Instant>,
    /// Of what was sent for it, in bytes.
    kept: u64,
}

struct Leaving {
    deadline: Instant,
    waiting: Vec<oneshot::Sender<()>>,
}

struct Ping {
    nonce: u64,
    sent: Instant,
    answered: Instant,
    work: u64,
    /// When `work` last grew, an event came, or there was nothing to do.
    moved: Instant,
}

#[derive(Debug, Clone, PartialEq)]
enum Verdict {
    Silent(String),
    Stranger(Failure),
    Garbled(String),
    /// A cancelled job went on.
    CancelTimeout,
    /// It was asked to shut down and did not.
    ShutdownTimeout,
    /// It sent more than these bytes for one job.
    Flood(u64),
}

/// A pause of the watching thread of this much more than it asked for means
/// that the whole host stood still (suspended, stopped, starved): the engine
/// is not to blame for having said nothing.
const PAUSE: Duration = Duration::from_secs(2);

impl Watch {
    fn run(mut self) {
        let patience = loop {
            match self.messages.recv_timeout(self.time_to_next_look()) {
                Ok(Message::Request(request)) => self.handle_request(request),
                Ok(Message::Process(ProcessEvent::Event(event))) => self.handle_event(event),
                Ok(Message::Process(ProcessEvent::End(problem))) => {
                    if let Some(problem) = problem {
                        self.verdict.get_or_insert(Verdict::Garbled(problem));
                    }
                    break Duration::from_secs(1);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Its reading thread died without a word.
                Err(RecvTimeoutError::Disconnected) => break Duration::ZERO,
            }
            self.look_at_the_clock();
            if self.verdict.is_some() {
                break Duration::ZERO;
            }
        };
        self.reap(patience);
    }

    fn handle_request(&mut self, request: Request) {
        match request {
            Request::Tell(command) => self.process.tell(command),
            Request::Run { id, file, command, events } => {
                if self.jobs.is_empty() {
                    self.ping.moved = Instant::now();
                }
                self.jobs.insert(id, Watched::new(file, &command, events));
                self.process.tell(command);
            }
            Request::Cancel(id) => {
                if let Some(job) = self.jobs.get_mut(&id).filter(|job| job.cancelled.is_none()) {
                    job.cancelled = Some(Instant::now());
                    self.process.tell(Command::Cancel { id });
                }
            }
            Request::Describe(asker) => {
                self.askers.push_back(asker);
                self.process.tell(Command::Describe);
            }
            // It has nothing to lose, and may never read that it is to go.
            Request::Shutdown(_) if matches!(self.greeting, Greeting::Awaited { .. }) => {
                self.verdict.get_or_insert(Verdict::ShutdownTimeout);
            }
            Request::Shutdown(waiting) => {
                let leaving = self.leaving.get_or_insert_with(|| {
                    self.process.tell(Command::Shutdown);
                    Leaving { deadline: Instant::now() + self.limits.shutdown, waiting: Vec::new() }
                });
                leaving.waiting.extend(waiting);
            }
        }
    }

    fn handle_event(&mut self, Envelope { job, body: event }: Envelope) {
        if let Greeting::Awaited { hello, .. } = &mut self.greeting {
            match greet(event, &self.program) {
                Ok(introduction) => {
                    if let Some(hello) = hello.take() {
                        let _ = hello.send(Ok(introduction));
                    }
                    self.greeting = Greeting::Done;
                    self.ping.answered = Instant::now();
                }
                Err(failure) => self.verdict = Some(Verdict::Stranger(failure)),
            }
            return;
        }
        match event {
            Event::Pong { nonce, work } => {
                let now = Instant::now();
                if nonce == self.ping.nonce {
                    self.ping.answered = now;
                }
                if work != self.ping.work {
                    self.ping.work = work;
                    self.ping.moved = now;
                }
            }
            Event::Description(description) => {
                if let Some(asker) = self.askers.pop_front() {
                    let _ = asker.send(Ok(*description));
                }
            }
            Event::Failed { error, .. } if job.is_none() => {
                if let Some(asker) = self.askers.pop_front() {
                    let _ = asker.send(Err(error));
                }
            }
            event => {
                if let Some(id) = job {
                    self.pass_on(id, event);
                }
            }
        }
    }

    fn pass_on(&mut self, id: JobId, event: Event) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        self.ping.moved = Instant::now();
        job.kept = job.kept.saturating_add(kept_bytes(&event));
        if job.kept > self.limits.text {
            self.verdict.get_or_insert(Verdict::Flood(self.limits.text));
            return;
        }
        if event.is_last() {
            let is_end = matches!(event, Event::Cancelled { .. } | Event::Failed { .. });
            if !is_end && !(job.is_answer)(&event) {
                let problem = "it answered something that was not asked".to_owned();
                self.verdict.get_or_insert(Verdict::Garbled(problem));
                return;
            }
            if let Some(job) = self.jobs.remove(&id) {
                let _ = job.events.send(event);
            }
        } else {
            // Fails where the receiver is gone: then its handle was dropped, which
            // cancels it.
            let _ = job.events.send(event);
        }
    }

    fn time_to_next_look(&self) -> Duration {
        let now = Instant::now();
        let mut next = match &self.greeting {
            Greeting::Awaited { deadline, .. } => *deadline,
            Greeting::Done => self.ping.sent + self.limits.ping_interval,
        };
        let cancels = self.jobs.values().filter_map(|job| job.cancelled);
        if let Some(first) = cancels.min() {
            next = next.min(first + self.limits.cancel);
        }
        if let Some(leaving) = &self.leaving {
            next = next.min(leaving.deadline);
        }
        next.saturating_duration_since(now)
    }

    fn look_at_the_clock(&mut self) {
        let now = Instant::now();
        if now - self.looked > self.limits.ping_interval + PAUSE {
            self.ping.answered = now;
            self.ping.moved = now;
        }
        self.looked = now;

        if let Greeting::Awaited { deadline, .. } = &self.greeting {
            if now >= *deadline {
                self.verdict.get_or_insert(Verdict::Silent("It did not introduce itself".into()));
            }
        } else {
            self.check_life(now);
        }
        let is_overdue =
            |asked: Option<Instant>| asked.is_some_and(|asked| now >= asked + self.limits.cancel);
        if self.jobs.values().any(|job| is_overdue(job.cancelled)) {
            self.verdict.get_or_insert(Verdict::CancelTimeout);
        }
        if self.leaving.as_ref().is_some_and(|leaving| now >= leaving.deadline) {
            self.verdict.get_or_insert(Verdict::ShutdownTimeout);
        }
    }

    fn check_life(&mut self, now: Instant) {
        if self.jobs.is_empty() {
            self.ping.moved = now;
        }
        if now - self.ping.answered > self.limits.pong {
            let text = format!("It did not respond for {} s", self.limits.pong.as_secs());
            self.verdict = Some(Verdict::Silent(text));
        } else if now - self.ping.moved > self.limits.standstill {
            let text = format!("It made no progress for {} s", self.limits.standstill.as_secs());
            self.verdict = Some(Verdict::Silent(text));
        } else if now >= self.ping.sent + self.limits.ping_interval {
            self.shortage = Shortage::now();
            self.ping.sent = now;
            self.ping.nonce += 1;
            self.process.tell(Command::Ping { nonce: self.ping.nonce });
        }
    }

    /// Makes sure that the process is gone and tells everybody who waits.
    fn reap(mut self, patience: Duration) {
        let end = self.process.end(patience);
        let death = self.death(&end);
        let failure = self.failure(&end.how, death);
        // The engine runs jobs in the order of their ids: the first one left is
        // the one that it was at.
        let running = self.jobs.keys().next().copied();
        let too_greedy = self.verdict.is_none() && end.status == Some(exit_status::DECODING_LIMIT);
        let _ = self.end.set((failure.clone(), death));
        // What was asked in the meantime waits for an answer as well.
        while let Ok(message) = self.messages.try_recv() {
            match message {
                Message::Request(Request::Run { id, file, command, events }) => {
                    self.jobs.insert(id, Watched::new(file, &command, events));
                }
                Message::Request(Request::Cancel(id)) => {
                    if let Some(job) = self.jobs.get_mut(&id) {
                        job.cancelled = Some(Instant::now());
                    }
                }
                // The others see their channel close.
                Message::Request(_) | Message::Process(_) => {}
            }
        }
        if let Greeting::Awaited { hello: Some(hello), .. } = self.greeting {
            let _ = hello.send(Err(failure.clone()));
        }
        for (id, job) in self.jobs {
            // The job or the engine was asked to end, and it did.
            let event = if job.cancelled.is_some() || self.leaving.is_some() {
                Event::Cancelled { partial: None }
            } else if too_greedy && running == Some(id) {
                Event::Failed { error: damaged().file(job.file.clone()), partial: None }
            } else {
                Event::Failed { error: failure.clone().file(job.file.clone()), partial: None }
            };
            let _ = job.events.send(event);
        }
        for asker in self.askers {
            let _ = asker.send(Err(failure.clone()));
        }
        for waiting in self.leaving.into_iter().flat_map(|leaving| leaving.waiting) {
            let _ = waiting.send(());
        }
    }

    fn death(&self, end: &End) -> Death {
        match &self.verdict {
            // That it was killed here tells nothing about what was wrong with it.
            Some(Verdict::Silent(_) | Verdict::Garbled(_) | Verdict::Stranger(_)) => Death::Crash,
            Some(Verdict::CancelTimeout | Verdict::ShutdownTimeout | Verdict::Flood(_)) => Death::Wanted,
            None if self.leaving.is_some() => Death::Wanted,
            // It closed its output and lived on.
            None if end.forced => Death::Crash,
            None => {
                let stderr_tail = &self.process.last_words();
                match death::classify(death::End {
                    code: end.status,
                    signal: end.signal,
                    wanted: false,
                    memory_was_short: self.shortage.explains_kill(Shortage::now()),
                    stderr_tail,
                }) {
                    // With success, although it was not asked to end.
                    Death::Wanted => Death::Crash,
                    death => death,
                }
            }
        }
    }

    fn failure(&self, how: &str, death: Death) -> Failure {
        let (code, message) = match &self.verdict {
            Some(Verdict::Stranger(failure)) => return failure.clone(),
            Some(Verdict::Silent(text)) => (ErrorCode::EngineSilent, format!("{text} and was stopped.")),
            Some(Verdict::Garbled(problem)) => (
                ErrorCode::EngineFailed,
                format!("It {how}; its last message can't be understood: {problem}."),
            ),
            Some(Verdict::Flood(bytes)) => {
                let megabytes = bytes >> 20;
                let text = format!(
                    "It sent more than {megabytes} MB of text, which no recording has, and was stopped."
                );
                (ErrorCode::EngineFailed, text)
            }
            Some(Verdict::CancelTimeout) => {
                (ErrorCode::EngineFailed, "It was stopped because a cancelled job did not stop.".into())
            }
            Some(Verdict::ShutdownTimeout) => {
                (ErrorCode::EngineFailed, "It was stopped because it did not shut down when asked to.".into())
            }
            None if self.leaving.is_some() => (ErrorCode::EngineFailed, "It was shut down.".into()),
            None if matches!(death, Death::OutOfMemory(Evidence::Killed)) => {
                (ErrorCode::EngineFailed, format!("It {how} while the machine ran out of memory."))
            }
            None if death == Death::Killed => {
                let text = "It was killed by the system or by another program (signal 9, SIGKILL); memory was not short.";
                (ErrorCode::EngineFailed, text.into())
            }
            None => (ErrorCode::EngineFailed, format!("It {how}.")),
        };
        let mut text = format!("The engine stopped. {message}");
        let lines = self.process.last_lines();
        if !lines.is_empty() {
            text.push_str(" Its last output: ");
            text.push_str(&lines.join(" | "));
        }
        Failure::new(code, text).remedy(format!(
            "Try again. If it happens again, report it with this text. The engine is {}.",
            self.program
        ))
    }
}

impl Watched {
    fn new(file: FilePath, command: &Command, events: UnboundedSender<Event>) -> Self {
        Self { file, is_answer: answer_of(command), events, cancelled: None, kept: 0 }
    }
}

/// Which event is the command's answer where its job is done.
fn answer_of(command: &Command) -> fn(&Event) -> bool {
    match command {
        Command::DetectLanguages { .. } => |event| matches!(event, Event::LanguagesDone),
        Command::Quantise(_) => |event| matches!(event, Event::Quantised { .. }),
        Command::EncodeVoice(_) => |event| matches!(event, Event::Voice { .. }),
        Command::Adapt(_) => |event| matches!(event, Event::Adapted { .. }),
        Command::EmbedTexts(_) => |event| matches!(event, Event::TextsEmbedded { .. }),
        _ => |event| matches!(event, Event::Finished { .. }),
    }
}

/// About what a host keeps of an event until the job is over, in bytes.
fn kept_bytes(event: &Event) -> u64 {
    /// Of a segment or a word besides its text: times, numbers, the vector's own.
    const SEGMENT: usize = 256;
    const WORD: usize = 64;
    let of_segment = |segment: &Segment| {
        let words: usize = segment.words.iter().map(|word| WORD + word.text.len()).sum();
        SEGMENT + segment.text.len() + segment.raw_text.as_ref().map_or(0, String::len) + words
    };
    let bytes = match event {
        Event::Segment { segment } => of_segment(segment),
        Event::Reached { discarded, .. } => SEGMENT + discarded.iter().map(of_segment).sum::<usize>(),
        Event::Notice { notice } => SEGMENT + notice.text.len(),
        Event::Prepared { speech, .. } => size_of_val(speech.as_slice()),
        Event::Vectors { vectors, .. } => vectors.iter().map(|one| size_of_val(one.vector.as_slice())).sum(),
        Event::Memory { .. } | Event::Ladder { .. } | Event::Rung { .. } => SEGMENT,
        _ => 0,
    };
    bytes as u64
}

/// Says what an engine could not, which ended at the limit of its allocator.
fn damaged() -> Failure {
    Failure::new(
        ErrorCode::AudioBroken,
        "Decoding this file takes more memory than any recording needs: the file is damaged or malicious.",
    )
    .remedy("Convert it to another format with a program that can still play it.")
}

/// Reads an engine's first event.
fn greet(event: Event, program: &str) -> Result<Hello, Failure> {
    match event {
        Event::Hello { protocol: PROTOCOL_VERSION, engine, backend, pid } => {
            Ok(Hello { version: engine, backend, pid })
        }
        Event::Hello { protocol, engine, .. } => Err(Failure::new(
            ErrorCode::ProtocolMismatch,
            format!(
                "The engine {engine} speaks version {protocol} of the protocol, this program version \
                 {PROTOCOL_VERSION}."
            ),
        )
        .file(program)
        .remedy("Install window, command line and engine of the same version of Steno.")),
        Event::Failed { error, .. } => Err(error),
        _ => Err(Failure::new(
            ErrorCode::ProtocolMismatch,
            "This program does not introduce itself as an engine.",
        )
        .file(program)
        .remedy("Set STENO_ENGINE to the path of a `steno-engine`.")),
    }
}
