//! Memory as a budget: how much a device has, how much a model will take, who holds
//! what, and what to do when memory runs out.
//!
//! Start with [`Footprint`] (the prediction), [`Scope`] (how a stage reserves and
//! releases), [`ladder`] (what happens when memory runs out) and [`death`] (how that
//! is recognised after a process died).
//!
//! A leaf crate: it knows no tensors, no audio and no window, so that hosts can
//! predict and explain without the engine. What allocates reports through the
//! [`Probe`] and [`Device`] traits.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod advice;
pub mod allocation;
mod budget;
pub mod bytes;
mod checkpoint;
pub mod death;
mod dimensions;
pub mod fit;
mod footprint;
mod host;
pub mod ladder;
pub mod log;
pub mod message;
mod network;
mod notice;
pub mod nvml;
pub mod platform;
mod probe;
pub mod processor;
mod scope;
pub mod settings;
pub mod shortage;
pub mod signs;
pub mod simulated;
mod stage_use;
#[cfg(test)]
mod testing;
mod timeline;
mod tracker;
mod training;

pub use advice::{OCCUPIED_SHARE, Situation, advice};
pub use budget::{Budget, Holder, Refused, Reservation};
pub use checkpoint::{Checkpoint, Stage};
pub use dimensions::{Dimensions, Parameters, Precision, UnknownPrecision};
pub use footprint::{EmbeddingSizes, Footprint, HOST_VOCABULARY, Parts, Plan, StreamedSpeakers};
pub use host::Host;
pub use message::Message;
pub use network::{CanaryDimensions, FastConformerDimensions, Network, ParakeetDimensions};
pub use notice::{Code, Data, HELP_PAGE, Notice, Severity};
pub use probe::{
    Budgeted, Cause, Device, DeviceError, DeviceKind, Ours, Probe, ProcessUse, Reading, Unavailable,
    Unwatched,
};
pub use scope::{Demand, Departure, RECOVERED_SHARE, Recovery, Remains, Scope};
pub use simulated::Simulated;
pub use stage_use::{Recovered, StageUse, noise, stage_uses};
pub use timeline::{Levels, Pressure, Sample, Timeline};
pub use tracker::{Mark, Renewal, Tracker};
pub use training::TrainingFootprint;
