#![allow(dead_code, clippy::unwrap_used, reason = "helpers of tests, each of which uses what it needs")]

use std::path::{Path, PathBuf};

use audio::{OpenOptions, Reader};

/// The folder of reference recordings, or `None`, said aloud, where it is not there.
pub fn shared() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STENO_SHARED").map_or_else(beside, PathBuf::from);
    if folder.join("audio").is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: {} holds no reference recordings; STENO_SHARED names their folder", folder.display());
    None
}

/// All samples of a file.
pub fn decode(path: &Path, options: &OpenOptions) -> Vec<f32> {
    let mut reader = Reader::open(path, options).unwrap();
    let mut samples = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        samples.extend_from_slice(block);
    }
    samples
}

pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// What the fixtures hold: the samples of `left.wav` or `right.wav`, which are
/// plain 16-bit files with a header of 44 bytes, read without our decoder.
pub fn truth(side: &str) -> Vec<f32> {
    let bytes = std::fs::read(fixture(&format!("{side}.wav"))).unwrap();
    assert_eq!(&bytes[36..40], b"data");
    bytes[44..].as_chunks().0.iter().map(|sample| f32::from(i16::from_le_bytes(*sample)) / 32_768.0).collect()
}

/// Writes interleaved 16 kHz samples as 32-bit floats.
pub fn write_wav(path: &Path, channels: u16, samples: &[f32]) {
    let data = 4 * samples.len() as u32;
    let mut bytes = Vec::new();
    bytes.extend(b"RIFF");
    bytes.extend((36 + data).to_le_bytes());
    bytes.extend(b"WAVEfmt ");
    bytes.extend(16u32.to_le_bytes());
    bytes.extend(3u16.to_le_bytes());
    bytes.extend(channels.to_le_bytes());
    bytes.extend(16_000u32.to_le_bytes());
    bytes.extend((16_000 * 4 * u32::from(channels)).to_le_bytes());
    bytes.extend((4 * channels).to_le_bytes());
    bytes.extend(32u16.to_le_bytes());
    bytes.extend(b"data");
    bytes.extend(data.to_le_bytes());
    bytes.extend(samples.iter().flat_map(|sample| sample.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}
