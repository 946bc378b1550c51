//! Networks compared with reference outputs, and models compared between formats.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod canary;
mod parakeet;
mod reference;
mod sources;
mod speakers;
mod text_embedding;
