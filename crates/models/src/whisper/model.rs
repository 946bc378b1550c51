use std::path::Path;

use candle_core::{DType, Device};
use memory::{DeviceKind, Precision};

use super::generation::GenerationConfig;
use super::{Encoder, Vocabulary};
use crate::decoder::{Decoder, DecoderNames, DecoderSize, OutputNames};
use crate::layers::{LayerNames, LoadedBytes, Loader, Tick, computed_in, dtype};
use crate::{Error, ModelFiles, Weights, ggml};
use formats::{AdapterFile, RememberedCorrection, WhisperConfig};

/// What the parts are called in the layout of Hugging Face.
pub(crate) const NAMES: DecoderNames = DecoderNames {
    layer: LayerNames {
        self_norm: "self_attn_layer_norm",
        cross_norm: "encoder_attn_layer_norm",
        feed_forward_norm: "final_layer_norm",
        out: "out_proj",
        up: "fc1",
        down: "fc2",
        key_bias: false,
    },
    norm: "layer_norm",
    embedding_norm: None,
    output: OutputNames::Maybe { layer: "proj_out" },
};

/// A loaded Whisper model. Immutable.
#[derive(Debug)]
pub struct Whisper {
    /// Its dimensions and activation.
    pub config: WhisperConfig,
    /// Its tokens.
    pub vocabulary: Vocabulary,
    /// Its encoder.
    pub encoder: Encoder,
    /// Its decoder.
    pub decoder: Decoder,
    /// The type of activations.
    pub dtype: DType,
    /// The precision that most weights are held in. It may be larger than the
    /// requested one, whose blocks the rows of some matrices do not fit.
    pub precision: Precision,
    /// The bytes that the weights take on the device.
    pub weight_bytes: u64,
    /// The device that holds the weights and computes.
    pub device: Device,
    /// The decoder's (layer, head) pairs whose cross-attention follows the audio.
    pub alignment_heads: Vec<(usize, usize)>,
    /// Corrections that its adapter remembers.
    pub remembered: Vec<RememberedCorrection>,
}

impl Whisper {
    /// Loads the model at `path`, tensor by tensor. `path` is a folder in the
    /// Hugging Face layout with safetensors or one GGUF file, such a GGUF file, or
    /// a file of whisper.cpp, which includes everything else.
    ///
    /// Matrices are converted to `precision`, whatever the file stores.
    /// Convolutions, norms, biases and positions are held in the type of
    /// activations: 32 bits on the host, 16 bits on a GPU unless `precision` is
    /// [`Precision::F32`]. A card that does not compute in [`Precision::Bf16`] takes
    /// [`Precision::F16`] in its place.
    ///
    /// The token embedding shares one matrix with the output projection unless
    /// the model has a separate one. It is held in `precision` too, as it is the
    /// larger half of the small models; a row is converted when it is looked up.
    ///
    /// # Errors
    /// [`Error::Files`] for files that are not a complete Whisper model;
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`]
    /// if the device fails or has no memory left.
    pub fn load(path: &Path, device: &Device, precision: Precision, on_layer: &Tick) -> Result<Self, Error> {
        Self::load_adapted(path, None, device, precision, on_layer)
    }

    /// As [`Whisper::load`], with an adapter added to the matrices that it names, before they are
    /// converted (decoding takes neither longer nor more memory), and with the corrections that it remembers.
    ///
    /// # Errors
    /// As [`Whisper::load`]; [`Error::Files`] for an adapter of another model's shape.
    pub fn load_adapted(
        path: &Path,
        mut adapter: Option<AdapterFile>,
        device: &Device,
        precision: Precision,
        on_layer: &Tick,
    ) -> Result<Self, Error> {
        let precision = computed_in(device, precision)?;
        let dtype = dtype(device, precision);
        let loaded = LoadedBytes::default();
        let config = WhisperConfig::read(path)?;
        let (generation, vocabulary) = described(path, &config)?;
        if let Some(adapter) = &adapter {
            adapter.check_width(config.dimensions.width)?;
        }
        let remembered =
            adapter.as_mut().map(|adapter| std::mem::take(&mut adapter.remembered)).unwrap_or_default();
        let weights = Weights::open(path)?.adapted(adapter);
        let loader = Loader {
            weights: &weights,
            precision,
            dtype,
            is_encoder: false,
            device,
            loaded: &loaded,
            prefix: "",
        };
        let encoder = Encoder::load(loader, &config, on_layer)?;
        let of = &config.dimensions;
        let width = of.width as usize;
        let positions = [of.text_context as usize, width];
        let positions = loader.get("model.decoder.embed_positions.weight", &positions)?;
        let size = DecoderSize {
            width,
            layers: of.decoder_layers as usize,
            heads: of.decoder_heads as usize,
            hidden: of.decoder_ffn as usize,
            vocabulary: of.vocabulary as usize,
            activation: config.activation,
        };
        let decoder = Decoder::load(loader, &NAMES, &size, positions, on_layer)?;
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
            precision: loaded.precision().unwrap_or(precision),
            weight_bytes: loaded.bytes(),
            device: device.clone(),
            alignment_heads,
            remembered,
        })
    }

    /// The precision in which a device computes fastest without a significant loss
    /// of accuracy.
    pub fn preferred(device: &Device) -> Precision {
        Precision::F32.usual_on(if device.is_cpu() { DeviceKind::Host } else { DeviceKind::Gpu })
    }
}

/// The tokens of the model at `path`, without loading its weights.
///
/// # Errors
/// As [`Whisper::load`].
pub fn vocabulary(path: &Path) -> Result<Vocabulary, Error> {
    Ok(described(path, &WhisperConfig::read(path)?)?.1)
}

/// What the files beside the weights say of how to use them.
fn described(path: &Path, config: &WhisperConfig) -> Result<(GenerationConfig, Vocabulary), Error> {
    Ok(match ModelFiles::find(path)? {
        ModelFiles::Safetensors { folder, .. } | ModelFiles::Gguf { folder, .. } => {
            let generation = GenerationConfig::read(&folder)?;
            let vocabulary = Vocabulary::read(&folder, &generation, config.dimensions.vocabulary as usize)?;
            (generation, vocabulary)
        }
        ModelFiles::Ggml { file } => {
            let map = formats::map_file(&file)?;
            let vocabulary =
                ggml::contents(&map).and_then(|contents| Vocabulary::of_ggml(&file, &map, &contents));
            (GenerationConfig::default(), vocabulary.map_err(|reason| Error::invalid(&file, reason))?)
        }
    })
}

/// The heads that openai/whisper uses for models that name none: all heads of the
/// later half of the layers.
fn default_alignment_heads(config: &WhisperConfig) -> Vec<(usize, usize)> {
    let (layers, heads) =
        (config.dimensions.decoder_layers as usize, config.dimensions.decoder_heads as usize);
    (layers / 2..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))).collect()
}
