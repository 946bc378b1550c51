use std::sync::Arc;

use tokio::sync::watch;

use crate::Error;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Run,
    Pause,
    Cancel,
}

/// Pauses, resumes or cancels a download or import. Clones control the same one.
#[derive(Debug, Clone)]
pub struct Control(Arc<watch::Sender<Request>>);

impl Default for Control {
    fn default() -> Self {
        Self(Arc::new(watch::channel(Request::Run).0))
    }
}

impl Control {
    /// Closes the connection; what was downloaded stays.
    pub fn pause(&self) {
        self.request(Request::Pause);
    }

    /// Goes on after [`Self::pause`].
    pub fn resume(&self) {
        self.request(Request::Run);
    }

    /// Ends the download with [`Error::Cancelled`]; what was downloaded stays.
    pub fn cancel(&self) {
        self.request(Request::Cancel);
    }

    /// A cancelled download can't be resumed.
    fn request(&self, request: Request) {
        self.0.send_if_modified(|now| {
            let changes = *now != Request::Cancel && *now != request;
            if changes {
                *now = request;
            }
            changes
        });
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        *self.0.borrow() == Request::Cancel
    }

    pub(crate) fn is_paused(&self) -> bool {
        *self.0.borrow() == Request::Pause
    }

    /// Waits until the download is paused or cancelled.
    pub(crate) async fn interrupted(&self) {
        // The sender lives in `self`: it can't be gone.
        let _ = self.0.subscribe().wait_for(|request| *request != Request::Run).await;
    }

    /// Waits until the download is not paused.
    pub(crate) async fn ready(&self) -> Result<(), Error> {
        let _ = self.0.subscribe().wait_for(|request| *request != Request::Pause).await;
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}
