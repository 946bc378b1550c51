use std::path::Path;

use memory::CanaryDimensions;
use serde::Deserialize;

use crate::fast_conformer::{EncoderConfig, check_sizes, check_tensors, encoder_tensors, layer, spelled};
use crate::{Error, read_json};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";

/// The prompt alone takes nine.
const LEAST_POSITIONS: usize = 16;

/// A Canary network (Puvvada and others, arXiv:2406.19674; Sekoyan and others, arXiv:2509.14128): a FastConformer encoder
/// and a decoder that attends to its output, as the `config.json` of transformers' `CanaryForConditionalGeneration`
/// describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct CanaryConfig {
    /// Its dimensions.
    pub dimensions: CanaryDimensions,
    /// Whether frames are multiplied by the root of the encoder's width before its layers.
    pub scale_input: bool,
}

/// The tokens of a Canary model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanaryTokens {
    /// The text of each token, `▁` standing for a space; empty for tokens that are no text.
    pub pieces: Vec<String>,
    /// Languages by their ISO 639-1 codes, and the token of each.
    pub languages: Vec<(String, u32)>,
    /// What ends a text.
    pub end: u32,
    /// What stands before the language that is spoken.
    before: Vec<u32>,
    /// What stands behind the language that is written.
    behind: Vec<u32>,
}

/// Missing fields have the default values of transformers' classes.
#[derive(Deserialize)]
struct Config {
    #[serde(default)]
    model_type: String,
    tie_word_embeddings: Option<bool>,
    encoder_config: Option<EncoderConfig>,
    #[serde(default)]
    decoder_config: Decoder,
}

#[derive(Deserialize)]
#[serde(default)]
struct Decoder {
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    intermediate_size: usize,
    hidden_act: String,
    max_position_embeddings: usize,
    attention_bias: bool,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            vocab_size: 16384,
            hidden_size: 1024,
            num_hidden_layers: 8,
            num_attention_heads: 8,
            num_key_value_heads: None,
            intermediate_size: 4096,
            hidden_act: "relu".into(),
            max_position_embeddings: 1024,
            attention_bias: true,
        }
    }
}

impl CanaryConfig {
    /// The languages that canary-1b-v2 was trained with, by its model card.
    #[rustfmt::skip]
    pub const LANGUAGES: [&str; 25] = [
        "bg", "hr", "cs", "da", "nl", "en", "et", "fi", "fr", "de", "el", "hu", "it", "lv", "lt", "mt", "pl", "pt",
        "ro", "sk", "sl", "es", "sv", "ru", "uk",
    ];

    /// Reads a folder's `config.json`; `None` where it is that of another family.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a description of no network that is supported, [`Error::Io`] for a file that can't be read.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        #[derive(Deserialize)]
        struct Kind {
            #[serde(default)]
            model_type: String,
        }
        if !folder.join(CONFIG).is_file() {
            return Ok(None);
        }
        let Ok(Kind { model_type }) = read_json::<Kind>(folder, CONFIG) else { return Ok(None) };
        if !model_type.starts_with("canary") {
            return Ok(None);
        }
        let config: Config = read_json(folder, CONFIG)?;
        if config.model_type != "canary" {
            return Err(Error::Unsupported { path: folder.join(CONFIG), kind: config.model_type });
        }
        Self::of(config).map(Some).map_err(|reason| Error::invalid(folder.join(CONFIG), reason))
    }

    fn of(config: Config) -> Result<Self, String> {
        let encoder_config = config.encoder_config.unwrap_or_else(EncoderConfig::of_canary);
        let (encoder, of) = (encoder_config.dimensions()?, config.decoder_config);
        check_sizes([
            ("vocab_size", of.vocab_size),
            ("num_hidden_layers of decoder_config", of.num_hidden_layers),
            ("num_attention_heads of decoder_config", of.num_attention_heads),
            ("intermediate_size of decoder_config", of.intermediate_size),
            ("max_position_embeddings", of.max_position_embeddings),
        ])?;
        if of.max_position_embeddings < LEAST_POSITIONS {
            return Err(format!("max_position_embeddings is {}", of.max_position_embeddings));
        }
        if of.hidden_size as u64 != encoder.width {
            let (decoder, encoder) = (of.hidden_size, encoder.width);
            return Err(format!(
                "a decoder of width {decoder} for an encoder of width {encoder} is not supported"
            ));
        }
        if !of.hidden_size.is_multiple_of(of.num_attention_heads) {
            let (width, heads) = (of.hidden_size, of.num_attention_heads);
            return Err(format!("hidden_size {width} is not a multiple of num_attention_heads {heads}"));
        }
        if of.num_key_value_heads.is_some_and(|heads| heads != of.num_attention_heads) {
            return Err("heads that share keys are not supported".into());
        }
        if of.hidden_act != "relu" || !of.attention_bias {
            let (act, bias) = (of.hidden_act, of.attention_bias);
            return Err(format!(
                "a decoder with hidden_act {act} and attention_bias {bias} is not supported"
            ));
        }
        if config.tie_word_embeddings == Some(false) {
            return Err("tie_word_embeddings false is not supported".into());
        }
        let count = |size: usize| size as u64;
        let dimensions = CanaryDimensions {
            encoder,
            decoder_layers: count(of.num_hidden_layers),
            decoder_heads: count(of.num_attention_heads),
            decoder_ffn: count(of.intermediate_size),
            text_context: count(of.max_position_embeddings),
            vocabulary: count(of.vocab_size),
        };
        Ok(Self { dimensions, scale_input: encoder_config.scale_input })
    }

    /// All tensors of the network, with their shapes. A file may have the matrix of the tokens twice, as `proj_out.weight`
    /// too, which is not read.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let of = &self.dimensions;
        let size = |number: u64| number as usize;
        let (width, inner, vocabulary) = (size(of.encoder.width), size(of.decoder_ffn), size(of.vocabulary));
        let mut all = encoder_tensors(&of.encoder, "model.");
        let mut pair = |name: &str, shape: &[usize], has_bias| layer(&mut all, name, shape, has_bias);
        let decoder = "model.decoder";
        pair(&format!("{decoder}.embed_tokens"), &[vocabulary, width], false);
        for norm in ["embedding_layernorm", "norm"] {
            pair(&format!("{decoder}.{norm}"), &[width], true);
        }
        for layer in (0..of.decoder_layers).map(|number| format!("{decoder}.layers.{number}")) {
            for norm in ["input_layernorm", "post_attention_layernorm", "final_layernorm"] {
                pair(&format!("{layer}.{norm}"), &[width], true);
            }
            for attention in ["self_attn", "encoder_attn"] {
                for part in ["q_proj", "k_proj", "v_proj", "o_proj"] {
                    pair(&format!("{layer}.{attention}.{part}"), &[width, width], true);
                }
            }
            pair(&format!("{layer}.mlp.fc1"), &[inner, width], true);
            pair(&format!("{layer}.mlp.fc2"), &[width, inner], true);
        }
        all.push(("proj_out.bias".into(), vec![vocabulary]));
        all
    }

    /// Reads the headers of the weights and the tokenizer, and checks that every tensor and every token is there.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and one of another network, naming what is wrong;
    /// [`Error::Missing`] and [`Error::Io`] for what can't be read.
    pub fn check(&self, folder: &Path, path: &Path) -> Result<(), Error> {
        check_tensors(self.tensors(), path)?;
        self.tokens(folder).map(|_| ())
    }

    /// The tokens, by the `tokenizer.json` in `folder`.
    ///
    /// # Errors
    /// [`Error::Missing`] and [`Error::Io`] for a file that can't be read, [`Error::Invalid`]
    /// for the tokenizer of another model.
    pub fn tokens(&self, folder: &Path) -> Result<CanaryTokens, Error> {
        let spelled = spelled(folder, self.dimensions.vocabulary as usize, None)?;
        let id = |name: &str| -> Result<u32, Error> {
            let found = spelled.iter().position(|(piece, _)| piece == name);
            let missing = || Error::invalid(folder.join(TOKENIZER), format!("it has no token {name}"));
            found.map(|id| id as u32).ok_or_else(missing)
        };
        let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect::<Result<Vec<_>, _>>();
        let before = ids(&["<|startofcontext|>", "<|startoftranscript|>", "<|emo:undefined|>"])?;
        let end = id("<|endoftext|>")?;
        let behind = ids(&["<|pnc|>", "<|noitn|>", "<|notimestamp|>", "<|nodiarize|>"])?;
        let languages: Vec<(String, u32)> = Self::LANGUAGES
            .iter()
            .filter_map(|code| Some(((*code).to_owned(), id(&format!("<|{code}|>")).ok()?)))
            .collect();
        if languages.is_empty() {
            return Err(Error::invalid(folder.join(TOKENIZER), "it has no token of a language"));
        }
        let is_text = |(piece, is_special): (String, bool)| {
            let is_mark = is_special || (piece.starts_with("<|") && piece.ends_with("|>"));
            if is_mark || ["<unk>", "<pad>"].contains(&piece.as_str()) { String::new() } else { piece }
        };
        Ok(CanaryTokens {
            pieces: spelled.into_iter().map(is_text).collect(),
            languages,
            end,
            before,
            behind,
        })
    }
}

impl CanaryTokens {
    /// The tokens that ask for what is spoken in one language to be written in another, the same for a transcript; `None`
    /// where one of them is not known. Punctuation is asked for, times are not: the form that NVIDIA's Canary 2 was trained
    /// with.
    pub fn prompt(&self, spoken: &str, written: &str) -> Option<Vec<u32>> {
        let token =
            |code: &str| self.languages.iter().find(|(known, _)| known == code).map(|(_, token)| *token);
        let languages = [token(spoken)?, token(written)?];
        Some(self.before.iter().chain(&languages).chain(&self.behind).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SMALL: &str = r#"{"model_type": "canary", "encoder_config": {"hidden_size": 16,
        "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32, "num_mel_bins": 128,
        "scale_input": false, "subsampling_conv_channels": 4}, "decoder_config": {"vocab_size": 12,
        "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}}"#;

    fn find(config: &str) -> Result<Option<CanaryConfig>, Error> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(CONFIG), config).unwrap();
        CanaryConfig::find(folder.path())
    }

    #[test]
    fn every_weight_of_the_description_is_one_of_a_tensor() {
        let config = find(SMALL).unwrap().unwrap();
        let whole = find(r#"{"model_type": "canary"}"#).unwrap().unwrap();
        assert_eq!((whole.dimensions.encoder.layers, whole.dimensions.encoder.mel_bins), (32, 128));
        for config in [config, whole] {
            let all = config.tensors().into_iter().filter(|(name, _)| !name.contains("running"));
            let weights: usize = all.map(|(_, shape)| shape.iter().product::<usize>()).sum();
            assert_eq!(weights as u64, config.dimensions.parameters().total());
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let with = |old: &str, new: &str| {
            assert!(SMALL.contains(old), "{old}");
            SMALL.replace(old, new)
        };
        for (config, expected) in [
            (with("\"canary\"", "\"canary_qwen\""), "the kind \"canary_qwen\", which is not supported"),
            (
                with("{\"model_type\"", "{\"tie_word_embeddings\": false, \"model_type\""),
                "tie_word_embeddings",
            ),
            (with("\"vocab_size\": 12", "\"vocab_size\": 0"), "vocab_size is 0"),
            (
                with("12,\n        \"hidden_size\": 16", "12,\n        \"hidden_size\": 8"),
                "a decoder of width 8",
            ),
            (with("\"num_attention_heads\": 4", "\"num_attention_heads\": 3"), "is not a multiple of"),
            (with("\"intermediate_size\": 24", "\"hidden_act\": \"gelu\""), "hidden_act gelu"),
            (with("\"num_mel_bins\": 128", "\"num_mel_bins\": 100"), "num_mel_bins 100"),
        ] {
            let error = find(&config).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn languages_are_those_that_have_a_token() {
        let config = find(SMALL).unwrap().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "<unk>",
            "▁a",
            "<|pnc|>",
            "<|endoftext|>",
            "<|noitn|>",
            "<|notimestamp|>",
            "<|nodiarize|>",
            "<|startofcontext|>",
            "<|startoftranscript|>",
            "<|emo:undefined|>",
            "<|en|>",
            "<|de|>",
        ];
        let write = |names: &[&str]| {
            let vocab: Vec<_> = names.iter().map(|name| serde_json::json!([name, 0.0])).collect();
            let text = serde_json::json!({ "model": { "vocab": vocab } }).to_string();
            fs::write(folder.path().join(TOKENIZER), text).unwrap();
        };
        write(&names);
        let tokens = config.tokens(folder.path()).unwrap();
        assert_eq!(tokens.prompt("de", "en"), Some(vec![7, 8, 9, 11, 10, 2, 4, 5, 6]));
        assert_eq!(tokens.prompt("fr", "fr"), None);
        let texts: Vec<&str> = tokens.pieces.iter().map(String::as_str).filter(|it| !it.is_empty()).collect();
        assert_eq!(texts, ["▁a"]);
        for (old, part) in [
            ("<|pnc|>", "no token <|pnc|>"),
            ("<|endoftext|>", "no token <|endoftext|>"),
            ("<|startofcontext|>", "no token <|startofcontext|>"),
        ] {
            write(&names.map(|name| if name == old { "x" } else { name }));
            let error = config.tokens(folder.path()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        write(&names.map(|name| if ["<|en|>", "<|de|>"].contains(&name) { "x" } else { name }));
        assert!(config.tokens(folder.path()).unwrap_err().to_string().contains("no token of a language"));
    }
}
