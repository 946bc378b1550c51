use audio::AudioError;
use wire::{ErrorCode, Failure, FilePath, Job, sentence};

use crate::trouble::card_problem;

/// Why a stage could not finish.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// The recording can't be decoded.
    #[error(transparent)]
    Audio(#[from] AudioError),
    /// The model can't be loaded, or computing failed.
    #[error(transparent)]
    Model(#[from] models::Error),
    /// An error that is worded already.
    #[error("{0}")]
    Failed(Failure),
    /// Not enough memory; nothing was allocated.
    #[error(transparent)]
    Refused(#[from] memory::Refused),
}

impl From<candle_core::Error> for StageError {
    fn from(error: candle_core::Error) -> Self {
        Self::Model(error.into())
    }
}

impl From<Failure> for StageError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl StageError {
    /// As the user gets to see it.
    pub fn failure(self, job: &Job) -> Failure {
        match self {
            Self::Failed(failure) => failure,
            Self::Audio(error) => audio_failure(&error, job),
            Self::Model(error) => model_failure(&error, &job.file),
            Self::Refused(refused) => {
                Failure::new(ErrorCode::OutOfMemory, sentence(&refused.to_string())).file(job.file.clone())
            }
        }
    }
}

fn audio_failure(error: &AudioError, job: &Job) -> Failure {
    // The file is a field of its own, so the text leaves it out.
    let (text, remedy) = error.explain(job.file.as_path());
    Failure::named(error.code(), &text, remedy).file(job.file.clone())
}

/// `file`: what was to be worked on.
pub fn model_failure(error: &models::Error, file: &FilePath) -> Failure {
    use models::Error;
    let remedy = "Install the model again, or choose another one with --model.";
    match error {
        Error::Interrupted => Failure::new(ErrorCode::Cancelled, "Cancelled.").file(file.clone()),
        Error::Files(files) => Failure::new(code_of(files), sentence(&files.to_string())).remedy(remedy),
        Error::Write { .. } => {
            Failure::new(ErrorCode::ModelNotFound, sentence(&error.to_string())).remedy(remedy)
        }
        Error::Candle(error) if memory::death::says_out_of_memory(&error.to_string()) => {
            Failure::new(ErrorCode::OutOfMemory, sentence(&first_line(error))).file(file.clone())
        }
        Error::WrongResult { .. } => no_code(error),
        Error::Candle(cause) if memory::death::says_no_code(&cause.to_string()) => no_code(error),
        Error::Candle(error) => {
            Failure::new(ErrorCode::Internal, sentence(&first_line(error))).file(file.clone())
        }
    }
}

/// Where the CPU may not compute in the card's place.
fn no_code(error: &models::Error) -> Failure {
    let text = card_problem(error).map_or_else(|| error.to_string(), |problem| problem.text());
    Failure::new(ErrorCode::DeviceUnavailable, text).remedy("Use --device cpu until then.")
}

fn code_of(error: &formats::Error) -> ErrorCode {
    match error {
        formats::Error::Missing { .. } | formats::Error::Io { .. } => ErrorCode::ModelNotFound,
        formats::Error::Invalid { .. } => ErrorCode::ModelInvalid,
        formats::Error::Unsupported { .. } => ErrorCode::ModelUnsupported,
    }
}

/// What candle says without the backtrace that it appends where RUST_BACKTRACE is set.
pub fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}
