//! candle networks and the weight files they come from. Weights are immutable
//! and shared; the state of a decoding is a value of its own. No threads, no
//! audio files, no decisions about what to decode.

mod blocks;
mod error;
mod fused;
mod ggml;
mod gguf;
mod matrix;
mod packed;
mod quantise;
mod reader;
mod source;
mod vectorised;
mod weights;
pub mod whisper;

pub use error::Error;
pub use quantise::{KeptOtherwise, quantise};
pub use source::stored_precision;
pub use weights::Weights;
