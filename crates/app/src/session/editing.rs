//! Edits of finished transcripts: planned on the current text, stored in the history,
//! then shown.
//!
//! An edit is planned under the queue's lock, written without it, and then applied. The
//! page gets the same changes and applies them too, so that ten thousand replaced words
//! are one message. A part that is transcribed again takes its place at once where there
//! was no text; as an attempt with another model or language it waits until the user
//! chooses, and is an edit then.

use std::ops::Range;
use std::sync::{MutexGuard, PoisonError};

use library::DocumentId;
use library::documents::{StepDirection, UndoPosition};
use transcript::edit::{self, Change, Edit, EditError, Finder, TextPattern};
use transcript::review::{ReviewItem, review};
use transcript::speakers::{self, NamedTurn};
use transcript::{Notice, Segment, Span, Transcript};
use wire::notice::Message;
use wire::{ErrorCode, Failure, JobId};

use super::Session;

/// The state of a transcript in the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edited {
    /// Its number in the history.
    pub document: DocumentId,
    /// Which of its edits are in force.
    pub undo_position: UndoPosition,
    /// Grows with every edit, also with those that are taken back.
    pub revision: u64,
}

/// More passages than are listened to before the list is made again.
const MOST_PASSAGES: usize = 200;

/// What of a transcript should be listened to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Review {
    /// How many passages there are.
    pub count: usize,
    /// The most doubtful of them, in order.
    pub passages: Vec<ReviewItem>,
}

/// What came of an edit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// Of the text that has it.
    pub revision: u64,
    /// Index of the first segment that may be another one.
    pub segment: usize,
}

/// Words within a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The segment's index.
    pub segment: usize,
    /// Code units of its text in UTF-16, as the page counts.
    pub range: Range<usize>,
}

/// What came of replacing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Occurrences that were replaced.
    pub places: usize,
    /// Transcripts that had one.
    pub transcripts: usize,
}

impl Session {
    /// Changes a transcript; `None` where that makes no sense, or not any
    /// more. Waits for the disk.
    ///
    /// # Errors
    /// Where it can't be written down: then it is not done.
    pub fn edit(&self, id: JobId, edit: &Edit) -> Result<Option<Done>, Failure> {
        let _turn = self.turn();
        self.edited(id)?;
        self.plan_and_commit(id, |transcript| edit.plan(transcript))
    }

    /// Finds the chapters of a finished transcript, in place of those that it has, as an edit. `None` where it
    /// can't be edited any more. Takes long: each text is compared by its meaning.
    ///
    /// # Errors
    /// As for [`Session::edit`]; where no model compares meanings, where it fails, and where the transcript
    /// has no chapters.
    pub fn find_chapters(&self, id: JobId) -> Result<Option<Done>, Failure> {
        let transcript = {
            // One that is being opened is whole then.
            let _turn = self.turn();
            self.edited(id)?;
            let shared = self.lock();
            let entry = shared.queue.get(id).and_then(|entry| entry.transcript.as_deref());
            entry.ok_or_else(gone)?.clone()
        };
        let found = self.chapters_of(&transcript)?;
        let _turn = self.turn();
        self.plan_and_commit(id, |transcript| {
            // What was edited meanwhile stays so.
            let ids: std::collections::BTreeSet<_> =
                transcript.segments.iter().map(|segment| segment.id).collect();
            let chapters = found.into_iter().filter(|chapter| ids.contains(&chapter.segment));
            let chapters = chapters.map(|chapter| (chapter.segment, chapter.title)).collect();
            Edit::SetChapters { chapters }.plan(transcript)
        })
    }

    /// Takes the last edit back, or does it again; `None` where there is none.
    /// Waits for the disk.
    ///
    /// # Errors
    /// As for [`Session::edit`].
    pub fn step(&self, id: JobId, way: StepDirection) -> Result<Option<Done>, Failure> {
        let _turn = self.turn();
        self.take_step(id, way)
    }

    /// The caller holds the lock `editing`.
    fn take_step(&self, id: JobId, way: StepDirection) -> Result<Option<Done>, Failure> {
        let edited = self.edited(id)?;
        let documents = self.documents()?;
        let stepped = documents.step(edited.document, edited.undo_position.done, way);
        let Some((changes, undo_position)) = stepped.map_err(|error| error.failure())? else {
            return Ok(None);
        };
        self.apply(id, changes, Some(Edited { undo_position, revision: edited.revision + 1, ..edited }))
            .map(Some)
    }

    /// What of a finished transcript should be listened to; nothing where it
    /// is not there. Waits for all of one that is being opened.
    pub fn review(&self, id: JobId) -> Review {
        let _turn = self.turn();
        let shared = self.lock();
        let transcript = shared.queue.get(id).and_then(|entry| entry.transcript.as_ref());
        let mut passages = transcript.map(|transcript| review(transcript)).unwrap_or_default();
        let count = passages.len();
        passages.truncate(MOST_PASSAGES);
        Review { count, passages }
    }

    /// Replaces all places in one transcript, or in those of the history too.
    /// Each transcript's is one edit. Waits for the disk.
    ///
    /// # Errors
    /// As for [`Session::edit`]; what was replaced until then stays so.
    pub fn replace_all(
        &self,
        id: JobId,
        finding: &TextPattern,
        with: &str,
        everywhere: bool,
    ) -> Result<Replaced, Failure> {
        let _turn = self.turn();
        let finder = finder(finding)?;
        let open = self.edited(id)?.document;
        let mut replaced = Replaced::default();
        // In every transcript that was changed: how many edits it has then.
        let mut changed: Vec<(DocumentId, i64)> = Vec::new();
        let places = self.replace(id, &finder, with)?;
        replaced.count(places);
        if places > 0 {
            changed.push((open, self.edited(id)?.undo_position.done));
        }
        let others = if everywhere { self.others_with(open, finding)? } else { Vec::new() };
        for document in others {
            let (places, done) = match self.opened(document) {
                Some(job) => {
                    let places = self.replace(job, &finder, with)?;
                    (places, self.edited(job)?.undo_position.done)
                }
                None => replace_unopened(self.documents()?, document, &finder, with)
                    .map_err(|error| error.failure())?,
            };
            replaced.count(places);
            if places > 0 {
                changed.push((document, done));
            }
        }
        *self.inner.replaced.lock().unwrap_or_else(PoisonError::into_inner) = changed;
        Ok(replaced)
    }

    /// Where the words occur in one transcript, in order.
    ///
    /// # Errors
    /// If the words are to be a regular expression and are none.
    pub fn places(&self, id: JobId, finding: &TextPattern) -> Result<Vec<Place>, Failure> {
        let finder = finder(finding)?;
        let shared = self.lock();
        let transcript = shared.queue.get(id).and_then(|entry| entry.transcript.as_ref());
        let segments = transcript.map_or(&[][..], |transcript| &transcript.segments);
        let places = |(segment, text): (usize, &str)| -> Vec<Place> {
            let units = |range: Range<usize>| utf16(text, range.start)..utf16(text, range.end);
            finder.matches(text).into_iter().map(|range| Place { segment, range: units(range) }).collect()
        };
        Ok(segments.iter().map(|segment| segment.text.as_str()).enumerate().flat_map(places).collect())
    }

    /// Replaces the words at one place, as one edit; returns the place behind what took their place.
    /// `None` if they are not there any more. Waits for the disk.
    ///
    /// # Errors
    /// As for [`Session::edit`].
    pub fn replace_one(
        &self,
        id: JobId,
        finding: &TextPattern,
        with: &str,
        place: &Place,
    ) -> Result<Option<Place>, Failure> {
        let _turn = self.turn();
        let finder = finder(finding)?;
        let mut behind = None;
        let done = self.plan_and_commit(id, |transcript| {
            let segment = transcript.segments.get(place.segment).ok_or(EditError::NotFound)?;
            let matches = finder.matches(&segment.text);
            let is_meant = |found: &Range<usize>| utf16(&segment.text, found.start) == place.range.start;
            let found = matches.into_iter().find(is_meant).ok_or(EditError::NotFound)?;
            let replaced = finder.replace_one(&segment.text, &found, with);
            let (text, end) = replaced.ok_or(EditError::NotFound)?;
            let end = utf16(&text, end);
            behind = Some(Place { segment: place.segment, range: end..end });
            Edit::SetText { segment: segment.id, text }.plan(transcript)
        })?;
        Ok(behind.filter(|_| done.is_some()))
    }

    /// What [`Session::replace_all`] would replace everywhere. Waits for the disk.
    ///
    /// # Errors
    /// Where the history can't be read.
    pub fn count_places(&self, id: JobId, finding: &TextPattern) -> Result<Replaced, Failure> {
        let _turn = self.turn();
        let finder = finder(finding)?;
        let open = self.edited(id)?.document;
        let mut found = Replaced::default();
        let count = |transcript: &Transcript| finder.replace_all(transcript, "").1;
        for document in [vec![open], self.others_with(open, finding)?].concat() {
            let shown = self.opened(document).and_then(|job| {
                let shared = self.lock();
                shared.queue.get(job).and_then(|entry| entry.transcript.as_ref()).map(|it| count(it))
            });
            found.count(match shown {
                Some(places) => places,
                None => {
                    let read = self.documents()?.read(document).map_err(|error| error.failure())?;
                    read.map_or(0, |opened| count(&opened.transcript))
                }
            });
        }
        Ok(found)
    }

    /// Takes the latest [`Session::replace_all`] back in every transcript that was not edited since;
    /// returns how many were, and the titles of those that were not. Waits for the disk.
    ///
    /// # Errors
    /// As for [`Session::edit`]; what was taken back until then stays so.
    pub fn undo_replacing(&self) -> Result<(usize, Vec<String>), Failure> {
        let _turn = self.turn();
        let changed =
            std::mem::take(&mut *self.inner.replaced.lock().unwrap_or_else(PoisonError::into_inner));
        let (mut undone, mut left) = (0, Vec::new());
        for (document, done) in changed {
            let is_undone = match self.opened(document) {
                Some(job) if self.edited(job)?.undo_position.done != done => false,
                Some(job) => self.take_step(job, StepDirection::Undo)?.is_some(),
                None => match self.documents()?.step(document, done, StepDirection::Undo) {
                    Ok(step) => step.is_some(),
                    Err(library::Error { problem: library::Problem::Changed, .. }) => false,
                    Err(error) => return Err(error.failure()),
                },
            };
            match is_undone {
                true => undone += 1,
                false => left.push(document),
            }
        }
        if left.is_empty() {
            return Ok((undone, Vec::new()));
        }
        let stored = self.documents()?.list().map_err(|error| error.failure())?;
        let titles = stored.into_iter().filter(|one| left.contains(&one.id)).map(|one| one.title);
        Ok((undone, titles.collect()))
    }

    /// The other transcripts of the history in which the words may occur.
    fn others_with(&self, open: DocumentId, finding: &TextPattern) -> Result<Vec<DocumentId>, Failure> {
        let documents = self.documents()?;
        let found = match finding.regular_expression {
            // The index knows letters alone.
            true => documents.list().map(|all| all.into_iter().map(|document| document.id).collect()),
            false => documents.containing(&finding.text),
        };
        let found: Vec<DocumentId> = found.map_err(|error| error.failure())?;
        Ok(found.into_iter().filter(|document| *document != open).collect())
    }

    fn replace(&self, id: JobId, finder: &Finder, with: &str) -> Result<usize, Failure> {
        let mut places = 0;
        let done = self.plan_and_commit(id, |transcript| {
            let (edit, count) = finder.replace_all(transcript, with);
            places = count;
            edit.plan(transcript)
        })?;
        Ok(if done.is_some() { places } else { 0 })
    }

    /// A part that was transcribed again takes its place, as an edit where
    /// there is a history. Waits for the disk.
    pub(super) fn put_again(
        &self,
        id: JobId,
        span: Span,
        found: Transcript,
    ) -> Result<Option<Done>, Failure> {
        let _turn = self.turn();
        self.plan_and_commit(id, |transcript| {
            let mut after = transcript.clone();
            let (from, to) = (span.start.seconds(), span.end.seconds());
            let message = Message::Again { from, to, model: found.model.name.clone() };
            after.replace(span, found);
            after.notices.push(Notice::from(message).at(span.start));
            edit::assign_ids(&mut after);
            Ok(edit::between(transcript, &after))
        })
    }

    /// A translation beside the text, as an edit where there is a history. Waits for the disk.
    pub(super) fn put_translation(&self, id: JobId, found: &[Segment]) -> Result<Option<Done>, Failure> {
        let _turn = self.turn();
        self.plan_and_commit(id, |transcript| {
            let mut after = transcript.clone();
            after.add_translation(found);
            Ok(edit::between(transcript, &after))
        })
    }

    /// Who speaks was found: as an edit where there is a history. Waits for the disk.
    pub(super) fn put_speakers(&self, id: JobId, turns: Vec<NamedTurn>) -> Result<Option<Done>, Failure> {
        let _turn = self.turn();
        self.plan_and_commit(id, |transcript| {
            let mut after = speakers::with_turns(transcript, turns);
            edit::assign_ids(&mut after);
            Ok(edit::between(transcript, &after))
        })
    }

    /// The caller holds the lock `editing`.
    fn plan_and_commit(
        &self,
        id: JobId,
        plan: impl FnOnce(&Transcript) -> Result<Vec<Change>, EditError>,
    ) -> Result<Option<Done>, Failure> {
        let (planned, edited) = {
            let shared = self.lock();
            let entry = shared.queue.get(id).ok_or_else(gone)?;
            let transcript = entry.transcript.as_ref().ok_or_else(gone)?;
            (plan(transcript), entry.edited)
        };
        let Ok(changes) = planned else { return Ok(None) };
        if changes.is_empty() {
            return Ok(edited.map(|edited| Done { revision: edited.revision, segment: 0 }));
        }
        let edited = edited.map(|edited| -> Result<Edited, Failure> {
            let written = self.documents()?.record(edited.document, edited.undo_position.done, &changes);
            let undo_position = written.map_err(|error| error.failure())?;
            Ok(Edited { undo_position, revision: edited.revision + 1, ..edited })
        });
        let edited = edited.transpose()?;
        self.apply(id, changes, edited).map(Some)
    }

    fn apply(&self, id: JobId, changes: Vec<Change>, edited: Option<Edited>) -> Result<Done, Failure> {
        let segment = self.change(|shared| shared.queue.edit(id, changes, edited)).map_err(|mismatch| {
            Failure::new(ErrorCode::Internal, format!("The edit could not be shown: {mismatch}."))
                .remedy("Open the transcript again.")
        })?;
        Ok(Done { revision: edited.map_or(0, |edited| edited.revision), segment })
    }

    fn edited(&self, id: JobId) -> Result<Edited, Failure> {
        self.lock().queue.get(id).and_then(|entry| entry.edited).ok_or_else(gone)
    }

    /// One edit after the other.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        self.inner.editing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Replaced {
    fn count(&mut self, places: usize) {
        self.places += places;
        self.transcripts += usize::from(places > 0);
    }
}

fn replace_unopened(
    documents: &library::Documents,
    document: DocumentId,
    finder: &Finder,
    with: &str,
) -> Result<(usize, i64), library::Error> {
    let Some(opened) = documents.read(document)? else { return Ok((0, 0)) };
    let (edit, places) = finder.replace_all(&opened.transcript, with);
    let changes = edit.plan(&opened.transcript).unwrap_or_default();
    if changes.is_empty() {
        return Ok((0, opened.undo_position.done));
    }
    let undo_position = documents.record(document, opened.undo_position.done, &changes)?;
    Ok((places, undo_position.done))
}

/// The code units of `text` in UTF-16 before this byte.
fn utf16(text: &str, byte: usize) -> usize {
    text[..byte].encode_utf16().count()
}

fn finder(finding: &TextPattern) -> Result<Finder, Failure> {
    finding.finder().map_err(|error| {
        Failure::new(ErrorCode::BadPattern, error.to_string()).remedy("Correct it, or search for plain text.")
    })
}

fn gone() -> Failure {
    Failure::new(ErrorCode::TranscriptGone, "This transcript can't be edited: it is not in the history.")
        .remedy("Open it from the history.")
}
