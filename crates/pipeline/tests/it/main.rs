//! The pipeline on real speech, with the starter model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod accuracy;
mod boost;
mod community;
mod embedding;
mod live_text;
mod memory;
mod nemotron;
mod pieces;
mod precisions;
mod reference;
mod speakers;
mod strategies;
mod support;
mod trained_parakeet;
