//! What is said first in a long recording, shown while the rest of it is still to be read.

use audio::{ChannelMode, Recording};
use memory::Network;
use transcript::Time;
use wire::{DecodingOptions, ErrorCode, Failure, Job, Strategy, VoiceActivity};

use crate::language::language_of;
use crate::loaded::Loaded;
use crate::speech_model::Request;
use crate::steps::{Found, Observer, Speech, Step};
use crate::{Control, StageError, sound};

/// Recordings from this length on: shorter ones are read in half a second.
const LONG: Time = Time::from_millis(20 * 60 * 1000);

/// With more weights, the first words take a processor longer than reading an hour does: tiny and base have fewer, small
/// has 244 million.
const MOST_WEIGHTS: u64 = 100_000_000;

/// So much of the beginning is searched for words.
const BEGINNING: Time = Time::from_millis(2 * 60 * 1000);

/// What the samples of the beginning take.
pub const BYTES: u64 = (BEGINNING.millis() as u64 / 1000) * audio::SAMPLE_RATE as u64 * 4;

/// Windows that are read in search of the first words.
const MOST_WINDOWS: usize = 2;

/// Whether a processor finds the first words before it would have read the recording.
pub fn is_quick(network: &Network) -> bool {
    network.parameters().total() <= MOST_WEIGHTS
}

/// Whether there is anyone to see the first words of this job, which begins with a recording of so many `seconds`.
pub fn is_wanted(job: &Job, seconds: Option<f64>, control: &Control) -> bool {
    let is_long = |length: Time| length >= LONG;
    control.live_text().is_heard()
        && seconds.is_some_and(|seconds| is_long(Time::from_seconds(seconds)))
        && job.limit.is_none_or(is_long)
        && job.span.is_none()
        && job.resume.is_none()
}

/// Decodes the beginning.
///
/// # Errors
/// Where the file can't be decoded, or the job was cancelled.
pub fn beginning(
    job: &Job,
    n_mels: usize,
    channels: ChannelMode,
    control: &Control,
) -> Result<Recording, StageError> {
    let beginning = Job { limit: Some(BEGINNING), ..job.clone() };
    sound::prepare(&beginning, n_mels, channels, &mut |_, _| {
        control.worked();
        !control.is_cancelled()
    })
}

/// Shows the text of its first window, and where nothing is said there, of the next; `began` is told where each begins.
/// It is the greedy text, without repairs and word times: the fastest.
///
/// # Errors
/// Where computing fails, or the job was cancelled.
pub fn show(
    job: &Job,
    model: &Loaded,
    beginning: &Recording,
    language: Option<&str>,
    control: &Control,
    began: &mut dyn FnMut(u64),
) -> Result<(), StageError> {
    let frames = |sample: u64| (sample / audio::HOP as u64) as usize;
    let regions: Vec<_> =
        beginning.speech.iter().map(|region| frames(region.start)..frames(region.end)).collect();
    let speech: Speech = (job.voice_activity != VoiceActivity::Off).then_some(&regions[..]);
    let detected;
    let language = match language {
        Some(language) => language,
        None => {
            detected = language_of(model, beginning, control)?.0;
            &detected
        }
    };
    let settings = DecodingOptions {
        beam_size: Some(1),
        best_of: 1,
        temperatures: vec![0.0],
        word_times: false,
        repair: false,
        ..job.decoding.clone()
    };
    let request = Request {
        recording: beginning,
        speech,
        span: None,
        strategy: if job.is_batched() { Strategy::Batched } else { Strategy::Sequential },
        settings: &settings,
        task: job.task,
        language,
        skip: &[],
        control,
    };
    let mut first = FirstWords { control, began, windows: 0, is_done: false };
    match model.speech.transcribe(&request, &Default::default(), &mut first) {
        Err(_) if first.is_done => Ok(()),
        result => result,
    }
}

/// Ends the run once there are words.
struct FirstWords<'a> {
    control: &'a Control,
    began: &'a mut dyn FnMut(u64),
    windows: usize,
    is_done: bool,
}

impl Observer for FirstWords<'_> {
    fn step(&mut self, step: Step) -> Result<(), StageError> {
        match step {
            Step::Began { position, .. } => (self.began)(position),
            Step::Found(Found { segments, windows, .. }) => {
                self.windows += windows;
                let texts: Vec<&str> = segments.iter().map(|segment| segment.text.as_str()).collect();
                self.control.live_text().tell_whole(&texts.join(" "));
                self.is_done = !segments.is_empty() || self.windows >= MOST_WINDOWS;
            }
        }
        match self.is_done {
            true => Err(Failure::new(ErrorCode::Cancelled, "The first words are shown.").into()),
            false => Ok(()),
        }
    }
}
