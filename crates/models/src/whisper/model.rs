use std::path::Path;

use candle_core::{DType, Device};
use memory::{DeviceKind, Precision};

use super::generation::GenerationConfig;
use super::layers::{Held, Loader, Tick};
use super::{Decoder, Encoder, Vocabulary};
use crate::{Error, Source, Weights, ggml};
use formats::WhisperConfig;

/// A loaded Whisper model: immutable.
#[derive(Debug)]
pub struct Whisper {
    pub config: WhisperConfig,
    pub vocabulary: Vocabulary,
    pub encoder: Encoder,
    pub decoder: Decoder,
    /// What activations are computed in.
    pub dtype: DType,
    /// How most of the weights are held. Not always what was asked for:
    /// matrices whose rows don't fit a format take the next that they do.
    pub precision: Precision,
    /// Bytes that the weights take on the device.
    pub weight_bytes: u64,
    pub device: Device,
    /// (layer, head) whose cross-attention follows the audio.
    pub alignment_heads: Vec<(usize, usize)>,
}

impl Whisper {
    /// Loads a model, tensor by tensor: a folder in the Hugging Face layout with
    /// safetensors or one GGUF file, such a GGUF file itself, or a file of
    /// whisper.cpp, which has everything inside. Matrices are converted to `precision` as they are read, whatever the file has;
    /// convolutions, norms, biases and positions are held as the device
    /// computes: in 32 bits on the host, in 16 on a GPU unless `precision` is
    /// [`Precision::F32`].
    ///
    /// The token embedding is one matrix with the output projection where the
    /// model shares them, held as the others are: of the small models it is
    /// the larger half. A token's row is widened when it is looked up.
    pub fn load(path: &Path, device: &Device, precision: Precision, on_layer: &Tick) -> Result<Self, Error> {
        let dtype = dtype(device, precision);
        let held = Held::default();
        let config = WhisperConfig::read(path)?;
        let (generation, vocabulary) = match Source::find(path)? {
            Source::Safetensors { folder, .. } | Source::Gguf { folder, .. } => {
                let generation = GenerationConfig::read(&folder)?;
                let vocabulary =
                    Vocabulary::read(&folder, &generation, config.dimensions.vocabulary as usize)?;
                (generation, vocabulary)
            }
            Source::Ggml { file } => {
                let map = formats::map(&file)?;
                let vocabulary =
                    ggml::contents(&map).and_then(|contents| Vocabulary::of_ggml(&map, &contents));
                (GenerationConfig::default(), vocabulary.map_err(|reason| Error::invalid(&file, reason))?)
            }
        };
        let weights = Weights::open(path)?;
        let loader = Loader { weights: &weights, precision, dtype, device, held: &held };
        let encoder = Encoder::load(loader, &config, on_layer)?;
        let decoder = Decoder::load(loader, &config, on_layer)?;
        let alignment_heads = generation
            .alignment_heads
            .unwrap_or_else(|| default_alignment_heads(&config))
            .into_iter()
            .filter(|(layer, head)| {
                *layer < config.dimensions.decoder_layers as usize
                    && *head < config.dimensions.decoder_heads as usize
            })
            .collect();
        Ok(Self {
            config,
            vocabulary,
            encoder,
            decoder,
            dtype,
            precision: held.precision().unwrap_or(precision),
            weight_bytes: held.bytes(),
            device: device.clone(),
            alignment_heads,
        })
    }

    /// What a device computes fastest without losing accuracy that matters.
    pub fn preferred(device: &Device) -> Precision {
        Precision::F32.usual_on(if device.is_cpu() { DeviceKind::Host } else { DeviceKind::Gpu })
    }
}

/// The type of activations.
fn dtype(device: &Device, precision: Precision) -> DType {
    match precision {
        _ if device.is_cpu() => DType::F32,
        Precision::F32 => DType::F32,
        Precision::Bf16 => DType::BF16,
        _ => DType::F16,
    }
}

/// Every head of the later half of the layers, as openai/whisper takes where
/// a model names none.
fn default_alignment_heads(config: &WhisperConfig) -> Vec<(usize, usize)> {
    (config.dimensions.decoder_layers as usize / 2..config.dimensions.decoder_layers as usize)
        .flat_map(|layer| (0..config.dimensions.decoder_heads as usize).map(move |head| (layer, head)))
        .collect()
}
