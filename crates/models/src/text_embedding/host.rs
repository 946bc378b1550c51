//! The same networks on the host, with the products and the attention of this crate: texts lie
//! one behind the other without padding, weights may be held in less than 32 bits, and scores
//! are never written to memory whole. On all-MiniLM-L6-v2 candle-transformers took three times
//! the processor's time here, and more than twice the memory per text.

use candle_core::{DType, Device, Module, Tensor};
use formats::{Activation, Pooling, TextArchitecture, TextEmbeddingConfig};
use memory::Precision;

use crate::fused::attention;
use crate::layers::{Linear, LoadedBytes, Loader};
use crate::matrix::{Matrix, with_values};
use crate::norm::LayerNorm;
use crate::right_factor::AttentionPrecision;
use crate::{Error, Weights};

/// A network on the host. Weights are immutable.
pub(super) struct HostNetwork {
    words: Matrix,
    positions: Tensor,
    /// That of all tokens: (width).
    token_type: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    heads: usize,
    /// Row of the first token in the table of positions.
    first_position: u32,
    activation: Activation,
    pooling: Pooling,
}

struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    out: Linear,
    attention_norm: LayerNorm,
    up: Linear,
    down: Linear,
    norm: LayerNorm,
}

impl HostNetwork {
    /// Loads the weights, matrices in `precision`. `prefix` precedes the names of the tensors.
    pub fn load(
        weights: &Weights,
        prefix: &str,
        config: &TextEmbeddingConfig,
        precision: Precision,
        ticked: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let (width, inner) = (config.width, config.inner);
        let loaded = LoadedBytes::default();
        let loader = Loader {
            weights,
            precision,
            dtype: DType::F32,
            is_encoder: false,
            device: &Device::Cpu,
            loaded: &loaded,
            prefix: "",
        };
        let norm = |name: String| {
            // Older files have other names for the two halves.
            let is_old = !weights.contains(&format!("{name}.weight"));
            let [weight, bias] = if is_old { ["gamma", "beta"] } else { ["weight", "bias"] };
            let get = |part| loader.get(&format!("{name}.{part}"), &[width]);
            Ok::<_, Error>(LayerNorm::new(get(weight)?, get(bias)?, config.norm_epsilon))
        };
        let embeddings = format!("{prefix}embeddings");
        let table = |name: &str| format!("{embeddings}.{name}_embeddings.weight");
        let words = loader.matrix(&table("word"), config.vocabulary, width)?;
        let positions = loader.get(&table("position"), &[config.positions, width])?;
        let types = loader.get(&table("token_type"), &[config.token_types, width])?;
        let mut layers = Vec::with_capacity(config.layers);
        for number in 0..config.layers {
            ticked()?;
            let name = format!("{prefix}encoder.layer.{number}");
            let linear =
                |part: &str, input, output| loader.linear(&format!("{name}.{part}"), input, output, true);
            layers.push(Layer {
                query: linear("attention.self.query", width, width)?,
                key: linear("attention.self.key", width, width)?,
                value: linear("attention.self.value", width, width)?,
                out: linear("attention.output.dense", width, width)?,
                attention_norm: norm(format!("{name}.attention.output.LayerNorm"))?,
                up: linear("intermediate.dense", width, inner)?,
                down: linear("output.dense", inner, width)?,
                norm: norm(format!("{name}.output.LayerNorm"))?,
            });
        }
        Ok(Self {
            words,
            positions,
            token_type: types.get(0)?,
            norm: norm(format!("{embeddings}.LayerNorm"))?,
            layers,
            heads: config.heads,
            first_position: match config.architecture {
                TextArchitecture::Bert => 0,
                TextArchitecture::XlmRoberta => config.padding + 1,
            },
            activation: config.activation,
            pooling: config.pooling,
        })
    }

    /// What the pooling makes of each text, (texts, width) row by row.
    pub fn forward(
        &self,
        texts: &[&[u32]],
        ticked: &dyn Fn() -> Result<(), Error>,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let ids: Vec<u32> = texts.iter().flat_map(|text| text.iter().copied()).collect();
        let positions: Vec<u32> = texts
            .iter()
            .flat_map(|text| (0..text.len() as u32).map(|number| self.first_position + number))
            .collect();
        let index = |rows: Vec<u32>| Tensor::new(rows, &Device::Cpu);
        let words = self.words.rows(&index(ids)?, DType::F32)?;
        let places = self.positions.index_select(&index(positions)?, 0)?;
        let x = (words + places)?.broadcast_add(&self.token_type)?;
        let mut x = self.norm.forward(&x)?;
        for layer in &self.layers {
            x = layer.forward(&x, texts, self.heads, self.activation)?;
            ticked()?;
        }
        let width = x.dim(1)?;
        with_values(&x, |values| {
            let mut rest = values;
            let mut vectors = Vec::with_capacity(texts.len());
            for text in texts {
                let (own, others) = rest.split_at(text.len() * width);
                rest = others;
                vectors.push(match self.pooling {
                    Pooling::FirstToken => own[..width].to_vec(),
                    Pooling::Mean => mean(own, width),
                });
            }
            vectors
        })
    }
}

/// The mean of rows.
fn mean(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0f32; width];
    for row in rows.chunks_exact(width) {
        sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
    }
    let count = (rows.len() / width).max(1) as f32;
    sum.iter_mut().for_each(|x| *x /= count);
    sum
}

impl Layer {
    fn forward(
        &self,
        x: &Tensor,
        texts: &[&[u32]],
        heads: usize,
        activation: Activation,
    ) -> Result<Tensor, Error> {
        let attended = self.attended(x, texts, heads)?;
        let x = self.attention_norm.forward(&self.out.added(&attended, x)?)?;
        let hidden = self.up.activated(&x, Some(activation))?;
        Ok(self.norm.forward(&self.down.added(&hidden, &x)?)?)
    }

    /// Each text attends to itself alone; texts of equal length do so together.
    fn attended(&self, x: &Tensor, texts: &[&[u32]], heads: usize) -> Result<Tensor, Error> {
        let width = x.dim(1)?;
        let scale = ((width / heads) as f32).powf(-0.5);
        let projections = [self.query.forward(x)?, self.key.forward(x)?, self.value.forward(x)?];
        let mut parts = Vec::new();
        let mut start = 0;
        for equal in texts.chunk_by(|a, b| a.len() == b.len()) {
            let length = equal.first().map_or(0, |text| text.len());
            let rows = equal.len() * length;
            let part = |of: &Tensor| of.narrow(0, start, rows)?.reshape((equal.len(), length, width));
            let [q, k, v] = &projections;
            let attended =
                attention([&part(q)?, &part(k)?, &part(v)?], heads, scale, AttentionPrecision::F32)?;
            parts.push(attended.reshape((rows, width))?);
            start += rows;
        }
        Ok(Tensor::cat(&parts, 0)?)
    }
}
