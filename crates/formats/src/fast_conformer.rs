//! What Parakeet's and Canary's files have in common: the FastConformer encoder (Rekesh and others, arXiv:2305.05084) and
//! a tokenizer of sentencepiece.

use std::collections::HashMap;
use std::path::Path;

use memory::FastConformerDimensions;
use serde::Deserialize;

use crate::{Error, Tensors, read_json};

const TOKENIZER: &str = "tokenizer.json";

/// Frames of the spectrogram that become one of the encoder: three convolutions of stride 2.
const SUBSAMPLING: usize = 8;

/// The most that a size of the network may be: sixteen times that of the largest released one.
pub(crate) const LARGEST: usize = 1 << 17;

/// `encoder_config` of `config.json`. Missing fields have the default values of transformers' `ParakeetEncoderConfig`,
/// which leaves them out.
#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct EncoderConfig {
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    intermediate_size: usize,
    hidden_act: String,
    attention_bias: bool,
    convolution_bias: bool,
    conv_kernel_size: usize,
    subsampling_factor: usize,
    subsampling_conv_channels: usize,
    subsampling_conv_kernel_size: usize,
    subsampling_conv_stride: usize,
    num_mel_bins: usize,
    pub(crate) scale_input: bool,
}

impl Default for EncoderConfig {
    fn default() -> Self {
        Self {
            hidden_size: 1024,
            num_hidden_layers: 24,
            num_attention_heads: 8,
            num_key_value_heads: None,
            intermediate_size: 4096,
            hidden_act: "silu".into(),
            attention_bias: true,
            convolution_bias: true,
            conv_kernel_size: 9,
            subsampling_factor: SUBSAMPLING,
            subsampling_conv_channels: 256,
            subsampling_conv_kernel_size: 3,
            subsampling_conv_stride: 2,
            num_mel_bins: 80,
            scale_input: true,
        }
    }
}

impl EncoderConfig {
    /// Where a Canary model's description says nothing of its encoder.
    pub(crate) fn of_canary() -> Self {
        Self { num_hidden_layers: 32, num_mel_bins: 128, scale_input: false, ..Self::default() }
    }

    /// The dimensions of a network that can be computed; else the reason.
    pub(crate) fn dimensions(&self) -> Result<FastConformerDimensions, String> {
        check_sizes([
            ("hidden_size", self.hidden_size),
            ("num_hidden_layers", self.num_hidden_layers),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("conv_kernel_size", self.conv_kernel_size),
            ("subsampling_conv_channels", self.subsampling_conv_channels),
            ("num_mel_bins", self.num_mel_bins),
        ])?;
        if !self.hidden_size.is_multiple_of(self.num_attention_heads) {
            let (width, heads) = (self.hidden_size, self.num_attention_heads);
            return Err(format!("hidden_size {width} is not a multiple of num_attention_heads {heads}"));
        }
        if !self.hidden_size.is_multiple_of(2) {
            return Err(format!("hidden_size is {}", self.hidden_size));
        }
        if self.num_key_value_heads.is_some_and(|heads| heads != self.num_attention_heads) {
            return Err("heads that share keys are not supported".into());
        }
        for (name, value, only) in [
            ("subsampling_factor", self.subsampling_factor, SUBSAMPLING),
            ("subsampling_conv_kernel_size", self.subsampling_conv_kernel_size, 3),
            ("subsampling_conv_stride", self.subsampling_conv_stride, 2),
        ] {
            if value != only {
                return Err(format!("{name} {value} is not supported"));
            }
        }
        if !self.num_mel_bins.is_multiple_of(SUBSAMPLING) || self.conv_kernel_size.is_multiple_of(2) {
            let (bins, kernel) = (self.num_mel_bins, self.conv_kernel_size);
            return Err(format!("num_mel_bins {bins} with conv_kernel_size {kernel} is not supported"));
        }
        if self.hidden_act != "silu" {
            return Err(format!("the activation function {} is not supported", self.hidden_act));
        }
        let count = |size: usize| size as u64;
        Ok(FastConformerDimensions {
            mel_bins: count(self.num_mel_bins),
            width: count(self.hidden_size),
            layers: count(self.num_hidden_layers),
            heads: count(self.num_attention_heads),
            ffn: count(self.intermediate_size),
            kernel: count(self.conv_kernel_size),
            channels: count(self.subsampling_conv_channels),
            attention_bias: self.attention_bias,
            convolution_bias: self.convolution_bias,
        })
    }
}

/// Refuses sizes that no network has, by name.
pub(crate) fn check_sizes(sizes: impl IntoIterator<Item = (&'static str, usize)>) -> Result<(), String> {
    match sizes.into_iter().find(|(_, size)| *size == 0 || *size > LARGEST) {
        Some((name, size)) => Err(format!("{name} is {size}")),
        None => Ok(()),
    }
}

/// Adds the weights of a layer, and its bias, which is as long as the weights have rows.
pub(crate) fn layer(all: &mut Vec<(String, Vec<usize>)>, name: &str, shape: &[usize], has_bias: bool) {
    if has_bias {
        all.push((format!("{name}.bias"), shape[..1].to_vec()));
    }
    all.push((format!("{name}.weight"), shape.to_vec()));
}

/// All tensors of an encoder, with their shapes. `prefix` stands before all names.
pub(crate) fn encoder_tensors(of: &FastConformerDimensions, prefix: &str) -> Vec<(String, Vec<usize>)> {
    let size = |number: u64| number as usize;
    let (width, inner, heads, channels) = (size(of.width), size(of.ffn), size(of.heads), size(of.channels));
    let mut all = Vec::new();
    let mut pair = |name: String, shape: &[usize], has_bias: bool| layer(&mut all, &name, shape, has_bias);
    let subsampling = format!("{prefix}encoder.subsampling");
    for layer in [0, 2, 5] {
        pair(format!("{subsampling}.layers.{layer}"), &[channels, 1, 3, 3], true);
    }
    for layer in [3, 6] {
        pair(format!("{subsampling}.layers.{layer}"), &[channels, channels, 1, 1], true);
    }
    pair(format!("{subsampling}.linear"), &[width, size(of.subsampled())], true);
    let layers = || (0..of.layers).map(|number| format!("{prefix}encoder.layers.{number}"));
    for layer in layers() {
        for part in ["feed_forward1", "feed_forward2"] {
            pair(format!("{layer}.{part}.linear1"), &[inner, width], of.attention_bias);
            pair(format!("{layer}.{part}.linear2"), &[width, inner], of.attention_bias);
        }
        for part in ["q_proj", "k_proj", "v_proj", "o_proj"] {
            pair(format!("{layer}.self_attn.{part}"), &[width, width], of.attention_bias);
        }
        pair(format!("{layer}.self_attn.relative_k_proj"), &[width, width], false);
        let has_bias = of.convolution_bias;
        pair(format!("{layer}.conv.pointwise_conv1"), &[2 * width, width, 1], has_bias);
        pair(format!("{layer}.conv.depthwise_conv"), &[width, 1, size(of.kernel)], has_bias);
        pair(format!("{layer}.conv.pointwise_conv2"), &[width, width, 1], has_bias);
        for norm in [
            "norm_feed_forward1",
            "norm_self_att",
            "norm_conv",
            "norm_feed_forward2",
            "norm_out",
            "conv.norm",
        ] {
            pair(format!("{layer}.{norm}"), &[width], true);
        }
    }
    for layer in layers() {
        for part in ["running_mean", "running_var"] {
            all.push((format!("{layer}.conv.norm.{part}"), vec![width]));
        }
        for part in ["bias_u", "bias_v"] {
            all.push((format!("{layer}.self_attn.{part}"), vec![heads, width / heads]));
        }
    }
    all
}

/// Whether the model at `path` has all of these tensors, by its headers.
pub(crate) fn check_tensors(expected: Vec<(String, Vec<usize>)>, path: &Path) -> Result<(), Error> {
    let tensors = Tensors::open(path)?;
    let file = |number: usize| tensors.files.get(number).map_or(path, |(file, _)| file.as_path());
    for (name, shape) in expected {
        let (number, reason) = match tensors.index.get(&name) {
            None => (0, format!("the tensor {name} is missing")),
            Some(found) if !is_shape(&found.shape, &shape) => (
                found.file,
                format!("the tensor {name} has the shape {:?}, config.json asks for {shape:?}", found.shape),
            ),
            Some(found) => match &found.stored {
                Ok(_) => continue,
                Err(kind) => {
                    (found.file, format!("the tensor {name} is of the type {kind}, which is not supported"))
                }
            },
        };
        return Err(Error::invalid(file(number), reason));
    }
    Ok(())
}

/// The text of each of `size` tokens as the `tokenizer.json` in `folder` spells it, `▁` standing for a space; empty for
/// tokens that are no text. The token `absent` may have no entry.
///
/// # Errors
/// [`Error::Missing`] and [`Error::Io`] for a file that can't be read, [`Error::Invalid`]
/// for the tokenizer of another model.
pub(crate) fn pieces(folder: &Path, size: usize, absent: Option<u32>) -> Result<Vec<String>, Error> {
    let mut pieces = spelled(folder, size, absent)?;
    let is_text = |(piece, is_special): (String, bool)| match piece.as_str() {
        // A piece of the vocabulary itself that names no text.
        _ if is_special => String::new(),
        "<unk>" | "<pad>" => String::new(),
        _ => piece,
    };
    Ok(pieces.drain(..).map(is_text).collect())
}

/// What the `tokenizer.json` in `folder` calls each of `size` tokens, and whether it is special, which is no text.
pub(crate) fn spelled(folder: &Path, size: usize, absent: Option<u32>) -> Result<Vec<(String, bool)>, Error> {
    let read: Tokenizer = read_json(folder, TOKENIZER)?;
    let mut pieces: Vec<Option<(String, bool)>> = vec![None; size];
    let mut highest = 0;
    let mut set = |id: usize, piece: (String, bool)| {
        highest = highest.max(id);
        if let Some(slot) = pieces.get_mut(id) {
            *slot = Some(piece);
        }
    };
    match read.model.vocab {
        Vocabulary::Numbers(vocab) => vocab.into_iter().for_each(|(piece, id)| set(id, (piece, false))),
        Vocabulary::Scores(vocab) => {
            vocab.into_iter().enumerate().for_each(|(id, (piece, _))| set(id, (piece, false)));
        }
    }
    for token in read.added_tokens {
        set(token.id, (token.content, token.special));
    }
    let missing = (0..size).find(|id| pieces[*id].is_none() && absent != Some(*id as u32));
    if highest >= size || missing.is_some() {
        let found = pieces.iter().flatten().count() + highest.saturating_sub(size - 1);
        let reason = format!("it has {found} tokens, config.json asks for {size}");
        return Err(Error::invalid(folder.join(TOKENIZER), reason));
    }
    Ok(pieces.into_iter().map(Option::unwrap_or_default).collect())
}

/// Whether two shapes are the same but for dimensions of 1 behind them: the kernel of a convolution over one
/// place, which is a matrix.
pub(crate) fn is_shape(found: &[usize], expected: &[usize]) -> bool {
    without_ones(found) == without_ones(expected)
}

/// The shape of a matrix that may be stored as a convolution over one place.
pub fn without_ones(shape: &[usize]) -> &[usize] {
    let ones = shape.iter().rev().take_while(|size| **size == 1).count();
    &shape[..(shape.len() - ones).max(1).min(shape.len())]
}

#[derive(Deserialize)]
struct Tokenizer {
    #[serde(default)]
    added_tokens: Vec<AddedToken>,
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct AddedToken {
    id: usize,
    content: String,
    #[serde(default)]
    special: bool,
}

#[derive(Deserialize)]
struct TokenizerModel {
    vocab: Vocabulary,
}

/// Byte pairs have numbers, sentencepiece's unigrams scores in the order of their numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Vocabulary {
    Numbers(HashMap<String, usize>),
    Scores(Vec<(String, f64)>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_over_one_place_is_a_matrix() {
        assert!(is_shape(&[8, 4], &[8, 4, 1]) && is_shape(&[8, 4, 1, 1], &[8, 4]));
        assert!(!is_shape(&[4, 8], &[8, 4]) && !is_shape(&[8, 1, 3], &[8, 3]));
        assert_eq!(without_ones(&[1, 1]), [1]);
        assert!(without_ones(&[]).is_empty());
    }
}
