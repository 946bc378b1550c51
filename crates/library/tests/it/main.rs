//! The journal, the history and the voices on a real disk.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test, helpers included")]

mod history;
mod journal;
mod retrieval;
mod search;
mod voices;
