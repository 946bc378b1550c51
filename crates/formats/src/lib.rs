//! Headers of model files: safetensors, GGUF, whisper.cpp's `ggml-*.bin` and, for
//! networks that tell speakers apart, torch's checkpoints and numpy's arrays,
//! recognised by their first bytes. The headers give the position, shape and
//! precision of every tensor. The values are never read, so the programs that
//! only inspect models do not link the libraries that compute with them.
//!
//! Files may be damaged or malicious: every count in a header is checked
//! against the length of the file before it is used.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod adapter;
mod canary;
mod checkpoint;
mod config;
mod dimensions;
mod error;
mod fast_conformer;
pub mod ggml;
pub mod gguf;
mod kind;
mod model_files;
mod model_info;
mod nemotron;
mod npz;
mod parakeet;
mod reader;
mod safetensors;
mod speaker_files;
mod speaker_model;
mod tensors;
mod text_embedding;
mod zip;

pub use adapter::{
    AdapterCard, AdapterFigures, AdapterFile, AdapterMatrix, Learnt, RememberedCorrection, WordErrors,
    fingerprint, write_whole,
};
pub use canary::{CanaryConfig, CanaryTokens};
pub use config::{Activation, WhisperConfig, read_json};
use dimensions::check_dimensions;
pub use error::Error;
pub use fast_conformer::without_ones;
pub use kind::FileKind;
pub use model_files::ModelFiles;
pub use model_info::{Abilities, ModelInfo};
pub use nemotron::{NemotronConfig, NemotronFiles, NemotronMemory};
pub use npz::{Array, read_npz};
pub use parakeet::{ParakeetConfig, ParakeetHead};
pub use speaker_files::SpeakerFiles;
pub use speaker_model::{SpeakerModel, speaker_footprint};
pub use tensors::{TensorInfo, Tensors, map_file};
pub use text_embedding::{Pooling, TextArchitecture, TextEmbeddingConfig, TextEmbeddingModel};
