//! Followers of changes: at most twenty updates a second, and always the last one.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use wire::JobId;

use super::queue::{Changes, TextChange};
use super::usage::{Known, MemoryChange};
use super::{Inner, Session};

/// More than twenty updates a second can't be read.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(50);

/// As many segments as are soon there to be read, and more than a screen shows …
pub(super) const FIRST_SEGMENTS: usize = 40;
/// … then so many at once that a page still draws in between …
const MORE_SEGMENTS: usize = 600;
/// … once it has drawn the first, which fill the screen.
const FIRST_LOOK: Duration = Duration::from_millis(400);

impl Session {
    /// Everything in the queue, then what changes in it.
    pub fn follow(&self) -> Follower {
        Follower { inner: Arc::clone(&self.inner), pace: Pace::new(&self.inner), seen: 0 }
    }

    /// All text of one recording, then what changes in it.
    pub fn follow_text(&self, id: JobId) -> TextFollower {
        let (inner, pace) = (Arc::clone(&self.inner), Pace::new(&self.inner));
        TextFollower { inner, pace, id, seen: 0, known: 0, more: false, drawn: None }
    }

    /// All that was seen of one recording's memory, then what is new.
    pub fn follow_memory(&self, id: JobId) -> MemoryFollower {
        MemoryFollower {
            inner: Arc::clone(&self.inner),
            pace: Pace::new(&self.inner),
            id,
            seen: 0,
            known: Known::default(),
        }
    }
}

/// Waits for changes, and a while after each.
#[derive(Debug)]
pub(super) struct Pace {
    version: watch::Receiver<u64>,
    earliest: Option<Instant>,
}

impl Pace {
    pub(super) fn new(inner: &Inner) -> Self {
        let mut version = inner.version.subscribe();
        version.mark_changed();
        Self { version, earliest: None }
    }

    /// `None` once the session is gone.
    pub(super) async fn next(&mut self) -> Option<()> {
        if let Some(earliest) = self.earliest {
            tokio::time::sleep_until(earliest).await;
        }
        // Last, so that nothing is taken for seen where this future is dropped.
        self.version.changed().await.ok()?;
        self.earliest = Some(Instant::now() + PAUSE_BETWEEN_CHANGES);
        Some(())
    }
}

/// Follows the list of recordings.
#[derive(Debug)]
pub struct Follower {
    inner: Arc<Inner>,
    pace: Pace,
    seen: u64,
}

impl Follower {
    /// At most twenty times a second; the last state is never left out.
    pub async fn next(&mut self) -> Option<Changes> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            let changes = shared.queue.changes_since(self.seen);
            self.seen = shared.queue.version();
            if !changes.changed.is_empty() || !changes.removed.is_empty() || changes.order.is_some() {
                return Some(changes);
            }
        }
    }
}

/// Follows the text of one recording.
#[derive(Debug)]
pub struct TextFollower {
    inner: Arc<Inner>,
    pace: Pace,
    id: JobId,
    seen: u64,
    known: usize,
    /// The next part is there already.
    more: bool,
    /// Time before which no further part is sent.
    drawn: Option<Instant>,
}

impl TextFollower {
    /// At most twenty times a second, but for parts of a long text and edits;
    /// `None` once the recording was removed.
    pub async fn next(&mut self) -> Option<TextChange> {
        loop {
            if let Some(drawn) = self.drawn {
                tokio::time::sleep_until(drawn).await;
                self.drawn = None;
            }
            if !self.more {
                self.pace.next().await?;
            }
            let shared = self.inner.lock();
            let entry = shared.queue.get(self.id)?;
            let most = if self.known == 0 { FIRST_SEGMENTS } else { MORE_SEGMENTS };
            let change = shared.queue.text_since(self.id, self.seen, self.known, most);
            self.seen = shared.queue.version();
            self.more = change.as_ref().is_some_and(|change| change.more);
            if entry.edited.is_some() {
                // The user waits for the result of an edit.
                self.pace.earliest = None;
            }
            if let Some(change) = change {
                // What is finished is read; of what is still being said every word is waited for.
                let is_read = change.more || (entry.edited.is_some() && !change.segments.is_empty());
                let is_first = self.known == 0 && is_read;
                self.drawn = is_first.then(|| Instant::now() + FIRST_LOOK);
                let whole = entry.segments().len();
                self.known = if change.more { change.from + change.segments.len() } else { whole };
                return Some(change);
            }
        }
    }
}

/// Follows the memory of one job.
#[derive(Debug)]
pub struct MemoryFollower {
    inner: Arc<Inner>,
    pace: Pace,
    id: JobId,
    seen: u64,
    known: Known,
}

impl MemoryFollower {
    /// At most twenty times a second; `None` once the recording was removed.
    pub async fn next(&mut self) -> Option<MemoryChange> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            shared.queue.get(self.id)?;
            let change = shared.queue.memory_since(self.id, self.seen, self.known);
            self.seen = shared.queue.version();
            if let Some(change) = change {
                self.known = change.now;
                return Some(change);
            }
        }
    }
}
