//! Watched folders: new recordings in them are transcribed, and their texts written where
//! the folder's settings say.
//! The folders are listed every few seconds. A network disk does not report what another
//! machine writes to it, so that there is no other way, and change notifications for
//! local disks would be a second mechanism to get wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use library::{FileStamp, Identity, Journal};
use serde::{Deserialize, Serialize};
use supervisor::recordings::{DEEPEST, walk};
use tokio::sync::watch;
use transcript::export::Format;
use wire::notice::Message;
use wire::{ErrorCode, Failure, FilePath, JobId};

use super::files::{Found, check};
use super::save::{Naming, SaveTarget, Unsaved, Written, name_of};
use super::{Exporting, Inner, Session};

/// How folders are watched.
#[derive(Debug, Clone, Copy)]
pub struct Watching {
    /// Between two looks.
    pub pause: Duration,
    /// A recording that did not change for this long is taken for whole.
    pub still: Duration,
}

impl Default for Watching {
    fn default() -> Self {
        Self { pause: Duration::from_secs(5), still: Duration::from_secs(10) }
    }
}

/// Looking takes at most this part of the time, however slow the disk is.
const REST: u32 = 20;

/// A folder whose new recordings are transcribed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WatchedFolder {
    /// Its path.
    pub folder: FilePath,
    /// How texts are written; with no format they are not.
    #[serde(default)]
    pub exporting: Exporting,
    /// Where to; `None`: beside the recording.
    #[serde(default)]
    pub into: Option<FilePath>,
}

/// A watched folder as it was found at the latest look.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// What is watched.
    pub folder: WatchedFolder,
    /// Why nothing can be found in it.
    pub failure: Option<Failure>,
}

impl WatchedFolder {
    /// Texts go beside the recordings.
    pub fn new(folder: &Path, exporting: Exporting) -> Self {
        Self { folder: folder.into(), exporting, into: None }
    }

    fn place(&self) -> SaveTarget {
        match &self.into {
            Some(folder) => SaveTarget::Within { folder: folder.0.clone(), replace: false },
            None => SaveTarget::Beside { replace: false },
        }
    }

    /// Whether everything that would be written for a recording is there, as far as its name is known
    /// before it is transcribed.
    fn is_exported(&self, recording: &Path, naming: &Naming) -> bool {
        let formats = &self.exporting.formats;
        let exists = |format: &Format| {
            let file = name_of(recording, None, *format, &self.place(), naming);
            file.is_some_and(|file| file.exists())
        };
        !formats.is_empty() && formats.iter().all(exists)
    }
}

impl Session {
    /// These and no others are watched from now on.
    pub fn watch_folders(&self, folders: Vec<WatchedFolder>) {
        self.inner.watched.send_if_modified(|watched| {
            let failure = |folder: &WatchedFolder| {
                let before = watched.iter().find(|one| one.folder.folder == folder.folder);
                before.and_then(|one| one.failure.clone())
            };
            let now: Vec<Watched> =
                folders.into_iter().map(|folder| Watched { failure: failure(&folder), folder }).collect();
            let changed = now != *watched;
            *watched = now;
            changed
        });
        self.inner.look.notify_one();
    }

    /// The folders that are watched now.
    pub fn watched(&self) -> Vec<Watched> {
        self.inner.watched.borrow().clone()
    }

    /// Changes whenever another folder is watched, or one can't be read any more.
    pub fn follow_watched(&self) -> watch::Receiver<Vec<Watched>> {
        self.inner.watched.subscribe()
    }

    /// What lies in a folder now is not to be taken from it. Waits for the disk.
    ///
    /// # Errors
    /// Where the folder can't be read, and where nothing can be kept in mind.
    pub fn pass_over(&self, folder: &Path) -> Result<(), Failure> {
        let recordings = recordings(folder).map_err(|error| gone(folder, &error))?;
        let journal = self.inner.supervisor.journal().ok_or_else(|| {
            Failure::new(ErrorCode::OutputUnwritable, "The list of existing recordings can't be saved.")
                .file(folder)
                .remedy("Check Steno's state folder, or include existing recordings.")
        })?;
        journal.mark_existing(&recordings).map_err(|error| error.failure())
    }

    /// Writes what the watched folder of a finished recording says, else what its settings do;
    /// whether anything was written. What can't be is said with the transcript,
    /// which then waits to be saved. Blocks on the disk.
    pub(super) fn export(&self, id: JobId) -> bool {
        let (folder, sample) = {
            let shared = self.lock();
            let Some(entry) = shared.queue.get(id) else { return false };
            (entry.watched.clone(), entry.sample)
        };
        let (exporting, place) = match folder {
            Some(folder) => {
                let mut watched = self.watched().into_iter().map(|watched| watched.folder);
                let Some(folder) = watched.find(|one| one.folder.as_path() == folder) else { return false };
                (folder.exporting.clone(), folder.place())
            }
            None => {
                let when_finished = self.output_of(id).when_finished.filter(|_| !sample);
                let Some(exporting) = when_finished else { return false };
                (exporting, SaveTarget::Beside { replace: false })
            }
        };
        let written = self.save_as(id, &exporting, &place);
        self.change(|shared| {
            for (_, failure) in &written.failures {
                shared.queue.remark(id, Message::export_failed(failure).into());
            }
        });
        self.note_unsaved(id, exporting, place, &written);
        !written.files.is_empty()
    }

    /// Saves what was not saved when a transcript was finished: in those formats and in that place. `replace`:
    /// over files that are there. Blocks on the disk.
    pub fn save_unsaved(&self, id: JobId, replace: bool) -> Written {
        let unsaved = self.lock().queue.get(id).and_then(|entry| entry.not_saved.clone());
        let Some(unsaved) = unsaved else { return Written::default() };
        let Unsaved { exporting, place, .. } = Unsaved::clone(&unsaved);
        let written = self.save_as(id, &exporting, &place.clone().replacing(replace));
        self.note_unsaved(id, exporting, place, &written);
        written
    }

    /// Keeps which of these formats could not be written, and why.
    fn note_unsaved(&self, id: JobId, mut exporting: Exporting, place: SaveTarget, written: &Written) {
        let Some((_, failure)) = written.failures.first() else { return };
        exporting.formats.retain(|format| written.failures.iter().any(|(failed, _)| failed == format));
        let unsaved = Unsaved { failure: failure.clone(), exporting, place };
        self.change(|shared| shared.queue.not_saved(id, unsaved));
    }

    /// The recording is not to be taken from its watched folder again. Blocks
    /// on the disk.
    pub(super) fn take(&self, file: &Path) {
        if let (Some(journal), Ok(identity)) = (self.inner.supervisor.journal(), Identity::of(file)) {
            // Where this fails it is taken once more, and not lost.
            let _ = journal.mark_processed(file, &identity);
        }
    }
}

/// Looks at the folders as long as the session lives.
pub async fn run(inner: Arc<Inner>, watching: Watching) {
    let session = Session { inner };
    let mut memories: BTreeMap<PathBuf, Memory> = BTreeMap::new();
    loop {
        if session.lock().closed {
            return;
        }
        let folders = session.watched();
        if folders.is_empty() {
            session.inner.look.notified().await;
            continue;
        }
        memories.retain(|path, _| folders.iter().any(|one| one.folder.folder.as_path() == path));
        let begun = Instant::now();
        for Watched { folder, .. } in folders {
            let path = folder.folder.0.clone();
            let mut memory = memories.remove(&path).unwrap_or_default();
            let listed = session.clone();
            // A disk that does not answer holds up nothing else.
            let looked = tokio::task::spawn_blocking(move || {
                let found = listed.look(&folder, &mut memory, watching.still);
                (found, memory)
            });
            let Ok((found, memory)) = looked.await else { continue };
            memories.insert(path.clone(), memory);
            session.told(&path, found);
        }
        let pause = watching.pause.max(begun.elapsed() * REST);
        let _ = tokio::time::timeout(pause, session.inner.look.notified()).await;
    }
}

impl Session {
    fn look(
        &self,
        folder: &WatchedFolder,
        memory: &mut Memory,
        still: Duration,
    ) -> Result<Vec<Found>, Failure> {
        let path = folder.folder.as_path();
        let there = recordings(path).map_err(|error| gone(path, &error))?;
        let queued: BTreeSet<PathBuf> = self.lock().queue.iter().map(|entry| entry.file.clone()).collect();
        let naming = self.settings().output.naming();
        let journal = self.inner.supervisor.journal();
        let whole = memory.look(there, still, Instant::now());
        let new = whole.into_iter().filter(|(file, stamp)| {
            if queued.contains(file) || folder.is_exported(file, &naming) || is_known(journal, file, *stamp) {
                return false;
            }
            match is_taken(journal, file, *stamp) {
                Ok(taken) => !taken,
                // It is being written, or its disk is slow to tell.
                Err(error) if error.kind() != io::ErrorKind::PermissionDenied => {
                    memory.forget(file);
                    false
                }
                Err(_) => true,
            }
        });
        Ok(new.map(|(file, _)| check(file)).collect())
    }

    fn told(&self, folder: &Path, found: Result<Vec<Found>, Failure>) {
        let (found, failure) = match found {
            Ok(found) => (found, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        self.inner.watched.send_if_modified(|watched| {
            let one = watched.iter_mut().find(|one| one.folder.folder.as_path() == folder);
            one.is_some_and(|one| std::mem::replace(&mut one.failure, failure.clone()) != failure)
        });
        if !found.is_empty() {
            self.put(found, super::Origin::Watched(folder));
        }
    }
}

fn is_known(journal: Option<&Journal>, file: &Path, stamp: FileStamp) -> bool {
    journal.is_some_and(|journal| journal.is_recorded(file, stamp).unwrap_or(false))
}

/// Fails for a file that is not, once it is opened, what it seemed to be.
fn is_taken(journal: Option<&Journal>, file: &Path, stamp: FileStamp) -> io::Result<bool> {
    let identity = Identity::of(file)?;
    if (identity.bytes, identity.modified) != (stamp.bytes, stamp.modified) {
        return Err(io::Error::other("it has changed"));
    }
    let taken = journal.is_some_and(|journal| journal.is_processed(&identity).unwrap_or(false));
    if let (true, Some(journal)) = (taken, journal) {
        // Under this name too, so that it need not be read at the next start.
        let _ = journal.mark_processed(file, &identity);
    }
    Ok(taken)
}

/// What the looks at one folder have seen.
#[derive(Debug, Default)]
struct Memory(BTreeMap<PathBuf, Seen>);

#[derive(Debug)]
struct Seen {
    stamp: FileStamp,
    since: Instant,
    /// It was found whole before.
    told: bool,
}

impl Memory {
    /// The recordings that are complete and were not returned before.
    fn look(
        &mut self,
        there: Vec<(PathBuf, FileStamp)>,
        still: Duration,
        now: Instant,
    ) -> Vec<(PathBuf, FileStamp)> {
        let mut whole = Vec::new();
        let mut seen = BTreeMap::new();
        for (file, stamp) in there {
            let before = self.0.remove(&file).filter(|before| before.stamp == stamp);
            let mut one = before.unwrap_or(Seen { stamp, since: now, told: false });
            if !one.told && stamp.bytes > 0 && now.duration_since(one.since) >= still {
                one.told = true;
                whole.push((file.clone(), stamp));
            }
            seen.insert(file, one);
        }
        self.0 = seen;
        whole
    }

    fn forget(&mut self, file: &Path) {
        self.0.remove(file);
    }
}

/// Of the folder and those within it; those that can't be opened are passed over.
fn recordings(folder: &Path) -> io::Result<Vec<(PathBuf, FileStamp)>> {
    let (mut found, mut problem) = (Vec::new(), None);
    walk(folder, DEEPEST, &mut |one| match one {
        Ok(file) => found.extend(std::fs::metadata(&file).ok().map(|meta| (file, FileStamp::of(&meta)))),
        Err((other, error)) if other == folder => problem = Some(error),
        Err(_) => {}
    });
    match problem {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

fn gone(folder: &Path, error: &io::Error) -> Failure {
    let failure = match error.kind() {
        io::ErrorKind::NotFound => {
            Failure::new(ErrorCode::FolderNotFound, "The watched folder was not found.")
                .remedy("Connect the disk that it is on, or watch another folder. Steno keeps checking.")
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(ErrorCode::FileUnreadable, "You are not allowed to read the watched folder.")
                .remedy("Change its permissions, or watch another folder.")
        }
        io::ErrorKind::NotADirectory => {
            Failure::new(ErrorCode::FileUnreadable, "This is not a folder.").remedy("Watch a folder instead.")
        }
        _ => Failure::new(ErrorCode::FileUnreadable, format!("The watched folder can't be read ({error})."))
            .remedy("Check the disk or the network that it is on. Steno keeps checking."),
    };
    failure.file(folder)
}

#[cfg(test)]
mod tests;
