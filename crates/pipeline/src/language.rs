use audio::{ChannelMode, LogMel, Recording};
use memory::ladder::{Ladder, LadderState, Processor, Rung, Step, Trouble, gave_up};
use memory::{Scope, Stage};
use transcript::Time;
use wire::{DeviceChoice, ErrorCode, Event, Failure, FilePath, Job};

use crate::device_context::DeviceContext;
use crate::loaded::Loaded;
use crate::speech_model::HearsLanguages;
use crate::start::{self, Models};
use crate::trouble::{Broken, during};
use crate::{Control, Emit, StageError, attempt, device, job, sound};

/// How much of a file is searched for speech whose language is asked for.
const LISTENED_TO: Time = Time::from_millis(5 * 60 * 1000);

/// The language of each file's first speech, of several files together where that is faster.
/// Where memory runs out it steps down as a transcription does, and the next files start from
/// there.
pub fn detect_languages(
    context: &mut Option<DeviceContext>,
    files: &[FilePath],
    job: &Job,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<(), Failure> {
    let result = detect_all(context, files, job, control, emit, refuse);
    if let Some(context) = context {
        // Nothing of this run belongs to the timeline of the next job.
        context.take_marks();
        context.device.budget().refuse_nth(None);
    }
    result
}

fn detect_all(
    context: &mut Option<DeviceContext>,
    files: &[FilePath],
    job: &Job,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<(), Failure> {
    let mut listening =
        Listening::begin(context, job, control, refuse).map_err(|error| error.failure(job))?;
    let mut rest = files.iter();
    loop {
        let batch = listening.state.settings.batch as usize;
        let mut together: Vec<Candidate> =
            rest.by_ref().take(batch).map(|file| Candidate::new(file, job)).collect();
        if together.is_empty() {
            return Ok(());
        }
        let answered = listening.to(&mut together, emit);
        if answered.is_err() && together.len() > 1 {
            // Only the file that is at fault fails.
            for candidate in &mut together {
                let answered = listening.to(std::slice::from_mut(candidate), emit);
                answer(candidate, answered, emit)?;
            }
            continue;
        }
        let mut failure = answered.err();
        for candidate in &mut together {
            answer(candidate, failure.take().map_or(Ok(()), Err), emit)?;
        }
    }
}

/// Tells the host what became of a file. An error only where the run was cancelled.
fn answer(candidate: &mut Candidate, outcome: Result<(), StageError>, emit: Emit) -> Result<(), Failure> {
    let file = candidate.job.file.clone();
    let outcome = candidate.failure.take().map_or(outcome, Err);
    match outcome.map_err(|error| error.failure(&candidate.job)) {
        Ok(()) => {
            emit(Event::Language { file, probabilities: candidate.votes.take().unwrap_or_default().result() })
        }
        Err(error) if error.code == ErrorCode::Cancelled => return Err(error),
        Err(error) => emit(Event::FileFailed { file, error }),
    }
    Ok(())
}

/// A file whose language is asked for.
struct Candidate {
    job: Job,
    /// With the number of mel bins that it was prepared for; kept from attempt to attempt.
    recording: Option<(usize, Recording)>,
    votes: Option<Votes>,
    /// Why the file can't be used.
    failure: Option<StageError>,
}

impl Candidate {
    fn new(file: &FilePath, job: &Job) -> Self {
        let job = Job {
            file: file.clone(),
            limit: Some(job.limit.map_or(LISTENED_TO, |limit| limit.min(LISTENED_TO))),
            ..job.clone()
        };
        Self { job, recording: None, votes: None, failure: None }
    }

    /// Where its next window begins, in frames of the log-mel.
    fn next_window(&self) -> Option<usize> {
        if self.failure.is_some() { None } else { self.votes.as_ref()?.next_window() }
    }

    /// Decodes the file, unless that was done. A file that can't be decoded is set aside with
    /// its failure.
    fn prepare(&mut self, n_mels: usize, window: usize, control: &Control) -> Result<(), Broken> {
        let is_prepared = self.recording.as_ref().is_some_and(|(with, _)| *with == n_mels);
        if is_prepared || self.failure.is_some() {
            return Ok(());
        }
        let prepared =
            sound::prepare(&self.job, n_mels, ChannelMode::Mix, &mut |_, _| !control.is_cancelled());
        match during(Stage::Preprocess, prepared) {
            Ok(recording) => {
                self.votes.get_or_insert_with(|| Votes::new(&recording, window));
                self.recording = Some((n_mels, recording));
            }
            Err(broken) if broken.trouble().is_none() => self.failure = Some(broken.error),
            Err(broken) => return Err(broken),
        }
        Ok(())
    }
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
        refuse: Option<u64>,
    ) -> Result<Self, StageError> {
        let choice = if device::is_lost() { DeviceChoice::Cpu } else { job.device };
        let at = job::take_desk(context, choice, job)?;
        at.device.budget().refuse_nth(refuse);
        let kind = at.device.device().kind();
        let models = Models::of(job, kind)?;
        let mut state = start::state(&models, job, at)?;
        state.settings.batch = start::detection_batch(&models, job, at);
        // There is no text yet that another engine could go on from, and in this process a device that failed can't be
        // opened again.
        state.renewed = true;
        let mut listening = Self { context, models, state, control };
        // A model that can't be used is no one file's fault.
        match listening.load(job) {
            Err(broken) if broken.trouble().is_none() => Err(broken.error),
            _ => Ok(listening),
        }
    }

    /// Attempt after attempt, each with less, until one comes through.
    fn to(&mut self, candidates: &mut [Candidate], emit: Emit) -> Result<(), StageError> {
        let Some(job) = candidates.first().map(|first| first.job.clone()) else { return Ok(()) };
        let ladder = Ladder { pins: job.memory.pins(), installed: self.models.installed() };
        loop {
            let broken = match self.attempt(&job, candidates) {
                Ok(()) => return Ok(()),
                Err(broken) => broken,
            };
            let Some(trouble) = broken.trouble() else { return Err(broken.error) };
            let Some(rung) = ladder.next(broken.stage, &self.state, trouble) else {
                if trouble.is_of_device() {
                    return Err(broken.error);
                }
                let text = gave_up(broken.stage, trouble, ladder.pins).text;
                return Err(Failure::new(ErrorCode::OutOfMemory, text).file(job.file.clone()).into());
            };
            emit(Event::Rung { rung: Box::new(rung.clone()) });
            self.step_down(rung);
        }
    }

    /// Listens to windows of several files at a time until every file is answered or set aside.
    fn attempt(&mut self, job: &Job, candidates: &mut [Candidate]) -> Result<(), Broken> {
        const STAGE: Stage = Stage::Transcribe;
        self.load(job)?;
        let control = self.control;
        let context: &DeviceContext = during(STAGE, self.context.as_ref().ok_or_else(no_device))?;
        let model = attempt::loaded(context, STAGE)?;
        let ear = during(STAGE, hears_languages(model))?;
        let (n_mels, window) = (ear.mel_bins(), ear.window_frames());
        for candidate in candidates.iter_mut() {
            candidate.prepare(n_mels, window, control)?;
        }
        let mel = LogMel::new(n_mels);
        loop {
            let mut listened: Vec<&mut Candidate> =
                candidates.iter_mut().filter(|candidate| candidate.next_window().is_some()).collect();
            listened.truncate(self.state.settings.batch.max(1) as usize);
            if listened.is_empty() {
                return Ok(());
            }
            let demand =
                model.footprint(job, context.device.device().kind()).work_demand(listened.len() as u64);
            let scope = during(STAGE, Scope::enter(&context.device, STAGE, demand))?;
            let found = during(STAGE, listen(ear, &listened, &mel, control))?;
            scope.leave(|| ());
            self.state.progressed();
            for (candidate, found) in listened.iter_mut().zip(found) {
                if let Some(votes) = &mut candidate.votes {
                    votes.add(found);
                }
            }
        }
    }

    fn load(&mut self, job: &Job) -> Result<(), Broken> {
        let on_cpu = self.state.settings.place == Processor::Cpu;
        let choice = if on_cpu || device::is_lost() { DeviceChoice::Cpu } else { job.device };
        let context = during(Stage::SpeechModel, job::take_desk(self.context, choice, job))?;
        self.models.load(context, &self.state.settings, self.control).map(|_| ())
    }

    fn step_down(&mut self, rung: Rung) {
        if rung.trouble == Trouble::DeviceError {
            device::lose();
        }
        if let Some(context) = self.context {
            if rung.step == Step::RetryAfterTrim {
                // A failure to release is a notice and a renewal of its own.
                let _ = context.device.recover();
            }
            context.take_marks();
        }
        self.state = rung.to;
    }
}

fn no_device() -> Failure {
    Failure::new(ErrorCode::Internal, "There is no device.")
}

/// How the model tells which language is spoken.
fn hears_languages(model: &Loaded) -> Result<&dyn HearsLanguages, Failure> {
    model.speech.hears_languages().ok_or_else(|| {
        let message = format!("The model {} does not say which language is spoken.", model.model.name);
        Failure::new(ErrorCode::ModelUnsupported, message).remedy("Choose a Whisper model for that.")
    })
}

/// A language that the model can write.
pub fn known_language(model: &Loaded, language: &str) -> Result<String, StageError> {
    match model.speech.known_language(language) {
        Some(code) => Ok(code),
        None => {
            let message = format!("The model {} does not know the language {language:?}.", model.model.name);
            let remedy = match check_untold(model) {
                Ok(()) => "Give a code such as en, de or es, or leave it out to detect it.",
                Err(_) => "Choose a language that it knows, or a Whisper model.",
            };
            Err(Failure::new(ErrorCode::LanguageUnknown, message).remedy(remedy).into())
        }
    }
}

/// Refuses a model that must be told the language where none was.
pub fn check_untold(model: &Loaded) -> Result<(), StageError> {
    let speech = &model.speech;
    match (speech.hears_languages(), speech.usual_language()) {
        (None, None) => Err(must_be_told(model).into()),
        _ => Ok(()),
    }
}

fn must_be_told(model: &Loaded) -> Failure {
    let message = format!("The model {} must be told which language is spoken.", model.model.name);
    let remedy = "Choose the language of the recording, or a Whisper model, which finds it.";
    Failure::new(ErrorCode::LanguageUnknown, message).remedy(remedy)
}

/// Probabilities of all languages in the next window of each candidate.
fn listen(
    ear: &dyn HearsLanguages,
    candidates: &[&mut Candidate],
    mel: &LogMel,
    control: &Control,
) -> Result<Vec<Vec<(String, f32)>>, StageError> {
    let frames = ear.window_frames();
    let mut windows = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if let (Some((_, recording)), Some(start)) = (&candidate.recording, candidate.next_window()) {
            windows.push(recording.log_mel(mel, start, frames)?);
        }
    }
    Ok(ear.languages(windows, control)?)
}

/// The likeliest language with its probability, detected where speech begins; where the first window leaves it open, by
/// the mean over up to three. Of a model that can't tell, the language that it is for.
pub fn language_of(
    model: &Loaded,
    recording: &Recording,
    control: &Control,
) -> Result<(String, Option<f32>), StageError> {
    let speech = &model.speech;
    let usual = || speech.usual_language().map(str::to_owned).ok_or_else(|| must_be_told(model));
    let Some(ear) = speech.hears_languages() else { return Ok((usual()?, None)) };
    let frames = ear.window_frames();
    let mel = LogMel::new(ear.mel_bins());
    let mut votes = Votes::new(recording, frames);
    while let Some(start) = votes.next_window() {
        let window = recording.log_mel(&mel, start, frames)?;
        votes.add(ear.languages(vec![window], control)?.into_iter().next().unwrap_or_default());
    }
    Ok(match votes.result().into_iter().next() {
        Some((code, probability)) => (code, Some(probability)),
        None => (usual()?, Some(0.0)),
    })
}

/// What the windows of a recording say of its language.
#[derive(Default)]
struct Votes {
    /// Where windows begin, in frames of the log-mel.
    starts: Vec<usize>,
    /// Windows that were listened to.
    listened: usize,
    sum: Vec<(String, f32)>,
    is_sure: bool,
}

impl Votes {
    /// A window is believed alone from this probability on.
    const SURE: f32 = 0.5;
    const MOST_WINDOWS: usize = 3;

    /// `window`: its frames. Windows begin where speech does; a recording without speech has one,
    /// at its beginning.
    fn new(recording: &Recording, window: usize) -> Self {
        let mut starts: Vec<usize> = Vec::new();
        for region in &recording.speech {
            let start = (region.start / 160) as usize;
            if starts.last().is_none_or(|last| start >= last + window) {
                starts.push(start);
            }
        }
        if starts.is_empty() {
            starts.push(0);
        }
        starts.truncate(Self::MOST_WINDOWS);
        Self { starts, ..Self::default() }
    }

    fn next_window(&self) -> Option<usize> {
        if self.is_sure { None } else { self.starts.get(self.listened).copied() }
    }

    /// Takes the probabilities of one window, the likeliest first.
    fn add(&mut self, found: Vec<(String, f32)>) {
        self.listened += 1;
        self.is_sure = found.first().is_some_and(|(_, probability)| *probability >= Self::SURE);
        if self.sum.is_empty() {
            self.sum = found;
            return;
        }
        for (code, probability) in &mut self.sum {
            let other = found.iter().find(|(other, _)| other == code);
            *probability += other.map_or(0.0, |(_, probability)| *probability);
        }
    }

    /// The mean over the windows, the likeliest first.
    fn result(self) -> Vec<(String, f32)> {
        let mut sum = self.sum;
        let total: f32 = sum.iter().map(|(_, probability)| probability).sum();
        sum.iter_mut().for_each(|(_, probability)| *probability /= total.max(f32::MIN_POSITIVE));
        sum.sort_by(|a, b| b.1.total_cmp(&a.1));
        sum
    }
}
