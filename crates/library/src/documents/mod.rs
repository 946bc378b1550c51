//! The history: every transcript, every edit of it, a full-text index, and what its passages mean.
//!
//! A transcript is stored as a snapshot and the edits since. It has a file of its
//! own, because a journal of a newer version is moved aside by an older one,
//! which must not happen to the history.

mod corrections;
mod found;
mod later;
mod passages;
mod snapshots;
mod vectors;
mod words;

pub use corrections::CorrectedWord;
pub use found::{Filter, FoundPassage, Question};
pub use passages::PassageId;
pub use vectors::{Index, IndexId, IndexModel, Meaning};
pub use words::{SearchHit, SearchHits};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, Transaction, params};
use transcript::edit::{self, Change, Mismatch};
use transcript::{Segment, Time, Transcript};
use wire::FilePath;

use crate::host::now;
use crate::journal::{json, not_json, transact};
use crate::open::{LOCK_TIMEOUT, QuarantineReason, QuarantinedFile, connect, replace_file};
use crate::{Error, Identity, Problem};
use found::Wanted;

/// File name of the history in the state folder.
pub const HISTORY_FILE: &str = "history.sqlite";

const MIGRATIONS: [&str; 6] = [
    include_str!("1.sql"),
    include_str!("2.sql"),
    include_str!("3.sql"),
    include_str!("4.sql"),
    include_str!("5.sql"),
    include_str!("6.sql"),
];

/// Most tags of a transcript.
pub const MAX_TAGS: usize = 50;
/// Most characters of a tag.
const MAX_TAG_LENGTH: usize = 100;

/// If opening a transcript replays more edits than this, or more bytes of JSON, a
/// new snapshot is written.
const MAX_REPLAYED: Replayed = Replayed { edits: 200, bytes: 1 << 20 };

/// Most bytes of edits that are replayed to show the start of a transcript before
/// the whole is loaded.
const MAX_REPLAYED_FOR_BEGINNING: f64 = 65536.0;

/// Edits of up to this many segments are indexed within their transaction, larger
/// ones in the background.
const INDEXED_AT_ONCE: u32 = 32;

/// Bytes of the file that searches map into memory.
const MOST_MAPPED: i64 = 1 << 30;

/// Milliseconds after its deletion during which a transcript can be restored, also
/// by another window. The first start after that removes it.
const RESTORABLE_FOR: i64 = 10 * 60 * 1000;

/// The open history. Clones share one connection. Every call blocks on the disk
/// and returns when its changes are durable.
#[derive(Debug, Clone)]
pub struct Documents(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    /// Searches read by a connection of their own, so that no edit waits for one. It is closed before the
    /// other, which empties the log of changes when it is the last.
    reader: Mutex<Connection>,
    connection: Mutex<Connection>,
    /// Whether a background thread is indexing.
    indexing: AtomicBool,
}

/// Identifies a transcript of the history. Ids are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId(
    /// The row in the table of documents.
    pub i64,
);

/// A transcript of the history as the list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// The transcript's id.
    pub id: DocumentId,
    /// File name of the recording when the transcript was added.
    pub title: String,
    /// Last known path of the recording.
    pub file: PathBuf,
    /// Identifies the recording if it is moved; `None` if it could not be read.
    pub identity: Option<Identity>,
    /// When the transcript was added, in milliseconds since 1970.
    pub created: i64,
    /// When it was last edited, undone or redone, in milliseconds since 1970.
    pub changed: i64,
    /// Length of the recording.
    pub duration: Time,
    /// Main language of the transcript, ISO 639-1.
    pub language: String,
    /// Name of the model that wrote it.
    pub model: String,
    /// Words by which the user sorts it, in order.
    pub tags: Vec<String>,
}

/// A transcript with all edits applied.
#[derive(Debug)]
pub struct OpenedDocument {
    /// Its entry in the list.
    pub document: Document,
    /// Its text.
    pub transcript: Transcript,
    /// Which edits are applied.
    pub undo_position: UndoPosition,
}

/// The first segments of a long transcript, which are loaded before the rest.
#[derive(Debug)]
pub struct DocumentBeginning {
    /// Its entry in the list.
    pub document: Document,
    /// The first segments with all edits applied.
    pub segments: Vec<Segment>,
    /// Which edits are applied.
    pub undo_position: UndoPosition,
}

/// How many edits of a transcript are applied and how many can be redone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UndoPosition {
    /// Number of edits that are applied and can be undone.
    pub done: i64,
    /// Number of edits that were undone and can be redone.
    pub undone: i64,
}

/// A step in the sequence of edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepDirection {
    /// Reverts the last applied edit.
    Undo,
    /// Applies the edit that was undone last.
    Redo,
}

impl Documents {
    /// Opens the history at `path`, creates it and its folder if missing, and
    /// removes transcripts that were deleted more than ten minutes ago. A damaged
    /// file is moved aside and reported.
    ///
    /// # Errors
    /// If the file can't be used. A file of a newer version is an error as well and stays
    /// in place.
    pub fn open(path: &Path) -> Result<(Self, Option<QuarantinedFile>), Error> {
        let (connection, aside) = match connect(path, &MIGRATIONS)? {
            Ok(connection) => (connection, None),
            Err(QuarantineReason::Newer(version)) => {
                return Err(Error { path: path.into(), problem: Problem::Newer(version) });
            }
            Err(reason) => replace_file(path, reason, &MIGRATIONS)?,
        };
        let reader = open_reader(path)?;
        let inner = Inner {
            path: path.into(),
            reader: Mutex::new(reader),
            connection: Mutex::new(connection),
            indexing: AtomicBool::default(),
        };
        let documents = Self(Arc::new(inner));
        documents.purge(now() - RESTORABLE_FOR)?;
        let more = documents.change(|transaction| {
            Ok(words::catch_up(transaction, INDEXED_AT_ONCE)? || passages::are_outdated(transaction)?)
        })?;
        if more {
            documents.index_later();
        }
        Ok((documents, aside))
    }

    /// Adds the transcript of the recording `file`. Its segments need ids, see
    /// [`edit::assign_ids`].
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn add(
        &self,
        file: &Path,
        identity: Option<&Identity>,
        transcript: &Transcript,
    ) -> Result<DocumentId, Error> {
        self.change(|transaction| {
            transaction.execute(
                "INSERT INTO documents (title, file, file_bytes, file_modified, file_digest, created, changed,
                    duration_ms, language, model)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8, ?9)",
                params![
                    file.file_name().unwrap_or_default().to_string_lossy(),
                    json(&FilePath::from(file))?,
                    identity.map(|identity| identity.bytes as i64),
                    identity.and_then(|identity| identity.modified),
                    identity.map(|identity| &identity.digest[..]),
                    now(),
                    transcript.source.duration.millis(),
                    transcript.language,
                    transcript.model.name,
                ],
            )?;
            let id = DocumentId(transaction.last_insert_rowid());
            snapshots::write(transaction, id, 0, transcript)?;
            words::add(transaction, id, &transcript.segments)?;
            passages::replace(transaction, id, transcript)?;
            Ok(id)
        })
    }

    /// All transcripts that are not deleted, the one that was changed last first.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn list(&self) -> Result<Vec<Document>, Error> {
        self.change(|transaction| {
            let mut select = transaction.prepare(&format!(
                "SELECT *, {TAGS} FROM documents WHERE deleted IS NULL ORDER BY changed DESC, id DESC"
            ))?;
            select.query_map([], document)?.collect()
        })
    }

    /// The first segments of a transcript. `None` if there is no such transcript,
    /// or if loading the whole takes no longer.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn read_beginning(&self, id: DocumentId) -> Result<Option<DocumentBeginning>, Error> {
        self.change(|transaction| {
            let Some((document, undo_position)) = find(transaction, id)? else { return Ok(None) };
            let Some((from, mut segments)) = snapshots::beginning(transaction, id)? else { return Ok(None) };
            let query =
                "SELECT total(length(changes)) FROM edits WHERE document = ?1 AND number BETWEEN ?2 AND ?3";
            let range = (from.min(undo_position.done) + 1, from.max(undo_position.done));
            let bytes: f64 =
                transaction.query_row(query, params![id.0, range.0, range.1], |row| row.get(0))?;
            if bytes > MAX_REPLAYED_FOR_BEGINNING {
                return Ok(None);
            }
            for changes in steps(transaction, id, from, undo_position.done) {
                edit::apply_to_prefix(&mut segments, &changes?.0).map_err(mismatch)?;
            }
            Ok(Some(DocumentBeginning { document, segments, undo_position }))
        })
    }

    /// A whole transcript; `None` if there is none or it was deleted.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn read(&self, id: DocumentId) -> Result<Option<OpenedDocument>, Error> {
        let read = self.change(|transaction| {
            let Some((document, undo_position)) = find(transaction, id)? else { return Ok(None) };
            let (transcript, replayed) = transcript_at(transaction, id, undo_position.done)?;
            Ok(Some((OpenedDocument { document, transcript, undo_position }, replayed)))
        })?;
        let Some((opened, replayed)) = read else { return Ok(None) };
        if replayed.edits > MAX_REPLAYED.edits || replayed.bytes > MAX_REPLAYED.bytes {
            self.renew_later(id);
        }
        Ok(Some(opened))
    }

    /// A transcript as it was before any edit; `None` if there is none or it was deleted.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn original(&self, id: DocumentId) -> Result<Option<Transcript>, Error> {
        self.change(|transaction| {
            let Some(_) = find(transaction, id)? else { return Ok(None) };
            Ok(Some(transcript_at(transaction, id, 0)?.0))
        })
    }

    /// Records an edit that follows the first `done` ones. Edits that were undone
    /// are discarded.
    ///
    /// # Errors
    /// [`Problem::Changed`] if another number of edits is applied, because another
    /// window edited the transcript, and errors of the disk.
    pub fn record(&self, id: DocumentId, done: i64, changes: &[Change]) -> Result<UndoPosition, Error> {
        let written = self.change(|transaction| {
            if !move_to(transaction, id, done, done + 1)? {
                return Ok(None);
            }
            let query = "SELECT edits_done > ?2 FROM snapshots WHERE document = ?1";
            if transaction.query_row(query, params![id.0, done], |row| row.get(0))? {
                // The snapshot includes edits that are discarded below: write one before them while they exist.
                snapshots::write(transaction, id, done, &transcript_at(transaction, id, done)?.0)?;
            }
            transaction
                .execute("DELETE FROM edits WHERE document = ?1 AND number > ?2", params![id.0, done])?;
            transaction.execute(
                "INSERT INTO edits (document, number, changes, at) VALUES (?1, ?2, ?3, ?4)",
                params![id.0, done + 1, json(changes)?, now()],
            )?;
            corrections::record(transaction, id, done + 1, changes)?;
            words::change(transaction, id, changes)?;
            Ok(Some(words::catch_up(transaction, INDEXED_AT_ONCE)?))
        })?;
        let more_to_index = written.ok_or_else(|| self.changed())?;
        if more_to_index {
            self.index_later();
        }
        Ok(UndoPosition { done: done + 1, undone: 0 })
    }

    /// Undoes or redoes one edit after the first `done` ones. Returns the changes
    /// to apply, or `None` if there is nothing to undo or redo.
    ///
    /// # Errors
    /// As for [`Documents::record`].
    pub fn step(
        &self,
        id: DocumentId,
        done: i64,
        way: StepDirection,
    ) -> Result<Option<(Vec<Change>, UndoPosition)>, Error> {
        let (number, after) = match way {
            StepDirection::Undo => (done, done - 1),
            StepDirection::Redo => (done + 1, done + 1),
        };
        let stepped = self.change(|transaction| {
            let Some((changes, _)) = changes(transaction, id, number)? else { return Ok(Some(None)) };
            if !move_to(transaction, id, done, after)? {
                return Ok(None);
            }
            let changes = if way == StepDirection::Undo { edit::inverse(changes) } else { changes };
            words::change(transaction, id, &changes)?;
            let more_to_index = words::catch_up(transaction, INDEXED_AT_ONCE)?;
            let undo_position =
                find(transaction, id)?.map(|(_, undo_position)| undo_position).unwrap_or_default();
            Ok(Some(Some((changes, undo_position, more_to_index))))
        })?;
        let Some((changes, undo_position, more_to_index)) = stepped.ok_or_else(|| self.changed())? else {
            return Ok(None);
        };
        if more_to_index {
            self.index_later();
        }
        Ok(Some((changes, undo_position)))
    }

    /// Sets the path of the recording after it was moved.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn set_recording(&self, id: DocumentId, file: &Path) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![id.0, json(&FilePath::from(file))?];
            transaction.execute("UPDATE documents SET file = ?2 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// Deletes a transcript, or restores it while it is not removed yet.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn delete(&self, id: DocumentId, deleted: bool) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![id.0, deleted.then(now)];
            transaction.execute("UPDATE documents SET deleted = ?2 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// Sets the tags of a transcript. Blank ones, repeated ones and those beyond
    /// [`MAX_TAGS`] are left out, long ones are cut.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn set_tags(&self, id: DocumentId, tags: &[String]) -> Result<(), Error> {
        let cut = |tag: &String| tag.trim().chars().take(MAX_TAG_LENGTH).collect::<String>();
        let tags: BTreeSet<String> = tags.iter().map(cut).filter(|tag| !tag.is_empty()).collect();
        self.change(|transaction| {
            transaction.execute("DELETE FROM tags WHERE document = ?1", [id.0])?;
            for tag in tags.iter().take(MAX_TAGS) {
                let add = "INSERT INTO tags SELECT id, ?2 FROM documents WHERE id = ?1";
                transaction.execute(add, params![id.0, tag])?;
            }
            Ok(())
        })
    }

    /// Removes transcripts that were deleted before a time, given in milliseconds
    /// since 1970. They can't be restored.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn purge(&self, before: i64) -> Result<(), Error> {
        self.change(|transaction| {
            let mut select = transaction.prepare("SELECT id FROM documents WHERE deleted <= ?1")?;
            let gone: Vec<i64> = select.query_map([before], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for id in gone {
                words::remove_all(transaction, DocumentId(id))?;
                transaction.execute("DELETE FROM documents WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }

    /// Words that the user wrote in place of others at least twice, the most frequent first, at most
    /// `limit`; without those that the transcripts also have where nothing was corrected, and those that
    /// are ignored.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn corrected_words(&self, limit: usize) -> Result<Vec<CorrectedWord>, Error> {
        self.freshen()?;
        self.read_only(|connection| corrections::words(connection, limit))
    }

    /// Leaves a word out of [`Documents::corrected_words`], or no longer does; whether that changed anything.
    ///
    /// # Errors
    /// If the history can't be written.
    pub fn ignore_word(&self, word: &str, is_ignored: bool) -> Result<bool, Error> {
        self.change(|transaction| {
            let change = match is_ignored {
                true => "INSERT OR IGNORE INTO ignored_words VALUES (?1)",
                false => "DELETE FROM ignored_words WHERE word = ?1",
            };
            Ok(transaction.execute(change, [word])? > 0)
        })
    }

    /// The words that [`Documents::corrected_words`] leaves out, in the order of their letters.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn ignored_words(&self) -> Result<Vec<String>, Error> {
        self.freshen()?;
        self.read_only(|connection| {
            let mut select = connection.prepare("SELECT word FROM ignored_words ORDER BY word")?;
            select.query_map([], |row| row.get(0))?.collect()
        })
    }

    /// Segments that contain `words`, at most 200 of each transcript and those
    /// of the newest transcript first. Ignores case and, from three characters
    /// on, accents.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn search(&self, words: &str, filter: &Filter) -> Result<SearchHits, Error> {
        self.freshen()?;
        self.read_only(|connection| words::search(connection, words, &Wanted::new(connection, filter)?))
    }

    /// Transcripts that contain `words` if case and accents are ignored, without
    /// the deleted ones.
    ///
    /// # Errors
    /// If the history can't be read.
    pub fn containing(&self, words: &str) -> Result<Vec<DocumentId>, Error> {
        self.change(|transaction| {
            words::catch_up(transaction, u32::MAX)?;
            words::containing(transaction, words)
        })
    }

    /// Reads the file as it is at one time.
    fn read_only<T>(&self, read: impl FnOnce(&Transaction) -> rusqlite::Result<T>) -> Result<T, Error> {
        let mut reader = self.0.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let result = reader.transaction().and_then(|transaction| read(&transaction));
        result.map_err(|error| Error::of(&self.0.path, error))
    }

    fn changed(&self) -> Error {
        Error { path: self.0.path.clone(), problem: Problem::Changed }
    }

    /// Limits the file to its present size, so that writes fail as on a full disk, or no longer does. For tests.
    ///
    /// # Errors
    /// If the history can't be read.
    #[doc(hidden)]
    pub fn forbid_growth(&self, forbid: bool) -> Result<(), Error> {
        /// SQLite's own limit.
        const MOST_PAGES: i64 = 4_294_967_294;
        let connection = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = match forbid {
            true => connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0)),
            false => Ok(MOST_PAGES),
        };
        let limit = pages.and_then(|pages| connection.pragma_update(None, "max_page_count", pages));
        limit.map_err(|error| Error::of(&self.0.path, error))
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction) -> rusqlite::Result<T>) -> Result<T, Error> {
        transact(&self.0.path, &self.0.connection, change)
    }
}

/// A second connection to a file that is there and migrated.
fn open_reader(path: &Path) -> Result<Connection, Error> {
    let opened = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).and_then(|reader| {
        reader.busy_timeout(LOCK_TIMEOUT)?;
        // A scan of vectors reads the whole file's pages once: copies of them in a cache serve nothing.
        reader.pragma_update(None, "mmap_size", MOST_MAPPED)?;
        Ok(reader)
    });
    opened.map_err(|error| Error::sqlite(path, error))
}

/// Sets the number of applied edits. False if it was not `from`.
fn move_to(transaction: &Transaction, id: DocumentId, from: i64, to: i64) -> rusqlite::Result<bool> {
    let moved = transaction.execute(
        "UPDATE documents SET edits_done = ?3, changed = ?4, is_cut = 0 WHERE id = ?1 AND edits_done = ?2",
        params![id.0, from, to, now()],
    )?;
    Ok(moved == 1)
}

fn find(transaction: &Transaction, id: DocumentId) -> rusqlite::Result<Option<(Document, UndoPosition)>> {
    let query = format!(
        "SELECT *, {TAGS}, (SELECT count(*) FROM edits WHERE document = id) AS edits
         FROM documents WHERE id = ?1 AND deleted IS NULL"
    );
    let read = |row: &Row| {
        let (done, edits): (i64, i64) = (row.get("edits_done")?, row.get("edits")?);
        Ok((document(row)?, UndoPosition { done, undone: edits - done }))
    };
    transaction.query_row(&query, [id.0], read).optional()
}

/// The column `tags` of a row of documents: JSON.
const TAGS: &str = "(SELECT json_group_array(tag ORDER BY tag) FROM tags WHERE document = id) AS tags";

fn document(row: &Row) -> rusqlite::Result<Document> {
    let file: String = row.get("file")?;
    let FilePath(file) = serde_json::from_str(&file).map_err(not_json)?;
    let digest: Option<Vec<u8>> = row.get("file_digest")?;
    let digest = digest.and_then(|digest| <[u8; 32]>::try_from(digest).ok());
    let bytes: Option<i64> = row.get("file_bytes")?;
    let modified = row.get("file_modified")?;
    let identity =
        bytes.zip(digest).map(|(bytes, digest)| Identity { bytes: bytes as u64, modified, digest });
    Ok(Document {
        id: DocumentId(row.get("id")?),
        title: row.get("title")?,
        file,
        identity,
        created: row.get("created")?,
        changed: row.get("changed")?,
        duration: Time::from_millis(row.get("duration_ms")?),
        language: row.get("language")?,
        model: row.get("model")?,
        tags: serde_json::from_str(row.get_ref("tags")?.as_str()?).map_err(not_json)?,
    })
}

/// The changes of an edit, and their length in bytes of JSON.
fn changes(
    transaction: &Transaction,
    id: DocumentId,
    number: i64,
) -> rusqlite::Result<Option<(Vec<Change>, usize)>> {
    let query = "SELECT changes FROM edits WHERE document = ?1 AND number = ?2";
    let read = |row: &Row| {
        let text = row.get_ref(0)?.as_str()?;
        Ok((serde_json::from_str(text).map_err(not_json)?, text.len()))
    };
    transaction.query_row(query, params![id.0, number], read).optional()
}

/// Edits that were replayed on a snapshot.
#[derive(Debug, Clone, Copy, Default)]
struct Replayed {
    edits: usize,
    bytes: usize,
}

/// A transcript after its first `done` edits.
fn transcript_at(
    transaction: &Transaction,
    id: DocumentId,
    done: i64,
) -> rusqlite::Result<(Transcript, Replayed)> {
    let (from, mut transcript) = snapshots::read(transaction, id)?;
    let mut replayed = Replayed::default();
    for step in steps(transaction, id, from, done) {
        let (changes, bytes) = step?;
        edit::apply(&mut transcript, &changes).map_err(mismatch)?;
        replayed.edits += 1;
        replayed.bytes += bytes;
    }
    Ok((transcript, replayed))
}

/// The changes that lead from `from` applied edits to `to`, each with its length
/// in bytes of JSON.
fn steps(
    transaction: &Transaction,
    id: DocumentId,
    from: i64,
    to: i64,
) -> impl Iterator<Item = rusqlite::Result<(Vec<Change>, usize)>> {
    let back = (to + 1..=from).rev().map(|number| (number, StepDirection::Undo));
    let steps = (from + 1..=to).map(|number| (number, StepDirection::Redo)).chain(back);
    steps.map(move |(number, way)| {
        let missing = || not_json(serde::de::Error::custom("an edit is missing"));
        let (changes, bytes) = changes(transaction, id, number)?.ok_or_else(missing)?;
        Ok((if way == StepDirection::Undo { edit::inverse(changes) } else { changes }, bytes))
    })
}

fn mismatch(error: Mismatch) -> rusqlite::Error {
    not_json(serde::de::Error::custom(error))
}
