//! The protocol between host and player: a line of JSON for each command and one for
//! each answer, in turn.

use serde::{Deserialize, Serialize};

use transcript::Span;

use crate::{Failure, FilePath};

/// Endings of files that usually have pictures beside their sound.
pub const FILMS: &[&str] = &["3gp", "m4v", "mkv", "mov", "mp4", "webm"];

/// Host to player.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlayerCommand {
    /// Makes a recording's sound available over HTTP.
    Open {
        /// The recording.
        path: FilePath,
        /// Audio track by number from 0; `None`: the file's default one.
        track: Option<usize>,
        /// The file in which its index and waveform are kept for the next time.
        keep: Option<FilePath>,
    },
    /// Whether it can be decoded, as far as its beginning tells.
    Probe {
        /// The recording.
        path: FilePath,
    },
    /// Writes a part of a recording as a sound file, WAV or FLAC by the name's ending.
    Clip {
        /// The recording.
        path: FilePath,
        /// Audio track by number from 0; `None`: the file's default one.
        track: Option<usize>,
        /// The part of it.
        span: Span,
        /// The file to write.
        out: FilePath,
        /// Over one that is there.
        replace: bool,
    },
    /// Ends the access to a recording.
    Close {
        /// As in [`Opened::token`].
        token: String,
    },
}

/// Player to host, one for each command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlayerAnswer {
    /// Answers [`PlayerCommand::Open`].
    Opened(Opened),
    /// Answers [`PlayerCommand::Probe`]: the file can be decoded; with its length, where the
    /// header says it.
    Probed(Probed),
    /// Answers [`PlayerCommand::Clip`]: the file is written.
    Clipped,
    /// Answers [`PlayerCommand::Close`].
    Closed,
    /// The command failed.
    Failed {
        /// Why.
        failure: Failure,
    },
}

/// What the beginning of a file says of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probed {
    /// Length of the recording, where the header says it.
    pub seconds: Option<f64>,
    /// Its audio tracks, in the file's order.
    pub tracks: Vec<AudioTrack>,
}

/// An audio track of a recording.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct AudioTrack {
    /// Counted from 0, as `Job::track`.
    pub number: u32,
    /// As the file spells it, e.g. `eng`.
    pub language: Option<String>,
    /// Its name, where the file gives it one.
    pub title: Option<String>,
    /// Name of the codec.
    pub codec: String,
    /// How many channels it has, where the file says so.
    pub channels: Option<u32>,
    /// It is transcribed where none is chosen.
    pub default: bool,
}

/// Where a recording's sound is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Opened {
    /// Names the recording to the player.
    pub token: String,
    /// Of the sound: a WAV file that answers requests for ranges.
    pub audio: String,
    /// Of what its waveform is drawn from, see `player::Peaks`.
    pub peaks: String,
    /// Whether there are pictures, see `player::Server`; with `/` and a time in seconds behind it, what is
    /// seen then, as a JPEG.
    pub pictures: String,
    /// With a number behind it: tells at which speed it is played, so that no
    /// more is sent than that takes.
    pub speed: String,
    /// Length of that WAV file.
    pub seconds: f64,
}
