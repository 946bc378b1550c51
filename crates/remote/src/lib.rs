//! Recordings for a `steno serve` on another machine. Start with [`Access`], which says where it is, then [`RemoteJob`],
//! which is a job there from its upload to its last event.
//!
//! A job has a key, chosen here and kept in the journal before anything is sent. The server knows its jobs by their keys
//! too, so that a recording is not uploaded a second time by a program that was killed, or that lost the connection
//! before the server's answer.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod client;
mod form;
mod job;
mod sse;
mod trouble;

pub use client::{Access, Client, origin};
pub use job::{Order, RemoteJob, Told, forget};
pub use trouble::Trouble;

/// A key for a new job, which no other job has.
///
/// # Errors
/// Where the system gives no random numbers.
pub fn new_key() -> std::io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
