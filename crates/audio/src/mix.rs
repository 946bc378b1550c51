//! Mixing several channels into one.

use crate::decoded::DecodedPiece;

/// If the mix is quieter than its channels by more than this, opposite phases
/// cancel each other out.
const PHASE_LOSS_DECIBELS: f64 = 10.0;
/// Samples are limited to this. Only damaged files have larger ones, which would
/// overflow in later computations.
const LOUDEST: f32 = 65_536.0;

/// Mixes channels into one and measures how much energy the mix loses.
#[derive(Debug, Default)]
pub(crate) struct Mixer {
    channel: Option<usize>,
    /// Sum of squares of each channel.
    energies: Vec<f64>,
    /// Sum of squares of the mix.
    mixed: f64,
}

impl Mixer {
    /// A mixer that selects `channel`, or averages all if that is `None`.
    pub(crate) fn new(channel: Option<usize>) -> Self {
        Self { channel, ..Self::default() }
    }

    /// Replaces `out` by one sample per frame. All samples are finite.
    pub(crate) fn mix(&mut self, decoded: &DecodedPiece, out: &mut Vec<f32>) {
        out.clear();
        let planes = &decoded.planes;
        match (self.channel, planes.as_slice()) {
            (_, []) => {}
            (_, [only]) => out.extend_from_slice(only),
            (Some(channel), _) => out.extend_from_slice(&planes[channel.min(planes.len() - 1)]),
            (None, _) => self.mean(decoded, out),
        }
        for sample in out {
            *sample = if sample.is_nan() { 0.0 } else { sample.clamp(-LOUDEST, LOUDEST) };
        }
    }

    fn mean(&mut self, decoded: &DecodedPiece, out: &mut Vec<f32>) {
        let speaking = |plane: &usize| decoded.low_frequency != Some(*plane);
        let planes: Vec<&[f32]> = (0..decoded.planes.len())
            .filter(speaking)
            .map(|plane| decoded.planes[plane].as_slice())
            .collect();
        self.energies.resize(decoded.planes.len().max(self.energies.len()), 0.0);
        out.resize(decoded.frames(), 0.0);
        let share = 1.0 / planes.len() as f32;
        for plane in &planes {
            for (sample, value) in out.iter_mut().zip(*plane) {
                *sample += value * share;
            }
        }
        for (energy, plane) in self.energies.iter_mut().zip(&decoded.planes) {
            *energy += sum_of_squares(plane);
        }
        if let Some(low) = decoded.low_frequency {
            self.energies[low] = 0.0;
        }
        self.mixed += sum_of_squares(out);
    }

    /// If the mix so far has lost more than 10 dB against its channels: the loudest
    /// channel, and the loss in decibels. For two channels the loss is relative to
    /// their mean energy. For more it is relative to less, as a voice in only one
    /// of many channels is quieter in the mix without any cancellation.
    pub(crate) fn phase_loss(&self) -> Option<(usize, f64)> {
        let channels = self.energies.iter().filter(|energy| **energy > 0.0).count();
        if channels < 2 {
            return None;
        }
        let reference = 2.0 * self.energies.iter().sum::<f64>() / (channels * channels) as f64;
        let loss = 10.0 * (reference / self.mixed.max(f64::MIN_POSITIVE)).log10();
        let loudest =
            (0..self.energies.len()).rev().max_by(|a, b| self.energies[*a].total_cmp(&self.energies[*b]))?;
        (loss > PHASE_LOSS_DECIBELS).then_some((loudest, loss))
    }
}

fn sum_of_squares(samples: &[f32]) -> f64 {
    let mut sum = 0.0;
    // Sums of short runs in f32 are fast and accurate enough; they are added in f64.
    for run in samples.chunks(256) {
        let energy: f32 = run.iter().map(|x| x * x).sum();
        if energy.is_finite() {
            sum += f64::from(energy);
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mixed(planes: Vec<Vec<f32>>) -> Mixer {
        let mut mixer = Mixer::new(None);
        mixer.mix(&DecodedPiece { rate: 16_000, planes, low_frequency: None }, &mut Vec::new());
        mixer
    }

    #[test]
    fn only_cancellation_counts_as_loss() {
        let voice: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.7).sin()).collect();
        let other: Vec<f32> = (0..1000).map(|i| (i as f32 * 0.31).cos() * 0.8).collect();
        let times = |factor: f32| voice.iter().map(|x| x * factor).collect::<Vec<f32>>();
        let silent = vec![0.0; 1000];
        for (name, planes, expected) in [
            ("equal", vec![voice.clone(), voice.clone()], None),
            ("inverted", vec![voice.clone(), times(-1.0)], Some(0)),
            ("inverted, the right louder", vec![times(-0.9), voice.clone()], Some(1)),
            ("one silent", vec![voice.clone(), silent.clone()], None),
            ("different", vec![voice.clone(), other.clone()], None),
            ("half inverted", vec![voice.clone(), times(-0.2)], None),
            ("both silent", vec![silent.clone(), silent.clone()], None),
            (
                "one of six",
                vec![silent.clone(), times(1e-3), voice.clone(), times(1e-3), times(1e-3), times(1e-3)],
                None,
            ),
            ("mono", vec![voice.clone()], None),
        ] {
            assert_eq!(mixed(planes).phase_loss().map(|(channel, _)| channel), expected, "{name}");
        }
    }

    #[test]
    fn every_sample_is_finite() {
        let mut out = Vec::new();
        let planes = vec![vec![f32::NAN, 1.0, f32::INFINITY], vec![0.5, 0.5, 0.5]];
        Mixer::new(None).mix(&DecodedPiece { rate: 8_000, planes, low_frequency: None }, &mut out);
        assert_eq!(out, [0.0, 0.75, LOUDEST]);
    }
}
