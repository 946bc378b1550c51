//! Serves recordings for listening: a virtual WAV file of each, decoded where
//! somebody listens, and the peaks of its waveform. A process of its own, since
//! a broken file may crash a decoder.
//!
//! Only this machine is served, at a random port, under a random path that the
//! host alone is told, and only pages of the window.

mod ahead;
mod failure;
mod http;
mod kept;
mod peaks;
mod recording;
mod server;
mod spool;
mod wave;

use std::path::Path;

pub use peaks::Peaks;
pub use server::Server;
use wire::Failure;

/// Whether a recording can be decoded, as far as its beginning tells, and how
/// many seconds it says that it has.
///
/// # Errors
/// What an engine would say of it.
pub fn probe(path: &Path) -> Result<Option<f64>, Failure> {
    audio::probe(path).map(|info| info.duration_seconds).map_err(|error| failure::of(&error, path))
}
