//! Recordings for many machines: jobs wait in NATS, workers take them, and their transcripts are collected. Start with
//! [`Cluster`], then [`Worker`].
//!
//! What NATS does well is left to it. A stream with one consumer per model is the queue; each job is with one worker
//! at a time, which says every few seconds that it is alive, and goes to another worker where it does not. What a
//! worker found up to each point is published, so that the next one goes on from there, as `steno resume` does from the
//! journal.
//!
//! Of one queue `NAME`, NATS holds:
//! - the stream `NAME-jobs`, a work queue: ids of jobs, under `NAME.jobs.MODEL`, or `NAME.languages.MODEL` where only the
//!   language is wanted;
//! - the stream `NAME-log`: steps of jobs under way, `NAME.steps.ID`, and why jobs were given up, `NAME.dead.ID`;
//! - the bucket of keys `NAME-records`: a job as it was submitted, how it ended, what its workers said;
//! - the bucket of keys `NAME-workers`: a line per living worker;
//! - the bucket of objects `NAME-files`: transcripts, and recordings that were uploaded.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod connection;
mod job;
mod overview;
mod placement;
mod read;
mod record;
mod source;
mod steps;
mod submit;
mod worker;

pub use connection::{Access, Cluster};
pub use job::{Kind, Submitted};
pub use overview::{ModelQueue, Overview, Unplaced};
pub use placement::{Offer, offers};
pub use record::{End, Under, WorkerStatus};
pub use source::sftp::{Remote, RemoteFile, Ssh};
pub use source::{Recording, Source};
pub use submit::Accepted;
pub use worker::runner::{Runner, Supervised};
pub use worker::{Told, Worker, WorkerOptions};
