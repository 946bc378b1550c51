//! Engines and players as real child processes: found, started, watched, replaced.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod embedder;
mod finding;
mod indexing;
mod misbehaving;
mod real_engine;
#[cfg(target_os = "linux")]
mod runs;
mod supervised;
mod support;
