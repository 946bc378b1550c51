use std::io;

use transcript::LoadError;
use transcript::save::SaveError;
use wire::{ErrorCode, Failure, FilePath};

/// How a command ended; `main` turns it into an exit code.
#[derive(Debug)]
pub enum Ended {
    Done,
    /// Each failure was reported when it happened.
    SomeFailed,
    /// The arguments contradict each other.
    Usage(String),
    Failed(Failure),
    Cancelled,
    /// The reader of standard output has closed it, as `head` does. There is nothing to
    /// report.
    StdoutClosed,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// What a failed write to standard output means.
impl From<io::Error> for Ended {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::StdoutClosed;
        }
        let (code, remedy) = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                (ErrorCode::DiskFull, "Free some disk space, or write to another disk.")
            }
            _ => (ErrorCode::OutputUnwritable, "Write to a file or another program."),
        };
        let message = format!("Can't write to standard output ({error}).");
        Self::Failed(Failure::new(code, message).remedy(remedy))
    }
}

pub fn from_save(error: &SaveError) -> Failure {
    let remedy = match error {
        SaveError::Exists(_) => "Use --force to replace it, or --output FOLDER to write elsewhere.",
        SaveError::NotAllowed(_) | SaveError::IsFolder(_) | SaveError::Io { .. } => {
            "Choose another folder with --output FOLDER."
        }
        SaveError::NameTooLong(_) => "Choose a shorter name with --name-template, or rename the file.",
        other => other.remedy(),
    };
    Failure::named(error.code(), &error.message(), Some(remedy)).file(error.path())
}

pub fn from_load(file: impl Into<FilePath>, error: &LoadError) -> Failure {
    let code = match error {
        LoadError::Io(error) if error.kind() == io::ErrorKind::NotFound => ErrorCode::FileNotFound,
        LoadError::Io(_) => ErrorCode::FileUnreadable,
        LoadError::Folder(_) => ErrorCode::NotAFile,
        _ => ErrorCode::UnknownFormat,
    };
    let file: FilePath = file.into();
    match code {
        ErrorCode::FileNotFound => {
            Failure::new(code, "There is no such file.").remedy("Check the name.").file(file)
        }
        _ => Failure::new(code, error.to_string()).file(file),
    }
}
