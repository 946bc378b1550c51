//! Where fetched recordings lie. A worker that is killed leaves some behind; the next one on the machine sweeps them.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};

use config::folders::make_private;
use tempfile::TempDir;
use wire::{ErrorCode, Failure};

/// Beside each worker's folder, held as long as it lives.
const LOCK: &str = "lock";

/// The folder of one worker's fetched recordings; removed with this value.
#[derive(Debug)]
pub(crate) struct Spool {
    folder: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Spool {
    /// In the state folder, after what workers that are gone left there was removed.
    pub fn open(state: &Path) -> Result<Self, Failure> {
        let all = state.join("worker");
        let unusable = |error: io::Error| {
            let message = format!("The folder for fetched recordings can't be used ({error}).");
            Failure::new(ErrorCode::OutputUnwritable, message)
                .file(all.as_path())
                .remedy("Check its permissions, or name another folder with STENO_STATE_FOLDER.")
        };
        make_private(&all).map_err(unusable)?;
        // One at a time: a worker that starts has its folder before its lock.
        let starting = File::create(all.join(LOCK)).map_err(unusable)?;
        starting.lock().map_err(unusable)?;
        sweep(&all);
        let name = format!("{}-{}", std::process::id(), crate::record::now());
        let (folder, lock) = (all.join(&name), all.join(format!("{name}.{LOCK}")));
        let held = File::create(&lock).map_err(unusable)?;
        held.lock().map_err(unusable)?;
        make_private(&folder).map_err(unusable)?;
        Ok(Self { folder, lock, _held: held })
    }

    /// A folder for one recording, and the file to write in it. The recording keeps its name, which its transcript has.
    pub fn place(&self, name: &str, bytes: u64) -> Result<(TempDir, PathBuf), Failure> {
        if let Some(free) = hub::platform::free_space(&self.folder).filter(|free| *free < bytes) {
            let (free, wanted) = (memory::bytes::human(free), memory::bytes::human(bytes));
            let message = format!("The recording has {wanted}, and {free} of disk space is left.");
            return Err(Failure::new(ErrorCode::DiskFull, message)
                .file(self.folder.as_path())
                .remedy("Free disk space on the worker, or name another folder with STENO_STATE_FOLDER."));
        }
        let folder = TempDir::with_prefix_in("job-", &self.folder).map_err(|error| {
            let message = format!("The fetched recording can't be kept ({error}).");
            Failure::new(ErrorCode::OutputUnwritable, message).file(self.folder.as_path())
        })?;
        let file = folder.path().join(plain(name));
        Ok((folder, file))
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(&self.lock);
    }
}

/// Removes what belongs to no living worker.
fn sweep(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        if !path.is_dir() {
            continue;
        }
        let mut lock = path.clone().into_os_string();
        lock.push(format!(".{LOCK}"));
        let is_held = File::open(&lock).is_ok_and(|file| file.try_lock().is_err());
        if !is_held {
            let _ = fs::remove_dir_all(&path);
            let _ = fs::remove_file(&lock);
        }
    }
}

/// A name that others chose, as a file's name and nothing else.
fn plain(name: &str) -> String {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(only)), None) if !name.contains(['/', '\\', '\0']) => {
            only.to_string_lossy().into_owned()
        }
        _ => "recording".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_never_lead_elsewhere() {
        for (name, expected) in [
            ("talk.flac", "talk.flac"),
            ("a b – ü.mp3", "a b – ü.mp3"),
            ("../talk.flac", "recording"),
            ("/etc/passwd", "recording"),
            ("..", "recording"),
            ("", "recording"),
            ("a\\b", "recording"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }

    #[test]
    fn what_a_killed_worker_left_is_swept_and_a_living_ones_stays() {
        let state = tempfile::tempdir().unwrap();
        let left = state.path().join("worker/1-2");
        fs::create_dir_all(left.join("job-x")).unwrap();
        fs::write(left.join("job-x/talk.flac"), "sound").unwrap();
        let living = Spool::open(state.path()).unwrap();
        assert!(!left.exists());
        let (folder, file) = living.place("talk.flac", 1).unwrap();
        fs::write(&file, "sound").unwrap();
        sweep(&state.path().join("worker"));
        assert!(file.exists());
        drop(folder);
        assert!(!file.exists());
        assert_eq!(living.place("talk.flac", u64::MAX).unwrap_err().code, ErrorCode::DiskFull);
        drop(living);
        let names = fs::read_dir(state.path().join("worker")).unwrap().flatten();
        let names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        assert_eq!(names, [LOCK]);
    }
}
