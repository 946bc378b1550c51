//! Texts turned into vectors: a job of its own kind, under the same rules of memory as a
//! transcription.
//!
//! Texts are sorted by length, the longest first: a batch pads little, and one that does not
//! fit is the first one. On a GPU a batch is computed at once, on the host in `SHARES` shares:
//! more at once are not faster there, take more memory, and keep a job longer from being
//! cancelled.

use std::path::{Path, PathBuf};
use std::time::Instant;

use formats::TextEmbeddingModel;
use memory::ladder::{Ladder, LadderSettings, LadderState, Processor, Step, Trouble, gave_up};
use memory::settings::EmbeddingProfile;
use memory::{Demand, DeviceKind, EmbeddingSizes, Footprint, Mark, Precision, Scope, Stage};
use models::text_embedding::TextEmbedder;
use wire::{DeviceChoice, EmbedTexts, ErrorCode, Event, Failure, Job, TextRole, TextVector};

use crate::device_context::DeviceContext;
use crate::trouble::{Broken, during};
use crate::{Control, Emit, StageError, device, job};

/// Shares of a batch on the host.
const SHARES: usize = 4;

/// A model on its device, with its hold on the device's memory.
#[derive(Debug)]
pub struct Embedder {
    model: TextEmbedder,
    path: PathBuf,
    wanted: Precision,
    sizes: EmbeddingSizes,
    /// After the weights, so that it ends when they are gone.
    scope: Scope,
}

impl Embedder {
    fn is(&self, path: &Path, wanted: Precision) -> bool {
        self.path == path && self.wanted == wanted
    }

    /// The tokens of each text, behind the prompt of its role.
    pub(crate) fn tokens(
        &self,
        asked: &EmbedTexts,
        control: &Control,
    ) -> Result<Vec<Vec<u32>>, models::Error> {
        let config = self.model.config();
        let prompt = match asked.role {
            TextRole::Query => &config.query_prompt,
            TextRole::Passage => &config.passage_prompt,
        };
        let tokens = |text: &String| go_on(control).and_then(|()| self.model.tokens(prompt, text));
        asked.texts.iter().map(tokens).collect()
    }

    /// Drops the weights, then verifies that their memory came back.
    pub fn free(self) {
        let Self { model, scope, .. } = self;
        scope.leave(|| drop(model));
    }
}

/// Turns every text into a vector, attempt after attempt, each with less, until one comes through.
///
/// # Errors
/// As [`Engine::embed_texts`](crate::Engine::embed_texts).
pub fn embed_texts(
    context: &mut Option<DeviceContext>,
    asked: &EmbedTexts,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<(), Failure> {
    let result = run(context, asked, control, emit, refuse);
    if let Some(context) = context {
        context.end_job();
        tell_marks(context, emit);
        context.device.budget().refuse_nth(None);
    }
    result.map_err(|error| match error {
        // What was worked on is the model: texts have no file.
        StageError::Model(error) => crate::error::model_failure(&error, &asked.job.model),
        error => error.failure(&Job { file: asked.job.model.clone(), ..asked.job.clone() }),
    })
}

fn run(
    context: &mut Option<DeviceContext>,
    asked: &EmbedTexts,
    control: &Control,
    emit: Emit,
    refuse: Option<u64>,
) -> Result<(), StageError> {
    let job = &asked.job;
    let files = find(job.model.as_path())?;
    let before = job.resume.as_ref().and_then(|resume| resume.ladder.clone());
    let on_cpu = before.as_ref().is_some_and(|state| state.settings.place == Processor::Cpu);
    let at = job::take_desk(context, if on_cpu { DeviceChoice::Cpu } else { job.device }, job)?;
    at.begin_job();
    at.device.budget().refuse_nth(refuse);
    let mut state = before.unwrap_or_else(|| top(job, at));
    emit(Event::Ladder { state: Box::new(state.clone()) });
    let ladder = Ladder { pins: job.memory.pins(), installed: Vec::new() };
    let mut work =
        Work { asked, files, control, emit, done: vec![false; asked.texts.len()], since: Instant::now() };
    loop {
        let Err(broken) = work.attempt(context, &mut state) else { return Ok(()) };
        work.tell(context);
        let Some(trouble) = broken.trouble() else { return Err(broken.error) };
        let Some(rung) = ladder.next(broken.stage, &state, trouble) else {
            let notice = gave_up(broken.stage, trouble, ladder.pins);
            (work.emit)(Event::Notice { notice: wire::notice::from_memory(&notice) });
            return Err(match trouble {
                Trouble::DeviceError | Trouble::NoCode => broken.error,
                _ => Failure::new(ErrorCode::OutOfMemory, notice.text).into(),
            });
        };
        (work.emit)(Event::Rung { rung: Box::new(rung.clone()) });
        if rung.trouble == Trouble::DeviceError {
            device::lose();
        }
        (work.emit)(Event::Notice { notice: wire::notice::from_memory(&rung.notice()) });
        let moves = rung.to.settings.place != state.settings.place;
        state = rung.to.clone();
        if let Some(context) = context {
            if let Some(bytes) = broken.asked() {
                context.device.allocation_failed(bytes);
            }
            if rung.step == Step::RetryAfterTrim {
                // A failure to release is a notice and a renewal of its own.
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

/// The model in a folder.
fn find(folder: &Path) -> Result<TextEmbeddingModel, StageError> {
    if !folder.exists() {
        let text = format!("There is no model at {}.", folder.display());
        return Err(Failure::new(ErrorCode::ModelNotFound, text)
            .remedy("`steno models` lists those that are installed.")
            .into());
    }
    let found = TextEmbeddingModel::find(folder).map_err(models::Error::from)?;
    found.ok_or_else(|| {
        let text = "This folder contains no model that turns texts into vectors.";
        let failure = Failure::new(ErrorCode::ModelUnsupported, text).file(folder);
        failure.remedy("Install one with `steno models pull multilingual-e5-small`.").into()
    })
}

/// The top of the ladder.
fn top(job: &Job, context: &DeviceContext) -> LadderState {
    let place = if context.is_cpu() { Processor::Cpu } else { Processor::Gpu };
    let profile = job.memory.embedding_profile;
    LadderState::new(LadderSettings {
        model: job.model.as_path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
        precision: precision(job, place).as_str().into(),
        batch: job.memory.batch_size.map_or(profile.batch(), |most| most.min(profile.batch())),
        place,
        speakers: false,
        speaker_batch: 1,
        speaker_place: place,
    })
}

/// The host computes in 32 bits unless the job asks for something else.
fn precision(job: &Job, place: Processor) -> Precision {
    let usual = match (place, job.memory.embedding_profile) {
        (Processor::Gpu, EmbeddingProfile::Speed) => Precision::F16,
        _ => Precision::F32,
    };
    job.precision.unwrap_or(usual)
}

/// All that the attempts share.
struct Work<'a> {
    asked: &'a EmbedTexts,
    files: TextEmbeddingModel,
    control: &'a Control,
    emit: Emit<'a>,
    /// By text.
    done: Vec<bool>,
    since: Instant,
}

impl Work<'_> {
    /// The texts that have no vector yet.
    fn attempt(
        &mut self,
        context: &mut Option<DeviceContext>,
        state: &mut LadderState,
    ) -> Result<(), Broken> {
        const STAGE: Stage = Stage::Embed;
        let (asked, control) = (self.asked, self.control);
        let at = context.as_mut().ok_or_else(|| Failure::new(ErrorCode::Internal, "There is no device."));
        let at = during(Stage::EmbeddingModel, at)?;
        self.load(at, state)?;
        self.tell(context);
        let Some((at, embedder)) = context.as_ref().and_then(|at| Some((at, at.embedder.as_ref()?))) else {
            return Ok(());
        };
        let model = &embedder.model;
        let mut texts: Vec<(usize, Vec<u32>)> =
            during(STAGE, embedder.tokens(asked, control))?.into_iter().enumerate().collect();
        texts.retain(|(number, _)| !self.done[*number]);
        texts.sort_by_key(|(number, tokens)| (std::cmp::Reverse(tokens.len()), *number));

        let kind = at.device.device().kind();
        let held = model.precision();
        let sizes = embedder.sizes;
        // At once, of these lengths.
        let demand = |batch: &[(usize, Vec<u32>)]| {
            let longest = batch.first().map_or(0, |(_, tokens)| tokens.len() as u64);
            let footprint = Footprint::text_embedding(&sizes, kind, held, longest);
            footprint.work(at_once(batch.len(), kind) as u64)
        };
        let batch = state.settings.batch.max(1) as usize;
        let first = &texts[..texts.len().min(batch)];
        let mut scope = during(STAGE, Scope::enter(&at.device, STAGE, Demand::from(demand(first))))?
            .trim_every(asked.job.memory.trim_every);
        for batch in texts.chunks(batch) {
            // Texts get shorter: shrinking always succeeds.
            let _ = scope.resize(demand(batch));
            let tokens: Vec<&[u32]> = batch.iter().map(|(_, tokens)| tokens.as_slice()).collect();
            let vectors = during(STAGE, embed_batch(model, &tokens, kind, control))?;
            let vectors: Vec<TextVector> = (batch.iter().zip(vectors))
                .map(|((text, _), vector)| TextVector { text: *text, vector })
                .collect();
            vectors.iter().for_each(|one| self.done[one.text] = true);
            let done = self.done.iter().filter(|done| **done).count();
            let per_second = done as f32 / self.since.elapsed().as_secs_f32().max(1e-6);
            (self.emit)(Event::Vectors { vectors, done, total: self.done.len(), per_second });
            state.progressed();
            scope.batch();
            tell_marks(at, self.emit);
        }
        scope.leave(|| ());
        self.tell(context);
        Ok(())
    }

    /// Has the model on the device, and no other.
    fn load(&self, context: &mut DeviceContext, state: &LadderState) -> Result<(), Broken> {
        const STAGE: Stage = Stage::EmbeddingModel;
        let (path, control) = (&self.files.folder, self.control);
        let wanted = precision(&self.asked.job, state.settings.place);
        if context.embedder.as_ref().is_some_and(|embedder| embedder.is(path, wanted)) {
            return Ok(());
        }
        context.unload();
        during(STAGE, context.verify(control))?;
        let held = TextEmbedder::held(&self.files.config, &context.chosen.device, wanted);
        let kind = context.device.device().kind();
        let sizes = self.files.sizes();
        let footprint = Footprint::text_embedding(&sizes, kind, held, 0);
        let demand = footprint.model_demand(&state.settings.model);
        let mut scope = during(STAGE, Scope::enter(&context.device, STAGE, demand))?;
        let model = TextEmbedder::load(&self.files, &context.chosen.device, wanted, &|| {
            control.worked();
            !control.is_cancelled()
        });
        let model = during(STAGE, model)?;
        scope.loaded();
        context.embedder = Some(Embedder { model, path: path.clone(), wanted, sizes, scope });
        Ok(())
    }

    fn tell(&mut self, context: &Option<DeviceContext>) {
        if let Some(context) = context {
            tell_marks(context, self.emit);
        }
    }
}

pub(crate) fn tell_marks(context: &DeviceContext, emit: Emit) {
    for mark in context.take_marks() {
        emit(match mark {
            Mark::Sample(sample) => Event::Memory { sample: Box::new(sample) },
            Mark::Notice(notice) => Event::Notice { notice: wire::notice::from_memory(&notice) },
        });
    }
}

fn go_on(control: &Control) -> Result<(), models::Error> {
    control.worked();
    if control.is_cancelled() { Err(models::Error::Interrupted) } else { Ok(()) }
}

/// The most texts of a batch that are computed at the same time.
pub fn at_once(batch: usize, kind: DeviceKind) -> usize {
    match kind {
        DeviceKind::Host => batch.div_ceil(SHARES),
        DeviceKind::Gpu => batch,
    }
}

/// The vectors of a batch, in its order.
fn embed_batch(
    model: &TextEmbedder,
    texts: &[&[u32]],
    kind: DeviceKind,
    control: &Control,
) -> Result<Vec<Vec<f32>>, models::Error> {
    let mut vectors = Vec::with_capacity(texts.len());
    for share in texts.chunks(at_once(texts.len(), kind).max(1)) {
        vectors.extend(model.embed(share, &|| go_on(control).is_ok())?);
    }
    Ok(vectors)
}
