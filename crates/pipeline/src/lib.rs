//! The job and its stages. Knows audio, models and memory; knows no process,
//! no database and no window.

mod completeness;
mod control;
mod describe;
mod device;
mod error;
mod job;
mod loaded;
mod platform;
mod progress;
pub mod whisper;

pub use control::Control;
pub use error::StageError;
pub use job::Stopped;

use transcript::Transcript;
use wire::{Description, Event, Failure, FilePath, Job};

use loaded::Loaded;

/// One device and what is loaded on it. Lives on the thread that owns the
/// device; whoever else wants something of it sends that thread a command.
#[derive(Debug, Default)]
pub struct Engine {
    /// Kept for the next job with the same model.
    loaded: Option<Loaded>,
    /// Compute threads, where a job asked for a number of its own.
    pool: Option<rayon::ThreadPool>,
}

impl Engine {
    pub fn new() -> Self {
        platform::keep_freed_memory_small();
        Self::default()
    }

    /// Device, backend, codecs and versions.
    pub fn describe(&mut self) -> Description {
        describe::describe()
    }

    /// Runs one job from file to transcript. Sends `Started`, `Progress`,
    /// `Segment` and `Notice` events as it goes; the caller turns the result
    /// into `Finished`, `Failed` or `Cancelled`.
    pub fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Transcript, Stopped> {
        self.on_threads(job, |loaded| job::transcribe(loaded, job, control, emit))
    }

    /// Sends a `Language` or `FileFailed` event per file.
    pub fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        control: &Control,
        emit: &mut (dyn FnMut(Event) + Send),
    ) -> Result<(), Failure> {
        self.on_threads(job, |loaded| job::detect_languages(loaded, files, job, control, emit))
    }

    /// Runs `work` on as many threads as the job asks for: candle takes those
    /// of the pool that it is called on.
    fn on_threads<R: Send>(&mut self, job: &Job, work: impl FnOnce(&mut Option<Loaded>) -> R + Send) -> R {
        let Self { loaded, pool } = self;
        let Some(threads) = job.threads.filter(|threads| *threads > 0) else {
            return work(loaded);
        };
        if pool.as_ref().is_none_or(|pool| pool.current_num_threads() != threads) {
            *pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().ok();
        }
        match pool {
            Some(pool) => pool.install(|| work(loaded)),
            None => work(loaded),
        }
    }
}
