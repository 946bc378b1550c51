/// How to open a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenOptions {
    /// Audio track counted from 0; `None`: the file's default one.
    pub track: Option<usize>,
    pub channels: ChannelMode,
    /// Stop after this much.
    pub limit_seconds: Option<f64>,
}

/// What is made of several channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChannelMode {
    /// The mean of all of them, without the low-frequency channel.
    #[default]
    Mix,
    Left,
    Right,
    /// Counted from 0.
    Index(usize),
}

impl ChannelMode {
    /// The one channel that is wanted; `None` for a mix.
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            Self::Mix => None,
            Self::Left => Some(0),
            Self::Right => Some(1),
            Self::Index(index) => Some(index),
        }
    }
}

/// What a recording is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Info {
    /// E.g. `wave`, `isomp4`, `matroska`, `ogg`.
    pub container: String,
    /// E.g. `pcm_s16le`, `aac`, `opus`.
    pub codec: String,
    /// Hertz, before resampling.
    pub sample_rate: u32,
    pub channels: u32,
    /// As the container declares or estimates it; the number of samples that were decoded decides.
    pub duration_seconds: Option<f64>,
    /// The audio tracks.
    pub tracks: Vec<Track>,
    /// Number of the chosen one.
    pub track: usize,
    /// Whether `ffmpeg` decodes it.
    pub by_ffmpeg: bool,
}

/// An audio track of a container.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Track {
    /// Counted from 0 over the audio tracks.
    pub index: usize,
    pub codec: String,
    /// As the container spells it, e.g. `eng`.
    pub language: Option<String>,
    pub sample_rate: Option<u32>,
    pub channels: Option<u32>,
    /// The one that is taken when none is asked for.
    pub default: bool,
}

/// Something about a recording that its owner should know.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// One of the constants of this type.
    pub code: &'static str,
    /// A sentence.
    pub text: String,
    /// Where in the recording.
    pub at_seconds: Option<f64>,
}

impl Warning {
    /// The file ends before the recording does.
    pub const TRUNCATED: &str = "audio.truncated";
    /// Something within could not be decoded; there is silence in its place.
    pub const DAMAGED: &str = "audio.damaged";
    /// The channels cancel each other out, one of them was taken alone.
    pub const PHASE: &str = "audio.phase";
    /// A channel was asked for that a mono recording does not have.
    pub const MONO: &str = "audio.mono";

    pub(crate) fn new(code: &'static str, text: impl Into<String>, at_seconds: Option<f64>) -> Self {
        Self { code, text: text.into(), at_seconds }
    }
}
