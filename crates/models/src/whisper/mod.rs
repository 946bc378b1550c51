//! Whisper (Radford et al. 2022, arXiv:2212.04356): configuration, vocabulary
//! and network. How its tokens are searched for is the pipeline's business.

mod decoder;
mod encoder;
mod generation;
mod layers;
mod model;
mod vocabulary;
mod vocabulary_of_ggml;

pub use decoder::{CrossScores, Decoder, DecoderState};
pub use encoder::Encoder;
pub use formats::{Activation, WhisperConfig};
pub use generation::GenerationConfig;
pub use layers::Tick;
pub use model::Whisper;
pub use vocabulary::Vocabulary;
