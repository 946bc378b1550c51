use std::collections::HashMap;
use std::path::Path;

use memory::Dimensions;
use serde::Deserialize;

use crate::{Error, Source, ggml};

/// Dimensions of the network: `config.json` of the Hugging Face layout.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Config {
    #[serde(default)]
    pub model_type: String,
    pub num_mel_bins: usize,
    pub max_source_positions: usize,
    pub max_target_positions: usize,
    pub d_model: usize,
    pub encoder_layers: usize,
    pub encoder_attention_heads: usize,
    pub encoder_ffn_dim: usize,
    pub decoder_layers: usize,
    pub decoder_attention_heads: usize,
    pub decoder_ffn_dim: usize,
    pub vocab_size: usize,
    #[serde(default)]
    pub activation_function: Activation,
}

/// The non-linearity between the two linear layers of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// By the error function, as Whisper was trained.
    #[default]
    Gelu,
    /// By the hyperbolic tangent.
    GeluNew,
    Relu,
}

impl Config {
    /// Of the model at `path`: a folder, or a GGUF or whisper.cpp file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let folder = match Source::find(path)? {
            Source::Safetensors { folder, .. } | Source::Gguf { folder, .. } => folder,
            Source::Ggml { file } => {
                let contents = ggml::contents(&formats::map(&file)?);
                return contents
                    .map(|contents| Self::from(contents.dimensions))
                    .map_err(|reason| Error::invalid(file, reason));
            }
        };
        Self::read_json(&folder)
    }

    fn read_json(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("config.json");
        let config: Self = read_json(folder, "config.json")?;
        if config.model_type != "whisper" {
            return Err(Error::Unsupported(config.model_type));
        }
        formats::check(&config.dimensions()).map_err(|reason| Error::invalid(path, reason))?;
        Ok(config)
    }

    /// As `memory` predicts from.
    pub fn dimensions(&self) -> Dimensions {
        Dimensions {
            mel_bins: self.num_mel_bins as u64,
            audio_context: self.max_source_positions as u64,
            text_context: self.max_target_positions as u64,
            width: self.d_model as u64,
            encoder_layers: self.encoder_layers as u64,
            encoder_heads: self.encoder_attention_heads as u64,
            encoder_ffn: self.encoder_ffn_dim as u64,
            decoder_layers: self.decoder_layers as u64,
            decoder_heads: self.decoder_attention_heads as u64,
            decoder_ffn: self.decoder_ffn_dim as u64,
            vocabulary: self.vocab_size as u64,
        }
    }

    /// Frames of log-mel that one window holds: two per source position,
    /// since the second convolution has a stride of 2.
    pub fn window_frames(&self) -> usize {
        2 * self.max_source_positions
    }
}

/// Of a file that names no other activation than Whisper was trained with.
impl From<Dimensions> for Config {
    fn from(dimensions: Dimensions) -> Self {
        Self {
            model_type: "whisper".into(),
            num_mel_bins: dimensions.mel_bins as usize,
            max_source_positions: dimensions.audio_context as usize,
            max_target_positions: dimensions.text_context as usize,
            d_model: dimensions.width as usize,
            encoder_layers: dimensions.encoder_layers as usize,
            encoder_attention_heads: dimensions.encoder_heads as usize,
            encoder_ffn_dim: dimensions.encoder_ffn as usize,
            decoder_layers: dimensions.decoder_layers as usize,
            decoder_attention_heads: dimensions.decoder_heads as usize,
            decoder_ffn_dim: dimensions.decoder_ffn as usize,
            vocab_size: dimensions.vocabulary as usize,
            activation_function: Activation::Gelu,
        }
    }
}

/// What `generation_config.json` says about the tokens; everything in it is
/// optional, since old models come without.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GenerationConfig {
    /// (layer, head) whose cross-attention follows the audio.
    pub alignment_heads: Option<Vec<(usize, usize)>>,
    pub suppress_tokens: Option<Vec<u32>>,
    pub begin_suppress_tokens: Option<Vec<u32>>,
    pub lang_to_id: Option<HashMap<String, u32>>,
    pub is_multilingual: Option<bool>,
}

impl GenerationConfig {
    pub fn read(folder: &Path) -> Result<Self, Error> {
        if !folder.join("generation_config.json").is_file() {
            return Ok(Self::default());
        }
        read_json(folder, "generation_config.json")
    }
}

pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    folder: &Path,
    file: &'static str,
) -> Result<T, Error> {
    let path = folder.join(file);
    if !path.is_file() {
        return Err(Error::Missing { folder: folder.into(), file });
    }
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::invalid(path, error))
}
