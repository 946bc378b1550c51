//! What a host (window or command line) asks of Steno. Knows neither a window
//! nor candle: whatever computes does so in an engine process, which this
//! crate finds, starts, watches and ends.
//!
//! ```no_run
//! # async fn example() -> Result<(), wire::Failure> {
//! let model = api::find_model(None)?;
//! let engine = api::Engine::start(&api::EngineOptions::default()).await?;
//! let mut job = engine.transcribe(api::Job::new(0, "talk.flac", model.path));
//! while let Some(event) = job.next().await {
//!     println!("{event:?}");
//! }
//! engine.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod alternatives;
pub mod choice;
pub mod diagnostics;
mod engine;
pub mod find;
pub mod fit;
mod limits;
mod memory_log;
pub mod models;
pub mod network;
mod partial;
mod planned;
mod platform;
pub mod player;
pub mod preferences;
pub mod preferences_edit;
mod process;
pub mod recommend;
pub mod runs;
pub mod session;
pub mod shelf;
pub mod single;
pub mod speed;
pub mod state;
pub mod status;
pub mod store;
mod supervisor;
pub mod transfers;
mod watch;

pub use alternatives::alternatives;
pub use engine::{Canceller, Engine, EngineOptions, JobHandle};
pub use find::find_engine;
pub use hub;
pub use library::{self, Journal};
pub use limits::Limits;
pub use memory;
pub use models::{ModelRef, find_model, list_models};
pub use planned::Planned;
pub use preferences::Preferences;
pub use supervisor::{Stop, SupervisedJob, Supervisor, SupervisorOptions};
pub use wire;
pub use wire::{
    Backend, Channels, DecodingOptions, Description, DeviceChoice, ErrorCode, Event, Failure, FilePath, Job,
    JobId, Progress, Stage, VoiceActivity,
};
