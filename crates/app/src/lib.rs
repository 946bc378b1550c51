//! The window's side of Steno without a window: its session, the single
//! instance, and what its pages see ([`view`]).

#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod diagnostics;
mod documents;
pub mod session;
pub mod single;
pub mod view;

pub use library::DocumentId;
pub use library::documents::{CorrectedWord, PassageId};
pub use supervisor::player::{Player, free_port};
