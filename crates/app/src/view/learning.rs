//! What models learn from the user's corrections.

use advisor::adapters::ListedAdapter;
use formats::{AdapterCard, AdapterFigures};
use learning::{CorrectedRecording, Form, Prediction};
use serde::Serialize;
use ts_rs::TS;

use super::Failure;
use crate::session::{self, LearningState};

/// What a model has learnt.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Adapter {
    /// By which it is chosen.
    pub name: String,
    /// Of its file.
    pub bytes: u64,
    /// Its model is used with it.
    pub on: bool,
    /// What it is; null: it can't be read.
    pub card: Option<AdapterCard>,
    /// Why it can't be read.
    pub failure: Option<Failure>,
}

/// What a model could learn from.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Lessons {
    /// Transcripts with corrections.
    pub recordings: Vec<CorrectedText>,
    /// Bytes that it is predicted to take; null: this model can't learn.
    pub memory: Option<u64>,
    /// Why it can't.
    pub failure: Option<Failure>,
}

/// A transcript with corrections.
#[derive(Debug, Clone, Serialize, TS)]
pub struct CorrectedText {
    /// Its number in the history.
    pub document: i64,
    /// The recording's file name.
    pub title: String,
    /// The corrected segments.
    pub segments: Vec<CorrectedSegment>,
    /// Seconds that training on it takes, about; null: this machine's speed was not measured.
    pub seconds: Option<f64>,
}

/// A segment that the user corrected.
#[derive(Debug, Clone, Serialize, TS)]
pub struct CorrectedSegment {
    /// Its place among the transcript's segments, from 0.
    pub number: u32,
    /// Seconds.
    pub start: f64,
    /// Seconds.
    pub end: f64,
    /// As it reads now.
    pub text: String,
}

impl From<learning::CorrectedSegment> for CorrectedSegment {
    fn from(it: learning::CorrectedSegment) -> Self {
        let learning::CorrectedSegment { number, span, text } = it;
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Self { number, start: span.start.seconds(), end: span.end.seconds(), text }
    }
}

/// What is being learnt, or was last.
#[derive(Debug, Clone, Serialize, TS)]
pub struct LearningRun {
    /// The model's name.
    pub model: String,
    /// How far it is.
    pub stage: LearningStage,
    /// Windows of 30 seconds that the model has heard as it is, for corrections to be remembered.
    pub heard: u32,
    /// All that it is to hear so; 0 where it is trained.
    pub to_hear: u32,
    /// From 1; 0 before the first one.
    pub epoch: u32,
    /// At most.
    pub epochs: u32,
    /// Steps done, of all epochs.
    pub step: u32,
    /// Steps of all epochs.
    pub steps: u32,
    /// Seconds until all epochs are done, at most.
    pub left: Option<f32>,
    /// Steps from 1 with their losses, since it began or went on.
    pub losses: Vec<(u32, f32)>,
    /// The loss of what was held back, with the steps that were done: before the first epoch and after each.
    pub held_back: Vec<(u32, f32)>,
    /// How much of what was learnt is compared, or kept, of 1; null: none.
    pub strength: Option<f32>,
    /// Whether what is kept are corrections that are remembered: nothing was trained, or it was no better.
    pub remembered: bool,
    /// Word errors without and with it, once it is finished.
    pub figures: Option<AdapterFigures>,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// How far a model's learning is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum LearningStage {
    /// It lets recordings go first.
    Waiting,
    /// It is trained.
    Training,
    /// It is compared with the model as it is.
    Comparing,
    /// It is better, and switched on.
    Kept,
    /// It is no better, and gone.
    NotKept,
    /// The user ended it.
    Stopped,
    /// It failed.
    Failed,
}

impl From<ListedAdapter> for Adapter {
    fn from(listed: ListedAdapter) -> Self {
        let ListedAdapter { name, bytes, is_on, card, .. } = listed;
        let failure = card.as_ref().err().cloned().map(Failure::from);
        Self { name, bytes, on: is_on, card: card.ok(), failure }
    }
}

impl Lessons {
    /// Those recordings, for a model that takes so much.
    pub fn new(recordings: Vec<CorrectedRecording>, predicted: Result<Prediction, wire::Failure>) -> Self {
        let failure = predicted.as_ref().err().cloned().map(Failure::from);
        let predicted = predicted.ok();
        let pace = predicted.and_then(|predicted| predicted.pace);
        let text = |it: CorrectedRecording| CorrectedText {
            document: it.document.0,
            title: it.title,
            segments: it.segments.into_iter().map(CorrectedSegment::from).collect(),
            seconds: pace.map(|pace| pace * it.seconds),
        };
        let memory = predicted.map(|predicted| predicted.memory);
        Self { recordings: recordings.into_iter().map(text).collect(), memory, failure }
    }
}

impl From<session::LearningRun> for LearningRun {
    fn from(run: session::LearningRun) -> Self {
        let progress = run.progress.unwrap_or_default();
        let (mut strength, mut remembered, mut figures, mut failure) = (None, false, None, None);
        let stage = match run.state {
            LearningState::Training | LearningState::Comparing(_) if run.waits => LearningStage::Waiting,
            LearningState::Training => LearningStage::Training,
            LearningState::Comparing(with) => {
                strength = Some(with.strength());
                LearningStage::Comparing
            }
            LearningState::Finished(learnt) => {
                strength = learnt.form.map(Form::strength);
                remembered = learnt.form == Some(Form::Remembered);
                figures = Some(learnt.figures);
                if strength.is_some() { LearningStage::Kept } else { LearningStage::NotKept }
            }
            LearningState::Stopped => LearningStage::Stopped,
            LearningState::Failed(why) => {
                failure = Some(why.into());
                LearningStage::Failed
            }
        };
        Self {
            model: run.model,
            stage,
            heard: progress.heard,
            to_hear: progress.to_hear,
            epoch: progress.epoch,
            epochs: progress.epochs,
            step: progress.step,
            steps: progress.steps,
            left: progress.left,
            losses: run.losses,
            held_back: run.held_back,
            strength,
            remembered,
            figures,
            failure,
        }
    }
}
