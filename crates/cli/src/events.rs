//! `--json-events`: the wire's events as lines, and what only the host knows.

use serde::Serialize;
use wire::{FilePath, JobId};

use crate::ended::Ended;
use crate::outputs::print;

/// Events of the command line itself, in the form that the wire's have.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum HostEvent<'a> {
    /// Which recording a job is; one for each, before anything else.
    Queued { job: JobId, file: &'a FilePath },
    /// A file was written.
    Saved { job: JobId, path: &'a FilePath },
}

/// One event, one line, at once.
pub fn print_event(event: &impl Serialize) -> Result<(), Ended> {
    print(|out| {
        serde_json::to_writer(&mut *out, event)?;
        out.write_all(b"\n")
    })
}
