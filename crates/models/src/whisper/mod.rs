//! Whisper (Radford et al. 2022, arXiv:2212.04356): configuration, vocabulary
//! and network. Searching for tokens is up to the `pipeline` crate.

mod config;
mod decoder;
mod encoder;
mod layers;
mod model;
mod vocabulary;
mod vocabulary_of_ggml;

pub use config::{Activation, Config, GenerationConfig};
pub use decoder::{CrossScores, Decoder, DecoderState};
pub use encoder::Encoder;
pub use layers::Tick;
pub use model::Whisper;
pub use vocabulary::Vocabulary;
