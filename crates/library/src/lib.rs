//! What outlives a process, in three SQLite files. The [`Journal`] records jobs
//! and how far they are, so that a later host can resume the jobs of one that
//! crashed. The history, [`Documents`], holds all transcripts with every edit of
//! them and an index for searching. [`Voices`] holds people whom the user wants to
//! be recognised.
//!
//! Depends on no engine and no window. A *host* is a process that runs jobs: the
//! command line, its HTTP server or the window.
#![warn(missing_docs, clippy::missing_errors_doc)]

pub mod documents;
mod error;
mod host;
mod identity;
mod journal;
mod open;
mod processed;
mod unfinished;
pub mod voices;
mod word_list;

pub use documents::{DocumentId, Documents};
pub use error::{Error, Problem};
pub use host::HostProcess;
pub use identity::{FileStamp, Identity};
pub use journal::{HostKind, JobKey, Journal, JournalState, NewJob, ReachedPoint};
pub use open::{JOURNAL_FILE, OpenedJournal, QuarantineReason, QuarantinedFile};
pub use unfinished::{UnfinishedJob, UnfinishedJobs, UnreadableJob};
pub use voices::{Flaw, Voice, VoiceSample, Voices};
pub use word_list::{read_word_list, word_list};
