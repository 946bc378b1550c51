use candle_core::Error as CandleError;
use memory::Stage;
use memory::death::{says_device_failed, says_no_code, says_out_of_memory};
use memory::ladder::Trouble;

use wire::notice::CardProblem;

use crate::StageError;
use crate::error::first_line;

/// A stage that could not go on, with the stage's name.
#[derive(Debug)]
pub struct Broken {
    pub stage: Stage,
    pub error: StageError,
}

impl Broken {
    /// Whether a step down the ladder may help, and what it is to be told.
    pub fn trouble(&self) -> Option<Trouble> {
        match &self.error {
            StageError::Refused(_) => Some(Trouble::Refused),
            StageError::Model(models::Error::Candle(error)) => of_candle(error),
            StageError::Model(models::Error::WrongResult { .. }) => Some(Trouble::NoCode),
            StageError::Model(_) | StageError::Audio(_) | StageError::Failed(_) => None,
        }
    }

    /// What is wrong with the card, where the engine can't compute on it.
    pub fn card_problem(&self) -> Option<CardProblem> {
        match &self.error {
            StageError::Model(error) => card_problem(error),
            _ => None,
        }
    }

    /// Bytes that were asked for, where that is known.
    pub fn asked(&self) -> Option<u64> {
        match &self.error {
            StageError::Refused(refused) => Some(refused.asked),
            _ => None,
        }
    }
}

/// Out of memory comes wrapped in contexts and backtraces and under several
/// names (driver, cuBLAS, allocator); the text is what they have in common.
fn of_candle(error: &CandleError) -> Option<Trouble> {
    let text = format!("{error} {error:?}");
    if says_out_of_memory(&text) {
        Some(Trouble::OutOfMemory)
    } else if says_no_code(&text) {
        Some(Trouble::NoCode)
    } else if says_device_failed(&text) {
        Some(Trouble::DeviceError)
    } else {
        None
    }
}

/// What is wrong with the card, where the engine can't compute on it.
pub fn card_problem(error: &models::Error) -> Option<CardProblem> {
    match error {
        models::Error::WrongResult { operation } => {
            Some(CardProblem::Result { operation: (*operation).to_owned() })
        }
        models::Error::Candle(error) if of_candle(error) == Some(Trouble::NoCode) => {
            Some(CardProblem::Code { detail: first_line(error) })
        }
        _ => None,
    }
}

/// Names the stage in which `result` went wrong.
pub fn during<T, E: Into<StageError>>(stage: Stage, result: Result<T, E>) -> Result<T, Broken> {
    result.map_err(|error| Broken { stage, error: error.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn out_of_memory_is_recognised_through_every_wrapping() {
        let message = |text: &str| CandleError::Msg(text.to_owned());
        let cases = [
            (message("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")"), Some(Trouble::OutOfMemory)),
            (
                message("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")")
                    .context("while loading model.encoder.layers.3.fc1.weight")
                    .context("large-v3"),
                Some(Trouble::OutOfMemory),
            ),
            (message("CublasError(CUBLAS_STATUS_ALLOC_FAILED)").bt(), Some(Trouble::OutOfMemory)),
            (
                CandleError::wrap(message("DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"\")")),
                Some(Trouble::OutOfMemory),
            ),
            (
                message("DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")"),
                Some(Trouble::DeviceError),
            ),
            (
                message("DriverError(CUDA_ERROR_NOT_FOUND, \"named symbol not found\")").context("large-v3"),
                Some(Trouble::NoCode),
            ),
            (message("shape mismatch in matmul"), None),
        ];
        for (error, expected) in cases {
            let text = error.to_string();
            let broken =
                Broken { stage: Stage::Transcribe, error: StageError::Model(models::Error::Candle(error)) };
            assert_eq!(broken.trouble(), expected, "{text}");
        }
    }
}
