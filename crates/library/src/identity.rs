use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// Hashed at each end of a file. Containers keep what tells recordings apart
/// there, and a film of 50 GB is not read twice for it.
const HASHED: u64 = 1 << 20;

/// What a file was when its job began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub modified: Option<i64>,
    /// SHA-256 of the first and the last MiB.
    pub digest: [u8; 32],
}

/// How a file looks from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub modified: Option<i64>,
}

impl Stamp {
    pub fn of(meta: &Metadata) -> Self {
        let modified = meta.modified().ok().and_then(|time| {
            let since = time.duration_since(UNIX_EPOCH).ok()?;
            i64::try_from(since.as_millis()).ok()
        });
        Self { bytes: meta.len(), modified }
    }
}

impl Identity {
    /// Reads at most 2 MiB.
    pub fn of(file: &Path) -> io::Result<Self> {
        let mut file = File::open(file)?;
        let Stamp { bytes, modified } = Stamp::of(&file.metadata()?);
        let mut hash = Sha256::new();
        io::copy(&mut (&file).take(HASHED), &mut Sink(&mut hash))?;
        if bytes > HASHED {
            file.seek(SeekFrom::Start((bytes - HASHED).max(HASHED)))?;
            io::copy(&mut (&file).take(HASHED), &mut Sink(&mut hash))?;
        }
        Ok(Self { bytes, modified, digest: hash.finalize().into() })
    }

    /// Whether both are the same recording. A copy or a backup that was played
    /// back has another time of modification and is.
    pub fn is_same_recording(&self, other: &Self) -> bool {
        self.bytes == other.bytes && self.digest == other.digest
    }
}

struct Sink<'a>(&'a mut Sha256);

impl io::Write for Sink<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_at_either_end_or_of_the_length_makes_another_recording() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.wav");
        for length in [0, 10, HASHED as usize, HASHED as usize + 1, 3 * HASHED as usize] {
            let mut bytes = vec![7u8; length];
            std::fs::write(&path, &bytes).unwrap();
            let before = Identity::of(&path).unwrap();
            assert!(before.is_same_recording(&Identity::of(&path).unwrap()), "{length}");
            for place in [0, length.saturating_sub(1)] {
                if length > 0 {
                    bytes[place] ^= 1;
                    std::fs::write(&path, &bytes).unwrap();
                    assert!(!before.is_same_recording(&Identity::of(&path).unwrap()), "{length} at {place}");
                    bytes[place] ^= 1;
                }
            }
            bytes.push(7);
            std::fs::write(&path, &bytes).unwrap();
            assert!(!before.is_same_recording(&Identity::of(&path).unwrap()), "{length} and one");
        }
    }
}
