//! Which models are found and which is recommended.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod models;
mod recommend;
