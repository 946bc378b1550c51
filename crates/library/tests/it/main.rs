//! The journal and the history on a real disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, helpers included")]

mod history;
mod journal;
