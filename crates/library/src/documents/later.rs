//! What nobody waits for, done beside whatever else is.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use super::{DocumentId, Documents, at, find, passages, snapshots};
use crate::Error;

/// Passages that take some ten milliseconds: so long does an edit wait.
const PORTION: u32 = 100;
/// Between two portions, in which others have their turn.
const PAUSE: Duration = Duration::from_millis(10);

impl Documents {
    /// Lets what many changes at once left be found as it is now. What is not
    /// done when the program ends is done at its next start.
    pub(super) fn index_later(&self) {
        if self.0.indexing.swap(true, Ordering::Relaxed) {
            return;
        }
        self.later(|documents| {
            let indexed = documents.index();
            documents.0.indexing.store(false, Ordering::Relaxed);
            indexed
        });
    }

    fn index(&self) -> Result<(), Error> {
        let portion = || {
            self.change(|transaction| {
                let more = passages::catch_up(transaction, PORTION)?;
                // Before anybody else can change anything: who does begins again.
                self.0.indexing.store(more, Ordering::Relaxed);
                Ok(more)
            })
        };
        while portion()? {
            thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Writes a transcript down as it is, so that fewer edits are done over to
    /// open it the next time.
    pub(super) fn renew_later(&self, id: DocumentId) {
        self.later(move |documents| {
            documents.change(|transaction| {
                let Some((_, course)) = find(transaction, id)? else { return Ok(()) };
                let (transcript, replayed) = at(transaction, id, course.done)?;
                if replayed.edits == 0 {
                    return Ok(());
                }
                snapshots::write(transaction, id, course.done, &transcript)
            })
        });
    }

    fn later(&self, work: impl FnOnce(&Self) -> Result<(), Error> + Send + 'static) {
        let documents = self.clone();
        let name = thread::Builder::new().name("history".into());
        // Where that fails a search does it, or the next start.
        let _ = name.spawn(move || work(&documents));
    }
}
