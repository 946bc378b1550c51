//! What a Whisper model will take, before anything is loaded.
//!
//! # Derivation
//!
//! With T = audio context (1500), d = width, f = feed-forward width, h = heads,
//! V = vocabulary, N = tokens a sequence may have, w = windows decoded
//! together, b = beams, s = bytes of an element (4 on the host, 2 on a GPU),
//! L the decoder's layers:
//!
//! - **weights**: every matrix in the precision in which it is held, the rest
//!   in elements ([`Dimensions::parameters`]). The host widens 16-bit weights
//!   to 32; quantised ones stay as they are.
//! - **encoder**, per window. What lives at the widest point, the feed-forward
//!   part of a layer, is the mel spectrogram twice (2 x 2T x bins), the outputs
//!   of both convolutions (3 T d), the layer's input, its norm, queries, keys,
//!   values, the blocks of attention and their concatenation (7 T d), the sum
//!   and its norm (2 T d), and the hidden layer before and after its bias or
//!   activation (2 T f). Attention is narrower: 9 T d, and scores and shares of
//!   one block of 256 queries (2 x 256 h T).
//! - **decoder**, per window: the encoder's output (T d); keys and values of the
//!   cross-attention, L x 2 x T d, one set per window; keys and values of the
//!   tokens, L x 2 x N d for each of b sequences; while those are reordered and
//!   attended to, copies of one layer's; logits, b x V of 4 bytes, three times
//!   (device, host, sorted).
//! - **alignment** (word times), for one window at a time: cross- and
//!   self-attention caches of one sequence; scores of every layer with an
//!   alignment head, h x n x T, kept, and those of one layer twice; logits of n
//!   text tokens, n x V of 4 bytes, twice.
//! - **workspace**: the packed weights of the largest matrix product on the
//!   host (d f of 4 bytes); cuBLAS's own on a GPU.
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
use crate::probe::Kind;
use crate::scope::Demand;

/// The engine without a model, its tokenizer included. Measured.
const HOST_FIXED: u64 = 40 * MIB;
/// Context, library handles, modules loaded by and by. Estimated.
const GPU_FIXED: u64 = 450 * MIB;
/// cuBLAS: 32 MiB on the largest cards, less elsewhere. From its manual.
const GPU_WORKSPACE: u64 = 32 * MIB;
/// Queries that the encoder attends to at once.
const QUERY_BLOCK: u64 = 256;
/// Copies of one layer's self-attention caches while it is worked on. Fitted:
/// the sequences grow with every token, which scatters the heap.
const CACHE_COPIES: u64 = 3;
/// Copies of the logits of one step.
const LOGIT_COPIES: u64 = 3;
/// Copies of the logits of the text while words are aligned.
const ALIGNMENT_LOGIT_COPIES: u64 = 2;
/// Text tokens of a window that is full of fast speech.
const ALIGNED_TOKENS: u64 = 112;

/// How a model will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Where it computes.
    pub kind: Kind,
    /// How the file has its weights.
    pub stored: Precision,
    /// Sequences per window: beams, or candidates at higher temperatures.
    pub beams: u64,
    /// Tokens that a sequence may have, prompt included.
    pub tokens: u64,
    pub word_times: bool,
}

impl Plan {
    /// Five beams, half of the decoder's positions and word times: what a job
    /// does where nothing else is asked for.
    pub fn new(kind: Kind, stored: Precision, dimensions: &Dimensions) -> Self {
        Self { kind, stored, beams: 5, tokens: dimensions.text_context / 2 + 4, word_times: true }
    }

    /// How weights are held: the host computes in 32 bits, a GPU in 16.
    fn held(&self) -> Precision {
        match (self.kind, self.stored.is_quantised()) {
            (_, true) => self.stored,
            (Kind::Host, false) => Precision::F32,
            (Kind::Gpu, false) if self.stored == Precision::F32 => Precision::F16,
            (Kind::Gpu, false) => self.stored,
        }
    }

    /// Bytes of an activation's element.
    fn element(&self) -> u64 {
        match self.kind {
            Kind::Host => 4,
            Kind::Gpu => 2,
        }
    }
}

/// What a model takes, in bytes, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Footprint {
    pub kind: Kind,
    /// What the process takes without a model.
    pub fixed: u64,
    pub weights: u64,
    pub workspace: u64,
    /// Per window: activations of the encoder at its widest point.
    pub encoder: u64,
    /// Per window: caches of keys and values.
    pub caches: u64,
    /// Per window: the encoder's output and what a decoding step needs.
    pub decoder: u64,
    /// For word times, one window at a time.
    pub alignment: u64,
    /// Per window: the largest single buffer.
    pub largest_buffer: u64,
}

impl Footprint {
    pub fn whisper(dimensions: &Dimensions, plan: &Plan) -> Self {
        let Dimensions { mel_bins, audio_context: t, width: d, .. } = *dimensions;
        let s = plan.element();
        let parameters = dimensions.parameters();
        let rest = if plan.stored.is_quantised() { s.max(2) } else { plan.held().bytes(1) };
        let weights = plan.held().bytes(parameters.matrices) + rest * parameters.others;

        let mel = 4 * t * mel_bins;
        let feed_forward = 12 * t * d + 2 * t * dimensions.encoder_ffn;
        let attention = 9 * t * d + 2 * QUERY_BLOCK * dimensions.encoder_heads * t;
        let encoder = s * (mel + feed_forward.max(attention));

        let layers = dimensions.decoder_layers;
        let cross = s * layers * 2 * t * d;
        let cache_of = |tokens: u64| s * 2 * tokens * d;
        let own = layers * cache_of(plan.tokens) * plan.beams;
        let logits = 4 * dimensions.vocabulary;
        let decoder = s * t * d
            + CACHE_COPIES * cache_of(plan.tokens) * plan.beams
            + LOGIT_COPIES * logits * plan.beams;

        let n = ALIGNED_TOKENS.min(plan.tokens);
        let scores = s * dimensions.decoder_heads * n * t;
        // Where a model names no alignment heads, those of the later half of
        // the layers serve.
        let scored_layers = layers.div_ceil(2);
        let alignment = if plan.word_times {
            cross + layers * cache_of(n) + (scored_layers + 2) * scores + ALIGNMENT_LOGIT_COPIES * n * logits
        } else {
            0
        };
        Self {
            kind: plan.kind,
            fixed: match plan.kind {
                Kind::Host => HOST_FIXED,
                Kind::Gpu => GPU_FIXED,
            },
            weights,
            workspace: match plan.kind {
                Kind::Host => 4 * d * dimensions.encoder_ffn,
                Kind::Gpu => GPU_WORKSPACE,
            },
            encoder,
            caches: cross + own,
            decoder,
            alignment,
            largest_buffer: (s * t * dimensions.encoder_ffn)
                .max(s * QUERY_BLOCK * dimensions.encoder_heads * t)
                .max(cache_of(plan.tokens) * plan.beams / 2),
        }
    }

    /// Models that tell speakers apart, `batch` windows of ten seconds at a
    /// time: a segmentation network of 1.5 and an embedding network of 6.6
    /// million weights in 32 bits, whose widest activations are 80 channels of
    /// 16,000 samples and 32 channels of 80 x 1000. Estimated.
    pub fn speakers(kind: Kind) -> Self {
        const WEIGHTS: u64 = 4 * (1_500_000 + 6_600_000);
        const SEGMENTATION: u64 = 2 * 4 * 80 * 16_000;
        const EMBEDDING: u64 = 4 * 4 * 32 * 80 * 1000;
        Self {
            kind,
            fixed: if kind == Kind::Gpu { GPU_FIXED } else { HOST_FIXED },
            weights: WEIGHTS,
            workspace: if kind == Kind::Gpu { GPU_WORKSPACE } else { 8 * MIB },
            encoder: SEGMENTATION.max(EMBEDDING),
            caches: 0,
            decoder: 0,
            alignment: 0,
            largest_buffer: EMBEDDING / 4,
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
        let decoding = windows * (self.caches + self.decoder);
        self.workspace + (windows * self.encoder).max(decoding).max(self.alignment)
    }

    /// What one window more adds.
    pub fn per_window(&self) -> u64 {
        self.encoder.max(self.caches + self.decoder)
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

    fn of(name: &str, kind: Kind, stored: Precision, beams: u64, word_times: bool) -> Footprint {
        let dimensions = Dimensions::of_public(name).unwrap();
        let plan = Plan { beams, word_times, ..Plan::new(kind, stored, &dimensions) };
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
            let predicted = of(name, Kind::Host, Precision::F16, beams, false).peak(1) as f64 / MIB as f64;
            let error = predicted / measured - 1.0;
            println!(
                "{name} {beams} beams: predicted {predicted:.0} MB, measured {measured:.0} MB, {:+.1}%",
                100.0 * error
            );
            assert!(error.abs() < 0.15, "{name} {beams}: {predicted:.0} for {measured:.0}");
        }
    }

    #[test]
    fn the_promised_models_fit_the_promised_cards() {
        // Model, precision on a GPU, peak in GB that it must stay below.
        for (name, stored, most) in [
            ("large-v3", Precision::F16, 4.5),
            ("large-v3", Precision::F32, 4.5),
            ("large-v3-turbo", Precision::Q8_0, 2.5),
            ("medium", Precision::F16, 3.0),
            ("small", Precision::F16, 1.5),
        ] {
            let peak = of(name, Kind::Gpu, stored, 5, true).peak(1) as f64 / GIB as f64;
            assert!(peak < most, "{name} {stored}: {peak:.2} GB");
        }
    }

    #[test]
    fn parts_have_the_sizes_of_their_tensors() {
        let large = of("large-v3", Kind::Host, Precision::F16, 5, false);
        // 16-bit weights are widened to 32.
        assert_eq!(large.weights, 4 * 1_543_490_560);
        // 32 layers x 2 x (1500 + 5 sequences of 228) x 1280 x 4 bytes.
        assert_eq!(large.caches, 32 * 2 * (1500 + 5 * 228) * 1280 * 4);
        let gpu = of("large-v3", Kind::Gpu, Precision::F16, 5, false);
        assert_eq!((gpu.weights, gpu.caches), (large.weights / 2, large.caches / 2));
        // The demand of both stages and the fixed cost make up the peak.
        let demands = gpu.model_demand("large-v3").bytes + gpu.work_demand(3).bytes;
        assert_eq!(gpu.fixed + demands, gpu.peak(3));
    }

    #[test]
    fn more_of_anything_takes_more() {
        let base = of("small", Kind::Host, Precision::F16, 1, false);
        assert!(base.peak(2) > base.peak(1));
        assert!(of("small", Kind::Host, Precision::F16, 5, false).peak(1) > base.peak(1));
        assert!(of("medium", Kind::Host, Precision::F16, 1, false).peak(1) > base.peak(1));
        assert!(of("small", Kind::Host, Precision::Q8_0, 1, false).peak(1) < base.peak(1));
        assert!(of("small", Kind::Host, Precision::F16, 1, true).peak(1) >= base.peak(1));
    }
}
