use serde::{Deserialize, Serialize};

/// At most; half of it at least, once there is as much sound.
const MOST_BUCKETS: usize = 4096;
/// Frames of a bucket at first.
const FIRST_BUCKET: u64 = 256;

/// The lowest and the highest sample of equal stretches of a recording, of all
/// channels. Stretches are joined as there come more, so that the size is
/// bounded without the length being known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// Of a stretch.
    frames: u64,
    /// Lowest, highest, lowest, ... in 128ths.
    values: Vec<i8>,
    #[serde(skip)]
    open: Option<(i16, i16)>,
    #[serde(skip)]
    counted: u64,
}

impl Default for Peaks {
    fn default() -> Self {
        Self { frames: FIRST_BUCKET, values: Vec::new(), open: None, counted: 0 }
    }
}

impl Peaks {
    /// Frames of a stretch.
    pub fn frames(&self) -> u64 {
        self.frames
    }

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

    /// Ends the stretch that is under way.
    pub(crate) fn close(&mut self) {
        if let Some((low, high)) = self.open.take() {
            self.values.extend([(low >> 8) as i8, (high >> 8) as i8]);
        }
        self.counted = 0;
        if self.values.len() >= 2 * MOST_BUCKETS {
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
    fn one_loud_sample_of_an_hour_is_seen_at_its_place() {
        let mut peaks = Peaks::default();
        let second = vec![0i16; 2 * 16_000];
        let mut loud = second.clone();
        loud[16_001] = -30_000;
        for number in 0..3600 {
            peaks.push(if number == 1234 { &loud } else { &second }, 2);
        }
        peaks.close();
        let buckets = peaks.values().len() / 2;
        assert!((MOST_BUCKETS / 2..=MOST_BUCKETS).contains(&buckets), "{buckets}");
        let at = peaks.values().iter().position(|value| *value != 0).unwrap();
        assert_eq!(peaks.values()[at], (-30_000i16 >> 8) as i8);
        let seconds = (at / 2) as f64 * peaks.frames() as f64 / 16_000.0;
        assert!((seconds - 1234.5).abs() < peaks.frames() as f64 / 16_000.0, "{seconds}");
        assert_eq!(peaks.values().iter().filter(|value| **value != 0).count(), 1);
    }
}
