//! Engines and players as child processes: found, started, watched, replaced
//! and ended. A [`Supervisor`] runs jobs that outlive their engine.
//!
//! ```no_run
//! # async fn example() -> Result<(), wire::Failure> {
//! let engine = supervisor::Engine::start(&supervisor::EngineOptions::default()).await?;
//! let mut job = engine.transcribe(wire::Job::new(0, "talk.flac", "models/whisper-small"));
//! while let Some(event) = job.next().await {
//!     println!("{event:?}");
//! }
//! engine.shutdown().await;
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs, clippy::missing_errors_doc)]

mod adaptation;
pub mod cards;
pub mod chapters;
mod embedder;
mod engine;
pub mod find;
pub mod indexing;
mod jobs;
pub mod journal;
mod limits;
pub mod meanings;
mod memory_log;
pub mod microphone;
mod platform;
pub mod player;
mod process;
mod progress;
pub mod recordings;
pub mod runs;
pub mod status;
mod watch;

use std::path::PathBuf;

/// The file of the voices that this user's engines recognise; it need not exist. `None`: there is
/// no home folder.
pub fn voices_file() -> Option<PathBuf> {
    Some(config::folders::steno_state()?.join(library::voices::VOICES_FILE))
}

pub use adaptation::{AdaptationNews, adapt};
pub use embedder::{Embedder, EmbedderSettings, EmbeddingModel};
pub use engine::{Canceller, Engine, EngineOptions, JobHandle};
pub use find::find_engine;
pub use jobs::{
    ChooseModel, ModelChoice, Stop, SupervisedJob, Supervisor, SupervisorOptions, step_down, take_rung,
};
pub use limits::Limits;
pub use progress::{JobProgress, partial_of};
