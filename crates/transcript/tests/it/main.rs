//! What other crates and other programs read: exported files, and JSON read back.

// The exception for tests covers only functions marked as such, not their helpers.
#![allow(clippy::unwrap_used)]

mod golden;
mod round_trip;
