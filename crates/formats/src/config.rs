use std::path::Path;

use memory::Dimensions;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, Source, check, ggml, map};

const CONFIG: &str = "config.json";
/// Those that the network knows.
const ACTIVATIONS: [&str; 3] = ["gelu", "gelu_new", "relu"];

/// As in the Hugging Face layout; what is not about the network is passed over.
#[derive(Debug, Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    num_mel_bins: u64,
    max_source_positions: u64,
    max_target_positions: u64,
    d_model: u64,
    encoder_layers: u64,
    encoder_attention_heads: u64,
    encoder_ffn_dim: u64,
    decoder_layers: u64,
    decoder_attention_heads: u64,
    decoder_ffn_dim: u64,
    vocab_size: u64,
    activation_function: Option<String>,
}

/// Dimensions of the Whisper network at `path`: a folder, or a GGUF or
/// whisper.cpp file. Fails with `Unsupported` for a network of another kind.
pub fn dimensions(path: &Path) -> Result<Dimensions, Error> {
    let folder = match Source::find(path)? {
        Source::Safetensors { folder, .. } | Source::Gguf { folder, .. } => folder,
        Source::Ggml { file } => {
            let contents = ggml::contents(&map(&file)?);
            return contents.map(|it| it.dimensions).map_err(|reason| Error::invalid(file, reason));
        }
    };
    dimensions_in(&folder)
}

/// Those that a folder's config.json names.
pub fn dimensions_in(folder: &Path) -> Result<Dimensions, Error> {
    let config: Config = read_json(folder, CONFIG)?;
    if config.model_type != "whisper" {
        return Err(Error::Unsupported { path: folder.join(CONFIG), kind: config.model_type });
    }
    let dimensions = Dimensions {
        mel_bins: config.num_mel_bins,
        audio_context: config.max_source_positions,
        text_context: config.max_target_positions,
        width: config.d_model,
        encoder_layers: config.encoder_layers,
        encoder_heads: config.encoder_attention_heads,
        encoder_ffn: config.encoder_ffn_dim,
        decoder_layers: config.decoder_layers,
        decoder_heads: config.decoder_attention_heads,
        decoder_ffn: config.decoder_ffn_dim,
        vocabulary: config.vocab_size,
    };
    let wrong = |reason: String| Error::invalid(folder.join(CONFIG), reason);
    check(&dimensions).map_err(wrong)?;
    match config.activation_function {
        Some(other) if !ACTIVATIONS.contains(&other.as_str()) => {
            Err(wrong(format!("the activation function {other} is none that is known")))
        }
        _ => Ok(dimensions),
    }
}

/// Reads a JSON file of a model's folder.
///
/// # Errors
/// [`Error::Missing`] if there is no such file, [`Error::Io`] if it can't be
/// read, [`Error::Invalid`] if it is not JSON of this type.
pub fn read_json<T: DeserializeOwned>(folder: &Path, file: &'static str) -> Result<T, Error> {
    let path = folder.join(file);
    if !path.is_file() {
        return Err(Error::Missing { folder: folder.into(), file });
    }
    let text = std::fs::read(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    serde_json::from_slice(&text).map_err(|error| Error::invalid(path, error))
}
