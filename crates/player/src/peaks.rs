//! The peaks of a waveform.

use serde::{Deserialize, Serialize};

/// Most stretches of a recording, enough to look at a few minutes of three hours. A long one has at
/// least half as many.
const MAX_STRETCHES: usize = 65_536;
/// Frames of a stretch before stretches are joined.
const FIRST_STRETCH: u64 = 256;

/// The lowest and the highest sample, over all channels, of equal stretches of a
/// recording. Pairs of stretches are joined when there are too many, so that
/// the size is bounded although the length is not known in advance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// Frames of a stretch.
    frames: u64,
    /// Lowest, highest, lowest, ... in units of 1/128 of full scale.
    values: Vec<i8>,
    #[serde(skip)]
    open: Option<(i16, i16)>,
    #[serde(skip)]
    counted: u64,
}

impl Default for Peaks {
    fn default() -> Self {
        Self { frames: FIRST_STRETCH, values: Vec::new(), open: None, counted: 0 }
    }
}

impl Peaks {
    /// Number of frames in a stretch.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Lowest and highest sample of each stretch in turn, in units of 1/128 of full scale.
    pub fn values(&self) -> &[i8] {
        &self.values
    }

    pub(crate) fn push(&mut self, samples: &[i16], channels: usize) {
        for frame in samples.chunks(channels) {
            for sample in frame {
                let (low, high) = self.open.unwrap_or((*sample, *sample));
                self.open = Some((low.min(*sample), high.max(*sample)));
            }
            self.counted += 1;
            if self.counted == self.frames {
                self.close();
            }
        }
    }

    /// Ends the current stretch, even if it is incomplete.
    pub(crate) fn close(&mut self) {
        if let Some((low, high)) = self.open.take() {
            self.values.extend([(low >> 8) as i8, (high >> 8) as i8]);
        }
        self.counted = 0;
        if self.values.len() >= 2 * MAX_STRETCHES {
            let (pairs, _) = self.values.as_chunks::<4>();
            self.values = pairs.iter().flat_map(|[a, b, c, d]| [*a.min(c), *b.max(d)]).collect();
            self.frames *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loud_sample_in_an_hour_is_found_at_its_time() {
        let mut peaks = Peaks::default();
        let second = vec![0i16; 2 * 16_000];
        let mut loud = second.clone();
        loud[16_001] = -30_000;
        for number in 0..3600 {
            peaks.push(if number == 1234 { &loud } else { &second }, 2);
        }
        peaks.close();
        let stretches = peaks.values().len() / 2;
        assert!((MAX_STRETCHES / 2..=MAX_STRETCHES).contains(&stretches), "{stretches}");
        let at = peaks.values().iter().position(|value| *value != 0).unwrap();
        assert_eq!(peaks.values()[at], (-30_000i16 >> 8) as i8);
        let seconds = (at / 2) as f64 * peaks.frames() as f64 / 16_000.0;
        assert!((seconds - 1234.5).abs() < peaks.frames() as f64 / 16_000.0, "{seconds}");
        assert_eq!(peaks.values().iter().filter(|value| **value != 0).count(), 1);
    }
}
