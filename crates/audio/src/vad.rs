//! Voice activity detection: probabilities of speech per 16 ms, and regions of
//! speech from them. The constants favour recall, because speech outside of
//! regions is never transcribed, while a pause within one costs little.

use earshot::Detector;

use crate::{AudioError, Pcm, SAMPLE_RATE};

/// Samples per decision of the detector: 16 ms.
const FRAME: usize = 256;
/// Samples of the beginning, one second, that the detector gets in reverse before
/// the recording, because its first probabilities are uncertain.
const WARM_UP: usize = 62 * FRAME;

/// Speech continues while the probability is above the threshold minus this.
const HYSTERESIS: f32 = 0.15;
/// Frames of the longest dip of the probability that does not end a run of speech: 0.3 s.
const MINIMUM_DIP: usize = frames(0.3);
/// Frames of the shortest run that counts as speech: 0.1 s. Shorter ones are clicks.
const MINIMUM_SPEECH: usize = frames(0.1);
/// Frames of the shortest pause that ends a region: 2 s. People pause as long within
/// a sentence.
const MINIMUM_SILENCE: usize = frames(2.0);
/// Frames added before and after each region: 0.4 s, for faint first and last sounds.
const PADDING: usize = frames(0.4);

/// Recordings whose loud frames are below this level, in decibels of full scale, are
/// amplified to [`LOUD_ENOUGH`], because the detector expects usual levels.
const TOO_QUIET: f64 = -45.0;
const LOUD_ENOUGH: f64 = -25.0;
/// The level of a recording is the one that this share of its frames exceeds.
const LOUD_SHARE: f64 = 0.05;
/// Frames below this level, in decibels, are digital silence and do not count.
const SILENCE: f64 = -100.0;

const fn frames(seconds: f64) -> usize {
    (seconds * SAMPLE_RATE as f64 / FRAME as f64 + 0.5) as usize
}

/// A range of samples of the 16 kHz stream, `start <= t < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpeechRegion {
    /// First sample.
    pub start: u64,
    /// The sample after the last one.
    pub end: u64,
}

impl SpeechRegion {
    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / f64::from(SAMPLE_RATE)
    }
}

/// Computes the probability of speech per 16 ms and the level of the recording.
pub(crate) struct SpeechDetector {
    detector: Box<Detector>,
    gain: f32,
    /// The beginning, until there is enough for the warm-up; `None` afterwards.
    beginning: Option<Vec<f32>>,
    pending: Vec<f32>,
    probabilities: Vec<f32>,
    /// Number of frames for each whole decibel below full scale.
    levels: [u64; -SILENCE as usize],
}

/// The regions of speech of a recording.
#[derive(Debug, Default)]
pub(crate) struct SpeechRegions {
    /// Padded and joined over pauses: the part to transcribe.
    pub(crate) regions: Vec<SpeechRegion>,
    /// Without padding and pauses.
    pub(crate) voiced: Vec<SpeechRegion>,
}

impl SpeechDetector {
    pub(crate) fn new() -> Self {
        Self::with_gain(1.0)
    }

    fn with_gain(gain: f32) -> Self {
        Self {
            detector: Detector::default_boxed(),
            gain,
            beginning: Some(Vec::with_capacity(WARM_UP)),
            pending: Vec::with_capacity(FRAME),
            probabilities: Vec::new(),
            levels: [0; -SILENCE as usize],
        }
    }

    pub(crate) fn push(&mut self, samples: &[f32]) {
        if let Some(beginning) = &mut self.beginning {
            beginning.extend_from_slice(samples);
            if beginning.len() >= WARM_UP {
                self.begin();
            }
        } else {
            self.detect(samples);
        }
    }

    fn begin(&mut self) {
        let Some(beginning) = self.beginning.take() else { return };
        let mut backwards: Vec<f32> = beginning.iter().take(WARM_UP).rev().copied().collect();
        backwards.truncate(backwards.len() / FRAME * FRAME);
        self.detect(&backwards);
        self.probabilities.clear();
        self.levels.fill(0);
        self.detect(&beginning);
    }

    fn detect(&mut self, mut samples: &[f32]) {
        while !samples.is_empty() {
            let count = samples.len().min(FRAME - self.pending.len());
            self.pending.extend(samples[..count].iter().map(|sample| (sample * self.gain).clamp(-1.0, 1.0)));
            samples = &samples[count..];
            if self.pending.len() == FRAME {
                self.probabilities.push(self.detector.predict_f32(&self.pending));
                let energy = self.pending.iter().map(|x| x * x).sum::<f32>() / FRAME as f32;
                let decibels = 10.0 * f64::from(energy).log10();
                if decibels > SILENCE {
                    self.levels[(-decibels) as usize] += 1;
                }
                self.pending.clear();
            }
        }
    }

    /// The regions of the recording that was pushed. `pcm` is the same recording,
    /// which is analysed again, amplified, if it is very quiet.
    pub(crate) fn finish(mut self, threshold: f32, pcm: &Pcm) -> Result<SpeechRegions, AudioError> {
        self.complete();
        if let Some(level) = self.loud_level().filter(|level| *level < TOO_QUIET) {
            let gain = 10f64.powf((LOUD_ENOUGH - level) / 20.0);
            self = Self::with_gain(gain as f32);
            let mut block = vec![0.0; 1 << 16];
            let mut position = 0;
            while position < pcm.len() {
                let count = usize::try_from(pcm.len() - position).unwrap_or(usize::MAX).min(block.len());
                pcm.read(position as i64, &mut block[..count])?;
                self.push(&block[..count]);
                position += count as u64;
            }
            self.complete();
        }
        Ok(find(&self.probabilities, threshold, pcm.len()))
    }

    /// Completes the last frame with silence.
    fn complete(&mut self) {
        self.begin();
        if !self.pending.is_empty() {
            self.detect(&vec![0.0; FRAME - self.pending.len()]);
        }
    }

    /// The level in decibels that one frame in twenty exceeds, without digital silence.
    fn loud_level(&self) -> Option<f64> {
        let mut left = (self.levels.iter().sum::<u64>() as f64 * LOUD_SHARE).ceil() as u64;
        self.levels
            .iter()
            .position(|count| {
                let reached = *count >= left && left > 0;
                left = left.saturating_sub(*count);
                reached
            })
            .map(|decibels| -(decibels as f64))
    }
}

fn find(probabilities: &[f32], threshold: f32, samples: u64) -> SpeechRegions {
    let mut voiced: Vec<(usize, usize)> = Vec::new();
    let mut start = None;
    for (frame, probability) in probabilities.iter().copied().chain([f32::NEG_INFINITY]).enumerate() {
        match start {
            None if probability >= threshold => start = Some(frame),
            Some(first) if probability < threshold - HYSTERESIS => {
                voiced.push((first, frame));
                start = None;
            }
            _ => {}
        }
    }
    join(&mut voiced, MINIMUM_DIP);
    voiced.retain(|(start, end)| end - start >= MINIMUM_SPEECH);
    let mut regions = voiced.clone();
    join(&mut regions, MINIMUM_SILENCE);
    for (start, end) in &mut regions {
        *start = start.saturating_sub(PADDING);
        *end += PADDING;
    }
    let in_samples = |runs: Vec<(usize, usize)>| {
        let region = |(start, end): (usize, usize)| SpeechRegion {
            start: (start * FRAME) as u64,
            end: ((end * FRAME) as u64).min(samples),
        };
        runs.into_iter().map(region).filter(|region| region.start < region.end).collect()
    };
    SpeechRegions { regions: in_samples(regions), voiced: in_samples(voiced) }
}

/// Joins runs that are less than `gap` frames apart.
fn join(runs: &mut Vec<(usize, usize)>, gap: usize) {
    runs.dedup_by(|next, run| {
        let near = next.0 - run.1 < gap;
        if near {
            run.1 = next.1;
        }
        near
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs of (seconds, probability) to regions in tenths of a second.
    fn regions(runs: &[(f64, f32)]) -> Vec<(u64, u64)> {
        let probabilities: Vec<f32> =
            runs.iter().flat_map(|(seconds, p)| std::iter::repeat_n(*p, frames(*seconds))).collect();
        let samples = (probabilities.len() * FRAME) as u64;
        let tenths = |samples: u64| (samples as f64 / 1600.0).round() as u64;
        find(&probabilities, 0.5, samples).regions.iter().map(|r| (tenths(r.start), tenths(r.end))).collect()
    }

    #[test]
    fn regions_are_padded_and_joined_by_the_constants() {
        for (name, runs, expected) in [
            ("nothing", vec![(5.0, 0.2)], vec![]),
            ("padded", vec![(2.0, 0.1), (1.0, 0.9), (2.0, 0.1)], vec![(16, 34)]),
            ("a click", vec![(2.0, 0.1), (0.064, 0.9), (2.0, 0.1)], vec![]),
            ("clipped at the ends", vec![(1.0, 0.9)], vec![(0, 10)]),
            ("faint but going on", vec![(2.0, 0.1), (1.0, 0.6), (3.0, 0.4), (2.0, 0.1)], vec![(16, 64)]),
            ("faint from the start", vec![(2.0, 0.1), (3.0, 0.45), (2.0, 0.1)], vec![]),
            ("short pause", vec![(1.0, 0.9), (1.8, 0.1), (1.0, 0.9)], vec![(0, 38)]),
            ("long pause", vec![(1.0, 0.9), (2.4, 0.1), (1.0, 0.9)], vec![(0, 14), (30, 44)]),
        ] {
            assert_eq!(regions(&runs), expected, "{name}");
        }
    }
}
