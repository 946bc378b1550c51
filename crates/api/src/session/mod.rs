//! What a window works with: a queue of recordings, one engine that takes them
//! one after the other, and followers that are told what changed, seldom
//! enough for a screen and complete at the end.

mod again;
mod desk;
mod editing;
mod files;
mod folders;
mod follow;
mod history;
mod kept;
mod length;
mod place;
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
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub use again::{Again, Attempt};
pub use desk::Desk;
pub use editing::{Done, Edited, Replaced, Review};
pub use files::find_sample;
pub use folders::{Watched, WatchedFolder, Watching};
pub use follow::{Follower, MemoryFollower, TextFollower};
pub use place::Screen;
pub use queue::{Changes, Ending, Entry, State, TextChange};
pub use remembered::{Exporting, Language, Remembered, Switches, Theme, WindowPlace};
pub use save::{Place, Written, write_bytes};
use selection::{all_models, start_with, with_models};
pub use settings::{Decoding, MOST_BEAMS, Preset, Settings, Stored};
use settings::{rename_preset, save_preset};
use tokio::sync::{Notify, watch};
use transcript::export::{Format, Options};
pub use usage::{Forecast, MemoryChange, SeenNotice};
use wire::{Description, ErrorCode, Failure, Job, JobId};

pub use work::{Work, WorkFollower};

use crate::player::Player;
use crate::{EngineOptions, Preferences, Stop, Supervisor, SupervisorOptions};
use kept::{Kept, Outputs};
use queue::Queue;

/// As long as a text that has just been finished may take to be in the history
/// before the program ends.
const LAST_TEXT: Duration = Duration::from_secs(10);

/// Clones share one queue and one engine.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    supervisor: Supervisor,
    state: Mutex<Shared>,
    /// Who needs both locks this one first.
    kept: Mutex<Kept>,
    documents: OnceLock<library::Documents>,
    /// Held while an edit is planned, written down and applied: one after the other.
    editing: Mutex<()>,
    /// The queue's version, for those who follow it.
    version: watch::Sender<u64>,
    wake: Notify,
    /// Somebody should ask how long recordings are.
    unmeasured: Notify,
    /// Who can say what is no recording.
    prober: OnceLock<Arc<Player>>,
    watched: watch::Sender<Vec<Watched>>,
    /// What takes one recording after the other to the engine.
    runner: Mutex<Option<tokio::task::JoinHandle<()>>>,
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
            documents: OnceLock::new(),
            editing: Mutex::default(),
            version: watch::Sender::new(0),
            wake: Notify::new(),
            unmeasured: Notify::new(),
            prober: OnceLock::new(),
            watched: watch::Sender::new(Vec::new()),
            runner: Mutex::default(),
            look: Notify::new(),
            runtime: tokio::runtime::Handle::current(),
        });
        let session = Self { inner };
        let mut kept = session.inner.kept();
        session.change(|shared| {
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
        drop(kept);
        let runner = tokio::spawn(runner::run(Arc::clone(&session.inner)));
        *session.inner.runner.lock().unwrap_or_else(PoisonError::into_inner) = Some(runner);
        tokio::spawn(length::run(Arc::clone(&session.inner)));
        tokio::spawn(folders::run(Arc::clone(&session.inner), watching));
        session
    }

    /// What this says is no recording fails at once, and not when its turn comes.
    pub fn probe_with(&self, prober: Player) {
        let _ = self.inner.prober.set(Arc::new(prober));
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
        // Until they are written down: whoever begins one at once finds it there
        // and does not write it down a second time.
        let mut kept = self.inner.kept();
        let (ids, jobs) = self.change(|shared| {
            let ids: Vec<_> = found
                .into_iter()
                .map(|found| shared.queue.add(found.file, found.bytes, sample, found.failure))
                .collect();
            if let Origin::Watched(folder) = origin {
                ids.iter().for_each(|id| shared.queue.set_watched(*id, folder.into()));
            }
            shared.hold_or_release();
            let jobs = shared.to_write_down(&ids);
            (ids, jobs)
        });
        kept.add(&jobs);
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
        let mut kept = self.inner.kept();
        let changed = self.change(|shared| {
            let changed: Vec<JobId> =
                ids.iter().copied().filter(|id| shared.queue.set_own(*id, own.cloned())).collect();
            shared.hold_or_release();
            let entries = changed.iter().filter_map(|id| shared.queue.get(*id));
            entries.map(|entry| (entry.id, Outputs::of(entry))).collect::<Vec<_>>()
        });
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
            self.inner.kept().finish(id, library::JournalState::Cancelled);
        }
    }

    /// Cancels what runs and all that waits; none of it begins meanwhile.
    pub fn cancel_all(&self) {
        let cancelled: Vec<JobId> = self.change(|shared| {
            let undone = |entry: &&Entry| !entry.state.is_over() || entry.is_asked_again();
            let undone: Vec<JobId> = shared.queue.iter().filter(undone).map(|entry| entry.id).collect();
            undone.into_iter().filter(|id| shared.cancel(*id)).collect()
        });
        self.inner.kept().finish_all(&cancelled, library::JournalState::Cancelled);
    }

    /// Starts over with what failed or was stopped. Waits for the disk.
    pub fn retry(&self, id: JobId) {
        self.retry_those(|entry| entry.id == id);
    }

    /// Starts over with all that failed; what the user stopped stays so. Waits
    /// for the disk.
    pub fn retry_failed(&self) {
        self.retry_those(|entry| entry.state == State::Failed);
    }

    fn retry_those(&self, which: impl Fn(&Entry) -> bool) {
        let over = |entry: &&Entry| matches!(entry.state, State::Failed | State::Cancelled);
        let files: Vec<_> = {
            let shared = self.lock();
            let those = shared.queue.iter().filter(over).filter(|entry| which(entry));
            those.map(|entry| (entry.id, entry.file.clone())).collect()
        };
        // While nobody waits for the queue: a disk may take long to say that it is gone.
        let checked: Vec<_> = files.into_iter().map(|(id, file)| (id, files::check(file).failure)).collect();
        let mut kept = self.inner.kept();
        let jobs = self.change(|shared| {
            let ids: Vec<JobId> = checked.iter().map(|(id, _)| *id).collect();
            for (id, failure) in checked {
                shared.queue.retry(id, failure);
            }
            shared.hold_or_release();
            shared.to_write_down(&ids)
        });
        kept.add(&jobs);
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
            self.inner.kept().finish(id, library::JournalState::Cancelled);
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
        Ok(self.recording(id)?.with_extension(ending))
    }

    /// The file that a recording is.
    pub fn recording(&self, id: JobId) -> Result<PathBuf, Failure> {
        let file = self.lock().queue.get(id).map(|entry| entry.file.clone());
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
        let file = self.write_out(id, format, options, place)?;
        self.settled(id);
        Ok(file)
    }

    /// The same; the journal and the watched folder hear nothing of it yet.
    fn write_out(
        &self,
        id: JobId,
        format: Format,
        options: &Options,
        place: &Place,
    ) -> Result<PathBuf, Failure> {
        let (recording, transcript) = self.result(id)?;
        let file = save::save(&recording, &transcript, format, options, place)?;
        self.change(|shared| shared.queue.saved(id, file.clone()));
        Ok(file)
    }

    /// The text is safe: it need not be in the journal, nor be taken from its
    /// watched folder again. Blocks on the disk.
    fn settled(&self, id: JobId) {
        let watched = {
            let shared = self.lock();
            let entry = shared.queue.get(id).filter(|entry| entry.watched.is_some());
            let whole = |entry: &&Entry| entry.transcript.as_ref().is_some_and(|text| text.complete);
            entry.filter(whole).map(|entry| entry.file.clone())
        };
        if let Some(file) = watched {
            self.take(&file);
        }
        self.inner.kept().finish(id, library::JournalState::Finished);
    }

    /// The same in the formats and as the user chose for exports.
    pub fn save_as(&self, id: JobId, exporting: &Exporting, place: &Place) -> Written {
        let options = exporting.options();
        let one = |format: &Format| (*format, self.save(id, *format, &options, place));
        exporting.formats.iter().map(one).collect()
    }

    fn result(&self, id: JobId) -> Result<(PathBuf, Box<transcript::Transcript>), Failure> {
        let shared = self.lock();
        let entry = shared.queue.get(id);
        let found = entry.and_then(|entry| Some((entry.file.clone(), entry.transcript.clone()?)));
        let found = found.map(|(file, mut transcript)| {
            transcript::edit::clear_ids(&mut transcript);
            (file, transcript)
        });
        found.ok_or_else(|| {
            Failure::new(ErrorCode::BadSettings, "There is no transcript of this recording yet.")
                .remedy("Wait until it is done.")
        })
    }

    /// Stops what runs and waits, two seconds at most, until the engine is
    /// gone. What was not finished goes on at the next start.
    pub async fn close(&self) {
        let mut unfinished: BTreeSet<JobId> = self.change(|shared| {
            shared.closed = true;
            if let Some((_, stop)) = &shared.running {
                stop.ask();
            }
            let goes_on = |entry: &&Entry| entry.state.waits() || entry.state == State::Running;
            shared.queue.iter().filter(goes_on).map(|entry| entry.id).collect()
        });
        self.inner.look.notify_one();
        self.inner.supervisor.shutdown().await;
        // What has just been finished is on its way to the history. Where the
        // disk takes too long for that it is still in the journal.
        let runner = self.inner.runner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runner) = runner
            && tokio::time::timeout(LAST_TEXT, runner).await.is_err()
        {
            return;
        }
        let mut kept = self.inner.kept();
        // What came meanwhile, as from another start of the program.
        unfinished.extend(self.lock().queue.iter().filter(|entry| entry.state.waits()).map(|entry| entry.id));
        // The user knew what would be lost by closing.
        kept.finish_all_but(&unfinished);
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
        let again = self.queue.get(id).is_some_and(Entry::is_asked_again);
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

    /// Of these what waits, as the jobs that they would be now. The sample is
    /// there again at a click.
    fn to_write_down(&self, ids: &[JobId]) -> Vec<(JobId, Job, Outputs)> {
        let waiting = ids.iter().filter_map(|id| self.queue.get(*id));
        let waiting = waiting.filter(|entry| !entry.sample && entry.state.waits());
        waiting
            .filter_map(|entry| {
                let job = runner::job(entry, &self.settings, &self.preferences).ok()?;
                Some((entry.id, job, Outputs::of(entry)))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
