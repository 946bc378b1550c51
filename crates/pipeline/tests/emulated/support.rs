use std::path::{Path, PathBuf};

use candle_core::Device;

/// The emulated ones, with compute capability 8.0 and 7.5, or those that `STENO_TEST_CARDS` names: real ones, on which
/// `make gpu-check` runs the same.
pub fn cards() -> Vec<usize> {
    let named = std::env::var("STENO_TEST_CARDS").unwrap_or_else(|_| "0,1".into());
    named.split(',').map(|number| number.parse().unwrap()).collect()
}

pub fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

pub fn starter() -> PathBuf {
    project("models/starter-whisper")
}

/// As the engine opens it.
pub fn card(number: usize) -> Device {
    pipeline::open_card(number).unwrap()
}

/// The same numbers at every call, from -1 to 1.
pub fn noise() -> impl FnMut() -> f32 {
    let mut state = 1u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 24) as f32 * 2.0 - 1.0
    }
}
