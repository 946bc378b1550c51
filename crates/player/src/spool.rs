use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Decoded sound in a temporary file without a name, which ends with the
/// process: for recordings in which nothing but decoding leads to a place.
#[derive(Debug)]
pub(crate) struct Spool {
    state: Mutex<State>,
    grown: Condvar,
}

#[derive(Debug)]
struct State {
    file: File,
    /// Samples, channels counted singly.
    samples: u64,
    ended: bool,
}

impl Spool {
    /// # Errors
    /// Where the system's folder for temporary files cannot be written to.
    pub(crate) fn new() -> io::Result<Self> {
        let state = State { file: tempfile::tempfile()?, samples: 0, ended: false };
        Ok(Self { state: Mutex::new(state), grown: Condvar::new() })
    }

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

    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.grown.notify_all();
    }

    /// Appends samples from one on, up to `count`; waits for those that are
    /// still to come, and gives fewer at the end alone.
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

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
