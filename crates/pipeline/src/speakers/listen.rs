//! Who is heard in each window of ten seconds, and how each of them sounds.

use std::ops::Range;

use audio::{HOP, LogMel, N_FFT, Pcm, SAMPLE_RATE};
use candle_core::Device;
use models::speakers::{PyanNet, VoiceEncoder};

use crate::StageError;

/// From one window to the next, in samples: each moment is in five windows.
pub const STEP: usize = 2 * SAMPLE_RATE as usize;
/// Windows that hear the same moment.
pub(super) const WINDOWS_PER_MOMENT: usize = PyanNet::WINDOW / STEP;
/// A shorter sound is no utterance, in seconds.
const SHORTEST_SPEECH: f32 = 0.3;
/// An utterance goes on after a pause of up to so many seconds.
const PAUSE: f32 = 0.25;
/// Seconds of a speaker alone from which on overlapped speech is left out of the voice.
pub(super) const ENOUGH_ALONE: f32 = 0.8;
/// Frames from one part of a voice to the next: half a part.
const PART_STEP: usize = VoiceEncoder::FRAMES / 2;
/// Parts of utterances that are encoded together, per window of a batch.
const PARTS_PER_WINDOW: usize = 4;
/// Power of speech at -30 dBFS, to which quieter speech is raised.
const LEAST_POWER: f32 = 1e-3;

/// The networks of this stage, on one device.
#[derive(Debug)]
pub struct Networks {
    /// Finds up to three speakers in a window.
    pub segmentation: PyanNet,
    /// Turns speech into a vector.
    pub encoder: VoiceEncoder,
}

impl Networks {
    /// Those that are in the program.
    ///
    /// # Errors
    /// If the device has no room for them.
    pub fn bundled(device: &Device) -> Result<Self, StageError> {
        Ok(Self::in_program(device)?)
    }

    pub(super) fn in_program(device: &Device) -> Result<Self, models::Error> {
        Ok(Self { segmentation: PyanNet::bundled(device)?, encoder: VoiceEncoder::bundled(device)? })
    }
}

/// What was heard in a whole recording.
#[derive(Debug, Default)]
pub struct Heard {
    /// Per window and frame, who speaks: a bit for each of the window's speakers.
    pub windows: Vec<Vec<u8>>,
    /// What was said, window after window, speaker after speaker.
    pub utterances: Vec<Utterance>,
}

/// Speech of one speaker of a window, without a longer pause.
#[derive(Debug, Clone)]
pub struct Utterance {
    /// The window's number.
    pub window: usize,
    /// The speaker's bit in it, 0 to 2.
    pub speaker: u8,
    /// Frames of the window.
    pub frames: Range<usize>,
    /// Speech that the vector was made of.
    pub seconds: f32,
    /// How the speaker sounds, of length 1.
    pub vector: Vec<f32>,
}

/// Seconds from one frame of a window to the next.
pub const FRAME_SECONDS: f32 = PyanNet::FRAME_STEP as f32 / SAMPLE_RATE as f32;

/// Where windows of a recording of so many samples begin.
pub fn window_starts(samples: u64) -> Vec<u64> {
    let last = samples.saturating_sub((PyanNet::WINDOW - STEP) as u64);
    (0..last.max(1)).step_by(STEP).collect()
}

/// Listens to the windows from `heard` on, `batch` at a time. `reached` is told
/// the sample behind each batch, and what was heard until then.
///
/// # Errors
/// What `reached` answers, or where a network or the recording's file fails.
pub fn listen(
    pcm: &Pcm,
    networks: &Networks,
    batch: usize,
    heard: &mut Heard,
    reached: &mut dyn FnMut(u64, &Heard) -> Result<(), StageError>,
) -> Result<(), StageError> {
    let starts = window_starts(pcm.len());
    let mut ear = Ear::new(pcm, networks, batch.min(starts.len()));
    for starts in starts[heard.windows.len()..].chunks(batch.max(1)) {
        let windows: Vec<Range<u64>> =
            starts.iter().map(|start| *start..*start + PyanNet::WINDOW as u64).collect();
        let first = heard.windows.len();
        let (masks, utterances) = ear.hear(&windows, first)?;
        heard.windows.extend(masks);
        heard.utterances.extend(utterances);
        let end = starts.last().map_or(0, |start| start + STEP as u64);
        reached(end.min(pcm.len()), heard)?;
    }
    Ok(())
}

/// Listens to windows of a recording.
pub(super) struct Ear<'a> {
    pcm: &'a Pcm,
    networks: &'a Networks,
    mel: LogMel,
    /// Per window of a batch, with half a Fourier window on either side.
    samples: Vec<Vec<f32>>,
}

impl<'a> Ear<'a> {
    /// Listens to up to `batch` windows at a time.
    pub fn new(pcm: &'a Pcm, networks: &'a Networks, batch: usize) -> Self {
        let samples = vec![vec![0.0; PyanNet::WINDOW + N_FFT]; batch.max(1)];
        Self { pcm, networks, mel: LogMel::new(VoiceEncoder::MEL_BINS), samples }
    }

    /// Who speaks in each of these ranges of samples, each no longer than a window,
    /// and the utterances in them; windows are numbered from `first`.
    pub fn hear(
        &mut self,
        windows: &[Range<u64>],
        first: usize,
    ) -> Result<(Vec<Vec<u8>>, Vec<Utterance>), StageError> {
        for (window, samples) in windows.iter().zip(&mut self.samples) {
            self.pcm.read(window.start as i64 - (N_FFT / 2) as i64, samples)?;
        }
        let samples = &self.samples[..windows.len()];
        let inner: Vec<&[f32]> = samples.iter().map(|all| &all[N_FFT / 2..][..PyanNet::WINDOW]).collect();
        let classes = self.networks.segmentation.forward(&inner).map_err(StageError::from)?;
        let classes = classes.flatten_all()?.to_vec1::<f32>()?;
        let mut masks = Vec::with_capacity(windows.len());
        let mut parts = Parts::default();
        let per_window = PyanNet::FRAMES * PyanNet::CLASSES.len();
        for (number, classes) in classes.chunks_exact(per_window).enumerate() {
            let mut mask = mask(classes);
            silence_from((windows[number].end - windows[number].start) as usize, &mut mask);
            let energies = energies(&self.mel, &samples[number]);
            for speaker in 0..PyanNet::SPEAKERS as u8 {
                for frames in utterances(&mask, speaker) {
                    let (heard, seconds) = frames_to_encode(&mask, speaker, frames.clone());
                    let (window, vector) = (first + number, Vec::new());
                    let utterance = Utterance { window, speaker, frames, seconds, vector };
                    parts.add(utterance, &heard, &energies);
                }
            }
            masks.push(mask);
        }
        let together = self.samples.len() * PARTS_PER_WINDOW;
        Ok((masks, parts.encode(&self.networks.encoder, together)?))
    }
}

/// Nobody speaks in the frames whose centre is this sample or a later one.
pub(super) fn silence_from(sample: usize, mask: &mut [u8]) {
    let first = (sample.saturating_sub(PyanNet::FRAME_WIDTH / 2)).div_ceil(PyanNet::FRAME_STEP);
    mask.iter_mut().skip(first).for_each(|frame| *frame = 0);
}

/// The likeliest set of speakers of each frame, as bits.
pub(super) fn mask(classes: &[f32]) -> Vec<u8> {
    let frames = classes.chunks_exact(PyanNet::CLASSES.len());
    frames
        .map(|frame| {
            let best = (0..frame.len()).max_by(|a, b| frame[*a].total_cmp(&frame[*b])).unwrap_or(0);
            let bits = PyanNet::CLASSES[best].iter().enumerate();
            bits.map(|(bit, speaks)| u8::from(*speaks) << bit).sum()
        })
        .collect()
}

/// The frames of a speaker's utterances: speech, and pauses of up to [`PAUSE`].
fn utterances(mask: &[u8], speaker: u8) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for frame in (0..mask.len()).filter(|frame| mask[*frame] & (1 << speaker) != 0) {
        match found.last_mut() {
            Some(last) if frame - last.end < (PAUSE / FRAME_SECONDS) as usize => last.end = frame + 1,
            _ => found.push(frame..frame + 1),
        }
    }
    found.retain(|frames| frames.len() as f32 * FRAME_SECONDS >= SHORTEST_SPEECH);
    found
}

/// The spectrogram's frames of an utterance in which its speaker is heard, alone if
/// that is often enough, and their length in seconds.
fn frames_to_encode(mask: &[u8], speaker: u8, utterance: Range<usize>) -> (Vec<usize>, f32) {
    let bit = 1 << speaker;
    let (speaks, alone) = (|frame: u8| frame & bit != 0, |frame: u8| frame == bit);
    let seconds = |is: &dyn Fn(u8) -> bool| {
        mask[utterance.clone()].iter().filter(|frame| is(**frame)).count() as f32 * FRAME_SECONDS
    };
    let (all, clean) = (seconds(&speaks), seconds(&alone));
    let only_alone = clean >= ENOUGH_ALONE;
    let taken = |frame: &usize| {
        let centre = (frame * HOP) as f32 - (PyanNet::FRAME_WIDTH / 2) as f32;
        let of_mask = (centre / PyanNet::FRAME_STEP as f32).round().max(0.0) as usize;
        let is = |value| if only_alone { alone(value) } else { speaks(value) };
        utterance.contains(&of_mask) && mask.get(of_mask).copied().is_some_and(is)
    };
    let frames: Vec<usize> = (0..PyanNet::WINDOW / HOP).filter(taken).collect();
    // Speech under another's counts as short, however long it is.
    (frames, if only_alone { clean } else { all.min(ENOUGH_ALONE) })
}

/// A spectrogram of a window: energies, frame after frame, and the power of each frame.
pub(super) struct Energies {
    values: Vec<f32>,
    power: Vec<f32>,
}

pub(super) fn energies(mel: &LogMel, padded: &[f32]) -> Energies {
    let spectrogram = mel.log10(padded);
    let (bins, frames) = (spectrogram.n_mels, spectrogram.frames);
    let mut values = vec![0.0; bins * frames];
    for (bin, row) in spectrogram.data.chunks_exact(frames).enumerate() {
        for (frame, value) in row.iter().enumerate() {
            values[frame * bins + bin] = 10f32.powf(*value);
        }
    }
    let hops = padded[N_FFT / 2..].chunks_exact(HOP);
    let power = hops.map(|hop| hop.iter().map(|x| x * x).sum::<f32>() / HOP as f32).collect();
    Energies { values, power }
}

/// Parts of the voices of a batch of windows, to be encoded together.
#[derive(Default)]
pub(super) struct Parts {
    utterances: Vec<Utterance>,
    /// (utterance, spectrogram of 160 frames)
    parts: Vec<(usize, Vec<f32>)>,
}

impl Parts {
    /// Adds a voice with the frames in which it is heard. Speech that is shorter
    /// than a part is repeated.
    pub fn add(&mut self, utterance: Utterance, frames: &[usize], energies: &Energies) {
        if frames.is_empty() {
            return;
        }
        let power = frames.iter().filter_map(|frame| energies.power.get(*frame)).sum::<f32>();
        let power = power / frames.len().max(1) as f32;
        let gain = (LEAST_POWER / (power + 1e-12)).max(1.0);
        let length = frames.len().max(VoiceEncoder::FRAMES);
        for first in (0..=length - VoiceEncoder::FRAMES).step_by(PART_STEP) {
            let mut part = Vec::with_capacity(VoiceEncoder::FRAMES * VoiceEncoder::MEL_BINS);
            for frame in frames.iter().cycle().skip(first).take(VoiceEncoder::FRAMES) {
                let row = &energies.values[frame * VoiceEncoder::MEL_BINS..][..VoiceEncoder::MEL_BINS];
                part.extend(row.iter().map(|energy| energy * gain));
            }
            self.parts.push((self.utterances.len(), part));
        }
        self.utterances.push(utterance);
    }

    /// The voices with their vectors: the mean over the parts, of length 1.
    pub fn encode(mut self, encoder: &VoiceEncoder, together: usize) -> Result<Vec<Utterance>, StageError> {
        for voice in &mut self.utterances {
            voice.vector = vec![0.0; VoiceEncoder::WIDTH];
        }
        for parts in self.parts.chunks(together) {
            let inputs: Vec<&[f32]> = parts.iter().map(|(_, part)| part.as_slice()).collect();
            let vectors = encoder.forward(&inputs)?.to_vec2::<f32>()?;
            for ((voice, _), vector) in parts.iter().zip(vectors) {
                let sum = &mut self.utterances[*voice].vector;
                sum.iter_mut().zip(vector).for_each(|(sum, x)| *sum += x);
            }
        }
        for voice in &mut self.utterances {
            normalise(&mut voice.vector);
        }
        Ok(self.utterances)
    }
}

/// Gives a vector the length 1.
pub fn normalise(vector: &mut [f32]) {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt().max(1e-12);
    vector.iter_mut().for_each(|x| *x /= length);
}
