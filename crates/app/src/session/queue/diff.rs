//! What is told of the queue to somebody who looked before.

use std::sync::Arc;

use transcript::edit::Change;
use transcript::{Completeness, Notice, Segment};
use wire::JobId;

use super::super::editing::Edited;
use super::super::usage::{JobMemory, Known, MemoryChange};
use super::{Queue, QueueEntry, Rewrite};

/// What changed in the list since somebody last looked.
#[derive(Debug, Default)]
pub struct Changes {
    pub changed: Vec<QueueEntry>,
    pub removed: Vec<JobId>,
    /// All recordings in the order of their turns, where that changed.
    pub order: Option<Vec<JobId>>,
}

/// What changed in one recording's text since somebody last looked: from index
/// `from` on there are now `segments`; then `changes` were made.
#[derive(Debug)]
pub struct TextChange {
    pub id: JobId,
    pub from: usize,
    pub segments: Vec<Segment>,
    pub changes: Vec<Arc<[Change]>>,
    /// Not all of it: the next is there already.
    pub more: bool,
    pub edited: Option<Edited>,
    pub notices: Vec<Notice>,
    /// Known once the job is over.
    pub ending: Option<Ending>,
}

/// What a transcript says of itself as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub language: String,
    pub complete: bool,
    pub completeness: Completeness,
}

impl Queue {
    /// Without the texts, which [`text_since`](Self::text_since) gives one by one.
    pub fn changes_since(&self, version: u64) -> Changes {
        let changed = self.iter().filter(|entry| entry.changed > version).map(without_text).collect();
        let removed = self.removed.range((version + 1, 0)..).map(|(_, id)| *id).collect();
        let order = (self.reordered > version).then(|| self.turns.iter().collect());
        Changes { changed, removed, order }
    }

    /// What is new of one recording's memory, for somebody who has had `known`
    /// samples of it. `None` where there is nothing.
    pub fn memory_since(&self, id: JobId, version: u64, known: Known) -> Option<MemoryChange> {
        let entry = self.get(id).filter(|entry| entry.changed > version)?;
        entry.memory.since(id, known)
    }

    /// `known`: how many segments the asker has; `most`: how many it takes at
    /// once. `None` where nothing changed and it has all of them.
    pub fn text_since(&self, id: JobId, version: u64, known: usize, most: usize) -> Option<TextChange> {
        let entry = self.get(id)?;
        let segments = entry.segments();
        if entry.changed <= version && known >= segments.len() {
            return None;
        }
        let since: Vec<&Rewrite> =
            entry.rewrites.iter().filter(|rewrite| rewrite.version > version).collect();
        let changes: Option<Vec<_>> = since.iter().map(|rewrite| rewrite.changes.clone()).collect();
        // Of one who had all of it only what another one did.
        let had_all = |changes: &Vec<Arc<[Change]>>| {
            let grown: isize = changes.iter().flat_map(|changes| changes.iter()).map(Change::growth).sum();
            known.checked_add_signed(grown) == Some(segments.len())
        };
        let (from, to, changes) = match changes.filter(had_all) {
            Some(changes) => (known, known, changes),
            None => {
                let first = since.iter().map(|rewrite| rewrite.from).fold(known, usize::min);
                let from = first.min(segments.len());
                (from, segments.len().min(from.saturating_add(most)), Vec::new())
            }
        };
        let more = changes.is_empty() && to < segments.len();
        // Who waits for an edit has it once all is there.
        let revision = |edited: Edited| if more { 0 } else { edited.revision };
        let edited = entry.edited.map(|edited| Edited { revision: revision(edited), ..edited });
        Some(TextChange {
            id,
            from,
            segments: segments.get(from..to).unwrap_or_default().to_vec(),
            changes,
            more,
            edited,
            notices: entry.notices().to_vec(),
            ending: entry.transcript.as_ref().map(|transcript| Ending {
                language: transcript.language.clone(),
                complete: transcript.complete,
                completeness: transcript.completeness.clone(),
            }),
        })
    }
}

/// A list of a thousand recordings is told of often; their texts are not copied for that.
pub(super) fn without_text(entry: &QueueEntry) -> QueueEntry {
    QueueEntry {
        id: entry.id,
        file: entry.file.clone(),
        bytes: entry.bytes,
        sample: entry.sample,
        watched: entry.watched.clone(),
        own: entry.own.clone(),
        length: entry.length,
        state: entry.state,
        progress: entry.progress.clone(),
        source: entry.source.clone(),
        model: entry.model.clone(),
        device: entry.device.clone(),
        failure: entry.failure.clone(),
        transcript: None,
        saved: entry.saved.clone(),
        memory: JobMemory::default(),
        again: entry.again.clone(),
        language: entry.language.clone(),
        edited: entry.edited,
        missing: entry.missing,
        will_not_fit: entry.will_not_fit.clone(),
        streamed: Vec::new(),
        notices: Vec::new(),
        changed: entry.changed,
        rewrites: Vec::new(),
    }
}
