//! What changed in the queue since a follower's last version.

use std::sync::Arc;

use transcript::chapters::Chapter;
use transcript::edit::Change;
use transcript::{Completeness, Notice, Segment};
use wire::JobId;

use super::super::editing::Edited;
use super::super::usage::{JobMemory, Known, MemoryChange};
use super::{Queue, QueueEntry, Rewrite};

/// What changed in the list since a version.
#[derive(Debug, Default)]
pub struct Changes {
    /// Recordings that are new or changed, without their texts.
    pub changed: Vec<QueueEntry>,
    /// Recordings that are no longer in the list.
    pub removed: Vec<JobId>,
    /// All recordings in their order, where that changed.
    pub order: Option<Vec<JobId>>,
}

/// What changed in one recording's text since a version: from index `from` on there are
/// now `segments`; then `changes` were made.
#[derive(Debug)]
pub struct TextChange {
    /// The recording.
    pub id: JobId,
    /// Index of the first segment that was replaced.
    pub from: usize,
    /// The segments from that index on.
    pub segments: Vec<Segment>,
    /// Edits that follow, in order.
    pub changes: Vec<Arc<[Change]>>,
    /// There is more text, which the next change has.
    pub more: bool,
    /// Its state in the history; `None`: it can't be edited.
    pub edited: Option<Edited>,
    /// All notices about the text.
    pub notices: Vec<Notice>,
    /// All chapters.
    pub chapters: Vec<Chapter>,
    /// What is being written behind the segments, which may still change.
    pub live_text: Option<String>,
    /// Known once the job is over.
    pub ending: Option<Ending>,
}

/// What a transcript says of itself as a whole.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// ISO 639-1 code of the main language.
    pub language: String,
    /// False for what a stopped job left behind.
    pub complete: bool,
    /// How much of the speech has text.
    pub completeness: Completeness,
}

impl Queue {
    /// Changes since `version`, without the texts, which [`text_since`](Self::text_since)
    /// has.
    pub fn changes_since(&self, version: u64) -> Changes {
        let changed = self.iter().filter(|entry| entry.changed > version).map(without_text).collect();
        let removed = self.removed.range((version + 1, 0)..).map(|(_, id)| *id).collect();
        let order = (self.reordered > version).then(|| self.turns.iter().collect());
        Changes { changed, removed, order }
    }

    /// What is new of one recording's memory, for a follower that has the `known`
    /// samples. `None` where nothing is new.
    pub fn memory_since(&self, id: JobId, version: u64, known: Known) -> Option<MemoryChange> {
        let entry = self.get(id).filter(|entry| entry.changed > version)?;
        entry.memory.since(id, known)
    }

    /// Changes of a text since `version`. `known`: how many segments the follower has;
    /// `most`: how many it takes at once. `None` where nothing changed and it has all of
    /// them.
    pub fn text_since(&self, id: JobId, version: u64, known: usize, most: usize) -> Option<TextChange> {
        let entry = self.get(id)?;
        let segments = entry.segments();
        if entry.changed <= version && known >= segments.len() {
            return None;
        }
        let since: Vec<&Rewrite> =
            entry.rewrites.iter().filter(|rewrite| rewrite.version > version).collect();
        let changes: Option<Vec<_>> = since.iter().map(|rewrite| rewrite.changes.clone()).collect();
        // A follower that has all of the text gets later edits alone.
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
        // Edits are sent once all of the text is there.
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
            live_text: entry.live_text().filter(|_| !more).map(str::to_owned),
            chapters: entry.transcript.as_ref().map(|it| it.chapters.clone()).unwrap_or_default(),
            ending: entry.transcript.as_ref().map(|transcript| Ending {
                language: transcript.language.clone(),
                complete: transcript.complete,
                completeness: transcript.completeness.clone(),
            }),
        })
    }
}

/// A list of a thousand recordings is copied often: without the texts.
pub(super) fn without_text(entry: &QueueEntry) -> QueueEntry {
    QueueEntry {
        id: entry.id,
        file: entry.file.clone(),
        bytes: entry.bytes,
        sample: entry.sample,
        approved: entry.approved,
        watched: entry.watched.clone(),
        own: entry.own.clone(),
        part: entry.part,
        tracks: Arc::clone(&entry.tracks),
        length: entry.length,
        state: entry.state,
        progress: entry.progress.clone(),
        source: entry.source.clone(),
        model: entry.model.clone(),
        device: entry.device.clone(),
        failure: entry.failure.clone(),
        transcript: None,
        saved: entry.saved.clone(),
        not_stored: entry.not_stored.clone(),
        not_saved: entry.not_saved.clone(),
        memory: JobMemory::default(),
        again: entry.again.clone(),
        language: entry.language.clone(),
        edited: entry.edited,
        missing: entry.missing,
        speakers: entry.speakers,
        will_not_fit: entry.will_not_fit.clone(),
        truncated_at: entry.truncated_at,
        stopped: entry.stopped.clone(),
        resumed: entry.resumed,
        starts_over: entry.starts_over,
        elsewhere: entry.elsewhere.clone(),
        placed: entry.placed.clone(),
        earlier: None,
        is_kept: entry.is_kept,
        streamed: Vec::new(),
        live_text: None,
        notices: Vec::new(),
        changed: entry.changed,
        rewrites: Vec::new(),
    }
}
