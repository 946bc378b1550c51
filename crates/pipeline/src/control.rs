use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::live_text::LiveText;
use crate::timings::Timings;

/// What other threads may do to a running job: ask it to stop, and see that
/// it still works. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Control {
    cancelled: Arc<AtomicBool>,
    work: Arc<AtomicU64>,
    timings: Timings,
    live_text: Arc<LiveText>,
}

impl Control {
    /// Shares the work counter with `self`, and nothing else.
    pub fn for_next_job(&self) -> Self {
        Self { work: Arc::clone(&self.work), ..Self::default() }
    }

    /// Has `listener` told of the text that is being written, at most five times a second
    /// ([`Event::LiveText`](wire::Event::LiveText)), on the thread that works on the job.
    pub fn on_live_text(&self, listener: impl Fn(String) + Send + Sync + 'static) {
        self.live_text.listen(listener);
    }

    /// Where text goes that is being written.
    pub(crate) fn live_text(&self) -> &LiveText {
        &self.live_text
    }

    /// Asks the job to stop at the next opportunity.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether the job was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// What the time of the job goes into.
    pub(crate) fn timings(&self) -> &Timings {
        &self.timings
    }

    /// Called after every layer, token and block of audio.
    pub fn worked(&self) {
        self.work.fetch_add(1, Ordering::Relaxed);
    }

    /// Layers, tokens and blocks of sound that were worked on so far.
    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }
}
