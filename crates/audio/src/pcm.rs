//! Storage of a whole decoded recording.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::{AudioError, LogMel, Mel, SAMPLE_RATE, mel};

/// Two minutes. Longer recordings go to a file, so that memory does not grow with their length.
const SAMPLES_IN_MEMORY: u64 = 120 * SAMPLE_RATE as u64;
/// Samples of a block in memory and of a write (1 MB).
const BLOCK: usize = 1 << 18;

/// A whole recording as 16 kHz mono samples with random access. Up to two minutes
/// are in memory. Longer recordings are in an unnamed temporary file, which the
/// system removes with the process.
#[derive(Debug)]
pub struct Pcm {
    samples: u64,
    store: PcmStore,
}

#[derive(Debug)]
enum PcmStore {
    /// All blocks but the last are full.
    Memory(Vec<Vec<f32>>),
    /// Little-endian f32.
    File { file: File, folder: PathBuf },
}

impl Pcm {
    /// Number of samples.
    pub fn len(&self) -> u64 {
        self.samples
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Bytes of samples in memory, 0 if they are in a file.
    pub fn bytes_in_memory(&self) -> u64 {
        match &self.store {
            PcmStore::Memory(_) => self.samples * 4,
            PcmStore::File { .. } => 0,
        }
    }

    /// Most bytes of samples that any recording has in memory.
    pub const MAX_BYTES_IN_MEMORY: u64 = SAMPLES_IN_MEMORY * 4;

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.samples as f64 / f64::from(SAMPLE_RATE)
    }

    /// Fills `out` with the samples from `start` on. Beyond the end they are zero;
    /// before the start the signal is mirrored about its first sample (numpy's
    /// `reflect`).
    ///
    /// # Errors
    /// [`AudioError::Spool`] if the temporary file can't be read.
    pub fn read(&self, start: i64, out: &mut [f32]) -> Result<(), AudioError> {
        let before = usize::try_from(start.saturating_neg().max(0)).unwrap_or(usize::MAX).min(out.len());
        if before > 0 {
            // Sample -k is sample k: read forward, then reverse.
            let mirrored_first = start.unsigned_abs() + 1 - before as u64;
            let (mirror, _) = out.split_at_mut(before);
            self.read_forward(mirrored_first, mirror)?;
            mirror.reverse();
        }
        self.read_forward(u64::try_from(start).unwrap_or(0), &mut out[before..])
    }

    fn read_forward(&self, start: u64, out: &mut [f32]) -> Result<(), AudioError> {
        let available =
            usize::try_from(self.samples.saturating_sub(start)).unwrap_or(usize::MAX).min(out.len());
        let (out, beyond) = out.split_at_mut(available);
        beyond.fill(0.0);
        match &self.store {
            PcmStore::Memory(blocks) => {
                let mut position = start as usize;
                let mut rest = out;
                while !rest.is_empty() {
                    let from = &blocks[position / BLOCK][position % BLOCK..];
                    let count = from.len().min(rest.len());
                    rest[..count].copy_from_slice(&from[..count]);
                    position += count;
                    rest = &mut rest[count..];
                }
                Ok(())
            }
            PcmStore::File { file, folder } => {
                let mut bytes = vec![0; 4 * out.len().min(BLOCK)];
                let mut position = start * 4;
                for piece in out.chunks_mut(BLOCK) {
                    let bytes = &mut bytes[..4 * piece.len()];
                    read_at(file, position, bytes)
                        .map_err(|source| AudioError::Spool { folder: folder.clone(), source })?;
                    for (sample, bytes) in piece.iter_mut().zip(bytes.as_chunks().0) {
                        *sample = f32::from_le_bytes(*bytes);
                    }
                    position += bytes.len() as u64;
                }
                Ok(())
            }
        }
    }

    /// Number of frames of 10 ms that the recording fills. The 30 s of silence after
    /// it add 3000 more to its spectrogram.
    pub fn content_frames(&self) -> usize {
        (self.samples / mel::HOP as u64) as usize
    }

    /// Frames `first .. first + count` of the recording's spectrogram, `[n_mels,
    /// count]`, as `transcribe()` of openai/whisper computes it, normalised with
    /// `maximum`, the log10 maximum of the whole. The samples around the window are
    /// the real ones, the start is mirrored, and 30 s of silence follow the end.
    /// Frames after those are 0.0.
    ///
    /// # Errors
    /// [`AudioError::Spool`] if the temporary file can't be read.
    pub fn log_mel(&self, mel: &LogMel, maximum: f32, first: usize, count: usize) -> Result<Mel, AudioError> {
        let existing = (self.content_frames() + mel::WINDOW_FRAMES).saturating_sub(first).min(count);
        let mut spectrogram = if existing == 0 {
            Mel::zeros(mel.n_mels(), 0)
        } else {
            let mut padded = vec![0.0; (existing - 1) * mel::HOP + mel::N_FFT];
            self.read((first * mel::HOP) as i64 - (mel::N_FFT / 2) as i64, &mut padded)?;
            mel.log10(&padded)
        };
        spectrogram.normalise(maximum);
        if existing == count {
            return Ok(spectrogram);
        }
        let mut filled = Mel::zeros(mel.n_mels(), count);
        for band in 0..mel.n_mels() {
            filled.data[band * count..band * count + existing]
                .copy_from_slice(&spectrogram.data[band * existing..(band + 1) * existing]);
        }
        Ok(filled)
    }

    /// A window of `frames` frames from `first` on as the network's input: as
    /// [`Pcm::log_mel`], but frames after the end of the recording are 0.0 and not
    /// silence. `transcribe()` cuts its last window at the end of the recording and
    /// pads the normalised frames with 0.0 (`pad_or_trim`).
    ///
    /// # Errors
    /// [`AudioError::Spool`] if the temporary file can't be read.
    pub fn log_mel_window(
        &self,
        mel: &LogMel,
        maximum: f32,
        first: usize,
        frames: usize,
    ) -> Result<Mel, AudioError> {
        let mut window = self.log_mel(mel, maximum, first, frames)?;
        window.fill_from(self.content_frames().saturating_sub(first), 0.0);
        Ok(window)
    }
}

/// Collects decoded samples into a [`Pcm`].
#[derive(Debug)]
pub(crate) struct PcmWriter {
    samples: u64,
    blocks: Vec<Vec<f32>>,
    file: Option<File>,
    folder: PathBuf,
    limit: u64,
}

impl PcmWriter {
    /// `folder` is for the temporary file of a long recording; `None` is the system's.
    pub(crate) fn new(folder: Option<&Path>) -> Self {
        let folder = folder.map_or_else(std::env::temp_dir, Path::to_path_buf);
        Self { samples: 0, blocks: Vec::new(), file: None, folder, limit: SAMPLES_IN_MEMORY }
    }

    pub(crate) fn push(&mut self, mut samples: &[f32]) -> Result<(), AudioError> {
        self.samples += samples.len() as u64;
        while !samples.is_empty() {
            if self.blocks.last().is_none_or(|block| block.len() == BLOCK) {
                if self.file.is_some() || self.samples > self.limit {
                    self.spill().map_err(|source| self.error(source))?;
                }
                self.blocks.push(Vec::with_capacity(BLOCK));
            }
            if let Some(block) = self.blocks.last_mut() {
                let count = samples.len().min(BLOCK - block.len());
                block.extend_from_slice(&samples[..count]);
                samples = &samples[count..];
            }
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<Pcm, AudioError> {
        if self.file.is_some() {
            self.spill().map_err(|source| self.error(source))?;
        }
        let store = match self.file {
            Some(file) => PcmStore::File { file, folder: self.folder },
            None => PcmStore::Memory(self.blocks),
        };
        Ok(Pcm { samples: self.samples, store })
    }

    /// Moves all blocks from memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(&self.folder)?,
        };
        let mut bytes = Vec::with_capacity(4 * BLOCK);
        for block in self.blocks.drain(..) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|sample| sample.to_le_bytes()));
            file.write_all(&bytes)?;
        }
        self.file = Some(file);
        Ok(())
    }

    fn error(&self, source: io::Error) -> AudioError {
        AudioError::Spool { folder: self.folder.clone(), source }
    }
}

#[cfg(unix)]
fn read_at(file: &File, position: u64, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, position)
}

#[cfg(windows)]
fn read_at(file: &File, mut position: u64, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = std::os::windows::fs::FileExt::seek_read(file, bytes, position)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        position += count as u64;
        bytes = &mut bytes[count..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ramp(samples: usize, limit: u64) -> Pcm {
        let mut writer = PcmWriter::new(None);
        writer.limit = limit;
        let all: Vec<f32> = (0..samples).map(|i| i as f32).collect();
        for piece in all.chunks(70_001) {
            writer.push(piece).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn reads_the_same_from_memory_and_from_a_file() {
        let samples = 3 * BLOCK + 17;
        for limit in [u64::MAX, BLOCK as u64 + 5, 0] {
            let pcm = ramp(samples, limit);
            assert_eq!(matches!(pcm.store, PcmStore::File { .. }), limit != u64::MAX);
            assert_eq!(pcm.len(), samples as u64);
            for start in [0, 1, BLOCK - 3, 2 * BLOCK - 1, samples - 5] {
                let mut out = [0.0; 10];
                pcm.read(start as i64, &mut out).unwrap();
                let expected = (start..start + 10).map(|i| if i < samples { i as f32 } else { 0.0 });
                assert!(out.iter().copied().eq(expected), "from {start}: {out:?}");
            }
        }
    }

    #[test]
    fn mirrors_the_start_and_has_zeros_behind_the_end() {
        let pcm = ramp(4, u64::MAX);
        for (start, expected) in [
            (-2, vec![2.0, 1.0, 0.0, 1.0]),
            (-3, vec![3.0, 2.0, 1.0, 0.0, 1.0, 2.0, 3.0, 0.0]),
            (-6, vec![0.0, 0.0, 0.0, 3.0]),
            (-3, vec![3.0, 2.0]),
            (2, vec![2.0, 3.0, 0.0]),
            (9, vec![0.0, 0.0]),
        ] {
            let mut out = vec![-1.0; expected.len()];
            pcm.read(start, &mut out).unwrap();
            assert_eq!(out, expected, "from {start}");
        }
    }
}
