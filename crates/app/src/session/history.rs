//! Finished transcripts go into the history, and come back from it as entries
//! of the list that are done.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::sync::{Arc, Weak};
use std::time::Duration;

use library::documents::{Document, UndoPosition};
use library::{DocumentId, Documents, Identity};
use supervisor::recordings::{DEEPEST, walk};
use transcript::export::{Format, Options};
use wire::{ErrorCode, Failure, JobId};

use super::editing::Edited;
use super::queue::says_not_stored;
use super::{Exporting, Inner, SaveTarget, Session, Written, save};

/// As long as a page may take to draw the beginning of a transcript.
const FIRST_DRAWN: Duration = Duration::from_millis(150);

/// Between attempts to store a transcript that could not be stored: the user frees space, or connects a disk.
const STORE_AGAIN: Duration = Duration::from_secs(10);

impl Session {
    /// Once, before anything is finished: where transcripts go. What earlier windows were asked of them
    /// and did not do is asked for again, behind this call.
    pub fn keep_documents(&self, documents: Documents) {
        // A second one would be the same file.
        let _ = self.inner.documents.set(documents);
        let session = self.clone();
        self.inner.runtime.spawn_blocking(move || session.ask_anew());
    }

    /// All transcripts of the history, the latest edit first. Waits for the disk, as do
    /// the other methods here.
    ///
    /// # Errors
    /// Where there is no history, or it can't be read.
    pub fn list_documents(&self) -> Result<Vec<Document>, Failure> {
        self.documents()?.list().map_err(|error| error.failure())
    }

    /// Puts a transcript in the list, if it is not there, and returns its
    /// number. Of a long one there is the beginning then; the rest follows.
    ///
    /// # Errors
    /// Where there is no such transcript, or the history can't be read.
    pub fn open_document(&self, document: DocumentId) -> Result<JobId, Failure> {
        let (tell, told) = mpsc::sync_channel(1);
        let session = self.clone();
        self.inner.runtime.spawn_blocking(move || {
            if let Err(failure) = session.open(document, &tell) {
                let _ = tell.try_send(Err(failure));
            }
        });
        told.recv().unwrap_or_else(|_| Err(no_document()))
    }

    fn open(&self, document: DocumentId, tell: &SyncSender<Result<JobId, Failure>>) -> Result<(), Failure> {
        // Until all of it is read, no other call opens it, edits it, or replaces words in
        // it.
        let _turn = self.turn();
        if let Some(job) = self.opened(document) {
            let _ = tell.send(Ok(job));
            return Ok(());
        }
        let documents = self.documents()?;
        let place = |found: Document, undo_position, segments| {
            let Document { mut file, identity, .. } = found;
            let mut missing = !file.is_file();
            if missing && let Some(found) = beside(&file, identity.as_ref()) {
                let _ = documents.set_recording(document, &found);
                (file, missing) = (found, false);
            }
            let edited = Edited { document, undo_position, revision: 0 };
            self.change(|shared| shared.queue.open(file, missing, segments, edited))
        };
        let beginning = documents.read_beginning(document).map_err(|error| error.failure())?;
        let begun = beginning.map(|found| place(found.document, found.undo_position, found.segments));
        if let Some(job) = begun {
            let _ = tell.send(Ok(job));
            // To read the rest takes every processor there is.
            std::thread::sleep(FIRST_DRAWN);
        }
        let read = documents.read(document).map_err(|error| error.failure());
        let read = read.and_then(|opened| opened.ok_or_else(no_document));
        let Some(job) = begun else {
            let opened = read?;
            let job = place(opened.document, opened.undo_position, Vec::new());
            let all = Ok((Box::new(opened.transcript), opened.undo_position));
            self.change(|shared| shared.queue.opened(job, all));
            let _ = tell.send(Ok(job));
            return Ok(());
        };
        let all = read.map(|opened| (Box::new(opened.transcript), opened.undo_position));
        self.change(|shared| shared.queue.opened(job, all));
        Ok(())
    }

    /// Sets the tags of a transcript.
    ///
    /// # Errors
    /// Where there is no history, or it can't be written.
    pub fn tag_document(&self, document: DocumentId, tags: &[String]) -> Result<(), Failure> {
        self.documents()?.set_tags(document, tags).map_err(|error| error.failure())
    }

    /// Deletes a transcript from the history and from the list.
    ///
    /// # Errors
    /// Where there is no history, or it can't be written.
    pub fn delete_document(&self, document: DocumentId) -> Result<(), Failure> {
        self.documents()?.delete(document, true).map_err(|error| error.failure())?;
        if let Some(job) = self.opened(document) {
            self.remove(job);
        }
        Ok(())
    }

    /// Restores a deleted transcript.
    ///
    /// # Errors
    /// Where there is no history, or it can't be written.
    pub fn restore_document(&self, document: DocumentId) -> Result<(), Failure> {
        self.documents()?.delete(document, false).map_err(|error| error.failure())
    }

    /// Looks for the recording of a transcript, by its content, in a folder and the
    /// folders in it. False where it is not there.
    ///
    /// # Errors
    /// Where the transcript is not in the history, or that can't be read or written.
    pub fn locate(&self, id: JobId, folder: &Path) -> Result<bool, Failure> {
        let edited = self.lock().queue.get(id).and_then(|entry| entry.edited).ok_or_else(no_document)?;
        let documents = self.documents()?;
        let opened = documents.read(edited.document).map_err(|error| error.failure())?;
        let identity = opened.and_then(|opened| opened.document.identity);
        let Some(file) = identity.and_then(|identity| find(folder, DEEPEST, &identity)) else {
            return Ok(false);
        };
        documents.set_recording(edited.document, &file).map_err(|error| error.failure())?;
        self.change(|shared| shared.queue.place(id, file));
        Ok(true)
    }

    /// Saves a transcript of the history, opened or not, as it is now.
    ///
    /// # Errors
    /// Where it can't be read, or the file can't be written.
    pub fn save_document(
        &self,
        document: DocumentId,
        format: Format,
        options: &Options,
        place: &SaveTarget,
    ) -> Result<PathBuf, Failure> {
        // One that is being opened is there as a whole then.
        drop(self.turn());
        if let Some(job) = self.opened(document) {
            return self.save(job, format, options, place);
        }
        let opened = self.documents()?.read(document).map_err(|error| error.failure())?;
        let mut opened = opened.ok_or_else(no_document)?;
        transcript::edit::clear_ids(&mut opened.transcript);
        let naming = self.lock().settings.output.naming();
        save::save(&opened.document.file, &opened.transcript, format, options, place, &naming)
    }

    /// The same of several, in the formats and as the user chose for exports.
    pub fn save_documents(
        &self,
        documents: &[DocumentId],
        exporting: &Exporting,
        place: &SaveTarget,
    ) -> Written {
        let options = exporting.options();
        let one = |document: DocumentId, format: Format| {
            (format, self.save_document(document, format, &options, place))
        };
        let all = documents
            .iter()
            .flat_map(|document| exporting.formats.iter().map(|format| one(*document, *format)));
        all.collect()
    }

    /// What has been finished goes into the history, and where its watched
    /// folder or its settings say. Blocks on the disk.
    pub(super) fn put_away(&self, id: JobId) {
        let archived = self.archive(id);
        // Before the journal forgets it: who is interrupted here exports at the next start.
        let exported = self.export(id);
        if archived || exported {
            self.settled(id);
        }
        if self.is_unstored(id) {
            self.inner.runtime.spawn(store_later(Arc::downgrade(&self.inner), id));
        }
    }

    fn is_unstored(&self, id: JobId) -> bool {
        self.lock().queue.get(id).is_some_and(|entry| entry.not_stored.is_some())
    }

    /// Stores a transcript that could not be stored; true where nothing is left to do. Blocks on the disk.
    pub(super) fn store_again(&self, id: JobId) -> bool {
        if !self.is_unstored(id) {
            return true;
        }
        let archived = self.archive(id);
        if archived {
            self.settled(id);
        }
        archived
    }

    /// A finished transcript goes into the history. Where that fails it stays
    /// in the journal, and can be saved, and the recording says so; false.
    fn archive(&self, id: JobId) -> bool {
        let Some(documents) = self.inner.documents.get() else { return false };
        // Opening it from the history meanwhile opens this entry.
        let _turn = self.turn();
        let finished = {
            let shared = self.lock();
            shared.queue.get(id).and_then(|entry| Some((entry.file.clone(), entry.transcript.clone()?)))
        };
        let Some((file, mut transcript)) = finished else { return false };
        transcript.notices.retain(|notice| !says_not_stored(notice));
        match documents.add(&file, Identity::of(&file).ok().as_ref(), &transcript) {
            Ok(document) => {
                let edited = Edited { document, undo_position: UndoPosition::default(), revision: 0 };
                self.change(|shared| shared.queue.set_edited(id, edited));
                true
            }
            Err(error) => {
                self.change(|shared| shared.queue.set_not_stored(id, error.failure()));
                false
            }
        }
    }

    /// Its number in the list, where it is there.
    pub(super) fn opened(&self, document: DocumentId) -> Option<JobId> {
        let shared = self.lock();
        let is_it =
            |entry: &&super::QueueEntry| entry.edited.is_some_and(|edited| edited.document == document);
        shared.queue.iter().find(is_it).map(|entry| entry.id)
    }

    pub(super) fn documents(&self) -> Result<&Documents, Failure> {
        self.inner.documents.get().ok_or_else(|| {
            Failure::new(ErrorCode::OutputUnwritable, "The history can't be used.")
                .remedy("Check Steno's state folder, and start Steno again.")
        })
    }
}

/// Tries to store a transcript until it is stored, removed, or the session is closed.
async fn store_later(inner: Weak<Inner>, id: JobId) {
    loop {
        tokio::time::sleep(STORE_AGAIN).await;
        let Some(inner) = inner.upgrade() else { return };
        let session = Session { inner };
        if session.lock().closed {
            return;
        }
        if tokio::task::spawn_blocking(move || session.store_again(id)).await.unwrap_or(true) {
            return;
        }
    }
}

fn no_document() -> Failure {
    Failure::new(ErrorCode::TranscriptGone, "This transcript is no longer in the history.")
        .remedy("Refresh the list.")
}

/// A recording that was renamed where it lies.
fn beside(file: &Path, identity: Option<&Identity>) -> Option<PathBuf> {
    find(file.parent()?, 0, identity?)
}

/// What has another length is not read.
fn find(folder: &Path, deepest: usize, identity: &Identity) -> Option<PathBuf> {
    let mut found = None;
    walk(folder, deepest, &mut |one| {
        if let (None, Ok(file)) = (&found, one)
            && std::fs::metadata(&file).is_ok_and(|meta| meta.len() == identity.bytes)
            && Identity::of(&file).is_ok_and(|other| other.is_same_recording(identity))
        {
            found = Some(file);
        }
    });
    found
}
