use std::path::PathBuf;

/// An error in loading, running or quantising a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that every model of this layout has is not there.
    #[error("{file} is missing in the model's folder {folder}", folder = .folder.display())]
    Missing {
        /// The model's folder.
        folder: PathBuf,
        /// The name of the missing file.
        file: &'static str,
    },
    /// A file or folder can't be opened or read.
    #[error("{} can't be read: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// An output file can't be written.
    #[error("{} can't be written: {source}", .path.display())]
    Write {
        /// The output file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// A file is damaged, or its contents are not what the model needs.
    #[error("{} is not valid: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence.
        reason: String,
    },
    /// The model is not a Whisper model; `model_type` of its `config.json`.
    #[error("the model is of the kind {0:?}, which is not supported")]
    Unsupported(String),
    /// The caller's [`Tick`](crate::whisper::Tick) returned `false`.
    #[error("interrupted")]
    Interrupted,
    /// A tensor operation failed: shapes do not match, or the device has no
    /// memory left or reported an error.
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
