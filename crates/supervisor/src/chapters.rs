//! Finds the chapters of a transcript.

use transcript::Transcript;
use transcript::chapters::{self, Chapter};
use wire::{ErrorCode, Failure, TextRole};

use crate::embedder::{EmbedderSettings, EmbeddingModel};
use crate::meanings::Meanings;

const BY_HAND: &str = "Add chapters in the window, if it needs any.";

/// Why a transcript has no chapters.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ChaptersError {
    /// No model that compares meanings is installed.
    #[error("No model that compares meanings is installed.")]
    NoModel,
    /// The recording is shorter than [`chapters::LEAST_RECORDING`].
    #[error("The recording is shorter than {} minutes.", chapters::LEAST_RECORDING.millis() / 60_000)]
    TooShort,
    /// The subject does not change, as far as the model can tell.
    #[error("No change of subject was found.")]
    OneSubject,
    /// The model or its engine failed.
    #[error("{0}")]
    Failed(Failure),
}

impl ChaptersError {
    /// With its code.
    pub fn failure(self) -> Failure {
        let (code, remedy) = match &self {
            Self::Failed(failure) => return failure.clone(),
            Self::NoModel => {
                (ErrorCode::NoEmbeddingModel, "Install one: steno models pull multilingual-e5-small")
            }
            Self::TooShort => (ErrorCode::RecordingTooShort, BY_HAND),
            Self::OneSubject => (ErrorCode::OneSubject, BY_HAND),
        };
        Failure::new(code, self.to_string()).remedy(remedy)
    }
}

/// Finds where the subject changes, with a model that compares meanings; chapters that are there make no
/// difference. `tell` hears how many of how many texts are compared.
///
/// # Errors
/// See [`ChaptersError`].
pub async fn find(
    transcript: &Transcript,
    meanings: &Meanings,
    model: Option<&EmbeddingModel>,
    settings: &EmbedderSettings,
    mut tell: impl FnMut(usize, usize),
) -> Result<Vec<Chapter>, ChaptersError> {
    if chapters::is_too_short(transcript) {
        return Err(ChaptersError::TooShort);
    }
    let model = model.ok_or(ChaptersError::NoModel)?;
    let blocks = chapters::blocks(transcript);
    let mut vectors = Vec::with_capacity(blocks.len());
    // A batch at a time, so that questions get their turn.
    for some in blocks.chunks(settings.memory.embedding_profile.batch() as usize) {
        tell(vectors.len(), blocks.len());
        let texts = some.iter().map(|block| block.text.clone()).collect();
        let found = meanings.embed(model, settings, TextRole::Passage, texts).await;
        vectors.extend(found.map_err(ChaptersError::Failed)?);
    }
    match chapters::find(transcript, &blocks, &vectors) {
        none if none.is_empty() => Err(ChaptersError::OneSubject),
        found => Ok(found),
    }
}
