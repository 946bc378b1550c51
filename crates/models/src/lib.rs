//! candle networks and their weights, which are immutable
//! and shared; the state of a decoding is a value of its own. No threads, no
//! audio files, no decisions about what to decode.

mod blocks;
mod error;
mod fused;
mod kv_cache;
mod matrix;
mod packed;
mod products;
mod quantise;
mod vectorised;
mod weights;
pub mod whisper;

use formats::{Source, ggml, gguf};

pub use error::Error;
pub use fused::log_sum_exp;
pub use quantise::{KeptOtherwise, quantise};
pub use weights::{Weights, stored_precision};
