//! A crash at a place of a test's choice. Not in what users get: only builds
//! with debug assertions look for it.

use std::time::Duration;

use wire::{Envelope, Event};

use crate::output::Output;

/// The sample at which the window begins that no engine survives.
const VARIABLE: &str = "STENO_TEST_ABORT_AT";

/// Sends the event. Where it begins the window that is named, ends the process
/// once the host has heard of it, as a fault in native code would.
pub fn send(output: &Output, event: Envelope) {
    let aborts = matches!(&event.body, Event::Window { position, .. } if is_named(*position));
    output.send(event);
    if aborts {
        output.flush(Duration::from_secs(1));
        std::process::abort();
    }
}

fn is_named(position: u64) -> bool {
    std::env::var(VARIABLE).is_ok_and(|sample| sample.parse() == Ok(position))
}
