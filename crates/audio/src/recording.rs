//! Preparing a whole recording in one pass.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::pcm::PcmWriter;
use crate::vad::{SpeechDetector, SpeechRegions};
use crate::{
    AudioError, ChannelMode, LogMel, MediaInfo, Mel, OpenOptions, Pcm, Reader, SAMPLE_RATE, SpeechRegion,
    Warning, mel,
};

/// Samples that are decoded before they are listened to, 8 s: milliseconds of work.
const PART_SAMPLES: usize = 8 * SAMPLE_RATE as usize;

/// How to prepare a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct PrepareOptions {
    /// How to open the file.
    pub open: OpenOptions,
    /// Mel bands of the model, 80 or 128, for [`Recording::log_mel_maximum`].
    pub n_mels: usize,
    /// Least probability, 0 to 1, of a frame that counts as speech. `None` turns
    /// voice activity detection off: everything counts as speech.
    pub vad: Option<f32>,
    /// The folder for the temporary file of a recording longer than two minutes;
    /// `None` is the system's.
    pub spool_folder: Option<PathBuf>,
}

impl Default for PrepareOptions {
    fn default() -> Self {
        Self { open: OpenOptions::default(), n_mels: 80, vad: Some(0.5), spool_folder: None }
    }
}

/// A decoded recording with its speech, ready for transcription.
#[derive(Debug)]
pub struct Recording {
    /// Its samples.
    pub pcm: Pcm,
    /// What is known of the file.
    pub info: MediaInfo,
    /// Problems of the file.
    pub warnings: Vec<Warning>,
    /// Regions of speech in order, padded and joined over short pauses. With voice
    /// activity detection off, one region over everything.
    pub speech: Vec<SpeechRegion>,
    /// The same regions without padding and with pauses cut out. With voice activity
    /// detection off, equal to `speech`.
    pub voiced: Vec<SpeechRegion>,
    /// Largest log10 mel energy of the whole recording and of 30 s of silence after
    /// it. openai/whisper normalises every window of a file with it.
    pub log_mel_maximum: f32,
}

impl Recording {
    /// As [`Pcm::log_mel`], normalised with the recording's own maximum.
    ///
    /// # Errors
    /// [`AudioError::Spool`] if the temporary file can't be read.
    pub fn log_mel(&self, mel: &LogMel, first: usize, count: usize) -> Result<Mel, AudioError> {
        self.pcm.log_mel(mel, self.log_mel_maximum, first, count)
    }

    /// As [`Pcm::log_mel_window`], normalised with the recording's own maximum.
    ///
    /// # Errors
    /// [`AudioError::Spool`] if the temporary file can't be read.
    pub fn log_mel_window(&self, mel: &LogMel, first: usize, frames: usize) -> Result<Mel, AudioError> {
        self.pcm.log_mel_window(mel, self.log_mel_maximum, first, frames)
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        self.pcm.seconds()
    }
}

/// Decodes a recording in one pass that also finds its speech and its largest mel
/// energy. Memory does not grow with its length. If the channels turn out to
/// cancel each other out, which is known only at the end, the pass is repeated
/// with the loudest channel.
///
/// `progress` gets the seconds done and, if known, the seconds in all. If it
/// breaks, the result is [`AudioError::Cancelled`].
///
/// # Errors
/// If the file can't be read or decoded or has no samples, if the temporary file
/// can't be written, or if `progress` breaks.
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
    recording.warnings.push(Warning::Phase { channel, decibels });
    Ok(recording)
}

/// One pass. Returns the loss of the mix as well, see [`Mixer::phase_loss`](crate::mix::Mixer::phase_loss).
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
    let mut loudest = MaximumEnergy::new(options.n_mels);
    let mut voice = options.vad.map(|threshold| (SpeechDetector::new(), threshold));
    let mut samples = 0;
    let (mut decoded, mut next) = (Vec::new(), Vec::new());
    loop {
        // Other threads listen to what was decoded, while this one decodes what follows. The longer task first.
        rayon::in_place_scope(|scope| {
            if let Some((voice, _)) = &mut voice {
                scope.spawn(|_| voice.push(&decoded));
            }
            scope.spawn(|_| loudest.push(&decoded));
            decode_part(&mut reader, &mut pcm, &mut next)
        })?;
        if next.is_empty() {
            break;
        }
        samples += next.len() as u64;
        if progress(samples as f64 / f64::from(SAMPLE_RATE), total).is_break() {
            return Err(AudioError::Cancelled);
        }
        std::mem::swap(&mut decoded, &mut next);
    }
    if samples == 0 {
        return Err(AudioError::ZeroLength { path: path.into() });
    }
    let pcm = pcm.finish()?;
    let everything = vec![SpeechRegion { start: 0, end: samples }];
    let found = match voice {
        Some((voice, threshold)) => voice.finish(threshold, &pcm)?,
        None => SpeechRegions { regions: everything.clone(), voiced: everything },
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

/// Replaces `part` by the next samples, [`PART_SAMPLES`] or little more, which are written to `pcm` too. It is empty at
/// the end of the recording.
fn decode_part(reader: &mut Reader, pcm: &mut PcmWriter, part: &mut Vec<f32>) -> Result<(), AudioError> {
    part.clear();
    while part.len() < PART_SAMPLES
        && let Some(block) = reader.next_block()?
    {
        pcm.push(block)?;
        part.extend_from_slice(block);
    }
    Ok(())
}

/// Computes the largest mel energy of a stream without storing its spectrogram.
struct MaximumEnergy {
    mel: LogMel,
    energy: f32,
    /// Samples for the next frames, preceded at the start by the mirrored beginning.
    pending: Vec<f32>,
    mirrored: bool,
}

impl MaximumEnergy {
    fn new(n_mels: usize) -> Self {
        Self { mel: LogMel::new(n_mels), energy: 0.0, pending: Vec::new(), mirrored: false }
    }

    fn push(&mut self, samples: &[f32]) {
        self.pending.extend_from_slice(samples);
        if !self.mirrored && self.pending.len() > mel::N_FFT / 2 {
            let mirror: Vec<f32> = self.pending[1..=mel::N_FFT / 2].iter().rev().copied().collect();
            self.pending.splice(0..0, mirror);
            self.mirrored = true;
        }
        // So much at once that it is worth dividing among threads.
        if self.mirrored && self.pending.len() >= mel::WINDOW_SAMPLES {
            self.take_up();
        }
    }

    /// The frames that are complete.
    fn take_up(&mut self) {
        if self.pending.len() >= mel::N_FFT {
            self.energy = self.mel.maximum_energy(&self.pending, self.energy);
            let frames = (self.pending.len() - mel::N_FFT) / mel::HOP + 1;
            self.pending.drain(..frames * mel::HOP);
        }
    }

    fn finish(mut self) -> f32 {
        // Silence for the frames that contain samples of the recording and of the silence after it.
        self.push(&[0.0; mel::N_FFT + mel::HOP]);
        self.take_up();
        mel::log10(self.energy)
    }
}
