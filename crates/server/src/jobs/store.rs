//! The server's folder in the state folder: one folder per job, with the uploaded recording until the job is over and
//! then with what came of it. Names are the server's; nothing that a client sends becomes one.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use config::folders::make_private;
use transcript::Transcript;
use transcript::export::{Format, Options};
use transcript::save::{self, Existing, write_file};
use wire::{ErrorCode, Failure};

use super::Ended;
use crate::tokens::random_hex;

const ENDED: &str = "ended.json";
const TRANSCRIPT: &str = "transcript.json";
/// Of randomness in the id of a job.
const ID_BYTES: usize = 16;

/// The server's folder in the state folder.
pub fn folder(state: &Path) -> PathBuf {
    state.join("server")
}

#[derive(Debug)]
pub struct Store {
    jobs: PathBuf,
}

impl Store {
    /// Fails where another server has the folder. It is this one's for as long as the file is open.
    pub fn open(state: &Path) -> Result<(Self, File), Failure> {
        let folder = folder(state);
        let unusable = |error: io::Error| {
            let message = format!("The folder of the server's jobs can't be used ({error}).");
            Failure::new(ErrorCode::OutputUnwritable, message).file(folder.as_path())
        };
        let jobs = folder.join("jobs");
        make_private(&jobs).map_err(unusable)?;
        let lock = File::create(folder.join("lock")).map_err(unusable)?;
        match lock.try_lock() {
            Ok(()) => Ok((Self { jobs }, lock)),
            Err(TryLockError::WouldBlock) => {
                let message = "Another server of this user runs already.";
                Err(Failure::new(ErrorCode::BadSettings, message).remedy(
                    "Use that one, or end it first. STENO_STATE_FOLDER names another folder for jobs.",
                ))
            }
            Err(TryLockError::Error(error)) => Err(unusable(error)),
        }
    }

    pub fn new_folder(&self) -> io::Result<JobFolder> {
        let id = random_hex::<ID_BYTES>()?;
        let path = self.jobs.join(&id);
        make_private(&path)?;
        Ok(JobFolder { id, path, kept: false })
    }

    pub fn free_space(&self) -> Option<u64> {
        hub::platform::free_space(&self.jobs)
    }

    /// The jobs that are over, in the order in which they were accepted.
    pub fn ended(&self) -> Vec<Ended> {
        let read = |path: PathBuf| serde_json::from_slice(&fs::read(path).ok()?).ok();
        let mut all: Vec<Ended> =
            self.folders().into_iter().filter_map(|folder| read(folder.join(ENDED))).collect();
        all.sort_by(|a, b| (a.record.created, &a.record.id).cmp(&(b.record.created, &b.record.id)));
        all
    }

    /// Keeps what came of a job. Once this returns, the job is over, also for the next server.
    pub fn end(&self, ended: &Ended, text: Option<&Transcript>) -> Result<(), save::SaveError> {
        let folder = self.jobs.join(&ended.record.id);
        if let Some(text) = text {
            let path = folder.join(TRANSCRIPT);
            save::save(text, Format::Json, &Options::default(), &path, Existing::Replace)?;
        }
        let json = serde_json::to_vec_pretty(ended).unwrap_or_default();
        write_file(&folder.join(ENDED), Existing::Replace, |out| out.write_all(&json))?;
        if ended.record.uploaded {
            let _ = fs::remove_file(super::recording(&folder));
        }
        Ok(())
    }

    /// `None` where the job has no text.
    pub fn transcript(&self, id: &str) -> Option<Transcript> {
        Transcript::load(&self.jobs.join(id).join(TRANSCRIPT)).ok()
    }

    /// What says that the job was there goes first: a server that is killed meanwhile sweeps up the rest.
    pub fn remove(&self, id: &str) -> io::Result<()> {
        let folder = self.jobs.join(id);
        for removed in [fs::remove_file(folder.join(ENDED)), fs::remove_dir_all(&folder)] {
            match removed {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// Removes the folders of no known job.
    pub fn sweep(&self, known: &HashSet<String>) {
        for folder in self.folders() {
            let id = folder.file_name().and_then(|name| name.to_str());
            if id.is_none_or(|id| !known.contains(id)) {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }

    fn folders(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.jobs).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }
}

/// The folder of a job that is not accepted yet: it is removed when this is dropped, unless it is kept.
#[derive(Debug)]
pub struct JobFolder {
    id: String,
    path: PathBuf,
    kept: bool,
}

impl JobFolder {
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Where the recording is to be written.
    pub fn recording(&self) -> PathBuf {
        super::recording(&self.path)
    }

    pub fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for JobFolder {
    fn drop(&mut self) {
        if !self.kept {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
