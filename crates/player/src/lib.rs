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

pub use peaks::Peaks;
pub use server::Server;
