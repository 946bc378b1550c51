//! The CUDA engine's numbers and texts, on the emulated card of scripts/cuda/mock: candle's own kernels, compiled for
//! the processor. Device 0 has compute capability 8.0, device 1 has 7.5. `scripts/cuda/mock/test.sh` runs these.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may panic as tests do")]

mod calls;
mod embedding;
#[path = "../it/support/mod.rs"]
#[allow(dead_code, reason = "shared with another program of tests")]
mod it_support;
mod jobs;
mod numbers;
mod support;
