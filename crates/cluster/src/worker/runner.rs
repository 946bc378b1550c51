//! What runs a worker's jobs.

use advisor::idle::Idle;
use config::Preferences;
use supervisor::Supervisor;
use supervisor::runs::Runs;
use tokio::sync::{Mutex, Notify, mpsc, watch};
use wire::{ErrorCode, Event, Failure, FilePath, Job};

/// Runs jobs, one after the other: engines, or what stands in for them where the queue itself is measured.
pub trait Runner: Send + Sync + 'static {
    /// Runs a job and returns its last event; `events` hears of the others. Ends early once `stop` is true.
    fn run(
        &self,
        job: Job,
        events: mpsc::UnboundedSender<Event>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = Event> + Send;

    /// The languages of several files: an event per file as far as it comes, and why it did not come to all of them.
    fn detect(
        &self,
        job: Job,
        files: Vec<FilePath>,
        stop: watch::Receiver<bool>,
    ) -> impl Future<Output = (Vec<Event>, Option<Failure>)> + Send;

    /// Does what is to be done while no job waits; may be dropped at any moment.
    fn idle(&self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Engines, under the same rules as those of the command line.
#[derive(Debug)]
pub struct Supervised {
    supervisor: Supervisor,
    /// Where programs of this machine take turns at a device.
    runs: Option<Runs>,
    preferences: Preferences,
    idle: Mutex<Idle>,
    /// Never notified: what ends a wait is a job.
    wake: Notify,
}

impl Supervised {
    /// Runs jobs with this supervisor, which takes turns in the same folder.
    pub fn new(supervisor: Supervisor, runs: Option<Runs>, preferences: Preferences) -> Self {
        Self { supervisor, runs, preferences, idle: Mutex::default(), wake: Notify::new() }
    }
}

impl Runner for Supervised {
    async fn run(
        &self,
        job: Job,
        events: mpsc::UnboundedSender<Event>,
        mut stop: watch::Receiver<bool>,
    ) -> Event {
        self.idle.lock().await.end();
        let mut handle = self.supervisor.submit(job);
        let mut stopping = false;
        loop {
            let event = tokio::select! {
                event = handle.next() => event,
                () = raised(&mut stop), if !stopping => {
                    stopping = true;
                    handle.cancel();
                    continue;
                }
            };
            match event {
                Some(event) if event.is_last() => return event,
                // Fails where no one listens any more; the last event is what counts.
                Some(event) => drop(events.send(event)),
                None => {
                    let error =
                        Failure::new(ErrorCode::EngineFailed, "The engine stopped in the middle of the job.");
                    return Event::Failed { error, partial: None };
                }
            }
        }
    }

    async fn detect(
        &self,
        job: Job,
        files: Vec<FilePath>,
        mut stop: watch::Receiver<bool>,
    ) -> (Vec<Event>, Option<Failure>) {
        self.idle.lock().await.end();
        let engine = match self.supervisor.ready().await {
            Ok(engine) => engine,
            Err(failure) => return (Vec::new(), Some(failure)),
        };
        let device = engine.device(job.device);
        let _lease = match &self.runs {
            Some(runs) => tokio::select! {
                // A folder that can't be used is no reason not to work.
                lease = runs.lease(&device, |_| {}) => lease.ok(),
                () = raised(&mut stop) => return (Vec::new(), None),
            },
            None => None,
        };
        let mut handle = engine.detect_languages(files, job);
        let (mut answers, mut stopping) = (Vec::new(), false);
        loop {
            let event = tokio::select! {
                event = handle.next() => event,
                () = raised(&mut stop), if !stopping => {
                    stopping = true;
                    handle.cancel();
                    continue;
                }
            };
            match event {
                Some(event @ (Event::Language { .. } | Event::FileFailed { .. })) => answers.push(event),
                Some(Event::Failed { error, .. }) => return (answers, Some(error)),
                Some(event) if event.is_last() => return (answers, None),
                Some(_) => {}
                None => return (answers, None),
            }
        }
    }

    async fn idle(&self) {
        let mut idle = self.idle.lock().await;
        loop {
            idle.wait(&self.supervisor, &self.preferences, &self.wake).await;
        }
    }
}

/// Waits until it is true; for ever where it never will be.
pub(crate) async fn raised(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}
