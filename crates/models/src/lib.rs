//! Neural networks on candle and their weights. Weights are immutable and
//! shared; the state of a decoding is a separate value. This crate starts no
//! threads of its own, reads no audio and does not decide what to decode.

#![warn(missing_docs, clippy::missing_errors_doc)]

#[cfg(feature = "cuda")]
mod attend;
mod bf16_matrix;
mod blocks;
pub mod boost;
pub mod canary;
pub mod card;
pub mod choose;
pub mod decoder;
mod eight_bits;
mod error;
pub mod fast_conformer;
#[cfg(feature = "cuda")]
mod finish;
mod fused;
mod kv_cache;
mod largest;
mod layers;
mod matrix;
mod norm;
mod packed;
mod panels;
pub mod parakeet;
mod prepacked;
mod products;
mod quantise;
mod right_factor;
mod rounded_audio;
pub mod speakers;
pub mod text_embedding;
mod token;
pub mod training;
mod vectorised;
mod weights;
pub mod whisper;

use formats::{ModelFiles, ggml, gguf};

pub use error::Error;
pub use fused::log_sum_exp;
pub use largest::{arg_max, top};
pub use layers::Tick;
pub use quantise::{PrecisionFallback, quantise};
pub use token::{Token, text_of};
pub use weights::{Weights, stored_precision};
