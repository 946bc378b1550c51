//! What the tests against the reference share.

use std::path::{Path, PathBuf};

use candle_core::Device;
use memory::Precision;
use models::whisper::Whisper;

pub fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper")
}

pub fn load_starter() -> Whisper {
    Whisper::load(&starter(), &Device::Cpu, Precision::F32, &|| true).unwrap()
}

/// The json files of a folder of the reference: (name, content).
pub fn jsons(folder: &Path) -> Vec<(String, serde_json::Value)> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            (name, serde_json::from_str(&text).unwrap())
        })
        .collect()
}

/// Lower case, punctuation removed, as words.
pub fn normalised(text: &str) -> Vec<String> {
    let clean: String =
        text.to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    clean.split_whitespace().map(str::to_owned).collect()
}

/// Insertions, deletions and substitutions that make `found` of `truth`.
pub fn edit_distance(truth: &[String], found: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (i, word) in truth.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in found.iter().enumerate() {
            let substituted = diagonal + usize::from(word != other);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[found.len()]
}

/// Pairs of positions at which both say the same, longest common subsequence.
pub fn common<T: PartialEq>(a: &[T], b: &[T]) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    let mut length = vec![0u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            length[i * width + j] = if a[i] == b[j] {
                length[(i + 1) * width + j + 1] + 1
            } else {
                length[(i + 1) * width + j].max(length[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < a.len() && j < b.len() {
        if a[i] == b[j] {
            pairs.push((i, j));
            i += 1;
            j += 1;
        } else if length[(i + 1) * width + j] >= length[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

/// A WAV file of 16 bits at 16 kHz.
pub fn wav(samples: &[f32]) -> Vec<u8> {
    let bytes = 2 * samples.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(16_000u32.to_le_bytes());
    file.extend(32_000u32.to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(samples.iter().flat_map(|sample| ((sample * 32_767.0) as i16).to_le_bytes()));
    file
}
