//! Whisper (Radford et al. 2022, arXiv:2212.04356): configuration, vocabulary
//! and network. Searching for tokens is up to the `pipeline` crate.

mod encoder;
mod generation;
mod ggml_vocabulary;
mod model;
mod vocabulary;

pub use encoder::Encoder;
pub(crate) use encoder::audio_positions;
pub use formats::{Activation, WhisperConfig};
pub(crate) use model::NAMES;
pub use model::{Whisper, vocabulary};
pub use vocabulary::{TextEncoder, Vocabulary};
