//! A job's memory: what was seen of it, stage by stage and against what was
//! predicted. Amounts are bytes, times seconds since the job began.

use crate::session;
use memory::DeviceKind;
use serde::{Deserialize, Serialize};
use ts_rs::TS;

/// What is new of one job's memory: the samples from index `from` on are now
/// `samples`; everything else is whole. At most twenty of these a second.
#[derive(Debug, Clone, Serialize, TS)]
pub struct MemoryUpdate {
    /// The recording.
    pub job: u64,
    /// Index of the first new sample.
    pub from: u32,
    /// The new samples.
    pub samples: Vec<MemorySample>,
    /// All notices.
    pub notices: Vec<MemoryNotice>,
    /// All stages that have begun.
    pub stages: Vec<StageUse>,
    /// What was predicted; null where the model can't be read.
    pub forecast: Option<Forecast>,
}

/// One look at a device, at a known place in the job.
#[derive(Debug, Clone, Serialize, TS)]
pub struct MemorySample {
    /// When, in seconds.
    pub at: f64,
    /// The device.
    pub kind: DeviceKind,
    /// The place in the job.
    pub checkpoint: memory::Checkpoint,
    /// Number of the batch, from 1.
    pub batch: Option<u32>,
    /// Null where it could not be read.
    pub levels: Option<MemoryLevels>,
}

/// What a device held at one moment.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct MemoryLevels {
    /// Held by this program.
    pub ours: u64,
    /// The most since the sample before.
    pub peak: u64,
    /// Held by other programs; null where that is unknown.
    pub others: Option<u64>,
    /// What can be allocated.
    pub free: u64,
    /// The limit in force.
    pub total: u64,
}

/// What is to be known of a job's memory.
#[derive(Debug, Clone, Serialize, TS)]
pub struct MemoryNotice {
    /// When, in seconds.
    pub at: f64,
    /// What to branch on.
    pub code: String,
    /// How much it matters.
    pub severity: transcript::Severity,
    /// What the page's words are made of; null in what another version saved.
    pub told: Option<wire::notice::AnyMessage>,
    /// In English, for where nothing is told.
    pub text: String,
}

/// One stage from before it began to after what it held was given back.
#[derive(Debug, Clone, Serialize, TS)]
pub struct StageUse {
    /// The stage.
    pub stage: memory::Stage,
    /// The device.
    pub kind: DeviceKind,
    /// When it began, in seconds.
    pub start: f64,
    /// Null while it lasts, and for a model that stays loaded.
    pub end: Option<f64>,
    /// Held before it.
    pub before: u64,
    /// Once what it came for was loaded: a model's weights, the sound.
    pub loaded: Option<u64>,
    /// The most held during it.
    pub peak: u64,
    /// Held after it; null while it lasts.
    pub after: Option<u64>,
    /// Part of what was taken that came back, 0 to 1.
    pub recovered: Option<f64>,
    /// False where less came back than has to.
    pub verified: Option<bool>,
}

/// The peak that was predicted before the job began.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct Forecast {
    /// The device.
    pub kind: DeviceKind,
    /// What each purpose takes.
    pub parts: MemoryParts,
}

/// A peak by purpose.
#[derive(Debug, Clone, Copy, Serialize, TS)]
pub struct MemoryParts {
    /// The process without a model.
    pub context: u64,
    /// The model.
    pub weights: u64,
    /// Keys and values of the decoder.
    pub caches: u64,
    /// What the layers compute.
    pub activations: u64,
    /// What the libraries need besides.
    pub workspace: u64,
}

/// In which form a job's memory is saved.
#[derive(Debug, Clone, Copy, Deserialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum ChartFile {
    /// The samples as a table.
    Csv,
    /// The chart as a picture.
    Png,
}

impl ChartFile {
    /// The ending of the file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Self::Csv => "memory.csv",
            Self::Png => "memory.png",
        }
    }
}

fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1e3
}

impl From<memory::Parts> for MemoryParts {
    fn from(parts: memory::Parts) -> Self {
        let memory::Parts { context, weights, caches, activations, workspace } = parts;
        Self { context, weights, caches, activations, workspace }
    }
}

impl From<session::MemoryChange> for MemoryUpdate {
    fn from(change: session::MemoryChange) -> Self {
        let notice = |seen: session::SeenNotice| MemoryNotice {
            at: seconds(seen.at_ms),
            told: wire::notice::AnyMessage::of(&seen.notice),
            code: seen.notice.code,
            severity: seen.notice.severity,
            text: seen.notice.text,
        };
        Self {
            job: change.id,
            from: u32::try_from(change.from).unwrap_or(u32::MAX),
            samples: change.samples.into_iter().map(Into::into).collect(),
            notices: change.notices.into_iter().map(notice).collect(),
            stages: change.stages.into_iter().map(Into::into).collect(),
            forecast: change
                .forecast
                .map(|forecast| Forecast { kind: forecast.kind, parts: forecast.parts.into() }),
        }
    }
}

impl From<memory::Sample> for MemorySample {
    fn from(sample: memory::Sample) -> Self {
        let levels = |levels: memory::Levels| MemoryLevels {
            ours: levels.reserved + levels.fixed,
            peak: levels.peak.max(levels.reserved) + levels.fixed,
            others: levels.others,
            free: levels.free,
            total: levels.total,
        };
        Self {
            at: seconds(sample.at_ms),
            kind: sample.kind,
            checkpoint: sample.checkpoint,
            batch: sample.batch,
            levels: sample.levels.map(levels),
        }
    }
}

impl From<memory::StageUse> for StageUse {
    fn from(one: memory::StageUse) -> Self {
        Self {
            stage: one.stage,
            kind: one.kind,
            start: seconds(one.from_ms),
            end: one.to_ms.map(seconds),
            before: one.before,
            loaded: one.loaded,
            peak: one.peak,
            after: one.after,
            recovered: one.recovered.map(|recovered| recovered.share),
            verified: one.recovered.map(|recovered| recovered.verified),
        }
    }
}
