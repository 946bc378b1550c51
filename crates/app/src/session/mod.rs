//! The session of a window: a queue of recordings, one engine that transcribes them one
//! after the other, and followers of what changes, which get at most twenty updates a
//! second and always the last one.

mod activity;
mod again;
mod another_machine;
mod app_state;
mod editing;
mod elsewhere;
mod files;
mod folders;
mod follow;
mod history;
mod learning;
mod length;
mod microphone;
mod model_folders;
mod queue;
mod queue_journal;
mod queue_order;
mod remembered;
mod requests;
mod runner;
mod save;
mod searching;
mod selection;
mod settings;
mod stopping;
mod usage;
mod voices;
mod window_bounds;
mod workers;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

pub use again::{Again, AgainKind, Attempt};
pub use another_machine::{Machine, MachineInUse, is_open};
pub use app_state::AppState;
pub use editing::{Done, Edited, Place, Replaced, Review};
pub use elsewhere::Elsewhere;
pub use files::find_sample;
pub use folders::{Watched, WatchedFolder, Watching};
pub use follow::{Follower, MemoryFollower, TextFollower};
pub use learning::{LearningRun, LearningState};
pub use library::{read_word_list, word_list};
pub use microphone::Microphone;
pub use queue::{Changes, Ending, JobState, QueueEntry, TextChange};
pub use remembered::{Exporting, Language, Remembered, Switches, Theme, WindowBounds};
pub use save::{Naming, SaveTarget, Unsaved, Written, clip_name, write_bytes};
pub use searching::{FoundPassages, IndexState};
use selection::{all_models, start_with, with_models};
pub use settings::{Decoding, JobSettings, MOST_BEAMS, Output, Part, Preset, Sound, Speakers, Stored};
use settings::{rename_preset, save_preset};
use tokio::sync::{Notify, watch};
use transcript::export::{Format, Options};
pub use usage::{Forecast, MemoryChange, SeenNotice};
pub use window_bounds::Screen;
use wire::{Description, ErrorCode, Failure, Job, JobId, NO_JOB};
pub use workers::{QueueConnection, WorkerQueue};

pub use activity::{Activity, ActivityFollower};

use config::Preferences;
use queue::Queue;
use queue_journal::{Outputs, QueueJournal};
use supervisor::player::Player;
use supervisor::{EngineOptions, Stop, Supervisor, SupervisorOptions};

/// How long the program waits at its end for a finished text to be written to the
/// history.
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
    /// Lock order: this lock is taken before `state`.
    journal: Mutex<QueueJournal>,
    documents: OnceLock<library::Documents>,
    /// Held while an edit is planned, stored and applied, so that edits follow each
    /// other.
    editing: Mutex<()>,
    /// The transcripts that the latest replacement changed, with how many edits each had then.
    replaced: Mutex<Vec<(library::DocumentId, i64)>>,
    microphone: Mutex<microphone::FromMicrophone>,
    /// The queue's version, which followers wait for.
    version: watch::Sender<u64>,
    wake: Notify,
    /// Wakes the task that reads how long recordings are.
    unmeasured: Notify,
    /// Opens files to find out which are no recordings.
    prober: OnceLock<Arc<Player>>,
    watched: watch::Sender<Vec<Watched>>,
    searching: searching::Searching,
    learning: learning::Learner,
    /// The task that submits one recording after the other to the engine.
    runner: Mutex<Option<tokio::task::JoinHandle<()>>>,
    /// Wakes the task that looks into the watched folders.
    look: Notify,
    runtime: tokio::runtime::Handle,
}

/// Where recordings come from.
#[derive(Debug, Clone, Copy)]
enum Origin<'a> {
    User,
    /// The program's own recording.
    Sample,
    Watched(&'a Path),
}

#[derive(Debug, Default)]
struct Shared {
    queue: Queue,
    settings: JobSettings,
    /// Settings of memory, engine and network.
    preferences: Preferences,
    /// The user had recordings transcribed with the demonstration model: those that are added later
    /// are not held for a better one.
    approved: bool,
    /// Transcribes in place of this machine.
    machine: Option<MachineInUse>,
    /// No further recording is started.
    paused: bool,
    /// The job that is running.
    running: Option<(JobId, Stop)>,
    closed: bool,
}

impl Session {
    /// Starts a session without a journal. Must be called within a tokio runtime.
    pub fn new(options: EngineOptions, settings: JobSettings) -> Self {
        Self::start(SupervisorOptions { engine: options, ..SupervisorOptions::default() }, settings)
    }

    /// As [`Session::new`], with all options. Jobs that an earlier window left unfinished
    /// in the journal are queued again, in their order, with those that failed.
    pub fn start(options: SupervisorOptions, settings: JobSettings) -> Self {
        Self::start_watching(options, settings, Watching::default())
    }

    /// As [`Session::start`], with another machine that transcribes from the first recording on.
    pub fn start_with(
        options: SupervisorOptions,
        settings: JobSettings,
        machine: Option<MachineInUse>,
    ) -> Self {
        Self::start_all(options, settings, Watching::default(), machine)
    }

    /// As [`Session::start`], with other intervals between looks into the watched
    /// folders.
    pub fn start_watching(options: SupervisorOptions, settings: JobSettings, watching: Watching) -> Self {
        Self::start_all(options, settings, watching, None)
    }

    fn start_all(
        options: SupervisorOptions,
        settings: JobSettings,
        watching: Watching,
        machine: Option<MachineInUse>,
    ) -> Self {
        let (queue_journal, interrupted) = QueueJournal::open(options.journal.clone());
        let inner = Arc::new(Inner {
            state: Mutex::new(Shared {
                settings,
                machine,
                preferences: Preferences { memory: options.memory.clone(), ..Preferences::default() },
                ..Shared::default()
            }),
            searching: searching::Searching::new(&options.engine),
            learning: learning::Learner::new(&options.engine),
            supervisor: Supervisor::start(options),
            journal: Mutex::new(queue_journal),
            documents: OnceLock::new(),
            editing: Mutex::default(),
            replaced: Mutex::default(),
            microphone: Mutex::default(),
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
        let mut journal = session.inner.journal();
        session.change(|shared| {
            for one in interrupted {
                let found = files::check(one.file.clone());
                let (paused, stopped) = (one.outputs.paused, one.outputs.stopped);
                let failure = one.outputs.failure.clone().or(found.failure);
                let id = shared.queue.add(
                    found.file,
                    found.bytes,
                    false,
                    failure.clone().filter(|_| !paused && !stopped),
                );
                if let Some(folder) = &one.outputs.folder {
                    shared.queue.set_watched(id, folder.0.clone());
                }
                if one.outputs.demonstration {
                    shared.queue.approve(|entry| entry.id == id);
                }
                let own = one.outputs.own.clone();
                shared.queue.set_own(id, own.map(Stored::settings));
                shared.queue.set_part(id, one.outputs.part);
                shared.queue.set_placed(id, one.outputs.placed.clone());
                if let Some(reached) = journal.take_back(id, one) {
                    shared.queue.set_stopped_before(id, reached);
                }
                if paused {
                    shared.queue.set_paused_before(id, failure);
                } else if stopped {
                    shared.queue.set_cancelled_before(id);
                }
            }
            shared.hold_or_release();
        });
        // Numbered anew, so that what is added comes after them.
        journal.set_order(&session.lock().queue.given_order());
        drop(journal);
        session.judge_later();
        let runner = tokio::spawn(runner::run(Arc::clone(&session.inner)));
        *session.inner.runner.lock().unwrap_or_else(PoisonError::into_inner) = Some(runner);
        tokio::spawn(length::run(Arc::clone(&session.inner)));
        tokio::spawn(folders::run(Arc::clone(&session.inner), watching));
        session
    }

    /// Has `prober` open files whose headers say nothing, so that files that are no
    /// recordings fail when they are added and not when their turn comes.
    pub fn probe_with(&self, prober: Player) {
        let _ = self.inner.prober.set(Arc::new(prober));
    }

    /// Device, backend and codecs of the engine, which is started where none runs; and
    /// why it is not the CUDA engine, where there is something to explain.
    ///
    /// # Errors
    /// Where no engine can be started.
    pub async fn describe(&self) -> Result<(Description, Option<String>), Failure> {
        self.inner.supervisor.describe().await
    }

    /// Ends the engine that is kept warm, when its job is over: the next one may be another program.
    pub async fn renew_engine(&self) {
        self.inner.supervisor.rest().await;
    }

    /// Adds files, and the recordings in folders, at the end of the queue.
    pub fn add(&self, paths: impl IntoIterator<Item = PathBuf>) -> Vec<JobId> {
        self.put(files::inspect(paths), Origin::User)
    }

    /// Adds the program's own recording to the queue.
    pub fn add_sample(&self, file: &Path) -> Vec<JobId> {
        self.put(vec![files::check(file.into())], Origin::Sample)
    }

    fn put(&self, found: Vec<files::Found>, origin: Origin) -> Vec<JobId> {
        let sample = matches!(origin, Origin::Sample);
        // Locked until the recordings are in the journal: the runner, which may start one
        // at once, then finds it there and doesn't add it a second time.
        let mut journal = self.inner.journal();
        let (ids, jobs) = self.change(|shared| {
            let ids: Vec<_> = found
                .into_iter()
                .map(|found| shared.queue.add(found.file, found.bytes, sample, found.failure))
                .collect();
            if let Origin::Watched(folder) = origin {
                ids.iter().for_each(|id| shared.queue.set_watched(*id, folder.into()));
            }
            if shared.approved {
                shared.queue.approve(|entry| ids.contains(&entry.id));
            }
            shared.hold_or_release();
            let jobs = shared.to_write_down(&ids);
            (ids, jobs)
        });
        journal.add(&jobs);
        ids
    }

    /// What recordings are transcribed with.
    pub fn settings(&self) -> JobSettings {
        self.lock().settings.clone()
    }

    /// Sets what recordings are transcribed with. A running job keeps its settings.
    pub fn change_settings(&self, settings: JobSettings) {
        self.change(|shared| {
            shared.settings = settings;
            shared.hold_or_release();
        });
        self.judge_later();
    }

    /// Gives waiting recordings settings of their own; `None`: those of the session
    /// again.
    pub fn change_own(&self, ids: &[JobId], own: Option<&JobSettings>) {
        let mut journal = self.inner.journal();
        let changed = self.change(|shared| {
            let changed: Vec<JobId> =
                ids.iter().copied().filter(|id| shared.queue.set_own(*id, own.cloned())).collect();
            shared.hold_or_release();
            let entries = changed.iter().filter_map(|id| shared.queue.get(*id));
            entries.map(|entry| (entry.id, Outputs::of(entry))).collect::<Vec<_>>()
        });
        for (id, outputs) in changed {
            journal.intend(id, &outputs);
        }
        self.judge_later();
    }

    /// Sets which part of a waiting recording is transcribed.
    ///
    /// # Errors
    /// `BadSettings` where nothing lies in that part.
    pub fn change_part(&self, id: JobId, part: Part) -> Result<(), Failure> {
        let mut journal = self.inner.journal();
        let changed = self.change(|shared| {
            part.check(shared.queue.get(id).and_then(|entry| entry.length.seconds()))?;
            let changed = shared.queue.set_part(id, part);
            Ok(shared.queue.get(id).filter(|_| changed).map(Outputs::of))
        })?;
        if let Some(outputs) = changed {
            journal.intend(id, &outputs);
        }
        self.judge_later();
        Ok(())
    }

    /// Sets whether the shortest recording is transcribed first.
    pub fn put_shortest_first(&self, on: bool) {
        self.change(|shared| shared.queue.put_shortest_first(on));
    }

    /// Whether the shortest recording is transcribed first.
    pub fn is_shortest_first(&self) -> bool {
        self.lock().queue.is_shortest_first()
    }

    /// Sets the preferences of jobs that start from now on. After how many files engines
    /// are renewed doesn't change.
    pub fn change_preferences(&self, preferences: Preferences) {
        self.change(|shared| shared.preferences = preferences);
        self.judge_later();
    }

    /// The preferences of jobs that start from now on.
    pub fn preferences(&self) -> Preferences {
        self.lock().preferences.clone()
    }

    /// Pauses the queue: no further recording is started, and a running job goes on.
    pub fn pause(&self, paused: bool) {
        self.change(|shared| shared.paused = paused);
    }

    /// Ends the engine that waits for further recordings, so that its memory, and that of the graphics card, is
    /// free for other programs. Does nothing while a recording is transcribed.
    pub fn free_memory(&self) {
        if self.lock().running.is_some() {
            return;
        }
        let supervisor = self.inner.supervisor.clone();
        self.inner.runtime.spawn(async move { supervisor.rest().await });
    }

    /// Whether the queue is paused.
    pub fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Moves recordings in front of another one, or to the end of the queue.
    pub fn reorder(&self, moved: &[JobId], before: Option<JobId>) {
        self.change(|shared| shared.queue.reorder(moved, before));
        // The caller may be the thread that draws.
        let session = self.clone();
        self.inner.runtime.spawn_blocking(move || {
            let journal = session.inner.journal();
            journal.set_order(&session.lock().queue.given_order());
        });
    }

    /// Starts held jobs with the demonstration model, and those that are added later. The held ones
    /// start with it also in a later window.
    pub fn start_anyway(&self) {
        let approved = self.change(|shared| {
            shared.approved = true;
            let approved = shared.queue.approve(|entry| entry.state == JobState::Held);
            shared.hold_or_release();
            shared.to_write_down(&approved)
        });
        // The caller may be the thread that draws.
        let session = self.clone();
        self.inner.runtime.spawn_blocking(move || session.inner.journal().add(&approved));
    }

    /// Removes a recording from the list, unless an engine works on it.
    pub fn remove(&self, id: JobId) {
        let watched = self.change(|shared| {
            let entry = shared.queue.get(id);
            let file = entry.filter(|entry| entry.watched.is_some()).map(|entry| entry.file.clone());
            shared.queue.remove(id);
            file.filter(|_| shared.queue.get(id).is_none())
        });
        if let Some(file) = watched {
            // A recording that the user removes must not come back at the next start.
            let session = self.clone();
            self.inner.runtime.spawn_blocking(move || session.take(&file));
        }
        if self.lock().queue.get(id).is_none() {
            self.inner.journal().finish(id, library::JournalState::Cancelled);
            self.keep_requests(id);
        }
    }

    /// Follows when the queue begins to work and when it ends.
    pub fn follow_activity(&self) -> ActivityFollower {
        ActivityFollower::new(&self.inner)
    }

    /// How many recordings are not transcribed yet.
    pub fn unfinished(&self) -> usize {
        self.lock().queue.unfinished()
    }

    /// How many texts of the user's recordings would be lost if the window closed now.
    pub fn unsaved(&self) -> usize {
        self.lock().queue.unsaved()
    }

    /// The recordings whose texts would be lost if the window closed now.
    pub fn lost(&self) -> Vec<JobId> {
        self.lock().queue.lost().map(|entry| entry.id).collect()
    }

    /// The folder of the latest recording that the user added.
    pub fn latest_folder(&self) -> Option<PathBuf> {
        let shared = self.lock();
        let latest = shared.queue.iter().filter(|entry| !entry.sample).last()?;
        latest.file.parent().map(Path::to_path_buf)
    }

    /// The file that a dialog proposes for a transcript.
    ///
    /// # Errors
    /// Where the recording is not in the list, or has no text.
    pub fn proposed_file(&self, id: JobId, format: Format) -> Result<PathBuf, Failure> {
        let (recording, transcript) = self.result(id)?;
        let (place, naming) = (SaveTarget::Beside { replace: false }, self.naming(id));
        let named = save::name_of(&recording, Some(&transcript), format, &place, &naming);
        Ok(named.unwrap_or_else(|| recording.with_extension(format.extension())))
    }

    /// The recording's path with another ending, for a dialog to propose.
    ///
    /// # Errors
    /// Where the recording is not in the list.
    pub fn beside(&self, id: JobId, ending: &str) -> Result<PathBuf, Failure> {
        Ok(self.recording(id)?.with_extension(ending))
    }

    /// The path of a recording.
    ///
    /// # Errors
    /// Where the recording is not in the list.
    pub fn recording(&self, id: JobId) -> Result<PathBuf, Failure> {
        let file = self.lock().queue.get(id).map(|entry| entry.file.clone());
        file.ok_or_else(|| Failure::new(ErrorCode::RecordingGone, "This recording is no longer in the list."))
    }

    /// What is listened to: the recording, and which of its audio tracks was transcribed or is to be.
    /// Waits for all of a transcript that is being opened.
    ///
    /// # Errors
    /// Where the recording is not in the list.
    pub fn sound_of(&self, id: JobId) -> Result<(PathBuf, Option<usize>), Failure> {
        let file = self.recording(id)?;
        let _turn = self.turn();
        let shared = self.lock();
        let track = shared.queue.get(id).and_then(|entry| match &entry.transcript {
            Some(transcript) => usize::try_from(transcript.settings["track"].as_u64()?).ok(),
            None => entry.part.track.map(|track| track as usize),
        });
        Ok((file, track))
    }

    /// What is to be shown of a recording in a file manager: what was saved last, else the recording.
    ///
    /// # Errors
    /// If the recording is not in the list.
    pub fn file_to_show(&self, id: JobId) -> Result<PathBuf, Failure> {
        let saved = self.lock().queue.get(id).and_then(|entry| entry.saved.clone());
        saved.map_or_else(|| self.recording(id), Ok)
    }

    /// Saves a transcript, whole or partial, and returns the file written. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// Where there is no text, or the file can't be written.
    pub fn save(
        &self,
        id: JobId,
        format: Format,
        options: &Options,
        place: &SaveTarget,
    ) -> Result<PathBuf, Failure> {
        let file = self.write_out(id, format, options, place)?;
        self.change(|shared| {
            shared.queue.saved(id, file.clone());
            shared.queue.wrote(id, &[format]);
        });
        self.settled(id);
        Ok(file)
    }

    /// As [`Session::save`], without marking the recording as saved.
    fn write_out(
        &self,
        id: JobId,
        format: Format,
        options: &Options,
        place: &SaveTarget,
    ) -> Result<PathBuf, Failure> {
        let (recording, transcript) = self.result(id)?;
        save::save(&recording, &transcript, format, options, place, &self.naming(id))
    }

    /// The folder and the names of a recording's transcripts: by its own settings, else those of the
    /// session.
    fn naming(&self, id: JobId) -> Naming {
        self.output_of(id).naming()
    }

    fn output_of(&self, id: JobId) -> Output {
        let shared = self.lock();
        let own = shared.queue.get(id).and_then(|entry| entry.own.as_ref());
        own.unwrap_or(&shared.settings).output.clone()
    }

    /// The text is safe: its job leaves the journal, and its watched folder doesn't offer
    /// the recording again. Blocks on the disk.
    fn settled(&self, id: JobId) {
        // One that was stopped can be resumed in a later window, also where its text so far was saved.
        let goes_on = |entry: &QueueEntry| {
            let is_stopped = matches!(entry.state, JobState::Cancelled | JobState::Failed);
            entry.state == JobState::Paused || (is_stopped && entry.stopped.is_some())
        };
        if self.lock().queue.get(id).is_some_and(goes_on) {
            return;
        }
        let watched = {
            let shared = self.lock();
            let entry = shared.queue.get(id).filter(|entry| entry.watched.is_some());
            let whole = |entry: &&QueueEntry| entry.transcript.as_ref().is_some_and(|text| text.complete);
            entry.filter(whole).map(|entry| entry.file.clone())
        };
        if let Some(file) = watched {
            self.take(&file);
        }
        self.inner.journal().finish(id, library::JournalState::Finished);
    }

    /// As [`Session::save`], in several formats with the user's options. The recording counts as
    /// saved once all of them are written.
    pub fn save_as(&self, id: JobId, exporting: &Exporting, place: &SaveTarget) -> Written {
        let options = exporting.options();
        let one = |format: &Format| (*format, self.write_out(id, *format, &options, place));
        let written: Written = exporting.formats.iter().map(one).collect();
        let failed = |format: &Format| written.failures.iter().any(|(other, _)| other == format);
        let done: Vec<Format> = exporting.formats.iter().copied().filter(|it| !failed(it)).collect();
        self.change(|shared| shared.queue.wrote(id, &done));
        if let (Some(file), true) = (written.files.first(), written.failures.is_empty()) {
            self.change(|shared| shared.queue.saved(id, file.clone()));
            self.settled(id);
        }
        written
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
            Failure::new(ErrorCode::TranscriptGone, "There is no transcript of this recording yet.")
                .remedy("Wait until it is finished.")
        })
    }

    /// Stops the running job and waits, two seconds at most, until the engine is gone.
    /// Unfinished jobs go on at the next start.
    pub async fn close(&self) {
        let mut unfinished: BTreeSet<JobId> = self.change(|shared| {
            shared.closed = true;
            if let Some((_, stop)) = &shared.running {
                stop.ask();
            }
            let goes_on = |entry: &&QueueEntry| entry.state.waits() || entry.state == JobState::Running;
            shared.queue.iter().filter(goes_on).map(|entry| entry.id).collect()
        });
        self.inner.look.notify_one();
        self.stop_learning();
        self.inner.supervisor.shutdown().await;
        // A text that has just been finished is being written to the history. Where the
        // disk takes too long it is still in the journal.
        let runner = self.inner.runner.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runner) = runner
            && tokio::time::timeout(LAST_TEXT, runner).await.is_err()
        {
            return;
        }
        let mut journal = self.inner.journal();
        {
            let shared = self.lock();
            journal.set_order(&shared.queue.given_order());
            // Recordings that were added meanwhile, as by another start of the program; and what
            // failed, until the user removes it.
            let stays = |entry: &&QueueEntry| entry.state.waits() || entry.stays_aside();
            unfinished.extend(shared.queue.iter().filter(stays).map(|entry| entry.id));
        }
        // The user confirmed what is lost by closing.
        journal.finish_all_but(&unfinished);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.inner.lock()
    }

    /// Changes the shared state, then wakes the runner and the followers.
    fn change<T>(&self, change: impl FnOnce(&mut Shared) -> T) -> T {
        let result = self.inner.change(change);
        self.inner.wake.notify_one();
        self.inner.unmeasured.notify_one();
        result
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic elsewhere leaves the queue in a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, QueueJournal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Holds recordings of the user while only the demonstration model is there: it is
    /// never used for them without asking.
    fn hold_or_release(&mut self) {
        let (demonstration, here) = (self.settings.is_demonstration(), self.machine.is_none());
        self.queue.hold(|entry| {
            let demonstration = entry.own.as_ref().map_or(demonstration, JobSettings::is_demonstration);
            here && demonstration && !entry.approved
        });
    }

    /// Those of these that wait or failed, as the jobs that they would be now; without a model
    /// where there is none. The sample is left out: one click adds it again.
    fn to_write_down(&self, ids: &[JobId]) -> Vec<(JobId, Job, Outputs)> {
        let stays =
            |entry: &&QueueEntry| !entry.sample && (entry.state.waits() || entry.state == JobState::Failed);
        ids.iter()
            .filter_map(|id| self.queue.get(*id))
            .filter(stays)
            .map(|entry| {
                let job = runner::job(entry, &self.settings, &self.preferences);
                let job = job.unwrap_or_else(|_| Job::new(NO_JOB, entry.file.clone(), PathBuf::new()));
                (entry.id, job, Outputs::of(entry))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests;
