//! Adapters of a speech model are trained: a job of its own kind, under the same rules of memory
//! as a transcription.
//!
//! Everything that decides what is learnt next (order, packing, rate) follows from the seed and the
//! numbers of epoch and step, and all state between two steps is a [`Snapshot`]: an adaptation that
//! was interrupted goes on as it would have.

mod epochs;
mod remember;
mod snapshot;
mod sounds;
mod train;
mod windows;

use std::path::Path;

use formats::WhisperConfig;
use memory::ladder::{Ladder, LadderSettings, LadderState, Processor, Step, Trouble, gave_up};
use memory::{Network, Scope, Stage};
use wire::{Adapt, Adapted, DeviceChoice, ErrorCode, Event, Failure, Job};

use crate::device_context::DeviceContext;
use crate::loaded::{Marker, name_of, network};
use crate::text_embedding::tell_marks;
use crate::{Control, Emit, StageError, device, job, sound};

use snapshot::{Place, Snapshot};
use sounds::Sounds;
use train::Work;

/// Most tokens of a window, as a share of the decoder's positions: what decoding writes at most.
const TOKENS_SHARE: usize = 2;

/// Trains adapters, attempt after attempt, each with less, until one comes through.
///
/// # Errors
/// As [`Engine::adapt`](crate::Engine::adapt).
pub fn adapt(
    context: &mut Option<DeviceContext>,
    asked: &Adapt,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<Adapted, Failure> {
    let result = run(context, asked, control, emit, refuse);
    if let Some(context) = context {
        context.end_job();
        tell_marks(context, emit);
        context.device.budget().refuse_nth(None);
    }
    result.map_err(|error| match error {
        // What was worked on is the model.
        StageError::Model(error) => crate::error::model_failure(&error, &asked.job.model),
        error => error.failure(&Job { file: asked.job.model.clone(), ..asked.job.clone() }),
    })
}

fn run(
    context: &mut Option<DeviceContext>,
    asked: &Adapt,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<Adapted, StageError> {
    let job = &asked.job;
    let path = job.model.as_path();
    let Network::Whisper(dimensions) = network(path)? else {
        let text = "Only Whisper models can be adapted.";
        return Err(Failure::new(ErrorCode::ModelUnsupported, text).file(path).into());
    };
    if asked.settings.precision.is_quantised() {
        let text = "Matrices of a model that learns are held in 32 or 16 bits.";
        return Err(Failure::new(ErrorCode::BadSettings, text).file(path).into());
    }
    let config = WhisperConfig::read(path).map_err(models::Error::from)?;
    let before = job.resume.as_ref().and_then(|resume| resume.ladder.clone());
    let on_cpu = before.as_ref().is_some_and(|state| state.settings.place == Processor::Cpu);
    let at = job::take_desk(context, if on_cpu { DeviceChoice::Cpu } else { job.device }, job)?;
    // What an earlier job left on the device is in the way.
    at.unload();
    at.begin_job();
    at.device.budget().refuse_nth(refuse);
    let base = formats::fingerprint(path).map_err(models::Error::from)?;
    let request = request(asked, &base);
    let sounds = listen(at, asked, &request, dimensions.mel_bins as usize, control)?;
    tell_marks(at, emit);
    let vocabulary = models::whisper::vocabulary(path)?;
    let mut state = before.unwrap_or_else(|| top(asked, at));
    emit(Event::Ladder { state: Box::new(state.clone()) });
    let installed = job.alternatives.iter().map(|known| known.installed.clone()).collect();
    let ladder = Ladder { pins: job.memory.pins(), installed };
    let snapshot = Snapshot::read(asked.folder.as_path(), &request);
    let snapshot = snapshot
        .unwrap_or_else(|| Snapshot { place: Place { request, ..Place::default() }, ..Snapshot::default() });
    let longest = config.dimensions.text_context as usize / TOKENS_SHARE;
    let mut work = Work::new(asked, config, base, &vocabulary, &sounds, longest, control, emit, snapshot)?;
    loop {
        let result = work.attempt(context, &mut state);
        work.tell(context);
        let broken = match result {
            Ok(adapted) => return Ok(adapted),
            Err(broken) => broken,
        };
        // Whatever comes next, the last step is not lost.
        work.keep()?;
        let Some(trouble) = broken.trouble() else { return Err(broken.error) };
        let Some(rung) = ladder.next(broken.stage, &state, trouble) else {
            let notice = gave_up(broken.stage, trouble, ladder.pins);
            work.emit(Event::Notice { notice: wire::notice::from_memory(&notice) });
            return Err(match trouble {
                Trouble::DeviceError | Trouble::NoCode => broken.error,
                _ => Failure::new(ErrorCode::OutOfMemory, notice.text).into(),
            });
        };
        work.emit(Event::Rung { rung: Box::new(rung.clone()) });
        if rung.trouble == Trouble::DeviceError {
            device::lose();
        }
        work.emit(Event::Notice { notice: wire::notice::from_memory(&rung.notice()) });
        let moves = rung.to.settings.place != state.settings.place;
        state = rung.to.clone();
        if let Some(context) = context {
            if let Some(bytes) = broken.asked() {
                context.device.allocation_failed(bytes);
            }
            // The next attempt loads the model anew, whatever was changed. A failure to release is a notice and a renewal of
            // its own.
            if !rung.trouble.is_of_device() {
                let _ = context.device.recover();
            }
        }
        if rung.step == Step::RenewEngine {
            let text = format!("{} The engine is restarted.", rung.notice().text);
            return Err(Failure::new(ErrorCode::OutOfMemory, text).into());
        }
        if moves {
            work.tell(context);
            job::take_desk(context, DeviceChoice::Cpu, job)?.begin_job();
        }
    }
}

/// The top of the ladder: the whole batch at once.
fn top(asked: &Adapt, context: &DeviceContext) -> LadderState {
    let place = if context.is_cpu() { Processor::Cpu } else { Processor::Gpu };
    let most = asked.job.memory.batch_size.unwrap_or(u32::MAX);
    let path = asked.job.model.as_path();
    // What may take over is known by this name.
    let known = asked.job.alternatives.first().map(|known| known.installed.model.clone());
    LadderState::new(LadderSettings {
        model: known.unwrap_or_else(|| name_of(path, &Marker::read(path))),
        precision: asked.settings.precision.as_str().into(),
        // Windows are heard one by one.
        batch: if asked.remember { 1 } else { asked.settings.batch.min(most).max(1) },
        place,
        speakers: false,
        speaker_batch: 1,
        speaker_place: place,
    })
}

/// Decodes what was not decoded before.
fn listen(
    context: &DeviceContext,
    asked: &Adapt,
    request: &str,
    n_mels: usize,
    control: &Control,
) -> Result<Sounds, StageError> {
    let demand = sound::PREPARING_BYTES + audio::Pcm::MAX_BYTES_IN_MEMORY;
    let enter = || Scope::enter(&context.host, Stage::Preprocess, demand);
    let scope = match enter() {
        Ok(scope) => scope,
        // Nothing smaller would do: once more after what is unused was given back.
        Err(_) => {
            let _ = context.host.recover();
            enter()?
        }
    };
    let sounds = Sounds::of(asked, request, n_mels, control);
    scope.leave(|| ());
    sounds
}

/// Tells one adaptation from another: all that its result depends on.
fn request(asked: &Adapt, base: &str) -> String {
    let Adapt { lessons, settings, remember, output, .. } = asked;
    let ages: Vec<_> = lessons.iter().map(|lesson| changed(lesson.file.as_path())).collect();
    // What was learnt in another way is not gone on with.
    const HOW: &str = "corrected words, the rest as before and in turn";
    let all = serde_json::to_vec(&(HOW, lessons, ages, settings, remember, output, base)).unwrap_or_default();
    let hash = all.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Length of a file and when it was changed.
fn changed(path: &Path) -> Option<(u64, u128)> {
    let found = std::fs::metadata(path).ok()?;
    let age = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some((found.len(), age.as_nanos()))
}
