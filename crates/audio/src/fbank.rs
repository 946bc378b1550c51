//! Spectrograms as Kaldi computes them for networks that compare voices.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use crate::{HOP, N_FFT, SAMPLE_RATE};

/// Samples of a Fourier transform: the next power of 2.
const PADDED: usize = 512;
/// Kaldi's samples are 16-bit integers.
const SAMPLE_SCALE: f64 = 32_768.0;
const PREEMPHASIS: f64 = 0.97;
const LOWEST_HERTZ: f64 = 20.0;

/// Logarithms of the energies of mel bands, as Kaldi's `compute-fbank-feats` with
/// frames of 25 ms every 10 ms, a Hamming window, no dither and no energy.
pub struct Fbank {
    bands: usize,
    window: Vec<f64>,
    /// The first bin of each band, and its weights from there on.
    filters: Vec<(usize, Vec<f64>)>,
    fft: Arc<dyn RealToComplex<f32>>,
    input: Vec<f32>,
    spectrum: Vec<Complex32>,
    scratch: Vec<Complex32>,
}

impl fmt::Debug for Fbank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fbank").field("bands", &self.bands).finish_non_exhaustive()
    }
}

impl Fbank {
    /// For so many bands.
    pub fn new(bands: usize) -> Self {
        let fft = RealFftPlanner::<f32>::new().plan_fft_forward(PADDED);
        let phase = |n: usize| 2.0 * PI * n as f64 / (N_FFT - 1) as f64;
        Self {
            bands,
            window: (0..N_FFT).map(|n| 0.54 - 0.46 * phase(n).cos()).collect(),
            filters: filters(bands),
            input: fft.make_input_vec(),
            spectrum: fft.make_output_vec(),
            scratch: fft.make_scratch_vec(),
            fft,
        }
    }

    /// The energies of the whole frames within `samples`, frame after frame. Fewer
    /// than 400 samples have no frame.
    pub fn energies(&mut self, samples: &[f32]) -> Vec<f32> {
        let mut energies = Vec::with_capacity(samples.len() / HOP * self.bands);
        for frame in samples.windows(N_FFT).step_by(HOP) {
            self.transform(frame);
            energies.extend(self.filters.iter().map(|(first, weights)| {
                let bins = self.spectrum[*first..].iter().zip(weights);
                let energy: f64 = bins.map(|(bin, weight)| f64::from(bin.norm_sqr()) * weight).sum();
                energy.max(f64::from(f32::EPSILON)).ln() as f32
            }));
        }
        energies
    }

    /// As [`Fbank::energies`], with the mean of each band over all frames subtracted.
    pub fn centred(&mut self, samples: &[f32]) -> Vec<f32> {
        let mut energies = self.energies(samples);
        let frames = energies.len() / self.bands;
        for band in 0..self.bands {
            let sum: f64 = energies.iter().skip(band).step_by(self.bands).map(|x| f64::from(*x)).sum();
            let mean = (sum / frames.max(1) as f64) as f32;
            energies.iter_mut().skip(band).step_by(self.bands).for_each(|x| *x -= mean);
        }
        energies
    }

    /// Computes the spectrum of a frame into `self.spectrum`.
    fn transform(&mut self, frame: &[f32]) {
        let mean = frame.iter().map(|x| f64::from(*x)).sum::<f64>() / N_FFT as f64;
        let centred = |n: usize| (f64::from(frame[n]) - mean) * SAMPLE_SCALE;
        self.input.fill(0.0);
        for n in 0..N_FFT {
            let before = centred(n.saturating_sub(1));
            self.input[n] = ((centred(n) - PREEMPHASIS * before) * self.window[n]) as f32;
        }
        // Fails only for buffers of wrong lengths, and these are the plan's own.
        let done = self.fft.process_with_scratch(&mut self.input, &mut self.spectrum, &mut self.scratch);
        debug_assert!(done.is_ok());
    }
}

/// Triangles of equal width on the mel scale of Kaldi (O'Shaughnessy, 1987), from
/// 20 Hz to half the sample rate. In 32 bits, as the reference: the edge of a narrow
/// triangle is a difference of large numbers, and its rounding is seen in the result.
fn filters(bands: usize) -> Vec<(usize, Vec<f64>)> {
    let edge = |hertz: f64| 1127.0 * (1.0 + hertz / 700.0).ln();
    let (low, high) = (edge(LOWEST_HERTZ), edge(f64::from(SAMPLE_RATE) / 2.0));
    let width = ((high - low) / (bands + 1) as f64) as f32;
    let bin_hertz = SAMPLE_RATE as f32 / PADDED as f32;
    let mel = |bin: usize| 1127.0 * (1.0 + bin_hertz * bin as f32 / 700.0).ln();
    (0..bands)
        .map(|band| {
            let [left, centre, right] = [0, 1, 2].map(|edge| low as f32 + (band + edge) as f32 * width);
            let weight = |bin: usize| {
                let (rising, falling) =
                    ((mel(bin) - left) / (centre - left), (right - mel(bin)) / (right - centre));
                f64::from(rising.min(falling).max(0.0))
            };
            // The last bin belongs to no band.
            let bins = 0..PADDED / 2;
            let first = bins.clone().find(|bin| weight(*bin) > 0.0).unwrap_or(0);
            (first, (first..bins.end).map(weight).take_while(|weight| *weight > 0.0).collect())
        })
        .collect()
}
