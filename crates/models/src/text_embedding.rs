//! Texts as vectors: BERT and XLM-RoBERTa, with the pooling that sentence-transformers does
//! behind them. On a GPU the networks are those of candle-transformers, on the host those of
//! `host`; a test has both compute the same.
//!
//! A text's vector depends on the texts beside it only by the rounding of matrix products of
//! other sizes, less than 1e-5 in 32 bits: what is padded is masked.

mod host;

use std::fmt;

use candle_core::{DType, Device, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use candle_transformers::models::{bert, xlm_roberta};
use formats::{Activation, Pooling, TextArchitecture, TextEmbeddingConfig, TextEmbeddingModel};
use memory::Precision;
use tokenizers::{Tokenizer, TruncationParams};

use self::host::HostNetwork;
use crate::layers::{Tick, dense_dtype};
use crate::{Error, Weights};

/// A network that turns texts into vectors, with its tokenizer.
pub struct TextEmbedder {
    config: TextEmbeddingConfig,
    tokenizer: Tokenizer,
    network: Network,
    device: Device,
    precision: Precision,
}

enum Network {
    /// On the host.
    Host(Box<HostNetwork>),
    Bert(bert::BertModel),
    XlmRoberta(xlm_roberta::XLMRobertaModel),
}

impl Network {
    fn of_candle(weights: VarBuilder, config: &TextEmbeddingConfig) -> Result<Self, Error> {
        Ok(match config.architecture {
            TextArchitecture::Bert => Self::Bert(bert::BertModel::load(weights, &of_bert(config))?),
            TextArchitecture::XlmRoberta => {
                Self::XlmRoberta(xlm_roberta::XLMRobertaModel::new(&of_xlm_roberta(config), weights)?)
            }
        })
    }
}

impl fmt::Debug for TextEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextEmbedder {{ config: {:?}, .. }}", self.config)
    }
}

impl TextEmbedder {
    /// Loads a model onto a device, its weights in `precision` ([`TextEmbedder::held`] says
    /// in which they are then held).
    ///
    /// # Errors
    /// [`Error::Files`] for files that are not a whole model; [`Error::Interrupted`] if `tick`
    /// returned `false`; [`Error::Candle`] if the device fails or has no memory left.
    pub fn load(
        model: &TextEmbeddingModel,
        device: &Device,
        precision: Precision,
        tick: &Tick,
    ) -> Result<Self, Error> {
        let ticked = || if tick() { Ok(()) } else { Err(Error::Interrupted) };
        ticked()?;
        model.check()?;
        let tokenizer = tokenizer(model)?;
        ticked()?;
        let config = model.config.clone();
        let precision = Self::held(&config, device, precision);
        let tensors = model.tensors()?;
        let prefix = TextEmbeddingModel::prefix(&tensors);
        let weights = Weights::of(tensors);
        let network = if device.is_cpu() {
            Network::Host(Box::new(HostNetwork::load(&weights, prefix, &config, precision, &ticked)?))
        } else {
            let weights = NamedWeights { weights, prefix };
            let weights = VarBuilder::from_backend(Box::new(weights), dense_dtype(precision), device.clone());
            Network::of_candle(weights, &config)?
        };
        ticked()?;
        Ok(Self { config, tokenizer, network, device: device.clone(), precision })
    }

    /// The precision in which weights are held on a device where `wanted` is asked for. The host
    /// takes every one, and computes in 32 bits. Elsewhere candle-transformers computes in that
    /// of the weights: its BERT masks with the lowest number of 32 bits, which 16 bits don't
    /// have; its XLM-RoBERTa counts positions, exactly up to 2,048 in F16 and up to 256 in BF16.
    pub fn held(config: &TextEmbeddingConfig, device: &Device, wanted: Precision) -> Precision {
        match (config.architecture, wanted) {
            _ if device.is_cpu() => wanted,
            (TextArchitecture::XlmRoberta, Precision::F16) if config.positions <= 2048 => Precision::F16,
            (TextArchitecture::XlmRoberta, Precision::Bf16) if config.positions <= 256 => Precision::Bf16,
            _ => Precision::F32,
        }
    }

    /// What its files say.
    pub fn config(&self) -> &TextEmbeddingConfig {
        &self.config
    }

    /// The precision that it computes in.
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// The tokens of a text behind a prompt, special ones included: at most as many as the
    /// model reads.
    ///
    /// # Errors
    /// [`Error::Files`] if the tokenizer can't read the text, or answers with tokens that the
    /// network does not know.
    pub fn tokens(&self, prompt: &str, text: &str) -> Result<Vec<u32>, Error> {
        let invalid = |reason: String| Error::invalid("tokenizer.json", reason);
        let encoding = match prompt {
            "" => self.tokenizer.encode(text, true),
            prompt => self.tokenizer.encode(format!("{prompt}{text}"), true),
        };
        let encoding = encoding.map_err(|error| invalid(error.to_string()))?;
        let ids = encoding.get_ids();
        if let Some(id) = ids.iter().find(|id| **id as usize >= self.config.vocabulary) {
            return Err(invalid(format!("it has a token {id}, config.json {}", self.config.vocabulary)));
        }
        match ids {
            // A tokenizer without special tokens makes nothing of an empty text.
            [] => Ok(vec![self.config.padding]),
            ids => Ok(ids.to_vec()),
        }
    }

    /// A vector of length 1 for each text, all computed at once. Each text is its
    /// [`TextEmbedder::tokens`], at least one. `tick` is called after every layer, on a GPU
    /// before the first one alone.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left; [`Error::Interrupted`] if
    /// `tick` returned `false`.
    pub fn embed(&self, texts: &[&[u32]], tick: &Tick) -> Result<Vec<Vec<f32>>, Error> {
        let (count, longest) = (texts.len(), texts.iter().map(|text| text.len()).max().unwrap_or(0));
        if count == 0 || longest == 0 {
            return Ok(vec![vec![0.0; self.config.width]; count]);
        }
        let ticked = || if tick() { Ok(()) } else { Err(Error::Interrupted) };
        ticked()?;
        if let Network::Host(network) = &self.network {
            let mut vectors = network.forward(texts, &ticked)?;
            vectors.iter_mut().for_each(|vector| normalise(vector));
            return Ok(vectors);
        }
        let mut ids = vec![self.config.padding; count * longest];
        let mut mask = vec![0f32; count * longest];
        for (row, text) in texts.iter().enumerate() {
            let at = row * longest;
            ids[at..at + text.len()].copy_from_slice(text);
            mask[at..at + text.len()].fill(1.0);
        }
        let shape = (count, longest);
        let ids = Tensor::from_vec(ids, shape, &self.device)?;
        let mask = Tensor::from_vec(mask, shape, &self.device)?;
        let types = ids.zeros_like()?;
        let hidden = match &self.network {
            Network::Host(_) => return Ok(Vec::new()),
            Network::Bert(network) => network.forward(&ids, &types, Some(&mask))?,
            Network::XlmRoberta(network) => network.forward(&ids, &mask, &types, None, None, None)?,
        };
        let pooled = match self.config.pooling {
            Pooling::FirstToken => hidden.narrow(1, 0, 1)?.squeeze(1)?.to_dtype(DType::F32)?,
            Pooling::Mean => {
                let weights = mask.unsqueeze(2)?;
                let sum = hidden.to_dtype(DType::F32)?.broadcast_mul(&weights)?.sum(1)?;
                sum.broadcast_div(&mask.sum_keepdim(1)?)?
            }
        };
        let mut vectors = pooled.to_vec2::<f32>()?;
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }
}

/// Scales a vector to length 1; one without a direction stays as it is.
fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
}

/// The tokenizer, which cuts texts where the network's positions end.
fn tokenizer(model: &TextEmbeddingModel) -> Result<Tokenizer, Error> {
    const NAME: &str = "tokenizer.json";
    let path = model.folder.join(NAME);
    // Read as JSON first, as the error of a missing or broken file then names it.
    let _: serde::de::IgnoredAny = formats::read_json(&model.folder, NAME)?;
    let mut tokenizer = Tokenizer::from_file(&path).map_err(|error| Error::invalid(&path, error))?;
    // The file may say how a training program cut and padded texts.
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: model.config.max_tokens, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation)).map_err(|error| Error::invalid(&path, error))?;
    Ok(tokenizer)
}

fn of_bert(config: &TextEmbeddingConfig) -> bert::Config {
    bert::Config {
        vocab_size: config.vocabulary,
        hidden_size: config.width,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        intermediate_size: config.inner,
        hidden_act: match config.activation {
            Activation::Gelu => bert::HiddenAct::Gelu,
            Activation::GeluNew => bert::HiddenAct::GeluApproximate,
            Activation::Relu => bert::HiddenAct::Relu,
        },
        max_position_embeddings: config.positions,
        type_vocab_size: config.token_types,
        layer_norm_eps: config.norm_epsilon,
        pad_token_id: config.padding as usize,
        ..bert::Config::default()
    }
}

fn of_xlm_roberta(config: &TextEmbeddingConfig) -> xlm_roberta::Config {
    xlm_roberta::Config {
        hidden_size: config.width,
        layer_norm_eps: config.norm_epsilon,
        attention_probs_dropout_prob: 0.0,
        hidden_dropout_prob: 0.0,
        num_attention_heads: config.heads,
        position_embedding_type: "absolute".into(),
        intermediate_size: config.inner,
        hidden_act: match config.activation {
            Activation::Gelu => candle_nn::Activation::Gelu,
            Activation::GeluNew => candle_nn::Activation::NewGelu,
            Activation::Relu => candle_nn::Activation::Relu,
        },
        num_hidden_layers: config.layers,
        vocab_size: config.vocabulary,
        max_position_embeddings: config.positions,
        type_vocab_size: config.token_types,
        pad_token_id: config.padding,
    }
}

/// Weights under the names that candle-transformers knows.
struct NamedWeights {
    weights: Weights,
    /// Of the names in the file.
    prefix: &'static str,
}

impl NamedWeights {
    fn read(&self, name: &str, dtype: DType, device: &Device) -> candle_core::Result<Tensor> {
        let name = format!("{}{name}", self.prefix);
        self.weights.any(&name, dtype, device).map_err(|error| match error {
            Error::Candle(error) => error,
            other => candle_core::Error::Msg(other.to_string()),
        })
    }
}

impl SimpleBackend for NamedWeights {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> candle_core::Result<Tensor> {
        let tensor = self.read(name, dtype, device)?;
        if tensor.shape() != &shape {
            let text = format!("the tensor {name} has the shape {:?}, not {shape:?}", tensor.shape());
            return Err(candle_core::Error::Msg(text));
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> candle_core::Result<Tensor> {
        self.read(name, dtype, device)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.weights.contains(&format!("{}{name}", self.prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What computes on a GPU computes here what the host's network does.
    #[test]
    fn candle_transformers_and_the_hosts_network_agree() {
        for (name, precision, most) in [
            ("tiny-bert", Precision::F32, 1e-5),
            ("tiny-xlm-roberta", Precision::F32, 1e-5),
            ("tiny-xlm-roberta", Precision::F16, 1e-2),
        ] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding").join(name);
            let model = TextEmbeddingModel::find(&folder).unwrap().unwrap();
            let host = TextEmbedder::load(&model, &Device::Cpu, Precision::F32, &|| true).unwrap();
            let tensors = model.tensors().unwrap();
            let prefix = TextEmbeddingModel::prefix(&tensors);
            let weights = NamedWeights { weights: Weights::of(tensors), prefix };
            let weights = VarBuilder::from_backend(Box::new(weights), dense_dtype(precision), Device::Cpu);
            let network = Network::of_candle(weights, &model.config).unwrap();
            let tokenizer = tokenizer(&model).unwrap();
            let (config, device) = (model.config.clone(), Device::Cpu);
            let candle = TextEmbedder { config, tokenizer, network, device, precision };
            let texts = [
                "We have to sell the boat.",
                "a",
                "",
                "The engine cost more than the whole ship did in spring.",
            ];
            let tokens: Vec<Vec<u32>> = texts.iter().map(|text| host.tokens("", text).unwrap()).collect();
            let tokens: Vec<&[u32]> = tokens.iter().map(Vec::as_slice).collect();
            for (a, b) in
                host.embed(&tokens, &|| true).unwrap().iter().zip(candle.embed(&tokens, &|| true).unwrap())
            {
                assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < most), "{name}: {a:?} {b:?}");
            }
        }
    }
}
