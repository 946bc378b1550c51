//! Models on their way into the store: downloads from a server on this machine,
//! imports, and programs that are killed meanwhile.

mod downloads;
mod engines;
mod hostile;
mod imports;
mod processes;
// Also used by the tests of the command line.
#[path = "../support/mod.rs"]
mod support;
