use earshot::Detector;

/// Samples per decision of the detector: 16 ms.
pub(crate) const FRAME: usize = 256;

/// Speech shorter than this is taken for a click, in frames (96 ms).
const MINIMUM_SPEECH: usize = 6;
/// A pause shorter than this does not end a region, in frames (0.5 s).
const MINIMUM_SILENCE: usize = 32;
/// Kept before and after each region, in frames (0.24 s).
const PADDING: usize = 15;
/// Speech goes on while the probability is above the threshold less this.
const HYSTERESIS: f32 = 0.15;

/// A range of samples of the 16 kHz stream, `start <= t < end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub start: u64,
    pub end: u64,
}

impl Region {
    pub fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / f64::from(crate::SAMPLE_RATE)
    }
}

/// Collects the probability of speech per 16 ms.
pub(crate) struct VoiceActivity {
    detector: Box<Detector>,
    pending: Vec<f32>,
    probabilities: Vec<f32>,
}

impl VoiceActivity {
    pub(crate) fn new() -> Self {
        Self {
            detector: Detector::default_boxed(),
            pending: Vec::with_capacity(FRAME),
            probabilities: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, mut samples: &[f32]) {
        while !samples.is_empty() {
            let count = samples.len().min(FRAME - self.pending.len());
            self.pending.extend(samples[..count].iter().map(|sample| sample.clamp(-1.0, 1.0)));
            samples = &samples[count..];
            if self.pending.len() == FRAME {
                self.probabilities.push(self.detector.predict_f32(&self.pending));
                self.pending.clear();
            }
        }
    }

    /// Regions of speech in a recording of `samples` samples, in order, not touching.
    pub(crate) fn finish(mut self, threshold: f32, samples: u64) -> Vec<Region> {
        if !self.pending.is_empty() {
            self.pending.resize(FRAME, 0.0);
            self.probabilities.push(self.detector.predict_f32(&self.pending));
        }
        regions(&self.probabilities, threshold, samples)
    }
}

fn regions(probabilities: &[f32], threshold: f32, samples: u64) -> Vec<Region> {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    let mut start = None;
    for (frame, probability) in probabilities.iter().copied().chain([0.0]).enumerate() {
        match start {
            None if probability >= threshold => start = Some(frame),
            Some(first) if probability < threshold - HYSTERESIS || frame == probabilities.len() => {
                runs.push((first, frame));
                start = None;
            }
            _ => {}
        }
    }
    runs.dedup_by(|next, run| {
        let near = next.0 - run.1 < MINIMUM_SILENCE;
        if near {
            run.1 = next.1;
        }
        near
    });
    runs.retain(|(start, end)| end - start >= MINIMUM_SPEECH);
    let mut regions: Vec<Region> = Vec::new();
    for (start, end) in runs {
        let start = (start.saturating_sub(PADDING) * FRAME) as u64;
        let end = (((end + PADDING) * FRAME) as u64).min(samples);
        match regions.last_mut() {
            Some(last) if last.end >= start => last.end = end,
            _ if start < end => regions.push(Region { start, end }),
            _ => {}
        }
    }
    regions
}
