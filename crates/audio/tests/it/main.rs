//! Real files and real processes: every container and codec, damage, seeking,
//! spectrograms and voice activity against references.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests")]

mod common;
mod damage;
mod errors;
mod fbank;
mod formats;
mod mel;
mod memory;
mod pictures;
mod seekable;
mod vad;
