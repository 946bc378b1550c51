//! What the page is told without having asked.

use crate::session::{Changes, Session};
use advisor::transfers;
use serde::Serialize;
use ts_rs::TS;

use super::editing::count;
use super::{Job, Setup, Transfer};

/// What happens to the window or the queue, at most twenty times a second.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum WindowEvent {
    /// Files are being dragged over the window.
    DragOver {
        files: u32,
    },
    DragLeft,
    Jobs {
        changed: Vec<Job>,
        removed: Vec<u64>,
        /// All of them in the order of their turns, where that changed.
        order: Option<Vec<u64>>,
    },
    /// The models or settings are others now.
    Setup {
        setup: Box<Setup>,
    },
    /// The user wants to close the window: what was typed is to be written down,
    /// and the user asked where recordings are unfinished or transcripts not saved.
    CloseRequested {
        unfinished: u32,
        unsaved: u32,
    },
    /// Everything that is being downloaded or imported, at most ten times a second.
    Transfers {
        transfers: Vec<Transfer>,
    },
    /// Nothing is left to do, and the user is elsewhere and wants to know.
    QueueEnded {
        finished: u32,
        failed: u32,
    },
}

impl WindowEvent {
    pub fn drag_over(files: usize) -> Self {
        Self::DragOver { files: count(files) }
    }

    /// With what would be lost by closing now.
    pub fn close_requested(session: &Session) -> Self {
        Self::CloseRequested { unfinished: count(session.unfinished()), unsaved: count(session.unsaved()) }
    }

    /// Whether the user is asked before the window closes.
    pub fn asks_the_user(&self) -> bool {
        matches!(self, Self::CloseRequested { unfinished, unsaved } if *unfinished > 0 || *unsaved > 0)
    }

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

impl From<Vec<transfers::Transfer>> for WindowEvent {
    fn from(transfers: Vec<transfers::Transfer>) -> Self {
        Self::Transfers { transfers: transfers.into_iter().map(Transfer::from).collect() }
    }
}
