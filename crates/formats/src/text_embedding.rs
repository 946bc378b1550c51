//! Models that turn texts into vectors, in the layout of sentence-transformers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use memory::EmbeddingSizes;
use serde::Deserialize;

use crate::{Activation, Error, ModelFiles, Tensors, read_json};

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
/// The steps of the model, in order.
const MODULES: &str = "modules.json";
/// What is put before texts.
const PROMPTS: &str = "config_sentence_transformers.json";
/// How long a text may be.
const LENGTH: &str = "sentence_bert_config.json";
/// A checkpoint of torch, for models that have no safetensors.
const CHECKPOINT: &str = "pytorch_model.bin";
/// Where the pooling's description is, for models without a list of steps.
const POOLING_FOLDER: &str = "1_Pooling";
/// English BERT has 30,522 tokens, the smallest multilingual one 105,879.
const MULTILINGUAL_VOCABULARY: usize = 100_000;

/// A model that turns texts into vectors, as its files describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEmbeddingModel {
    /// Its folder.
    pub folder: PathBuf,
    /// The network, and what is done with its output.
    pub config: TextEmbeddingConfig,
}

/// A network that turns texts into vectors.
#[derive(Debug, Clone, PartialEq)]
pub struct TextEmbeddingConfig {
    /// How positions are counted.
    pub architecture: TextArchitecture,
    /// Tokens, special ones included.
    pub vocabulary: usize,
    /// Numbers per token, and of a vector.
    pub width: usize,
    /// Layers.
    pub layers: usize,
    /// Attention heads of each of them.
    pub heads: usize,
    /// Width of their hidden layer.
    pub inner: usize,
    /// Rows of the table of positions.
    pub positions: usize,
    /// Rows of the table of token types.
    pub token_types: usize,
    /// The non-linearity of the hidden layer.
    pub activation: Activation,
    /// Added to the variance in a norm.
    pub norm_epsilon: f64,
    /// The token that fills texts up.
    pub padding: u32,
    /// Tokens of a text that are read, special ones included; the rest of it is ignored.
    pub max_tokens: usize,
    /// How a text's vector is made of those of its tokens.
    pub pooling: Pooling,
    /// Put before a question.
    pub query_prompt: String,
    /// Put before a text to be found.
    pub passage_prompt: String,
}

/// The networks that are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextArchitecture {
    /// Positions count from 0 (Devlin and others, arXiv:1810.04805).
    Bert,
    /// Positions count from behind the padding token (Conneau and others, arXiv:1911.02116).
    XlmRoberta,
}

/// How a text's vector is made of those of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    /// Their mean.
    Mean,
    /// That of the first token.
    FirstToken,
}

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    model_type: String,
}

#[derive(Deserialize)]
struct Config {
    #[serde(default, rename = "_name_or_path")]
    origin: String,
    vocab_size: usize,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "gelu")]
    hidden_act: String,
    #[serde(default = "epsilon")]
    layer_norm_eps: f64,
    #[serde(default)]
    pad_token_id: Option<u32>,
    #[serde(default)]
    position_embedding_type: Option<String>,
}

fn two() -> usize {
    2
}

fn gelu() -> String {
    "gelu".into()
}

fn epsilon() -> f64 {
    1e-12
}

#[derive(Deserialize)]
struct Module {
    #[serde(default)]
    path: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PoolingConfig {
    pooling_mode: Option<String>,
    pooling_mode_cls_token: bool,
    pooling_mode_mean_tokens: bool,
    pooling_mode_max_tokens: bool,
    pooling_mode_mean_sqrt_len_tokens: bool,
    pooling_mode_weightedmean_tokens: bool,
    pooling_mode_lasttoken: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PromptConfig {
    prompts: BTreeMap<String, String>,
    default_prompt_name: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct LengthConfig {
    max_seq_length: Option<usize>,
}

impl TextEmbeddingModel {
    /// Reads the description of the model in a folder; `None` where it is no folder of such
    /// a model. The weights are not looked at.
    ///
    /// # Errors
    /// [`Error::Invalid`] for one whose description is damaged or asks for what is not known,
    /// such as another pooling, [`Error::Missing`] for one without a tokenizer.
    pub fn find(folder: &Path) -> Result<Option<Self>, Error> {
        if !folder.join(CONFIG).is_file() {
            return Ok(None);
        }
        // What can't be read is for those to report who know no other model.
        let Ok(kind) = read_json::<Kind>(folder, CONFIG) else { return Ok(None) };
        let architecture = match kind.model_type.as_str() {
            "bert" => TextArchitecture::Bert,
            "xlm-roberta" => TextArchitecture::XlmRoberta,
            _ => return Ok(None),
        };
        let config = read(folder, architecture)?;
        if !folder.join(TOKENIZER).is_file() {
            return Err(Error::Missing { folder: folder.into(), file: TOKENIZER });
        }
        Ok(Some(Self { folder: folder.into(), config }))
    }

    /// The files of weights: safetensors, GGUF, or else a checkpoint of torch.
    ///
    /// # Errors
    /// As [`ModelFiles::find`].
    pub fn weights(&self) -> Result<Vec<PathBuf>, Error> {
        match ModelFiles::find(&self.folder) {
            Ok(ModelFiles::Safetensors { files, .. }) => Ok(files),
            Ok(ModelFiles::Gguf { file, .. } | ModelFiles::Ggml { file }) => Ok(vec![file]),
            Err(Error::Missing { .. }) if self.folder.join(CHECKPOINT).is_file() => {
                Ok(vec![self.folder.join(CHECKPOINT)])
            }
            Err(error) => Err(error),
        }
    }

    /// The tensors of the weights.
    ///
    /// # Errors
    /// As [`Tensors::open`].
    pub fn tensors(&self) -> Result<Tensors, Error> {
        match self.weights()?.as_slice() {
            [one] if one.ends_with(CHECKPOINT) => Tensors::open_file(one),
            _ => Tensors::open(&self.folder),
        }
    }

    /// All of its files that are there, the weights last.
    ///
    /// # Errors
    /// As [`TextEmbeddingModel::weights`].
    pub fn all(&self) -> Result<Vec<PathBuf>, Error> {
        const INDEX: &str = "model.safetensors.index.json";
        let pooling = format!("{}/config.json", pooling_folder(&self.folder)?);
        let names = [
            CONFIG,
            TOKENIZER,
            "tokenizer_config.json",
            MODULES,
            PROMPTS,
            LENGTH,
            &pooling,
            "steno-model.json",
        ];
        let weights = self.weights()?;
        let index = (weights.len() > 1).then_some(INDEX);
        let beside = names.into_iter().chain(index).map(|name| self.folder.join(name));
        Ok(beside.filter(|path| path.is_file()).chain(weights).collect())
    }

    /// What the memory that it takes follows from. Reads the tokenizer's file.
    pub fn sizes(&self) -> EmbeddingSizes {
        let config = &self.config;
        let weights = config.tensors().iter().map(|(_, shape)| shape.iter().product::<usize>() as u64).sum();
        let tokenizer = std::fs::read(self.folder.join(TOKENIZER)).unwrap_or_default();
        EmbeddingSizes {
            weights,
            width: config.width as u64,
            inner: config.inner as u64,
            heads: config.heads as u64,
            vocabulary: config.vocabulary as u64,
            sentencepiece: String::from_utf8_lossy(&tokenizer).contains("\"Unigram\""),
        }
    }

    /// Reads the headers of the weights, and checks that every tensor is there in its shape.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a damaged file and for one of another network, naming what is
    /// wrong; [`Error::Io`] for what can't be read.
    pub fn check(&self) -> Result<(), Error> {
        let tensors = self.tensors()?;
        let prefix = Self::prefix(&tensors);
        let file = || tensors.files.first().map_or_else(|| self.folder.clone(), |(path, _)| path.clone());
        for (name, shape) in self.config.tensors() {
            let name = format!("{prefix}{name}");
            let Some(found) = tensors.index.get(&name) else {
                // Older files have other names for the two halves of a norm.
                let old = name.replace("LayerNorm.weight", "LayerNorm.gamma");
                let old = old.replace("LayerNorm.bias", "LayerNorm.beta");
                if tensors.index.contains_key(&old) {
                    continue;
                }
                return Err(Error::invalid(file(), format!("the tensor {name} is missing")));
            };
            if found.shape != shape {
                let reason = format!(
                    "the tensor {name} has the shape {:?}, config.json asks for {shape:?}",
                    found.shape
                );
                return Err(Error::invalid(file(), reason));
            }
            if let Err(kind) = &found.stored {
                let reason = format!("the tensor {name} is of the type {kind}, which is not supported");
                return Err(Error::invalid(file(), reason));
            }
        }
        Ok(())
    }

    /// What precedes the names of the tensors: checkpoints of a task put the network's name there.
    pub fn prefix(tensors: &Tensors) -> &'static str {
        const FIRST: &str = "embeddings.word_embeddings.weight";
        let is_there = |prefix: &&str| tensors.index.contains_key(&format!("{prefix}{FIRST}"));
        ["", "bert.", "roberta."].into_iter().find(is_there).unwrap_or("")
    }
}

impl TextEmbeddingConfig {
    /// Whether it was trained on texts in many languages.
    pub fn is_multilingual(&self) -> bool {
        self.vocabulary >= MULTILINGUAL_VOCABULARY
    }

    /// Name and shape of every tensor, without what precedes the names.
    fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (width, inner) = (self.width, self.inner);
        let table = |name: &str, rows| (format!("embeddings.{name}_embeddings.weight"), vec![rows, width]);
        let mut all = vec![
            table("word", self.vocabulary),
            table("position", self.positions),
            table("token_type", self.token_types),
        ];
        let mut norms = vec!["embeddings.LayerNorm".to_owned()];
        for layer in (0..self.layers).map(|number| format!("encoder.layer.{number}")) {
            for (part, output, input) in [
                ("attention.self.query", width, width),
                ("attention.self.key", width, width),
                ("attention.self.value", width, width),
                ("attention.output.dense", width, width),
                ("intermediate.dense", inner, width),
                ("output.dense", width, inner),
            ] {
                all.push((format!("{layer}.{part}.weight"), vec![output, input]));
                all.push((format!("{layer}.{part}.bias"), vec![output]));
            }
            norms.extend(["attention.output", "output"].map(|part| format!("{layer}.{part}.LayerNorm")));
        }
        for norm in norms {
            all.extend(["weight", "bias"].map(|part| (format!("{norm}.{part}"), vec![width])));
        }
        all
    }
}

fn read(folder: &Path, architecture: TextArchitecture) -> Result<TextEmbeddingConfig, Error> {
    let config: Config = read_json(folder, CONFIG)?;
    let invalid = |reason: String| Error::invalid(folder.join(CONFIG), reason);
    check_sizes(&config).map_err(invalid)?;
    if let Some(kind) = config.position_embedding_type.as_deref().filter(|kind| *kind != "absolute") {
        return Err(invalid(format!("positions of the kind {kind} are not supported")));
    }
    let activation = match config.hidden_act.as_str() {
        "gelu" => Activation::Gelu,
        "gelu_new" => Activation::GeluNew,
        "relu" => Activation::Relu,
        other => return Err(invalid(format!("the activation function {other} is not supported"))),
    };
    let padding = config.pad_token_id.unwrap_or(match architecture {
        TextArchitecture::Bert => 0,
        TextArchitecture::XlmRoberta => 1,
    });
    let longest = match architecture {
        TextArchitecture::Bert => config.max_position_embeddings,
        TextArchitecture::XlmRoberta => config.max_position_embeddings.saturating_sub(padding as usize + 1),
    };
    let length: LengthConfig = optional(folder, LENGTH)?;
    let max_tokens = length.max_seq_length.unwrap_or(longest).min(longest);
    if max_tokens < 3 {
        return Err(invalid(format!("texts of {max_tokens} tokens are too short to be read")));
    }
    let (query_prompt, passage_prompt) = prompts(folder, &config)?;
    Ok(TextEmbeddingConfig {
        architecture,
        vocabulary: config.vocab_size,
        width: config.hidden_size,
        layers: config.num_hidden_layers,
        heads: config.num_attention_heads,
        inner: config.intermediate_size,
        positions: config.max_position_embeddings,
        token_types: config.type_vocab_size,
        activation,
        norm_epsilon: config.layer_norm_eps,
        padding,
        max_tokens,
        pooling: pooling(folder)?,
        query_prompt,
        passage_prompt,
    })
}

/// Refuses sizes that no network has.
fn check_sizes(config: &Config) -> Result<(), String> {
    const LIMIT: usize = 1 << 20;
    let sizes = [
        ("vocab_size", config.vocab_size),
        ("hidden_size", config.hidden_size),
        ("num_hidden_layers", config.num_hidden_layers),
        ("num_attention_heads", config.num_attention_heads),
        ("intermediate_size", config.intermediate_size),
        ("max_position_embeddings", config.max_position_embeddings),
        ("type_vocab_size", config.type_vocab_size),
    ];
    if let Some((name, size)) = sizes.iter().find(|(_, size)| *size == 0 || *size > LIMIT) {
        return Err(format!("{name} is {size}"));
    }
    if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
        let (width, heads) = (config.hidden_size, config.num_attention_heads);
        return Err(format!("hidden_size {width} is not a multiple of num_attention_heads {heads}"));
    }
    match config.pad_token_id {
        Some(padding) if padding as usize >= config.vocab_size => Err(format!("pad_token_id is {padding}")),
        _ => Ok(()),
    }
}

/// The default where there is no such file.
fn optional<T: Default + serde::de::DeserializeOwned>(folder: &Path, file: &'static str) -> Result<T, Error> {
    match read_json(folder, file) {
        Err(Error::Missing { .. }) => Ok(T::default()),
        read => read,
    }
}

fn modules(folder: &Path) -> Result<Vec<Module>, Error> {
    let modules: Vec<Module> = optional(folder, MODULES)?;
    for module in &modules {
        let kind = module.kind.rsplit('.').next().unwrap_or_default();
        if !["Transformer", "Pooling", "Normalize"].contains(&kind) {
            let reason = format!("the step {kind} is not supported");
            return Err(Error::invalid(folder.join(MODULES), reason));
        }
    }
    Ok(modules)
}

/// Within the model's folder, without a way out of it.
fn pooling_folder(folder: &Path) -> Result<String, Error> {
    let modules = modules(folder)?;
    let named = modules.into_iter().find(|module| module.kind.ends_with("Pooling")).map(|module| module.path);
    let named = named.unwrap_or_else(|| POOLING_FOLDER.into());
    if named.is_empty() || named.contains(['/', '\\']) || named.starts_with('.') {
        let reason = format!("the folder {named:?} is not a name");
        return Err(Error::invalid(folder.join(MODULES), reason));
    }
    Ok(named)
}

/// The mean where nothing is said, as sentence-transformers does.
fn pooling(folder: &Path) -> Result<Pooling, Error> {
    let place = folder.join(pooling_folder(folder)?);
    let config: PoolingConfig = optional(&place, CONFIG)?;
    let others = config.pooling_mode_max_tokens
        || config.pooling_mode_mean_sqrt_len_tokens
        || config.pooling_mode_weightedmean_tokens
        || config.pooling_mode_lasttoken;
    let (first, mean) = (config.pooling_mode_cls_token, config.pooling_mode_mean_tokens);
    match (config.pooling_mode.as_deref(), first, mean, others) {
        (Some("mean"), ..) | (None, false, _, false) => Ok(Pooling::Mean),
        (Some("cls"), ..) | (None, true, false, false) => Ok(Pooling::FirstToken),
        _ => Err(Error::invalid(place.join(CONFIG), "its pooling is neither the mean nor the first token")),
    }
}

/// What is put before a question and before a text to be found, as the files say. Those of
/// the E5 models don't, whose authors put "query: " and "passage: " there (Wang and others,
/// arXiv:2212.03533).
fn prompts(folder: &Path, config: &Config) -> Result<(String, String), Error> {
    let found: PromptConfig = optional(folder, PROMPTS)?;
    let usual = found.default_prompt_name.as_ref().and_then(|name| found.prompts.get(name));
    let of = |names: &[&str]| names.iter().find_map(|name| found.prompts.get(*name)).or(usual).cloned();
    let (query, passage) = (of(&["query"]), of(&["passage", "document"]));
    let folder_name =
        folder.canonicalize().ok().and_then(|path| path.file_name().map(|name| name.to_owned()));
    let folder_name = folder_name.unwrap_or_default().to_string_lossy().into_owned();
    let is_e5 = |name: &str| name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "e5");
    if query.is_none() && passage.is_none() && (is_e5(&config.origin) || is_e5(&folder_name)) {
        return Ok(("query: ".into(), "passage: ".into()));
    }
    Ok((query.unwrap_or_default(), passage.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BERT: &str = r#"{"model_type": "bert", "vocab_size": 100, "hidden_size": 8, "num_hidden_layers": 2,
        "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 64}"#;

    fn model(files: &[(&str, &str)]) -> (tempfile::TempDir, Result<Option<TextEmbeddingModel>, Error>) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [(CONFIG, BERT), (TOKENIZER, "{}")].iter().chain(files) {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = TextEmbeddingModel::find(folder.path());
        (folder, found)
    }

    fn config(files: &[(&str, &str)]) -> TextEmbeddingConfig {
        model(files).1.unwrap().unwrap().config
    }

    #[test]
    fn the_models_own_files_say_how_a_vector_is_made() {
        let plain = config(&[]);
        assert_eq!((plain.pooling, plain.max_tokens, plain.padding), (Pooling::Mean, 64, 0));
        assert_eq!((plain.query_prompt.as_str(), plain.passage_prompt.as_str()), ("", ""));

        let pooled = |text| config(&[("1_Pooling/config.json", text)]).pooling;
        assert_eq!(pooled(r#"{"pooling_mode_cls_token": true}"#), Pooling::FirstToken);
        assert_eq!(pooled(r#"{"pooling_mode": "cls"}"#), Pooling::FirstToken);
        assert_eq!(pooled(r#"{"pooling_mode_mean_tokens": true}"#), Pooling::Mean);
        let elsewhere = [
            (
                MODULES,
                r#"[{"path": "", "type": "a.Transformer"}, {"path": "2_Pooling", "type": "a.Pooling"}]"#,
            ),
            ("2_Pooling/config.json", r#"{"pooling_mode_cls_token": true}"#),
        ];
        assert_eq!(config(&elsewhere).pooling, Pooling::FirstToken);

        assert_eq!(config(&[(LENGTH, r#"{"max_seq_length": 32}"#)]).max_tokens, 32);
        assert_eq!(config(&[(LENGTH, r#"{"max_seq_length": 512}"#)]).max_tokens, 64);
        let roberta = BERT.replace("bert", "xlm-roberta");
        assert_eq!(config(&[(CONFIG, &roberta)]).max_tokens, 62, "positions begin behind the padding");
    }

    #[test]
    fn prompts_are_those_of_the_files_or_of_the_family() {
        let prompts = |files: &[(&str, &str)]| {
            let config = config(files);
            (config.query_prompt, config.passage_prompt)
        };
        let both = |query: &str, passage: &str| (query.to_owned(), passage.to_owned());
        let text = r#"{"prompts": {"query": "Q: ", "document": "D: "}}"#;
        assert_eq!(prompts(&[(PROMPTS, text)]), both("Q: ", "D: "));
        let text = r#"{"prompts": {"all": "A: "}, "default_prompt_name": "all"}"#;
        assert_eq!(prompts(&[(PROMPTS, text)]), both("A: ", "A: "));
        let e5 = BERT.replacen('{', r#"{"_name_or_path": "intfloat/multilingual-e5-small", "#, 1);
        assert_eq!(prompts(&[(CONFIG, &e5)]), both("query: ", "passage: "));
        let other = BERT.replacen('{', r#"{"_name_or_path": "some/e50", "#, 1);
        assert_eq!(prompts(&[(CONFIG, &other)]), both("", ""));
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (file, text, expected) in [
            (MODULES, r#"[{"path": "", "type": "a.Dense"}]"#, "the step Dense is not supported"),
            (MODULES, r#"[{"path": "../x", "type": "a.Pooling"}]"#, "is not a name"),
            ("1_Pooling/config.json", r#"{"pooling_mode_max_tokens": true}"#, "neither the mean nor"),
            ("1_Pooling/config.json", r#"{"pooling_mode": "max"}"#, "neither the mean nor"),
            (CONFIG, &BERT.replace("100", "0"), "vocab_size is 0"),
            (CONFIG, &BERT.replace("\"hidden_size\": 8", "\"hidden_size\": 9"), "is not a multiple"),
            (CONFIG, &BERT.replacen('{', r#"{"hidden_act": "silu", "#, 1), "silu is not supported"),
            (
                CONFIG,
                &BERT.replacen('{', r#"{"position_embedding_type": "relative_key", "#, 1),
                "relative_key",
            ),
            (LENGTH, r#"{"max_seq_length": 1}"#, "too short"),
        ] {
            let error = model(&[(file, text)]).1.unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let none = model(&[(CONFIG, r#"{"model_type": "whisper"}"#)]).1;
        assert!(matches!(none, Ok(None)));
        let (folder, _) = model(&[]);
        std::fs::remove_file(folder.path().join(TOKENIZER)).unwrap();
        assert!(matches!(TextEmbeddingModel::find(folder.path()), Err(Error::Missing { .. })));
    }
}
