//! The job and its stages. Knows audio, models and memory; knows no process,
//! no database and no window.

mod control;

pub use control::Control;

use transcript::Transcript;
use wire::{Description, Event, Failure, FilePath, Job};

/// One device and what is loaded on it. Lives on the thread that owns the
/// device; whoever else wants something of it sends that thread a command.
#[derive(Debug, Default)]
pub struct Engine {}

/// A job that ended without its transcript.
#[derive(Debug)]
pub struct Stopped {
    /// `ErrorCode::Cancelled` where the user wanted it so.
    pub failure: Failure,
    /// What there was until then.
    pub partial: Option<Box<Transcript>>,
}

impl Engine {
    pub fn new() -> Self {
        Self {}
    }

    /// Device, backend, codecs and versions.
    pub fn describe(&mut self) -> Description {
        Description {
            engine: env!("CARGO_PKG_VERSION").into(),
            backend: wire::Backend::Cpu,
            devices: Vec::new(),
            cpu_reason: None,
            threads: 1,
            cpu_features: Vec::new(),
            codecs: Vec::new(),
            ffmpeg: None,
            ffmpeg_codecs: Vec::new(),
            versions: Vec::new(),
        }
    }

    /// Runs one job from file to transcript. Sends `Started`, `Progress`,
    /// `Segment` and `Notice` events as it goes; the caller turns the result
    /// into `Finished`, `Failed` or `Cancelled`.
    pub fn transcribe(
        &mut self,
        job: &Job,
        control: &Control,
        emit: &mut dyn FnMut(Event),
    ) -> Result<Transcript, Stopped> {
        let _ = (job, control, emit);
        Err(Stopped { failure: Failure::new(wire::ErrorCode::Internal, "Not built yet."), partial: None })
    }

    /// Sends a `Language` or `FileFailed` event per file.
    pub fn detect_languages(
        &mut self,
        files: &[FilePath],
        job: &Job,
        control: &Control,
        emit: &mut dyn FnMut(Event),
    ) -> Result<(), Failure> {
        let _ = (files, job, control, emit);
        Ok(())
    }
}
