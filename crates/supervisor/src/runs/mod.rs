//! The engines of this user that run now, so that every host can tell whose
//! they are: a folder with a file per engine, and one per device that hosts
//! take turns at.
//!
//! A file is written beside its place and renamed, and removed when its engine
//! ends. One that is left over belongs to a host that was killed; the next host
//! to start ends the engine if that is still there ([`Runs::sweep`]).

mod lease;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fmt, fs, io};

use memory::Levels;
use serde::{Deserialize, Serialize};
use transcript::save::{Existing, write_file};

use config::folders;

use crate::platform;

pub use lease::{DeviceLease, Holder};

/// The run folder of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    folder: PathBuf,
}

/// A process, told from another that got its number later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started; `None` where this system does not say.
    pub started: Option<String>,
}

/// An engine, as its file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EngineRun {
    /// The engine's process.
    pub engine: ProcessId,
    /// The process that started it.
    pub host: ProcessId,
    /// `cpu` or `cuda:N`.
    pub device: String,
    /// The name of the model of its latest job.
    pub model: Option<String>,
    /// Seconds since 1970.
    pub since: u64,
    /// Whether it is at a job.
    pub busy: bool,
    /// The latest that it reported of its memory.
    #[serde(default)]
    pub levels: Option<Levels>,
}

/// An engine of a host that is gone.
#[derive(Debug)]
pub struct Orphan {
    /// As its file described it.
    pub run: EngineRun,
    /// Why it could not be ended.
    pub error: Option<io::Error>,
}

impl ProcessId {
    /// `None` where there is no process of that number.
    pub fn running(pid: u32) -> Option<Self> {
        let started = platform::started_at(pid);
        (started.is_some() || !platform::KNOWS_STARTS).then_some(Self { pid, started })
    }

    /// The process that asks.
    pub fn this() -> Self {
        let pid = std::process::id();
        Self { pid, started: platform::started_at(pid) }
    }

    /// Whether this very process runs; assumed where the system does not say.
    pub fn is_alive(&self) -> bool {
        match &self.started {
            Some(started) => platform::started_at(self.pid).as_ref() == Some(started),
            None => true,
        }
    }
}

impl Runs {
    /// `steno` in the user's runtime folder; where there is none, or
    /// `STENO_STATE_FOLDER` names one for everything, `run` in the folder for
    /// state. `None` where this user has neither.
    pub fn of_this_user() -> Option<Self> {
        let runtime = folders::runtime().filter(|_| folders::named_state().is_none());
        let folder = runtime.map(|folder| folder.join("steno"));
        Some(Self { folder: folder.or_else(|| Some(folders::steno_state()?.join("run")))? })
    }

    /// The runs whose files lie in `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes down an engine of this host, until what is returned is dropped.
    ///
    /// # Errors
    /// `NotFound` where there is no such process, and those of the file system.
    pub fn register(&self, engine: u32, device: &str) -> io::Result<RegisteredEngine> {
        folders::make_private(&self.folder)?;
        let engine = ProcessId::running(engine).ok_or(io::ErrorKind::NotFound)?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let path = self.folder.join(format!("engine-{}.json", engine.pid));
        let host = ProcessId::this();
        let run =
            EngineRun { engine, host, device: device.into(), model: None, since, busy: false, levels: None };
        let entry = RegisteredEngine {
            inner: Arc::new(Inner {
                path,
                state: Mutex::new(State { run, jobs: 0, written: Instant::now() }),
            }),
        };
        entry.write(&entry.lock().run)?;
        Ok(entry)
    }

    /// The engines that run, in order of their numbers. Files that can't be
    /// read, and those of engines that ended, are passed over.
    pub fn list(&self) -> Vec<EngineRun> {
        let alive = |(_, run): (PathBuf, EngineRun)| run.engine.is_alive().then_some(run);
        self.files().into_iter().filter_map(alive).collect()
    }

    /// Ends the engines of hosts that are gone and removes what is left of
    /// them. An engine is ended only where its number and its start both match.
    pub fn sweep(&self) -> Vec<Orphan> {
        let mut orphans = Vec::new();
        for (path, run) in self.files() {
            if run.host.is_alive() {
                continue;
            }
            if run.engine.started.is_some() && run.engine.is_alive() {
                let error = platform::kill_leader(run.engine.pid).err();
                let failed = error.is_some();
                orphans.push(Orphan { run, error });
                if failed {
                    continue;
                }
            }
            // It may be gone already: another host sweeps as well.
            let _ = fs::remove_file(path);
        }
        orphans
    }

    fn files(&self) -> Vec<(PathBuf, EngineRun)> {
        let Ok(entries) = fs::read_dir(&self.folder) else { return Vec::new() };
        let mut found: Vec<(PathBuf, EngineRun)> = entries
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .filter_map(|path| {
                let run = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
                Some((path, run))
            })
            .collect();
        found.sort_by_key(|(_, run)| run.engine.pid);
        found
    }

    /// Where the files lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl EngineRun {
    /// Asks the engine to end and waits for that, `patience` at most; then
    /// ends it by `force`, if that is wished. Returns whether it is gone.
    ///
    /// # Errors
    /// Where the process can't be told from a later one of the same number, or
    /// can't be signalled.
    pub fn end(&self, patience: Duration, force: bool) -> io::Result<bool> {
        let wait = |patience| {
            let until = Instant::now() + patience;
            while self.engine.is_alive() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(10));
            }
            !self.engine.is_alive()
        };
        if self.engine.started.is_none() {
            return Err(io::Error::other(
                "this system does not tell one process from the next of its number",
            ));
        }
        if !self.engine.is_alive() {
            return Ok(true);
        }
        platform::ask_to_end(self.engine.pid)?;
        if wait(patience) {
            return Ok(true);
        }
        if force && self.engine.is_alive() {
            platform::kill_leader(self.engine.pid)?;
            return Ok(wait(Duration::from_secs(1)));
        }
        Ok(false)
    }
}

impl fmt::Display for Orphan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EngineRun { engine, host, device, model, .. } = &self.run;
        let model = model.as_ref().map(|model| format!(" with {model}")).unwrap_or_default();
        write!(
            f,
            "the program with the process id {} is gone and left its engine (process id {}, {device}{model}) behind; ",
            host.pid, engine.pid
        )?;
        match &self.error {
            None => f.write_str("the engine was ended"),
            Some(error) => write!(f, "it could not be ended ({error}): end it yourself"),
        }
    }
}

/// The file of an engine of this host; removed when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct RegisteredEngine {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    run: EngineRun,
    /// That were begun and have not ended.
    jobs: u32,
    /// When the file was last written.
    written: Instant,
}

/// A job of an engine, for as long as it lasts.
#[derive(Debug)]
pub struct BusyGuard {
    entry: RegisteredEngine,
}

/// Figures of memory come with every batch; they are not read as often.
const BETWEEN_LEVELS: Duration = Duration::from_secs(1);

impl RegisteredEngine {
    /// The engine is given a job: it is not idle until what is returned is dropped.
    pub fn begin(&self, device: &str, model: &str) -> BusyGuard {
        self.change(|state| {
            state.jobs += 1;
            state.run.model = Some(model.to_owned());
            device.clone_into(&mut state.run.device);
        });
        BusyGuard { entry: self.clone() }
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        let before = state.run.clone();
        change(&mut state);
        state.run.busy = state.jobs > 0;
        if state.run != before {
            state.written = Instant::now();
            // Under the lock, so that the latest is what stays. A full disk
            // must not end a job: the file only helps others.
            let _ = self.write(&state.run);
        }
    }

    fn write(&self, run: &EngineRun) -> io::Result<()> {
        let json = serde_json::to_vec_pretty(run)?;
        write_file(&self.inner.path, Existing::Replace, |out| out.write_all(&json)).map_err(io::Error::other)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BusyGuard {
    /// What the engine reported of its memory.
    pub fn levels(&self, levels: Levels) {
        let mut state = self.entry.lock();
        state.run.levels = Some(levels);
        if state.written.elapsed() >= BETWEEN_LEVELS {
            state.written = Instant::now();
            let _ = self.entry.write(&state.run);
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.entry.change(|state| state.jobs = state.jobs.saturating_sub(1));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
