use std::path::PathBuf;

/// An error in reading a model's files.
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
    /// A file is damaged, or its contents are not what a model needs.
    #[error("{} is not valid: {reason}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, as the end of a sentence.
        reason: String,
    },
    /// The model is of no family that is known, or an unknown variant of one.
    #[error("the model is of the kind {kind:?}, which is not supported")]
    Unsupported {
        /// Its `config.json`.
        path: PathBuf,
        /// The `model_type` in that file.
        kind: String,
    },
}

impl Error {
    pub(crate) fn invalid(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Invalid { path: path.into(), reason: reason.to_string() }
    }
}
