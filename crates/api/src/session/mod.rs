//! What a window works with: a queue of recordings, one engine that takes them
//! one after the other, and followers that are told what changed, seldom
//! enough for a screen and complete at the end.

mod again;
mod files;
mod folders;
mod kept;
mod length;
mod queue;
mod remembered;
mod runner;
mod save;
mod selection;
mod settings;
mod turns;
mod usage;
mod work;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use files::find_sample;
pub use folders::{Watched, WatchedFolder, Watching};
pub use queue::{Changes, Ending, Entry, State, TextChange};
pub use remembered::{Exporting, Language, Remembered, Switches, Theme, WindowPlace};
pub use save::{Place, write_bytes};
pub use selection::{all_models, start_with, with_models};
pub use settings::{Decoding, MOST_BEAMS, Preset, Settings, Stored, rename_preset, save_preset};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use transcript::export::{Format, Options};
pub use usage::{Forecast, MemoryChange, SeenNotice};
use wire::{Description, ErrorCode, Failure, JobId};

pub use work::{Work, WorkFollower};

use crate::{EngineOptions, Preferences, Stop, Supervisor, SupervisorOptions};
use kept::{Kept, Outputs};
use queue::Queue;
use usage::Known;

/// A screen shows no more than twenty states a second to anybody's use.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(50);

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
    /// Somebody should ask how long recordings are.
    unmeasured: Notify,
    watched: watch::Sender<Vec<Watched>>,
    /// The watched folders should be looked at now.
    look: Notify,
    runtime: tokio::runtime::Handle,
}

/// Where recordings come from.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    User,
    /// The program itself.
    Sample,
    Watched(&'a Path),
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
        Self::start_watching(options, settings, Watching::default())
    }

    /// As [`Session::start`], with folders looked at in another rhythm.
    pub fn start_watching(options: SupervisorOptions, settings: Settings, watching: Watching) -> Self {
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
            unmeasured: Notify::new(),
            watched: watch::Sender::new(Vec::new()),
            look: Notify::new(),
            runtime: tokio::runtime::Handle::current(),
        });
        let session = Self { inner };
        session.change(|shared| {
            let mut kept = session.inner.kept();
            for one in interrupted {
                let found = files::check(one.file.clone());
                let id = shared.queue.add(found.file, found.bytes, false, found.failure);
                if let Some(folder) = &one.outputs.folder {
                    shared.queue.set_watched(id, folder.0.clone());
                }
                let own = one.outputs.own.clone();
                shared.queue.set_own(id, own.map(Stored::settings));
                kept.take_back(id, one);
            }
            shared.hold_or_release();
        });
        tokio::spawn(runner::run(Arc::clone(&session.inner)));
        tokio::spawn(length::run(Arc::clone(&session.inner)));
        tokio::spawn(folders::run(Arc::clone(&session.inner), watching));
        session
    }

    /// Device, backend and codecs of the engine, which is started for this.
    /// With it, why it is not the CUDA engine, where there is something to explain.
    pub async fn describe(&self) -> Result<(Description, Option<String>), Failure> {
        self.inner.supervisor.describe().await
    }

    /// Puts files, and the recordings in folders, at the queue's end.
    pub fn add(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<JobId> {
        self.put(files::inspect(paths), Origin::User)
    }

    /// Puts the program's own recording in the queue.
    pub fn add_sample(&self, file: &Path) -> Vec<JobId> {
        self.put(vec![files::check(file.into())], Origin::Sample)
    }

    fn put(&self, found: Vec<files::Found>, origin: Origin) -> Vec<JobId> {
        let sample = matches!(origin, Origin::Sample);
        let (ids, jobs) = self.change(|shared| {
            let ids: Vec<_> = found
                .into_iter()
                .map(|found| shared.queue.add(found.file, found.bytes, sample, found.failure))
                .collect();
            if let Origin::Watched(folder) = origin {
                ids.iter().for_each(|id| shared.queue.set_watched(*id, folder.into()));
            }
            shared.hold_or_release();
            // The sample is there again at a click.
            let waiting = ids.iter().filter_map(|id| shared.queue.get(*id));
            let waiting = waiting.filter(|entry| !entry.sample && !entry.state.is_over());
            let jobs: Vec<_> = waiting
                .filter_map(|entry| {
                    let job = runner::job(entry, &shared.settings, &shared.preferences).ok()?;
                    Some((entry.id, job, Outputs::of(entry)))
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

    /// Gives recordings that have not begun settings of their own; `None`:
    /// those at hand again.
    pub fn change_own(&self, ids: &[JobId], own: Option<&Settings>) {
        let changed = self.change(|shared| {
            let changed: Vec<JobId> =
                ids.iter().copied().filter(|id| shared.queue.set_own(*id, own.cloned())).collect();
            shared.hold_or_release();
            let entries = changed.iter().filter_map(|id| shared.queue.get(*id));
            entries.map(|entry| (entry.id, Outputs::of(entry))).collect::<Vec<_>>()
        });
        let kept = self.inner.kept();
        for (id, outputs) in changed {
            kept.intend(id, &outputs);
        }
    }

    /// Whether what is short has its turn before what is long.
    pub fn put_shortest_first(&self, on: bool) {
        self.change(|shared| shared.queue.put_shortest_first(on));
    }

    pub fn is_shortest_first(&self) -> bool {
        self.lock().queue.is_shortest_first()
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
        self.change(|shared| shared.queue.hold(|_| false));
    }

    pub fn cancel(&self, id: JobId) {
        if self.change(|shared| shared.cancel(id)) {
            self.inner.kept().finish(id, library::State::Cancelled);
        }
    }

    /// Cancels what runs and all that waits; none of it begins meanwhile.
    pub fn cancel_all(&self) {
        let cancelled: Vec<JobId> = self.change(|shared| {
            let undone = |entry: &&Entry| !entry.state.is_over() || !entry.again.is_empty();
            let undone: Vec<JobId> = shared.queue.iter().filter(undone).map(|entry| entry.id).collect();
            undone.into_iter().filter(|id| shared.cancel(*id)).collect()
        });
        let mut kept = self.inner.kept();
        cancelled.into_iter().for_each(|id| kept.finish(id, library::State::Cancelled));
    }

    /// Starts over with what failed or was stopped.
    pub fn retry(&self, id: JobId) {
        self.change(|shared| shared.retry(id));
    }

    /// Starts over with all that failed; what the user stopped stays so.
    pub fn retry_failed(&self) {
        self.change(|shared| {
            let failed = shared.queue.iter().filter(|entry| entry.state == State::Failed);
            let failed: Vec<JobId> = failed.map(|entry| entry.id).collect();
            failed.into_iter().for_each(|id| shared.retry(id));
        });
    }

    pub fn remove(&self, id: JobId) {
        let watched = self.change(|shared| {
            let entry = shared.queue.get(id);
            let file = entry.filter(|entry| entry.watched.is_some()).map(|entry| entry.file.clone());
            shared.queue.remove(id);
            file.filter(|_| shared.queue.get(id).is_none())
        });
        if let Some(file) = watched {
            // Who takes it off the list does not want it back at the next start.
            let session = self.clone();
            self.inner.runtime.spawn_blocking(move || session.take(&file));
        }
        if self.lock().queue.get(id).is_none() {
            self.inner.kept().finish(id, library::State::Cancelled);
        }
    }

    /// Whether the queue has work and when it ends.
    pub fn follow_work(&self) -> WorkFollower {
        WorkFollower::new(&self.inner)
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
        Ok(save::beside(&recording, transcript.complete, format))
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
        let watched = self.change(|shared| {
            shared.queue.saved(id, file.clone());
            shared.queue.get(id).is_some_and(|entry| entry.watched.is_some())
        });
        if watched && transcript.complete {
            self.take(&recording);
        }
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

    /// Stops what runs and waits, two seconds at most, until the engine is
    /// gone. What was not finished goes on at the next start.
    pub async fn close(&self) {
        let unfinished: BTreeSet<JobId> = self.change(|shared| {
            shared.closed = true;
            if let Some((_, stop)) = &shared.running {
                stop.ask();
            }
            let goes_on = |entry: &&Entry| entry.state.waits() || entry.state == State::Running;
            shared.queue.iter().filter(goes_on).map(|entry| entry.id).collect()
        });
        self.inner.look.notify_one();
        self.inner.supervisor.shutdown().await;
        // The user knew what would be lost by closing.
        self.inner.kept().finish_all_but(&unfinished);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.inner.lock()
    }

    /// A change that may give the runner something to do.
    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let result = self.inner.change(change);
        self.inner.wake.notify_one();
        self.inner.unmeasured.notify_one();
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
        shared.queue.arrange();
        let now = shared.queue.version();
        self.version.send_if_modified(|version| std::mem::replace(version, now) != now);
        result
    }
}

impl Shared {
    /// A user's own recording is never silently transcribed with the
    /// demonstration model.
    fn hold_or_release(&mut self) {
        let demonstration = self.settings.is_demonstration();
        self.queue.hold(|entry| entry.own.as_ref().map_or(demonstration, Settings::is_demonstration));
    }

    /// True where it is over with that.
    fn cancel(&mut self, id: JobId) -> bool {
        let again = self.queue.get(id).is_some_and(|entry| !entry.again.is_empty());
        if again {
            self.queue.forget_again(id);
        }
        if (again || self.queue.cancel(id))
            && let Some((running, stop)) = &self.running
            && *running == id
        {
            stop.ask();
        }
        self.queue.get(id).is_some_and(|entry| entry.state == State::Cancelled)
    }

    fn retry(&mut self, id: JobId) {
        let Some(file) = self.queue.get(id).map(|entry| entry.file.clone()) else { return };
        self.queue.retry(id, files::check(file).failure);
        self.hold_or_release();
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
