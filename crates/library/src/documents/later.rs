//! Work on the history that runs in a background thread.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::{DocumentId, Documents, find, passages, snapshots, transcript_at, words};
use crate::Error;

/// Number of segments indexed in one transaction. An edit waits for it, some 10 ms.
const BATCH: u32 = 100;
/// Pause between two transactions, in which others can use the file.
const PAUSE: Duration = Duration::from_millis(10);

impl Documents {
    /// Indexes the remaining changed segments in the background, and cuts changed transcripts into passages. What is not done
    /// when the program ends is done after its next start.
    pub(super) fn index_later(&self) {
        if self.0.indexing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.later(|documents| {
            let indexed = documents.catch_up();
            documents.0.indexing.store(false, Ordering::Relaxed);
            indexed
        });
    }

    fn catch_up(&self) -> Result<(), Error> {
        let batch = || {
            self.change(|transaction| {
                // Passages once all words are there, one transcript at a time.
                let more = words::catch_up(transaction, BATCH)? || passages::cut(transaction, 1)?;
                // Within the transaction: a change after it starts indexing again.
                self.0.indexing.store(more, Ordering::Relaxed);
                Ok(more)
            })
        };
        while batch()? {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Writes a new snapshot of a transcript in the background, so that fewer
    /// edits are replayed when it is opened again.
    pub(super) fn renew_later(&self, id: DocumentId) {
        self.later(move |documents| {
            documents.change(|transaction| {
                let Some((_, undo_position)) = find(transaction, id)? else { return Ok(()) };
                let (transcript, replayed) = transcript_at(transaction, id, undo_position.done)?;
                if replayed.edits == 0 {
                    return Ok(());
                }
                snapshots::write(transaction, id, undo_position.done, &transcript)
            })
        });
    }

    fn later(&self, work: impl FnOnce(&Self) -> Result<(), Error> + Send + 'static) {
        let documents = self.clone();
        let name = thread::Builder::new().name("history".into());
        // If this fails, the next search or the next start does the work.
        let _ = name.spawn(move || work(&documents));
    }
}
