//! A worker: it takes jobs for the models that fit its memory, one after the other, until it is stopped.

mod languages;
mod one;
pub(crate) use one::transcript_name;
pub mod runner;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use advisor::{JobTemplate, ModelRef};
use async_nats::jetstream;
use async_nats::jetstream::consumer::{PullConsumer, pull};
use config::Preferences;
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use transcript::Time;
use wire::{DeviceChoice, ErrorCode, Failure};

use crate::connection::{Cluster, failed};
use crate::job::{Kind, token};
use crate::placement::{Offer, offers};
use crate::record::{WorkerStatus, now};
use crate::source::sftp::Ssh;
use crate::source::spool::Spool;
use runner::{Runner, raised};

/// From one look for a job to the next: a submission wakes idle workers, and only a job whose worker died
/// comes back without a word.
const LOOK: Duration = Duration::from_secs(2);
/// From one sign of life in the list of workers to the next.
const STATUS: Duration = Duration::from_secs(5);
/// For the server to answer whether there is a job.
const ANSWER: Duration = Duration::from_secs(10);
/// Recordings whose languages are asked for together.
const LANGUAGES_AT_ONCE: usize = 16;
/// For further jobs to come after the first.
const MORE: Duration = Duration::from_millis(200);
/// After NATS could not be asked, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(5));

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// What it is called in lists.
    pub name: String,
    /// Fetched recordings lie in a folder here while they are worked on.
    pub state: PathBuf,
    /// The models whose jobs it takes, as far as they fit.
    pub models: Vec<ModelRef>,
    /// What the user set of memory and of the engine.
    pub preferences: Preferences,
    /// What computes.
    pub device: DeviceChoice,
    /// How servers with recordings are reached.
    pub ssh: Ssh,
    /// A worker that said nothing for so long has lost its job.
    pub redeliver_after: Duration,
    /// A job whose workers failed or died so often is given up.
    pub max_deliveries: u64,
}

/// What a worker does, for those who watch it.
#[derive(Debug, Clone)]
pub enum Told {
    /// A recording is here, and its job begins.
    Began {
        /// Its file name.
        name: String,
        /// Where another worker left it.
        resumed_at: Option<Time>,
    },
    /// The transcript is in NATS.
    Finished {
        /// The recording's file name.
        name: String,
        /// Its length.
        duration: Time,
        /// Seconds that it took.
        seconds: f64,
    },
    /// Another try, by this worker or another, follows.
    PutBack {
        /// The recording's file name.
        name: String,
        /// Why.
        failure: Failure,
    },
    /// No further try follows.
    GaveUp {
        /// The recording's file name.
        name: String,
        /// Why.
        failure: Failure,
    },
    /// This worker ends; another one goes on.
    HandedBack {
        /// The recording's file name.
        name: String,
    },
    /// NATS does not answer; the worker goes on as soon as it does.
    Waiting(Failure),
    /// It does again.
    Back,
}

/// A worker that is about to begin.
#[derive(Debug)]
pub struct Worker<R> {
    cluster: Cluster,
    runner: R,
    options: WorkerOptions,
    templates: HashMap<String, JobTemplate>,
    spool: Spool,
    status: Arc<Mutex<WorkerStatus>>,
    /// Of the models that fit; the latest one first, since its model is loaded.
    consumers: Vec<JobSource>,
}

/// Where jobs for a model come from.
#[derive(Debug, Clone)]
struct JobSource {
    model: String,
    kind: Kind,
    consumer: PullConsumer,
}

impl JobSource {
    /// How many jobs are taken at once.
    fn at_once(&self) -> usize {
        match self.kind {
            Kind::Transcribe => 1,
            Kind::Language => LANGUAGES_AT_ONCE,
        }
    }
}

impl<R: Runner> Worker<R> {
    /// Sweeps up what a killed worker of this machine left, and finds out which models fit. To be called before the
    /// runner's engine holds a model.
    ///
    /// # Errors
    /// Where the memory or the state folder can't be used, no model fits, or NATS refuses a consumer.
    pub async fn new(cluster: Cluster, runner: R, options: WorkerOptions) -> Result<Self, Failure> {
        let spool = Spool::open(&options.state)?;
        let (memory, offers) = offers(&options.models, &options.preferences, options.device)?;
        if !offers.iter().any(|offer| offer.fits) {
            return Err(none_fits(&offers, memory.free));
        }
        let of_model = |model: &ModelRef| {
            let template = JobTemplate::new(options.preferences.clone(), model.clone(), options.device);
            (model.name.clone(), template)
        };
        let templates = options.models.iter().map(of_model).collect();
        let status = WorkerStatus {
            name: options.name.clone(),
            pid: std::process::id(),
            device: memory.name.clone(),
            free: memory.free,
            total: memory.total,
            models: offers,
            finished: 0,
            recorded: 0.0,
            worked: 0.0,
            started: now(),
            job: None,
        };
        let status = Arc::new(Mutex::new(status));
        let mut worker = Self { cluster, runner, options, templates, spool, status, consumers: Vec::new() };
        worker.consumers = worker.make_consumers().await?;
        Ok(worker)
    }

    /// What it says of itself in lists.
    pub fn status(&self) -> WorkerStatus {
        self.lock().clone()
    }

    /// Takes jobs until `stop` is true; one that is under way then is handed back.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>, tell: impl Fn(Told) + Send + Sync) {
        let signs = SignsOfLife::start(self.cluster.clone(), Arc::clone(&self.status));
        let mut woken = None;
        let mut pause = PAUSES.0;
        let mut is_waiting = false;
        while !*stop.borrow() {
            if woken.is_none() {
                woken =
                    self.cluster.context.client().subscribe(self.cluster.subject("wake", "all")).await.ok();
            }
            match self.next().await {
                Ok(taken) => {
                    pause = PAUSES.0;
                    if std::mem::take(&mut is_waiting) {
                        tell(Told::Back);
                    }
                    match taken {
                        (Some(source), messages) => self.work(&source, messages, &stop, &tell).await,
                        (None, _) => {
                            let call = async {
                                match &mut woken {
                                    Some(calls) => drop(calls.next().await),
                                    None => std::future::pending().await,
                                }
                            };
                            tokio::select! {
                                () = raised(&mut stop) => {}
                                () = call => {}
                                () = tokio::time::sleep(LOOK) => {}
                                () = self.runner.idle() => {}
                            }
                        }
                    }
                }
                Err(failure) => {
                    if !std::mem::replace(&mut is_waiting, true) {
                        tell(Told::Waiting(failure));
                    }
                    tokio::select! {
                        () = raised(&mut stop) => {}
                        () = tokio::time::sleep(pause) => {}
                    }
                    pause = PAUSES.1.min(pause * 2);
                    if let Ok(consumers) = self.make_consumers().await {
                        self.consumers = consumers;
                    }
                }
            }
        }
        signs.end().await;
        self.cluster.flush().await;
    }

    async fn work(
        &self,
        source: &JobSource,
        messages: Vec<jetstream::Message>,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        match source.kind {
            Kind::Transcribe => {
                for message in messages {
                    self.one(&source.model, message, stop, tell).await;
                }
            }
            Kind::Language => self.languages(&source.model, messages, stop, tell).await,
        }
    }

    /// Jobs that wait, for the model that is loaded if there are any.
    async fn next(&mut self) -> Result<(Option<JobSource>, Vec<jetstream::Message>), Failure> {
        let trouble = |error: &dyn std::fmt::Display| failed("say whether there is a job", error);
        for index in 0..self.consumers.len() {
            let Some(source) = self.consumers.get(index) else { break };
            let wanted = source.at_once();
            let batch = source.consumer.fetch().max_messages(wanted).messages().await;
            let mut batch = batch.map_err(|error| trouble(&error))?;
            let mut messages = Vec::new();
            while messages.len() < wanted {
                let patience = if messages.is_empty() { ANSWER } else { MORE };
                match tokio::time::timeout(patience, batch.next()).await {
                    Ok(Some(message)) => messages.push(message.map_err(|error| trouble(&error))?),
                    Ok(None) => break,
                    Err(_) if messages.is_empty() => return Err(trouble(&"it is silent")),
                    // The server does not say that these were all.
                    Err(_) => break,
                }
            }
            if !messages.is_empty() {
                let source = source.clone();
                self.consumers.swap(0, index);
                return Ok((Some(source), messages));
            }
        }
        Ok((None, Vec::new()))
    }

    async fn make_consumers(&self) -> Result<Vec<JobSource>, Failure> {
        let mut consumers = Vec::new();
        let fitting: Vec<String> = {
            let status = self.lock();
            status.models.iter().filter(|offer| offer.fits).map(|offer| offer.model.clone()).collect()
        };
        for (model, kind) in fitting.into_iter().flat_map(|model| Kind::ALL.map(|kind| (model.clone(), kind)))
        {
            let consumer = self.cluster.jobs.create_consumer(pull::Config {
                durable_name: Some(kind.consumer(&model)),
                filter_subject: self.cluster.subject(kind.subject(), &token(&model)),
                ack_wait: self.options.redeliver_after,
                // Deliveries are counted by workers: a server that stops delivering tells no one.
                max_deliver: -1,
                max_ack_pending: -1,
                ..pull::Config::default()
            });
            let consumer = consumer.await.map_err(|error| failed("let this worker take jobs", &error))?;
            consumers.push(JobSource { model, kind, consumer });
        }
        Ok(consumers)
    }

    fn lock(&self) -> MutexGuard<'_, WorkerStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says in the list of workers that this one lives.
struct SignsOfLife {
    task: JoinHandle<()>,
    cluster: Cluster,
    key: String,
}

impl SignsOfLife {
    fn start(cluster: Cluster, status: Arc<Mutex<WorkerStatus>>) -> Self {
        let key = {
            let status = status.lock().unwrap_or_else(PoisonError::into_inner);
            format!("{}-{}", token(&status.name), status.pid)
        };
        let (workers, name) = (cluster.workers.clone(), key.clone());
        let task = tokio::spawn(async move {
            let mut interval = tokio::time::interval(STATUS);
            interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                interval.tick().await;
                let line = serde_json::to_vec(&*status.lock().unwrap_or_else(PoisonError::into_inner));
                // Where this fails, the next one comes soon.
                let _ = workers.put(&name, line.unwrap_or_default().into()).await;
            }
        });
        Self { task, cluster, key }
    }

    async fn end(self) {
        self.task.abort();
        // Where this fails, it is gone from the list half a minute later.
        let _ = tokio::time::timeout(Duration::from_secs(2), self.cluster.workers.purge(&self.key)).await;
    }
}

fn none_fits(offers: &[Offer], free: u64) -> Failure {
    use memory::bytes::human;
    let Some(smallest) = offers.iter().min_by_key(|offer| offer.needs) else {
        return Failure::new(
            ErrorCode::ModelNotFound,
            "No model is installed that this worker could take jobs for.",
        )
        .remedy("Download one with `steno models pull NAME`.");
    };
    let (needs, free) = (human(smallest.needs), human(free));
    let message = format!("No model fits: {} needs {needs}, and {free} is free.", smallest.model);
    Failure::new(ErrorCode::OutOfMemory, message).remedy("Install a smaller model, or close other programs.")
}
