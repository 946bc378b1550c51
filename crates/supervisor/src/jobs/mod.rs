//! Jobs that outlive their engine. A supervisor starts engines on demand,
//! keeps one warm between jobs, and where one dies, hangs or can't be trusted
//! any more it starts another, which goes on from what was reached.

mod journal_writer;
mod recovery;
mod run;
mod rungs;
mod slot;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use library::{JobKey, Journal};
use tokio::sync::{mpsc, watch};
use transcript::Span;
use wire::{ByLanguage, Description, EncodedVoice, ErrorCode, Event, Failure, Job, JobId, NO_JOB, Resume};

use crate::runs::Runs;
use crate::{Canceller, Engine, EngineOptions};
use journal_writer::JournalWriter;
use run::JobRun;
use slot::EngineSlot;

pub use rungs::{step_down, take as take_rung};
pub(crate) use rungs::{step_down_in, top};

/// From one look for an engine that a job has started to the next.
const AGAIN: Duration = Duration::from_millis(200);

/// Prepares the choice of a model for a job, before one is loaded that identifies the job's language; what it gives is then
/// asked once.
pub type ChooseModel = fn(&Job) -> ModelChoice;

/// Which model a job is to have whose language was identified, from the likely languages, the likeliest first, each with its probability: the job as
/// another model does it, and that model's name; `None`: the job's own.
pub type ModelChoice = Box<dyn FnOnce(&[(String, f32)]) -> Option<(Job, String)> + Send>;

/// How a [`Supervisor`] works.
#[derive(Debug, Clone, Default)]
pub struct SupervisorOptions {
    /// How its engines are started.
    pub engine: EngineOptions,
    /// Where jobs are written down that were added to it.
    pub journal: Option<Journal>,
    /// Where hosts take turns at a device; `None`: this one takes no turns.
    pub runs: Option<Runs>,
    /// The file of the voices that engines recognise; `None`: none. It need not exist.
    pub voices: Option<PathBuf>,
    /// Asked where a job's model is to follow from its language; `None`: every job keeps its model.
    pub choose_model: Option<ChooseModel>,
    /// For when engines are renewed; what a job may take stands in the job.
    pub memory: memory::settings::MemorySettings,
}

/// Clones share one engine. Once the last one is dropped, and the jobs with
/// it, the engine ends; [`Supervisor::shutdown`] also waits for that.
#[derive(Debug, Clone)]
pub struct Supervisor {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    engine: EngineOptions,
    journal: Option<Journal>,
    runs: Option<Runs>,
    voices: Option<PathBuf>,
    choose_model: Option<ChooseModel>,
    /// Files after which the engine is replaced; 0: never.
    renew_after: u32,
    /// Jobs take it one after the other, in the order in which they came.
    slot: tokio::sync::Mutex<EngineSlot>,
    /// The engine on it, for those who don't work with it.
    current: Mutex<Option<Arc<Engine>>>,
    closed: watch::Sender<bool>,
    latest_id: AtomicU64,
}

impl Supervisor {
    /// Starts no engine yet.
    pub fn start(options: SupervisorOptions) -> Self {
        let SupervisorOptions { engine, journal, runs, voices, choose_model, memory } = options;
        let inner = Inner {
            engine,
            journal,
            runs,
            voices,
            choose_model,
            renew_after: memory.renew_after,
            slot: tokio::sync::Mutex::default(),
            current: Mutex::default(),
            closed: watch::Sender::new(false),
            latest_id: AtomicU64::new(NO_JOB),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes sure that there is an engine: without one every job would fail alike.
    ///
    /// # Errors
    /// As [`Engine::start`]; `Cancelled` where the program is being closed.
    pub async fn ready(&self) -> Result<Arc<Engine>, Failure> {
        self.unless_closed(async { self.inner.slot.lock().await.engine(&self.inner).await }).await
    }

    /// An engine that does not answer at its start must not keep the program from ending.
    async fn unless_closed<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        let mut closed = self.inner.closed.subscribe();
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => {
                Err(Failure::new(ErrorCode::Cancelled, "The program is being closed."))
            }
            done = work => done,
        }
    }

    /// Ends the engine that is kept warm between jobs, so that its memory is free; the next job
    /// starts another. Waits for a job that is under way.
    pub async fn rest(&self) {
        self.inner.slot.lock().await.leave(&self.inner).await;
    }

    /// As [`Engine::describe`], with why it is not the CUDA engine, where
    /// there is something to explain. Starts an engine where there is none.
    ///
    /// # Errors
    /// As [`Engine::start`] and [`Engine::describe`].
    pub async fn describe(&self) -> Result<(Description, Option<String>), Failure> {
        let engine = loop {
            // Also while it works.
            if let Some(engine) = self.engine() {
                break engine;
            }
            tokio::select! {
                mut slot = self.inner.slot.lock() => break self.unless_closed(slot.engine(&self.inner)).await?,
                // A job that has the slot may be starting another engine, and then work for hours.
                () = tokio::time::sleep(AGAIN) => {}
            }
        };
        let description = engine.describe().await?;
        Ok((description, engine.backend_note().map(str::to_owned)))
    }

    /// Queues a job. Its `id` is assigned here, whatever it was. Must be
    /// called within a tokio runtime.
    pub fn submit(&self, job: Job) -> SupervisedJob {
        self.enqueue(job, None)
    }

    /// As [`Supervisor::submit`], for a job that was added to the journal. The
    /// host finishes it there once its files are written.
    pub fn submit_kept(&self, job: Job, key: JobKey) -> SupervisedJob {
        self.enqueue(job, self.inner.journal.clone().map(|journal| (journal, key)))
    }

    /// The file of the voices that its engines recognise.
    pub fn voices_file(&self) -> Option<&Path> {
        self.inner.voices.as_deref()
    }

    /// How the person sounds who speaks in `spans` of the job's file, or most in all of it where
    /// there are none. Computed beside the jobs, on the CPU, by an engine of its own: it takes less
    /// than a hundred megabytes, and the user waits for it.
    ///
    /// # Errors
    /// As [`Engine::start`]; where the file can't be decoded or has too little speech.
    pub async fn encode_voice(&self, job: Job, spans: Vec<Span>) -> Result<EncodedVoice, Failure> {
        let options = EngineOptions { cpu_only: true, ..self.inner.engine.clone() };
        self.unless_closed(async {
            let engine = Engine::start(&options).await?;
            let mut handle = engine.encode_voice(job, spans);
            let mut answer = Err(Failure::new(ErrorCode::EngineFailed, "The engine gave no answer."));
            while let Some(event) = handle.next().await {
                match event {
                    Event::Voice { voice } => answer = Ok(*voice),
                    Event::Failed { error, .. } => answer = Err(error),
                    _ => {}
                }
            }
            engine.shutdown().await;
            answer
        })
        .await
    }

    /// For a job that another machine does: it is asked when its job is to stop, and when this supervisor is shut down.
    pub fn stop_of_another_machine(&self) -> Stop {
        Stop::new(self.inner.closed.subscribe())
    }

    /// Where its jobs are written down.
    pub fn journal(&self) -> Option<&Journal> {
        self.inner.journal.as_ref()
    }

    /// The running engine, if any.
    pub fn engine(&self) -> Option<Arc<Engine>> {
        self.inner.current().clone().filter(|engine| engine.is_running())
    }

    /// Cancels every job, ends the engine and waits until it is gone: little
    /// more than two seconds at most.
    pub async fn shutdown(&self) {
        self.inner.closed.send_replace(true);
        let current = self.inner.current().take();
        if let Some(engine) = current {
            engine.shutdown().await;
        }
        // Its holder has been told to stop; an engine that was being
        // started meanwhile is ended here.
        self.inner.slot.lock().await.leave(&self.inner).await;
    }

    fn enqueue(&self, mut job: Job, kept: Option<(Journal, JobKey)>) -> SupervisedJob {
        job.id = self.inner.latest_id.fetch_add(1, Ordering::Relaxed) + 1;
        let id = job.id;
        let (to_job, events) = mpsc::unbounded_channel();
        let stop = Stop::new(self.inner.closed.subscribe());
        let writer = JournalWriter::new(kept, &job);
        let left = Arc::new(Mutex::new(Left::default()));
        let run = JobRun::new(Arc::clone(&self.inner), job, writer, to_job, stop.clone(), Arc::clone(&left));
        tokio::spawn(run.run());
        SupervisedJob { id, events, ended: false, stop, left }
    }
}

impl Inner {
    fn current(&self) -> MutexGuard<'_, Option<Arc<Engine>>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a job that ended early can go on from.
#[derive(Debug, Default)]
struct Left {
    resume: Option<Resume>,
    by_language: Option<ByLanguage>,
}

/// A job that is supervised. Dropping it before its last event cancels it.
#[derive(Debug)]
pub struct SupervisedJob {
    id: JobId,
    events: mpsc::UnboundedReceiver<Event>,
    ended: bool,
    stop: Stop,
    left: Arc<Mutex<Left>>,
}

impl SupervisedJob {
    /// As [`JobHandle::next`](crate::JobHandle::next): the next event, `None`
    /// after the last one, which always comes. Nothing is told twice, however
    /// many engines it takes.
    ///
    /// Cancel safe: no event is lost when the future is dropped.
    pub async fn next(&mut self) -> Option<Event> {
        if self.ended {
            return None;
        }
        let event = self.events.recv().await.unwrap_or_else(|| {
            let error = Failure::new(ErrorCode::EngineFailed, "The job is no longer supervised.")
                .remedy("Start the job again.");
            Event::Failed { error, partial: None }
        });
        self.ended = event.is_last();
        Some(event)
    }

    /// Asks the job to stop. Its last event follows within little more than a
    /// second: an engine that doesn't obey is replaced.
    pub fn cancel(&self) {
        self.stop.ask();
    }

    /// From where the job can be resumed, after it was cancelled or failed. `None` before its last
    /// event and where no point was reached.
    pub fn resume(&self) -> Option<Resume> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).resume.clone()
    }

    /// The model that followed from its language, once that was identified here.
    pub fn by_language(&self) -> Option<ByLanguage> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).by_language.clone()
    }

    /// For another task than the one that takes the events.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// The number of the job.
    pub fn id(&self) -> JobId {
        self.id
    }
}

impl Drop for SupervisedJob {
    fn drop(&mut self) {
        if !self.ended {
            self.cancel();
        }
    }
}

/// Stops one job, from wherever; without effect once it ended.
#[derive(Debug, Clone)]
pub struct Stop {
    asked: Arc<watch::Sender<bool>>,
    closed: watch::Receiver<bool>,
    /// Of the attempt that is under way.
    canceller: Arc<Mutex<Option<Canceller>>>,
}

impl Stop {
    fn new(closed: watch::Receiver<bool>) -> Self {
        Self { asked: Arc::new(watch::Sender::new(false)), closed, canceller: Arc::default() }
    }

    /// As [`SupervisedJob::cancel`].
    pub fn ask(&self) {
        let canceller = self.canceller.lock().unwrap_or_else(PoisonError::into_inner);
        self.asked.send_replace(true);
        if let Some(canceller) = &*canceller {
            canceller.cancel();
        }
    }

    /// An attempt begins, which is to be cancelled where the job is.
    fn reach(&self, canceller: Canceller) {
        let mut current = self.canceller.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_asked() {
            canceller.cancel();
        }
        *current = Some(canceller);
    }

    fn is_asked(&self) -> bool {
        *self.asked.borrow() || *self.closed.borrow()
    }

    /// Waits until the job or the supervisor is to stop.
    pub async fn asked(&self) {
        let (mut asked, mut closed) = (self.asked.subscribe(), self.closed.clone());
        // Neither can fail: this holds one sender, and the job's run the other.
        tokio::select! {
            _ = asked.wait_for(|asked| *asked) => {}
            _ = closed.wait_for(|closed| *closed) => {}
        }
    }
}
