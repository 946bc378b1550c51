//! The process that decodes audio and computes: commands come in on standard
//! input, events leave on what was standard output. It is a process of its own
//! so that running out of memory, a fatal device error or a crash in native
//! code costs neither the window nor the transcript.
//!
//! Four threads. The *reader* (the main thread) takes commands and answers at
//! once what must not wait: pings, cancels, shutdown. The *device* thread owns
//! the device and runs jobs one after another. The *writer* alone waits for the
//! host to take events, so that a slow host can't keep the reader from seeing
//! that its input closed. The *watcher* sees the host die even when something
//! else keeps the engine's input open.
//!
//! The engine ends within a second of its input closing or its host dying,
//! whatever it is doing, and takes the programs it started with it.

#![warn(missing_docs, clippy::missing_errors_doc)]

mod device;
mod ending;
mod output;
mod panics;
#[cfg(debug_assertions)]
mod planted;
pub mod platform;
mod queue;
mod reader;

pub use device::Device;
pub use reader::serve;

/// To be declared as the program's allocator: decoding a file has a limit.
pub const ALLOCATOR: memory::allocation::Counted =
    memory::allocation::Counted::new(platform::end_at_decoding_limit);
