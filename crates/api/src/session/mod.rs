//! What a window works with: a queue of recordings, one engine that takes them
//! one after the other, and followers that are told what changed, seldom
//! enough for a screen and complete at the end.

mod again;
mod files;
mod kept;
mod queue;
mod remembered;
mod runner;
mod save;
mod selection;
mod usage;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use files::find_sample;
pub use queue::{Changes, Ending, Entry, State, TextChange};
pub use remembered::{Exporting, Language, Remembered, Theme, WindowPlace};
pub use save::{Place, write_bytes};
pub use selection::{all_models, start_with, with_models};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use transcript::Task;
use transcript::export::{Format, Options};
pub use usage::{Forecast, MemoryChange, SeenNotice};
use wire::{Description, ErrorCode, Failure, JobId};

use crate::{EngineOptions, ModelRef, Preferences, Stop, Supervisor, SupervisorOptions};
use kept::Kept;
use queue::Queue;
use usage::Known;

/// A screen shows no more than twenty states a second to anybody's use.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(50);

/// What the next recording is transcribed with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// `None`: there is no model at all.
    pub model: Option<ModelRef>,
    /// ISO 639-1; `None`: detect.
    pub language: Option<String>,
    pub task: Task,
}

/// Clones share one queue and one engine.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    supervisor: Supervisor,
    state: Mutex<Shared>,
    kept: Mutex<Kept>,
    /// The queue's version, for those who follow it.
    version: watch::Sender<u64>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Queue,
    settings: Settings,
    /// What the user wants of memory.
    preferences: Preferences,
    /// Nothing new is begun.
    paused: bool,
    /// The job that is under way.
    running: Option<(JobId, Stop)>,
    closed: bool,
}

impl Session {
    /// Takes recordings from now on. Must be called within a tokio runtime.
    pub fn new(options: EngineOptions, settings: Settings) -> Self {
        Self::start(SupervisorOptions { engine: options, ..SupervisorOptions::default() }, settings)
    }

    /// As [`Session::new`], and what an earlier window left unfinished in the
    /// journal waits in the queue again.
    pub fn start(options: SupervisorOptions, settings: Settings) -> Self {
        let (kept, interrupted) = Kept::open(options.journal.clone());
        let inner = Arc::new(Inner {
            state: Mutex::new(Shared {
                settings,
                preferences: Preferences { memory: options.memory.clone(), ..Preferences::default() },
                ..Shared::default()
            }),
            supervisor: Supervisor::start(options),
            kept: Mutex::new(kept),
            version: watch::Sender::new(0),
            wake: Notify::new(),
        });
        let session = Self { inner };
        session.change(|shared| {
            let mut kept = session.inner.kept();
            for one in interrupted {
                let found = files::check(one.file.clone());
                let id = shared.queue.add(found.file, found.bytes, false, found.failure);
                kept.take_back(id, one);
            }
            shared.hold_or_release();
        });
        tokio::spawn(runner::run(Arc::clone(&session.inner)));
        session
    }

    /// Device, backend and codecs of the engine, which is started for this.
    /// With it, why it is not the CUDA engine, where there is something to explain.
    pub async fn describe(&self) -> Result<(Description, Option<String>), Failure> {
        self.inner.supervisor.describe().await
    }

    /// Puts files, and the recordings in folders, at the queue's end.
    pub fn add(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<JobId> {
        self.put(files::inspect(paths), false)
    }

    /// Puts the program's own recording in the queue.
    pub fn add_sample(&self, file: &Path) -> Vec<JobId> {
        self.put(vec![files::check(file.into())], true)
    }

    fn put(&self, found: Vec<files::Found>, sample: bool) -> Vec<JobId> {
        let (ids, jobs) = self.change(|shared| {
            let ids: Vec<_> = found
                .into_iter()
                .map(|found| shared.queue.add(found.file, found.bytes, sample, found.failure))
                .collect();
            shared.hold_or_release();
            // The sample is there again at a click.
            let waiting = ids.iter().filter_map(|id| shared.queue.get(*id));
            let waiting = waiting.filter(|entry| !entry.sample && !entry.state.is_over());
            let jobs: Vec<_> = waiting
                .filter_map(|entry| {
                    Some((entry.id, runner::job(entry, &shared.settings, &shared.preferences).ok()?))
                })
                .collect();
            (ids, jobs)
        });
        self.inner.kept().add(&jobs);
        ids
    }

    pub fn settings(&self) -> Settings {
        self.lock().settings.clone()
    }

    /// What already runs keeps the settings it started with.
    pub fn change_settings(&self, settings: Settings) {
        self.change(|shared| {
            shared.settings = settings;
            shared.hold_or_release();
        });
    }

    /// For what begins from now on; when engines are renewed stays as it was.
    pub fn change_preferences(&self, preferences: Preferences) {
        self.change(|shared| shared.preferences = preferences);
    }

    pub fn preferences(&self) -> Preferences {
        self.lock().preferences.clone()
    }

    /// While paused nothing new is begun; what runs goes on.
    pub fn pause(&self, paused: bool) {
        self.change(|shared| shared.paused = paused);
    }

    pub fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Gives recordings their turn before that of another, or after all others.
    pub fn reorder(&self, moved: &[JobId], before: Option<JobId>) {
        self.change(|shared| shared.queue.reorder(moved, before));
    }

    /// The user wants what is held to be transcribed with the demonstration model.
    pub fn start_anyway(&self) {
        self.change(|shared| shared.queue.hold(false));
    }

    pub fn cancel(&self, id: JobId) {
        let is_over = self.change(|shared| {
            let again = shared.queue.get(id).is_some_and(|entry| !entry.again.is_empty());
            if again {
                shared.queue.forget_again(id);
            }
            if (again || shared.queue.cancel(id))
                && let Some((running, stop)) = &shared.running
                && *running == id
            {
                stop.ask();
            }
            shared.queue.get(id).is_some_and(|entry| entry.state == State::Cancelled)
        });
        if is_over {
            self.inner.kept().finish(id, library::State::Cancelled);
        }
    }

    /// Starts over with what failed or was stopped.
    pub fn retry(&self, id: JobId) {
        self.change(|shared| {
            let Some(file) = shared.queue.get(id).map(|entry| entry.file.clone()) else { return };
            shared.queue.retry(id, files::check(file).failure);
            shared.hold_or_release();
        });
    }

    pub fn remove(&self, id: JobId) {
        self.change(|shared| shared.queue.remove(id));
        if self.lock().queue.get(id).is_none() {
            self.inner.kept().finish(id, library::State::Cancelled);
        }
    }

    /// How many recordings would be left undone by closing now.
    pub fn unfinished(&self) -> usize {
        self.lock().queue.unfinished()
    }

    /// How many texts of the user's own recordings would be lost by closing now.
    pub fn unsaved(&self) -> usize {
        self.lock().queue.unsaved()
    }

    /// Where the user's latest recording came from.
    pub fn latest_folder(&self) -> Option<PathBuf> {
        let shared = self.lock();
        let latest = shared.queue.iter().filter(|entry| !entry.sample).last()?;
        latest.file.parent().map(Path::to_path_buf)
    }

    /// The name that a dialog proposes for a transcript.
    pub fn proposed_file(&self, id: JobId, format: Format) -> Result<PathBuf, Failure> {
        let (recording, transcript) = self.result(id)?;
        Ok(save::beside(&recording, &transcript, format))
    }

    /// The name that a dialog proposes for something else about a recording.
    pub fn beside(&self, id: JobId, ending: &str) -> Result<PathBuf, Failure> {
        let shared = self.lock();
        let file = shared.queue.get(id).map(|entry| entry.file.with_extension(ending));
        file.ok_or_else(|| {
            Failure::new(ErrorCode::BadSettings, "This recording is not in the list any more.")
        })
    }

    /// Saves a transcript, whole or partial, and returns the file written.
    /// Blocks on the disk: call it where that is allowed.
    pub fn save(
        &self,
        id: JobId,
        format: Format,
        options: &Options,
        place: &Place,
    ) -> Result<PathBuf, Failure> {
        let (recording, transcript) = self.result(id)?;
        let file = save::save(&recording, &transcript, format, options, place)?;
        self.change(|shared| shared.queue.saved(id, file.clone()));
        self.inner.kept().finish(id, library::State::Finished);
        Ok(file)
    }

    fn result(&self, id: JobId) -> Result<(PathBuf, Box<transcript::Transcript>), Failure> {
        let shared = self.lock();
        let entry = shared.queue.get(id);
        entry.and_then(|entry| Some((entry.file.clone(), entry.transcript.clone()?))).ok_or_else(|| {
            Failure::new(ErrorCode::BadSettings, "There is no transcript of this recording yet.")
                .remedy("Wait until it is done.")
        })
    }

    /// Everything in the queue, then what changes in it.
    pub fn follow(&self) -> Follower {
        Follower { inner: Arc::clone(&self.inner), pace: Pace::new(&self.inner), seen: 0 }
    }

    /// All text of one recording, then what changes in it.
    pub fn follow_text(&self, id: JobId) -> TextFollower {
        TextFollower { inner: Arc::clone(&self.inner), pace: Pace::new(&self.inner), id, seen: 0, known: 0 }
    }

    /// All that was seen of one recording's memory, then what is new.
    pub fn follow_memory(&self, id: JobId) -> MemoryFollower {
        MemoryFollower {
            inner: Arc::clone(&self.inner),
            pace: Pace::new(&self.inner),
            id,
            seen: 0,
            known: Known::default(),
        }
    }

    /// Stops what runs and waits, two seconds at most, until the engine is gone.
    pub async fn close(&self) {
        self.change(|shared| {
            shared.closed = true;
            if let Some((_, stop)) = &shared.running {
                stop.ask();
            }
        });
        self.inner.supervisor.shutdown().await;
        // The user knew what would be lost by closing.
        self.inner.kept().finish_all();
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.inner.lock()
    }

    /// A change that may give the runner something to do.
    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let result = self.inner.change(change);
        self.inner.wake.notify_one();
        result
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic elsewhere leaves the queue as it was between two changes.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let mut shared = self.lock();
        let result = change(&mut shared);
        let now = shared.queue.version();
        self.version.send_if_modified(|version| std::mem::replace(version, now) != now);
        result
    }
}

impl Shared {
    /// A user's own recording is never silently transcribed with the
    /// demonstration model.
    fn hold_or_release(&mut self) {
        let demonstration = self.settings.model.as_ref().is_some_and(|model| model.demonstration);
        self.queue.hold(demonstration);
    }
}

/// Waits for changes, and a while after each.
#[derive(Debug)]
struct Pace {
    version: watch::Receiver<u64>,
    earliest: Option<Instant>,
}

impl Pace {
    fn new(inner: &Inner) -> Self {
        let mut version = inner.version.subscribe();
        version.mark_changed();
        Self { version, earliest: None }
    }

    /// `None` once the session is gone.
    async fn next(&mut self) -> Option<()> {
        self.version.changed().await.ok()?;
        if let Some(earliest) = self.earliest {
            tokio::time::sleep_until(earliest).await;
        }
        // Seen only now, so that what came during the pause is not told twice.
        self.version.mark_unchanged();
        self.earliest = Some(Instant::now() + PAUSE_BETWEEN_CHANGES);
        Some(())
    }
}

#[derive(Debug)]
pub struct Follower {
    inner: Arc<Inner>,
    pace: Pace,
    seen: u64,
}

impl Follower {
    /// At most twenty times a second; the last state is never left out.
    pub async fn next(&mut self) -> Option<Changes> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            let changes = shared.queue.changes_since(self.seen);
            self.seen = shared.queue.version();
            if !changes.changed.is_empty() || !changes.removed.is_empty() || changes.order.is_some() {
                return Some(changes);
            }
        }
    }
}

#[derive(Debug)]
pub struct TextFollower {
    inner: Arc<Inner>,
    pace: Pace,
    id: JobId,
    seen: u64,
    known: usize,
}

impl TextFollower {
    /// At most twenty times a second; `None` once the recording was removed.
    pub async fn next(&mut self) -> Option<TextChange> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            shared.queue.get(self.id)?;
            let change = shared.queue.text_since(self.id, self.seen, self.known);
            self.seen = shared.queue.version();
            if let Some(change) = change {
                self.known = change.from + change.segments.len();
                return Some(change);
            }
        }
    }
}

#[derive(Debug)]
pub struct MemoryFollower {
    inner: Arc<Inner>,
    pace: Pace,
    id: JobId,
    seen: u64,
    known: Known,
}

impl MemoryFollower {
    /// At most twenty times a second; `None` once the recording was removed.
    pub async fn next(&mut self) -> Option<MemoryChange> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            shared.queue.get(self.id)?;
            let change = shared.queue.memory_since(self.id, self.seen, self.known);
            self.seen = shared.queue.version();
            if let Some(change) = change {
                self.known = change.now;
                return Some(change);
            }
        }
    }
}

#[cfg(test)]
mod tests;
