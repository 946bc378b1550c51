use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::source::Source;
use crate::weights::map;
use crate::{Error, ggml};

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
                let contents = ggml::contents(&map(&file)?);
                return contents
                    .map(|contents| contents.config)
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
        config.check().map_err(|reason| Error::invalid(path, reason))?;
        Ok(config)
    }

    /// Dimensions that no network can have, or that would make us allocate
    /// more than any real one, are refused before anything is allocated.
    pub(crate) fn check(&self) -> Result<(), String> {
        const LIMIT: usize = 1 << 20;
        let sizes = [
            ("num_mel_bins", self.num_mel_bins),
            ("max_source_positions", self.max_source_positions),
            ("max_target_positions", self.max_target_positions),
            ("d_model", self.d_model),
            ("encoder_layers", self.encoder_layers),
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("encoder_ffn_dim", self.encoder_ffn_dim),
            ("decoder_layers", self.decoder_layers),
            ("decoder_attention_heads", self.decoder_attention_heads),
            ("decoder_ffn_dim", self.decoder_ffn_dim),
            ("vocab_size", self.vocab_size),
        ];
        if let Some((name, size)) = sizes.iter().find(|(_, size)| *size == 0 || *size > LIMIT) {
            return Err(format!("{name} is {size}"));
        }
        for (name, heads) in [
            ("encoder_attention_heads", self.encoder_attention_heads),
            ("decoder_attention_heads", self.decoder_attention_heads),
        ] {
            if !self.d_model.is_multiple_of(heads) {
                return Err(format!("d_model {} is not a multiple of {name} {heads}", self.d_model));
            }
        }
        Ok(())
    }

    /// Frames of log-mel that one window holds: two per source position,
    /// since the second convolution has a stride of 2.
    pub fn window_frames(&self) -> usize {
        2 * self.max_source_positions
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
