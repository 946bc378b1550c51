use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memory::Mark;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use transcript::{Notice, Segment, Span};
use wire::{Job, Point, Resume, Stage};

use crate::host::{SignOfLife, now};
use crate::{Error, Host, Identity};

/// Jobs that are over stay listed until there are more than this.
const KEPT: u32 = 100;

/// The journal, open. Clones share one connection. Every call blocks on the
/// disk, and returns only when what it wrote is there to stay.
#[derive(Debug, Clone)]
pub struct Journal(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub path: PathBuf,
    pub connection: Mutex<Connection>,
    pub sign: SignOfLife,
}

/// Names a job in the journal, for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(pub(crate) i64);

/// What sort of host runs the job: each takes up its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    CommandLine,
    Window,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    Waiting,
    Running,
    /// The transcript is there and its files are being written: what lies
    /// under their names may be this job's own.
    Saving,
    Finished,
    Failed,
    Cancelled,
}

/// A job to be written down.
#[derive(Debug)]
pub struct Entry<'a> {
    pub kind: Kind,
    /// Its number in the host's queue.
    pub queue_id: u64,
    /// With absolute paths: whoever resumes may be elsewhere.
    pub job: &'a Job,
    pub identity: Option<&'a Identity>,
    /// What the host wants done with the transcript, in its own words.
    pub outputs: &'a serde_json::Value,
}

/// How far a job came, with all that was found on the way there.
#[derive(Debug)]
pub struct Step<'a> {
    pub point: &'a Point,
    pub segments: &'a [Segment],
    pub discarded: &'a [Segment],
    pub marks: &'a [Mark],
}

impl Journal {
    /// All of them, or none.
    pub fn add(&self, entries: &[Entry]) -> Result<Vec<Key>, Error> {
        let host = self.host();
        self.change(|transaction| {
            let mut insert = transaction.prepare(
                "INSERT INTO jobs (kind, queue_id, file, file_bytes, file_modified, file_digest, job, outputs,
                    state, strategy, host_pid, host_started, created, changed)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 'waiting', ?9, ?10, ?11, ?12, ?12)",
            )?;
            let mut keys = Vec::new();
            for entry in entries {
                let identity = entry.identity;
                insert.execute(params![
                    entry.kind.name(),
                    entry.queue_id as i64,
                    json(&entry.job.file)?,
                    identity.map(|identity| identity.bytes as i64),
                    identity.and_then(|identity| identity.modified),
                    identity.map(|identity| &identity.digest[..]),
                    // What was reached is kept in rows of its own.
                    json(&Job { resume: None, ..entry.job.clone() })?,
                    json(entry.outputs)?,
                    word(&entry.job.strategy)?,
                    host.pid,
                    host.started,
                    now(),
                ])?;
                keys.push(Key(transaction.last_insert_rowid()));
            }
            Ok(keys)
        })
    }

    /// An attempt begins, the `attempts`-th at this job.
    pub fn begin(&self, key: Key, attempts: u32, resume: &Resume) -> Result<(), Error> {
        self.change(|transaction| {
            let ladder = resume.ladder.as_ref().map(json).transpose()?;
            transaction.execute(
                "UPDATE jobs SET state = 'running', attempts = ?2, ladder = ?3, skip = ?4, stage = ?5, changed = ?6
                 WHERE id = ?1",
                params![key.0, attempts, ladder, json(&resume.skip)?, word(&Stage::SpeechModel)?, now()],
            )?;
            Ok(())
        })
    }

    /// What a channel turned out to be; told again after each new beginning.
    pub fn prepared(
        &self,
        key: Key,
        channel: usize,
        speech: &[Span],
        log_mel_maximum: f32,
    ) -> Result<(), Error> {
        self.change(|transaction| {
            let channel = channel as i64;
            transaction
                .execute("DELETE FROM regions WHERE job = ?1 AND channel = ?2", params![key.0, channel])?;
            let mut insert = transaction.prepare(
                "INSERT OR REPLACE INTO regions (job, channel, start_ms, end_ms) VALUES (?1, ?2, ?3, ?4)",
            )?;
            for span in speech {
                insert.execute(params![key.0, channel, span.start.millis(), span.end.millis()])?;
            }
            transaction.execute(
                "INSERT OR REPLACE INTO channels (job, channel, log_mel_maximum) VALUES (?1, ?2, ?3)",
                params![key.0, channel, f64::from(log_mel_maximum)],
            )?;
            set_stage(transaction, key, Stage::Transcribe)
        })
    }

    /// A point and all that was found before it, at once or not at all. False
    /// where the job was there already: then nothing is written.
    pub fn reached(&self, key: Key, step: &Step) -> Result<bool, Error> {
        self.change(|transaction| {
            let before: Option<Option<String>> = transaction
                .query_row("SELECT point FROM jobs WHERE id = ?1", [key.0], |row| row.get(0))
                .optional()?;
            let Some(before) = before else { return Ok(false) };
            let before: Option<Point> =
                before.as_deref().map(serde_json::from_str).transpose().map_err(not_json)?;
            let place = |point: &Point| (point.channel, point.position);
            if before.is_some_and(|before| place(&before) >= place(step.point)) {
                return Ok(false);
            }
            append(transaction, key, "segments", "segment", step.segments)?;
            append(transaction, key, "discarded", "segment", step.discarded)?;
            append(transaction, key, "marks", "mark", step.marks)?;
            let language = step.point.languages.first().map(|(language, _)| language);
            transaction.execute(
                "UPDATE jobs SET point = ?2, language = coalesce(?3, language), changed = ?4 WHERE id = ?1",
                params![key.0, json(step.point)?, language, now()],
            )?;
            Ok(true)
        })
    }

    /// Kept once, however often it is told.
    pub fn notice(&self, key: Key, notice: &Notice) -> Result<(), Error> {
        self.change(|transaction| {
            let known = transaction
                .query_row(
                    "SELECT 1 FROM notices WHERE job = ?1 AND notice = ?2",
                    params![key.0, json(notice)?],
                    |_| Ok(()),
                )
                .optional()?;
            match known {
                Some(()) => Ok(()),
                None => append(transaction, key, "notices", "notice", std::slice::from_ref(notice)),
            }
        })
    }

    /// Where the job stands on its ladder now.
    pub fn ladder(&self, key: Key, state: &memory::ladder::LadderState) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![key.0, json(state)?, now()];
            transaction.execute("UPDATE jobs SET ladder = ?2, changed = ?3 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// The job is begun with other settings than it was written down with.
    pub fn settle(&self, key: Key, job: &Job, identity: Option<&Identity>) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "UPDATE jobs SET job = ?2, strategy = ?3, file_bytes = ?4, file_modified = ?5, file_digest = ?6
                 WHERE id = ?1",
                params![
                    key.0,
                    json(&Job { resume: None, ..job.clone() })?,
                    word(&job.strategy)?,
                    identity.map(|identity| identity.bytes as i64),
                    identity.and_then(|identity| identity.modified),
                    identity.map(|identity| &identity.digest[..]),
                ],
            )?;
            Ok(())
        })
    }

    /// The host wants something else done with the transcript.
    pub fn intend(&self, key: Key, outputs: &serde_json::Value) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "UPDATE jobs SET outputs = ?2, changed = ?3 WHERE id = ?1",
                params![key.0, json(outputs)?, now()],
            )?;
            Ok(())
        })
    }

    /// Its files are about to be written.
    pub fn saving(&self, key: Key) -> Result<(), Error> {
        self.change(|transaction| set_state(transaction, key, State::Saving))
    }

    /// The job is over, if it was not before: what it said is removed from the journal, that it was
    /// stays for a while.
    pub fn finish(&self, key: Key, state: State) -> Result<(), Error> {
        self.finish_all(&[key], state)
    }

    /// The same of several, all of them or none.
    pub fn finish_all(&self, keys: &[Key], state: State) -> Result<(), Error> {
        self.change(|transaction| {
            for key in keys {
                set_state(transaction, *key, state)?;
                forget(transaction, *key)?;
            }
            transaction.execute(
                "DELETE FROM jobs WHERE state IN ('finished', 'failed', 'cancelled') AND id NOT IN
                    (SELECT id FROM jobs WHERE state IN ('finished', 'failed', 'cancelled')
                     ORDER BY changed DESC, id DESC LIMIT ?1)",
                [KEPT],
            )?;
            Ok(())
        })
    }

    /// The job begins anew: the file is another one than it was.
    pub fn start_over(&self, key: Key, identity: Option<&Identity>) -> Result<(), Error> {
        self.change(|transaction| {
            forget(transaction, key)?;
            transaction.execute(
                "UPDATE jobs SET point = NULL, skip = '[]', file_bytes = ?2, file_modified = ?3, file_digest = ?4
                 WHERE id = ?1",
                params![
                    key.0,
                    identity.map(|identity| identity.bytes as i64),
                    identity.and_then(|identity| identity.modified),
                    identity.map(|identity| &identity.digest[..]),
                ],
            )?;
            Ok(())
        })
    }

    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// This program, as the journal knows it.
    pub fn host(&self) -> Host {
        self.0.sign.host
    }

    /// Lets the file grow no more: every write that needs room then fails as
    /// on a full disk. For tests.
    #[doc(hidden)]
    pub fn forbid_growth(&self) -> Result<(), Error> {
        let connection = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
        let limit = pages.and_then(|pages| connection.pragma_update(None, "max_page_count", pages));
        limit.map_err(|error| self.error(error))
    }

    /// One transaction that has the file to itself.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
    ) -> Result<T, Error> {
        transact(&self.0.path, &self.0.connection, change)
    }

    pub(crate) fn error(&self, error: rusqlite::Error) -> Error {
        Error::of(&self.0.path, error)
    }
}

/// One transaction that has the file to itself.
pub(crate) fn transact<T>(
    path: &Path,
    connection: &Mutex<Connection>,
    change: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
) -> Result<T, Error> {
    // A panic elsewhere rolled its transaction back.
    let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let done = connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
        let result = change(&transaction)?;
        transaction.commit()?;
        Ok(result)
    });
    done.map_err(|error| Error::of(path, error))
}

fn set_state(transaction: &Transaction, key: Key, state: State) -> rusqlite::Result<()> {
    let values = params![key.0, state.name(), now()];
    transaction.execute(
        "UPDATE jobs SET state = ?2, changed = ?3
         WHERE id = ?1 AND state NOT IN ('finished', 'failed', 'cancelled')",
        values,
    )?;
    Ok(())
}

fn set_stage(transaction: &Transaction, key: Key, stage: Stage) -> rusqlite::Result<()> {
    let values = params![key.0, word(&stage)?, now()];
    transaction.execute("UPDATE jobs SET stage = ?2, changed = ?3 WHERE id = ?1", values)?;
    Ok(())
}

fn forget(transaction: &Transaction, key: Key) -> rusqlite::Result<()> {
    for table in ["segments", "discarded", "notices", "channels", "regions", "marks"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE job = ?1"), [key.0])?;
    }
    Ok(())
}

/// Adds rows after those that there are.
fn append<T: Serialize>(
    transaction: &Transaction,
    key: Key,
    table: &str,
    column: &str,
    values: &[T],
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare(&format!(
        "INSERT INTO {table} (job, number, {column})
         VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM {table} WHERE job = ?1), ?2)"
    ))?;
    for value in values {
        insert.execute(params![key.0, json(value)?])?;
    }
    Ok(())
}

pub(crate) fn json<T: Serialize + ?Sized>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(not_json)
}

/// A value whose JSON is a single word, without the quotes.
fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    json(value).map(|text| text.trim_matches('"').to_owned())
}

pub(crate) fn not_json(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "steno",
            Self::Window => "window",
        }
    }
}

impl State {
    const ALL: [Self; 6] =
        [Self::Waiting, Self::Running, Self::Saving, Self::Finished, Self::Failed, Self::Cancelled];

    fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Saving => "saving",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
