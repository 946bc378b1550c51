//! A queue of workers, as `steno cluster` prints it.

use cluster::Overview;
use serde::Serialize;
use ts_rs::TS;

/// One look at a queue.
#[derive(Debug, Clone, Serialize, TS)]
pub struct WorkersView {
    /// Jobs that no worker has.
    pub waiting: f64,
    /// Jobs that workers have.
    pub running: f64,
    /// Jobs with a transcript.
    pub finished: f64,
    /// Jobs that were given up.
    pub failed: f64,
    /// What the workers do in a minute, all at work; null before any finished one.
    pub jobs_per_minute: Option<f64>,
    /// Seconds of recordings per second, all at work.
    pub speed: Option<f64>,
    /// Seconds until the queue is empty; null where it is, or that is not known.
    pub left: Option<f64>,
    /// Those that said something in the last half minute.
    pub workers: Vec<WorkerView>,
    /// Jobs that no worker takes.
    pub unplaced: Vec<UnplacedView>,
}

/// A living worker.
#[derive(Debug, Clone, Serialize, TS)]
pub struct WorkerView {
    /// The machine's.
    pub name: String,
    /// The process.
    pub pid: u32,
    /// What computes.
    pub device: String,
    /// Free on the device when it started, in bytes.
    pub free: f64,
    /// In all, in bytes.
    pub total: f64,
    /// The models that fit.
    pub models: Vec<String>,
    /// Jobs that it finished.
    pub finished: f64,
    /// Seconds of recordings per second; null before the first.
    pub speed: Option<f64>,
    /// The recording that it works on; null: none.
    pub recording: Option<String>,
    /// How far it is, in seconds.
    pub position: f64,
}

/// Jobs that no living worker takes.
#[derive(Debug, Clone, Serialize, TS)]
pub struct UnplacedView {
    /// The model that they are for.
    pub model: String,
    /// How many.
    pub waiting: f64,
    /// Bytes that they need at the least; null: not known.
    pub needs: Option<f64>,
}

impl From<Overview> for WorkersView {
    fn from(overview: Overview) -> Self {
        let waiting: u64 = overview.models.iter().map(|model| model.waiting).sum();
        let running: u64 = overview.models.iter().map(|model| model.running).sum();
        let worker = |worker: cluster::WorkerStatus| WorkerView {
            speed: worker.speed(),
            models: worker
                .models
                .iter()
                .filter(|offer| offer.fits)
                .map(|offer| offer.model.clone())
                .collect(),
            recording: worker.job.as_ref().map(|job| wire::printable(&job.name)),
            position: worker.job.as_ref().map_or(0.0, |job| job.position.seconds()),
            name: wire::printable(&worker.name),
            pid: worker.pid,
            device: worker.device,
            free: worker.free as f64,
            total: worker.total as f64,
            finished: worker.finished as f64,
        };
        let due = overview.unplaced.into_iter().filter(cluster::Unplaced::is_due);
        Self {
            waiting: waiting as f64,
            running: running as f64,
            finished: overview.finished as f64,
            failed: overview.failed as f64,
            jobs_per_minute: overview.jobs_per_minute,
            speed: overview.speed,
            left: overview.left.filter(|_| waiting + running > 0),
            workers: overview.workers.into_iter().map(worker).collect(),
            unplaced: due
                .map(|one| UnplacedView {
                    model: one.model,
                    waiting: one.waiting as f64,
                    needs: one.needs.map(|bytes| bytes as f64),
                })
                .collect(),
        }
    }
}
