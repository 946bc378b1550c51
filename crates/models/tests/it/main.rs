//! Networks and their weights against the reference and against each other.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod reference;
mod sources;
