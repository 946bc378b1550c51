//! Speech models in the layout of NVIDIA's Parakeet, with random weights.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use crate::weights::{Tensor, Values, write_file};
use crate::{Options, write_json};

/// The dimensions of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParakeetSize {
    /// By which it is asked for.
    pub name: &'static str,
    /// Numbers per frame.
    pub width: usize,
    /// Layers of the encoder.
    pub layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Channels of the convolutions before the encoder.
    pub channels: usize,
    /// Tokens, the blank included.
    pub vocabulary: usize,
    /// Width of the prediction network; 0 for a model with a CTC head.
    pub predictor: usize,
}

/// The released size, and small ones with either head.
pub const PARAKEET_SIZES: [ParakeetSize; 3] = [
    ParakeetSize {
        name: "parakeet-tdt-0.6b-v3",
        width: 1024,
        layers: 24,
        heads: 8,
        channels: 256,
        vocabulary: 8193,
        predictor: 640,
    },
    ParakeetSize {
        name: "parakeet-tiny",
        width: 64,
        layers: 2,
        heads: 4,
        channels: 16,
        vocabulary: 4100,
        predictor: 32,
    },
    ParakeetSize {
        name: "parakeet-tiny-ctc",
        width: 64,
        layers: 2,
        heads: 4,
        channels: 16,
        vocabulary: 65,
        predictor: 0,
    },
];

const BANDS: usize = 128;
const KERNEL: usize = 9;
const DURATIONS: usize = 5;

impl ParakeetSize {
    /// The size of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        PARAKEET_SIZES.iter().find(|size| size.name == name)
    }

    fn is_ctc(&self) -> bool {
        self.predictor == 0
    }

    fn config(&self) -> serde_json::Value {
        let encoder = self.encoder().config();
        let blank = self.vocabulary - 1;
        if self.is_ctc() {
            return json!({
                "model_type": "parakeet_ctc",
                "vocab_size": self.vocabulary,
                "pad_token_id": blank,
                "encoder_config": encoder,
            });
        }
        json!({
            "model_type": "parakeet_tdt",
            "vocab_size": self.vocabulary,
            "pad_token_id": 2,
            "blank_token_id": blank,
            "decoder_hidden_size": self.predictor,
            "num_decoder_layers": 2,
            "durations": [0, 1, 2, 3, 4],
            "max_symbols_per_step": 10,
            "hidden_act": "relu",
            "encoder_config": encoder,
        })
    }

    fn tokenizer(&self) -> serde_json::Value {
        tokenizer((0..self.vocabulary - 1).map(|id| match id {
            0 => "<unk>".to_owned(),
            2 => "<pad>".to_owned(),
            _ => piece(id),
        }))
    }

    /// The deviations let tokens, blanks and durations come about as often as those of a model that was trained.
    fn tensors(&self) -> Vec<Tensor> {
        let width = self.width;
        let mut tensors = self.encoder().tensors("");
        let mut add = |name: String, shape: &[usize], values| {
            tensors.push(Tensor { name, shape: shape.to_vec(), values });
        };
        // The blank is about as likely as the likeliest of all other tokens.
        let likeliest = (2.0 * (self.vocabulary as f32).ln()).sqrt();
        let blank = Values::Spike { at: self.vocabulary - 1, height: likeliest };
        if self.is_ctc() {
            add("ctc_head.weight".into(), &[self.vocabulary, width, 1], weight(width));
            add("ctc_head.bias".into(), &[self.vocabulary], blank);
        } else {
            let p = self.predictor;
            add("encoder_projector.weight".into(), &[p, width], normal(2.0 / (width as f32).sqrt()));
            add("encoder_projector.bias".into(), &[p], BIAS);
            add("decoder.embedding.weight".into(), &[self.vocabulary, p], normal(1.0));
            add("decoder.decoder_projector.weight".into(), &[p, p], weight(p));
            add("decoder.decoder_projector.bias".into(), &[p], BIAS);
            for layer in 0..2 {
                for part in ["ih", "hh"] {
                    add(format!("decoder.lstm.weight_{part}_l{layer}"), &[4 * p, p], weight(p));
                    add(format!("decoder.lstm.bias_{part}_l{layer}"), &[4 * p], BIAS);
                }
            }
            add("joint.head.weight".into(), &[self.vocabulary + DURATIONS, p], weight(2 * p));
            add("joint.head.bias".into(), &[self.vocabulary + DURATIONS], blank);
        }
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        tensors
    }

    fn encoder(&self) -> EncoderSize {
        EncoderSize { width: self.width, layers: self.layers, heads: self.heads, channels: self.channels }
    }
}

/// The dimensions of a FastConformer encoder.
pub(crate) struct EncoderSize {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    pub channels: usize,
}

const BIAS: Values = Values::Normal { mean: 0.0, deviation: 0.02 };
const SCALE: Values = Values::Normal { mean: 1.0, deviation: 0.05 };

pub(crate) fn normal(deviation: f32) -> Values {
    Values::Normal { mean: 0.0, deviation }
}

/// Of a layer with so many inputs, whose outputs are as large.
pub(crate) fn weight(inputs: usize) -> Values {
    normal((inputs as f32).sqrt().recip())
}

/// A norm's weight and bias.
pub(crate) fn norm(name: &str, width: usize) -> [Tensor; 2] {
    let tensor = |part: &str, values| Tensor { name: format!("{name}.{part}"), shape: vec![width], values };
    [tensor("weight", SCALE), tensor("bias", BIAS)]
}

/// A linear layer with a bias, (output, input).
pub(crate) fn linear(name: &str, output: usize, input: usize) -> [Tensor; 2] {
    [
        Tensor { name: format!("{name}.weight"), shape: vec![output, input], values: weight(input) },
        Tensor { name: format!("{name}.bias"), shape: vec![output], values: BIAS },
    ]
}

impl EncoderSize {
    pub fn config(&self) -> serde_json::Value {
        json!({
            "model_type": "parakeet_encoder",
            "hidden_size": self.width,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": 4 * self.width,
            "hidden_act": "silu",
            "attention_bias": false,
            "convolution_bias": false,
            "conv_kernel_size": KERNEL,
            "subsampling_factor": 8,
            "subsampling_conv_channels": self.channels,
            "num_mel_bins": BANDS,
            "scale_input": false,
        })
    }

    /// `prefix` stands before all names.
    pub fn tensors(&self, prefix: &str) -> Vec<Tensor> {
        let (width, inner, channels) = (self.width, 4 * self.width, self.channels);
        let mut tensors = Vec::new();
        let mut add = |name: String, shape: &[usize], values| {
            tensors.push(Tensor { name, shape: shape.to_vec(), values });
        };
        let subsampling = format!("{prefix}encoder.subsampling");
        for layer in [0, 2, 5] {
            add(format!("{subsampling}.layers.{layer}.weight"), &[channels, 1, 3, 3], weight(9));
            add(format!("{subsampling}.layers.{layer}.bias"), &[channels], BIAS);
        }
        for layer in [3, 6] {
            add(
                format!("{subsampling}.layers.{layer}.weight"),
                &[channels, channels, 1, 1],
                weight(channels),
            );
            add(format!("{subsampling}.layers.{layer}.bias"), &[channels], BIAS);
        }
        let flat = channels * BANDS / 8;
        add(format!("{subsampling}.linear.weight"), &[width, flat], weight(flat));
        add(format!("{subsampling}.linear.bias"), &[width], BIAS);
        for layer in (0..self.layers).map(|number| format!("{prefix}encoder.layers.{number}")) {
            for part in ["feed_forward1", "feed_forward2"] {
                add(format!("{layer}.{part}.linear1.weight"), &[inner, width], weight(width));
                add(format!("{layer}.{part}.linear2.weight"), &[width, inner], weight(inner));
            }
            for part in ["q_proj", "k_proj", "v_proj", "o_proj", "relative_k_proj"] {
                add(format!("{layer}.self_attn.{part}.weight"), &[width, width], weight(width));
            }
            for part in ["bias_u", "bias_v"] {
                add(format!("{layer}.self_attn.{part}"), &[self.heads, width / self.heads], normal(0.1));
            }
            add(format!("{layer}.conv.pointwise_conv1.weight"), &[2 * width, width, 1], weight(width));
            add(format!("{layer}.conv.depthwise_conv.weight"), &[width, 1, KERNEL], weight(KERNEL));
            add(format!("{layer}.conv.pointwise_conv2.weight"), &[width, width, 1], weight(width));
            for norm in [
                "norm_feed_forward1",
                "norm_self_att",
                "norm_conv",
                "norm_feed_forward2",
                "norm_out",
                "conv.norm",
            ] {
                add(format!("{layer}.{norm}.weight"), &[width], SCALE);
                add(format!("{layer}.{norm}.bias"), &[width], BIAS);
            }
            add(format!("{layer}.conv.norm.running_mean"), &[width], normal(0.05));
            add(format!("{layer}.conv.norm.running_var"), &[width], SCALE);
        }
        tensors
    }
}

/// A tokenizer that has these pieces in the order of their numbers.
pub(crate) fn tokenizer(pieces: impl Iterator<Item = String>) -> serde_json::Value {
    let vocab: serde_json::Map<_, _> = pieces.enumerate().map(|(id, piece)| (piece, json!(id))).collect();
    json!({ "version": "1.0", "added_tokens": [], "model": { "type": "BPE", "vocab": vocab, "merges": [] } })
}

/// Every third piece goes on with a word, every ninth ends a sentence.
pub(crate) fn piece(id: usize) -> String {
    match id {
        _ if id % 9 == 8 => format!("{}.", letters(id)),
        _ if id % 3 == 1 => letters(id),
        _ => format!("▁{}", letters(id)),
    }
}

/// A number in letters.
fn letters(mut number: usize) -> String {
    let mut text = String::new();
    loop {
        text.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return text;
        }
    }
}

/// Writes a model to `folder`, which is created if necessary. `config.json` is written last, so a folder that has it is
/// complete.
///
/// # Errors
/// The error of the file system, if a file can't be written.
pub fn write_parakeet_model(folder: &Path, size: &ParakeetSize, options: &Options) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    write_file(&folder.join("model.safetensors"), &size.tensors(), options)?;
    write_json(&folder.join("tokenizer.json"), &size.tokenizer())?;
    write_json(&folder.join("config.json"), &size.config())
}
