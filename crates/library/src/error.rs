use std::io;
use std::path::{Path, PathBuf};

use wire::{ErrorCode, Failure};

/// An error of the journal or the history. Jobs don't fail because of it but go on
/// without.
#[derive(Debug, thiserror::Error)]
#[error("{}: {} {problem}", .path.display(), subject(.path))]
pub struct Error {
    /// The file of the journal or the history.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with the file of the journal or the history.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Another program has held a lock for longer than a second.
    #[error("is in use by another program.")]
    Locked,
    /// The disk or the user's quota is full.
    #[error("can't be written: the disk is full.")]
    Full,
    /// The user may not write the file, or the file system is read-only.
    #[error("can't be written: you are not allowed to.")]
    NotAllowed,
    /// The file is not a database, or its content is inconsistent.
    #[error("is damaged ({0}).")]
    Damaged(String),
    /// Any other error of the system.
    #[error("can't be used ({0}).")]
    Io(io::Error),
    /// Any other error of SQLite.
    #[error("can't be used ({0}).")]
    Sqlite(rusqlite::Error),
    /// A value can't be written as JSON or read from it.
    #[error("can't hold this job ({0}).")]
    Json(serde_json::Error),
    /// A newer version of the program wrote the file; the number is its schema's.
    #[error("was written by a newer version of Steno (version {0}).")]
    Newer(i64),
    /// Another window has edited the transcript since it was read.
    #[error("has a newer text of this recording: it was changed in another window.")]
    Changed,
}

/// What messages call the file.
pub(crate) fn subject(path: &Path) -> &'static str {
    match path.file_name().and_then(|name| name.to_str()) {
        Some(crate::documents::HISTORY_FILE) => "The history",
        Some(crate::voices::VOICES_FILE) => "The file of voices",
        _ => "The journal",
    }
}

impl Error {
    /// One sentence that says what the user can do.
    pub fn remedy(&self) -> &'static str {
        match self.problem {
            Problem::Locked => "Close the program that is using it.",
            Problem::Full => "Free some space on that disk, or set STENO_STATE_FOLDER to another folder.",
            Problem::NotAllowed => {
                "Change the folder's permissions, or set STENO_STATE_FOLDER to another one."
            }
            Problem::Newer(_) => "Update Steno.",
            Problem::Changed => "Open the transcript again.",
            Problem::Damaged(_) | Problem::Io(_) | Problem::Sqlite(_) | Problem::Json(_) => {
                "Check the disk that it is on, or set STENO_STATE_FOLDER to another folder."
            }
        }
    }

    /// The error for the user: which file, what is wrong, what to do.
    pub fn failure(&self) -> Failure {
        let code = match self.problem {
            Problem::Full => ErrorCode::DiskFull,
            _ => ErrorCode::OutputUnwritable,
        };
        Failure::new(code, format!("{} {}", subject(&self.path), self.problem))
            .file(self.path.clone())
            .remedy(self.remedy())
    }

    pub(crate) fn io(path: &Path, error: io::Error) -> Self {
        let problem = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Problem::Full,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Problem::NotAllowed,
            _ => Problem::Io(error),
        };
        Self { path: path.into(), problem }
    }

    /// From an error of SQLite, which may contain an error of serde_json, see `not_json`.
    pub(crate) fn of(path: &Path, error: rusqlite::Error) -> Self {
        match error {
            rusqlite::Error::ToSqlConversionFailure(error) if error.is::<serde_json::Error>() => {
                match error.downcast() {
                    Ok(error) => Self { path: path.into(), problem: Problem::Json(*error) },
                    Err(error) => Self::sqlite(path, rusqlite::Error::ToSqlConversionFailure(error)),
                }
            }
            error => Self::sqlite(path, error),
        }
    }

    pub(crate) fn sqlite(path: &Path, error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let problem = match error.sqlite_error_code() {
            Some(Code::DatabaseBusy | Code::DatabaseLocked) => Problem::Locked,
            Some(Code::DiskFull) => Problem::Full,
            Some(Code::PermissionDenied | Code::ReadOnly) => Problem::NotAllowed,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Problem::Damaged(error.to_string()),
            _ => Problem::Sqlite(error),
        };
        Self { path: path.into(), problem }
    }
}
