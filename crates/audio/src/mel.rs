//! Log-mel spectrograms as openai/whisper computes them.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rayon::prelude::*;
use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use crate::SAMPLE_RATE;

/// Samples per Fourier transform: 25 ms.
pub const N_FFT: usize = 400;
/// Samples from one frame to the next: 10 ms.
pub const HOP: usize = 160;
/// Samples of a window of 30 s, which is the input of openai/whisper's models and
/// the length of the silence that it appends to a file.
pub const WINDOW_SAMPLES: usize = 480_000;
/// Frames of a window.
pub const WINDOW_FRAMES: usize = WINDOW_SAMPLES / HOP;

const BINS: usize = N_FFT / 2 + 1;
/// Energies are clamped here before the logarithm (`whisper/audio.py`).
const FLOOR: f32 = 1e-10;
/// Values are clamped this far below the maximum: 8 decades of energy, 80 dB.
const DYNAMIC_RANGE: f32 = 8.0;

/// A log-mel spectrogram, `[n_mels, frames]`, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Mel {
    /// Number of mel bands.
    pub n_mels: usize,
    /// Number of frames of 10 ms.
    pub frames: usize,
    /// The values, band after band.
    pub data: Vec<f32>,
}

impl Mel {
    /// A spectrogram of zeros.
    pub fn zeros(n_mels: usize, frames: usize) -> Self {
        Self { n_mels, frames, data: vec![0.0; n_mels * frames] }
    }

    /// The largest value; negative infinity if there are no frames.
    pub fn maximum(&self) -> f32 {
        self.data.iter().copied().fold(f32::NEG_INFINITY, f32::max)
    }

    /// Turns log10 energies into the network's input: clamps at `maximum - 8`, then
    /// `(x + 4) / 4`.
    pub fn normalise(&mut self, maximum: f32) {
        let floor = floor(maximum);
        for value in &mut self.data {
            *value = (value.max(floor) + 4.0) / 4.0;
        }
    }

    /// Sets all values of the frames from `first` on.
    pub fn fill_from(&mut self, first: usize, value: f32) {
        if first < self.frames {
            for row in self.data.chunks_exact_mut(self.frames) {
                row[first..].fill(value);
            }
        }
    }
}

/// The value of silence in the network's input, for a recording with this maximum
/// of log10 energies.
pub fn silence(maximum: f32) -> f32 {
    (floor(maximum) + 4.0) / 4.0
}

fn floor(maximum: f32) -> f32 {
    maximum - DYNAMIC_RANGE
}

/// Computes log-mel spectrograms as openai/whisper does (`whisper/audio.py`):
/// Hann window of 400 samples, hop 160, power spectrum, Slaney's mel filters.
/// The transform is computed in f32, as the reference's.
///
/// The frames are divided among the threads of rayon's pool.
pub struct LogMel {
    n_mels: usize,
    window: [f32; N_FFT],
    filters: Vec<Filter>,
    largest_weight: f32,
    fft: Arc<dyn RealToComplex<f32>>,
}

/// Frames of a task: a quarter of a millisecond of work.
const FRAMES_PER_TASK: usize = 64;

/// What a thread needs to transform frames.
struct Transform<'a> {
    mel: &'a LogMel,
    input: Vec<f32>,
    spectrum: Vec<Complex32>,
    scratch: Vec<Complex32>,
    power: [f32; BINS],
}

/// A triangular filter: its weights from bin `first` on. All others are zero.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    first: usize,
    weights: Vec<f32>,
}

impl fmt::Debug for LogMel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogMel").field("n_mels", &self.n_mels).finish_non_exhaustive()
    }
}

impl LogMel {
    /// For `n_mels` bands: 80 or, from large-v3 on, 128.
    pub fn new(n_mels: usize) -> Self {
        let fft = RealFftPlanner::<f32>::new().plan_fft_forward(N_FFT);
        let window = std::array::from_fn(|n| (0.5 - 0.5 * (2.0 * PI * n as f64 / N_FFT as f64).cos()) as f32);
        let filters = slaney_filters(n_mels, N_FFT);
        let largest_weight =
            filters.iter().flat_map(|filter| &filter.weights).fold(0f32, |most, weight| most.max(*weight));
        Self { n_mels, window, filters, largest_weight, fft }
    }

    /// Number of mel bands.
    pub fn n_mels(&self) -> usize {
        self.n_mels
    }

    /// The log10 energies, `[n_mels, frames]`, of `(frames - 1) * 160 + 400` samples,
    /// not normalised. Frame `i` is centred on sample `200 + 160 * i`. Fewer than
    /// 400 samples have no frame.
    pub fn log10(&self, padded: &[f32]) -> Mel {
        let (bands, frames) = (self.n_mels, frames_in(padded.len()));
        // Frame after frame, as they are computed.
        let mut by_frame = vec![0.0; frames * bands];
        by_frame.par_chunks_mut(FRAMES_PER_TASK * bands).enumerate().for_each_init(
            || Transform::new(self),
            |transform, (task, values)| {
                for (number, values) in values.chunks_exact_mut(bands).enumerate() {
                    let power = transform.power(padded, task * FRAMES_PER_TASK + number);
                    for (value, filter) in values.iter_mut().zip(&self.filters) {
                        *value = log10(filter.energy(power));
                    }
                }
            },
        );
        let mut mel = Mel::zeros(bands, frames);
        mel.data.par_chunks_mut(frames.max(1)).enumerate().for_each(|(band, row)| {
            let values = by_frame.iter().skip(band).step_by(bands);
            row.iter_mut().zip(values).for_each(|(value, found)| *value = *found);
        });
        mel
    }

    /// The largest energy of a band in any frame of samples as [`LogMel::log10`] takes them, or `known` if that is
    /// larger, without storing the spectrogram.
    ///
    /// Most frames are too quiet to have it, as their samples say, and are not transformed.
    pub(crate) fn maximum_energy(&self, padded: &[f32], known: f32) -> f32 {
        // Numbers that are not negative are ordered as their bits are.
        let largest = AtomicU32::new(known.max(0.0).to_bits());
        let frames = (0..frames_in(padded.len())).into_par_iter().with_min_len(FRAMES_PER_TASK);
        frames.for_each_init(
            || Transform::new(self),
            |transform, frame| {
                if self.energy_bound(frame_of(padded, frame))
                    <= f32::from_bits(largest.load(Ordering::Relaxed))
                {
                    return;
                }
                let power = transform.power(padded, frame);
                let energy = self.filters.iter().map(|filter| filter.energy(power)).fold(0.0, f32::max);
                largest.fetch_max(energy.to_bits(), Ordering::Relaxed);
            },
        );
        f32::from_bits(largest.into_inner())
    }

    /// An upper bound of the energy of every band of a frame. By Parseval's theorem the bins between the first and the
    /// last hold at most `N_FFT / 2` times the sum of the squared samples. A filter lets through at most its largest
    /// weight of that, and nothing of the first and the last bin.
    fn energy_bound(&self, samples: &[f32]) -> f32 {
        const LANES: usize = 16;
        /// For what is lost in rounding.
        const MARGIN: f32 = 1.001;
        let mut sums = [0f32; LANES];
        for (samples, window) in samples.chunks_exact(LANES).zip(self.window.chunks_exact(LANES)) {
            for ((sum, sample), window) in sums.iter_mut().zip(samples).zip(window) {
                *sum += (sample * window) * (sample * window);
            }
        }
        const { assert!(N_FFT.is_multiple_of(LANES)) };
        sums.iter().sum::<f32>() * (N_FFT / 2) as f32 * self.largest_weight * MARGIN
    }
}

/// The logarithm of an energy of a band, as in a spectrogram.
pub(crate) fn log10(energy: f32) -> f32 {
    energy.max(FLOOR).log10()
}

fn frame_of(padded: &[f32], frame: usize) -> &[f32] {
    &padded[frame * HOP..frame * HOP + N_FFT]
}

impl<'a> Transform<'a> {
    fn new(mel: &'a LogMel) -> Self {
        Self {
            mel,
            input: mel.fft.make_input_vec(),
            spectrum: mel.fft.make_output_vec(),
            scratch: mel.fft.make_scratch_vec(),
            power: [0.0; BINS],
        }
    }

    /// The power spectrum of one frame.
    fn power(&mut self, padded: &[f32], frame: usize) -> &[f32; BINS] {
        for ((input, sample), window) in
            self.input.iter_mut().zip(frame_of(padded, frame)).zip(&self.mel.window)
        {
            *input = sample * window;
        }
        // Fails only for buffers of wrong lengths, and these are the plan's own.
        let done = self.mel.fft.process_with_scratch(&mut self.input, &mut self.spectrum, &mut self.scratch);
        debug_assert!(done.is_ok());
        for (power, value) in self.power.iter_mut().zip(&self.spectrum) {
            *power = value.norm_sqr();
        }
        &self.power
    }
}

impl Filter {
    /// What the filter lets through of a power spectrum.
    pub fn energy(&self, power: &[f32]) -> f32 {
        self.weights.iter().zip(&power[self.first..]).map(|(weight, power)| weight * power).sum()
    }
}

fn frames_in(samples: usize) -> usize {
    if samples < N_FFT { 0 } else { (samples - N_FFT) / HOP + 1 }
}

/// The spectrogram, `[n_mels, 3000]`, of one window as openai/whisper computes it
/// for `detect_language` and `decode`: `samples` are cut or padded with zeros to
/// 30 s, mirrored at both ends, and normalised with the window's own maximum.
pub fn log_mel_padded_window(samples: &[f32], mel: &LogMel) -> Mel {
    const HALF: usize = N_FFT / 2;
    let kept = samples.len().min(WINDOW_SAMPLES);
    let mut padded = vec![0.0; WINDOW_SAMPLES + N_FFT];
    padded[HALF..HALF + kept].copy_from_slice(&samples[..kept]);
    for distance in 1..=HALF {
        padded[HALF - distance] = padded[HALF + distance];
        padded[HALF + WINDOW_SAMPLES - 1 + distance] = padded[HALF + WINDOW_SAMPLES - 1 - distance];
    }
    // The whole would give one frame too many.
    padded.truncate((WINDOW_FRAMES - 1) * HOP + N_FFT);
    let mut spectrogram = mel.log10(&padded);
    let maximum = spectrogram.maximum();
    spectrogram.normalise(maximum);
    spectrogram
}

/// Slaney's mel scale: linear below 1 kHz, logarithmic above (Auditory
/// Toolbox, 1998); the form that `librosa.filters.mel` uses by default.
fn mel_to_hertz(mel: f64) -> f64 {
    const LINEAR_STEP: f64 = 200.0 / 3.0;
    const BREAK_HERTZ: f64 = 1000.0;
    const BREAK_MEL: f64 = BREAK_HERTZ / LINEAR_STEP;
    let log_step = 6.4f64.ln() / 27.0;
    if mel < BREAK_MEL { mel * LINEAR_STEP } else { BREAK_HERTZ * (log_step * (mel - BREAK_MEL)).exp() }
}

fn hertz_to_mel(hertz: f64) -> f64 {
    const LINEAR_STEP: f64 = 200.0 / 3.0;
    const BREAK_HERTZ: f64 = 1000.0;
    let log_step = 6.4f64.ln() / 27.0;
    if hertz < BREAK_HERTZ {
        hertz / LINEAR_STEP
    } else {
        BREAK_HERTZ / LINEAR_STEP + (hertz / BREAK_HERTZ).ln() / log_step
    }
}

/// Triangles over the bins of a power spectrum of so many samples, from 0 Hz to half the
/// sample rate, each of unit area (2 / its width in hertz).
pub(crate) fn slaney_filters(n_mels: usize, samples: usize) -> Vec<Filter> {
    let bins = samples / 2 + 1;
    let nyquist = f64::from(SAMPLE_RATE) / 2.0;
    let top = hertz_to_mel(nyquist);
    let corner = |i: usize| mel_to_hertz(top * i as f64 / (n_mels + 1) as f64);
    let bin_hertz = f64::from(SAMPLE_RATE) / samples as f64;
    (0..n_mels)
        .map(|band| {
            let (low, centre, high) = (corner(band), corner(band + 1), corner(band + 2));
            let weight = |bin: usize| {
                let hertz = bin as f64 * bin_hertz;
                let rising = (hertz - low) / (centre - low);
                let falling = (high - hertz) / (high - centre);
                (rising.min(falling).max(0.0) * 2.0 / (high - low)) as f32
            };
            let first = (0..bins).find(|bin| weight(*bin) > 0.0).unwrap_or(0);
            let weights = (first..bins).map(weight).take_while(|weight| *weight > 0.0).collect();
            Filter { first, weights }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound for which the bound is nearly reached, one that is far from it, and parts that are louder and quieter.
    #[test]
    fn frames_that_are_passed_over_never_have_the_largest_energy() {
        let sine = |hertz: f64, loudness: f64| {
            (0..8000).map(move |n| (loudness * (2.0 * PI * hertz * n as f64 / 16_000.0).sin()) as f32)
        };
        let mut state = 1u32;
        let mut noise = |loudness: f32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            loudness * (state as f32 / u32::MAX as f32 - 0.5)
        };
        for bands in [80, 128] {
            let mel = LogMel::new(bands);
            let mut sounds: Vec<(String, Vec<f32>)> = mel
                .filters
                .iter()
                .map(|filter| {
                    let hertz = (filter.first * SAMPLE_RATE as usize / N_FFT) as f64;
                    let sound = sine(hertz, 0.1).chain(sine(7900.0, 0.8)).chain(sine(hertz + 20.0, 0.2));
                    (format!("{hertz} Hz"), sound.collect())
                })
                .collect();
            sounds.push(("noise".into(), (0..40_000).map(|n| noise((n / 4000 % 7) as f32 / 7.0)).collect()));
            sounds.push(("a click".into(), (0..4000).map(|n| f32::from(n == 1234)).collect()));
            sounds.push(("silence".into(), vec![0.0; 1000]));
            sounds.push(("no frame".into(), vec![0.5; N_FFT - 1]));
            for (name, samples) in sounds {
                let expected = mel.log10(&samples).maximum().max(log10(0.0));
                assert_eq!(log10(mel.maximum_energy(&samples, 0.0)), expected, "{name}, {bands} bands");
            }
        }
    }
}
