use std::path::Path;

use memory::ParakeetDimensions;
use serde::Deserialize;

use crate::{Error, Tensors, read_json};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";

/// Frames of the spectrogram that become one of the encoder: three convolutions of stride 2.
const SUBSAMPLING: usize = 8;

/// The most that a size of the network may be: sixteen times that of the largest released one.
const LARGEST: usize = 1 << 17;

/// The released models of one language have 1,024 pieces of words, those of many have 8,192.
const ENGLISH_PIECES: usize = 4096;

/// A Parakeet network (a FastConformer, Rekesh and others, arXiv:2305.05084, with a CTC head or
/// the token-and-duration transducer of Xu and others, arXiv:2304.06795), as the `config.json` of
/// transformers' `ParakeetForCTC` and `ParakeetForTDT` describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ParakeetConfig {
    /// Its dimensions.
    pub dimensions: ParakeetDimensions,
    /// What is behind the encoder.
    pub head: ParakeetHead,
    /// The token that stands for nothing.
    pub blank: u32,
    /// Whether frames are multiplied by the root of the encoder's width before its layers.
    pub scale_input: bool,
    /// Whether the model knows other languages than English.
    pub multilingual: bool,
}

/// What is behind the encoder.
#[derive(Debug, Clone, PartialEq)]
pub enum ParakeetHead {
    /// A linear layer: each frame has its token.
    Ctc,
    /// A prediction network and a joint network, which says for each token how far to go on.
    Tdt {
        /// Frames that are gone on, by the number of the answer.
        durations: Vec<usize>,
        /// The most tokens that are written at one frame.
        max_symbols: usize,
    },
}

/// What `config.json` says first.
#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    model_type: String,
}

/// Missing fields have the default values of transformers' classes, which leave them out.
#[derive(Deserialize)]
struct Config {
    vocab_size: Option<usize>,
    pad_token_id: Option<u32>,
    blank_token_id: Option<u32>,
    decoder_hidden_size: Option<usize>,
    num_decoder_layers: Option<usize>,
    durations: Option<Vec<usize>>,
    max_symbols_per_step: Option<usize>,
    hidden_act: Option<String>,
    /// Steno's own: a small model of several languages says so.
    is_multilingual: Option<bool>,
    encoder_config: Encoder,
}

#[derive(Deserialize)]
#[serde(default)]
struct Encoder {
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
    scale_input: bool,
}

impl Default for Encoder {
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

impl ParakeetConfig {
    /// The values of `model_type` for the variants that are known.
    const CTC: &str = "parakeet_ctc";
    const TDT: &str = "parakeet_tdt";

    /// Reads a folder's `config.json`; `None` where it is that of another family.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for another variant of the family, [`Error::Invalid`] for a
    /// description of no network, [`Error::Io`] for a file that can't be read.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        if !folder.join(CONFIG).is_file() {
            return Ok(None);
        }
        let Ok(Kind { model_type }) = read_json::<Kind>(folder, CONFIG) else { return Ok(None) };
        if !model_type.starts_with("parakeet") {
            return Ok(None);
        }
        if model_type != Self::CTC && model_type != Self::TDT {
            return Err(Error::Unsupported { path: folder.join(CONFIG), kind: model_type });
        }
        let config: Config = read_json(folder, CONFIG)?;
        let read = Self::of(config, model_type == Self::TDT);
        read.map(Some).map_err(|reason| Error::invalid(folder.join(CONFIG), reason))
    }

    fn of(config: Config, is_tdt: bool) -> Result<Self, String> {
        let of = config.encoder_config;
        let vocabulary = config.vocab_size.unwrap_or(if is_tdt { 8193 } else { 1025 });
        let (predictor_width, predictor_layers, durations) = if is_tdt {
            let durations = config.durations.unwrap_or_else(|| vec![0, 1, 2, 3, 4]);
            (config.decoder_hidden_size.unwrap_or(640), config.num_decoder_layers.unwrap_or(2), durations)
        } else {
            (0, 0, Vec::new())
        };
        let max_symbols = config.max_symbols_per_step.unwrap_or(10);
        let blank = match is_tdt {
            true => config.blank_token_id.unwrap_or(8192),
            false => config.pad_token_id.unwrap_or(1024),
        };
        let mut sizes = vec![
            ("vocab_size", vocabulary),
            ("hidden_size", of.hidden_size),
            ("num_hidden_layers", of.num_hidden_layers),
            ("num_attention_heads", of.num_attention_heads),
            ("intermediate_size", of.intermediate_size),
            ("conv_kernel_size", of.conv_kernel_size),
            ("subsampling_conv_channels", of.subsampling_conv_channels),
            ("num_mel_bins", of.num_mel_bins),
        ];
        if is_tdt {
            sizes.extend([
                ("decoder_hidden_size", predictor_width),
                ("num_decoder_layers", predictor_layers),
                ("durations", durations.len()),
                ("max_symbols_per_step", max_symbols),
            ]);
        }
        if let Some((name, size)) = sizes.into_iter().find(|(_, size)| *size == 0 || *size > LARGEST) {
            return Err(format!("{name} is {size}"));
        }
        if !of.hidden_size.is_multiple_of(of.num_attention_heads) {
            let (width, heads) = (of.hidden_size, of.num_attention_heads);
            return Err(format!("hidden_size {width} is not a multiple of num_attention_heads {heads}"));
        }
        if !of.hidden_size.is_multiple_of(2) {
            return Err(format!("hidden_size is {}", of.hidden_size));
        }
        if of.num_key_value_heads.is_some_and(|heads| heads != of.num_attention_heads) {
            return Err("heads that share keys are not supported".into());
        }
        for (name, value, only) in [
            ("subsampling_factor", of.subsampling_factor, SUBSAMPLING),
            ("subsampling_conv_kernel_size", of.subsampling_conv_kernel_size, 3),
            ("subsampling_conv_stride", of.subsampling_conv_stride, 2),
        ] {
            if value != only {
                return Err(format!("{name} {value} is not supported"));
            }
        }
        if !of.num_mel_bins.is_multiple_of(SUBSAMPLING) || of.conv_kernel_size.is_multiple_of(2) {
            let (bins, kernel) = (of.num_mel_bins, of.conv_kernel_size);
            return Err(format!("num_mel_bins {bins} with conv_kernel_size {kernel} is not supported"));
        }
        let joint = config.hidden_act.unwrap_or_else(|| "relu".into());
        if of.hidden_act != "silu" || (is_tdt && joint != "relu") {
            let other = if of.hidden_act == "silu" { joint } else { of.hidden_act };
            return Err(format!("the activation function {other} is not supported"));
        }
        if blank as usize >= vocabulary {
            return Err(format!("the blank token is {blank}, beyond vocab_size {vocabulary}"));
        }
        if durations.iter().any(|duration| *duration > LARGEST) {
            return Err("a duration is too long".into());
        }
        let count = |size: usize| size as u64;
        let dimensions = ParakeetDimensions {
            mel_bins: count(of.num_mel_bins),
            width: count(of.hidden_size),
            layers: count(of.num_hidden_layers),
            heads: count(of.num_attention_heads),
            ffn: count(of.intermediate_size),
            kernel: count(of.conv_kernel_size),
            channels: count(of.subsampling_conv_channels),
            attention_bias: of.attention_bias,
            convolution_bias: of.convolution_bias,
            vocabulary: count(vocabulary),
            predictor_width: count(predictor_width),
            predictor_layers: count(predictor_layers),
            durations: count(durations.len()),
        };
        let head = if is_tdt { ParakeetHead::Tdt { durations, max_symbols } } else { ParakeetHead::Ctc };
        let multilingual = config.is_multilingual.unwrap_or(vocabulary > ENGLISH_PIECES);
        Ok(Self { dimensions, head, blank, scale_input: of.scale_input, multilingual })
    }

    /// All tensors of the network, with their shapes.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let of = &self.dimensions;
        let size = |number: u64| number as usize;
        let (width, inner, heads) = (size(of.width), size(of.ffn), size(of.heads));
        let (channels, vocabulary) = (size(of.channels), size(of.vocabulary));
        let mut all = Vec::new();
        let mut pair = |name: String, shape: &[usize], has_bias: bool| {
            if has_bias {
                all.push((format!("{name}.bias"), shape[..1].to_vec()));
            }
            all.push((format!("{name}.weight"), shape.to_vec()));
        };
        let subsampling = "encoder.subsampling";
        for layer in [0, 2, 5] {
            pair(format!("{subsampling}.layers.{layer}"), &[channels, 1, 3, 3], true);
        }
        for layer in [3, 6] {
            pair(format!("{subsampling}.layers.{layer}"), &[channels, channels, 1, 1], true);
        }
        pair(format!("{subsampling}.linear"), &[width, size(of.subsampled())], true);
        for layer in (0..of.layers).map(|number| format!("encoder.layers.{number}")) {
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
        match &self.head {
            ParakeetHead::Ctc => pair("ctc_head".into(), &[vocabulary, width, 1], true),
            ParakeetHead::Tdt { durations, .. } => {
                let inner = size(of.predictor_width);
                pair("encoder_projector".into(), &[inner, width], true);
                pair("decoder.decoder_projector".into(), &[inner, inner], true);
                pair("decoder.embedding".into(), &[vocabulary, inner], false);
                pair("joint.head".into(), &[vocabulary + durations.len(), inner], true);
            }
        }
        for layer in (0..of.layers).map(|number| format!("encoder.layers.{number}")) {
            for part in ["running_mean", "running_var"] {
                all.push((format!("{layer}.conv.norm.{part}"), vec![width]));
            }
            for part in ["bias_u", "bias_v"] {
                all.push((format!("{layer}.self_attn.{part}"), vec![heads, width / heads]));
            }
        }
        let inner = size(of.predictor_width);
        for layer in 0..of.predictor_layers {
            for part in ["ih", "hh"] {
                all.push((format!("decoder.lstm.weight_{part}_l{layer}"), vec![4 * inner, inner]));
                all.push((format!("decoder.lstm.bias_{part}_l{layer}"), vec![4 * inner]));
            }
        }
        all
    }

    /// Reads the headers of the weights and the tokenizer, and checks that every tensor and every token is there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and one of another network, naming what is wrong;
    /// [`Error::Missing`] and [`Error::Io`] for what can't be read.
    pub fn check(&self, folder: &Path, path: &Path) -> Result<(), Error> {
        let tensors = Tensors::open(path)?;
        let file = |number: usize| tensors.files.get(number).map_or(path, |(file, _)| file.as_path());
        for (name, shape) in self.tensors() {
            let (number, reason) = match tensors.index.get(&name) {
                None => (0, format!("the tensor {name} is missing")),
                Some(found) if !is_shape(&found.shape, &shape) => (
                    found.file,
                    format!(
                        "the tensor {name} has the shape {:?}, config.json asks for {shape:?}",
                        found.shape
                    ),
                ),
                Some(found) => match &found.stored {
                    Ok(_) => continue,
                    Err(kind) => (
                        found.file,
                        format!("the tensor {name} is of the type {kind}, which is not supported"),
                    ),
                },
            };
            return Err(Error::invalid(file(number), reason));
        }
        self.pieces(folder).map(|_| ())
    }

    /// The text of each token as its `tokenizer.json` spells it, `▁` standing for a space; empty for the blank and
    /// other tokens that are no text.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::Io`] for a file that can't be read, [`Error::Invalid`]
    /// for the tokenizer of another model.
    pub fn pieces(&self, folder: &Path) -> Result<Vec<String>, Error> {
        let read: Tokenizer = read_json(folder, TOKENIZER)?;
        let size = self.dimensions.vocabulary as usize;
        let mut pieces: Vec<Option<String>> = vec![None; size];
        let mut highest = 0;
        let mut set = |id: usize, piece: String| {
            highest = highest.max(id);
            if let Some(slot) = pieces.get_mut(id) {
                *slot = Some(piece);
            }
        };
        match read.model.vocab {
            Vocabulary::Numbers(vocab) => vocab.into_iter().for_each(|(piece, id)| set(id, piece)),
            Vocabulary::Scores(vocab) => {
                vocab.into_iter().enumerate().for_each(|(id, (piece, _))| set(id, piece));
            }
        }
        for token in read.added_tokens {
            // What is special is no text.
            set(token.id, if token.special { String::new() } else { token.content });
        }
        let missing = (0..size).find(|id| pieces[*id].is_none() && *id != self.blank as usize);
        if highest >= size || missing.is_some() {
            let found = pieces.iter().flatten().count() + highest.saturating_sub(size - 1);
            let reason = format!("it has {found} tokens, config.json asks for {size}");
            return Err(Error::invalid(folder.join(TOKENIZER), reason));
        }
        let mut pieces: Vec<String> = pieces.into_iter().map(Option::unwrap_or_default).collect();
        if let Some(blank) = pieces.get_mut(self.blank as usize) {
            blank.clear();
        }
        // A piece of the vocabulary itself that names no text.
        pieces.iter_mut().filter(|piece| *piece == "<unk>" || *piece == "<pad>").for_each(String::clear);
        Ok(pieces)
    }
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
    added_tokens: Vec<Token>,
    model: TokenizerModel,
}

#[derive(Deserialize)]
struct Token {
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
    Numbers(std::collections::HashMap<String, usize>),
    Scores(Vec<(String, f64)>),
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const TDT: &str = r#"{"model_type": "parakeet_tdt", "vocab_size": 5, "blank_token_id": 4,
        "decoder_hidden_size": 8, "encoder_config": {"hidden_size": 16, "num_hidden_layers": 1,
        "num_attention_heads": 2, "intermediate_size": 32, "num_mel_bins": 128, "attention_bias": false,
        "convolution_bias": false, "scale_input": false, "subsampling_conv_channels": 4}}"#;

    fn find(config: &str) -> Result<Option<ParakeetConfig>, Error> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(CONFIG), config).unwrap();
        ParakeetConfig::find(folder.path())
    }

    #[test]
    fn both_variants_are_described_with_the_defaults_of_their_classes() {
        let tdt = find(TDT).unwrap().unwrap();
        assert_eq!(tdt.head, ParakeetHead::Tdt { durations: vec![0, 1, 2, 3, 4], max_symbols: 10 });
        assert_eq!((tdt.dimensions.kernel, tdt.dimensions.predictor_layers), (9, 2));
        assert!(!tdt.scale_input && !tdt.multilingual);
        let says = TDT.replacen('{', r#"{"is_multilingual": true, "#, 1);
        assert!(find(&says).unwrap().unwrap().multilingual);
        let ctc = find(r#"{"model_type": "parakeet_ctc", "encoder_config": {}}"#).unwrap().unwrap();
        assert_eq!((ctc.head.clone(), ctc.blank), (ParakeetHead::Ctc, 1024));
        assert!(ctc.scale_input && ctc.dimensions.attention_bias);
        assert_eq!(find(r#"{"model_type": "whisper"}"#).unwrap(), None);
        // Every weight of the description is one of a tensor.
        for config in [tdt, ctc] {
            let running = |name: &str| name.contains("running");
            let all = config.tensors().into_iter().filter(|(name, _)| !running(name));
            let weights: usize = all.map(|(_, shape)| shape.iter().product::<usize>()).sum();
            assert_eq!(weights as u64, config.dimensions.parameters().total());
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let with = |old: &str, new: &str| {
            assert!(TDT.contains(old), "{old}");
            TDT.replace(old, new)
        };
        for (config, expected) in [
            (with("parakeet_tdt", "parakeet_rnnt"), "the kind \"parakeet_rnnt\", which is not supported"),
            (with("\"hidden_size\": 16", "\"hidden_size\": 0"), "hidden_size is 0"),
            (with("\"hidden_size\": 16", "\"hidden_size\": 17"), "is not a multiple of"),
            (with("\"num_mel_bins\": 128", "\"num_mel_bins\": 100"), "num_mel_bins 100"),
            (
                with("\"num_mel_bins\": 128", "\"subsampling_factor\": 4"),
                "subsampling_factor 4 is not supported",
            ),
            (with("\"num_mel_bins\": 128", "\"hidden_act\": \"gelu\""), "gelu is not supported"),
            (with("\"blank_token_id\": 4", "\"blank_token_id\": 5"), "the blank token is 5"),
            (with("\"blank_token_id\": 4", "\"durations\": []"), "durations is 0"),
            (with("\"vocab_size\": 5", "\"vocab_size\": \"many\""), "config.json is not valid"),
        ] {
            let error = find(&config).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn tokens_are_those_that_the_configuration_asks_for() {
        let config = find(TDT).unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let pieces = |tokenizer: &str| {
            fs::write(folder.path().join(TOKENIZER), tokenizer).unwrap();
            config.pieces(folder.path()).map_err(|error| error.to_string())
        };
        let expected = ["", "▁a", "b", "", ""].map(str::to_owned).to_vec();
        let special = r#""added_tokens": [{"id": 3, "content": "<|en|>", "special": true}]"#;
        let numbers = format!(r#"{{{special}, "model": {{"vocab": {{"<unk>": 0, "▁a": 1, "b": 2}}}}}}"#);
        assert_eq!(pieces(&numbers).unwrap(), expected);
        let scores =
            format!(r#"{{{special}, "model": {{"vocab": [["<unk>", 0.0], ["▁a", -1.5], ["b", -2]]}}}}"#);
        assert_eq!(pieces(&scores).unwrap(), expected);
        for (tokenizer, part) in [
            (r#"{"model": {"vocab": {"<unk>": 0, "a": 1}}}"#, "2 tokens, config.json asks for 5"),
            (r#"{"model": {"vocab": {"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, "f": 5}}}"#, "6 tokens"),
            ("{", "tokenizer.json is not valid"),
        ] {
            let error = pieces(tokenizer).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_convolution_over_one_place_is_a_matrix() {
        assert!(is_shape(&[8, 4], &[8, 4, 1]) && is_shape(&[8, 4, 1, 1], &[8, 4]));
        assert!(!is_shape(&[4, 8], &[8, 4]) && !is_shape(&[8, 1, 3], &[8, 3]));
        assert_eq!(without_ones(&[1, 1]), [1]);
        assert!(without_ones(&[]).is_empty());
    }
}
