//! Resampling to 16 kHz.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _};

use crate::SAMPLE_RATE;
use crate::limits::RATES;

/// Taps of the anti-aliasing filter at the lower of the two rates. With 1024 the
/// pass band ends at 98.7 % of half that rate, which is 7.9 kHz for inputs above
/// 16 kHz.
const FILTER_TAPS: usize = 1024;
/// Most frames of the smallest possible block, which is a whole second for a rate
/// that has no common divisor with 16 kHz. Limits memory to about 50 MB.
const LARGEST_BLOCK: usize = 200_000;

/// Resamples a mono signal to 16 kHz in blocks. The output has no delay, and its
/// length is the input's times the ratio, rounded. Input of 16 kHz is not changed.
pub(crate) struct Resampler {
    rate: u32,
    /// `None` for 16 kHz input.
    fft: Option<Fft<f32>>,
    pending: Vec<f32>,
    chunk: Vec<f32>,
    /// Output samples at the start that are the filter's delay.
    skip: usize,
    frames_in: u64,
    frames_out: u64,
}

impl Resampler {
    /// A resampler from `rate` hertz. Fails for rates that no recording has.
    pub(crate) fn new(rate: u32) -> Result<Self, String> {
        let block = (rate / greatest_common_divisor(rate, SAMPLE_RATE)) as usize;
        if !RATES.contains(&rate) || block > LARGEST_BLOCK {
            return Err(format!("a sample rate of {rate} Hz"));
        }
        let fft = if rate == SAMPLE_RATE {
            None
        } else {
            let taps = (FILTER_TAPS * rate as usize / SAMPLE_RATE as usize).max(FILTER_TAPS);
            // An even number of the smallest blocks: with an odd one the middle of
            // the filter would lie between two samples.
            let chunk = taps.div_ceil(2 * block) * 2 * block;
            let fft = Fft::new_custom(
                rate as usize,
                SAMPLE_RATE as usize,
                chunk,
                1,
                1,
                rubato::WindowFunction::BlackmanHarris2,
                FixedSync::Both,
            );
            Some(fft.map_err(|error| error.to_string())?)
        };
        let skip = fft.as_ref().map_or(0, |fft| fft.output_delay());
        let chunk = vec![0.0; fft.as_ref().map_or(0, |fft| fft.output_frames_max())];
        Ok(Self { rate, fft, pending: Vec::new(), chunk, skip, frames_in: 0, frames_out: 0 })
    }

    pub(crate) fn rate(&self) -> u32 {
        self.rate
    }

    /// Resamples `input` and appends the available output to `out`.
    pub(crate) fn push(&mut self, input: &[f32], out: &mut Vec<f32>) -> Result<(), String> {
        self.frames_in += input.len() as u64;
        let Some(fft) = &mut self.fft else {
            out.extend_from_slice(input);
            self.frames_out += input.len() as u64;
            return Ok(());
        };
        self.pending.extend_from_slice(input);
        let chunk_in = fft.input_frames_next();
        let whole = self.pending.len() / chunk_in * chunk_in;
        let mut position = 0;
        while position < whole {
            let made = process(fft, &self.pending[position..position + chunk_in], &mut self.chunk)?;
            let skipped = self.skip.min(made);
            self.skip -= skipped;
            out.extend_from_slice(&self.chunk[skipped..made]);
            self.frames_out += (made - skipped) as u64;
            position += chunk_in;
        }
        self.pending.drain(..whole);
        Ok(())
    }

    /// Appends the rest of the output. `push` must not be called after it.
    pub(crate) fn finish(&mut self, out: &mut Vec<f32>) -> Result<(), String> {
        let Some(fft) = &mut self.fft else { return Ok(()) };
        let expected = resampled(self.frames_in, self.rate);
        let silence = vec![0.0; fft.input_frames_next()];
        let frames_in = self.frames_in;
        while self.frames_out < expected {
            self.push(&silence, out)?;
        }
        self.frames_in = frames_in;
        let excess = usize::try_from(self.frames_out - expected).unwrap_or(0);
        out.truncate(out.len().saturating_sub(excess));
        self.frames_out = expected;
        Ok(())
    }
}

/// A signal of 16 kHz played at so many percent of its speed: above 100 it takes less time, and pitch and resonances of a
/// voice rise. It has [`samples_at_speed`] samples.
///
/// # Errors
/// For 0 percent, and where it would have a rate that no recording has.
pub fn at_speed(samples: &[f32], percent: u32) -> Result<Vec<f32>, String> {
    let mut resampler = Resampler::new(SAMPLE_RATE / 100 * percent)?;
    let mut out = Vec::new();
    resampler.push(samples, &mut out)?;
    resampler.finish(&mut out)?;
    Ok(out)
}

/// Samples of so many when they are played at this percentage of their speed, at least one.
pub fn samples_at_speed(samples: usize, percent: u32) -> usize {
    resampled(samples as u64, SAMPLE_RATE / 100 * percent.max(1)) as usize
}

/// Samples at 16 kHz of so many at this rate.
fn resampled(samples: u64, rate: u32) -> u64 {
    (samples * u64::from(SAMPLE_RATE) + u64::from(rate) / 2) / u64::from(rate)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

fn process(fft: &mut Fft<f32>, input: &[f32], output: &mut [f32]) -> Result<usize, String> {
    let frames = output.len();
    let from = SequentialSlice::new(input, 1, input.len()).map_err(|error| error.to_string())?;
    let mut to = SequentialSlice::new_mut(output, 1, frames).map_err(|error| error.to_string())?;
    let (_, made) = fft.process_into_buffer(&from, &mut to, None).map_err(|error| error.to_string())?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resample(rate: u32, input: &[f32], piece: usize) -> Vec<f32> {
        let mut resampler = Resampler::new(rate).unwrap();
        let mut out = Vec::new();
        for piece in input.chunks(piece) {
            resampler.push(piece, &mut out).unwrap();
        }
        resampler.finish(&mut out).unwrap();
        out
    }

    fn tone(rate: u32, hertz: f64, frames: usize) -> Vec<f32> {
        let step = std::f64::consts::TAU * hertz / f64::from(rate);
        (0..frames).map(|i| (0.5 * (step * i as f64).sin()) as f32).collect()
    }

    #[test]
    fn a_tone_that_is_played_faster_is_higher_and_shorter() {
        for percent in [85, 90, 95, 100, 105, 110, 115] {
            for frames in [1, 999, SAMPLE_RATE as usize] {
                let played = at_speed(&tone(SAMPLE_RATE, 1000.0, frames), percent).unwrap();
                assert_eq!(played.len(), samples_at_speed(frames, percent), "{percent} %, {frames}");
            }
            let played = at_speed(&tone(SAMPLE_RATE, 1000.0, SAMPLE_RATE as usize), percent).unwrap();
            let expected = tone(SAMPLE_RATE, 10.0 * f64::from(percent), played.len());
            let middle = 2000..played.len() - 2000;
            let difference = played[middle.clone()].iter().zip(&expected[middle]).map(|(a, b)| (a - b).abs());
            assert!(difference.fold(0.0, f32::max) < 1e-3, "{percent} %");
        }
        assert!(at_speed(&[0.0], 0).is_err());
    }

    const COMMON_RATES: [u32; 13] = [
        8_000, 11_025, 12_000, 16_001, 22_050, 24_000, 32_000, 44_100, 44_101, 48_000, 88_200, 96_000,
        192_000,
    ];

    #[test]
    fn tones_keep_time_and_level_for_any_block_size() {
        for rate in COMMON_RATES {
            let frames = rate as usize + 377;
            let input = tone(rate, 1000.0, frames);
            let out = resample(rate, &input, 1009);
            let expected = (frames as f64 * 16_000.0 / f64::from(rate)).round() as usize;
            assert_eq!(out.len(), expected, "{rate} Hz");
            assert_eq!(out, resample(rate, &input, 50_000), "{rate} Hz");
            let truth = tone(SAMPLE_RATE, 1000.0, expected);
            // The ends are left out: there the filter sees the tone's sudden start and stop.
            let worst = (800..expected - 800).map(|i| (out[i] - truth[i]).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "{rate} Hz: off by {worst}");
        }
    }

    #[test]
    fn only_frequencies_above_8_khz_are_removed() {
        for (rate, hertz, passes) in [
            (44_100, 7_800.0, true),
            (44_100, 8_200.0, false),
            (44_100, 12_000.0, false),
            (48_000, 7_800.0, true),
            (48_000, 8_200.0, false),
            (96_000, 20_000.0, false),
            (22_050, 8_500.0, false),
            (8_000, 3_900.0, true),
        ] {
            let out = resample(rate, &tone(rate, hertz, rate as usize), 4096);
            let middle = &out[4_000..12_000];
            let energy = middle.iter().map(|x| f64::from(x * x)).sum::<f64>() / middle.len() as f64;
            let decibels = 10.0 * (energy / 0.125).log10();
            if passes {
                assert!(decibels.abs() < 0.1, "{hertz} Hz at {rate}: {decibels:.1} dB");
            } else {
                assert!(decibels < -80.0, "{hertz} Hz at {rate}: {decibels:.1} dB");
            }
        }
    }

    #[test]
    fn sixteen_kilohertz_is_unchanged() {
        let input = tone(16_000, 3_333.0, 20_001);
        assert_eq!(resample(16_000, &input, 777), input);
    }

    #[test]
    fn impossible_rates_are_refused() {
        for rate in [0, 1, 999, 700_001, 768_001, u32::MAX] {
            assert!(Resampler::new(rate).is_err(), "{rate}");
        }
    }
}
