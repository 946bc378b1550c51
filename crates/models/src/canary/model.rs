use std::path::Path;

use candle_core::{Device, Tensor};
use formats::{Activation, CanaryConfig, CanaryTokens, ModelFiles};
use memory::Precision;
use tokenizers::Tokenizer;

use crate::boost::Boost;
use crate::decoder::{Decoder, DecoderNames, DecoderSize, OutputNames};
use crate::fast_conformer::Encoder;
use crate::layers::{LayerNames, LoadedBytes, Loader, Tick, computed_in, dtype};
use crate::token::spelled;
use crate::{Error, Weights};

/// What the parts of the decoder are called in the layout of Hugging Face.
const NAMES: DecoderNames = DecoderNames {
    layer: LayerNames {
        self_norm: "input_layernorm",
        cross_norm: "post_attention_layernorm",
        feed_forward_norm: "final_layernorm",
        out: "o_proj",
        up: "mlp.fc1",
        down: "mlp.fc2",
        key_bias: true,
    },
    norm: "norm",
    embedding_norm: Some("embedding_layernorm"),
    output: OutputNames::Tied { bias: "proj_out.bias" },
};

/// A loaded Canary model. Immutable.
#[derive(Debug)]
pub struct Canary {
    /// Its dimensions.
    pub config: CanaryConfig,
    /// Its tokens.
    pub tokens: CanaryTokens,
    /// How a text is divided into tokens; `None` where tokenizer.json says nothing of it.
    tokenizer: Option<Tokenizer>,
    /// Its encoder.
    pub encoder: Encoder,
    /// Its decoder.
    pub decoder: Decoder,
    /// The precision that most weights are held in. It may be larger than the
    /// requested one, whose blocks the rows of some matrices do not fit.
    pub precision: Precision,
    /// The bytes that the weights take.
    pub weight_bytes: u64,
    /// The device that computes.
    pub device: Device,
}

impl Canary {
    /// Loads the model at `path`, tensor by tensor: a folder in the Hugging Face layout with
    /// safetensors or one GGUF file, or such a GGUF file. Precisions are as in
    /// [`Whisper::load`](crate::whisper::Whisper::load); positions are computed.
    ///
    /// # Errors
    /// [`Error::Files`] for files that are not a complete Canary model, or have numbers that
    /// are not finite; [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`]
    /// if the device fails or has no memory left.
    pub fn load(path: &Path, device: &Device, precision: Precision, on_layer: &Tick) -> Result<Self, Error> {
        let precision = computed_in(device, precision)?;
        let (ModelFiles::Safetensors { folder, .. } | ModelFiles::Gguf { folder, .. }) =
            ModelFiles::find(path)?
        else {
            return Err(Error::invalid(path, "it is a file of whisper.cpp, not a Canary model"));
        };
        let config = CanaryConfig::find(&folder)?
            .ok_or_else(|| Error::invalid(folder.join("config.json"), "it is that of another family"))?;
        let tokens = config.tokens(&folder)?;
        let weights = Weights::open(path)?.refusing_infinite();
        let loaded = LoadedBytes::default();
        let dtype = dtype(device, precision);
        let loader = Loader {
            weights: &weights,
            precision,
            dtype,
            is_encoder: false,
            device,
            loaded: &loaded,
            prefix: "",
        };
        let of = &config.dimensions;
        let in_model = Loader { prefix: "model.", ..loader };
        let encoder = Encoder::load(in_model, &of.encoder, config.scale_input, on_layer)?;
        let width = of.encoder.width as usize;
        let size = DecoderSize {
            width,
            layers: of.decoder_layers as usize,
            heads: of.decoder_heads as usize,
            hidden: of.decoder_ffn as usize,
            vocabulary: of.vocabulary as usize,
            activation: Activation::Relu,
        };
        let positions = positions(of.text_context as usize, width)?.to_dtype(dtype)?.to_device(device)?;
        let decoder = Decoder::load(loader, &NAMES, &size, positions, on_layer)?;
        Ok(Self {
            tokens,
            tokenizer: Tokenizer::from_file(folder.join("tokenizer.json")).ok(),
            encoder,
            decoder,
            precision: loaded.precision().unwrap_or(precision),
            weight_bytes: loaded.bytes(),
            device: device.clone(),
            config,
        })
    }

    /// Words to expect as the model spells them; `None` where there are none.
    pub fn words_to_expect(&self, words: &[String], strength: f32) -> Option<Boost> {
        spelled(words, strength, &self.tokens.pieces, self.tokenizer.as_ref())
    }
}

/// Sines of all frequencies of each position, then cosines, over the root of the width: (length, width), as in NeMo's
/// `FixedPositionalEncoding`.
fn positions(length: usize, width: usize) -> Result<Tensor, Error> {
    let frequencies: Vec<f64> =
        (0..width / 2).map(|at| 10_000f64.powf(-2.0 * at as f64 / width as f64)).collect();
    let root = (width as f64).sqrt();
    let values: Vec<f32> = (0..length)
        .flat_map(|position| {
            let angles = frequencies.iter().map(move |frequency| position as f64 * frequency);
            let sines = angles.clone().map(move |angle| (angle.sin() / root) as f32);
            sines.chain(angles.map(move |angle| (angle.cos() / root) as f32))
        })
        .collect();
    Ok(Tensor::from_vec(values, (length, width), &Device::Cpu)?)
}
