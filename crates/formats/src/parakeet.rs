use std::path::Path;

use memory::ParakeetDimensions;
use serde::Deserialize;

use crate::fast_conformer::{
    EncoderConfig, LARGEST, check_sizes, check_tensors, encoder_tensors, layer, pieces,
};
use crate::{Error, read_json};

const CONFIG: &str = "config.json";

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
    encoder_config: EncoderConfig,
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
        let (encoder, scale_input) = (of.dimensions()?, of.scale_input);
        let mut sizes = vec![("vocab_size", vocabulary)];
        if is_tdt {
            sizes.extend([
                ("decoder_hidden_size", predictor_width),
                ("num_decoder_layers", predictor_layers),
                ("durations", durations.len()),
                ("max_symbols_per_step", max_symbols),
            ]);
        }
        check_sizes(sizes)?;
        let joint = config.hidden_act.unwrap_or_else(|| "relu".into());
        if is_tdt && joint != "relu" {
            return Err(format!("the activation function {joint} is not supported"));
        }
        if blank as usize >= vocabulary {
            return Err(format!("the blank token is {blank}, beyond vocab_size {vocabulary}"));
        }
        if durations.iter().any(|duration| *duration > LARGEST) {
            return Err("a duration is too long".into());
        }
        let count = |size: usize| size as u64;
        let dimensions = ParakeetDimensions {
            encoder,
            vocabulary: count(vocabulary),
            predictor_width: count(predictor_width),
            predictor_layers: count(predictor_layers),
            durations: count(durations.len()),
        };
        let head = if is_tdt { ParakeetHead::Tdt { durations, max_symbols } } else { ParakeetHead::Ctc };
        let multilingual = config.is_multilingual.unwrap_or(vocabulary > ENGLISH_PIECES);
        Ok(Self { dimensions, head, blank, scale_input, multilingual })
    }

    /// All tensors of the network, with their shapes.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let of = &self.dimensions;
        let size = |number: u64| number as usize;
        let (width, vocabulary) = (size(of.encoder.width), size(of.vocabulary));
        let mut all = encoder_tensors(&of.encoder, "");
        let mut pair = |name: &str, shape: &[usize], has_bias: bool| layer(&mut all, name, shape, has_bias);
        match &self.head {
            ParakeetHead::Ctc => pair("ctc_head", &[vocabulary, width, 1], true),
            ParakeetHead::Tdt { durations, .. } => {
                let inner = size(of.predictor_width);
                pair("encoder_projector", &[inner, width], true);
                pair("decoder.decoder_projector", &[inner, inner], true);
                pair("decoder.embedding", &[vocabulary, inner], false);
                pair("joint.head", &[vocabulary + durations.len(), inner], true);
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
        check_tensors(self.tensors(), path)?;
        self.pieces(folder).map(|_| ())
    }

    /// The text of each token as its `tokenizer.json` spells it, `▁` standing for a space; empty for the blank and
    /// other tokens that are no text.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::Io`] for a file that can't be read, [`Error::Invalid`]
    /// for the tokenizer of another model.
    pub fn pieces(&self, folder: &Path) -> Result<Vec<String>, Error> {
        let mut pieces = pieces(folder, self.dimensions.vocabulary as usize, Some(self.blank))?;
        if let Some(blank) = pieces.get_mut(self.blank as usize) {
            blank.clear();
        }
        Ok(pieces)
    }
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
        assert_eq!((tdt.dimensions.encoder.kernel, tdt.dimensions.predictor_layers), (9, 2));
        assert!(!tdt.scale_input && !tdt.multilingual);
        let says = TDT.replacen('{', r#"{"is_multilingual": true, "#, 1);
        assert!(find(&says).unwrap().unwrap().multilingual);
        let ctc = find(r#"{"model_type": "parakeet_ctc", "encoder_config": {}}"#).unwrap().unwrap();
        assert_eq!((ctc.head.clone(), ctc.blank), (ParakeetHead::Ctc, 1024));
        assert!(ctc.scale_input && ctc.dimensions.encoder.attention_bias);
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
            fs::write(folder.path().join("tokenizer.json"), tokenizer).unwrap();
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
}
