use candle_core::{D, DType, Device, Module, Tensor};

use super::config::Config;
use super::layers::{FeedForward, Linear, Loader, Projections, Tick, tick};
use crate::Error;
use crate::matrix::Matrix;

/// Predicts the next token from the tokens so far and the encoded audio.
/// Immutable: what a decoding accumulates is in [`DecoderState`].
#[derive(Debug)]
pub struct Decoder {
    embedding: Matrix,
    positions: Tensor,
    layers: Vec<Layer>,
    norm: candle_nn::LayerNorm,
    output: Linear,
    heads: usize,
    head_width: usize,
    dtype: DType,
    device: Device,
}

#[derive(Debug)]
struct Layer {
    self_norm: candle_nn::LayerNorm,
    self_attention: Projections,
    cross_norm: candle_nn::LayerNorm,
    cross_attention: Projections,
    feed_forward: FeedForward,
}

/// Key and value caches of a decoding of `windows` windows with `beams`
/// sequences each; row `w * beams + b` is sequence b of window w. Allocated
/// once, written in place.
#[derive(Debug)]
pub struct DecoderState {
    layers: Vec<LayerState>,
    windows: usize,
    beams: usize,
    capacity: usize,
    length: usize,
}

#[derive(Debug)]
struct LayerState {
    /// (rows, heads, capacity, head width) each.
    self_keys: Tensor,
    self_values: Tensor,
    /// (windows, heads, head width, source positions) and (windows, heads, source positions, head width).
    cross_keys: Tensor,
    cross_values: Tensor,
}

/// Cross-attention before the softmax: word times come from it.
#[derive(Debug)]
pub struct CrossScores {
    /// (layer, head) to collect.
    pub heads: Vec<(usize, usize)>,
    /// One per head, in order of layers: (rows, tokens, source positions).
    pub found: Vec<Tensor>,
}

impl DecoderState {
    /// Tokens per sequence so far.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Tokens per sequence that fit.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn rows(&self) -> usize {
        self.windows * self.beams
    }

    /// Forgets all but the first `length` tokens of every sequence.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
    }

    /// Goes on with these windows alone, given by their places in rising order;
    /// the memory of the others is free afterwards.
    pub fn keep(&mut self, windows: &[usize]) -> Result<(), Error> {
        let Some(device) = self.layers.first().map(|layer| layer.self_keys.device().clone()) else {
            return Ok(());
        };
        let beams = self.beams;
        let rows = windows.iter().flat_map(|window| window * beams..(window + 1) * beams);
        let rows: Vec<u32> = rows.map(|row| row as u32).collect();
        let rows = Tensor::new(rows.as_slice(), &device)?;
        let places: Vec<u32> = windows.iter().map(|window| *window as u32).collect();
        let places = Tensor::new(places.as_slice(), &device)?;
        // Layer by layer: never are all caches there twice.
        for layer in &mut self.layers {
            layer.self_keys = layer.self_keys.index_select(&rows, 0)?;
            layer.self_values = layer.self_values.index_select(&rows, 0)?;
            layer.cross_keys = layer.cross_keys.index_select(&places, 0)?;
            layer.cross_values = layer.cross_values.index_select(&places, 0)?;
        }
        self.windows = windows.len();
        Ok(())
    }

    /// Row r goes on from what row `sources[r]` was.
    pub fn reorder(&mut self, sources: &[usize]) -> Result<(), Error> {
        if self.length == 0 || sources.iter().enumerate().all(|(row, source)| row == *source) {
            return Ok(());
        }
        let device = self.layers.first().map_or(Device::Cpu, |layer| layer.self_keys.device().clone());
        let sources: Vec<u32> = sources.iter().map(|source| *source as u32).collect();
        let sources = Tensor::new(sources.as_slice(), &device)?;
        for layer in &self.layers {
            for cache in [&layer.self_keys, &layer.self_values] {
                let used = cache.narrow(2, 0, self.length)?.contiguous()?.index_select(&sources, 0)?;
                cache.slice_set(&used, 2, 0)?;
            }
        }
        Ok(())
    }
}

impl Decoder {
    pub(super) fn load(loader: Loader, config: &Config, on_layer: &Tick) -> Result<Self, Error> {
        let width = config.d_model;
        let name = "model.decoder";
        let embedding = loader.matrix(&format!("{name}.embed_tokens.weight"), config.vocab_size, width)?;
        let output = if loader.weights.contains("proj_out.weight") {
            loader.linear("proj_out", width, config.vocab_size, false)?
        } else {
            Linear::new(embedding.clone())
        };
        let layers = (0..config.decoder_layers)
            .map(|number| {
                tick(on_layer)?;
                let name = format!("{name}.layers.{number}");
                let attention = |kind: &str| {
                    Projections::load(
                        loader,
                        &format!("{name}.{kind}"),
                        width,
                        config.decoder_attention_heads,
                    )
                };
                Ok(Layer {
                    self_norm: loader.norm(&format!("{name}.self_attn_layer_norm"), width)?,
                    self_attention: attention("self_attn")?,
                    cross_norm: loader.norm(&format!("{name}.encoder_attn_layer_norm"), width)?,
                    cross_attention: attention("encoder_attn")?,
                    feed_forward: FeedForward::load(loader, &name, config, config.decoder_ffn_dim)?,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(Self {
            embedding,
            positions: loader
                .get(&format!("{name}.embed_positions.weight"), &[config.max_target_positions, width])?,
            layers,
            norm: loader.norm(&format!("{name}.layer_norm"), width)?,
            output,
            heads: config.decoder_attention_heads,
            head_width: width / config.decoder_attention_heads,
            dtype: loader.dtype,
            device: loader.device.clone(),
        })
    }

    /// Caches for `beams` sequences of up to `capacity` tokens on each window
    /// of `audio`, which is (windows, source positions, width).
    pub fn start(&self, audio: &Tensor, beams: usize, capacity: usize) -> Result<DecoderState, Error> {
        let windows = audio.dim(0)?;
        let capacity = capacity.min(self.positions.dim(0)?);
        let shape = (windows * beams, self.heads, capacity, self.head_width);
        let layers = self
            .layers
            .iter()
            .map(|layer| {
                let cross = &layer.cross_attention;
                // A statement each: what a projection was made of is freed
                // before the next one.
                let keys = cross.split(&cross.k.forward(audio)?)?;
                let cross_keys = keys.t()?.contiguous()?;
                drop(keys);
                let cross_values = cross.split(&cross.v.forward(audio)?)?;
                Ok(LayerState {
                    self_keys: Tensor::zeros(shape, self.dtype, &self.device)?,
                    self_values: Tensor::zeros(shape, self.dtype, &self.device)?,
                    cross_keys,
                    cross_values,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok(DecoderState { layers, windows, beams, capacity, length: 0 })
    }

    /// Feeds `tokens`, the same number for every row, in order of rows, and
    /// returns the last hidden states, (rows, tokens per row, width).
    ///
    /// Where `scores` is given it receives the cross-attention scores of its
    /// heads; one sequence per window is required then.
    pub fn forward(
        &self,
        tokens: &[u32],
        state: &mut DecoderState,
        mut scores: Option<&mut CrossScores>,
        on_layer: &Tick,
    ) -> Result<Tensor, Error> {
        let rows = state.rows();
        let count = tokens.len() / rows;
        if state.length + count > state.capacity {
            let needed = state.length + count;
            return Err(candle_core::Error::Msg(format!(
                "{needed} tokens don't fit the cache of {}",
                state.capacity
            ))
            .into());
        }
        let ids = Tensor::new(tokens, &self.device)?;
        let embedded = self.embedding.rows(&ids, self.dtype)?.reshape((rows, count, ()))?;
        let mut x = embedded.broadcast_add(&self.positions.narrow(0, state.length, count)?)?;
        let mask = if count > 1 { Some(self.causal_mask(count, state.length)?) } else { None };
        for (number, layer) in self.layers.iter().enumerate() {
            let state = Step {
                state: &state.layers[number],
                windows: state.windows,
                beams: state.beams,
                length: state.length,
            };
            let (y, cross_scores) = layer.forward(&x, state, mask.as_ref())?;
            x = y;
            if let Some(scores) = &mut scores {
                for (_, head) in scores.heads.iter().filter(|(layer, _)| *layer == number) {
                    // A copy: a view would keep the scores of all heads.
                    scores.found.push(cross_scores.narrow(1, *head, 1)?.squeeze(1)?.force_contiguous()?);
                }
            }
            tick(on_layer)?;
        }
        state.length += count;
        Ok(self.norm.forward(&x)?)
    }

    /// Scores of all tokens, (rows, vocabulary) in 32-bit floats, from hidden
    /// states of (rows, width).
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        Ok(self.output.forward(&hidden.contiguous()?)?.to_dtype(DType::F32)?)
    }

    /// (count, before + count): 0 where a token may look, minus infinity where not.
    fn causal_mask(&self, count: usize, before: usize) -> Result<Tensor, Error> {
        let width = before + count;
        let mask: Vec<f32> = (0..count * width)
            .map(|i| if i % width > before + i / width { f32::NEG_INFINITY } else { 0.0 })
            .collect();
        Ok(Tensor::from_vec(mask, (count, width), &Device::Cpu)?
            .to_dtype(self.dtype)?
            .to_device(&self.device)?)
    }
}

/// A layer's caches as one step sees them.
#[derive(Clone, Copy)]
struct Step<'a> {
    state: &'a LayerState,
    windows: usize,
    beams: usize,
    length: usize,
}

impl Layer {
    /// Returns the new hidden states and the cross-attention scores before
    /// the softmax, (rows, heads, tokens, source positions).
    fn forward(&self, x: &Tensor, step: Step, mask: Option<&Tensor>) -> Result<(Tensor, Tensor), Error> {
        let x = (x + self.attend_to_tokens(&self.self_norm.forward(x)?, step, mask)?)?;
        let (y, scores) = self.attend_to_audio(&self.cross_norm.forward(&x)?, step)?;
        let x = self.feed_forward.forward(&(x + y)?)?;
        Ok((x, scores))
    }

    fn attend_to_tokens(&self, x: &Tensor, step: Step, mask: Option<&Tensor>) -> Result<Tensor, Error> {
        let attention = &self.self_attention;
        let q = attention.queries(x)?;
        let length = step.length + x.dim(1)?;
        step.state.self_keys.slice_set(&attention.split(&attention.k.forward(x)?)?, 2, step.length)?;
        step.state.self_values.slice_set(&attention.split(&attention.v.forward(x)?)?, 2, step.length)?;
        let k = step.state.self_keys.narrow(2, 0, length)?;
        let v = step.state.self_values.narrow(2, 0, length)?;
        let mut scores = q.matmul(&k.t()?)?;
        if let Some(mask) = mask {
            scores = scores.broadcast_add(mask)?;
        }
        attention.join(&candle_nn::ops::softmax_last_dim(&scores)?.matmul(&v)?)
    }

    fn attend_to_audio(&self, x: &Tensor, step: Step) -> Result<(Tensor, Tensor), Error> {
        let attention = &self.cross_attention;
        let (rows, count, _) = x.dims3()?;
        let (heads, head_width) = (attention.heads, attention.head_width);
        // The sequences of a window listen to the same audio: as more queries
        // on one set of keys they need no copy of it.
        let (windows, beams) = (step.windows, step.beams);
        let q = attention.queries(x)?;
        let q = if beams > 1 {
            q.reshape((windows, beams, heads, count, head_width))?
                .transpose(1, 2)?
                .contiguous()?
                .reshape((windows, heads, beams * count, head_width))?
        } else {
            q
        };
        let scores = q.matmul(&step.state.cross_keys)?;
        let y = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&step.state.cross_values)?;
        let back = |t: &Tensor| -> Result<Tensor, Error> {
            if beams == 1 {
                return Ok(t.clone());
            }
            let width = t.dim(D::Minus1)?;
            Ok(t.reshape((windows, heads, beams, count, width))?
                .transpose(1, 2)?
                .contiguous()?
                .reshape((rows, heads, count, width))?)
        };
        let y = attention.join(&back(&y)?)?;
        // Only asked for with one sequence per window: copying them back for beams would cost more than they are worth.
        Ok((y, scores))
    }
}
