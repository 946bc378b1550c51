use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use wire::{Envelope, Event};

use crate::output::Output;
use crate::platform;
use crate::queue::Queue;

/// How long a job may take to notice that it was cancelled, and the last
/// events to leave, before the process ends regardless. Together with the
/// watcher's interval this stays well below the promised second.
const CANCEL_LIMIT: Duration = Duration::from_millis(250);
const FLUSH_LIMIT: Duration = Duration::from_millis(100);

/// The one way in which the engine ends, whichever thread finds out first
/// that it must.
#[derive(Debug)]
pub struct Ending {
    queue: Arc<Queue>,
    output: OnceLock<Output>,
    begun: AtomicBool,
}

impl Ending {
    pub fn new(queue: Arc<Queue>) -> Self {
        Self { queue, output: OnceLock::new(), begun: AtomicBool::new(false) }
    }

    /// The output is made after the ending, since it ends the engine itself
    /// when the host takes no more.
    pub fn flush_before(&self, output: Output) {
        let _ = self.output.set(output);
    }

    /// Cancels everything, lets the last events leave, and ends the process
    /// together with the programs it started.
    pub fn end(&self, status: i32) -> ! {
        if self.begun.swap(true, Ordering::SeqCst) {
            // Another thread is at it and will end this one too.
            loop {
                std::thread::park();
            }
        }
        let never_began = self.queue.close();
        if let Some(output) = self.output.get() {
            for id in never_began {
                output.send(Envelope::of_job(id, Event::Cancelled { partial: None }));
            }
        }
        if !self.queue.wait_until_idle(CANCEL_LIMIT) {
            eprintln!("steno-engine: the job did not stop in time and ends with the engine");
        }
        if let Some(output) = self.output.get() {
            output.flush(FLUSH_LIMIT);
        }
        platform::end_now(status)
    }
}
