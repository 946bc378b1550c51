//! Speech models in the layout of NVIDIA's Canary, with random weights.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use crate::parakeet::{EncoderSize, linear, norm, normal, piece, tokenizer};
use crate::weights::{Tensor, Values, write_file};
use crate::{Options, write_json};

/// The dimensions of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CanarySize {
    /// By which it is asked for.
    pub name: &'static str,
    /// Numbers per frame and per token.
    pub width: usize,
    /// Layers of the encoder.
    pub layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Attention heads.
    pub heads: usize,
    /// Channels of the convolutions before the encoder.
    pub channels: usize,
    /// Tokens, special ones included.
    pub vocabulary: usize,
}

/// The released size, and a small one.
pub const CANARY_SIZES: [CanarySize; 2] = [
    CanarySize {
        name: "canary-1b-v2",
        width: 1024,
        layers: 32,
        decoder_layers: 8,
        heads: 8,
        channels: 256,
        vocabulary: 16384,
    },
    CanarySize {
        name: "canary-tiny",
        width: 64,
        layers: 2,
        decoder_layers: 2,
        heads: 4,
        channels: 16,
        vocabulary: 300,
    },
];

/// The first tokens, those that ask for something and those of some languages.
const SPECIAL: [&str; 14] = [
    "<unk>",
    "<|nospeech|>",
    "<pad>",
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|pnc|>",
    "<|noitn|>",
    "<|startofcontext|>",
    "<|emo:undefined|>",
    "<|notimestamp|>",
    "<|nodiarize|>",
    "<|en|>",
    "<|de|>",
    "<|sv|>",
];
const END: usize = 3;

impl CanarySize {
    /// The size of that name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CANARY_SIZES.iter().find(|size| size.name == name)
    }

    fn encoder(&self) -> EncoderSize {
        EncoderSize { width: self.width, layers: self.layers, heads: self.heads, channels: self.channels }
    }

    fn config(&self) -> serde_json::Value {
        json!({
            "model_type": "canary",
            "vocab_size": self.vocabulary,
            "eos_token_id": END,
            "pad_token_id": 2,
            "decoder_start_token_id": 7,
            "tie_word_embeddings": true,
            "encoder_config": self.encoder().config(),
            "decoder_config": {
                "model_type": "canary_decoder",
                "vocab_size": self.vocabulary,
                "hidden_size": self.width,
                "num_hidden_layers": self.decoder_layers,
                "num_attention_heads": self.heads,
                "intermediate_size": 4 * self.width,
                "hidden_act": "relu",
                "attention_bias": true,
                "max_position_embeddings": 1024,
            },
        })
    }

    fn tokenizer(&self) -> serde_json::Value {
        let named = |id: usize| SPECIAL.get(id).map(|name| (*name).to_owned());
        tokenizer((0..self.vocabulary).map(|id| named(id).unwrap_or_else(|| piece(id))))
    }

    fn tensors(&self) -> Vec<Tensor> {
        let (width, inner) = (self.width, 4 * self.width);
        let mut tensors = self.encoder().tensors("model.");
        let decoder = "model.decoder";
        let shape = vec![self.vocabulary, width];
        // Logits of the text as far apart as those of a trained model, and the end likelier than one of them in twenty.
        tensors.push(Tensor {
            name: format!("{decoder}.embed_tokens.weight"),
            shape,
            values: normal(2.0 / (width as f32).sqrt()),
        });
        tensors.extend(norm(&format!("{decoder}.embedding_layernorm"), width));
        // Of both signs: else each token would lead to itself, since one matrix embeds it and says which one comes.
        let [mut weight, bias] = norm(&format!("{decoder}.norm"), width);
        weight.values = normal(1.0);
        tensors.extend([weight, bias]);
        for layer in (0..self.decoder_layers).map(|number| format!("{decoder}.layers.{number}")) {
            for part in ["input_layernorm", "post_attention_layernorm", "final_layernorm"] {
                tensors.extend(norm(&format!("{layer}.{part}"), width));
            }
            for attention in ["self_attn", "encoder_attn"] {
                for part in ["q_proj", "k_proj", "v_proj"] {
                    tensors.extend(linear(&format!("{layer}.{attention}.{part}"), width, width));
                }
                // What is attended to is much the same at every token: were it as much as the token before, one token
                // would be written for ever.
                let [mut weight, bias] = linear(&format!("{layer}.{attention}.o_proj"), width, width);
                weight.values = normal(0.3 / (width as f32).sqrt());
                tensors.extend([weight, bias]);
            }
            tensors.extend(linear(&format!("{layer}.mlp.fc1"), inner, width));
            tensors.extend(linear(&format!("{layer}.mlp.fc2"), width, inner));
        }
        let likeliest = 2.0 * (2.0 * (self.vocabulary as f32).ln()).sqrt();
        tensors.push(Tensor {
            name: "proj_out.bias".into(),
            shape: vec![self.vocabulary],
            values: Values::Spike { at: END, height: 0.5 * likeliest },
        });
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        tensors
    }
}

/// Writes a model to `folder`, which is created if necessary. `config.json` is written last, so a folder that has it is
/// complete.
///
/// # Errors
/// The error of the file system, if a file can't be written.
pub fn write_canary_model(folder: &Path, size: &CanarySize, options: &Options) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    write_file(&folder.join("model.safetensors"), &size.tensors(), options)?;
    write_json(&folder.join("tokenizer.json"), &size.tokenizer())?;
    write_json(&folder.join("config.json"), &size.config())
}
