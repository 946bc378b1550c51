//! Files of weights by what they begin with: safetensors, GGUF, and those of
//! whisper.cpp. Where each tensor lies, in which shape and precision; the
//! numbers themselves are left alone, so that hosts can look at a model without
//! the libraries that compute with it.
//!
//! Files may be damaged or made to do harm: every count in a header is checked
//! against the file's length before it is believed.

mod config;
mod dimensions;
mod entry;
mod error;
pub mod ggml;
pub mod gguf;
mod kind;
mod reader;
mod safetensors;
mod source;

pub use config::{Activation, WhisperConfig, read_json};
pub use dimensions::check;
pub use entry::{Entry, Tensors, map};
pub use error::Error;
pub use kind::FileKind;
pub use source::Source;
