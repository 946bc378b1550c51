//! Models: which ones exist (a catalogue), downloading and importing them (downloads
//! resume and are verified before a model becomes visible), and where they are kept
//! (a store in which a visible model is whole).
//!
//! The network is touched by [`Puller`] alone, and by nothing while
//! [`HubSettings::offline`] is set. Every connection is written to a log.
//!
//! In a store's folder each model is a folder named by its id. Unfinished models are
//! in `.partial`; one rename makes a model visible.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod cache;
mod catalogue;
mod choice;
mod client;
mod connections;
mod control;
mod digest;
mod engine_release;
mod error;
mod fetch;
mod files;
mod import;
mod inspect;
mod lock;
mod making;
mod manifest;
mod meter;
pub mod platform;
mod plausible;
mod pull;
mod redirects;
mod retry;
mod settings;
mod store;
mod verify;

pub use cache::{Cache, Cached};
pub use catalogue::{Catalogue, ErrorRates, KnownModel, ModelKind, ModelLocation, UserEntry};
pub use connections::{Connection, Connections, Open, Purpose};
pub use control::Control;
pub use digest::Digest;
pub use engine_release::{ENGINE, EngineRelease, OfferedFile, installed_engine};
pub use error::{Code, Error, Filling};
pub use files::bytes as disk_use;
pub use import::import;
pub use inspect::inspect;
pub use making::Making;
pub use manifest::{MANIFEST, Manifest, Origin, Stored};
pub use meter::{TransferProgress, TransferStage};
pub use pull::{ModelSource, Puller, Wanted};
pub use settings::{HUB, HubSettings, NetworkLimits, Proxying, Token, is_this_machine};
pub use store::{Model, Store, StoredState};
pub use verify::{Verified, verify};
