//! A decoder that writes one token after the other and attends to encoded sound: Whisper's and Canary's.

use candle_core::{DType, Device, Module, Tensor};

#[cfg(feature = "cuda")]
use candle_core::cuda_backend::cudarc::driver::CudaSlice;

use crate::Error;
#[cfg(feature = "cuda")]
use crate::attend::{AttendToShared, SharedPast};
use crate::fused::is_host_f32;
use crate::kv_cache::{AttentionMask, Element, Half, KvCache};
use crate::layers::{FeedForward, LayerNames, Linear, Loader, Projections, Tick, tick};
use crate::matrix::Matrix;
use crate::norm::LayerNorm;
use crate::right_factor::AttentionPrecision;
use crate::rounded_audio::RoundedAudio;
use formats::Activation;
use memory::Precision;

/// A decoder, which predicts the next token from the tokens so far and
/// the encoded audio. Immutable: the state of a decoding is in [`DecoderState`].
#[derive(Debug)]
pub struct Decoder {
    embedding: Matrix,
    positions: Tensor,
    /// Of the sum of both, where there is one.
    embedding_norm: Option<LayerNorm>,
    layers: Vec<Layer>,
    norm: LayerNorm,
    output: Linear,
    heads: usize,
    head_width: usize,
    dtype: DType,
    /// On the host, keys and values are held in 16 bits, as no weight has more; those of the sound in 8 where they are
    /// computed in 8.
    is_half: bool,
    device: Device,
}

/// What a family calls the parts of its decoder.
#[derive(Debug)]
pub(crate) struct DecoderNames {
    pub layer: LayerNames,
    /// The norm behind the layers.
    pub norm: &'static str,
    /// The norm of embedding and position; `None` where there is none.
    pub embedding_norm: Option<&'static str>,
    /// The layer that says which token comes.
    pub output: OutputNames,
}

/// The layer that says which token comes.
#[derive(Debug)]
pub(crate) enum OutputNames {
    /// It shares the embedding's matrix and has this bias.
    Tied { bias: &'static str },
    /// It shares the embedding's matrix unless the file has one of its own, and has no bias.
    Maybe { layer: &'static str },
}

/// How large a decoder is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DecoderSize {
    pub width: usize,
    pub layers: usize,
    pub heads: usize,
    /// Width of the hidden layers.
    pub hidden: usize,
    pub vocabulary: usize,
    pub activation: Activation,
}

#[derive(Debug)]
struct Layer {
    self_norm: LayerNorm,
    self_attention: Projections,
    cross_norm: LayerNorm,
    cross_attention: Projections,
    feed_forward: FeedForward,
}

/// The key and value caches of a decoding of `windows` windows with `beams`
/// sequences each. Row `w * beams + b` is sequence b of window w. The caches are
/// allocated once and written in place.
#[derive(Debug)]
pub struct DecoderState {
    layers: Vec<LayerState>,
    windows: usize,
    beams: usize,
    capacity: usize,
    length: usize,
    /// Where a CUDA device holds what rows share; `None` while each has its own past.
    #[cfg(feature = "cuda")]
    shared: Option<SharedPast>,
}

#[derive(Debug)]
enum LayerState {
    Host(HostCaches<f32>),
    HostHalf(HostCaches<Half>),
    /// Where the projections of the sound are multiplied in 8 bits.
    HostRounded(HostCaches<Half, RoundedAudio>),
    Device(DeviceCaches),
}

#[derive(Debug)]
struct HostCaches<E, A = KvCache<E>> {
    tokens: KvCache<E>,
    audio: A,
}

/// Keys and values of the sound of some windows, on the host.
trait AudioCache {
    /// As [`KvCache::attend`], to all positions.
    fn attend(&self, q: &Tensor, scale: f32) -> Result<Tensor, Error>;

    /// As [`KvCache::scores`].
    fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error>;

    /// Keeps only these windows, in ascending order, and frees the memory of the others.
    fn keep(&mut self, windows: &[usize]);
}

impl<E: Element> AudioCache for KvCache<E> {
    fn attend(&self, q: &Tensor, scale: f32) -> Result<Tensor, Error> {
        self.attend(q, AttentionMask::Full(self.positions()), scale)
    }

    fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error> {
        self.scores(q, head, scale)
    }

    fn keep(&mut self, windows: &[usize]) {
        self.keep(windows);
    }
}

impl AudioCache for RoundedAudio {
    fn attend(&self, q: &Tensor, scale: f32) -> Result<Tensor, Error> {
        self.attend(q, scale)
    }

    fn scores(&self, q: &Tensor, head: usize, scale: f32) -> Result<Tensor, Error> {
        self.scores(q, head, scale)
    }

    fn keep(&mut self, windows: &[usize]) {
        self.keep(windows);
    }
}

#[derive(Debug)]
struct DeviceCaches {
    /// (rows, heads, capacity, head width) each.
    self_keys: Tensor,
    self_values: Tensor,
    /// (windows, heads, head width, source positions) and (windows, heads, source positions, head width).
    cross_keys: Tensor,
    cross_values: Tensor,
}

/// Collects cross-attention scores before the softmax, from which word times are
/// computed.
#[derive(Debug)]
pub struct CrossScores {
    /// The (layer, head) pairs to collect.
    pub heads: Vec<(usize, usize)>,
    /// The scores of each head in order of layers: (rows, tokens, source positions).
    pub found: Vec<Tensor>,
}

impl DecoderState {
    /// The number of tokens per sequence so far.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The capacity in tokens per sequence.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The number of rows: windows times sequences per window.
    pub fn rows(&self) -> usize {
        self.windows * self.beams
    }

    /// Drops all but the first `length` tokens of every sequence.
    pub fn truncate(&mut self, length: usize) {
        self.length = self.length.min(length);
        #[cfg(feature = "cuda")]
        if let Some(shared) = &mut self.shared {
            shared.truncate(self.length);
        }
    }

    /// Keeps only the windows with these numbers, in ascending order, and frees
    /// the memory of the others.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    ///
    /// # Panics
    /// If there is no window of one of these numbers.
    pub fn keep(&mut self, windows: &[usize]) -> Result<(), Error> {
        let beams = self.beams;
        let rows: Vec<usize> =
            windows.iter().flat_map(|window| window * beams..(window + 1) * beams).collect();
        // Layer by layer, so that only one layer's caches exist twice at a time.
        for layer in &mut self.layers {
            layer.keep(&rows, windows)?;
        }
        #[cfg(feature = "cuda")]
        if let Some(shared) = &mut self.shared {
            shared.keep(&rows);
        }
        self.windows = windows.len();
        Ok(())
    }

    /// Each row r goes on from the tokens of row `sources[r]` of the same window. On the host and on CUDA devices an
    /// index changes, and no keys or values are copied.
    ///
    /// # Errors
    /// [`Error::Candle`] if `sources` names not one row of its window for each row, or the device fails or has no memory
    /// left.
    pub fn reorder(&mut self, sources: &[usize]) -> Result<(), Error> {
        let window = |row: usize| row / self.beams;
        let mut pairs = sources.iter().enumerate();
        if sources.len() != self.rows() || pairs.any(|(row, source)| window(row) != window(*source)) {
            return Err(candle_core::Error::Msg(format!("rows can't go on from {sources:?}")).into());
        }
        if self.length == 0 || sources.iter().enumerate().all(|(row, source)| row == *source) {
            return Ok(());
        }
        #[cfg(feature = "cuda")]
        if let Some(LayerState::Device(caches)) = self.layers.first()
            && caches.self_keys.device().is_cuda()
        {
            let (rows, beams, capacity) = (self.rows(), self.beams, self.capacity);
            let shared = self.shared.get_or_insert_with(|| SharedPast::new(rows, beams, capacity));
            shared.reorder(sources, self.length);
            return Ok(());
        }
        for layer in &mut self.layers {
            layer.reorder(sources, self.length)?;
        }
        Ok(())
    }
}

impl<E: Element, A: AudioCache> HostCaches<E, A> {
    fn keep(&mut self, rows: &[usize], windows: &[usize]) {
        self.tokens.keep(rows);
        self.audio.keep(windows);
    }
}

impl LayerState {
    fn keep(&mut self, rows: &[usize], windows: &[usize]) -> Result<(), Error> {
        match self {
            Self::Host(caches) => caches.keep(rows, windows),
            Self::HostHalf(caches) => caches.keep(rows, windows),
            Self::HostRounded(caches) => caches.keep(rows, windows),
            Self::Device(caches) => {
                let device = caches.self_keys.device().clone();
                let (rows, windows) = (indices(rows, &device)?, indices(windows, &device)?);
                caches.self_keys = caches.self_keys.index_select(&rows, 0)?;
                caches.self_values = caches.self_values.index_select(&rows, 0)?;
                caches.cross_keys = caches.cross_keys.index_select(&windows, 0)?;
                caches.cross_values = caches.cross_values.index_select(&windows, 0)?;
            }
        }
        Ok(())
    }

    fn reorder(&mut self, sources: &[usize], length: usize) -> Result<(), Error> {
        match self {
            Self::Host(caches) => caches.tokens.reorder(sources),
            Self::HostHalf(caches) => caches.tokens.reorder(sources),
            Self::HostRounded(caches) => caches.tokens.reorder(sources),
            Self::Device(caches) => {
                let sources = indices(sources, caches.self_keys.device())?;
                for cache in [&caches.self_keys, &caches.self_values] {
                    let used = cache.narrow(2, 0, length)?.contiguous()?.index_select(&sources, 0)?;
                    cache.slice_set(&used, 2, 0)?;
                }
            }
        }
        Ok(())
    }
}

/// A tensor of indices.
fn indices(indices: &[usize], device: &Device) -> Result<Tensor, Error> {
    let indices: Vec<u32> = indices.iter().map(|index| *index as u32).collect();
    Ok(Tensor::new(indices.as_slice(), device)?)
}

impl Decoder {
    pub(crate) fn load(
        loader: Loader,
        names: &DecoderNames,
        size: &DecoderSize,
        positions: Tensor,
        on_layer: &Tick,
    ) -> Result<Self, Error> {
        let DecoderSize { width, heads, vocabulary, .. } = *size;
        const NAME: &str = "model.decoder";
        let embedding = loader.matrix(&format!("{NAME}.embed_tokens.weight"), vocabulary, width)?;
        let output = match names.output {
            OutputNames::Tied { bias } => {
                Linear::new(embedding.clone()).with_bias(loader.get(bias, &[vocabulary])?)
            }
            OutputNames::Maybe { layer } if loader.has(&format!("{layer}.weight")) => {
                loader.linear(layer, width, vocabulary, false)?
            }
            OutputNames::Maybe { .. } => Linear::new(embedding.clone()),
        };
        let layers = (0..size.layers)
            .map(|number| {
                tick(on_layer)?;
                let name = format!("{NAME}.layers.{number}");
                let norm = |part: &str| loader.norm(&format!("{name}.{part}"), width);
                let attention = |kind: &str| {
                    Projections::load(loader, &format!("{name}.{kind}"), &names.layer, width, heads)
                };
                let sizes = (width, size.hidden);
                Ok(Layer {
                    self_norm: norm(names.layer.self_norm)?,
                    self_attention: attention("self_attn")?,
                    cross_norm: norm(names.layer.cross_norm)?,
                    cross_attention: attention("encoder_attn")?.of_encoded()?,
                    feed_forward: FeedForward::load(loader, &name, &names.layer, sizes, size.activation)?,
                })
            })
            .collect::<Result<_, Error>>()?;
        let norm = |part: &str| loader.norm(&format!("{NAME}.{part}"), width);
        Ok(Self {
            embedding,
            positions,
            embedding_norm: names.embedding_norm.map(norm).transpose()?,
            layers,
            norm: norm(names.norm)?,
            output,
            heads,
            head_width: width / heads,
            dtype: loader.dtype,
            is_half: loader.precision != Precision::F32,
            device: loader.device.clone(),
        })
    }

    /// Allocates the state for `beams` sequences of up to `capacity` tokens for
    /// each window of `audio`, the encoder's output, (windows, source positions,
    /// width), and computes the keys and values of cross-attention.
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    pub fn start(&self, audio: &Tensor, beams: usize, capacity: usize) -> Result<DecoderState, Error> {
        let windows = audio.dim(0)?;
        let capacity = capacity.min(self.positions.dim(0)?);
        let shape = (windows * beams, self.heads, capacity, self.head_width);
        let layers = self
            .layers
            .iter()
            .map(|layer| {
                let cross = &layer.cross_attention;
                if is_host_f32(audio) {
                    let rows = windows * beams;
                    return Ok(if cross.k.attention_precision() == AttentionPrecision::EightBits {
                        let (keys, values) = (|| cross.k.forward(audio), || cross.v.forward(audio));
                        let audio = RoundedAudio::new(self.heads, keys, values)?;
                        LayerState::HostRounded(HostCaches { tokens: self.cache(rows, capacity), audio })
                    } else if self.is_half {
                        LayerState::HostHalf(self.host_caches(cross, audio, rows, capacity)?)
                    } else {
                        LayerState::Host(self.host_caches(cross, audio, rows, capacity)?)
                    });
                }
                // Separate statements, so that intermediate tensors are freed
                // before the next projection.
                let keys = cross.keys(audio)?;
                let cross_keys = keys.t()?.contiguous()?;
                drop(keys);
                let cross_values = cross.values(audio)?;
                Ok(LayerState::Device(DeviceCaches {
                    self_keys: Tensor::zeros(shape, self.dtype, &self.device)?,
                    self_values: Tensor::zeros(shape, self.dtype, &self.device)?,
                    cross_keys,
                    cross_values,
                }))
            })
            .collect::<Result<_, Error>>()?;
        Ok(DecoderState {
            layers,
            windows,
            beams,
            capacity,
            length: 0,
            #[cfg(feature = "cuda")]
            shared: None,
        })
    }

    fn host_caches<E: Element>(
        &self,
        cross: &Projections,
        audio: &Tensor,
        rows: usize,
        capacity: usize,
    ) -> Result<HostCaches<E>, Error> {
        let (windows, positions, _) = audio.dims3()?;
        let mut of_audio = self.cache(windows, positions);
        of_audio.write_keys(0, &cross.k.forward(audio)?)?;
        of_audio.write_values(0, &cross.v.forward(audio)?)?;
        Ok(HostCaches { tokens: self.cache(rows, capacity), audio: of_audio })
    }

    fn cache<E: Element>(&self, rows: usize, capacity: usize) -> KvCache<E> {
        KvCache::new(rows, self.heads, self.head_width, capacity)
    }

    /// Appends `tokens`, the same number for every row, in order of rows, and
    /// returns the last hidden states, (rows, tokens per row, width).
    ///
    /// `scores`, if given, receives the cross-attention scores of its heads. It
    /// requires one sequence per window.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if `on_layer` returned `false`; [`Error::Candle`]
    /// if the tokens exceed the capacity of the state, or the device fails or has
    /// no memory left.
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
        if let Some(norm) = &self.embedding_norm {
            x = norm.forward(&x)?;
        }
        #[cfg(feature = "cuda")]
        let past = state.shared.as_ref().map(|past| past.upload(&self.device, state.length)).transpose()?;
        #[cfg(not(feature = "cuda"))]
        let past = None;
        let extent = CacheExtent {
            windows: state.windows,
            beams: state.beams,
            length: state.length,
            past: past.as_ref(),
        };
        for (number, (layer, caches)) in self.layers.iter().zip(&mut state.layers).enumerate() {
            let wanted: Vec<usize> = match &scores {
                Some(scores) => scores.heads.iter().filter(|it| it.0 == number).map(|it| it.1).collect(),
                None => Vec::new(),
            };
            let (y, found) = layer.forward(&x, caches, extent, &wanted)?;
            x = y;
            if let Some(scores) = &mut scores {
                scores.found.extend(found);
            }
            tick(on_layer)?;
        }
        state.length += count;
        Ok(self.norm.forward(&x)?)
    }

    /// The logits of all tokens, (rows, vocabulary) in 32-bit floats, for hidden
    /// states of (rows, width).
    ///
    /// # Errors
    /// [`Error::Candle`] if the device fails or has no memory left.
    pub fn logits(&self, hidden: &Tensor) -> Result<Tensor, Error> {
        Ok(self.output.forward(&hidden.contiguous()?)?.to_dtype(DType::F32)?)
    }
}

/// The mask of causal attention, (count, before + count): 0 where a token attends,
/// minus infinity elsewhere.
fn causal_mask(count: usize, before: usize, like: &Tensor) -> Result<Tensor, Error> {
    let width = before + count;
    let mask: Vec<f32> = (0..count * width)
        .map(|i| if i % width > before + i / width { f32::NEG_INFINITY } else { 0.0 })
        .collect();
    Ok(Tensor::from_vec(mask, (count, width), &Device::Cpu)?
        .to_dtype(like.dtype())?
        .to_device(like.device())?)
}

/// In which rows of a device's caches the past of all rows is; only a CUDA device has it.
#[cfg(feature = "cuda")]
type Past = CudaSlice<u16>;
#[cfg(not(feature = "cuda"))]
type Past = ();

/// The extent of the caches before a step.
#[derive(Clone, Copy)]
struct CacheExtent<'a> {
    windows: usize,
    beams: usize,
    /// Tokens per sequence.
    length: usize,
    /// Where they are, if rows share them.
    #[cfg_attr(not(feature = "cuda"), expect(dead_code, reason = "on the host the caches know it"))]
    past: Option<&'a Past>,
}

impl Layer {
    /// Returns the new hidden states, and for each head in `wanted` the
    /// cross-attention scores before the softmax, (rows, tokens, source positions).
    fn forward(
        &self,
        x: &Tensor,
        caches: &mut LayerState,
        extent: CacheExtent<'_>,
        wanted: &[usize],
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let (x, scores) = match caches {
            LayerState::Host(caches) => self.attend_on_host(x, caches, extent, wanted)?,
            LayerState::HostHalf(caches) => self.attend_on_host(x, caches, extent, wanted)?,
            LayerState::HostRounded(caches) => self.attend_on_host(x, caches, extent, wanted)?,
            LayerState::Device(caches) => {
                let y = self.self_norm.forward(x)?;
                let x = self.attend_to_tokens(&y, caches, extent, x)?;
                let y = self.cross_norm.forward(&x)?;
                self.attend_to_audio(&y, caches, extent, wanted, &x)?
            }
        };
        Ok((self.feed_forward.forward(&x)?, scores))
    }

    fn attend_on_host<E: Element, A: AudioCache>(
        &self,
        x: &Tensor,
        caches: &mut HostCaches<E, A>,
        extent: CacheExtent<'_>,
        wanted: &[usize],
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let (attention, tokens) = (&self.self_attention, &mut caches.tokens);
        let y = self.self_norm.forward(x)?;
        tokens.write_keys(extent.length, &attention.k.forward(&y)?)?;
        tokens.write_values(extent.length, &attention.v.forward(&y)?)?;
        let mask = AttentionMask::Causal(extent.length);
        let y = tokens.attend(&attention.q.forward(&y)?, mask, attention.scale() as f32)?;
        let x = attention.out.added(&y, x)?;

        let (attention, audio) = (&self.cross_attention, &caches.audio);
        let q = attention.q.forward(&self.cross_norm.forward(&x)?)?;
        let scale = attention.scale() as f32;
        let y = audio.attend(&q, scale)?;
        let x = attention.out.added(&y, &x)?;
        let scores = wanted.iter().map(|head| audio.scores(&q, *head, scale));
        Ok((x, scores.collect::<Result<_, Error>>()?))
    }

    fn attend_to_tokens(
        &self,
        x: &Tensor,
        caches: &DeviceCaches,
        extent: CacheExtent<'_>,
        residual: &Tensor,
    ) -> Result<Tensor, Error> {
        let attention = &self.self_attention;
        let q = attention.queries(x)?;
        let count = x.dim(1)?;
        let length = extent.length + count;
        caches.self_keys.slice_set(&attention.keys(x)?, 2, extent.length)?;
        caches.self_values.slice_set(&attention.values(x)?, 2, extent.length)?;
        #[cfg(feature = "cuda")]
        if let Some(sources) = extent.past {
            let shared = AttendToShared { sources, beams: extent.beams, before: extent.length };
            let y = q.apply_op3_no_bwd(&caches.self_keys, &caches.self_values, &shared)?;
            return attention.join(&y, residual);
        }
        let k = caches.self_keys.narrow(2, 0, length)?;
        let v = caches.self_values.narrow(2, 0, length)?;
        let mut scores = q.matmul(&k.t()?)?;
        if count > 1 {
            scores = scores.broadcast_add(&causal_mask(count, extent.length, &scores)?)?;
        }
        attention.join(&candle_nn::ops::softmax_last_dim(&scores)?.matmul(&v)?, residual)
    }

    fn attend_to_audio(
        &self,
        x: &Tensor,
        caches: &DeviceCaches,
        extent: CacheExtent<'_>,
        wanted: &[usize],
        residual: &Tensor,
    ) -> Result<(Tensor, Vec<Tensor>), Error> {
        let attention = &self.cross_attention;
        let (rows, count, _) = x.dims3()?;
        let (heads, head_width) = (attention.heads, attention.head_width);
        // The sequences of a window share its keys: treated as further queries
        // of one sequence they need no copies of them.
        let CacheExtent { windows, beams, .. } = extent;
        let q = attention.queries(x)?;
        let q = if beams > 1 {
            q.reshape((windows, beams, heads, count, head_width))?
                .transpose(1, 2)?
                .contiguous()?
                .reshape((windows, heads, beams * count, head_width))?
        } else {
            q
        };
        let scores = q.matmul(&caches.cross_keys)?;
        let y = candle_nn::ops::softmax_last_dim(&scores)?.matmul(&caches.cross_values)?;
        let y = if beams > 1 {
            y.reshape((windows, heads, beams, count, head_width))?
                .transpose(1, 2)?
                .contiguous()?
                .reshape((rows, heads, count, head_width))?
        } else {
            y
        };
        let y = attention.join(&y, residual)?;
        // `wanted` is empty unless there is one sequence per window. Copied, as a
        // view would keep the scores of all heads in memory.
        let head = |head: &usize| Ok(scores.narrow(1, *head, 1)?.squeeze(1)?.force_contiguous()?);
        Ok((y, wanted.iter().map(head).collect::<Result<_, Error>>()?))
    }
}
