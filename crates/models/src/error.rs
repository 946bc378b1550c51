use std::path::PathBuf;

/// An error in loading, running or quantising a model.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of the model is missing, can't be read, is damaged, or describes another kind of model.
    #[error(transparent)]
    Files(#[from] formats::Error),
    /// An output file can't be written.
    #[error("{} can't be written: {source}", .path.display())]
    Write {
        /// The output file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The caller's [`Tick`](crate::Tick) returned `false`.
    #[error("interrupted")]
    Interrupted,
    /// A graphics card computes something else than it should.
    #[error("the operation \"{operation}\" gives a wrong result on this graphics card")]
    WrongResult {
        /// What was computed.
        operation: &'static str,
    },
    /// A tensor operation failed: shapes do not match, or the device has no
    /// memory left or reported an error.
    #[error(transparent)]
    Candle(#[from] candle_core::Error),
}

impl Error {
    pub(crate) fn invalid(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Files(formats::Error::Invalid { path: path.into(), reason: reason.to_string() })
    }
}
