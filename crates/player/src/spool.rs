//! Decoded samples on disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Decoded samples in an unnamed temporary file, which the system removes with
/// the process: for recordings in which seeking is not exact.
#[derive(Debug)]
pub(crate) struct Spool {
    state: Mutex<SpoolFile>,
    grown: Condvar,
}

#[derive(Debug)]
struct SpoolFile {
    file: File,
    /// Number of samples over all channels.
    samples: u64,
    ended: bool,
}

impl Spool {
    /// An empty spool.
    ///
    /// # Errors
    /// If the system's folder for temporary files can't be written to.
    pub(crate) fn new() -> io::Result<Self> {
        let state = SpoolFile { file: tempfile::tempfile()?, samples: 0, ended: false };
        Ok(Self { state: Mutex::new(state), grown: Condvar::new() })
    }

    /// Appends samples.
    pub(crate) fn push(&self, samples: &[i16]) -> io::Result<()> {
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let mut state = self.lock();
        let end = 2 * state.samples;
        state.file.seek(SeekFrom::Start(end))?;
        state.file.write_all(&bytes)?;
        state.samples += samples.len() as u64;
        self.grown.notify_all();
        Ok(())
    }

    /// Notes that all samples were pushed.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.grown.notify_all();
    }

    /// Appends `count` samples from the sample `from` on to `out`, and waits until
    /// they are decoded. At the end of the recording there are fewer.
    pub(crate) fn read(&self, from: u64, count: usize, out: &mut Vec<i16>) -> io::Result<()> {
        let mut state = self.lock();
        while state.samples < from + count as u64 && !state.ended {
            state = self.grown.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let count = (count as u64).min(state.samples.saturating_sub(from)) as usize;
        let mut bytes = vec![0; 2 * count];
        state.file.seek(SeekFrom::Start(2 * from))?;
        state.file.read_exact(&mut bytes)?;
        out.extend(bytes.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)));
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, SpoolFile> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
