//! Any audio or video file becomes 16 kHz mono samples, streamed; from those,
//! log-mel spectrograms and the places where somebody speaks. A leaf crate: it
//! knows no model, no job and no process but the `ffmpeg` that it may start.
//!
//! [`prepare`] does it all in one pass; [`Reader`] gives just the samples;
//! [`Seekable`] gives any part of them as they are, for listening.

mod codecs;
mod decoded;
mod error;
mod ffmpeg;
mod frames_of;
mod he_aac;
mod info;
mod mel;
mod mix;
mod mkv;
mod mp4;
mod native;
mod pcm;
mod reader;
mod recording;
mod resample;
mod seekable;
mod source;
mod tail;
mod vad;

pub use error::AudioError;
pub use ffmpeg::{ffmpeg_codecs, find_ffmpeg};
pub use info::{ChannelMode, Info, OpenOptions, Track, Warning};
pub use mel::{HOP, LogMel, Mel, N_FFT, WINDOW_FRAMES, WINDOW_SAMPLES, log_mel_padded_window, silence};
pub use pcm::Pcm;
pub use reader::{Reader, codecs, probe};
pub use recording::{PrepareOptions, Recording, prepare};
pub use seekable::{Index, Pass, Seekable};
pub use vad::Region;

/// Samples per second of everything that this crate gives out.
pub const SAMPLE_RATE: u32 = 16_000;
