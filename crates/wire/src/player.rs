//! What host and player say to each other: one line of JSON for each command,
//! one for each answer, in turn.

use serde::{Deserialize, Serialize};

use crate::{Failure, FilePath};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlayerCommand {
    /// Makes a recording's sound available; `keep`: the file in which what was
    /// learned of the recording is found again.
    Open { path: FilePath, keep: Option<FilePath> },
    /// Whether it can be decoded, as far as its beginning tells.
    Probe { path: FilePath },
    /// Nobody listens to it any more.
    Close { token: String },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlayerAnswer {
    Opened(Opened),
    Probed { seconds: Option<f64> },
    Closed,
    Failed { failure: Failure },
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
    /// With a number behind it: tells at which speed it is played, so that no
    /// more is sent than that takes.
    pub speed: String,
    /// Length of that WAV file.
    pub seconds: f64,
}
