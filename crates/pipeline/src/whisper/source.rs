use std::ops::Range;

use audio::{LogMel, Mel, Recording};
use candle_core::{Device, Tensor};
use models::whisper::Whisper;
use transcript::Span;

use crate::packing::{heard, next_start, voiced};
use crate::steps::Speech;
use crate::{Control, StageError, timings};

/// The recording as windows are cut from it.
#[derive(Debug)]
pub struct Source<'a> {
    pub recording: &'a Recording,
    pub speech: Speech<'a>,
    /// Where a voice was heard, without the padding of `speech`, in frames.
    pub voiced: Vec<Range<usize>>,
    /// The first frame that is listened to, and the one behind the last.
    pub start: usize,
    pub content: usize,
    /// What the frames behind a window's own are.
    pub fill: f32,
    mel: LogMel,
    window_frames: usize,
}

/// A stretch of the recording as the model hears it.
#[derive(Debug)]
pub struct Window {
    /// The encoder's output, (1, source positions, width).
    pub audio: Tensor,
    /// First frame, and how many of them are not filled up.
    pub seek: usize,
    pub frames: usize,
}

impl<'a> Source<'a> {
    pub fn new(recording: &'a Recording, speech: Speech<'a>, span: Option<Span>, model: &Whisper) -> Self {
        let heard = heard(recording, span);
        Self {
            recording,
            speech,
            voiced: voiced(recording, &heard),
            start: heard.start,
            content: heard.end,
            // As `transcribe()` fills its last window.
            fill: 0.0,
            mel: LogMel::new(model.config.dimensions.mel_bins as usize),
            window_frames: model.config.window_frames(),
        }
    }

    /// Where the next window begins from `seek` on; `None` behind the last speech.
    pub fn next_start(&self, seek: usize) -> Option<usize> {
        let seek = seek.max(self.start);
        if seek >= self.content {
            return None;
        }
        let Some(speech) = self.speech else { return Some(seek) };
        next_start(speech, seek).filter(|start| *start < self.content)
    }

    /// The most of the recording that a window from `seek` on can hold.
    pub fn longest_window(&self, seek: usize) -> Range<usize> {
        seek..self.content.min(seek + self.window_frames)
    }

    /// What the network gets of these frames, filled up to its length.
    pub fn log_mel(&self, frames: &Range<usize>) -> Result<Mel, StageError> {
        let mut log_mel = self.recording.log_mel_window(&self.mel, frames.start, self.window_frames)?;
        log_mel.fill_from(frames.len(), self.fill);
        Ok(log_mel)
    }

    /// The same of several windows.
    pub fn log_mels(&self, windows: &[Range<usize>]) -> Result<Vec<Mel>, StageError> {
        windows.iter().map(|frames| self.log_mel(frames)).collect()
    }

    /// What the model hears in these frames.
    pub fn listen(
        &self,
        frames: Range<usize>,
        model: &Whisper,
        control: &Control,
    ) -> Result<Window, StageError> {
        let log_mel = control.timings().of(timings::LOG_MEL, || self.log_mel(&frames))?;
        let audio = encode_window(model, log_mel, control)?;
        Ok(Window { audio, seek: frames.start, frames: frames.len() })
    }
}

/// Runs the encoder on one window of log-mel of the model's length:
/// (1, source positions, width).
///
/// # Errors
/// Where computing fails, or the job was cancelled.
pub fn encode_window(model: &Whisper, mel: Mel, control: &Control) -> Result<Tensor, models::Error> {
    let mel = Tensor::from_vec(mel.data, (1, mel.n_mels, mel.frames), &Device::Cpu)?
        .to_device(&model.device)?
        .to_dtype(model.dtype)?;
    encode(model, &mel, control)
}

/// Runs the encoder on several windows: (windows, source positions, width).
///
/// A GPU gets them all at once. On the host one window is work enough for all
/// cores, and one after the other needs the activations of one alone.
///
/// # Errors
/// As [`encode_window`].
pub fn encode_windows(model: &Whisper, mels: Vec<Mel>, control: &Control) -> Result<Tensor, models::Error> {
    if model.device.is_cpu() || mels.len() == 1 {
        let encoded =
            mels.into_iter().map(|mel| encode_window(model, mel, control)).collect::<Result<Vec<_>, _>>()?;
        return Ok(Tensor::cat(&encoded, 0)?);
    }
    let windows = mels
        .into_iter()
        .map(|mel| {
            Tensor::from_vec(mel.data, (1, mel.n_mels, mel.frames), &Device::Cpu)?
                .to_device(&model.device)?
                .to_dtype(model.dtype)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let mels = Tensor::cat(&windows, 0)?;
    drop(windows);
    encode(model, &mels, control)
}

fn encode(model: &Whisper, mel: &Tensor, control: &Control) -> Result<Tensor, models::Error> {
    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    control.timings().of(timings::ENCODE, || model.encoder.forward(mel, &tick))
}
