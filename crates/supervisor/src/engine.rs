use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use memory::Mark;
use memory::death::Death;
use tokio::sync::{mpsc, oneshot};
use transcript::Span;
use wire::{
    Adapt, Backend, Command, Description, DeviceChoice, EmbedTexts, EncodeVoice, ErrorCode, Event, Failure,
    FilePath, Job, JobId, KnownVoice, NO_JOB, PROTOCOL_VERSION, Quantise, TextRole,
};

use crate::Limits;
use crate::cards;
use crate::find::{self, EngineProgram, EnginePrograms};
use crate::memory_log::MemoryLog;
use crate::progress::JobProgress;
use crate::runs::{BusyGuard, RegisteredEngine, Runs};
use crate::status::Gpus;
use crate::watch::{self, Link, Request};
use config::Priority;

/// How an engine is started.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// The engine's executable; `None`: the one that [`find_engine`](crate::find_engine) finds.
    pub program: Option<PathBuf>,
    /// Never start the CUDA engine, whatever is installed.
    pub cpu_only: bool,
    /// Of its process.
    pub priority: Priority,
    /// How long to wait for it.
    pub limits: Limits,
}

/// One running engine process. Dropping it ends the process and what it was
/// doing; [`Engine::shutdown`] also waits for that.
#[derive(Debug)]
pub struct Engine {
    link: OwnedLink,
    hello: Hello,
    program: PathBuf,
    backend_note: Option<String>,
    latest_id: AtomicU64,
    /// The card of jobs that name none.
    card: OnceLock<usize>,
    /// In the user's run folder; `None` where there is none to write to.
    entry: Option<RegisteredEngine>,
}

/// How the engine introduced itself.
#[derive(Debug, Clone)]
pub(crate) struct Hello {
    pub version: String,
    pub backend: Backend,
    pub pid: u32,
}

impl Engine {
    /// Finds, starts and greets an engine. Where the CUDA engine can't start,
    /// the CPU's serves and [`Engine::backend_note`] says why.
    ///
    /// Fails with `EngineNotFound`, `EngineFailed` (it ended; the message has
    /// its last words), `EngineSilent` or `ProtocolMismatch`.
    ///
    /// # Errors
    /// `EngineNotFound`, `EngineFailed` (it ended; the message has
    /// its last words), `EngineSilent` or `ProtocolMismatch`.
    pub async fn start(options: &EngineOptions) -> Result<Self, Failure> {
        Self::try_start(options).await.map_err(|(failure, _)| failure)
    }

    /// As [`Engine::start`]; with what it died of, where it had been started.
    pub(crate) async fn try_start(options: &EngineOptions) -> Result<Self, (Failure, Option<Death>)> {
        let found = match &options.program {
            Some(program) => EnginePrograms::only(program.clone()),
            None => find::engines(&find::SearchContext::of_this_process(options.cpu_only))
                .map_err(|failure| (failure, None))?,
        };
        Self::try_first(found, options).await
    }

    /// As [`Engine::start`], among engines that were already found.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn start_first(found: EnginePrograms, limits: &Limits) -> Result<Self, Failure> {
        let options = EngineOptions { limits: limits.clone(), ..EngineOptions::default() };
        Self::try_first(found, &options).await.map_err(|(failure, _)| failure)
    }

    async fn try_first(
        found: EnginePrograms,
        options: &EngineOptions,
    ) -> Result<Self, (Failure, Option<Death>)> {
        let mut note = found.note;
        let mut candidates = found.candidates.into_iter().peekable();
        while let Some(candidate) = candidates.next() {
            match Self::start_candidate(&candidate, options).await {
                Ok(engine) => return Ok(Self { backend_note: note, ..engine }),
                Err((failure, _)) if candidates.peek().is_some() => {
                    let text = format!("The CPU computes because the CUDA engine did not start: {failure}");
                    cards::note_refusal(
                        &candidate.program,
                        Some(format!("{}{failure}", cards::DID_NOT_START)),
                    );
                    note = Some(text);
                }
                Err(failed) => return Err(failed),
            }
        }
        Err((Failure::new(ErrorCode::EngineNotFound, "There is no engine to start."), None))
    }

    async fn start_candidate(
        candidate: &EngineProgram,
        options: &EngineOptions,
    ) -> Result<Self, (Failure, Option<Death>)> {
        let (hello, greeting) = oneshot::channel();
        // Owned from here on: a start whose caller is gone leaves no
        // process behind.
        let started = watch::start(candidate, options.priority, options.limits.clone(), hello);
        let link = started.map_err(|failure| (failure, None))?;
        let mut link = OwnedLink { link, has_greeted: false };
        link.send(Request::Tell(Command::Hello { protocol: PROTOCOL_VERSION }));
        let hello = greeting.await.unwrap_or_else(|_| Err(link.reason()));
        let hello = hello.map_err(|failure| (failure, link.death()))?;
        link.has_greeted = true;
        cards::note_start(&candidate.program);
        let device = if hello.backend == Backend::Cuda { "cuda:0" } else { "cpu" };
        let entry = Runs::of_this_user().and_then(|runs| runs.register(hello.pid, device).ok());
        Ok(Self {
            link,
            hello,
            program: candidate.program.clone(),
            backend_note: None,
            latest_id: AtomicU64::new(NO_JOB),
            card: OnceLock::new(),
            entry,
        })
    }

    /// Devices, codecs and versions. From a busy engine: as they were when it
    /// was last asked, or, where it never was, after its job.
    ///
    /// # Errors
    /// Where the engine ended or can't say.
    pub async fn describe(&self) -> Result<Description, Failure> {
        let (answer, description) = oneshot::channel();
        self.link.send(Request::Describe(answer));
        let description = description.await.unwrap_or_else(|_| Err(self.link.reason()))?;
        cards::note(&self.program, &description);
        Ok(description)
    }

    /// Queues a job. Its `id` is assigned here, whatever it was.
    pub fn transcribe(&self, job: Job) -> JobHandle {
        let progress = JobProgress::new(Box::new(job.clone()));
        let mut handle = self.attempt(job);
        handle.progress = Some(progress);
        handle
    }

    /// As [`Engine::transcribe`], for one of several attempts at a job, whose
    /// progress the caller keeps: a transcript that the engine did not add to
    /// its last event is not added by the handle either.
    pub(crate) fn attempt(&self, mut job: Job) -> JobHandle {
        job.id = self.next_id();
        job.device = self.choice(job.device);
        let job = Box::new(job);
        self.run(&job.clone(), Command::Transcribe(job))
    }

    /// People whom the jobs that follow find among the speakers, instead of those named before.
    pub fn know_voices(&self, voices: Vec<KnownVoice>) {
        self.link.send(Request::Tell(Command::KnowVoices { voices }));
    }

    /// Queues the encoding of the voice of the person who speaks in `spans` of the job's file, or
    /// most in all of it where there are none. The last event is `Voice`, `Failed` or `Cancelled`.
    pub fn encode_voice(&self, mut job: Job, spans: Vec<Span>) -> JobHandle {
        job.id = self.next_id();
        self.run(&job.clone(), Command::EncodeVoice(Box::new(EncodeVoice { job, spans })))
    }

    /// Queues the embedding of texts with `job`'s model, device and memory settings; the job's file
    /// is not looked at. `Vectors` events, then `TextsEmbedded`, `Failed` or `Cancelled`.
    pub fn embed_texts(&self, mut job: Job, role: TextRole, texts: Vec<String>) -> JobHandle {
        job.id = self.next_id();
        job.device = self.choice(job.device);
        self.run(&job.clone(), Command::EmbedTexts(Box::new(EmbedTexts { job, role, texts })))
    }

    /// Queues an adaptation; its id is assigned here. `Adapting` events, then `Adapted`, `Failed` or
    /// `Cancelled`.
    pub fn adapt(&self, mut asked: Adapt) -> JobHandle {
        asked.job.id = self.next_id();
        asked.job.device = self.choice(asked.job.device);
        self.run(&asked.job.clone(), Command::Adapt(Box::new(asked)))
    }

    /// Queues the detection of each file's language, with `job`'s model,
    /// device and channels; the job's own file is not looked at. One
    /// `Language` or `FileFailed` event per file, then `LanguagesDone`.
    pub fn detect_languages(&self, files: Vec<FilePath>, mut job: Job) -> JobHandle {
        job.id = self.next_id();
        job.device = self.choice(job.device);
        let job = Box::new(job);
        self.run(&job.clone(), Command::DetectLanguages { id: job.id, files, job })
    }

    /// Queues the making of a model: `output` is a folder that is not there
    /// yet. The last event is `Quantised`, `Failed` or `Cancelled`.
    pub fn quantise(&self, model: &Path, precision: memory::Precision, output: &Path) -> JobHandle {
        let id = self.next_id();
        let job = Job::new(id, output, model);
        let asked = Quantise { id, model: model.into(), precision, output: output.into() };
        self.run(&job, Command::Quantise(Box::new(asked)))
    }

    /// Ends the engine, its job with it, and waits until the process is gone:
    /// two seconds at most.
    pub async fn shutdown(&self) {
        let (gone, wait) = oneshot::channel();
        self.link.send(Request::Shutdown(Some(gone)));
        let _ = wait.await;
    }

    /// Why the CPU computes although this machine has or might have a GPU, in
    /// one sentence; `None` where there is nothing to explain.
    pub fn backend_note(&self) -> Option<&str> {
        self.backend_note.as_deref()
    }

    /// What it computes with.
    pub fn backend(&self) -> Backend {
        self.hello.backend
    }

    /// The version of Steno that it is of.
    pub fn version(&self) -> &str {
        &self.hello.version
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.hello.pid
    }

    /// Its executable.
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// False once the process is gone: every further job would fail.
    pub fn is_running(&self) -> bool {
        self.link.is_open()
    }

    /// What it died of; `None` while it runs. Known before its jobs end.
    pub fn death(&self) -> Option<Death> {
        self.link.death()
    }

    fn next_id(&self) -> JobId {
        self.latest_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn run(&self, job: &Job, command: Command) -> JobHandle {
        let (to_handle, events) = mpsc::unbounded_channel();
        let id = job.id;
        let model = job.model.as_path().file_name().unwrap_or_default().to_string_lossy();
        let at_work = self.entry.as_ref().map(|entry| entry.begin(&self.device(job.device), &model));
        let log = MemoryLog::of(job);
        self.link.send(Request::Run { id, file: job.file.clone(), command, events: to_handle });
        let canceller = Canceller { id, link: self.link.link.clone() };
        JobHandle { events, ended: false, canceller, at_work, log, progress: None }
    }

    /// The device that a job computes on: `cpu` or `cuda:N`.
    pub fn device(&self, choice: DeviceChoice) -> String {
        match (self.backend(), choice) {
            (Backend::Cpu, _) | (_, DeviceChoice::Cpu) => "cpu".into(),
            (Backend::Cuda, DeviceChoice::Auto) => format!("cuda:{}", self.card()),
            (Backend::Cuda, DeviceChoice::Cuda(number) | DeviceChoice::First(number)) => {
                format!("cuda:{number}")
            }
        }
    }

    /// The card of jobs that name none: the one that recommendation and fit speak of.
    fn card(&self) -> usize {
        let choose = || Gpus::now(Vec::new()).card(DeviceChoice::Auto).and_then(|card| card.number);
        *self.card.get_or_init(|| choose().unwrap_or(0))
    }

    /// What the engine is told: of several cards which one. The first one is what it takes itself.
    fn choice(&self, choice: DeviceChoice) -> DeviceChoice {
        match choice {
            DeviceChoice::Auto if self.backend() == Backend::Cuda && self.card() > 0 => {
                DeviceChoice::First(self.card())
            }
            choice => choice,
        }
    }
}

/// Ends the engine when dropped.
#[derive(Debug)]
struct OwnedLink {
    link: Link,
    /// Before that the engine is killed.
    has_greeted: bool,
}

impl std::ops::Deref for OwnedLink {
    type Target = Link;

    fn deref(&self) -> &Link {
        &self.link
    }
}

impl Drop for OwnedLink {
    fn drop(&mut self) {
        /// For a process to be gone that was killed; reached only where the system is at its end.
        const GONE: Duration = Duration::from_secs(1);

        self.link.send(Request::Shutdown(None));
        // The host may be about to end, and an engine that hangs does not notice that.
        let since = Instant::now();
        while !self.has_greeted && self.link.is_open() && since.elapsed() < GONE {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A job in an engine. Dropping it before its last event cancels it.
#[derive(Debug)]
pub struct JobHandle {
    events: mpsc::UnboundedReceiver<Event>,
    ended: bool,
    canceller: Canceller,
    at_work: Option<BusyGuard>,
    log: Option<MemoryLog>,
    /// `None` for an attempt, whose caller keeps it, and for other commands.
    progress: Option<JobProgress>,
}

impl JobHandle {
    /// The next event, `None` after the last one: `Finished`, `LanguagesDone`,
    /// `Voice`, `TextsEmbedded`, `Quantised`, `Failed` or `Cancelled`. One of those always comes, also where the
    /// engine dies or must be ended; what it had written by then is in
    /// `partial`.
    ///
    /// Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let mut event = self
            .events
            .recv()
            .await
            .unwrap_or_else(|| Event::Failed { error: self.canceller.link.reason(), partial: None });
        self.ended = event.is_last();
        self.note(&event);
        self.add_partial(&mut event);
        Some(event)
    }

    /// Adds what there is of the transcript to a last event that an engine
    /// ended without.
    fn add_partial(&mut self, event: &mut Event) {
        let Some(progress) = &mut self.progress else { return };
        progress.handle_event(event);
        if let Event::Failed { partial: partial @ None, .. }
        | Event::Cancelled { partial: partial @ None, .. } = event
        {
            *partial = progress.partial();
        }
    }

    /// Keeps the job's memory log and what others see of the engine.
    fn note(&mut self, event: &Event) {
        let mark = match event {
            Event::Memory { sample } => Some(Mark::Sample((**sample).clone())),
            Event::Notice { notice } => wire::notice::to_memory(notice).map(Mark::Notice),
            _ => None,
        };
        if let (Some(log), Some(mark)) = (&mut self.log, &mark) {
            log.write(mark);
        }
        if let (Some(at_work), Some(Mark::Sample(sample))) = (&self.at_work, &mark)
            && let Some(levels) = sample.levels
        {
            at_work.levels(levels);
        }
        if self.ended {
            self.at_work = None;
        }
    }

    /// Asks the job to stop. Its last event follows within little more than a
    /// second: an engine that doesn't obey is ended.
    pub fn cancel(&self) {
        self.canceller.cancel();
    }

    /// For another task than the one that takes the events.
    pub fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// The number of the job.
    pub fn id(&self) -> JobId {
        self.canceller.id
    }
}

impl Drop for JobHandle {
    fn drop(&mut self) {
        if !self.ended {
            self.cancel();
        }
    }
}

/// Cancels one job, from wherever; without effect once it ended.
#[derive(Debug, Clone)]
pub struct Canceller {
    id: JobId,
    link: Link,
}

impl Canceller {
    /// Asks the job to stop. Its last event follows within little more than a
    /// second: an engine that doesn't obey is ended.
    pub fn cancel(&self) {
        self.link.send(Request::Cancel(self.id));
    }
}
