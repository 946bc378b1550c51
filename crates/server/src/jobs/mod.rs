//! The jobs: waiting, running and ended. Those that are not over are in the journal, which alone knows how far they
//! are; those that are over are files in the server's folder ([`store`]).

mod run;
mod store;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use library::{HostKind, Identity, JobKey, Journal, JournalState, NewJob};
use serde::{Deserialize, Serialize};
use supervisor::{Stop, Supervisor};
use tokio::sync::Notify;
use transcript::Transcript;
use utoipa::ToSchema;
use wire::{ErrorCode, Event, Failure, Job, Progress};

use crate::Options;
use crate::error::{ApiError, ErrorBody};
use crate::feed::{Feed, Follower};
use crate::metrics::{Gauges, Metrics};
use crate::options::Limits;

use run::{Outcome, Turn};
use store::Store;
pub use store::{JobFolder, folder};

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Others are before it.
    Waiting,
    /// It is being transcribed.
    Running,
    /// Its transcript can be fetched.
    Finished,
    /// `error` says why.
    Failed,
    /// It was cancelled.
    Cancelled,
}

impl State {
    pub fn is_over(self) -> bool {
        !matches!(self, Self::Waiting | Self::Running)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What is known of a job besides what the engine needs. In the journal while the job is not over, then in its folder.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    pub id: String,
    /// What the client calls the recording.
    pub name: String,
    /// The client that it belongs to.
    pub client: String,
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
    /// The recording is the server's copy, which is deleted when the job is over.
    pub uploaded: bool,
    /// What the client knows it by: a second job of the same key is not made.
    #[serde(default)]
    pub key: Option<String>,
    /// A translation to English is put beside the text.
    #[serde(default)]
    pub bilingual: bool,
}

/// What is asked for besides what the engine needs.
#[derive(Debug, Default)]
pub struct Request {
    /// What the client calls the recording.
    pub name: String,
    /// The name of the model.
    pub model: String,
    pub key: Option<String>,
    pub bilingual: bool,
}

/// A job that is over.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ended {
    pub record: Record,
    pub state: State,
    /// Seconds since 1970.
    pub ended: u64,
    pub error: Option<ErrorBody>,
}

/// A job as clients see it.
#[derive(Debug, Serialize, ToSchema)]
pub struct JobView {
    /// Identifies the job.
    pub id: String,
    /// The recording's name.
    pub name: String,
    /// The client's own name for the job, where it sent one as `Idempotency-Key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it is.
    pub state: State,
    /// The model's name.
    pub model: String,
    /// When it was accepted, in seconds since 1970.
    pub created: u64,
    /// When it was over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Jobs that run or wait before it, while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<usize>,
    /// The stage, the position and the length in seconds, the speed, and the seconds left, while it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub progress: Option<Progress>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

/// All jobs of a server. Clones share them.
#[derive(Debug, Clone)]
pub struct Jobs(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    store: Store,
    journal: Journal,
    supervisor: Supervisor,
    preferences: config::Preferences,
    limits: Limits,
    metrics: Arc<Metrics>,
    shared: Mutex<Shared>,
    wake: Notify,
    /// Locked: one server at a time has the folder.
    _lock: File,
}

#[derive(Debug, Default)]
struct Shared {
    latest: u64,
    /// In the order in which they were accepted.
    all: BTreeMap<u64, Entry>,
    numbers: HashMap<String, u64>,
    /// Uploads under way, by client.
    places: HashMap<String, usize>,
    closed: bool,
}

#[derive(Debug)]
struct Entry {
    record: Record,
    state: State,
    /// Until it is over.
    going: Option<Going>,
    ended: Option<(u64, Option<ErrorBody>)>,
}

#[derive(Debug)]
struct Going {
    key: JobKey,
    job: Job,
    feed: Arc<Feed>,
    stop: Option<Stop>,
    cancelled: bool,
}

impl Jobs {
    /// Opens the folder, and takes over the jobs of a server that is gone.
    pub fn open(options: &Options, metrics: Arc<Metrics>) -> Result<Self, Failure> {
        let (store, lock) = Store::open(&options.state)?;
        let journal = options.supervisor.journal().cloned().ok_or_else(|| {
            Failure::new(
                ErrorCode::OutputUnwritable,
                "The server needs the journal of jobs, which can't be used.",
            )
            .file(options.state.as_path())
        })?;
        let mut shared = Shared::default();
        let mut known = HashSet::new();
        let ended = store.ended();
        for one in &ended {
            known.insert(one.record.id.clone());
            shared.add(Entry {
                record: one.record.clone(),
                state: one.state,
                going: None,
                ended: Some((one.ended, one.error.clone())),
            });
        }
        let listing = journal.take_over(HostKind::Server).map_err(|error| error.failure())?;
        for left in listing.jobs {
            let Ok(record) = serde_json::from_value::<Record>(left.outputs.clone()) else {
                finish(&journal, left.key, JournalState::Failed)?;
                continue;
            };
            // It was over when the server was killed; the journal had not heard of it.
            if let Some(one) = ended.iter().find(|one| one.record.id == record.id) {
                finish(&journal, left.key, one.state.journal())?;
                continue;
            }
            known.insert(record.id.clone());
            let job =
                if left.attempts > 0 { supervisor::journal::resumed(&journal, &left) } else { left.job };
            let going =
                Some(Going { key: left.key, job, feed: Arc::default(), stop: None, cancelled: false });
            shared.add(Entry { record, state: State::Waiting, going, ended: None });
        }
        for other in listing.unreadable {
            finish(&journal, other.key, JournalState::Failed)?;
        }
        // Uploads that were not complete, and what was being deleted.
        store.sweep(&known);
        let inner = Inner {
            store,
            journal,
            supervisor: options.supervisor.clone(),
            preferences: options.preferences.clone(),
            limits: options.limits.clone(),
            metrics,
            shared: Mutex::new(shared),
            wake: Notify::new(),
            _lock: lock,
        };
        let jobs = Self(Arc::new(inner));
        jobs.expire();
        Ok(jobs)
    }

    /// Room for one more job of this client, to be asked for before anything is uploaded.
    pub fn reserve(&self, client: &str) -> Result<Place, ApiError> {
        let mut shared = self.lock();
        if shared.closed {
            return Err(ApiError::stopping());
        }
        let places: usize = shared.places.values().sum();
        let waiting = shared.count(State::Waiting) + places;
        let unfinished = |entry: &&Entry| !entry.state.is_over() && entry.record.client == client;
        let own =
            shared.all.values().filter(unfinished).count() + shared.places.get(client).copied().unwrap_or(0);
        let full = |code, message: String| {
            let seconds = self.0.metrics.seconds_per_job().unwrap_or(10.0) * waiting.max(1) as f64;
            ApiError::new(StatusCode::TOO_MANY_REQUESTS, code, message)
                .after(seconds.clamp(1.0, 600.0) as u64)
        };
        if waiting >= self.0.limits.waiting {
            return Err(full("queue_full", format!("{waiting} jobs wait already. Try again later.")));
        }
        if own >= self.0.limits.jobs_per_token {
            return Err(full(
                "too_many_jobs",
                format!("{own} of your jobs are unfinished. Try again later."),
            ));
        }
        *shared.places.entry(client.to_owned()).or_default() += 1;
        Ok(Place { jobs: self.clone(), client: client.to_owned() })
    }

    /// A folder for a recording that is about to be uploaded.
    pub fn new_folder(&self) -> Result<JobFolder, ApiError> {
        self.0.store.new_folder().map_err(|error| ApiError::storage(&error))
    }

    /// Bytes that an upload may fill the disk with.
    pub fn free_space(&self) -> Option<u64> {
        self.0.store.free_space()
    }

    /// What a job is doing; `None` where the client has none of this id.
    pub fn view(&self, client: &str, id: &str) -> Option<JobView> {
        let shared = self.lock();
        let (number, entry) = shared.find(client, id)?;
        Some(shared.view(number, entry))
    }

    /// The id of the client's job of this key.
    pub fn of_key(&self, client: &str, key: &str) -> Option<String> {
        let shared = self.lock();
        let is_it =
            |entry: &&Entry| entry.record.client == client && entry.record.key.as_deref() == Some(key);
        shared.all.values().find(is_it).map(|entry| entry.record.id.clone())
    }

    /// The jobs of a client, in the order in which they were accepted.
    pub fn list(&self, client: &str) -> Vec<JobView> {
        let shared = self.lock();
        let own = shared.all.iter().filter(|(_, entry)| entry.record.client == client);
        own.map(|(number, entry)| shared.view(*number, entry)).collect()
    }

    /// The events of a job from its beginning; of one that is over, the last one. Waits for the disk.
    pub fn follow(&self, client: &str, id: &str) -> Option<Follower> {
        let (state, error) = {
            let shared = self.lock();
            let (_, entry) = shared.find(client, id)?;
            if let Some(going) = &entry.going {
                return Some(going.feed.follow());
            }
            (entry.state, entry.ended.as_ref().and_then(|(_, error)| error.clone()))
        };
        let text = self.0.store.transcript(id).map(Box::new);
        let event = match (state, text) {
            (State::Finished, Some(transcript)) => Event::Finished { transcript, renewal: None },
            (State::Cancelled, partial) => Event::Cancelled { partial },
            (_, partial) => {
                let body = error.unwrap_or_else(|| lost().body);
                let is_fault_of_request = body.kind == crate::error::BAD_REQUEST;
                let usual = if is_fault_of_request { ErrorCode::BadSettings } else { ErrorCode::Internal };
                let code = body.code.as_deref().and_then(ErrorCode::from_name).unwrap_or(usual);
                Event::Failed { error: Failure::new(code, body.message), partial }
            }
        };
        let feed = Arc::new(Feed::default());
        feed.tell(Arc::new(event));
        Some(feed.follow())
    }

    /// The text of a job that is over. Waits for the disk.
    pub fn transcript(&self, client: &str, id: &str) -> Result<Transcript, ApiError> {
        let state = self.view(client, id).ok_or_else(|| ApiError::not_found("job"))?.state;
        if !state.is_over() {
            let message = "The job is not over yet: follow /jobs/{id}/events, or try again later.";
            return Err(ApiError::new(StatusCode::CONFLICT, "not_finished", message));
        }
        self.0.store.transcript(id).ok_or_else(|| {
            let message = "The job has no text: its `error` says why.";
            ApiError::new(StatusCode::CONFLICT, "no_text", message)
        })
    }

    /// Cancels a job that is not over. Must be called within a tokio runtime.
    pub fn cancel(&self, client: &str, id: &str) {
        let mut shared = self.lock();
        let Some(number) = shared.find(client, id).map(|(number, _)| number) else { return };
        let Some(entry) = shared.all.get_mut(&number) else { return };
        let taken = if entry.state == State::Waiting { entry.take(number) } else { None };
        if let (None, Some(going)) = (&taken, &mut entry.going) {
            going.cancelled = true;
            if let Some(stop) = &going.stop {
                stop.ask();
            }
        }
        drop(shared);
        let Some(turn) = taken else { return };
        let jobs = self.clone();
        let cancelled = Outcome::Over(Box::new(Event::Cancelled { partial: None }));
        tokio::task::spawn_blocking(move || jobs.end(turn, cancelled, 0.0));
    }

    /// Cancels a job and removes it with its text.
    pub async fn remove(&self, client: &str, id: &str) -> Result<(), ApiError> {
        let not_found = || ApiError::not_found("job");
        let over = {
            let shared = self.lock();
            let (_, entry) = shared.find(client, id).ok_or_else(not_found)?;
            entry.going.as_ref().map(|going| going.feed.follow())
        };
        self.cancel(client, id);
        if let Some(mut follower) = over {
            while let Some(heard) = follower.next().await {
                if matches!(heard, crate::feed::Heard::Stopped) {
                    return Err(ApiError::stopping());
                }
            }
        }
        let (jobs, id) = (self.clone(), id.to_owned());
        let removed = tokio::task::spawn_blocking(move || jobs.forget(&id)).await;
        removed.unwrap_or(Ok(())).map_err(|error| ApiError::storage(&error))
    }

    fn forget(&self, id: &str) -> std::io::Result<()> {
        self.0.store.remove(id)?;
        let mut shared = self.lock();
        if let Some(number) = shared.numbers.remove(id) {
            shared.all.remove(&number);
        }
        Ok(())
    }

    /// Removes what was kept for long enough.
    fn expire(&self) {
        /// More than a household looks back at.
        const MOST: usize = 10_000;
        let oldest = now().saturating_sub(self.0.limits.keep.as_secs());
        let gone: Vec<String> = {
            let shared = self.lock();
            let over: Vec<_> = shared.all.values().filter(|entry| entry.state.is_over()).collect();
            let surplus = over.len().saturating_sub(MOST);
            let is_old = |entry: &Entry| entry.ended.as_ref().is_some_and(|(at, _)| *at <= oldest);
            let gone = over.iter().enumerate().filter(|(index, entry)| *index < surplus || is_old(entry));
            gone.map(|(_, entry)| entry.record.id.clone()).collect()
        };
        for id in gone {
            let _ = self.forget(&id);
        }
    }

    pub fn gauges(&self) -> Gauges {
        let shared = self.lock();
        Gauges { waiting: shared.count(State::Waiting), running: shared.count(State::Running) }
    }

    /// Ends the engine. Jobs that are not over stay in the journal.
    pub async fn stop(&self) {
        let feeds: Vec<_> = {
            let mut shared = self.lock();
            shared.closed = true;
            shared.all.values().filter_map(|entry| Some(Arc::clone(&entry.going.as_ref()?.feed))).collect()
        };
        self.0.wake.notify_one();
        feeds.iter().for_each(|feed| feed.stop());
        self.0.supervisor.shutdown().await;
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room for one more job, until it is dropped.
#[derive(Debug)]
pub struct Place {
    jobs: Jobs,
    client: String,
}

impl Place {
    /// Accepts the job: once this returns, it survives the server. Waits for the disk.
    ///
    /// `folder`: of an uploaded recording; `None` for one that is the user's own. Where the client has a job of that key
    /// already, its id is returned.
    pub fn accept(self, folder: Option<JobFolder>, job: Job, request: Request) -> Result<String, ApiError> {
        let Request { name, model, key, bilingual } = request;
        let jobs = self.jobs.clone();
        if let Some(known) = key.as_deref().and_then(|key| jobs.of_key(&self.client, key)) {
            return Ok(known);
        }
        let uploaded = folder.is_some();
        // The text of a recording that was not uploaded needs a folder too.
        let folder = folder.map_or_else(|| jobs.new_folder(), Ok)?;
        let id = folder.id().to_owned();
        let (client, created) = (self.client.clone(), now());
        let record = Record { id: id.clone(), name, client, model, created, uploaded, key, bilingual };
        let outputs = serde_json::to_value(&record).map_err(|error| ApiError::storage(&error))?;
        let identity = Identity::of(job.file.as_path()).ok();
        if jobs.lock().closed {
            return Err(ApiError::stopping());
        }
        let entry = NewJob {
            kind: HostKind::Server,
            queue_id: created,
            job: &job,
            identity: identity.as_ref(),
            outputs: &outputs,
        };
        let keys = jobs.0.journal.add(&[entry]).map_err(|error| ApiError::storage(&error.failure()))?;
        let in_journal = keys.first().copied().ok_or_else(lost)?;
        folder.keep();
        let going = Some(Going { key: in_journal, job, feed: Arc::default(), stop: None, cancelled: false });
        jobs.lock().add(Entry { record, state: State::Waiting, going, ended: None });
        jobs.0.wake.notify_one();
        Ok(id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut shared = self.jobs.lock();
        if let Some(count) = shared.places.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                shared.places.remove(&self.client);
            }
        }
    }
}

impl Entry {
    /// Its turn has come: nothing else takes it.
    fn take(&mut self, number: u64) -> Option<Turn> {
        let going = self.going.as_ref()?;
        self.state = State::Running;
        Some(Turn {
            number,
            record: self.record.clone(),
            key: going.key,
            job: going.job.clone(),
            feed: Arc::clone(&going.feed),
        })
    }
}

impl Shared {
    fn add(&mut self, entry: Entry) {
        self.latest += 1;
        self.numbers.insert(entry.record.id.clone(), self.latest);
        self.all.insert(self.latest, entry);
    }

    fn find(&self, client: &str, id: &str) -> Option<(u64, &Entry)> {
        let number = *self.numbers.get(id)?;
        let entry = self.all.get(&number).filter(|entry| entry.record.client == client)?;
        Some((number, entry))
    }

    fn count(&self, state: State) -> usize {
        self.all.values().filter(|entry| entry.state == state).count()
    }

    fn view(&self, number: u64, entry: &Entry) -> JobView {
        let Record { id, name, model, created, key, .. } = entry.record.clone();
        let before = || self.all.range(..number).filter(|(_, other)| !other.state.is_over()).count();
        JobView {
            id,
            name,
            key,
            state: entry.state,
            model,
            created,
            ended: entry.ended.as_ref().map(|(at, _)| *at),
            position: (entry.state == State::Waiting).then(before),
            progress: entry
                .going
                .as_ref()
                .filter(|_| entry.state == State::Running)
                .and_then(|it| it.feed.progress()),
            error: entry.ended.as_ref().and_then(|(_, error)| error.clone()),
        }
    }
}

impl State {
    fn journal(self) -> JournalState {
        match self {
            Self::Failed => JournalState::Failed,
            Self::Cancelled => JournalState::Cancelled,
            Self::Waiting | Self::Running | Self::Finished => JournalState::Finished,
        }
    }
}

fn finish(journal: &Journal, key: JobKey, state: JournalState) -> Result<(), Failure> {
    journal.finish(key, state).map_err(|error| error.failure())
}

/// Something is missing that was there.
fn lost() -> ApiError {
    ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "The job was lost.")
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

/// Where the recording of a job lies in its folder.
pub fn recording(folder: &Path) -> PathBuf {
    folder.join("recording")
}
