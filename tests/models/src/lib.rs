#![warn(missing_docs, clippy::missing_errors_doc)]
//! Writes Whisper, Parakeet and Canary models with random weights in the Hugging Face layout. They
//! have the dimensions and vocabularies of the public models, so they serve to
//! test loading, speed and memory; what they transcribe is meaningless.
//!
//! The same size, precision and seed give the same bytes on every machine.

mod canary;
pub mod corpus;
pub mod diarization;
mod nemotron;
mod parakeet;
mod size;
mod speakers;
mod vocabulary;
mod weights;

pub use canary::{CANARY_SIZES, CanarySize, write_canary_model};
pub use nemotron::{NEMOTRON_LAYERS, write_nemotron_model};
pub use parakeet::{PARAKEET_SIZES, ParakeetSize, write_parakeet_model};
pub use size::{SIZES, Size, VocabularyKind};
pub use speakers::write_speaker_model;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

/// The type that weights are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightType {
    /// IEEE 754 single precision.
    F32,
    /// IEEE 754 half precision.
    F16,
    /// bfloat16: the upper half of single precision.
    BF16,
}

/// Options of [`write()`].
#[derive(Debug, Clone)]
pub struct Options {
    /// The type of the weights.
    pub precision: WeightType,
    /// The number of safetensors files. With more than 1 an index names them.
    pub shards: usize,
    /// The seed of the weights.
    pub seed: u64,
    /// `activation_function` in `config.json`: `gelu`, or `gelu_new` for the tanh form.
    pub activation: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { precision: WeightType::F16, shards: 1, seed: 0, activation: "gelu".into() }
    }
}

/// Writes a model to `folder`, which is created if necessary. The memory that this
/// takes does not depend on the size. `config.json` is written last and renamed
/// into place, so a folder that has it is complete.
///
/// # Errors
/// The error of the file system, if a file can't be written.
pub fn write(folder: &Path, size: &Size, options: &Options) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    weights::write(folder, size, options)?;

    let vocabulary = vocabulary::load(size.vocabulary)?;
    let id = |name: &str| vocabulary.id(name);
    let end = id("<|endoftext|>")?;
    let start = id("<|startoftranscript|>")?;
    write_json(&folder.join("tokenizer.json"), &vocabulary.tokenizer())?;
    write_json(&folder.join("generation_config.json"), &vocabulary.generation_config(size)?)?;
    write_json(&folder.join("preprocessor_config.json"), &preprocessor_config(size))?;
    let mut config = described_config(size, size.vocabulary);
    let more = json!({
        "architectures": ["WhisperForConditionalGeneration"],
        "activation_function": options.activation,
        "bos_token_id": end,
        "eos_token_id": end,
        "pad_token_id": end,
        "decoder_start_token_id": start,
        "scale_embedding": false,
        "tie_word_embeddings": true,
        "torch_dtype": match options.precision {
            WeightType::F32 => "float32",
            WeightType::F16 => "float16",
            WeightType::BF16 => "bfloat16",
        },
    });
    if let (Some(config), serde_json::Value::Object(more)) = (config.as_object_mut(), more) {
        config.extend(more);
    }
    write_json(&folder.join("config.json"), &config)
}

/// Writes a folder that describes a public model, with `.en` or without, and has none of its
/// weights: for tests of what reads descriptions alone. `stored`: the type of the weights as
/// safetensors names it. `multilingual`: `is_multilingual` in `generation_config.json`, which is
/// not written for `None`. Returns the folder, which is `name` in `folder`.
///
/// # Errors
/// Where `name` is not among [`SIZES`], or a file can't be written.
pub fn describe(folder: &Path, name: &str, stored: &str, multilingual: Option<bool>) -> io::Result<PathBuf> {
    let base = name.trim_end_matches(".en");
    let size = SIZES.iter().find(|size| size.name == base).ok_or(io::ErrorKind::NotFound)?;
    let vocabulary = if base == name { size.vocabulary } else { VocabularyKind::English };
    let folder = folder.join(name);
    fs::create_dir_all(&folder)?;
    write_json(&folder.join("config.json"), &described_config(size, vocabulary))?;
    if let Some(multilingual) = multilingual {
        write_json(&folder.join("generation_config.json"), &json!({ "is_multilingual": multilingual }))?;
    }
    let header = json!({
        "__metadata__": { "format": "pt" },
        "a.bias": { "dtype": "F32", "shape": [2], "data_offsets": [0, 8] },
        "a.weight": { "dtype": stored, "shape": [4, 4], "data_offsets": [8, 40] },
    })
    .to_string();
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    fs::write(folder.join("model.safetensors"), file)?;
    Ok(folder)
}

/// The kind and dimensions, as `config.json` has them.
fn described_config(size: &Size, vocabulary: VocabularyKind) -> serde_json::Value {
    json!({
        "model_type": "whisper",
        "d_model": size.width,
        "encoder_layers": size.encoder_layers,
        "decoder_layers": size.decoder_layers,
        "encoder_attention_heads": size.heads(),
        "decoder_attention_heads": size.heads(),
        "encoder_ffn_dim": 4 * size.width,
        "decoder_ffn_dim": 4 * size.width,
        "num_mel_bins": size.mel_bins,
        "max_source_positions": size::SOURCE_POSITIONS,
        "max_target_positions": size::TARGET_POSITIONS,
        "vocab_size": vocabulary.len(),
    })
}

/// Whether [`write()`] has completed a model in this folder.
pub fn is_complete(folder: &Path) -> bool {
    folder.join("config.json").is_file()
}

fn preprocessor_config(size: &Size) -> serde_json::Value {
    json!({
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": size.mel_bins,
        "sampling_rate": 16_000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 30,
        "n_samples": 480_000,
        "nb_max_frames": 3_000,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": false,
    })
}

fn write_json(path: &Path, value: &serde_json::Value) -> io::Result<()> {
    let partial = path.with_extension("json.partial");
    let mut file = fs::File::create(&partial)?;
    file.write_all(serde_json::to_string(value)?.as_bytes())?;
    file.sync_all()?;
    fs::rename(partial, path)
}
