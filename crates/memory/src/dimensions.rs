//! How large a Whisper network is, from its dimensions alone.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::probe::DeviceKind;

/// Dimensions of a Whisper network, as in its `config.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dimensions {
    /// Mel bins: 80 or 128.
    pub mel_bins: u64,
    /// Positions of the encoder per window: 1500, one per 20 ms.
    pub audio_context: u64,
    /// Positions of the decoder: 448.
    pub text_context: u64,
    /// Numbers per position, the same in encoder and decoder.
    pub width: u64,
    /// Layers of the encoder.
    pub encoder_layers: u64,
    /// Attention heads of each of them.
    pub encoder_heads: u64,
    /// Width of their hidden layer.
    pub encoder_ffn: u64,
    /// Layers of the decoder.
    pub decoder_layers: u64,
    /// Attention heads of each of them.
    pub decoder_heads: u64,
    /// Width of their hidden layer.
    pub decoder_ffn: u64,
    /// Tokens, special ones included.
    pub vocabulary: u64,
}

/// Numbers of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameters {
    /// In matrices, which may be quantised.
    pub matrices: u64,
    /// In convolutions, positions, norms and biases, which stay as they are.
    pub others: u64,
}

impl Parameters {
    /// All weights.
    pub fn total(&self) -> u64 {
        self.matrices + self.others
    }
}

impl Dimensions {
    const fn public(width: u64, layers: (u64, u64), mel_bins: u64, vocabulary: u64) -> Self {
        Self {
            mel_bins,
            audio_context: 1500,
            text_context: 448,
            width,
            encoder_layers: layers.0,
            encoder_heads: width / 64,
            encoder_ffn: 4 * width,
            decoder_layers: layers.1,
            decoder_heads: width / 64,
            decoder_ffn: 4 * width,
            vocabulary,
        }
    }

    /// Dimensions of the public models (Radford and others 2022, table 1;
    /// turbo and distil from their `config.json`), for predictions about models
    /// that are not installed. `name` may have `whisper-` or `ggml-` before it
    /// and a quantisation behind it.
    pub fn of_public(name: &str) -> Option<Self> {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let name = name.trim_start_matches("ggml-").trim_start_matches("whisper-");
        let name = match name.rsplit_once('-') {
            Some((model, precision)) if precision.parse::<Precision>().is_ok() => model,
            _ => name,
        };
        let dimensions = match name {
            "tiny" => Self::public(384, (4, 4), 80, 51_865),
            "tiny.en" => Self::public(384, (4, 4), 80, 51_864),
            "base" => Self::public(512, (6, 6), 80, 51_865),
            "base.en" => Self::public(512, (6, 6), 80, 51_864),
            "small" => Self::public(768, (12, 12), 80, 51_865),
            "small.en" => Self::public(768, (12, 12), 80, 51_864),
            "medium" => Self::public(1024, (24, 24), 80, 51_865),
            "medium.en" => Self::public(1024, (24, 24), 80, 51_864),
            "large" | "large-v1" | "large-v2" => Self::public(1280, (32, 32), 80, 51_865),
            "large-v3" => Self::public(1280, (32, 32), 128, 51_866),
            "large-v3-turbo" | "turbo" => Self::public(1280, (32, 4), 128, 51_866),
            "distil-large-v3" | "distil-large-v3.5" => Self::public(1280, (32, 2), 128, 51_866),
            _ => return None,
        };
        Some(dimensions)
    }

    /// Bytes of the matrices where each is held in `precision`, or in the next
    /// format that its rows fit ([`Precision::for_width`]). The output
    /// projection shares the embedding.
    pub fn matrix_bytes(&self, precision: Precision) -> u64 {
        let d = self.width;
        // (rows in all, weights per row) of the matrices that read activations
        // of the model's width, and of those behind the hidden layers.
        let inward = self.encoder_layers * (4 * d + self.encoder_ffn)
            + self.decoder_layers * (8 * d + self.decoder_ffn)
            + self.vocabulary;
        let shapes = [
            (inward, d),
            (self.encoder_layers * d, self.encoder_ffn),
            (self.decoder_layers * d, self.decoder_ffn),
        ];
        shapes.into_iter().map(|(rows, width)| rows * precision.for_width(width).bytes(width)).sum()
    }

    /// Weights by their shapes. The output projection shares the embedding.
    pub fn parameters(&self) -> Parameters {
        let d = self.width;
        let attention = 4 * d * d;
        // Queries, values and output have a bias, keys have none.
        let attention_bias = 3 * d;
        let norm = 2 * d;
        let feed_forward = |hidden: u64| 2 * d * hidden;
        let feed_forward_bias = |hidden: u64| hidden + d;

        let encoder = self.encoder_layers * (attention + feed_forward(self.encoder_ffn));
        let decoder = self.decoder_layers * (2 * attention + feed_forward(self.decoder_ffn));
        let encoder_rest =
            self.encoder_layers * (attention_bias + feed_forward_bias(self.encoder_ffn) + 2 * norm) + norm;
        let decoder_rest = self.decoder_layers
            * (2 * attention_bias + feed_forward_bias(self.decoder_ffn) + 3 * norm)
            + norm;
        let convolutions = (3 * self.mel_bins * d + d) + (3 * d * d + d);
        let positions = (self.audio_context + self.text_context) * d;
        Parameters {
            matrices: encoder + decoder + self.vocabulary * d,
            others: encoder_rest + decoder_rest + convolutions + positions,
        }
    }
}

/// How weights are held in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Precision {
    /// 32 bits.
    F32,
    /// 16 bits, IEEE 754 half precision.
    F16,
    /// 16 bits with the exponent of 32.
    Bf16,
    /// GGML's block format `Q8_0`, 8.5 bits per weight.
    Q8_0,
    /// GGML's block format `Q6_K`, 6.56 bits per weight.
    Q6K,
    /// GGML's block format `Q5_K`, 5.5 bits per weight.
    Q5K,
    /// GGML's block format `Q5_1`, 6 bits per weight.
    Q5_1,
    /// GGML's block format `Q5_0`, 5.5 bits per weight.
    Q5_0,
    /// GGML's block format `Q4_K`, 4.5 bits per weight.
    Q4K,
    /// GGML's block format `Q4_1`, 5 bits per weight.
    Q4_1,
    /// GGML's block format `Q4_0`, 4.5 bits per weight.
    Q4_0,
}

impl Precision {
    /// Every precision, the most exact first.
    pub const ALL: [Self; 11] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q8_0,
        Self::Q6K,
        Self::Q5K,
        Self::Q5_1,
        Self::Q5_0,
        Self::Q4K,
        Self::Q4_1,
        Self::Q4_0,
    ];

    /// (weights per block, bytes per block): the block formats of GGML.
    fn block(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q8_0 => (32, 34),
            Self::Q6K => (256, 210),
            Self::Q5K => (256, 176),
            Self::Q5_1 => (32, 24),
            Self::Q5_0 => (32, 22),
            Self::Q4K => (256, 144),
            Self::Q4_1 => (32, 20),
            Self::Q4_0 => (32, 18),
        }
    }

    /// Whether weights share scales, block by block.
    pub fn is_quantised(self) -> bool {
        self.block().0 > 1
    }

    /// Weights per block; 1 where each stands for itself.
    pub fn block_weights(self) -> u64 {
        self.block().0
    }

    /// The format in which rows of `width` weights are held where this one is
    /// wanted: blocks don't reach across rows, and a row that is no whole
    /// number of blocks takes the next better format that fits.
    pub fn for_width(self, width: u64) -> Self {
        let better = match self {
            fits if width.is_multiple_of(fits.block().0) => return fits,
            Self::Q6K => Self::Q8_0,
            Self::Q5K => Self::Q5_1,
            Self::Q4K => Self::Q5_0,
            _ => Self::F16,
        };
        better.for_width(width)
    }

    /// How a file's weights are held by default: in 32 bits on the host, in 16 on a
    /// GPU; quantised ones stay as they are.
    pub fn usual_on(self, kind: DeviceKind) -> Self {
        match (kind, self) {
            (_, quantised) if quantised.is_quantised() => quantised,
            (DeviceKind::Host, _) => Self::F32,
            (DeviceKind::Gpu, Self::Bf16) => Self::Bf16,
            (DeviceKind::Gpu, _) => Self::F16,
        }
    }

    /// Bytes of `weights` weights.
    pub fn bytes(self, weights: u64) -> u64 {
        let (per_block, bytes) = self.block();
        weights.div_ceil(per_block) * bytes
    }

    /// The name in files, options and transcripts: `q8_0`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q6K => "q6_k",
            Self::Q5K => "q5_k",
            Self::Q5_1 => "q5_1",
            Self::Q5_0 => "q5_0",
            Self::Q4K => "q4_k",
            Self::Q4_1 => "q4_1",
            Self::Q4_0 => "q4_0",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A precision that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no format of weights: there are {list}", list = Precision::ALL.map(Precision::as_str).join(", "))]
pub struct UnknownPrecision(pub String);

impl FromStr for Precision {
    type Err = UnknownPrecision;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.to_ascii_lowercase();
        Self::ALL
            .into_iter()
            .find(|precision| precision.as_str() == lower || precision.as_str().replace("_k", "k") == lower)
            .ok_or_else(|| UnknownPrecision(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_public_models_have_the_published_numbers_of_weights() {
        for (name, expected) in [
            ("tiny", 37_760_640),
            ("openai/whisper-tiny.en", 37_760_256),
            ("base", 72_593_920),
            ("ggml-small", 241_734_912),
            ("medium", 763_857_920),
            ("large-v2", 1_543_304_960),
            ("whisper-large-v3", 1_543_490_560),
            ("ggml-large-v3-turbo-q5_0", 808_878_080),
        ] {
            let found = Dimensions::of_public(name).map(|dimensions| dimensions.parameters().total());
            assert_eq!(found, Some(expected), "{name}");
        }
        assert_eq!(Dimensions::of_public("parakeet-tdt-0.6b-v3"), None);
    }

    #[test]
    fn matrices_take_the_bytes_of_the_formats_that_fit_them() {
        let base = Dimensions::of_public("base").unwrap();
        let all = base.parameters().matrices;
        assert_eq!(base.matrix_bytes(Precision::F32), 4 * all);
        assert_eq!(base.matrix_bytes(Precision::Q8_0), all / 32 * 34);
        // Rows of 512 and 2048 are whole superblocks; of tiny's, 384 and 1536
        // wide, only the latter.
        assert_eq!(base.matrix_bytes(Precision::Q4K), all / 256 * 144);
        let tiny = Dimensions::of_public("tiny").unwrap();
        let behind_hidden = 8 * 384 * 1536;
        let expected = Precision::Q4K.bytes(behind_hidden)
            + Precision::Q5_0.bytes(tiny.parameters().matrices - behind_hidden);
        assert_eq!(tiny.matrix_bytes(Precision::Q4K), expected);
        for (wanted, width, held) in [
            (Precision::Q8_0, 64, Precision::Q8_0),
            (Precision::Q6K, 384, Precision::Q8_0),
            (Precision::Q5K, 384, Precision::Q5_1),
            (Precision::Q4K, 48, Precision::F16),
            (Precision::Q4_0, 40, Precision::F16),
            (Precision::F16, 3, Precision::F16),
        ] {
            assert_eq!(wanted.for_width(width), held, "{wanted} {width}");
        }
    }

    #[test]
    fn precisions_take_their_published_bits_per_weight() {
        for (name, bits) in
            [("f32", 32.0), ("BF16", 16.0), ("q8_0", 8.5), ("Q5_0", 5.5), ("q4_k", 4.5), ("Q6K", 6.5625)]
        {
            let precision: Precision = name.parse().unwrap();
            assert_eq!(precision.bytes(256 * 100) as f64 * 8.0 / 25_600.0, bits, "{name}");
        }
        assert!("q3".parse::<Precision>().is_err());
        for precision in Precision::ALL {
            assert_eq!(precision.to_string().parse(), Ok(precision));
        }
    }
}
