use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::pcm::PcmWriter;
use crate::vad::{Found, VoiceActivity};
use crate::{
    AudioError, ChannelMode, Info, LogMel, Mel, OpenOptions, Pcm, Reader, Region, SAMPLE_RATE, Warning, mel,
};

/// How to prepare a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareOptions {
    pub open: OpenOptions,
    /// Mel bins of the model, for the maximum: 80 or 128.
    pub n_mels: usize,
    /// Probability from which on a frame counts as speech; `None`: all is speech.
    pub vad: Option<f32>,
    /// Where a recording longer than ten minutes is kept; `None`: the system's temporary folder.
    pub spool_folder: Option<PathBuf>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { open: OpenOptions::default(), n_mels: 80, vad: Some(0.5), spool_folder: None }
    }
}

/// A whole recording, decoded once and ready for every stage that follows.
#[derive(Debug)]
pub struct Recording {
    pub pcm: Pcm,
    pub info: Info,
    pub warnings: Vec<Warning>,
    /// Where there is speech, in order, with padding and joined over short
    /// pauses; with voice activity off one region over everything.
    pub speech: Vec<Region>,
    /// Just where a voice was heard: `speech` without padding and pauses. With
    /// voice activity off the same as `speech`.
    pub voiced: Vec<Region>,
    /// Largest log10 mel energy of the whole recording, 30 s of silence behind
    /// it included: what openai/whisper clamps every window of a file against.
    pub log_mel_maximum: f32,
}

impl Recording {
    /// See [`Pcm::log_mel`]; normalised with the recording's own maximum.
    pub fn log_mel(&self, mel: &mut LogMel, first: usize, count: usize) -> Result<Mel, AudioError> {
        self.pcm.log_mel(mel, self.log_mel_maximum, first, count)
    }

    /// See [`Pcm::log_mel_window`]; normalised with the recording's own maximum.
    pub fn log_mel_window(&self, mel: &mut LogMel, first: usize, frames: usize) -> Result<Mel, AudioError> {
        self.pcm.log_mel_window(mel, self.log_mel_maximum, first, frames)
    }

    pub fn seconds(&self) -> f64 {
        self.pcm.seconds()
    }
}

/// Decodes a recording in one pass that also finds its speech and its loudest
/// mel energy; memory does not grow with its length. Where the mix turns out
/// to have lost the sound to opposite phases, which only the whole can tell,
/// the pass is repeated on the loudest channel.
///
/// `progress` is told how many seconds are done and, where it is known, of how
/// many; on `Break` the result is [`AudioError::Cancelled`].
pub fn prepare(
    path: &Path,
    options: &PrepareOptions,
    progress: &mut dyn FnMut(f64, Option<f64>) -> ControlFlow<()>,
) -> Result<Recording, AudioError> {
    let (recording, loss) = pass(path, options, progress)?;
    let Some((channel, decibels)) = loss else { return Ok(recording) };
    drop(recording);
    let mut single = options.clone();
    single.open.channels = ChannelMode::Index(channel);
    let (mut recording, _) = pass(path, &single, progress)?;
    let text = format!(
        "The channels cancel each other out: mixed they would be {decibels:.0} dB quieter. \
         Channel {} was taken alone.",
        channel + 1
    );
    recording.warnings.push(Warning::new(Warning::PHASE, text, None));
    Ok(recording)
}

/// One pass; also what the mix has lost, see `Mixer::phase_loss`.
fn pass(
    path: &Path,
    options: &PrepareOptions,
    progress: &mut dyn FnMut(f64, Option<f64>) -> ControlFlow<()>,
) -> Result<(Recording, Option<(usize, f64)>), AudioError> {
    let mut reader = Reader::open(path, &options.open)?;
    let total = match (reader.info().duration_seconds, options.open.limit_seconds) {
        (Some(duration), Some(limit)) => Some(duration.min(limit)),
        (duration, _) => duration,
    };
    let mut pcm = PcmWriter::new(options.spool_folder.as_deref());
    let mut loudest = Loudest::new(options.n_mels);
    let mut voice = options.vad.map(|threshold| (VoiceActivity::new(), threshold));
    let mut samples = 0;
    while let Some(block) = reader.next_block()? {
        pcm.push(block)?;
        loudest.push(block);
        if let Some((voice, _)) = &mut voice {
            voice.push(block);
        }
        samples += block.len() as u64;
        if progress(samples as f64 / f64::from(SAMPLE_RATE), total).is_break() {
            return Err(AudioError::Cancelled);
        }
    }
    if samples == 0 {
        return Err(AudioError::ZeroLength { path: path.into() });
    }
    let pcm = pcm.finish()?;
    let everything = vec![Region { start: 0, end: samples }];
    let found = match voice {
        Some((voice, threshold)) => voice.finish(threshold, &pcm)?,
        None => Found { regions: everything.clone(), voiced: everything },
    };
    let recording = Recording {
        pcm,
        info: reader.info().clone(),
        warnings: reader.warnings().to_vec(),
        speech: found.regions,
        voiced: found.voiced,
        log_mel_maximum: loudest.finish(),
    };
    Ok((recording, reader.phase_loss()))
}

/// The loudest mel energy of a stream, without keeping its spectrogram.
struct Loudest {
    mel: LogMel,
    maximum: f32,
    /// What the next frames need; at the start the mirrored beginning comes first.
    pending: Vec<f32>,
    mirrored: bool,
}

impl Loudest {
    fn new(n_mels: usize) -> Self {
        Self { mel: LogMel::new(n_mels), maximum: f32::NEG_INFINITY, pending: Vec::new(), mirrored: false }
    }

    fn push(&mut self, samples: &[f32]) {
        self.pending.extend_from_slice(samples);
        if !self.mirrored && self.pending.len() > mel::N_FFT / 2 {
            let mirror: Vec<f32> = self.pending[1..=mel::N_FFT / 2].iter().rev().copied().collect();
            self.pending.splice(0..0, mirror);
            self.mirrored = true;
        }
        if self.mirrored && self.pending.len() >= mel::N_FFT {
            self.maximum = self.maximum.max(self.mel.maximum_log10(&self.pending));
            let frames = (self.pending.len() - mel::N_FFT) / mel::HOP + 1;
            self.pending.drain(..frames * mel::HOP);
        }
    }

    fn finish(mut self) -> f32 {
        // The silence behind the end, as much of it as frames share with the sound.
        self.push(&[0.0; mel::N_FFT + mel::HOP]);
        self.maximum
    }
}
