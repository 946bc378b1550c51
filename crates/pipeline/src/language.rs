use audio::{ChannelMode, LogMel, Recording};
use memory::ladder::{Ladder, LadderState, Processor, Rung, Step, gave_up};
use memory::{Scope, Stage};
use transcript::Time;
use wire::{DeviceChoice, ErrorCode, Event, Failure, FilePath, Job};

use crate::device_context::DeviceContext;
use crate::loaded::Loaded;
use crate::start::{self, Models};
use crate::trouble::{Broken, during};
use crate::whisper::{detect_language, encode_window, language_name_or_code};
use crate::{Control, Emit, StageError, attempt, job, sound};

/// How much of a file is searched for speech whose language is asked for.
const LISTENED_TO: Time = Time::from_millis(5 * 60 * 1000);

/// The language of each file's first speech. Where memory runs out it steps
/// down as a transcription does, and the next file starts from there.
pub fn detect_languages(
    context: &mut Option<DeviceContext>,
    files: &[FilePath],
    job: &Job,
    control: &Control,
    emit: Emit,
) -> Result<(), Failure> {
    let mut listening = Listening::begin(context, job, control).map_err(|error| error.failure(job))?;
    for file in files {
        let job = Job { file: file.clone(), limit: Some(job.limit.unwrap_or(LISTENED_TO)), ..job.clone() };
        match listening.to(&job, emit) {
            Ok(probabilities) => {
                emit(Event::Language { file: file.clone(), probabilities });
            }
            Err(error) => {
                let error = error.failure(&job);
                if error.code == ErrorCode::Cancelled {
                    return Err(error);
                }
                emit(Event::FileFailed { file: file.clone(), error });
            }
        }
    }
    Ok(())
}

/// What all files are listened to with.
struct Listening<'a> {
    context: &'a mut Option<DeviceContext>,
    models: Models,
    state: LadderState,
    control: &'a Control,
}

impl<'a> Listening<'a> {
    fn begin(
        context: &'a mut Option<DeviceContext>,
        job: &Job,
        control: &'a Control,
    ) -> Result<Self, StageError> {
        let at = job::take_desk(context, job.device, job)?;
        let models = Models::of(job, at.device.device().kind())?;
        let state = start::state(&models, job, at)?;
        let mut listening = Self { context, models, state, control };
        // A model that can't be used is no one file's fault.
        match listening.load(job) {
            Err(broken) if broken.trouble().is_none() => Err(broken.error),
            _ => Ok(listening),
        }
    }

    /// Attempt after attempt, each with less, until one comes through.
    fn to(&mut self, job: &Job, emit: Emit) -> Result<Vec<(String, f32)>, StageError> {
        let ladder = Ladder { pins: job.memory.pins(), installed: self.models.installed() };
        let mut recording = None;
        loop {
            let broken = match self.attempt(job, &mut recording) {
                Ok(found) => {
                    self.state.progressed();
                    return Ok(found);
                }
                Err(broken) => broken,
            };
            let Some(trouble) = broken.trouble() else { return Err(broken.error) };
            let Some(rung) = ladder.next(broken.stage, &self.state, trouble) else {
                let text = gave_up(broken.stage, trouble, ladder.pins).text;
                return Err(Failure::new(ErrorCode::OutOfMemory, text).file(job.file.clone()).into());
            };
            emit(Event::Rung { rung: Box::new(rung.clone()) });
            self.step_down(job, rung)?;
        }
    }

    /// `recording` is kept from attempt to attempt.
    fn attempt(
        &mut self,
        job: &Job,
        recording: &mut Option<(usize, Recording)>,
    ) -> Result<Vec<(String, f32)>, Broken> {
        const STAGE: Stage = Stage::Transcribe;
        self.load(job)?;
        let control = self.control;
        let context: &DeviceContext = during(STAGE, self.context.as_ref().ok_or_else(no_device))?;
        let model = attempt::loaded(context, STAGE)?;
        let n_mels = model.whisper.config.dimensions.mel_bins as usize;
        let recording = match recording {
            Some((with, recording)) if *with == n_mels => recording,
            other => {
                let heard =
                    sound::prepare(job, n_mels, ChannelMode::Mix, &mut |_, _| !control.is_cancelled());
                &other.insert((n_mels, during(Stage::Preprocess, heard)?)).1
            }
        };
        let demand = model.footprint(job, context.device.device().kind()).work_demand(1);
        let scope = during(STAGE, Scope::enter(&context.device, STAGE, demand))?;
        let found = during(STAGE, language_of(model, recording, control))?;
        scope.leave(|| ());
        Ok(found)
    }

    fn load(&mut self, job: &Job) -> Result<(), Broken> {
        let on_cpu = self.state.settings.place == Processor::Cpu;
        let device = if on_cpu { DeviceChoice::Cpu } else { job.device };
        let context = during(Stage::SpeechModel, job::take_desk(self.context, device, job))?;
        self.models.load(context, &self.state.settings, self.control).map(|_| ())
    }

    /// There is no text yet that a new engine could go on from, so that a device
    /// in doubt is opened anew here.
    fn step_down(&mut self, job: &Job, rung: Rung) -> Result<(), StageError> {
        if let Some(context) = self.context {
            if rung.step == Step::RetryAfterTrim {
                // A failure to release is a notice and a renewal of its own.
                let _ = context.device.recover();
            }
            context.take_marks();
        }
        if rung.step == Step::RenewEngine
            && let Some(mut old) = self.context.take()
        {
            old.unload();
            drop(old);
            job::take_desk(self.context, job.device, job)?;
        }
        self.state = rung.to;
        Ok(())
    }
}

fn no_device() -> Failure {
    Failure::new(ErrorCode::Internal, "There is no device.")
}

/// A language that the model has a token for.
pub fn known_language(model: &Loaded, language: &str) -> Result<String, StageError> {
    let vocabulary = &model.whisper.vocabulary;
    let code = language_name_or_code(language);
    let known = |code: &str| {
        if vocabulary.is_multilingual() { vocabulary.language_token(code).is_some() } else { code == "en" }
    };
    match code.filter(|code| known(code)) {
        Some(code) => Ok(code.to_owned()),
        None => {
            let message = format!("The model {} does not know the language {language:?}.", model.model.name);
            Err(Failure::new(ErrorCode::LanguageUnknown, message)
                .remedy("Give a code such as en, de or es, or an English name, or leave it out to detect it.")
                .into())
        }
    }
}

/// Detected where speech begins; where the first window leaves it open, the
/// mean over up to three.
pub fn language_of(
    model: &Loaded,
    recording: &Recording,
    control: &Control,
) -> Result<Vec<(String, f32)>, StageError> {
    const SURE: f32 = 0.5;
    const WINDOWS: usize = 3;
    let whisper = &model.whisper;
    let frames = whisper.config.window_frames();
    let mut mel = LogMel::new(whisper.config.dimensions.mel_bins as usize);
    let mut starts: Vec<usize> = Vec::new();
    for region in &recording.speech {
        let start = (region.start / 160) as usize;
        if starts.last().is_none_or(|last| start >= last + frames) {
            starts.push(start);
        }
    }
    if starts.is_empty() {
        starts.push(0);
    }
    let mut sum: Vec<(String, f32)> = Vec::new();
    for start in starts.into_iter().take(WINDOWS) {
        let audio = encode_window(whisper, recording.log_mel(&mut mel, start, frames)?, control)?;
        let found = detect_language(whisper, &audio, control)?.into_iter().next().unwrap_or_default();
        let sure = found.first().is_some_and(|(_, probability)| *probability >= SURE);
        if sum.is_empty() {
            sum = found;
        } else {
            for (code, probability) in &mut sum {
                let other = found.iter().find(|(other, _)| other == code);
                *probability += other.map_or(0.0, |(_, probability)| *probability);
            }
        }
        if sure {
            break;
        }
    }
    let total: f32 = sum.iter().map(|(_, probability)| probability).sum();
    sum.iter_mut().for_each(|(_, probability)| *probability /= total.max(f32::MIN_POSITIVE));
    sum.sort_by(|a, b| b.1.total_cmp(&a.1));
    Ok(sum)
}
