//! A cache file per recording, so that reopening it needs no scan.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use audio::SeekIndex;
use serde::{Deserialize, Serialize};

use crate::Peaks;

/// Version of the file. Raised whenever a field changes its meaning, or its detail.
const VERSION: u32 = 2;
/// Most files of the folder; the oldest are removed. A file has at most 400 kB.
const MAX_FILES: usize = 200;

/// The results of scanning a recording.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecordingCache {
    version: u32,
    pub(crate) index: SeekIndex,
    pub(crate) peaks: Peaks,
}

impl RecordingCache {
    pub(crate) fn new(index: SeekIndex, peaks: Peaks) -> Self {
        Self { version: VERSION, index, peaks }
    }

    /// Reads a cache file; `None` if it is missing, damaged or of another version.
    pub(crate) fn load(file: &Path) -> Option<Self> {
        let cache: Self = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        (cache.version == VERSION && cache.index.is_complete()).then_some(cache)
    }

    /// Writes a temporary file, renames it and removes old files of the folder.
    pub(crate) fn save(&self, file: &Path) -> io::Result<()> {
        let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
        temporary.write_all(&serde_json::to_vec(self)?)?;
        temporary.persist(file).map_err(|error| error.error)?;
        remove_old_files(folder)
    }
}

fn remove_old_files(folder: &Path) -> io::Result<()> {
    let age = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<_> =
        fs::read_dir(folder)?.flatten().map(|entry| (age(&entry), entry.path())).collect();
    files.sort();
    for (_, old) in files.iter().take(files.len().saturating_sub(MAX_FILES)) {
        fs::remove_file(old)?;
    }
    Ok(())
}
