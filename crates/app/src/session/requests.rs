//! What was asked of finished transcripts, in the journal, so that a later window does what this
//! one could not.

use std::sync::Arc;

use library::DocumentId;
use serde::{Deserialize, Serialize};
use transcript::Span;
use wire::{FilePath, JobId};

use super::again::{Again, AgainKind, Attempt};
use super::queue::QueueEntry;
use super::settings::find;
use super::{Inner, Session};

/// What was asked of a transcript of the history, as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// Its number in the history.
    document: i64,
    span: Span,
    kind: AgainKind,
    attempt: Option<StoredAttempt>,
}

/// An attempt as it is written down: the model by its path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct StoredAttempt {
    model: Option<FilePath>,
    language: Option<String>,
}

impl Request {
    /// What waits, is under way or waits for the user's choice; nothing of a transcript that is not
    /// in the history.
    fn of(entry: &QueueEntry) -> Vec<Self> {
        let Some(edited) = entry.edited else { return Vec::new() };
        let one = |again: &Again| Self {
            document: edited.document.0,
            span: again.span,
            kind: again.kind,
            attempt: again.attempt.as_ref().map(|attempt| StoredAttempt {
                model: attempt.model.as_ref().map(|model| model.path.clone().into()),
                language: attempt.language.clone(),
            }),
        };
        entry.again.iter().map(one).collect()
    }

    fn again(&self) -> Again {
        let attempt = self.attempt.clone().map(|StoredAttempt { model, language }| Attempt {
            model: model.map(|path| find(path.as_path())),
            language,
        });
        Again { span: self.span, kind: self.kind, attempt, found: None }
    }
}

impl Session {
    /// Has the journal keep what is asked of a recording's text now. Returns at once: the caller may be
    /// the thread that draws.
    pub(super) fn keep_requests(&self, id: JobId) {
        let inner = Arc::clone(&self.inner);
        self.inner.runtime.spawn_blocking(move || inner.write_requests(id));
    }

    /// Asks again for what earlier windows were asked for and did not do. Waits for the disk.
    pub(super) fn ask_anew(&self) {
        let left = self.inner.journal().requests_left();
        for request in left {
            let Ok(id) = self.open_document(DocumentId(request.document)) else {
                self.inner.journal().drop_request(&request);
                continue;
            };
            // Until all of the text is there.
            drop(self.turn());
            self.change(|shared| shared.queue.ask_again(id, request.again()));
            self.inner.write_requests(id);
            // Where the text could not be read there is nothing to do.
            self.inner.journal().drop_request(&request);
        }
    }
}

impl Inner {
    fn write_requests(&self, id: JobId) {
        let mut journal = self.journal();
        let (file, requests) = {
            let shared = self.lock();
            if shared.closed {
                // What the window's end interrupts is asked for at the next start.
                return;
            }
            let entry = shared.queue.get(id);
            let file = entry.map(|entry| entry.file.clone()).unwrap_or_default();
            (file, entry.map(Request::of).unwrap_or_default())
        };
        journal.keep_requests(id, &file, requests);
    }
}
