use std::path::PathBuf;

/// Why a model's files can't be read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file} is missing in the model's folder {folder}", folder = .folder.display())]
    Missing { folder: PathBuf, file: &'static str },
    #[error("{} can't be read: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is not valid: {reason}", .path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("the model is of the kind {kind:?}, which is not supported")]
    Unsupported { path: PathBuf, kind: String },
}

impl Error {
    pub(crate) fn invalid(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Invalid { path: path.into(), reason: reason.to_string() }
    }
}
