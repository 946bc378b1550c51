//! Recordings with reference outputs: a few in the repository, and the full
//! corpus that only `make soak` has. Both are laid out alike.

use std::path::{Path, PathBuf};

/// The corpus in the repository, `tests/data/corpus`.
pub fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/corpus")
}

/// The full corpus, in the folder that `STENO_SHARED` names.
///
/// # Panics
/// Where there is none: a test that asks for it can't pass without.
pub fn full() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STENO_SHARED").map_or(beside, PathBuf::from);
    assert!(folder.is_dir(), "STENO_SHARED must name the folder of the full corpus: {}", folder.display());
    folder
}

/// Writes a WAV file of 32-bit samples at 16 kHz, as they are.
///
/// # Errors
/// Where it can't be written.
pub fn write_wav_f32(path: &Path, samples: &[f32]) -> std::io::Result<()> {
    let mut file = b"RIFF".to_vec();
    file.extend((36 + 4 * samples.len() as u32).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x03\0\x01\0");
    file.extend(16_000u32.to_le_bytes());
    file.extend(64_000u32.to_le_bytes());
    file.extend(b"\x04\0\x20\0data");
    file.extend((4 * samples.len() as u32).to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    std::fs::write(path, file)
}
