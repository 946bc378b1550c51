//! Serves recordings over HTTP for playback: a virtual WAV file of each, decoded
//! on request, and the peaks of its waveform. It runs in a process of its own,
//! because a broken file may crash a decoder.
//!
//! The server listens on the loopback interface alone, at a random port and under
//! a random path that only the host knows, and answers only pages of the window.
#![warn(missing_docs, clippy::missing_errors_doc)]

mod cache;
mod clip;
mod failure;
mod http;
mod pacing;
mod peaks;
mod recording;
mod server;
mod spool;
mod wave;

use std::path::Path;

pub use clip::clip;
pub use peaks::Peaks;
pub use server::Server;
use wire::{AudioTrack, Failure, Probed};

/// What opening or scanning one recording may allocate, in bytes: more than any recording needs. A
/// damaged length field can make a decoder ask for all the memory of a machine.
pub const DECODING_BYTES: usize = 512 << 20;

/// Checks by its beginning whether a recording can be decoded. Returns what that says of it.
///
/// # Errors
/// The failure that an engine would report.
pub fn probe(path: &Path) -> Result<Probed, Failure> {
    let info = audio::probe(path).map_err(|error| failure::of(&error, path))?;
    let track = |track: audio::Track| AudioTrack {
        number: u32::try_from(track.index).unwrap_or(u32::MAX),
        language: track.language,
        title: track.title,
        codec: track.codec,
        channels: track.channels,
        default: track.default,
    };
    Ok(Probed { seconds: info.duration_seconds, tracks: info.tracks.into_iter().map(track).collect() })
}
