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
