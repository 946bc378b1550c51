//! Where recordings lie, and how a worker gets at them.

pub mod sftp;
pub(crate) mod spool;

use std::path::{Path, PathBuf};
use std::time::Duration;

use library::Identity;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use wire::{ErrorCode, Failure, FilePath};

use crate::connection::{Cluster, failed};
use crate::job::{Submitted, hex};
use sftp::{Remote, Ssh};
use spool::Spool;

/// A source that brings nothing for so long is gone.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Read at once.
const PIECE: usize = 256 << 10;

/// Where a worker finds a recording.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Under a path that is the same on every machine.
    Path {
        /// The path.
        path: FilePath,
    },
    /// In NATS, put there when the job was submitted.
    Upload,
    /// On a server with SFTP.
    Sftp(Remote),
}

/// What identifies a recording's content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of the first and the last MiB in hexadecimal digits, where it was read.
    pub digest: Option<String>,
    /// When it was changed, in milliseconds since 1970, where that is known.
    pub modified: Option<i64>,
}

impl Recording {
    /// Of a file, of which at most 2 MiB are read.
    ///
    /// # Errors
    /// `FileNotFound`, `FileUnreadable` or `NotAFile`, naming the file.
    pub fn of(file: &Path) -> Result<Self, Failure> {
        let identity = Identity::of(file).map_err(|error| unreadable(file, &error))?;
        let Identity { bytes, modified, digest } = identity;
        if bytes == 0 {
            return Err(Failure::new(ErrorCode::FileEmpty, "This file is empty.")
                .file(file)
                .remedy("Copy it again from where it came from."));
        }
        Ok(Self { bytes, digest: Some(hex(&digest)), modified })
    }

    fn is_same(&self, other: &Self) -> bool {
        self.bytes == other.bytes && (self.digest.is_none() || self.digest == other.digest)
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Failure {
    let (code, message, remedy) = match error.kind() {
        std::io::ErrorKind::NotFound => {
            (ErrorCode::FileNotFound, "There is no such file.".to_owned(), "Check the name.")
        }
        std::io::ErrorKind::InvalidInput => {
            (ErrorCode::NotAFile, "This is not a file.".to_owned(), "Name a recording.")
        }
        _ => (
            ErrorCode::FileUnreadable,
            format!("The file can't be read ({error})."),
            "Check its permissions.",
        ),
    };
    Failure::new(code, message).file(file).remedy(remedy)
}

/// A recording on this machine's disk; deleted with this value where it was fetched.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub file: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Cluster {
    /// Gets the recording of a job and checks that it is the one that was submitted.
    pub(crate) async fn fetch(
        &self,
        submitted: &Submitted,
        spool: &Spool,
        ssh: &Ssh,
    ) -> Result<Fetched, Failure> {
        let Submitted { id, name, source, recording, .. } = submitted;
        if let Source::Path { path } = source {
            let (path, wanted) = (path.0.clone(), recording.clone());
            let file = path.clone();
            let found = blocking(move || Recording::of(&path)).await.map_err(|failure| {
                failure.remedy(
                    "Workers must see the recording under this path; without --shared it is uploaded.",
                )
            })?;
            return same(&wanted, &found, &file).map(|()| Fetched { file, _folder: None });
        }
        let (folder, file) = spool.place(name, recording.bytes)?;
        match source {
            Source::Upload => self.download(id, &file).await?,
            Source::Sftp(remote) => ssh.fetch(remote, recording.bytes, &file).await?,
            Source::Path { .. } => {}
        }
        let path = file.clone();
        let found = blocking(move || Recording::of(&path)).await?;
        same(recording, &found, Path::new(name))?;
        Ok(Fetched { file, _folder: Some(folder) })
    }

    /// What was uploaded, whose hash is checked as it comes.
    async fn download(&self, id: &str, file: &Path) -> Result<(), Failure> {
        let object = self.files.get(upload_name(id)).await;
        let mut object = object.map_err(|error| failed("give the recording", &error))?;
        let mut out = create(file).await?;
        copy(&mut object, &mut out, file).await.map(drop).map_err(|trouble| match trouble {
            Trouble::Source(error) => failed("give the whole recording", &error),
            Trouble::Disk(failure) => failure,
        })
    }
}

/// The object that a recording is.
pub(crate) fn upload_name(id: &str) -> String {
    format!("recording.{id}")
}

fn same(wanted: &Recording, found: &Recording, file: &Path) -> Result<(), Failure> {
    if wanted.is_same(found) {
        return Ok(());
    }
    let message = format!(
        "This is not the recording that was submitted: it has {} bytes and had {}.",
        found.bytes, wanted.bytes
    );
    let message = if found.bytes == wanted.bytes {
        "The recording has changed since it was submitted.".to_owned()
    } else {
        message
    };
    Err(Failure::new(ErrorCode::FileUnreadable, message).file(file).remedy("Submit it again."))
}

/// What broke a copy off.
pub(crate) enum Trouble {
    Source(std::io::Error),
    Disk(Failure),
}

pub(crate) async fn create(file: &Path) -> Result<tokio::fs::File, Failure> {
    tokio::fs::File::create(file).await.map_err(|error| disk(file, &error))
}

fn disk(file: &Path, error: &std::io::Error) -> Failure {
    let full = matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded);
    let code = if full { ErrorCode::DiskFull } else { ErrorCode::OutputUnwritable };
    Failure::new(code, format!("The fetched recording can't be kept ({error})."))
        .file(file)
        .remedy("Free disk space on the worker, or name another folder with STENO_STATE_FOLDER.")
}

/// To the end of the source, by pieces. Returns the bytes that were copied.
pub(crate) async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    to: &mut tokio::fs::File,
    file: &Path,
) -> Result<u64, Trouble> {
    let mut piece = vec![0; PIECE];
    let mut copied = 0;
    loop {
        let read = match tokio::time::timeout(PATIENCE, from.read(&mut piece)).await {
            Ok(read) => read,
            Err(_) => Err(std::io::ErrorKind::TimedOut.into()),
        };
        let read = match read {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) => {
                // What came so far counts.
                to.flush().await.map_err(|error| Trouble::Disk(disk(file, &error)))?;
                return Err(Trouble::Source(error));
            }
        };
        to.write_all(&piece[..read]).await.map_err(|error| Trouble::Disk(disk(file, &error)))?;
        copied += read as u64;
    }
    to.flush().await.map_err(|error| Trouble::Disk(disk(file, &error)))?;
    Ok(copied)
}

/// Off the threads that answer NATS and engines: a disk may take its time.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => {
            Err(Failure::new(ErrorCode::Internal, format!("The file can't be looked at ({error}).")))
        }
    }
}
