//! The history: every transcript, each edit of it, and an index of what was
//! said. In a file of its own: an older version, which would set the journal
//! of a newer one aside, never touches it.

mod later;
mod passages;
mod snapshots;

pub use passages::Hit;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use transcript::edit::{self, Change, Mismatch};
use transcript::{Segment, Time, Transcript};
use wire::FilePath;

use crate::host::now;
use crate::journal::{json, not_json, transact};
use crate::open::{Aside, Reason, begin_anew, connect};
use crate::{Error, Identity, Problem};

/// The history's name in the state folder.
pub const FILE: &str = "history.sqlite";

const MIGRATIONS: [&str; 2] = [include_str!("1.sql"), include_str!("2.sql")];

/// Where more edits than this are done over to open a transcript, or longer
/// ones in bytes of JSON, it is written down anew.
const MOST_REPLAYED: Replayed = Replayed { edits: 200, bytes: 1 << 20 };

/// More than this is not done over to show the beginning of a transcript.
const MOST_REPLAYED_AT_ONCE: f64 = 65536.0;

/// What was said is found at once as it is after an edit of no more segments
/// than this.
const INDEXED_AT_ONCE: u32 = 32;

/// A transcript is removed for good at the first start that comes later than
/// this after its deletion, in milliseconds: another window may offer to
/// bring it back until then.
const KEPT_AFTER_DELETION: i64 = 10 * 60 * 1000;

/// The history, open. Clones share one connection. Every call blocks on the
/// disk, and returns only when what it wrote is there to stay.
#[derive(Debug, Clone)]
pub struct Documents(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: PathBuf,
    connection: Mutex<Connection>,
    /// A thread works on the index.
    indexing: AtomicBool,
}

/// Names a transcript of the history, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId(pub i64);

/// What is known of a transcript without opening it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    pub id: DocumentId,
    pub title: String,
    /// Where the recording was when it was seen last.
    pub file: PathBuf,
    pub identity: Option<Identity>,
    /// Milliseconds since 1970, as are the others.
    pub created: i64,
    pub changed: i64,
    pub duration: Time,
    pub language: String,
    pub model: String,
}

/// A transcript as it is now.
#[derive(Debug)]
pub struct Opened {
    pub document: Document,
    pub transcript: Transcript,
    pub course: Course,
}

/// What is there of a transcript at once, however long it is.
#[derive(Debug)]
pub struct Beginning {
    pub document: Document,
    /// As they are now.
    pub segments: Vec<Segment>,
    pub course: Course,
}

/// Where a transcript stands between its first and its last edit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Course {
    /// How many edits are done and can be undone.
    pub done: i64,
    /// How many were undone and can be done again.
    pub undone: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Undo,
    Redo,
}

impl Documents {
    /// Opens the history at `path`, made with its folder where there is none,
    /// and removes what was deleted a while ago. A damaged file is moved aside.
    ///
    /// # Errors
    /// Where the file can't be used, also for being of a newer version: it
    /// stays where it is then.
    pub fn open(path: &Path) -> Result<(Self, Option<Aside>), Error> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| Error::io(path, error))?;
        }
        let (connection, aside) = match connect(path, &MIGRATIONS)? {
            Ok(connection) => (connection, None),
            Err(Reason::Newer(version)) => {
                return Err(Error { path: path.into(), problem: Problem::Newer(version) });
            }
            Err(reason) => begin_anew(path, reason, &MIGRATIONS)?,
        };
        let inner =
            Inner { path: path.into(), connection: Mutex::new(connection), indexing: AtomicBool::default() };
        let documents = Self(Arc::new(inner));
        documents.purge(now() - KEPT_AFTER_DELETION)?;
        if documents.change(|transaction| passages::catch_up(transaction, INDEXED_AT_ONCE))? {
            documents.index_later();
        }
        Ok((documents, aside))
    }

    /// Writes down a transcript, whose segments have to be numbered.
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
            passages::add(transaction, id, &transcript.segments)?;
            Ok(id)
        })
    }

    /// All that are not deleted, the one that was changed last first.
    pub fn list(&self) -> Result<Vec<Document>, Error> {
        self.change(|transaction| {
            let mut select = transaction
                .prepare("SELECT * FROM documents WHERE deleted IS NULL ORDER BY changed DESC, id DESC")?;
            select.query_map([], document)?.collect()
        })
    }

    /// The first segments of a transcript. `None` also where they would not be
    /// there sooner than all of it.
    pub fn begin(&self, id: DocumentId) -> Result<Option<Beginning>, Error> {
        self.change(|transaction| {
            let Some((document, course)) = find(transaction, id)? else { return Ok(None) };
            let Some((from, mut segments)) = snapshots::begin(transaction, id)? else { return Ok(None) };
            let query =
                "SELECT total(length(changes)) FROM edits WHERE document = ?1 AND number BETWEEN ?2 AND ?3";
            let range = (from.min(course.done) + 1, from.max(course.done));
            let bytes: f64 =
                transaction.query_row(query, params![id.0, range.0, range.1], |row| row.get(0))?;
            if bytes > MOST_REPLAYED_AT_ONCE {
                return Ok(None);
            }
            for changes in steps(transaction, id, from, course.done) {
                edit::apply_to_prefix(&mut segments, &changes?.0).map_err(mismatch)?;
            }
            Ok(Some(Beginning { document, segments, course }))
        })
    }

    /// `None` where there is no such transcript, or no longer.
    pub fn read(&self, id: DocumentId) -> Result<Option<Opened>, Error> {
        let read = self.change(|transaction| {
            let Some((document, course)) = find(transaction, id)? else { return Ok(None) };
            let (transcript, replayed) = at(transaction, id, course.done)?;
            Ok(Some((Opened { document, transcript, course }, replayed)))
        })?;
        let Some((opened, replayed)) = read else { return Ok(None) };
        if replayed.edits > MOST_REPLAYED.edits || replayed.bytes > MOST_REPLAYED.bytes {
            self.renew_later(id);
        }
        Ok(Some(opened))
    }

    /// Writes down what was changed when `done` edits were; those that had
    /// been undone are no more.
    ///
    /// # Errors
    /// [`Problem::Changed`] where it stands elsewhere, besides those of the disk.
    pub fn record(&self, id: DocumentId, done: i64, changes: &[Change]) -> Result<Course, Error> {
        let written = self.change(|transaction| {
            if !move_to(transaction, id, done, done + 1)? {
                return Ok(None);
            }
            let query = "SELECT edits_done > ?2 FROM snapshots WHERE document = ?1";
            if transaction.query_row(query, params![id.0, done], |row| row.get(0))? {
                // It is of what is no more: the one to go on from is made while that can be undone.
                snapshots::write(transaction, id, done, &at(transaction, id, done)?.0)?;
            }
            transaction
                .execute("DELETE FROM edits WHERE document = ?1 AND number > ?2", params![id.0, done])?;
            transaction.execute(
                "INSERT INTO edits (document, number, changes, at) VALUES (?1, ?2, ?3, ?4)",
                params![id.0, done + 1, json(changes)?, now()],
            )?;
            passages::change(transaction, id, changes)?;
            Ok(Some(passages::catch_up(transaction, INDEXED_AT_ONCE)?))
        })?;
        let more_to_index = written.ok_or_else(|| self.changed())?;
        if more_to_index {
            self.index_later();
        }
        Ok(Course { done: done + 1, undone: 0 })
    }

    /// Goes one edit back or forth from where `done` were done; what is to be
    /// applied for it, or `None` at the end.
    ///
    /// # Errors
    /// As for [`Documents::record`].
    pub fn step(&self, id: DocumentId, done: i64, way: Way) -> Result<Option<(Vec<Change>, Course)>, Error> {
        let (number, after) = match way {
            Way::Undo => (done, done - 1),
            Way::Redo => (done + 1, done + 1),
        };
        let stepped = self.change(|transaction| {
            let Some((changes, _)) = changes(transaction, id, number)? else { return Ok(Some(None)) };
            if !move_to(transaction, id, done, after)? {
                return Ok(None);
            }
            let changes = if way == Way::Undo { edit::inverse(changes) } else { changes };
            passages::change(transaction, id, &changes)?;
            let more_to_index = passages::catch_up(transaction, INDEXED_AT_ONCE)?;
            let course = find(transaction, id)?.map(|(_, course)| course).unwrap_or_default();
            Ok(Some(Some((changes, course, more_to_index))))
        })?;
        let Some((changes, course, more_to_index)) = stepped.ok_or_else(|| self.changed())? else {
            return Ok(None);
        };
        if more_to_index {
            self.index_later();
        }
        Ok(Some((changes, course)))
    }

    /// The recording lies elsewhere by now.
    pub fn place(&self, id: DocumentId, file: &Path) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![id.0, json(&FilePath::from(file))?];
            transaction.execute("UPDATE documents SET file = ?2 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// Takes it off the list, or puts it there again while that can be done.
    pub fn delete(&self, id: DocumentId, deleted: bool) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![id.0, deleted.then(now)];
            transaction.execute("UPDATE documents SET deleted = ?2 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// Removes for good what was deleted before that time, milliseconds since 1970.
    pub fn purge(&self, before: i64) -> Result<(), Error> {
        self.change(|transaction| {
            let mut select = transaction.prepare("SELECT id FROM documents WHERE deleted <= ?1")?;
            let gone: Vec<i64> = select.query_map([before], |row| row.get(0))?.collect::<Result<_, _>>()?;
            for id in gone {
                passages::remove_all(transaction, DocumentId(id))?;
                transaction.execute("DELETE FROM documents WHERE id = ?1", [id])?;
            }
            Ok(())
        })
    }

    /// Passages in which `words` occur, those of the newest transcript first,
    /// a few of each.
    pub fn search(&self, words: &str) -> Result<Vec<Hit>, Error> {
        self.change(|transaction| {
            passages::catch_up(transaction, u32::MAX)?;
            passages::search(transaction, words)
        })
    }

    /// Transcripts in which `words` may occur, those that were deleted left out.
    pub fn with(&self, words: &str) -> Result<Vec<DocumentId>, Error> {
        self.change(|transaction| {
            passages::catch_up(transaction, u32::MAX)?;
            passages::with(transaction, words)
        })
    }

    fn changed(&self) -> Error {
        Error { path: self.0.path.clone(), problem: Problem::Changed }
    }

    fn change<T>(&self, change: impl FnOnce(&Transaction) -> rusqlite::Result<T>) -> Result<T, Error> {
        transact(&self.0.path, &self.0.connection, change)
    }
}

/// False where it does not stand where it was thought to.
fn move_to(transaction: &Transaction, id: DocumentId, from: i64, to: i64) -> rusqlite::Result<bool> {
    let moved = transaction.execute(
        "UPDATE documents SET edits_done = ?3, changed = ?4 WHERE id = ?1 AND edits_done = ?2",
        params![id.0, from, to, now()],
    )?;
    Ok(moved == 1)
}

fn find(transaction: &Transaction, id: DocumentId) -> rusqlite::Result<Option<(Document, Course)>> {
    let query = "SELECT *, (SELECT count(*) FROM edits WHERE document = id) AS edits
                 FROM documents WHERE id = ?1 AND deleted IS NULL";
    let read = |row: &Row| {
        let (done, edits): (i64, i64) = (row.get("edits_done")?, row.get("edits")?);
        Ok((document(row)?, Course { done, undone: edits - done }))
    };
    transaction.query_row(query, [id.0], read).optional()
}

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
    })
}

/// With their length in bytes of JSON.
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

/// What was done over to arrive at a state of a transcript.
#[derive(Debug, Clone, Copy, Default)]
struct Replayed {
    edits: usize,
    bytes: usize,
}

/// A transcript as it is when so many edits are done.
fn at(transaction: &Transaction, id: DocumentId, done: i64) -> rusqlite::Result<(Transcript, Replayed)> {
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

/// What is to be applied, in order, where `from` edits are done and `to` are
/// to be; each with its length in bytes of JSON.
fn steps(
    transaction: &Transaction,
    id: DocumentId,
    from: i64,
    to: i64,
) -> impl Iterator<Item = rusqlite::Result<(Vec<Change>, usize)>> {
    let back = (to + 1..=from).rev().map(|number| (number, Way::Undo));
    let steps = (from + 1..=to).map(|number| (number, Way::Redo)).chain(back);
    steps.map(move |(number, way)| {
        let missing = || not_json(serde::de::Error::custom("an edit is missing"));
        let (changes, bytes) = changes(transaction, id, number)?.ok_or_else(missing)?;
        Ok((if way == Way::Undo { edit::inverse(changes) } else { changes }, bytes))
    })
}

fn mismatch(error: Mismatch) -> rusqlite::Error {
    not_json(serde::de::Error::custom(error))
}
