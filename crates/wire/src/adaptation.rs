use memory::Precision;
use serde::{Deserialize, Serialize};
use transcript::Span;

use crate::{FilePath, Job};

/// For each corrected part so many others are heard beside it in each epoch, so that less is forgotten.
pub const OTHERS_PER_CORRECTION: usize = 4;

/// A model to be adapted to what was said and written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adapt {
    /// Model, device, threads, memory settings, where it stands on its ladder, and as alternatives the ways in which the
    /// model may be held while it learns; its file is not read.
    pub job: Job,
    /// What is learnt, and what is held back.
    pub lessons: Vec<Lesson>,
    /// How.
    pub settings: AdaptSettings,
    /// The corrections are remembered, and nothing is trained: the model hears the lessons as it is.
    #[serde(default)]
    pub remember: bool,
    /// A folder of this adaptation alone, for what it needs to go on after an interruption. The
    /// engine removes it when it is done.
    pub folder: FilePath,
    /// The adapter's file, replaced where there is one.
    pub output: FilePath,
}

/// A part of a recording and what is said in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// The recording.
    pub file: FilePath,
    /// The part; `None`: the whole recording, which is then at most one window long.
    pub span: Option<Span>,
    /// What is said.
    pub text: String,
    /// ISO 639-1; `None`: English.
    pub language: Option<String>,
    /// Whether the user changed the text: its words are learnt. Otherwise the model is to stay as it is there.
    pub corrected: bool,
    /// Not learnt: it shows when more learning does harm.
    pub held_back: bool,
}

/// How adapters are trained.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AdaptSettings {
    /// Of the adapters.
    pub rank: u32,
    /// The adapters' product is multiplied by `alpha / rank`.
    pub alpha: f32,
    /// The highest learning rate.
    pub rate: f64,
    /// Matrices of the encoder learn as well: how words sound, beside how they are written.
    pub encoder: bool,
    /// Most epochs: in each one all corrections are heard, and others in turn.
    pub epochs: u32,
    /// Windows of 30 s per step.
    pub batch: u32,
    /// Epochs without a better result on what is held back, after which it ends.
    pub patience: u32,
    /// The same seed gives the same adapter.
    pub seed: u64,
    /// Most seconds between two checkpoints on disk.
    pub checkpoint_seconds: u32,
    /// How the frozen matrices are held, in 32 or 16 bits, until memory runs short. Everything is computed in 32 bits, and
    /// adapters are held in them.
    pub precision: Precision,
}

impl Default for AdaptSettings {
    fn default() -> Self {
        Self {
            rank: 8,
            alpha: 16.0,
            encoder: false,
            rate: 1e-3,
            epochs: 20,
            batch: 1,
            patience: 4,
            seed: 0,
            checkpoint_seconds: 60,
            precision: Precision::F32,
        }
    }
}

/// How far an adaptation is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AdaptProgress {
    /// Windows of 30 seconds that the model has heard as it is, for corrections to be remembered.
    pub heard: u32,
    /// All that it is to hear so; 0 where it is trained.
    pub to_hear: u32,
    /// From 1; 0 before the first one.
    pub epoch: u32,
    /// Most epochs.
    pub epochs: u32,
    /// Steps done, of all epochs.
    pub step: u32,
    /// Steps of all epochs.
    pub steps: u32,
    /// Windows computed together, and whether activations are computed a second time to save memory.
    pub windows: u32,
    /// Whether only the inputs of layers are kept.
    pub keeps_inputs: bool,
    /// What training is predicted to take at its peak, in bytes.
    pub peak: u64,
    /// The latest step's mean loss per token: cross-entropy of corrected words, elsewhere the divergence from the model as it
    /// is.
    pub loss: Option<f32>,
    /// That of what was held back, after the latest epoch; before the first one as the model is.
    pub held_back_loss: Option<f32>,
    /// Seconds of wall time until all epochs are done, at most.
    pub left: Option<f32>,
}

/// A finished adaptation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Adapted {
    /// The adapter's file; there is none where nothing was trained and nothing is remembered.
    pub adapter: FilePath,
    /// Corrections that are remembered.
    #[serde(default)]
    pub remembered: u32,
    /// The epoch that it is of: the one with the best result on what was held back.
    pub epoch: u32,
    /// The loss of each step.
    pub losses: Vec<f32>,
    /// The loss of what was held back, before the first epoch and after each.
    pub held_back: Vec<f32>,
}
