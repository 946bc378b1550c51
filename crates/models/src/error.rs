use std::path::PathBuf;

/// Why a model can't be loaded or run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{file} is missing in the model's folder {folder}", folder = .folder.display())]
    Missing { folder: PathBuf, file: &'static str },
    #[error("{} can't be read: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} can't be written: {source}", .path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{} is not valid: {reason}", .path.display())]
    Invalid { path: PathBuf, reason: String },
    #[error("the model is of the kind {0:?}, which is not supported")]
    Unsupported(String),
    /// The caller's tick asked to stop.
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
}

impl Error {
    pub(crate) fn invalid(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Invalid { path: path.into(), reason: reason.to_string() }
    }
}

impl From<formats::Error> for Error {
    fn from(error: formats::Error) -> Self {
        match error {
            formats::Error::Missing { folder, file } => Self::Missing { folder, file },
            formats::Error::Io { path, source } => Self::Io { path, source },
            formats::Error::Invalid { path, reason } => Self::Invalid { path, reason },
            formats::Error::Unsupported { kind, .. } => Self::Unsupported(kind),
        }
    }
}
