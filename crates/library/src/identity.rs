//! Recognising a recording after it was renamed, moved or changed.

use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// Bytes that are hashed at each end of a file. Containers have there what
/// distinguishes recordings, and a film of 50 GB need not be read.
const HASHED: u64 = 1 << 20;

/// Identifies the content of a recording: its size and a hash of both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Size of the file.
    pub bytes: u64,
    /// Time of modification in milliseconds since 1970, if the file system has it.
    pub modified: Option<i64>,
    /// SHA-256 of the first and the last MiB.
    pub digest: [u8; 32],
}

/// Size and time of a file, which are known without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp {
    /// Size of the file.
    pub bytes: u64,
    /// Time of modification in milliseconds since 1970, if the file system has it.
    pub modified: Option<i64>,
}

impl FileStamp {
    /// The stamp of a file with this metadata.
    pub fn of(meta: &Metadata) -> Self {
        let modified = meta.modified().ok().and_then(|time| {
            let since = time.duration_since(UNIX_EPOCH).ok()?;
            i64::try_from(since.as_millis()).ok()
        });
        Self { bytes: meta.len(), modified }
    }
}

impl Identity {
    /// The identity of a file, of which at most 2 MiB are read.
    ///
    /// # Errors
    /// If the path is not a file's, or the file can't be read.
    pub fn of(file: &Path) -> io::Result<Self> {
        // Opening a pipe would wait for its writer.
        if !std::fs::metadata(file)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(file)?;
        let FileStamp { bytes, modified } = FileStamp::of(&file.metadata()?);
        let mut hash = Sha256::new();
        io::copy(&mut (&file).take(HASHED), &mut Sink(&mut hash))?;
        if bytes > HASHED {
            file.seek(SeekFrom::Start((bytes - HASHED).max(HASHED)))?;
            io::copy(&mut (&file).take(HASHED), &mut Sink(&mut hash))?;
        }
        Ok(Self { bytes, modified, digest: hash.finalize().into() })
    }

    /// Whether both are the same recording. The time of modification is not
    /// compared, since a copy or a restored backup has another one.
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
    fn a_change_at_either_end_or_of_the_size_is_another_recording() {
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
