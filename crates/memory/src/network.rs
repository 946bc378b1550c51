//! How large a speech model's network is, of whatever family.

use serde::{Deserialize, Serialize};

use crate::dimensions::{Dimensions, Parameters, Precision};
use crate::footprint::Plan;
use crate::probe::DeviceKind;

/// The dimensions of a speech model's network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Network {
    /// Whisper: an encoder, and a decoder that attends to its output.
    Whisper(Dimensions),
    /// Parakeet: a FastConformer encoder with a CTC or transducer head.
    Parakeet(ParakeetDimensions),
    /// Canary: a FastConformer encoder, and a decoder that attends to its output.
    Canary(CanaryDimensions),
}

/// Dimensions of a FastConformer encoder, Parakeet's and Canary's, as `encoder_config` in `config.json` has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FastConformerDimensions {
    /// Mel bins: 80 or 128.
    pub mel_bins: u64,
    /// Numbers per frame.
    pub width: u64,
    /// Layers.
    pub layers: u64,
    /// Attention heads of each of them.
    pub heads: u64,
    /// Width of their hidden layers.
    pub ffn: u64,
    /// Frames that their convolutions reach over.
    pub kernel: u64,
    /// Channels of the convolutions before the layers.
    pub channels: u64,
    /// Whether the linear layers have biases.
    pub attention_bias: bool,
    /// Whether the convolutions of the layers have biases.
    pub convolution_bias: bool,
}

/// Dimensions of a Parakeet network, as in its `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParakeetDimensions {
    /// Of its encoder.
    #[serde(flatten)]
    pub encoder: FastConformerDimensions,
    /// Tokens, the blank among them.
    pub vocabulary: u64,
    /// Numbers per state of the prediction network; 0 for CTC, which has none.
    pub predictor_width: u64,
    /// Layers of the prediction network.
    pub predictor_layers: u64,
    /// Durations that the joint network chooses from.
    pub durations: u64,
}

/// Dimensions of a Canary network, as in its `config.json`. Its decoder is as wide as its encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CanaryDimensions {
    /// Of its encoder.
    #[serde(flatten)]
    pub encoder: FastConformerDimensions,
    /// Layers of the decoder.
    pub decoder_layers: u64,
    /// Attention heads of each of them.
    pub decoder_heads: u64,
    /// Width of their hidden layers.
    pub decoder_ffn: u64,
    /// The most tokens of a window, its prompt included.
    pub text_context: u64,
    /// Tokens, special ones included.
    pub vocabulary: u64,
}

/// Seconds of a window of speech.
const WINDOW_SECONDS: u64 = 30;
/// Seconds of the longest window that a FastConformer gets, half a second of silence behind it included, rounded up.
pub(crate) const LONGEST_SECONDS: u64 = 31;

impl Network {
    /// Dimensions of the public models, for predictions about models that are not installed.
    /// Of Whisper's as [`Dimensions::of_public`].
    pub fn of_public(name: &str) -> Option<Self> {
        let short = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        match short.as_str() {
            "parakeet-tdt-0.6b-v3" => Some(Self::Parakeet(ParakeetDimensions::TDT_0_6B_V3)),
            "canary-1b-v2" => Some(Self::Canary(CanaryDimensions::V2)),
            _ => Dimensions::of_public(name).map(Self::Whisper),
        }
    }

    /// Mel bins of its input.
    pub fn mel_bins(&self) -> u64 {
        match self {
            Self::Whisper(of) => of.mel_bins,
            Self::Parakeet(of) => of.encoder.mel_bins,
            Self::Canary(of) => of.encoder.mel_bins,
        }
    }

    /// Tokens, special ones included.
    pub fn vocabulary(&self) -> u64 {
        match self {
            Self::Whisper(of) => of.vocabulary,
            Self::Parakeet(of) => of.vocabulary,
            Self::Canary(of) => of.vocabulary,
        }
    }

    /// Weights by their shapes.
    pub fn parameters(&self) -> Parameters {
        match self {
            Self::Whisper(of) => of.parameters(),
            Self::Parakeet(of) => of.parameters(),
            Self::Canary(of) => of.parameters(),
        }
    }

    /// How it is used where nothing else is asked for.
    pub fn plan(&self, kind: DeviceKind, held: Precision) -> Plan {
        match self {
            Self::Whisper(of) => Plan::new(kind, held, of),
            // Its sequences have a small state of fixed size; times cost nothing.
            Self::Parakeet(of) => Plan {
                kind,
                held,
                beams: 1,
                tokens: 0,
                word_times: false,
                in_eight_bits: Plan::is_in_eight_bits(kind, held, of.encoder.width),
            },
            // One sequence; times are found in the scores that writing it leaves.
            Self::Canary(of) => Plan {
                kind,
                held,
                beams: 1,
                tokens: CanaryDimensions::most_tokens(FastConformerDimensions::frames(LONGEST_SECONDS))
                    .min(of.text_context),
                word_times: true,
                in_eight_bits: Plan::is_in_eight_bits(kind, held, of.encoder.width),
            },
        }
    }

    /// Work for a window of 30 s with so many tokens, in multiplications by a weight of the
    /// encoder. `decoder_weight`: what one of the decoder takes in the same unit.
    pub fn work(&self, tokens: u64, decoder_weight: u64) -> u64 {
        match self {
            Self::Whisper(of) => {
                let feed_forward = |hidden: u64| 2 * of.width * hidden;
                let attention = 4 * of.width * of.width;
                let encoder = of.encoder_layers * (attention + feed_forward(of.encoder_ffn));
                let decoder = of.decoder_layers * (2 * attention + feed_forward(of.decoder_ffn))
                    + of.vocabulary * of.width;
                encoder * of.audio_context + decoder_weight * tokens * decoder
            }
            Self::Parakeet(of) => {
                let frames = FastConformerDimensions::frames(WINDOW_SECONDS);
                let head = of.head_matrices();
                of.encoder.matrices() * frames
                    + if of.predictor_width > 0 { decoder_weight * tokens * head } else { frames * head }
            }
            Self::Canary(of) => {
                let frames = FastConformerDimensions::frames(WINDOW_SECONDS);
                let (at_each_token, of_the_sound) = of.decoder_matrices();
                (of.encoder.matrices() + of_the_sound) * frames + decoder_weight * tokens * at_each_token
            }
        }
    }
}

impl From<Dimensions> for Network {
    fn from(dimensions: Dimensions) -> Self {
        Self::Whisper(dimensions)
    }
}

impl FastConformerDimensions {
    /// The most frames of a window, 40.96 s. With a width of 1,024, what a layer makes of the distances between
    /// so many frames takes the memory of the matrix that it multiplies them by, and can be held in its place.
    pub const MOST_FRAMES: usize = 512;

    /// Frames, 80 ms each, in so many seconds.
    pub const fn frames(seconds: u64) -> u64 {
        (100 * seconds).div_ceil(8)
    }

    /// Numbers that the convolutions before the layers make of a frame.
    pub fn subsampled(&self) -> u64 {
        self.channels * (self.mel_bins / 8)
    }

    /// Weights in the matrices.
    fn matrices(&self) -> u64 {
        let d = self.width;
        // Two hidden layers; queries, keys, values, output and positions; three of the convolution.
        self.layers * (4 * d * self.ffn + 5 * d * d + 3 * d * d) + self.subsampled() * d
    }

    /// The rows of the matrices, as (rows in all, weights per row).
    fn rows(&self) -> [(u64, u64); 3] {
        let d = self.width;
        [
            // Into both hidden layers; attention; the convolution, whose input is twice as wide.
            (self.layers * (2 * self.ffn + 5 * d + 3 * d), d),
            (self.layers * 2 * d, self.ffn),
            (d, self.subsampled()),
        ]
    }

    /// Weights that are in no matrix.
    fn others(&self) -> u64 {
        let (d, c) = (self.width, self.channels);
        let biases = u64::from(self.attention_bias) * (2 * (self.ffn + d) + 4 * d)
            + u64::from(self.convolution_bias) * 4 * d;
        // Five norms, two biases of attention, the depthwise convolution and its norm.
        let layer = 5 * 2 * d + 2 * d + self.kernel * d + 2 * d + biases;
        self.layers * layer + 3 * (9 * c + c) + 2 * (c * c + c) + d
    }
}

/// Bytes of matrices with these rows, each held in `precision`, or in the next format that its rows fit
/// ([`Precision::for_width`]).
fn bytes_of(rows: impl IntoIterator<Item = (u64, u64)>, precision: Precision) -> u64 {
    rows.into_iter().map(|(rows, width)| rows * precision.for_width(width).bytes(width)).sum()
}

impl ParakeetDimensions {
    /// Of `nvidia/parakeet-tdt-0.6b-v3`, from its `config.json`.
    pub const TDT_0_6B_V3: Self = Self {
        encoder: FastConformerDimensions {
            mel_bins: 128,
            width: 1024,
            layers: 24,
            heads: 8,
            ffn: 4096,
            kernel: 9,
            channels: 256,
            attention_bias: false,
            convolution_bias: false,
        },
        vocabulary: 8193,
        predictor_width: 640,
        predictor_layers: 2,
        durations: 5,
    };

    /// Weights in the matrices behind the encoder that are used for every token.
    fn head_matrices(&self) -> u64 {
        let p = self.predictor_width;
        if p == 0 {
            return self.vocabulary * self.encoder.width;
        }
        self.predictor_layers * 8 * p * p + p * p + (self.vocabulary + self.durations) * p
    }

    /// Bytes of the matrices where each is held in `precision`, or in the next format that
    /// its rows fit ([`Precision::for_width`]).
    pub fn matrix_bytes(&self, precision: Precision) -> u64 {
        let (d, p) = (self.encoder.width, self.predictor_width);
        let head = self.vocabulary + self.durations;
        let behind = if p == 0 {
            [(self.vocabulary, d), (0, 1)]
        } else {
            // The embedding, the recurrent layers, the projector; and that of the frames.
            [(self.vocabulary + self.predictor_layers * 8 * p + p + head, p), (p, d)]
        };
        bytes_of(self.encoder.rows().into_iter().chain(behind), precision)
    }

    /// Weights by their shapes.
    pub fn parameters(&self) -> Parameters {
        let (d, p) = (self.encoder.width, self.predictor_width);
        let behind = if p == 0 {
            self.vocabulary
        } else {
            self.predictor_layers * 8 * p + p + p + self.vocabulary + self.durations
        };
        let tables = if p == 0 { 0 } else { self.vocabulary * p + d * p };
        Parameters {
            matrices: self.encoder.matrices() + self.head_matrices() + tables,
            others: self.encoder.others() + behind,
        }
    }
}

impl CanaryDimensions {
    /// Of `nvidia/canary-1b-v2`, from the defaults of transformers' `CanaryConfig`.
    pub const V2: Self = Self {
        encoder: FastConformerDimensions {
            layers: 32,
            attention_bias: true,
            convolution_bias: true,
            ..ParakeetDimensions::TDT_0_6B_V3.encoder
        },
        decoder_layers: 8,
        decoder_heads: 8,
        decoder_ffn: 4096,
        text_context: 1024,
        vocabulary: 16384,
    };

    /// Tokens that a window of so many frames may have: more than anyone says, so that a model that repeats itself ends.
    pub const fn most_tokens(frames: u64) -> u64 {
        const PROMPT: u64 = 16;
        PROMPT + frames
    }

    /// Weights in the decoder's matrices: those that each token is multiplied by, and those that the encoder's output is.
    fn decoder_matrices(&self) -> (u64, u64) {
        let d = self.encoder.width;
        let each = self.decoder_layers * (6 * d * d + 2 * d * self.decoder_ffn) + self.vocabulary * d;
        (each, self.decoder_layers * 2 * d * d)
    }

    /// Bytes of the matrices where each is held in `precision`, or in the next format that
    /// its rows fit ([`Precision::for_width`]).
    pub fn matrix_bytes(&self, precision: Precision) -> u64 {
        let (d, layers) = (self.encoder.width, self.decoder_layers);
        let decoder = [
            // Attention to tokens and to the sound, into the hidden layers, the tokens.
            (layers * (8 * d + self.decoder_ffn) + self.vocabulary, d),
            (layers * d, self.decoder_ffn),
        ];
        bytes_of(self.encoder.rows().into_iter().chain(decoder), precision)
    }

    /// Weights by their shapes; positions, which no file has, are not among them.
    pub fn parameters(&self) -> Parameters {
        let d = self.encoder.width;
        let (each, of_the_sound) = self.decoder_matrices();
        // Three norms, eight biases of attention, those of the hidden layer and of what it becomes.
        let layer = 3 * 2 * d + 8 * d + self.decoder_ffn + d;
        Parameters {
            matrices: self.encoder.matrices() + each + of_the_sound,
            // The norms before and behind the layers, the biases of the tokens.
            others: self.encoder.others() + self.decoder_layers * layer + 2 * 2 * d + self.vocabulary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_weight_of_the_public_model_is_counted() {
        let network = Network::of_public("nvidia/parakeet-tdt-0.6b-v3").unwrap();
        assert_eq!(network.parameters().total(), 627_008_134);
        let Network::Parakeet(of) = network else { panic!() };
        assert_eq!(of.matrix_bytes(Precision::F32), 4 * of.parameters().matrices);
        assert!(of.matrix_bytes(Precision::Q8_0) * 3 < of.matrix_bytes(Precision::F32));
    }

    /// The model's card says 978 million: it counts the matrix of the tokens, which embeds them and says which comes next, twice.
    #[test]
    fn every_weight_of_canary_is_counted() {
        let network = Network::of_public("nvidia/canary-1b-v2").unwrap();
        let Network::Canary(of) = network else { panic!() };
        assert_eq!(network.parameters().total(), 962_155_520);
        assert_eq!((network.parameters().total() + of.vocabulary * of.encoder.width) / 1_000_000, 978);
        assert_eq!(of.matrix_bytes(Precision::F32), 4 * of.parameters().matrices);
    }

    /// A measurement that was kept is read as before.
    #[test]
    fn dimensions_are_read_back_as_what_they_are() {
        for name in ["tiny", "parakeet-tdt-0.6b-v3", "canary-1b-v2"] {
            let network = Network::of_public(name).unwrap();
            let text = serde_json::to_string(&network).unwrap();
            assert_eq!(serde_json::from_str::<Network>(&text).unwrap(), network, "{text}");
        }
        let whisper = serde_json::to_string(&Dimensions::of_public("tiny").unwrap()).unwrap();
        assert!(matches!(serde_json::from_str(&whisper).unwrap(), Network::Whisper(_)));
    }
}
