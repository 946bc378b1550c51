use std::path::Path;

use memory::Dimensions;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, ModelFiles, check_dimensions, ggml, map_file};

const CONFIG: &str = "config.json";

/// A Whisper network, as its files describe it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WhisperConfig {
    /// Its dimensions.
    pub dimensions: Dimensions,
    /// The non-linearity of its blocks.
    pub activation: Activation,
}

/// The non-linearity between the two linear layers of a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Activation {
    /// GELU by the error function, as Whisper was trained.
    #[default]
    Gelu,
    /// GELU by the hyperbolic tangent.
    GeluNew,
    /// The rectified linear unit.
    Relu,
}

/// The fields of `config.json` in the Hugging Face layout that describe the network.
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

impl WhisperConfig {
    /// Reads the configuration of the model at `path`: a folder, or a GGUF or
    /// whisper.cpp file.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the model is not a Whisper model, otherwise
    /// the file that is missing, unreadable or not valid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let folder = match ModelFiles::find(path)? {
            ModelFiles::Safetensors { folder, .. } | ModelFiles::Gguf { folder, .. } => folder,
            ModelFiles::Ggml { file } => {
                let contents = ggml::contents(&map_file(&file)?);
                return contents
                    .map(|it| it.dimensions.into())
                    .map_err(|reason| Error::invalid(file, reason));
            }
        };
        Self::read_folder(&folder)
    }

    /// Reads a folder's `config.json`.
    ///
    /// # Errors
    /// As [`WhisperConfig::read`].
    pub fn read_folder(folder: &Path) -> Result<Self, Error> {
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
        let invalid = |reason: String| Error::invalid(folder.join(CONFIG), reason);
        check_dimensions(&dimensions).map_err(invalid)?;
        let activation = match config.activation_function.as_deref() {
            None | Some("gelu") => Activation::Gelu,
            Some("gelu_new") => Activation::GeluNew,
            Some("relu") => Activation::Relu,
            Some(other) => return Err(invalid(format!("the activation function {other} is not supported"))),
        };
        Ok(Self { dimensions, activation })
    }

    /// Frames of log-mel that one window holds: two per source position,
    /// since the second convolution has a stride of 2.
    pub fn window_frames(&self) -> usize {
        2 * self.dimensions.audio_context as usize
    }
}

/// The configuration of a model whose files name no activation: the default one.
impl From<Dimensions> for WhisperConfig {
    fn from(dimensions: Dimensions) -> Self {
        Self { dimensions, activation: Activation::default() }
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
