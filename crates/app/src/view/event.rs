//! Events that the shell sends to the page.

use crate::session::{self, Changes, Session};
use advisor::transfers;
use serde::Serialize;
use ts_rs::TS;

use super::editing::count;
use super::{IndexState, Job, Setup, Transfer};

/// What happens to the window or the queue, at most twenty times a second.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowEvent {
    /// Files are being dragged over the window.
    DragOver {
        /// How many.
        files: u32,
    },
    /// No files are dragged any more.
    DragLeft,
    /// The list of recordings changed.
    Jobs {
        /// Recordings that are new or changed.
        changed: Vec<Job>,
        /// Recordings that are no longer in the list.
        removed: Vec<u64>,
        /// All of them in the order of their turns, where that changed.
        order: Option<Vec<u64>>,
    },
    /// The models or settings are others now.
    Setup {
        /// All of the setup.
        setup: Box<Setup>,
    },
    /// The user wants to close the window: what was typed is to be written down,
    /// and the user asked where recordings are unfinished or transcripts not saved.
    CloseRequested {
        /// Recordings that would be left undone.
        unfinished: u32,
        /// Recordings whose transcripts would be lost.
        unsaved: Vec<u64>,
    },
    /// Everything that is being downloaded or imported, at most ten times a second.
    Transfers {
        /// All of them.
        transfers: Vec<Transfer>,
    },
    /// The search by meaning is further, or has another model.
    Index {
        /// How far it is.
        state: IndexState,
    },
    /// Nothing is left to do, and the user is elsewhere and wants to know.
    QueueEnded {
        /// Recordings that were transcribed.
        finished: u32,
        /// Recordings that failed.
        failed: u32,
    },
}

impl WindowEvent {
    /// Files are being dragged over the window.
    pub fn drag_over(files: usize) -> Self {
        Self::DragOver { files: count(files) }
    }

    /// With what would be lost by closing now.
    pub fn close_requested(session: &Session) -> Self {
        Self::CloseRequested { unfinished: count(session.unfinished()), unsaved: session.lost() }
    }

    /// Whether the user is asked before the window closes.
    pub fn asks_the_user(&self) -> bool {
        matches!(self, Self::CloseRequested { unfinished, unsaved } if *unfinished > 0 || !unsaved.is_empty())
    }

    /// Nothing is left to do.
    pub fn queue_ended(finished: usize, failed: usize) -> Self {
        Self::QueueEnded { finished: count(finished), failed: count(failed) }
    }
}

impl From<Changes> for WindowEvent {
    fn from(changes: Changes) -> Self {
        let Changes { changed, removed, order } = changes;
        Self::Jobs { changed: changed.into_iter().map(Job::from).collect(), removed, order }
    }
}

impl From<session::IndexState> for WindowEvent {
    fn from(state: session::IndexState) -> Self {
        Self::Index { state: state.into() }
    }
}

impl From<Vec<transfers::Transfer>> for WindowEvent {
    fn from(transfers: Vec<transfers::Transfer>) -> Self {
        Self::Transfers { transfers: transfers.into_iter().map(Transfer::from).collect() }
    }
}
