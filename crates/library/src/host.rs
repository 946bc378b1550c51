//! Processes that run jobs, and whether they are still alive.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A process that runs jobs. Process ids are reused, but not together with the
/// time of the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostProcess {
    /// Id of the process.
    pub pid: u32,
    /// When it opened the journal, in milliseconds since 1970.
    pub started: i64,
}

/// A locked file that shows other processes that this host is alive. All systems
/// release the lock when the process ends, in whatever way.
#[derive(Debug)]
pub struct HostLock {
    pub host: HostProcess,
    folder: PathBuf,
    file: File,
}

impl HostLock {
    pub fn start(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut host = HostProcess { pid: std::process::id(), started: now() };
        loop {
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).open(path(folder, host)) {
                Ok(file) => {
                    file.lock()?;
                    return Ok(Self { host, folder: folder.into(), file });
                }
                // This process created another one in the same millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => host.started += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether a host is alive. If that can't be determined it counts as alive,
    /// since a job that waits is better than one that runs twice.
    pub fn is_alive(&self, host: HostProcess) -> bool {
        let path = path(&self.folder, host);
        match File::open(&path) {
            Ok(file) => match file.try_lock() {
                Ok(()) => {
                    let _ = fs::remove_file(&path);
                    false
                }
                Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
            },
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl Drop for HostLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(path(&self.folder, self.host));
        let _ = self.file.unlock();
    }
}

fn path(folder: &Path, host: HostProcess) -> PathBuf {
    folder.join(format!("{}-{}.lock", host.pid, host.started))
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_alive_until_its_lock_is_released() {
        let folder = tempfile::tempdir().unwrap();
        let ours = HostLock::start(folder.path()).unwrap();
        let other = HostLock::start(folder.path()).unwrap();
        assert_ne!(ours.host, other.host);
        let gone = other.host;
        assert!(ours.is_alive(gone) && other.is_alive(ours.host));
        drop(other);
        assert!(!ours.is_alive(gone) && ours.is_alive(ours.host));
        // A killed host leaves its file without the lock.
        let killed = HostProcess { pid: 1, started: 2 };
        fs::write(path(folder.path(), killed), "").unwrap();
        assert!(!ours.is_alive(killed) && !path(folder.path(), killed).exists());
    }
}
