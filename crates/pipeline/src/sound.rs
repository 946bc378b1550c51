use std::ops::ControlFlow;

use audio::{ChannelMode, MediaInfo, OpenOptions, PrepareOptions, Recording, SpeechRegion};
use memory::Scope;
use transcript::{Span, Time};
use wire::{Job, VoiceActivity};

use crate::StageError;

/// A channel's sound, ready to be listened to.
#[derive(Debug)]
pub struct Sound {
    pub channel: usize,
    pub n_mels: usize,
    pub recording: Recording,
    /// After the sound, so that it ends when that is gone.
    pub scope: Scope,
}

impl Sound {
    pub fn free(self) {
        let Self { recording, scope, .. } = self;
        scope.leave(|| drop(recording));
    }
}

/// What decoding may allocate beyond what there is: several times what the
/// longest recording takes, and little enough for any machine. Only a damaged
/// file asks for more.
const DECODING_BYTES: usize = 192 << 20;

/// What decoding and resampling hold while they run, besides the sound.
/// Measured: 10 hours take what 10 minutes do, up to 18 MB.
pub const PREPARING_BYTES: u64 = 24 << 20;

/// What the file is, without decoding it.
pub fn probe(job: &Job) -> Result<MediaInfo, StageError> {
    Ok(memory::allocation::limited(DECODING_BYTES, || audio::probe(job.file.as_path()))?)
}

/// Where there is speech.
pub fn spans(recording: &Recording) -> Vec<Span> {
    recording.speech.iter().map(span).collect()
}

/// Where in the speech of a recording there is a voice.
pub fn voiced_spans(recording: &Recording) -> Vec<Span> {
    recording.voiced.iter().map(span).collect()
}

fn span(region: &SpeechRegion) -> Span {
    let at = |sample: u64| Time::from_seconds(sample as f64 / f64::from(audio::SAMPLE_RATE));
    Span::new(at(region.start), at(region.end))
}

/// Decodes one channel to what every stage works on.
pub fn prepare(
    job: &Job,
    n_mels: usize,
    channels: ChannelMode,
    go_on: &mut dyn FnMut(f64, Option<f64>) -> bool,
) -> Result<Recording, StageError> {
    let options = PrepareOptions {
        open: OpenOptions { track: job.track, channels, limit_seconds: job.limit.map(Time::seconds) },
        n_mels,
        vad: match job.voice_activity {
            VoiceActivity::Off => None,
            VoiceActivity::Threshold(threshold) => Some(threshold),
        },
        spool_folder: job.spool_folder.as_ref().map(|folder| folder.0.clone()),
    };
    let recording = memory::allocation::limited(DECODING_BYTES, || {
        audio::prepare(job.file.as_path(), &options, &mut |seconds, total| {
            if go_on(seconds, total) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
    })?;
    Ok(recording)
}
