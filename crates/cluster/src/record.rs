//! What workers write down.

use serde::{Deserialize, Serialize};
use transcript::Time;
use wire::Failure;

use crate::placement::Offer;

/// How a job ended. Once this is there the job is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Why there is no transcript; `None`: there is one, or the language that was asked for.
    pub failure: Option<Failure>,
    /// The worker's name.
    pub worker: String,
    /// Length of the recording.
    pub duration: Time,
    /// Seconds that the last worker took, fetching included.
    pub seconds: f64,
    /// Where the last worker went on, if another one had begun.
    pub resumed_at: Option<Time>,
    /// The likeliest languages, where only those were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub languages: Vec<(String, f32)>,
    /// In seconds since 1970.
    pub at: u64,
}

/// What is known of a job's earlier deliveries.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Note {
    /// Deliveries that don't count: their workers were asked to end and handed the job back.
    pub handed_back: u64,
    /// Why the latest worker could not do it; `None`: it ended without a word.
    pub failure: Option<Failure>,
    pub worker: String,
}

/// A living worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkerStatus {
    /// Its name.
    pub name: String,
    /// The process on its machine.
    pub pid: u32,
    /// What computes, such as `the CPU` or a card's name.
    pub device: String,
    /// Free on the device when it started, in bytes.
    pub free: u64,
    /// In all, in bytes.
    pub total: u64,
    /// The models that are installed there, and whether they fit.
    pub models: Vec<Offer>,
    /// Jobs that it finished.
    pub finished: u64,
    /// Seconds of recordings in them.
    pub recorded: f64,
    /// Seconds that they took.
    pub worked: f64,
    /// In seconds since 1970.
    pub started: u64,
    /// What it does now.
    pub job: Option<Under>,
}

/// A job under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Under {
    /// The job.
    pub id: String,
    /// The recording's file name.
    pub name: String,
    /// The model.
    pub model: String,
    /// How far it is.
    pub position: Time,
    /// Length of the recording, once it is known.
    pub duration: Option<Time>,
}

impl WorkerStatus {
    /// Seconds of recording per second of work; `None` before the first job is finished.
    pub fn speed(&self) -> Option<f64> {
        (self.worked > 0.0 && self.finished > 0).then(|| self.recorded / self.worked)
    }
}

pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
