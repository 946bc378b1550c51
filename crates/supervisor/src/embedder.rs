use std::path::PathBuf;

use memory::Stage;
use memory::death::Death;
use memory::ladder::{Ladder, LadderSettings, LadderState, Processor, Rung, Step, Trouble};
use memory::settings::MemorySettings;
use wire::{DeviceChoice, ErrorCode, Event, Failure, Job, NO_JOB, TextRole};

use crate::engine::{Engine, EngineOptions};

/// Texts that an engine is sent at a time: of vectors of a thousand numbers 16 MB.
const MOST_TEXTS: usize = 4096;
/// Deaths of engines for other reasons than memory, the last of which ends the work.
const MOST_CRASHES: u32 = 3;

/// A model that turns texts into vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbeddingModel {
    /// Where its files are.
    pub folder: PathBuf,
    /// By which it is chosen.
    pub name: String,
    /// Changes when its weights do: vectors of another version can't be compared with its.
    pub version: String,
    /// Numbers of a vector.
    pub dimensions: usize,
}

/// What embeds texts, and within which limits.
#[derive(Debug, Clone, Default)]
pub struct EmbedderSettings {
    /// What computes.
    pub device: DeviceChoice,
    /// Compute threads; `None`: one per core.
    pub threads: Option<usize>,
    /// Limits, profile, pins.
    pub memory: MemorySettings,
}

/// Turns texts into vectors, in an engine that is replaced when it dies. Dropping it ends the
/// engine; [`Embedder::shut_down`] also waits for that.
#[derive(Debug)]
pub struct Embedder {
    options: EngineOptions,
    /// Of every command; its `resume` has where it stands on its ladder.
    job: Job,
    dimensions: usize,
    engine: Option<Engine>,
}

impl Embedder {
    /// Starts an engine for the model, which it loads with the first texts.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub async fn start(
        options: EngineOptions,
        model: &EmbeddingModel,
        settings: EmbedderSettings,
    ) -> Result<Self, Failure> {
        let EmbedderSettings { device, threads, memory } = settings;
        let folder = model.folder.as_path();
        let job = Job { device, threads, memory, ..Job::new(NO_JOB, folder, folder) };
        let engine = Some(Engine::start(&options).await?);
        Ok(Self { options, job, dimensions: model.dimensions, engine })
    }

    /// Vectors of length 1, in the order of the texts. An engine that dies is replaced, and asked
    /// again with half the batch, at last on the CPU; what it had done by then is kept. Dropping
    /// the future cancels the work.
    ///
    /// # Errors
    /// `OutOfMemory` where no step was left, `EngineFailed` for an engine that died again and
    /// again, and what is wrong with the model.
    pub async fn embed(&mut self, role: TextRole, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; texts.len()];
        let mut crashes = 0;
        loop {
            let (numbers, missing): (Vec<usize>, Vec<String>) = (texts.iter().enumerate())
                .filter(|(number, _)| vectors[*number].is_none())
                .take(MOST_TEXTS)
                .map(|(number, text)| (number, text.clone()))
                .unzip();
            if missing.is_empty() {
                break;
            }
            let mut take = |text: usize, vector| {
                if let Some(slot) = numbers.get(text).and_then(|number| vectors.get_mut(*number)) {
                    *slot = Some(vector);
                }
            };
            match self.attempt(role, missing, &mut take).await? {
                Some(failed) => self.step_down(failed, &mut crashes)?,
                // An engine that left out a text would be asked for it for ever.
                None if numbers.iter().any(|number| vectors[*number].is_none()) => break,
                None => {}
            }
        }
        let dimensions = self.dimensions;
        let checked = |vector: Option<Vec<f32>>| match vector {
            Some(vector) if vector.len() == dimensions => Ok(vector),
            Some(vector) => {
                let text = format!("The model makes vectors of {} numbers, not {dimensions}.", vector.len());
                Err(Failure::new(ErrorCode::ModelInvalid, text).file(self.job.model.clone()))
            }
            None => Err(Failure::new(ErrorCode::EngineFailed, "The engine left out a text.")),
        };
        vectors.into_iter().map(checked).collect()
    }

    /// Ends the engine and waits until it is gone: two seconds at most.
    pub async fn shut_down(self) {
        if let Some(engine) = &self.engine {
            engine.shutdown().await;
        }
    }

    /// The process that computes; `None` while there is none.
    pub fn engine_pid(&self) -> Option<u32> {
        self.engine.as_ref().filter(|engine| engine.is_running()).map(Engine::pid)
    }

    /// One engine's try; `None` where every text was done.
    async fn attempt(
        &mut self,
        role: TextRole,
        texts: Vec<String>,
        take: &mut (dyn FnMut(usize, Vec<f32>) + Send),
    ) -> Result<Option<Failed>, Failure> {
        let engine = match self.engine.take().filter(Engine::is_running) {
            Some(engine) => engine,
            None => Engine::start(&self.options).await?,
        };
        let place = if engine.device(self.job.device) == "cpu" { Processor::Cpu } else { Processor::Gpu };
        let engine = self.engine.insert(engine);
        let mut handle = engine.embed_texts(self.job.clone(), role, texts);
        let (mut state, mut rung, mut stage) = (None, None, Stage::EmbeddingModel);
        while let Some(event) = handle.next().await {
            match event {
                Event::Ladder { state: now } => state = Some(*now),
                Event::Rung { rung: taken } => {
                    state = Some(taken.to.clone());
                    rung = Some(*taken);
                }
                Event::Vectors { vectors, .. } => {
                    stage = Stage::Embed;
                    vectors.into_iter().for_each(|one| take(one.text, one.vector));
                }
                Event::TextsEmbedded { renewal } => {
                    if let Some(state) = state {
                        self.job.resume.get_or_insert_default().ladder = Some(state.for_next_file());
                    }
                    if renewal.is_some() {
                        // Dropping it ends the process.
                        self.engine = None;
                    }
                    return Ok(None);
                }
                Event::Failed { error, .. } => {
                    let death = self.engine.as_ref().and_then(Engine::death);
                    return Ok(Some(Failed { error, death, state, rung, stage, place }));
                }
                Event::Cancelled { .. } => {
                    return Err(Failure::new(ErrorCode::Cancelled, "Cancelled."));
                }
                _ => {}
            }
        }
        Err(Failure::new(ErrorCode::EngineFailed, "The engine gave no answer."))
    }

    /// What the next engine does otherwise; fails where there is none.
    fn step_down(&mut self, failed: Failed, crashes: &mut u32) -> Result<(), Failure> {
        let Failed { error, death, state, rung, stage, place } = failed;
        let renews = rung.as_ref().is_some_and(|rung| rung.step == Step::RenewEngine);
        let state = match (death, rung) {
            (None, Some(Rung { to, .. })) if renews => to,
            (Some(death), _) => {
                if !matches!(death, Death::OutOfMemory(_)) {
                    *crashes += 1;
                }
                let before = state.or_else(|| self.job.resume.as_ref()?.ladder.clone());
                let before = before.unwrap_or_else(|| self.top(place));
                let ladder = Ladder { pins: self.job.memory.pins(), installed: Vec::new() };
                // An engine that dies while it loads needs less for its work as well.
                let rung = ladder.next(Stage::Embed, &before, Trouble::Died);
                let rung = rung.or_else(|| ladder.next(stage, &before, Trouble::Died));
                match rung.filter(|_| *crashes < MOST_CRASHES) {
                    Some(rung) => rung.to,
                    None => return Err(error),
                }
            }
            _ => return Err(error),
        };
        self.engine = None;
        self.job.resume.get_or_insert_default().ladder = Some(state);
        Ok(())
    }

    /// Where an engine began that died before it said so.
    fn top(&self, place: Processor) -> LadderState {
        LadderState::new(LadderSettings {
            model: String::new(),
            precision: String::new(),
            batch: self.job.memory.embedding_profile.batch(),
            place,
            speakers: false,
            speaker_batch: 1,
            speaker_place: place,
        })
    }
}

/// How an attempt ended that did not come through.
struct Failed {
    error: Failure,
    /// Of the engine; `None` where it lives.
    death: Option<Death>,
    /// Where it stood on the ladder.
    state: Option<LadderState>,
    /// The last step that it took.
    rung: Option<Rung>,
    stage: Stage,
    place: Processor,
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::death::Evidence;

    fn embedder() -> Embedder {
        Embedder {
            options: EngineOptions::default(),
            job: Job::new(NO_JOB, "m", "m"),
            dimensions: 1,
            engine: None,
        }
    }

    fn failed(death: Option<Death>, place: Processor) -> Failed {
        let error = Failure::new(ErrorCode::EngineFailed, "It ended.");
        Failed { error, death, state: None, rung: None, stage: Stage::Embed, place }
    }

    #[test]
    fn after_a_death_the_batch_is_halved_and_at_last_the_cpu_computes() {
        let mut embedder = embedder();
        let mut crashes = 0;
        let mut steps = Vec::new();
        let died = || failed(Some(Death::OutOfMemory(Evidence::Killed)), Processor::Gpu);
        while embedder.step_down(died(), &mut crashes).is_ok() {
            let state = embedder.job.resume.as_ref().unwrap().ladder.as_ref().unwrap();
            steps.push((state.settings.batch, state.settings.place));
        }
        let gpu = [64, 32, 16, 8, 4, 2, 1].map(|batch| (batch, Processor::Gpu));
        assert_eq!(steps, [gpu.as_slice(), &[(1, Processor::Cpu)]].concat());
        assert_eq!(crashes, 0);
    }

    #[test]
    fn an_engine_that_crashes_again_and_again_is_given_up() {
        let mut embedder = embedder();
        let mut crashes = 0;
        let mut crash = || embedder.step_down(failed(Some(Death::Crash), Processor::Cpu), &mut crashes);
        assert!(crash().is_ok() && crash().is_ok());
        assert_eq!(crash().unwrap_err().code, ErrorCode::EngineFailed);
    }

    #[test]
    fn an_error_of_an_engine_that_lives_is_final() {
        assert!(embedder().step_down(failed(None, Processor::Cpu), &mut 0).is_err());
    }
}
