use memory::Mark;
use memory::ladder::{Ladder, Processor, Trouble, gave_up};
use transcript::Transcript;
use wire::{DeviceChoice, ErrorCode, Event, Failure, Job, KnownVoice};

use crate::attempt::Work;
use crate::device_context::DeviceContext;
use crate::draft::Draft;
use crate::start::{self, Models};
use crate::{Control, Emit, StageError, sound};

/// A job that ended without its transcript.
#[derive(Debug)]
pub struct Stopped {
    /// [`ErrorCode::Cancelled`] where the user wanted it so.
    pub failure: Failure,
    /// What there was until then.
    pub partial: Option<Box<Transcript>>,
}

/// One file from beginning to end, or from where an earlier attempt ended.
pub fn transcribe(
    context: &mut Option<DeviceContext>,
    job: &Job,
    voices: &[KnownVoice],
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<Transcript, Stopped> {
    let mut draft = Draft::new(job);
    let result = run(context, job, voices, control, emit, &mut draft, refuse);
    if let Some(context) = context {
        context.end_job();
        tell_marks(context, &mut draft, emit);
        context.device.budget().refuse_nth(None);
    }
    let device = context.as_ref().map_or("cpu", |context| context.chosen.id.as_str());
    match result {
        Ok(()) => {
            draft.finish(device, control.timings().stages());
            Ok(draft.transcript)
        }
        Err(error) => {
            let failure = error.failure(job);
            let partial = (!draft.transcript.segments.is_empty()).then(|| Box::new(draft.transcript));
            Err(Stopped { failure, partial })
        }
    }
}

/// Attempt after attempt, each with less, until one comes through.
#[allow(clippy::too_many_arguments)]
fn run(
    context: &mut Option<DeviceContext>,
    job: &Job,
    voices: &[KnownVoice],
    control: &Control,
    emit: Emit,
    draft: &mut Draft,
    refuse: Option<u64>,
) -> Result<(), StageError> {
    // A file that can't be opened should say so before a large model is loaded.
    let info = sound::probe(job)?;
    let before = job.resume.as_ref().and_then(|resume| resume.ladder.clone());
    let on_cpu = before.as_ref().is_some_and(|state| state.settings.place == Processor::Cpu);
    let at = take_desk(context, if on_cpu { DeviceChoice::Cpu } else { job.device }, job)?;
    at.begin_job();
    if let Some((device, problem)) = at.chosen.unusable.clone() {
        draft.notice(wire::notice::Message::DeviceUnusable { device, problem }.into(), emit);
    }
    at.device.budget().refuse_nth(refuse);
    let models = Models::of(job, at.device.device().kind())?;
    let state = match before {
        Some(state) => state,
        None => start::state(&models, job, at)?,
    };
    emit(Event::Ladder { state: Box::new(state.clone()) });
    let ladder = Ladder { pins: job.memory.pins(), installed: models.installed() };
    let mut work = Work::new(context, job, voices, control, emit, draft, models, state, info);
    loop {
        let result = work.attempt();
        work.tell();
        let Err(broken) = result else { return Ok(()) };
        let Some(trouble) = broken.trouble() else { return Err(broken.error) };
        let Some(rung) = ladder.next(broken.stage, work.state(), trouble) else {
            let notice = gave_up(broken.stage, trouble, ladder.pins);
            work.note(&notice);
            return Err(match trouble {
                Trouble::DeviceError | Trouble::NoCode => broken.error,
                _ => Failure::new(ErrorCode::OutOfMemory, notice.text).file(job.file.clone()).into(),
            });
        };
        work.step_down(&broken, rung)?;
    }
}

/// The context for this job: the one there is, where it suits.
pub fn take_desk<'a>(
    context: &'a mut Option<DeviceContext>,
    choice: DeviceChoice,
    job: &Job,
) -> Result<&'a mut DeviceContext, StageError> {
    if context.as_ref().is_none_or(|context| !context.suits(choice, &job.memory)) {
        if let Some(old) = context {
            old.unload();
        }
        *context = None;
        *context = Some(DeviceContext::new(choice, &job.memory)?);
    }
    context.as_mut().ok_or_else(|| Failure::new(ErrorCode::Internal, "There is no device.").into())
}

pub fn tell_marks(context: &DeviceContext, draft: &mut Draft, emit: Emit) {
    for mark in context.take_marks() {
        match mark {
            Mark::Sample(sample) => emit(Event::Memory { sample: Box::new(sample) }),
            Mark::Notice(notice) => draft.memory_notice(&notice, emit),
        }
    }
}
