//! The window's session with real child processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

#[cfg(unix)]
mod another_machine;
#[cfg(unix)]
#[path = "../../../supervisor/tests/it/support/job_folder.rs"]
mod job_folder;
#[cfg(unix)]
mod unfinished;
mod wrong_files;
