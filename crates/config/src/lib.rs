//! What the user set, wherever it was set (flag, environment, config file), and
//! where a user's files belong on this system.

#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod edit;
pub mod folders;
pub mod preferences;

pub use preferences::{EnginePreferences, Preferences, Priority};
