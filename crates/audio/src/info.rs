//! Options for opening recordings, and what is known of them.

/// How to open a recording.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OpenOptions {
    /// Audio track, counted from 0; `None` for the file's default one.
    pub track: Option<usize>,
    /// What to do with several channels.
    pub channels: ChannelMode,
    /// Decode only this many seconds from the start.
    pub limit_seconds: Option<f64>,
}

/// How several channels become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ChannelMode {
    /// The mean of all channels but the one of low-frequency effects.
    #[default]
    Mix,
    /// The first channel.
    Left,
    /// The second channel.
    Right,
    /// The channel of this index, counted from 0.
    Index(usize),
}

impl ChannelMode {
    /// The index of the channel; `None` for a mix.
    pub(crate) fn index(self) -> Option<usize> {
        match self {
            Self::Mix => None,
            Self::Left => Some(0),
            Self::Right => Some(1),
            Self::Index(index) => Some(index),
        }
    }
}

/// What is known of a recording after opening it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MediaInfo {
    /// Name of the container, e.g. `wave`, `isomp4`, `matroska`, `ogg`.
    pub container: String,
    /// Name of the codec, e.g. `pcm_s16le`, `aac`, `opus`.
    pub codec: String,
    /// Hertz, before resampling.
    pub sample_rate: u32,
    /// Number of channels in the file.
    pub channels: u32,
    /// Length as the container declares or estimates it. The decoded length may differ.
    pub duration_seconds: Option<f64>,
    /// All audio tracks of the file.
    pub tracks: Vec<Track>,
    /// SeekIndex of the track that is decoded.
    pub track: usize,
    /// Whether it is decoded by `ffmpeg`.
    pub by_ffmpeg: bool,
}

/// An audio track of a container.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Track {
    /// SeekIndex among the audio tracks, counted from 0.
    pub index: usize,
    /// Name of the codec.
    pub codec: String,
    /// As the container spells it, e.g. `eng`.
    pub language: Option<String>,
    /// Its name, if the file gives it one, e.g. `Commentary`.
    pub title: Option<String>,
    /// Hertz, if the container states it.
    pub sample_rate: Option<u32>,
    /// Number of channels, if the container states it.
    pub channels: Option<u32>,
    /// Whether this track is decoded if none is chosen.
    pub default: bool,
}

/// A problem of a recording that did not prevent decoding it. Times are seconds.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// The file ends before the recording does: it was cut off.
    Truncated {
        /// How much was decoded.
        decoded: f64,
        /// How long the recording is, where the file says so.
        declared: Option<f64>,
        /// What the decoder says, where that is more.
        detail: Option<String>,
    },
    /// Parts could not be decoded.
    Damaged {
        /// The first place, where it is known: there is silence in its stead.
        at: Option<f64>,
        /// What the decoder says.
        detail: Option<String>,
    },
    /// The channels cancel each other out when mixed, so that one of them was used.
    Phase {
        /// The channel that was used, from 0.
        channel: usize,
        /// By how much the mix would be quieter.
        decibels: f64,
    },
    /// A channel was chosen, but the recording is mono.
    Mono,
}
