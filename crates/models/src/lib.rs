//! candle networks and the weight files they come from. Weights are immutable
//! and shared; the state of a decoding is a value of its own. No threads, no
//! audio files, no decisions about what to decode.

mod error;
mod weights;
pub mod whisper;

pub use error::Error;
pub use weights::Weights;
