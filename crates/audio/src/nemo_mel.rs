//! Spectrograms as NVIDIA's NeMo computes them for its networks.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use rayon::prelude::*;
use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use crate::mel::{Filter, slaney_filters};
use crate::{HOP, N_FFT};

/// Samples of a Fourier transform: the next power of 2.
const PADDED: usize = 512;
const PREEMPHASIS: f32 = 0.97;
/// Added to each energy before the logarithm.
const GUARD: f64 = 1.0 / (1u32 << 24) as f64;

/// Frames of a task: a quarter of a millisecond of work.
const FRAMES_PER_TASK: usize = 64;

/// Logarithms of mel energies as NeMo's `AudioToMelSpectrogramPreprocessor`, without
/// normalisation: preemphasis, a symmetric Hann window of 25 ms every 10 ms, the power of
/// 512 points, Slaney's mel filters, the natural logarithm.
///
/// The frames are divided among the threads of rayon's pool.
pub struct NemoMel {
    bands: usize,
    window: Vec<f32>,
    filters: Vec<Filter>,
    fft: Arc<dyn RealToComplex<f32>>,
}

/// What a thread needs to transform frames.
struct Transform<'a> {
    mel: &'a NemoMel,
    input: Vec<f32>,
    spectrum: Vec<Complex32>,
    scratch: Vec<Complex32>,
    power: [f32; PADDED / 2 + 1],
}

impl fmt::Debug for NemoMel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NemoMel").field("bands", &self.bands).finish_non_exhaustive()
    }
}

impl NemoMel {
    /// Samples before the centre of the first frame that it takes: half a window, and one
    /// more for the preemphasis.
    pub const BEFORE: usize = N_FFT / 2 + 1;

    /// For so many bands.
    pub fn new(bands: usize) -> Self {
        let fft = RealFftPlanner::<f32>::new().plan_fft_forward(PADDED);
        let phase = |n: usize| 2.0 * PI * n as f64 / (N_FFT - 1) as f64;
        Self {
            bands,
            window: (0..N_FFT).map(|n| (0.5 - 0.5 * phase(n).cos()) as f32).collect(),
            filters: slaney_filters(bands, PADDED),
            fft,
        }
    }

    /// The logarithms of `(frames - 1) * 160 + 401` samples, frame after frame; frame `i`
    /// is centred on sample `201 + 160 * i`. The recording ends before sample `end`, where
    /// preemphasis makes nothing of the silence behind it.
    pub fn logarithms(&self, samples: &[f32], end: usize) -> Vec<f32> {
        let frames = (samples.len() + HOP).saturating_sub(N_FFT + 1) / HOP;
        let mut values = vec![0.0; frames * self.bands];
        values.par_chunks_mut(FRAMES_PER_TASK * self.bands).enumerate().for_each_init(
            || Transform::new(self),
            |transform, (task, values)| {
                for (number, values) in values.chunks_exact_mut(self.bands).enumerate() {
                    let first = (task * FRAMES_PER_TASK + number) * HOP;
                    let power = transform.power(&samples[first..], end.saturating_sub(first));
                    for (value, filter) in values.iter_mut().zip(&self.filters) {
                        *value = (f64::from(filter.energy(power)) + GUARD).ln() as f32;
                    }
                }
            },
        );
        values
    }

    /// The input of NVIDIA's recognisers for a whole window: the logarithms of its frames, as many as whole hops, each
    /// band with mean 0 and deviation 1 over the window (N - 1), frame after frame.
    pub fn normalised(&self, samples: &[f32]) -> Vec<f32> {
        /// Added to the deviation, as in the reference.
        const EPSILON: f64 = 1e-5;
        let frames = samples.len() / HOP;
        if frames == 0 {
            return Vec::new();
        }
        let mut padded = vec![0.0; Self::BEFORE];
        padded.extend(samples);
        let end = padded.len();
        padded.resize((frames - 1) * HOP + N_FFT + 1, 0.0);
        let mut values = self.logarithms(&padded, end);
        let bands = self.bands;
        let mut sums = vec![(0f64, 0f64); bands];
        for frame in values.chunks_exact(bands) {
            sums.iter_mut().zip(frame).for_each(|(sum, value)| sum.0 += f64::from(*value));
        }
        sums.iter_mut().for_each(|sum| sum.0 /= frames as f64);
        for frame in values.chunks_exact(bands) {
            sums.iter_mut().zip(frame).for_each(|(sum, value)| sum.1 += (f64::from(*value) - sum.0).powi(2));
        }
        for frame in values.chunks_exact_mut(bands) {
            for (value, (mean, squares)) in frame.iter_mut().zip(&sums) {
                let deviation = (squares / (frames - 1).max(1) as f64).sqrt();
                *value = ((f64::from(*value) - mean) / (deviation + EPSILON)) as f32;
            }
        }
        values
    }
}

impl<'a> Transform<'a> {
    fn new(mel: &'a NemoMel) -> Self {
        Self {
            mel,
            input: mel.fft.make_input_vec(),
            spectrum: mel.fft.make_output_vec(),
            scratch: mel.fft.make_scratch_vec(),
            power: [0.0; PADDED / 2 + 1],
        }
    }

    /// The power spectrum of a frame, which is preceded by a sample for the preemphasis and of which `end` samples are
    /// the recording's.
    fn power(&mut self, frame: &[f32], end: usize) -> &[f32] {
        self.input.fill(0.0);
        for n in 0..N_FFT.min(end.saturating_sub(1)) {
            self.input[n] = (frame[n + 1] - PREEMPHASIS * frame[n]) * self.mel.window[n];
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
