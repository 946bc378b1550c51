/// Positions of the encoder after its second convolution: 30 s at 50 Hz.
pub(crate) const SOURCE_POSITIONS: usize = 1500;
/// Positions of the decoder, prompt included.
pub(crate) const TARGET_POSITIONS: usize = 448;
/// The width of an attention head in every Whisper model.
const HEAD_WIDTH: usize = 64;

/// The dimensions of a Whisper model. Those of the public models are from the
/// model card of openai/whisper and `_ALIGNMENT_HEADS` in its `__init__.py`.
#[derive(Debug)]
pub struct Size {
    /// The name of the public model.
    pub name: &'static str,
    /// The width of the hidden states.
    pub width: usize,
    /// Layers of the encoder.
    pub encoder_layers: usize,
    /// Layers of the decoder.
    pub decoder_layers: usize,
    /// Mel bins of the spectrogram: 80 or 128.
    pub mel_bins: usize,
    /// The vocabulary.
    pub vocabulary: VocabularyKind,
    /// The (layer, head) pairs of the decoder whose cross-attention follows the
    /// audio.
    pub alignment_heads: &'static [(usize, usize)],
}

/// The vocabulary of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VocabularyKind {
    /// That of the demonstration model, a twelfth of the public one, for quick tests.
    Starter,
    /// That of the `.en` models: one text token less, no languages or tasks.
    English,
    /// That of the multilingual models up to large-v2.
    Multilingual,
    /// That of large-v3 and large-v3-turbo: with Cantonese, after which all ids are
    /// one higher.
    Multilingual3,
}

impl VocabularyKind {
    /// The number of ids.
    pub fn len(self) -> usize {
        match self {
            Self::Starter => 4_315,
            Self::English => 51_864,
            Self::Multilingual => 51_865,
            Self::Multilingual3 => 51_866,
        }
    }

    /// Always `false`.
    pub fn is_empty(self) -> bool {
        false
    }
}

/// The public models, and one that is small enough for quick tests.
pub const SIZES: [Size; 8] = [
    // Not a public model.
    size("micro", 64, (2, 2), 80, VocabularyKind::Starter, &[(1, 0)]),
    size(
        "tiny",
        384,
        (4, 4),
        80,
        VocabularyKind::Multilingual,
        &[(2, 2), (3, 0), (3, 2), (3, 3), (3, 4), (3, 5)],
    ),
    size(
        "tiny.en",
        384,
        (4, 4),
        80,
        VocabularyKind::English,
        &[(1, 0), (2, 0), (2, 5), (3, 0), (3, 1), (3, 2), (3, 3), (3, 4)],
    ),
    size(
        "base",
        512,
        (6, 6),
        80,
        VocabularyKind::Multilingual,
        &[(3, 1), (4, 2), (4, 3), (4, 7), (5, 1), (5, 2), (5, 4), (5, 6)],
    ),
    size(
        "small",
        768,
        (12, 12),
        80,
        VocabularyKind::Multilingual,
        &[(5, 3), (5, 9), (8, 0), (8, 4), (8, 7), (8, 8), (9, 0), (9, 7), (9, 9), (10, 5)],
    ),
    size(
        "medium",
        1024,
        (24, 24),
        80,
        VocabularyKind::Multilingual,
        &[(13, 15), (15, 4), (15, 15), (16, 1), (20, 0), (23, 4)],
    ),
    size(
        "large-v3",
        1280,
        (32, 32),
        128,
        VocabularyKind::Multilingual3,
        &[(7, 0), (10, 17), (12, 18), (13, 12), (16, 1), (17, 14), (19, 11), (21, 4), (24, 1), (25, 6)],
    ),
    size(
        "large-v3-turbo",
        1280,
        (32, 4),
        128,
        VocabularyKind::Multilingual3,
        &[(2, 4), (2, 11), (3, 3), (3, 6), (3, 11), (3, 14)],
    ),
];

impl Size {
    /// The size of this name.
    pub fn named(name: &str) -> Option<&'static Size> {
        SIZES.iter().find(|size| size.name == name)
    }

    /// Attention heads per layer.
    pub fn heads(&self) -> usize {
        self.width / HEAD_WIDTH
    }
}

const fn size(
    name: &'static str,
    width: usize,
    (encoder_layers, decoder_layers): (usize, usize),
    mel_bins: usize,
    vocabulary: VocabularyKind,
    alignment_heads: &'static [(usize, usize)],
) -> Size {
    Size { name, width, encoder_layers, decoder_layers, mel_bins, vocabulary, alignment_heads }
}
