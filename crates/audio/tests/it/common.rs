use std::path::{Path, PathBuf};
use std::process::Command;

use audio::{OpenOptions, Reader};

/// Names the test that runs in a process of its own.
const CHILD: &str = "AUDIO_TEST_CHILD";

/// Runs the test `name` once more in a process of its own, where the variables
/// are set, and fails where it fails there. False in that process: the caller
/// is to do its work.
pub fn runs_in_child(name: &str, variables: &[(&str, &str)]) -> bool {
    if std::env::var_os(CHILD).is_some_and(|child| child == name) {
        return false;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--include-ignored"])
        .env(CHILD, name)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // Indented, so that its result is not taken for another of this process.
    text(&output.stdout).lines().for_each(|line| println!("  {line}"));
    assert!(output.status.success(), "{name} failed in its own process: {}", text(&output.stderr));
    true
}

/// The `ffmpeg` that scripts/setup.sh installs.
pub fn ffmpeg() -> PathBuf {
    audio::find_ffmpeg().expect("these tests need ffmpeg: run scripts/setup.sh test")
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

/// One f32 tensor of a safetensors file: 8 bytes length, a JSON header, data.
pub fn tensor(path: &Path, name: &str, shape: &[usize]) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let entries: serde_json::Value = serde_json::from_slice(&bytes[8..header]).unwrap();
    let entry = &entries[name];
    assert_eq!(entry["dtype"], "F32");
    assert_eq!(serde_json::from_value::<Vec<usize>>(entry["shape"].clone()).unwrap(), shape);
    let offsets: Vec<usize> = serde_json::from_value(entry["data_offsets"].clone()).unwrap();
    bytes[header + offsets[0]..header + offsets[1]]
        .as_chunks()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect()
}
