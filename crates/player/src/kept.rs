use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::SystemTime;

use audio::Index;
use serde::{Deserialize, Serialize};

use crate::Peaks;

/// Raised whenever a field changes its meaning.
const VERSION: u32 = 1;
/// Files of a folder; the oldest go. One is 400 kB at most.
const MOST_FILES: usize = 200;

/// What a pass over a recording learned, for the next time it is opened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    version: u32,
    pub(crate) index: Index,
    pub(crate) peaks: Peaks,
}

impl Kept {
    pub(crate) fn new(index: Index, peaks: Peaks) -> Self {
        Self { version: VERSION, index, peaks }
    }

    /// `None` where there is nothing of use.
    pub(crate) fn load(file: &Path) -> Option<Self> {
        let kept: Self = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
        (kept.version == VERSION && kept.index.is_complete()).then_some(kept)
    }

    /// Written beside, then renamed.
    pub(crate) fn save(&self, file: &Path) -> io::Result<()> {
        let folder = file.parent().ok_or(io::ErrorKind::InvalidInput)?;
        fs::create_dir_all(folder)?;
        let mut beside = tempfile::NamedTempFile::new_in(folder)?;
        beside.write_all(&serde_json::to_vec(self)?)?;
        beside.persist(file).map_err(|error| error.error)?;
        thin(folder)
    }
}

fn thin(folder: &Path) -> io::Result<()> {
    let age = |entry: &fs::DirEntry| {
        entry.metadata().and_then(|meta| meta.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<_> =
        fs::read_dir(folder)?.flatten().map(|entry| (age(&entry), entry.path())).collect();
    files.sort();
    for (_, old) in files.iter().take(files.len().saturating_sub(MOST_FILES)) {
        fs::remove_file(old)?;
    }
    Ok(())
}
