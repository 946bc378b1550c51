//! What training low-rank adapters takes.

use crate::bytes::MIB;
use crate::{DeviceKind, Dimensions, Precision};

/// Bytes of a number: activations and gradients are in 32 bits, and so are all weights but the layers' matrices.
const ELEMENT: u64 = 4;
/// Queries whose scores are there at a time (`QUERY_BLOCK` of the network that is trained).
const QUERIES: u64 = 256;

/// The predicted memory of training the adapters of a Whisper network.
///
/// Activations are counted in widths d and hidden layers f per position. A layer that keeps
/// everything holds its input, both norms twice, queries, keys and values as they come and by head,
/// what attention found as it comes and joined, its projection and two sums (17 d), and the hidden
/// layer before and after its activation with the projection behind it (2 f + d). Where the encoder does not learn, its
/// layers keep nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrainingFootprint {
    /// Frozen weights; the layers' matrices may be held in 16 bits.
    pub weights: u64,
    /// Adapters, their gradients and two moments, and one copy as a gradient is added.
    pub adapters: u64,
    /// Of one window: the inputs of all layers.
    inputs: u64,
    /// Of one window: what all layers keep.
    everything: u64,
    /// Of one window: what one layer keeps, and takes on the way back.
    layer: u64,
    /// Of one window: logits and their gradients.
    logits: u64,
    /// Whatever the size of the work.
    fixed: u64,
}

impl TrainingFootprint {
    /// Of adapters of this rank in the decoder, and in the encoder where `in_encoder` says so, with windows of so many tokens,
    /// beside matrices held in `precision`.
    pub fn of(
        network: &Dimensions,
        kind: DeviceKind,
        precision: Precision,
        rank: u64,
        tokens: u64,
        in_encoder: bool,
    ) -> Self {
        let d = network.width;
        let parameters = network.parameters();
        let layers = parameters.matrices - network.vocabulary * d;
        // One matrix at a time is widened to 32 bits.
        let (bytes, widened) = match precision {
            Precision::F32 => (ELEMENT, 0),
            _ => (2, ELEMENT * d * network.encoder_ffn.max(network.decoder_ffn)),
        };
        let positions = network.audio_context;
        let adapter = |output: u64, input: u64| rank * (output + input);
        let attention = 4 * adapter(d, d);
        let feed_forward = |hidden: u64| 2 * adapter(hidden, d);
        let learning = if in_encoder { network.encoder_layers } else { 0 };
        let adapters = learning * (attention + feed_forward(network.encoder_ffn))
            + network.decoder_layers * (2 * attention + feed_forward(network.decoder_ffn));
        let encoder_layer = positions * (18 * d + 2 * network.encoder_ffn);
        // Keys and values of the sound, as they come and by head.
        let decoder_layer = tokens * (27 * d + 2 * network.decoder_ffn) + 4 * positions * d;
        // Gradients of a layer's parts, and four blocks of scores.
        let scores = 4 * network.encoder_heads * QUERIES.min(positions) * positions;
        let backward = positions * (10 * d + 3 * network.encoder_ffn) + scores;
        // What does not learn is dropped on the way, and the way back does not come to it.
        let passed = positions * (8 * d + 2 * network.encoder_ffn) + scores;
        let layer = match in_encoder {
            true => encoder_layer.max(decoder_layer) + backward,
            false => passed.max(
                decoder_layer
                    + tokens * (10 * d + 3 * network.decoder_ffn)
                    + 4 * positions * d
                    + 4 * network.decoder_heads * tokens.min(QUERIES) * positions,
            ),
        };
        let inputs = (learning + 2) * positions * d + (network.decoder_layers + 1) * tokens * d;
        Self {
            weights: ELEMENT * (parameters.total() - layers) + bytes * layers,
            adapters: 5 * ELEMENT * adapters,
            inputs: ELEMENT * inputs,
            everything: ELEMENT * (learning * encoder_layer + network.decoder_layers * decoder_layer),
            layer: ELEMENT * layer,
            logits: ELEMENT * 5 * tokens * network.vocabulary,
            fixed: widened
                + match kind {
                    DeviceKind::Host => 16 * MIB,
                    DeviceKind::Gpu => 32 * MIB,
                },
        }
    }

    /// What training on so many windows together adds to the frozen weights.
    pub fn work(&self, windows: u64, keeps_everything: bool) -> u64 {
        // Logits are there before the way back begins, and nothing of what is kept was given back.
        let kept = if keeps_everything { self.everything } else { self.inputs };
        self.fixed + self.adapters + windows * (kept + self.layer.max(self.logits))
    }

    /// All that it takes beyond the program itself.
    pub fn peak(&self, windows: u64, keeps_everything: bool) -> u64 {
        self.weights + self.work(windows, keeps_everything)
    }
}
