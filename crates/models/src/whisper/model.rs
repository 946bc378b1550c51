use std::path::Path;

use candle_core::{DType, Device};

use super::config::{Config, GenerationConfig};
use super::layers::{Loader, Tick};
use super::{Decoder, Encoder, Vocabulary};
use crate::{Error, Weights};

/// A loaded Whisper model: immutable.
#[derive(Debug)]
pub struct Whisper {
    pub config: Config,
    pub vocabulary: Vocabulary,
    pub encoder: Encoder,
    pub decoder: Decoder,
    pub dtype: DType,
    pub device: Device,
    /// (layer, head) whose cross-attention follows the audio.
    pub alignment_heads: Vec<(usize, usize)>,
}

impl Whisper {
    /// Loads a folder in the Hugging Face layout, tensor by tensor, converted
    /// to what the device computes in.
    pub fn load(folder: &Path, device: &Device, dtype: DType, on_layer: &Tick) -> Result<Self, Error> {
        let config = Config::read(folder)?;
        let generation = GenerationConfig::read(folder)?;
        let vocabulary = Vocabulary::read(folder, &generation, config.vocab_size)?;
        let weights = Weights::open(folder)?;
        let loader = Loader { weights: &weights, dtype, device };
        let encoder = Encoder::load(loader, &config, on_layer)?;
        let decoder = Decoder::load(loader, &config, on_layer)?;
        let alignment_heads = generation
            .alignment_heads
            .unwrap_or_else(|| default_alignment_heads(&config))
            .into_iter()
            .filter(|(layer, head)| *layer < config.decoder_layers && *head < config.decoder_attention_heads)
            .collect();
        Ok(Self { config, vocabulary, encoder, decoder, dtype, device: device.clone(), alignment_heads })
    }

    /// What a device computes fastest without losing accuracy that matters.
    pub fn preferred_dtype(device: &Device) -> DType {
        if device.is_cpu() { DType::F32 } else { DType::F16 }
    }
}

/// Every head of the later half of the layers, as openai/whisper takes where
/// a model names none.
fn default_alignment_heads(config: &Config) -> Vec<(usize, usize)> {
    (config.decoder_layers / 2..config.decoder_layers)
        .flat_map(|layer| (0..config.decoder_attention_heads).map(move |head| (layer, head)))
        .collect()
}
