use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A program that runs jobs. The number of a process is used again some day;
/// together with the time of its start it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Host {
    pub pid: u32,
    /// Milliseconds since 1970 at which it opened the journal.
    pub started: i64,
}

/// Shows for as long as it lives that a host does. A lock on a file, since the
/// system takes it away however the process ends, on every system alike.
#[derive(Debug)]
pub struct SignOfLife {
    pub host: Host,
    folder: PathBuf,
    file: File,
}

impl SignOfLife {
    pub fn start(folder: &Path) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut host = Host { pid: std::process::id(), started: now() };
        loop {
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).open(path(folder, host)) {
                Ok(file) => {
                    file.lock()?;
                    return Ok(Self { host, folder: folder.into(), file });
                }
                // This process has another one since the same millisecond.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => host.started += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it can't be told, the host counts as alive: better a job that
    /// waits than one that runs twice.
    pub fn is_alive(&self, host: Host) -> bool {
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

impl Drop for SignOfLife {
    fn drop(&mut self) {
        let _ = fs::remove_file(path(&self.folder, self.host));
        let _ = self.file.unlock();
    }
}

fn path(folder: &Path, host: Host) -> PathBuf {
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
    fn a_host_is_alive_until_it_ends_however_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let ours = SignOfLife::start(folder.path()).unwrap();
        let other = SignOfLife::start(folder.path()).unwrap();
        assert_ne!(ours.host, other.host);
        let gone = other.host;
        assert!(ours.is_alive(gone) && other.is_alive(ours.host));
        drop(other);
        assert!(!ours.is_alive(gone) && ours.is_alive(ours.host));
        // What a host that was killed leaves: its file, without the lock.
        let killed = Host { pid: 1, started: 2 };
        fs::write(path(folder.path(), killed), "").unwrap();
        assert!(!ours.is_alive(killed) && !path(folder.path(), killed).exists());
    }
}
