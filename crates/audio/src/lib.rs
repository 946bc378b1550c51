//! Decodes audio and video files to 16 kHz mono samples in a stream, and computes
//! log-mel spectrograms and voice activity from them.
//!
//! A leaf crate: it knows nothing of models and jobs, and starts no process but
//! `ffmpeg`, for formats that it can't decode itself.
//!
//! [`prepare`] does everything in one pass over a file. [`Reader`] only decodes.
//! [`Seekable`] decodes any part of a file at its own rate, for playback.
#![warn(missing_docs, clippy::missing_errors_doc)]

mod child;
mod codecs;
mod decoded;
mod error;
mod fbank;
mod ffmpeg;
mod frame_offsets;
mod he_aac;
mod info;
mod limits;
mod mel;
mod mix;
mod mkv;
mod mp4;
mod native;
mod nemo_mel;
mod pcm;
mod pictures;
mod reader;
mod recording;
mod resample;
mod seekable;
mod source;
mod tail;
mod vad;

pub use error::AudioError;
pub use fbank::Fbank;
pub use ffmpeg::{encode_flac, ffmpeg_codecs, find_ffmpeg};
pub use info::{ChannelMode, MediaInfo, OpenOptions, Track, Warning};
pub use mel::{HOP, LogMel, Mel, N_FFT, WINDOW_FRAMES, WINDOW_SAMPLES, log_mel_padded_window, silence};
pub use nemo_mel::NemoMel;
pub use pcm::Pcm;
pub use pictures::{Film, PICTURES_PER_SECOND};
pub use reader::{Reader, codecs, probe};
pub use recording::{PrepareOptions, Recording, prepare};
pub use resample::{at_speed, samples_at_speed};
pub use seekable::{DecodingPass, SeekIndex, Seekable};
pub use vad::SpeechRegion;

/// Sample rate, in hertz, of all samples but those of [`Seekable`].
pub const SAMPLE_RATE: u32 = 16_000;
