//! One attempt: the network on the device, epoch after epoch from where the last attempt ended.

use std::time::{Duration, Instant};

use audio::{LogMel, WINDOW_SAMPLES};
use formats::{AdapterCard, AdapterFile, Learnt, WhisperConfig};
use jiff::Timestamp;
use memory::ladder::LadderState;
use memory::{Demand, Scope, Stage, TrainingFootprint};
use models::training::{AdamW, Adapters, Aim, Example, Keep, Ticker, Trainee, cosine};
use models::whisper::Vocabulary;
use wire::{Adapt, AdaptProgress, Adapted, ErrorCode, Event, Failure};

use super::epochs;
use super::remember::remember;
use super::snapshot::Snapshot;
use super::sounds::{Sounds, unwritable};
use super::windows::{Hearing, Material};
use crate::device_context::DeviceContext;
use crate::text_embedding::tell_marks;
use crate::trouble::{Broken, during};
use crate::{Control, Emit, StageError};

/// Share of what is free that activations may take before they are computed a second time instead.
const ROOMY: u64 = 2;

/// All that the attempts share.
pub struct Work<'a> {
    asked: &'a Adapt,
    config: WhisperConfig,
    base: String,
    material: Material<'a>,
    sounds: &'a Sounds,
    longest: usize,
    control: &'a Control,
    emit: Emit<'a>,
    snapshot: Snapshot,
    /// When the snapshot was last written.
    kept: Instant,
    mel: LogMel,
}

/// What one attempt has on the device.
struct Desk<'a> {
    trainee: &'a Trainee,
    adapters: &'a Adapters,
    optimiser: &'a mut AdamW,
    /// Windows computed together.
    rows: usize,
    keep: Keep,
    peak: u64,
}

impl<'a> Work<'a> {
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        asked: &'a Adapt,
        config: WhisperConfig,
        base: String,
        vocabulary: &'a Vocabulary,
        sounds: &'a Sounds,
        longest: usize,
        control: &'a Control,
        emit: Emit<'a>,
        snapshot: Snapshot,
    ) -> Result<Self, models::Error> {
        Ok(Self {
            asked,
            config,
            base,
            material: Material::new(vocabulary, &asked.lessons, sounds, longest)?,
            sounds,
            longest,
            control,
            emit,
            snapshot,
            kept: Instant::now(),
            mel: LogMel::new(config.dimensions.mel_bins as usize),
        })
    }

    pub fn emit(&mut self, event: Event) {
        (self.emit)(event);
    }

    pub fn tell(&mut self, context: &Option<DeviceContext>) {
        if let Some(context) = context {
            tell_marks(context, self.emit);
        }
    }

    /// Writes where it stands.
    pub fn keep(&mut self) -> Result<(), Failure> {
        self.kept = Instant::now();
        if self.snapshot.values.is_empty() {
            return Ok(());
        }
        self.snapshot.write(self.asked.folder.as_path())
    }

    /// From where the last attempt ended to the adapter.
    pub fn attempt(
        &mut self,
        context: &mut Option<DeviceContext>,
        state: &mut LadderState,
    ) -> Result<Adapted, Broken> {
        let at = context.as_mut().ok_or_else(|| Failure::new(ErrorCode::Internal, "There is no device."));
        let at = during(Stage::SpeechModel, at)?;
        during(Stage::SpeechModel, at.verify(self.control))?;
        if self.asked.remember {
            return self.remember(at, state);
        }
        let kind = at.device.device().kind();
        let settings = &self.asked.settings;
        let precision = state.settings.precision.parse().unwrap_or(settings.precision);
        let (rank, longest) = (u64::from(settings.rank), self.longest as u64);
        let footprint =
            TrainingFootprint::of(&self.config.dimensions, kind, precision, rank, longest, settings.encoder);
        let demand = Demand::new(state.settings.model.clone(), footprint.weights);
        let mut model = during(Stage::SpeechModel, Scope::enter(&at.device, Stage::SpeechModel, demand))?;
        let control = self.control.clone();
        let ticker = Ticker::new(move || {
            control.worked();
            !control.is_cancelled()
        });
        let path = self.asked.job.model.as_path();
        let trainee = Trainee::load(path, &at.chosen.device, precision, ticker);
        let trainee = during(Stage::SpeechModel, trainee)?;
        model.loaded();
        self.tell_of(at);

        let rows = state.settings.batch.max(1) as usize;
        let pressed = *state != LadderState::new(state.settings.clone())
            || state.settings.batch < settings.batch.max(1)
            || state.settings.precision != settings.precision.as_str();
        let roomy = footprint.work(rows as u64, true) <= at.device.budget().free() / ROOMY;
        let keep = if roomy && !pressed { Keep::Everything } else { Keep::Inputs };
        let work = footprint.work(rows as u64, keep == Keep::Everything);
        let scope = during(Stage::Adapt, Scope::enter(&at.device, Stage::Adapt, Demand::from(work)))?;
        let mut scope = scope.trim_every(self.asked.job.memory.trim_every);
        let trained = {
            let adapters = during(
                Stage::Adapt,
                Adapters::new(&self.config, self.card(), settings.encoder, settings.seed, &at.chosen.device),
            )?;
            let mut optimiser = during(Stage::Adapt, AdamW::new(&adapters))?;
            let peak = footprint.weights + work;
            let mut desk =
                Desk { trainee: &trainee, adapters: &adapters, optimiser: &mut optimiser, rows, keep, peak };
            let result = self.train(at, state, &mut scope, &mut desk);
            during(Stage::Adapt, result)
        };
        scope.leave(|| ());
        model.leave(|| drop(trainee));
        self.tell_of(at);
        trained
    }

    /// Writes an adapter of remembered corrections, without training. Where there are none, no file is written.
    fn remember(&mut self, at: &DeviceContext, state: &LadderState) -> Result<Adapted, Broken> {
        let asked = self.asked;
        let Self { material, control, emit, snapshot, .. } = self;
        let tell = &mut |progress| {
            emit(Event::Adapting { progress: Box::new(progress) });
            tell_marks(at, emit);
        };
        let remembered = remember(asked, &snapshot.place.request, material, at, state, control, tell)?;
        let adapted = Adapted {
            adapter: asked.output.clone(),
            remembered: remembered.len() as u32,
            epoch: 0,
            losses: Vec::new(),
            held_back: Vec::new(),
        };
        if !remembered.is_empty() {
            let path = asked.output.as_path().into();
            let card = AdapterCard { rank: 0, alpha: 0.0, remembered: remembered.len(), ..self.card() };
            let file = AdapterFile { path, card, remembered, ..AdapterFile::default() };
            during(Stage::Adapt, self.write(&file))?;
        }
        Ok(adapted)
    }

    fn train(
        &mut self,
        at: &DeviceContext,
        state: &mut LadderState,
        scope: &mut Scope,
        desk: &mut Desk,
    ) -> Result<Adapted, StageError> {
        let asked = self.asked;
        self.restore(desk)?;
        let (learnt, held_back) = (self.material.lessons(false), self.material.lessons(true));
        if !learnt.iter().any(|lesson| asked.lessons[*lesson].corrected) {
            let text = "There is nothing to learn from: no corrected text that fits a window of 30 seconds.";
            return Err(Failure::new(ErrorCode::BadSettings, text).into());
        }
        let (corrections, rest): (Vec<Hearing>, Vec<Hearing>) =
            held_back.into_iter().map(Hearing::as_it_is).partition(|it| asked.lessons[it.lesson].corrected);
        // Corrections alone, as they are compared in the end.
        let mut held_back = self.material.windows(&corrections, || 0);
        held_back.extend(self.material.windows(&rest, || WINDOW_SAMPLES));
        let epochs: Vec<Vec<Vec<Hearing>>> = (0..asked.settings.epochs)
            .map(|epoch| epochs::windows(&self.material, &learnt, asked.settings.seed, epoch))
            .collect();
        let batch = asked.settings.batch.max(1) as usize;
        let steps: u32 = epochs.iter().map(|windows| windows.len().div_ceil(batch) as u32).sum();
        let (began, first_step) = (Instant::now(), self.snapshot.place.steps);
        let mut progress = AdaptProgress {
            epochs: asked.settings.epochs,
            steps,
            windows: desk.rows.min(batch) as u32,
            keeps_inputs: desk.keep == Keep::Inputs,
            peak: desk.peak,
            ..AdaptProgress::default()
        };
        // As the model is, or after an epoch behind which it was interrupted.
        if self.snapshot.place.held_back.len() <= self.snapshot.place.epochs as usize {
            self.hold_back(&held_back, desk)?;
            let place = &self.snapshot.place;
            (progress.epoch, progress.step) = (place.epochs, place.steps);
            progress.held_back_loss = place.held_back.last().copied();
            self.emit(Event::Adapting { progress: Box::new(progress.clone()) });
        }
        for (epoch, windows) in epochs.iter().enumerate().skip(self.snapshot.place.epochs as usize) {
            if self.is_learnt_out() {
                break;
            }
            let number = epoch as u32 + 1;
            scope.epoch(number, false);
            for batch in windows.chunks(batch).skip(self.snapshot.place.batches as usize) {
                let loss = self.step(batch, steps, desk)?;
                state.progressed();
                scope.batch();
                let place = &self.snapshot.place;
                let rate = began.elapsed().as_secs_f32() / (place.steps - first_step).max(1) as f32;
                progress.epoch = number;
                progress.step = place.steps;
                progress.loss = Some(loss);
                progress.held_back_loss = place.held_back.last().copied();
                progress.left = Some(rate * (steps - place.steps.min(steps)) as f32);
                self.emit(Event::Adapting { progress: Box::new(progress.clone()) });
                self.tell_of(at);
                if self.kept.elapsed() >= Duration::from_secs(u64::from(asked.settings.checkpoint_seconds)) {
                    self.keep()?;
                }
            }
            self.snapshot.place.epochs = number;
            self.snapshot.place.batches = 0;
            self.hold_back(&held_back, desk)?;
            scope.epoch(number, true);
            progress.held_back_loss = self.snapshot.place.held_back.last().copied();
            self.emit(Event::Adapting { progress: Box::new(progress.clone()) });
            self.tell_of(at);
            self.keep()?;
        }
        self.finish(desk)
    }

    /// One step of a batch, in parts that are computed together.
    fn step(&mut self, batch: &[Vec<Hearing>], steps: u32, desk: &mut Desk) -> Result<f32, StageError> {
        let settings = &self.asked.settings;
        let examples: Vec<Example> =
            batch.iter().map(|window| self.material.example(window, &self.mel)).collect::<Result<_, _>>()?;
        let weight = weight(&examples);
        let mut gradients = desk.adapters.no_gradients();
        let mut loss = 0.0;
        for part in examples.chunks(desk.rows) {
            loss += desk.trainee.learn(desk.adapters, part, weight, desk.keep, &mut gradients)?;
        }
        if !loss.is_finite() {
            let text = "Training has come to numbers that are not finite.";
            return Err(Failure::new(ErrorCode::BadSettings, text).remedy("Take a lower --rate.").into());
        }
        let rate = cosine(self.snapshot.place.steps, steps, settings.rate);
        desk.optimiser.step(desk.adapters, &gradients, rate)?;
        let place = &mut self.snapshot.place;
        place.batches += 1;
        place.steps += 1;
        place.losses.push(loss);
        self.snapshot.take(desk.adapters, desk.optimiser)?;
        Ok(loss)
    }

    /// Finds out how well what was held back is heard, and keeps the best.
    fn hold_back(&mut self, windows: &[Vec<Hearing>], desk: &Desk) -> Result<(), StageError> {
        let (mut loss, mut learnt, mut corrected) = (0.0, 0, false);
        for part in windows.chunks(desk.rows) {
            let examples: Vec<Example> = part
                .iter()
                .map(|window| self.material.example(window, &self.mel))
                .collect::<Result<_, _>>()?;
            loss += desk.trainee.loss(desk.adapters, &examples, 1.0)?;
            learnt += examples.iter().map(Example::learnt).sum::<usize>();
            corrected |= examples.iter().any(|example| example.aims.contains(&Aim::Token));
        }
        let place = &mut self.snapshot.place;
        // What was not corrected can only get worse.
        if !corrected {
            // Then the latest is the best.
            place.best_epoch = place.epochs;
            return Ok(());
        }
        let loss = loss / learnt as f32;
        let best = place.held_back.iter().copied().fold(f32::INFINITY, f32::min);
        if place.epochs > 0 && loss < best {
            place.best_epoch = place.epochs;
            self.snapshot.best.clone_from(&self.snapshot.values);
        }
        place.held_back.push(loss);
        Ok(())
    }

    /// Whether more learning made nothing better for some time.
    fn is_learnt_out(&self) -> bool {
        let place = &self.snapshot.place;
        !place.held_back.is_empty() && place.epochs >= place.best_epoch + self.asked.settings.patience.max(1)
    }

    /// Has adapters and optimiser as they were after the last step.
    fn restore(&mut self, desk: &mut Desk) -> Result<(), StageError> {
        let Snapshot { place, values, moments, .. } = &self.snapshot;
        if values.is_empty() {
            return Ok(());
        }
        if desk.adapters.set(values)? && desk.optimiser.restore(moments, place.steps)? {
            return Ok(());
        }
        let text = "The checkpoint of an earlier attempt does not fit the model.";
        Err(Failure::new(ErrorCode::Internal, text).file(self.asked.folder.clone()).into())
    }

    fn finish(&mut self, desk: &Desk) -> Result<Adapted, StageError> {
        let best = match self.snapshot.best.is_empty() {
            true => &self.snapshot.values,
            false => &self.snapshot.best,
        };
        desk.adapters.set(best)?;
        let place = &self.snapshot.place;
        let held_back = place
            .held_back
            .first()
            .map(|before| (*before, place.held_back.iter().copied().fold(f32::INFINITY, f32::min)));
        let epochs = if place.best_epoch > 0 { place.best_epoch } else { place.epochs };
        let card = AdapterCard { epochs, held_back_loss: held_back, ..self.card() };
        let file = desk.adapters.contents(self.asked.output.as_path(), card)?;
        self.write(&file)?;
        Ok(Adapted {
            adapter: self.asked.output.clone(),
            remembered: 0,
            epoch: epochs,
            losses: place.losses.clone(),
            held_back: place.held_back.clone(),
        })
    }

    /// Writes the adapter, then removes the checkpoints and sounds, which are no longer needed.
    fn write(&self, file: &AdapterFile) -> Result<(), Failure> {
        file.write().map_err(|error| unwritable(&file.path, &error))?;
        let _ = std::fs::remove_dir_all(self.asked.folder.as_path());
        Ok(())
    }

    fn card(&self) -> AdapterCard {
        let Adapt { job, lessons, settings, .. } = self.asked;
        let model =
            crate::loaded::name_of(job.model.as_path(), &crate::loaded::Marker::read(job.model.as_path()));
        let mut files: Vec<_> = lessons.iter().map(|lesson| lesson.file.as_path()).collect();
        files.sort_unstable();
        files.dedup();
        let language = |lesson: &wire::Lesson| lesson.language.clone().unwrap_or_else(|| "en".into());
        let mut languages: Vec<String> = lessons.iter().map(language).collect();
        languages.sort_unstable();
        languages.dedup();
        AdapterCard {
            model,
            base: self.base.clone(),
            rank: settings.rank,
            alpha: settings.alpha,
            created: Timestamp::now().to_string(),
            seed: settings.seed,
            learnt: Learnt {
                recordings: files.len(),
                segments: lessons.iter().filter(|lesson| !lesson.held_back).count(),
                corrected: lessons.iter().filter(|lesson| lesson.corrected && !lesson.held_back).count(),
                seconds: self.sounds.seconds(),
                languages,
            },
            ..AdapterCard::default()
        }
    }

    fn tell_of(&mut self, context: &DeviceContext) {
        tell_marks(context, self.emit);
    }
}

/// What each token counts, so that parts of a batch add up to its mean.
fn weight(examples: &[Example]) -> f32 {
    1.0 / examples.iter().map(Example::learnt).sum::<usize>().max(1) as f32
}
