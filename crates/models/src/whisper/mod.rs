//! Whisper (Radford et al. 2022, arXiv:2212.04356): configuration, vocabulary
//! and network. Searching for tokens is up to the `pipeline` crate.

mod decoder;
mod encoder;
mod generation;
mod ggml_vocabulary;
pub(crate) mod layers;
mod model;
mod vocabulary;

pub use decoder::{CrossScores, Decoder, DecoderState};
pub use encoder::Encoder;
pub(crate) use encoder::audio_positions;
pub use formats::{Activation, WhisperConfig};
pub use layers::Tick;
pub use model::{Whisper, vocabulary};
pub(crate) use model::{computed_in, dtype};
pub use vocabulary::Vocabulary;
