use memory::ladder::LadderState;
use serde::{Deserialize, Serialize};
use transcript::{Completeness, Notice, Segment, Time};

/// What an earlier attempt at the same file left behind. A job with it continues
/// where that attempt ended, with the same text as without the interruption.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resume {
    /// Where the text goes on; `None`: at the beginning.
    pub point: Option<Point>,
    /// The text before the point, and what was left out of it.
    pub segments: Vec<Segment>,
    /// Segments left out of the text before the point.
    pub discarded: Vec<Segment>,
    /// Notices given before the point.
    pub notices: Vec<Notice>,
    /// The job's position on its ladder; `None`: at the top.
    pub ladder: Option<LadderState>,
    /// Windows that begin here, in samples of the 16 kHz stream, ended the
    /// engine more than once: each is skipped and listed as a gap.
    pub skip: Vec<u64>,
}

/// A place between two windows, with all that the next window depends on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Channels are written one after the other: this many are finished.
    pub channel: usize,
    /// First sample of the 16 kHz stream that is not done.
    pub position: u64,
    /// End of the last segment.
    pub written_to: Time,
    /// End of the last segment that took part in correcting words' times, in seconds.
    pub last_speech: f64,
    /// Tokens that the next window is told were said before.
    pub prompt: Vec<u32>,
    /// Of a model that reads pieces: a word at a cut may be heard on either side of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_word: Option<LastWord>,
    /// Of each channel that was begun, with its probability where it was detected.
    pub languages: Vec<(String, Option<f32>)>,
    /// Of the channels that are finished.
    pub completeness: Completeness,
}

/// The last word before a [`Point`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastWord {
    /// In small letters, without punctuation; empty for what is no word.
    pub text: String,
    /// Where it ends.
    pub end: Time,
}

impl Point {
    /// More channels than any recording has: the text of all of them is there.
    pub const EVERY_CHANNEL: usize = u32::MAX as usize;

    /// Up to where the channel on which it lies is done.
    pub fn reached(&self) -> Time {
        const SAMPLES_PER_MILLISECOND: u64 = 16;
        if self.channel == Self::EVERY_CHANNEL {
            return self.written_to;
        }
        Time::from_millis(u32::try_from(self.position / SAMPLES_PER_MILLISECOND).unwrap_or(u32::MAX))
    }
}
