//! Whisper models of the true dimensions with random weights, in the Hugging
//! Face layout. They transcribe nothing; they show that a model of that size
//! and kind loads and runs, how fast, and in how much memory.
//!
//! The same size, precision and seed give the same bytes on every machine.

pub mod corpus;
mod size;
mod vocabulary;
mod weights;

pub use size::{SIZES, Size, Vocabulary};

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Precision {
    F32,
    F16,
    BF16,
}

/// How the weights are drawn and stored.
#[derive(Debug, Clone)]
pub struct Options {
    pub precision: Precision,
    /// Number of safetensors files; above 1 an index names them.
    pub shards: usize,
    pub seed: u64,
    /// `activation_function` in config.json: `gelu`, or `gelu_new` for the tanh form.
    pub activation: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { precision: Precision::F16, shards: 1, seed: 0, activation: "gelu".into() }
    }
}

/// Writes a model into `folder`, which is made where it is missing. Memory
/// stays flat whatever the size. config.json comes last and is renamed into
/// place: a folder that has one is complete.
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
    write_json(
        &folder.join("config.json"),
        &json!({
            "architectures": ["WhisperForConditionalGeneration"],
            "model_type": "whisper",
            "activation_function": options.activation,
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
            "vocab_size": size.vocabulary.len(),
            "bos_token_id": end,
            "eos_token_id": end,
            "pad_token_id": end,
            "decoder_start_token_id": start,
            "scale_embedding": false,
            "tie_word_embeddings": true,
            "torch_dtype": match options.precision {
                Precision::F32 => "float32",
                Precision::F16 => "float16",
                Precision::BF16 => "bfloat16",
            },
        }),
    )
}

/// True where [`write()`] has already finished in this folder.
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
