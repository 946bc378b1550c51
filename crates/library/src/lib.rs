//! What outlives a process: the journal of the jobs that are under way, in one
//! SQLite file, so that a job goes on where it was however its host ended; and
//! the history, all transcripts with every edit of them, in another.
//!
//! Knows no engine and no window. Whoever runs jobs writes here what they
//! reached; whoever starts later reads what was left.

pub mod documents;
mod error;
mod host;
mod identity;
mod journal;
mod left;
mod open;
mod taken;

pub use documents::{DocumentId, Documents};
pub use error::{Error, Problem};
pub use host::Host;
pub use identity::{Identity, Stamp};
pub use journal::{Entry, Journal, Key, Kind, State, Step};
pub use left::{Left, Listing, Unreadable};
pub use open::{Aside, FILE, Opened, Reason};
