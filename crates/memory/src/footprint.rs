//! What a model will take, before anything is loaded.
//!
//! # Derivation for Whisper
//!
//! With T = audio context (1500), d = width, f = feed-forward width, h = heads,
//! V = vocabulary, N = tokens a sequence may have, w = windows decoded
//! together, b = beams, s = bytes of an element (4 on the host, 2 on a GPU; keys
//! and values have 2 on the host too, unless the weights have 32 bits, and those of the cross-attention 1 and a
//! sixteenth where weights of 8 bits are multiplied in 8 bits), L the
//! decoder's layers:
//!
//! - **weights**: every matrix in the precision in which it is held, or the next
//!   that its rows fit ([`Dimensions::matrix_bytes`]), the rest (convolutions,
//!   positions, norms, biases) in elements.
//! - **encoder**, per window: the mel spectrogram twice (2 x 2T x bins), and
//!   what lives at the widest point. In the feed-forward part of a layer that
//!   is its input before and after attention and the result before and after
//!   its bias (4 T d), and the hidden layer (T f; on a GPU before and after its
//!   activation, 2 T f). In attention: the input, queries, keys, values and
//!   what was attended to (6 T d with the input's norm), keys and values again in
//!   the order that products read them in (2 T d), and at most T^2 scores,
//!   one block of queries per thread; on a GPU 5 T d, and scores and shares of
//!   one block of 256 queries (2 x 256 h T). A GPU encodes all windows at once; the host one after the
//!   other, so that of the others there is only the output (T d).
//! - **decoder**, per window: the encoder's output (T d); keys and values of the
//!   cross-attention, L x 2 x T d, one set per window; keys and values of the
//!   tokens, L x 2 x N d for each of b sequences. Besides, while the former are
//!   computed, a projection before and after its bias (2 T d), or later, while
//!   the latter are reordered and attended to, copies of one layer's and the
//!   logits, b x V of 4 bytes, three times (device, host, sorted).
//! - **alignment** (word times), per window, beside the output of all (the host
//!   aligns one window after the other): cross- and self-attention caches of one sequence; the scores of the
//!   alignment heads, of which models name about as many as a layer has,
//!   h x n x T, and scores and shares of one layer; logits of
//!   16 text tokens, of 4 bytes each, twice.
//! - **workspace**: on the host, where weights are held in less than 32 bits, the
//!   matrix at work in 32 bits, up to 16 MiB of it, or at most as much for what is
//!   rounded to multiply it in 8 or 16 bits; cuBLAS's own on a GPU.
//! - **fixed**: what the process takes without a model.
//!
//! The three phases follow one another and each frees what it had, so that the
//! peak is that of the largest, not the sum.
//!
//! The constants below were fitted to measurements of the engine on the host
//! (anonymous memory, models of random weights, the allocator as
//! [`crate::platform::fix_allocator`] and [`crate::platform::set_loading`] set
//! it); those of a GPU are estimates until they are measured on one.

use serde::{Deserialize, Serialize};

use crate::bytes::MIB;
use crate::dimensions::{Dimensions, Precision};
use crate::network::{
    CanaryDimensions, FastConformerDimensions, LONGEST_SECONDS, Network, ParakeetDimensions,
};
use crate::probe::DeviceKind;
use crate::processor::{multiplies_in_bf16, multiplies_in_eight_bits};
use crate::scope::Demand;

/// The vocabulary of a Whisper model, as the host holds it. Measured.
pub const HOST_VOCABULARY: u64 = 4 * MIB;
/// The engine without a model, its vocabulary included. Measured.
const HOST_FIXED: u64 = 24 * MIB + HOST_VOCABULARY;
/// The engine without a model and a tokenizer. Measured.
const HOST_BARE: u64 = 10 * MIB;
/// A tokenizer takes so much per token: word pieces, and sentencepiece's tree of pieces. Fitted.
const WORD_PIECE: u64 = 300;
const SENTENCE_PIECE: u64 = 1300;
/// Context, library handles, modules loaded by and by. An estimate for the cards of users: it grows with a card's
/// multiprocessors, and one with 132 of them, where memory is not short, held 678 MiB (`make gpu-check`, which fails
/// where the reserve does not cover the difference).
const GPU_FIXED: u64 = 450 * MIB;
/// cuBLAS: 32 MiB on the largest cards, less elsewhere. From its manual.
const GPU_WORKSPACE: u64 = 32 * MIB;
/// Queries that the encoder attends to at once.
const QUERY_BLOCK: u64 = 256;
/// Most of a matrix that is held in less than 32 bits which the host widens at
/// once. As in `models`.
const WIDENED: u64 = 16 * MIB;
/// Copies of one layer's self-attention caches while it is worked on. Fitted:
/// the sequences grow with every token, which scatters the heap.
const CACHE_COPIES: u64 = 3;
/// Copies of the logits of one step.
const LOGIT_COPIES: u64 = 3;
/// Text tokens whose logits are there at once while words are aligned, and how often.
const ALIGNMENT_LOGITS: u64 = 16;
const ALIGNMENT_LOGIT_COPIES: u64 = 2;
/// Text tokens of a window that is full of fast speech.
const ALIGNED_TOKENS: u64 = 112;

/// How a model will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where it computes.
    pub kind: DeviceKind,
    /// How the weights are held ([`Precision::usual_on`] where the job leaves
    /// it open). A device of either kind computes with any of them.
    pub held: Precision,
    /// Sequences per window: beams, or candidates at higher temperatures.
    pub beams: u64,
    /// Tokens that a sequence may have, prompt included.
    pub tokens: u64,
    /// Whether the times of words are computed.
    pub word_times: bool,
    /// Whether the matrices are held in 8 bits and multiplied so, and with them the keys and values of a decoder's
    /// cross-attention.
    pub in_eight_bits: bool,
}

impl Plan {
    /// Five beams, half of the decoder's positions and word times: what a job
    /// does where nothing else is asked for.
    pub fn new(kind: DeviceKind, held: Precision, dimensions: &Dimensions) -> Self {
        Self {
            kind,
            held,
            beams: 5,
            tokens: dimensions.text_context / 2 + 4,
            word_times: true,
            in_eight_bits: Self::is_in_eight_bits(kind, held, dimensions.width),
        }
    }

    /// Whether this machine does so with rows of that width.
    pub(crate) fn is_in_eight_bits(kind: DeviceKind, held: Precision, width: u64) -> bool {
        kind == DeviceKind::Host && held.for_width(width) == Precision::Q8_0 && multiplies_in_eight_bits()
    }

    /// Whether products read matrices that were widened to 32 bits for them.
    fn widens(&self) -> bool {
        self.held != Precision::F32 && !self.in_eight_bits
    }

    /// Bytes of an activation's element: the host computes in 32 bits, a GPU
    /// in 16 unless 32 were asked for.
    fn element(&self) -> u64 {
        match (self.kind, self.held) {
            (DeviceKind::Host, _) | (_, Precision::F32) => 4,
            (DeviceKind::Gpu, _) => 2,
        }
    }

    /// Bytes of an element of a decoder's keys and values, but for those of [`cross_bytes`](Self::cross_bytes): those of the
    /// weights, but no fewer than 16 bits.
    fn cached_element(&self) -> u64 {
        if self.held == Precision::F32 { 4 } else { 2 }
    }

    /// Bytes of so many numbers among the keys and values of the cross-attention.
    fn cross_bytes(&self, numbers: u64) -> u64 {
        if self.in_eight_bits { Precision::Q8_0.bytes(numbers) } else { self.cached_element() * numbers }
    }
}

/// Sizes of a network that hears speakers chunk by chunk, in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamedSpeakers {
    /// All weights.
    pub weights: u64,
    /// Frames of a step.
    pub length: u64,
    /// Numbers of a frame.
    pub width: u64,
    /// Numbers of a frame within a layer.
    pub inner: u64,
    /// Heads of attention.
    pub heads: u64,
    /// Numbers of the spectrogram that become a frame.
    pub spectrogram: u64,
    /// Numbers that a frame becomes behind the encoder.
    pub upsampled: u64,
}

/// Sizes of a network that turns texts into vectors (BERT, XLM-RoBERTa).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmbeddingSizes {
    /// All weights, in numbers.
    pub weights: u64,
    /// Numbers per token.
    pub width: u64,
    /// Width of the hidden layer.
    pub inner: u64,
    /// Attention heads of a layer.
    pub heads: u64,
    /// Tokens that its tokenizer knows.
    pub vocabulary: u64,
    /// Whether the tokenizer is one of sentencepiece, which takes more memory.
    pub sentencepiece: bool,
}

/// What a FastConformer encoder takes, in bytes, for windows of at most 30.5 s: N = 382 frames of width
/// d, hidden layers of width f. On the host windows are encoded one after the other, short ones together as long as they take
/// no more than a long one; a GPU encodes all together. At the widest
/// point of a layer there are its input and norm, queries, keys, values and what was
/// attended to, on the host keys and values again and the scores of a block of queries per thread, on a GPU the distances
/// (2N) in another order, the scores of all and twice those of the distances. Formats that are converted as they are used
/// need the projected distances (2N) too, on the host twice; others hold them for windows of
/// [`MOST_FRAMES`](FastConformerDimensions::MOST_FRAMES) in place of the matrix. Or, in a
/// hidden layer, the input, its norm, the layer before and after its activation on a GPU, and the result. Before the
/// layers: the spectrogram and what the convolutions make of it, one window after the other.
struct Encoding {
    /// Of a window.
    frames: u64,
    /// Beside the matrices: what a layer's is projected to where that is more, or what is projected.
    beyond_the_matrices: u64,
    workspace: u64,
    /// Per window.
    encoder: u64,
    output: u64,
    largest_buffer: u64,
}

impl Encoding {
    fn of(dimensions: &FastConformerDimensions, plan: &Plan) -> Self {
        /// Samples, the same padded, and their spectrogram.
        const SOUND: u64 = 4 * LONGEST_SECONDS * (2 * 16_000 + 2 * 100 * 128);
        let FastConformerDimensions { width: d, ffn: f, .. } = *dimensions;
        let n = FastConformerDimensions::frames(LONGEST_SECONDS);
        let s = plan.element();
        let largest = 4 * d * f.max(dimensions.subsampled());
        let widened = if plan.widens() { largest.min(WIDENED) } else { 0 };
        let projected_once = match (plan.kind, plan.held) {
            (_, Precision::F32) | (DeviceKind::Gpu, Precision::F16 | Precision::Bf16) => true,
            (DeviceKind::Host, Precision::Bf16) => multiplies_in_bf16(),
            _ => plan.in_eight_bits,
        };
        let distances = 2 * FastConformerDimensions::MOST_FRAMES as u64 - 1;
        let beyond_the_matrices = match projected_once {
            true => dimensions.layers * distances.saturating_sub(d) * plan.held.for_width(d).bytes(d),
            false => s * distances * d,
        };
        let projected = if projected_once { 0 } else { 2 * n * d };
        let attention = 6 * n * d
            + match plan.kind {
                // Keys and values in the order that products read them in.
                DeviceKind::Host => 2 * n * d + 2 * projected,
                DeviceKind::Gpu => 2 * n * d + projected + 5 * dimensions.heads * n * n,
            };
        let (feed_forward, subsampling) = match plan.kind {
            DeviceKind::Host => (3 * n * d + n * f, n * (dimensions.subsampled() + d)),
            // The first of the convolutions before the layers is computed at once there.
            DeviceKind::Gpu => {
                (3 * n * d + 2 * n * f, 2 * (4 * n) * dimensions.channels * (dimensions.mel_bins / 2))
            }
        };
        let layers = attention.max(feed_forward);
        Self {
            frames: n,
            beyond_the_matrices,
            workspace: match plan.kind {
                DeviceKind::Host => widened,
                DeviceKind::Gpu => GPU_WORKSPACE + s * subsampling.saturating_sub(layers),
            },
            encoder: match plan.kind {
                DeviceKind::Host => SOUND + s * layers.max(subsampling),
                // The sound stays on the host.
                DeviceKind::Gpu => s * layers,
            },
            output: s * n * d,
            largest_buffer: match plan.kind {
                DeviceKind::Host => s * n * f.max(dimensions.subsampled()),
                DeviceKind::Gpu => s * n * f.max(dimensions.subsampled()).max(2 * dimensions.heads * n),
            },
        }
    }

    /// That of a model with these weights, but for what decodes.
    fn footprint(&self, weights: u64, plan: &Plan) -> Footprint {
        Footprint {
            kind: plan.kind,
            fixed: match plan.kind {
                DeviceKind::Host => HOST_BARE,
                DeviceKind::Gpu => GPU_FIXED,
            },
            weights: weights + self.beyond_the_matrices,
            workspace: self.workspace,
            encoder: self.encoder,
            encoded_together: plan.kind == DeviceKind::Gpu,
            aligned_together: plan.kind == DeviceKind::Gpu,
            // Nearly all of its time is the encoder's, which fills a CPU with one window.
            faster_together: plan.kind == DeviceKind::Gpu,
            output: self.output,
            caches: 0,
            decoder: self.output,
            alignment: 0,
            largest_buffer: self.largest_buffer,
        }
    }
}

/// What a model takes, in bytes, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    /// Where the model computes.
    pub kind: DeviceKind,
    /// What the process takes without a model.
    pub fixed: u64,
    /// The weights as they are held.
    pub weights: u64,
    /// Buffers of the libraries that multiply matrices.
    pub workspace: u64,
    /// Per window: activations of the encoder at its widest point.
    pub encoder: u64,
    /// Whether the windows of a batch are encoded at once.
    pub encoded_together: bool,
    /// Whether the words of a batch's windows are aligned at once.
    pub aligned_together: bool,
    /// Whether windows take less time together than one after the other.
    pub faster_together: bool,
    /// Per window: what the encoder leaves behind for the decoder.
    pub output: u64,
    /// Per window: caches of keys and values.
    pub caches: u64,
    /// Per window: the encoder's output and what a decoding step needs.
    pub decoder: u64,
    /// For word times, per window; the host has one at a time.
    pub alignment: u64,
    /// Per window: the largest single buffer.
    pub largest_buffer: u64,
}

/// A predicted peak, divided by what it is for. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct Parts {
    /// The process without a model; on a GPU its context.
    pub context: u64,
    /// The weights as they are held.
    pub weights: u64,
    /// Keys and values of attention.
    pub caches: u64,
    /// Intermediate results.
    pub activations: u64,
    /// Buffers of the libraries that multiply matrices.
    pub workspace: u64,
}

impl Parts {
    /// The whole peak.
    pub fn sum(&self) -> u64 {
        self.context + self.weights + self.caches + self.activations + self.workspace
    }
}

impl Footprint {
    /// The prediction for a speech model of any family.
    pub fn of(network: &Network, plan: &Plan) -> Self {
        match network {
            Network::Whisper(dimensions) => Self::whisper(dimensions, plan),
            Network::Parakeet(dimensions) => Self::parakeet(dimensions, plan),
            Network::Canary(dimensions) => Self::canary(dimensions, plan),
        }
    }

    /// The prediction for a Parakeet model on windows of at most 30.5 s, beside what its encoder takes. The prediction
    /// network has a state of fixed size, so that
    /// beside the frames of all windows, which are projected to its width p, there are only logits.
    /// It always computes on the host.
    pub fn parakeet(dimensions: &ParakeetDimensions, plan: &Plan) -> Self {
        let ParakeetDimensions { encoder, vocabulary, predictor_width: p, .. } = *dimensions;
        let encoding = Encoding::of(&encoder, plan);
        let (n, s) = (encoding.frames, plan.element());
        // A CTC head takes the logits of a whole window, twice, and one window after the other.
        let alignment = if p == 0 { 2 * 4 * n * vocabulary } else { 0 };
        let decoder = encoding.output + 4 * n * p + LOGIT_COPIES * 4 * (vocabulary + dimensions.durations);
        let weights = dimensions.matrix_bytes(plan.held) + s * dimensions.parameters().others;
        Self { alignment, decoder, ..encoding.footprint(weights, plan) }
    }

    /// The prediction for a Canary model on windows of at most 30.5 s, beside what its encoder takes. Its decoder takes one
    /// window after the other: keys and values of the sound and of the tokens, two projections of the sound while they are
    /// made, and what the heads attend to that words are aligned by, those of half of the layers, three times, for as many tokens
    /// as a window may have.
    pub fn canary(dimensions: &CanaryDimensions, plan: &Plan) -> Self {
        let CanaryDimensions { encoder, decoder_layers: layers, decoder_heads: heads, .. } = *dimensions;
        let encoding = Encoding::of(&encoder, plan);
        let (n, s, d) = (encoding.frames, plan.element(), encoder.width);
        let caches =
            plan.cross_bytes(layers * 2 * n * d) + layers * plan.cached_element() * 2 * plan.tokens * d;
        let scores = layers.div_ceil(2) * heads * plan.tokens * n;
        let positions = dimensions.text_context * d;
        let weights = dimensions.matrix_bytes(plan.held) + s * (dimensions.parameters().others + positions);
        Self {
            alignment: caches
                + (2 * encoding.output).max(4 * 3 * scores)
                + LOGIT_COPIES * 4 * dimensions.vocabulary,
            aligned_together: false,
            ..encoding.footprint(weights, plan)
        }
    }

    /// The prediction for a Whisper model, derived as the module describes.
    pub fn whisper(dimensions: &Dimensions, plan: &Plan) -> Self {
        let Dimensions { mel_bins, audio_context: t, width: d, .. } = *dimensions;
        let s = plan.element();
        let parameters = dimensions.parameters();
        let weights = dimensions.matrix_bytes(plan.held) + s * parameters.others;
        let largest = 4 * d * dimensions.encoder_ffn;
        let widened = if plan.widens() { largest.min(WIDENED) } else { 0 };

        let mel = 4 * t * mel_bins;
        let (feed_forward, attention) = match plan.kind {
            DeviceKind::Host => (4 * t * d + t * dimensions.encoder_ffn, 8 * t * d + t * t),
            DeviceKind::Gpu => (
                4 * t * d + 2 * t * dimensions.encoder_ffn,
                5 * t * d + 2 * QUERY_BLOCK * dimensions.encoder_heads * t,
            ),
        };
        let encoder = s * (mel + feed_forward.max(attention));

        let layers = dimensions.decoder_layers;
        let cross = plan.cross_bytes(layers * 2 * t * d);
        let cache_of = |tokens: u64| plan.cached_element() * 2 * tokens * d;
        let own = layers * cache_of(plan.tokens) * plan.beams;
        let logits = 4 * dimensions.vocabulary;
        let output = s * t * d;
        let step = CACHE_COPIES * cache_of(plan.tokens) * plan.beams + LOGIT_COPIES * logits * plan.beams;
        let decoder = output + step.max(2 * output);

        let n = ALIGNED_TOKENS.min(plan.tokens);
        let scores = s * dimensions.decoder_heads * n * t;
        let alignment = if plan.word_times {
            cross
                + layers * cache_of(n)
                + 3 * scores
                + ALIGNMENT_LOGIT_COPIES * ALIGNMENT_LOGITS.min(n) * logits
        } else {
            0
        };
        Self {
            kind: plan.kind,
            fixed: match plan.kind {
                DeviceKind::Host => HOST_FIXED,
                DeviceKind::Gpu => GPU_FIXED,
            },
            weights,
            workspace: match plan.kind {
                DeviceKind::Host => widened,
                DeviceKind::Gpu => GPU_WORKSPACE,
            },
            encoder,
            encoded_together: plan.kind == DeviceKind::Gpu,
            aligned_together: plan.kind == DeviceKind::Gpu,
            faster_together: true,
            output,
            caches: cross + own,
            decoder,
            alignment,
            largest_buffer: (s * t * dimensions.encoder_ffn)
                .max(s * QUERY_BLOCK * dimensions.encoder_heads * t)
                .max(cache_of(plan.tokens) * plan.beams / 2),
        }
    }

    /// The networks that tell speakers apart: a segmentation of 0.34 and a voice
    /// encoder of 1.42 million weights in 32 bits, on windows of ten seconds. The
    /// filters take one window after the other and leave their features; the
    /// recurrent layers then take all windows together. Measured on the host; on a
    /// GPU the buffers are the same.
    pub fn speakers(kind: DeviceKind) -> Self {
        const WEIGHTS: u64 = 4 * (340_000 + 1_420_000);
        const FILTERS: u64 = 42 * MIB;
        const FEATURES: u64 = 13 * MIB / 10;
        const RECURRENCE: u64 = 95 * MIB / 10;
        const LARGEST: u64 = 4 * 251 * 15_975;
        Self {
            kind,
            fixed: if kind == DeviceKind::Gpu { GPU_FIXED } else { HOST_FIXED },
            weights: WEIGHTS,
            workspace: if kind == DeviceKind::Gpu { GPU_WORKSPACE } else { 0 },
            encoder: FILTERS,
            encoded_together: false,
            aligned_together: false,
            faster_together: true,
            output: FEATURES,
            caches: 0,
            decoder: RECURRENCE,
            alignment: 0,
            largest_buffer: LARGEST,
        }
    }

    /// An installed model that tells speakers apart, in the sizes of pyannote's
    /// community-1: a segmentation of 1.47 and a voice network of 6.63 million weights in
    /// 32 bits, and what compares voices. The convolutions of both take one window after
    /// the other, the recurrent layers all windows together. Measured on the host, where the
    /// threads of the convolutions take between 60 and 82 MB; on a GPU the buffers are the same.
    pub fn speaker_model(kind: DeviceKind) -> Self {
        const WEIGHTS: u64 = 4 * (1_473_000 + 6_634_000);
        const CONVOLUTIONS: u64 = 65 * MIB;
        const FEATURES: u64 = 3 * MIB;
        const RECURRENCE: u64 = 94 * MIB / 10;
        const LARGEST: u64 = 4 * 251 * 15_975;
        Self {
            weights: WEIGHTS,
            encoder: CONVOLUTIONS,
            output: FEATURES,
            decoder: RECURRENCE,
            largest_buffer: LARGEST,
            ..Self::speakers(kind)
        }
    }

    /// An installed model that hears a recording chunk by chunk, in the sizes of its
    /// configuration, beside the networks in the program, which make the voices. However
    /// many windows there are, one step is computed at a time: at its widest point its
    /// input and what follows, and the inner values of a layer twice, or what becomes of
    /// the frames of the spectrogram, four times. Steps of different lengths scatter the
    /// heap: fitted on the host.
    pub fn streamed_speakers(kind: DeviceKind, of: StreamedSpeakers) -> Self {
        const FLOAT: u64 = 4;
        let own = Self::speakers(kind);
        let inner = of.length * (4 * of.width + 2 * of.inner);
        let attention = of.length * 7 * of.width + of.heads * of.length * of.length;
        let upsampled = of.length * (2 * of.width + 4 * of.upsampled);
        let spectrogram = of.length * 2 * of.spectrogram;
        let step = FLOAT * inner.max(attention).max(upsampled).max(spectrogram) * 8 / 5;
        let packed = FLOAT * of.width * of.inner.max(of.spectrogram);
        Self {
            weights: own.weights + FLOAT * of.weights,
            workspace: own.workspace + packed,
            encoder: step,
            output: 0,
            decoder: 0,
            largest_buffer: (FLOAT * of.length * of.inner.max(of.spectrogram)).max(packed),
            ..own
        }
    }

    /// A network that turns texts into vectors, on texts of at most `tokens` tokens. A
    /// window is one text here, and all texts of a pass are computed at once. The tokenizer
    /// counts as weights. On the host, at the widest point of a layer: its input, queries,
    /// keys and values, and what was attended to, twice (6 N d), or the feed-forward part's
    /// input, hidden layer, output, sum and norm (4 N d + N f); scores are few. On a GPU the input, queries,
    /// keys and values as they come and by head (7 N d), and the scores scaled, masked,
    /// and while they become shares (6 h N^2); or the input before and after the norm,
    /// and the hidden layer before and after its bias and its activation (3 N d + 3 N f).
    pub fn text_embedding(of: &EmbeddingSizes, kind: DeviceKind, held: Precision, tokens: u64) -> Self {
        let EmbeddingSizes { weights, width, inner, heads, vocabulary, sentencepiece } = *of;
        let tokenizer = vocabulary * if sentencepiece { SENTENCE_PIECE } else { WORD_PIECE };
        let element = match (kind, held) {
            (DeviceKind::Gpu, Precision::F16 | Precision::Bf16) => 2,
            _ => 4,
        };
        let (attention, feed_forward) = match kind {
            DeviceKind::Host => (6 * tokens * width, 4 * tokens * width + tokens * inner),
            DeviceKind::Gpu => {
                (7 * tokens * width + 6 * heads * tokens * tokens, 3 * tokens * width + 3 * tokens * inner)
            }
        };
        let largest = 4 * width * inner;
        let widened = if held == Precision::F32 { 0 } else { largest.min(WIDENED) };
        Self {
            kind,
            fixed: match kind {
                DeviceKind::Host => HOST_BARE,
                DeviceKind::Gpu => GPU_FIXED,
            },
            weights: held.bytes(weights) + if kind == DeviceKind::Host { tokenizer } else { 0 },
            workspace: match kind {
                DeviceKind::Host => widened,
                DeviceKind::Gpu => GPU_WORKSPACE,
            },
            encoder: element * attention.max(feed_forward),
            encoded_together: true,
            aligned_together: true,
            faster_together: true,
            output: 0,
            caches: 0,
            decoder: 0,
            alignment: 0,
            largest_buffer: element * tokens * inner.max(heads * tokens),
        }
    }

    /// Replaces the estimate of the fixed cost by what was measured on this
    /// device.
    pub fn with_fixed(self, bytes: u64) -> Self {
        Self { fixed: bytes, ..self }
    }

    /// Peak of the whole process with `windows` decoded together.
    pub fn peak(&self, windows: u64) -> u64 {
        self.fixed + self.weights + self.work(windows)
    }

    /// What decoding adds to a loaded model.
    pub fn work(&self, windows: u64) -> u64 {
        let encoding = if self.encoded_together {
            windows * self.encoder
        } else {
            self.encoder + windows.saturating_sub(1) * self.output
        };
        let decoding = windows * (self.caches + self.decoder);
        let aligned = if self.aligned_together { windows } else { 1 };
        let aligning = if self.alignment > 0 { aligned * self.alignment + windows * self.output } else { 0 };
        self.workspace + encoding.max(decoding).max(aligning)
    }

    /// The peak with `windows` decoded together, part by part: their sum is
    /// [`Self::peak`].
    pub fn parts(&self, windows: u64) -> Parts {
        let caches = windows * self.caches;
        let work = self.work(windows) - self.workspace;
        let decodes = work == caches + windows * self.decoder;
        // At its widest point the encoder has no caches beside it, and the
        // alignment has its own.
        let caches = if decodes { caches } else { 0 };
        Parts {
            context: self.fixed,
            weights: self.weights,
            caches,
            activations: work - caches,
            workspace: self.workspace,
        }
    }

    /// The most windows whose decoding fits `bytes`, up to a number that no
    /// device is fast enough for; 0 where not even one does.
    pub fn windows_within(&self, bytes: u64) -> u32 {
        const MOST: u32 = 1024;
        (1..=MOST).take_while(|windows| self.work(u64::from(*windows)) <= bytes).last().unwrap_or(0)
    }

    /// What one window more adds.
    pub fn per_window(&self) -> u64 {
        let together = self.encoded_together;
        let encoding = if together { self.encoder } else { self.output };
        let aligning = match (self.alignment, self.aligned_together) {
            (0, _) => 0,
            (alignment, true) => alignment + self.output,
            (_, false) => self.output,
        };
        encoding.max(self.caches + self.decoder).max(aligning)
    }

    /// The reservation for loading the model.
    pub fn model_demand(&self, name: &str) -> Demand {
        Demand::new(name, self.weights)
    }

    /// The reservation for decoding `windows` together.
    pub fn work_demand(&self, windows: u64) -> Demand {
        Demand::from(self.work(windows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::GIB;

    fn of(name: &str, kind: DeviceKind, held: Precision, beams: u64, word_times: bool) -> Footprint {
        let dimensions = Dimensions::of_public(name).unwrap();
        let plan = Plan { beams, word_times, ..Plan::new(kind, held, &dimensions) };
        Footprint::whisper(&dimensions, &plan)
    }

    /// Peaks of the engine's anonymous memory, in MB, measured with one window
    /// at a time and models of random weights.
    #[test]
    fn predictions_are_within_15_percent_of_what_was_measured() {
        for (name, beams, measured) in [
            ("tiny", 1, 217.0),
            ("tiny", 5, 216.0),
            ("base", 1, 370.0),
            ("base", 5, 385.0),
            ("small", 1, 1093.0),
            ("small", 5, 1176.0),
            ("large-v3-turbo", 5, 3282.0),
        ] {
            let predicted =
                of(name, DeviceKind::Host, Precision::F32, beams, false).peak(1) as f64 / MIB as f64;
            let error = predicted / measured - 1.0;
            println!(
                "{name} {beams} beams: predicted {predicted:.0} MB, measured {measured:.0} MB, {:+.1}%",
                100.0 * error
            );
            assert!(error.abs() < 0.15, "{name} {beams}: {predicted:.0} for {measured:.0}");
        }
    }

    /// Peaks of anonymous memory, in MB, with 128 texts in a batch, 32 of them computed at once.
    #[test]
    fn predictions_of_embedding_are_within_15_percent_of_what_was_measured() {
        let mini = EmbeddingSizes {
            weights: 22_565_376,
            width: 384,
            inner: 1536,
            heads: 12,
            vocabulary: 30_522,
            sentencepiece: false,
        };
        let piece = |vocabulary: u64, width: u64, layers: u64| EmbeddingSizes {
            weights: (vocabulary + 515) * width + layers * 12 * width * width,
            width,
            inner: 4 * width,
            heads: width / 32,
            vocabulary,
            sentencepiece: true,
        };
        for (sizes, tokens, texts, measured) in [
            (mini, 87, 64, 180.0),
            (mini, 87, 32, 146.0),
            (mini, 87, 16, 124.0),
            (mini, 87, 8, 118.0),
            (mini, 87, 4, 109.0),
            (piece(250_000, 64, 2), 218, 32, 396.0),
            (piece(30_000, 64, 2), 280, 32, 75.0),
            (piece(120_000, 384, 12), 234, 32, 540.0),
            (piece(120_000, 384, 12), 234, 4, 442.0),
        ] {
            let footprint = Footprint::text_embedding(&sizes, DeviceKind::Host, Precision::F32, tokens);
            let predicted = footprint.peak(texts) as f64 / MIB as f64;
            let error = predicted / measured - 1.0;
            assert!(error.abs() < 0.15, "{sizes:?} {texts}: {predicted:.0} for {measured:.0}");
        }
    }

    #[test]
    fn the_promised_models_fit_the_promised_cards() {
        // Model, precision on a GPU, peak in GB that it must stay below.
        for (name, stored, most) in [
            ("large-v3", Precision::F16, 4.5),
            ("large-v3", Precision::F32.usual_on(DeviceKind::Gpu), 4.5),
            ("large-v3-turbo", Precision::Q8_0, 2.5),
            ("medium", Precision::F16, 3.0),
            ("small", Precision::F16, 1.5),
        ] {
            let peak = of(name, DeviceKind::Gpu, stored, 5, true).peak(1) as f64 / GIB as f64;
            assert!(peak < most, "{name} {stored}: {peak:.2} GB");
        }
    }

    #[test]
    fn parts_have_the_sizes_of_their_tensors() {
        let large = of("large-v3", DeviceKind::Host, Precision::F16.usual_on(DeviceKind::Host), 5, false);
        // 16-bit weights are widened to 32 unless the job asks for 16.
        assert_eq!(large.weights, 4 * 1_543_490_560);
        // 32 layers x 2 x (1500 + 5 sequences of 228) x 1280 x 4 bytes.
        assert_eq!(large.caches, 32 * 2 * (1500 + 5 * 228) * 1280 * 4);
        // In 8 bits the sound's take a scale of 16 bits for each 32 numbers, those of the tokens stay at 16 bits.
        let small = Dimensions::of_public("small").unwrap();
        for (in_eight_bits, sound) in [(true, 1500 * 768 / 32 * 34), (false, 1500 * 768 * 2)] {
            let plan = Plan { in_eight_bits, ..Plan::new(DeviceKind::Host, Precision::Q8_0, &small) };
            let caches = Footprint::whisper(&small, &plan).caches;
            assert_eq!(caches, 12 * 2 * (sound + 5 * 228 * 768 * 2), "{in_eight_bits}");
        }
        let gpu = of("large-v3", DeviceKind::Gpu, Precision::F16, 5, false);
        assert_eq!((gpu.weights, gpu.caches), (large.weights / 2, large.caches / 2));
        // The demand of both stages and the fixed cost make up the peak.
        let demands = gpu.model_demand("large-v3").bytes + gpu.work_demand(3).bytes;
        assert_eq!(gpu.fixed + demands, gpu.peak(3));
    }

    #[test]
    fn the_parts_of_a_peak_add_up_to_it() {
        for (kind, held) in [(DeviceKind::Host, Precision::F32), (DeviceKind::Gpu, Precision::F16)] {
            for (name, windows) in [("tiny", 1), ("small", 4), ("large-v3", 2)] {
                let footprint = of(name, kind, held, 5, true);
                let parts = footprint.parts(windows);
                assert_eq!(parts.sum(), footprint.peak(windows), "{name} {windows}: {parts:?}");
                assert_eq!((parts.context, parts.weights), (footprint.fixed, footprint.weights));
            }
        }
    }

    #[test]
    fn more_of_anything_takes_more() {
        let base = of("small", DeviceKind::Host, Precision::F32, 1, false);
        let held = [Precision::F32, Precision::F16, Precision::Q8_0, Precision::Q5_0, Precision::Q4_0];
        let peaks = held.map(|held| of("small", DeviceKind::Host, held, 1, false).peak(1));
        assert!(peaks.is_sorted_by(|more, less| more > less), "{peaks:?}");
        assert!(base.peak(2) > base.peak(1));
        assert!(of("small", DeviceKind::Host, Precision::F32, 5, false).peak(1) > base.peak(1));
        assert!(of("medium", DeviceKind::Host, Precision::F32, 1, false).peak(1) > base.peak(1));
        assert!(of("small", DeviceKind::Host, Precision::F32, 1, true).peak(1) >= base.peak(1));
    }
}
