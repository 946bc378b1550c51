//! The layout of a virtual WAV file.

use std::ops::Range;

/// Bytes of the file's header.
pub(crate) const HEADER: u64 = 44;
/// Most bytes of samples. Sizes in the header are 32 bits and include the header itself.
const MAX_BYTES: u64 = u32::MAX as u64 - 1024;

/// The form of a virtual WAV file of 16-bit samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Wave {
    pub(crate) rate: u32,
    pub(crate) channels: usize,
    pub(crate) frames: u64,
    /// Number of frames of the recording that are averaged into one, over all
    /// channels. More than one only if the file would be too long otherwise.
    pub(crate) joined: u64,
    source_channels: usize,
}

impl Wave {
    pub(crate) fn new(rate: u32, channels: usize, frames: u64) -> Self {
        Self::within(rate, channels, frames, MAX_BYTES)
    }

    fn within(rate: u32, channels: usize, frames: u64, most: u64) -> Self {
        let whole = Self { rate, channels, frames, joined: 1, source_channels: channels };
        if whole.data() <= most {
            return whole;
        }
        let joined = (2 * frames).div_ceil(most).max(1);
        let rate = (f64::from(rate) / joined as f64).round() as u32;
        Self { rate, channels: 1, frames: frames / joined, joined, source_channels: channels }
    }

    fn block(&self) -> u64 {
        2 * self.channels as u64
    }

    fn data(&self) -> u64 {
        self.frames * self.block()
    }

    /// Bytes of the file.
    pub(crate) fn total(&self) -> u64 {
        HEADER + self.data()
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.frames as f64 / f64::from(self.rate)
    }

    pub(crate) fn bytes_per_second(&self) -> f64 {
        (self.block() * u64::from(self.rate)) as f64
    }

    pub(crate) fn header(&self) -> [u8; HEADER as usize] {
        let mut header = [0; HEADER as usize];
        let mut at = 0;
        let mut put = |bytes: &[u8]| {
            header[at..at + bytes.len()].copy_from_slice(bytes);
            at += bytes.len();
        };
        let data = self.data() as u32;
        put(b"RIFF");
        put(&(data + 36).to_le_bytes());
        put(b"WAVEfmt ");
        put(&16u32.to_le_bytes());
        put(&1u16.to_le_bytes());
        put(&(self.channels as u16).to_le_bytes());
        put(&self.rate.to_le_bytes());
        put(&(self.bytes_per_second() as u32).to_le_bytes());
        put(&(self.block() as u16).to_le_bytes());
        put(&16u16.to_le_bytes());
        put(b"data");
        put(&data.to_le_bytes());
        header
    }

    /// The frames that contain `bytes`, which lie after the header, and the range of
    /// these bytes within the bytes of the frames.
    pub(crate) fn frames_of(&self, bytes: &Range<u64>) -> (Range<u64>, Range<usize>) {
        let (start, end) = (bytes.start - HEADER, bytes.end - HEADER);
        let frames = start / self.block()..end.div_ceil(self.block());
        let skip = (start - frames.start * self.block()) as usize;
        (frames, skip..skip + (end - start) as usize)
    }

    /// Turns samples of the recording into samples of the file, by averaging if needed.
    pub(crate) fn shape(&self, samples: &mut Vec<i16>) {
        if self.joined == 1 && self.channels == self.source_channels {
            return;
        }
        let together = self.joined as usize * self.source_channels;
        let mean = |samples: &[i16]| {
            (samples.iter().map(|sample| i64::from(*sample)).sum::<i64>() / samples.len() as i64) as i16
        };
        *samples = samples.chunks(together).map(mean).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_recordings_are_averaged_and_keep_their_duration() {
        for (rate, channels, hours, expected) in [
            (44_100, 2, 3, (44_100, 2, 1)),
            (44_100, 2, 7, (44_100, 1, 1)),
            (48_000, 2, 24, (24_000, 1, 2)),
            (96_000, 1, 24, (24_000, 1, 4)),
            (16_000, 1, 30, (16_000, 1, 1)),
        ] {
            let wave = Wave::new(rate, channels, 3600 * hours * u64::from(rate));
            assert_eq!((wave.rate, wave.channels, wave.joined), expected, "{rate} {channels} {hours}");
            assert!(wave.total() <= u64::from(u32::MAX));
            assert!((wave.seconds() - 3600.0 * hours as f64).abs() < 0.01, "{}", wave.seconds());
        }
    }

    #[test]
    fn averaged_samples_are_means() {
        let wave = Wave::within(48_000, 2, 6, 6);
        assert_eq!((wave.channels, wave.joined, wave.frames), (1, 2, 3));
        let mut samples = vec![1, 3, 5, 7, -10, -10, 10, 10, 0, 0, 0, 4];
        wave.shape(&mut samples);
        assert_eq!(samples, [4, 0, 1]);
    }

    #[test]
    fn bytes_map_to_frames() {
        let wave = Wave::new(48_000, 2, 1000);
        assert_eq!(wave.frames_of(&(44..48)), (0..1, 0..4));
        assert_eq!(wave.frames_of(&(45..53)), (0..3, 1..9));
        assert_eq!(wave.frames_of(&(4043..4044)), (999..1000, 3..4));
    }
}
