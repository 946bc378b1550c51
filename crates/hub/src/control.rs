use std::sync::Arc;

use tokio::sync::watch;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Run,
    Pause,
    Cancel,
}

/// What whoever asked for a download wants of it now. Clones share one wish.
#[derive(Debug, Clone)]
pub struct Control(Arc<watch::Sender<Wish>>);

impl Default for Control {
    fn default() -> Self {
        Self(Arc::new(watch::channel(Wish::Run).0))
    }
}

impl Control {
    /// The connection is given up; what has come stays.
    pub fn pause(&self) {
        self.wish(Wish::Pause);
    }

    /// Goes on after [`Self::pause`].
    pub fn resume(&self) {
        self.wish(Wish::Run);
    }

    /// Ends the download with [`Error::Cancelled`]; what has come stays.
    pub fn cancel(&self) {
        self.wish(Wish::Cancel);
    }

    /// Nothing brings a cancelled download back.
    fn wish(&self, wish: Wish) {
        self.0.send_if_modified(|now| {
            let changes = *now != Wish::Cancel && *now != wish;
            if changes {
                *now = wish;
            }
            changes
        });
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.0.borrow() == Wish::Cancel
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.0.borrow() == Wish::Pause
    }

    /// Waits until the download is not to run any more.
    pub(crate) async fn interrupted(&self) {
        // The sender lives in `self`: it can't be gone.
        let _ = self.0.subscribe().wait_for(|wish| *wish != Wish::Run).await;
    }

    /// Waits out a pause.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let _ = self.0.subscribe().wait_for(|wish| *wish != Wish::Pause).await;
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
