//! The command line as a whole: the real `steno` with a scripted engine or the
//! real one. `tests/driver.rs` is an executable of its own, since it writes
//! programs and starts them, which fails while another thread forks.
// The exception for tests covers only functions marked as such, not their helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod adapt;
mod canary;
mod chapters;
#[cfg(unix)]
mod cluster_of_three;
mod commands;
#[cfg(target_os = "linux")]
mod kills;
mod memory;
mod messages;
#[cfg(unix)]
mod models;
mod real_engine;
mod search;
mod serve;
mod serve_access;
mod serve_jobs;
mod serve_recovery;
#[cfg(unix)]
#[path = "../../../hub/tests/support/mod.rs"]
mod server;
mod settings;
#[cfg(target_os = "linux")]
mod small_disks;
#[path = "../support/mod.rs"]
mod support;
mod transcribe;
mod transducer;
#[cfg(target_os = "linux")]
mod waits;
#[cfg(unix)]
mod workers;
#[cfg(unix)]
mod workers_nats;
#[cfg(unix)]
mod workers_sftp;
