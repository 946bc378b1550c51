//! Writing the journal: jobs and how far they are.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use memory::Mark;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use serde::Serialize;
use transcript::{Notice, Segment, Span};
use wire::{Job, Point, Resume, Stage};

use crate::host::{HostLock, now};
use crate::{Error, HostProcess, Identity};

/// Number of finished jobs that stay listed.
const MAX_FINISHED: u32 = 100;

/// The open journal. Clones share one connection. Every call blocks on the disk
/// and returns when its changes are durable.
#[derive(Debug, Clone)]
pub struct Journal(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub path: PathBuf,
    pub connection: Mutex<Connection>,
    pub lock: HostLock,
}

/// Identifies a job in the journal. Keys are never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(pub(crate) i64);

/// The kind of host that runs a job. Each resumes only jobs of its own kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKind {
    /// The command line.
    CommandLine,
    /// The window.
    Window,
    /// The HTTP server.
    Server,
}

/// The state of a job in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JournalState {
    /// No attempt has started.
    Waiting,
    /// An engine works on it, or did when its host ended.
    Running,
    /// The transcript is complete and its files are being written. Existing files
    /// with their names may be this job's own.
    Saving,
    /// The transcript is complete and saved.
    Finished,
    /// The job ended with an error.
    Failed,
    /// The user cancelled the job.
    Cancelled,
}

/// A job to add to the journal.
#[derive(Debug)]
pub struct NewJob<'a> {
    /// The kind of host that adds it.
    pub kind: HostKind,
    /// Number of the job in the host's queue, see [`Journal::set_order`].
    pub queue_id: u64,
    /// The job. Its paths must be absolute, since the host that resumes it may
    /// have another working directory.
    pub job: &'a Job,
    /// The recording at the time of adding, if it was read.
    pub identity: Option<&'a Identity>,
    /// What the host does with the transcript, in a form that only the host reads.
    pub outputs: &'a serde_json::Value,
}

/// A point from which a job can be resumed, with the results since the previous one.
#[derive(Debug)]
pub struct ReachedPoint<'a> {
    /// The point.
    pub point: &'a Point,
    /// New segments.
    pub segments: &'a [Segment],
    /// New segments that are left out of the text.
    pub discarded: &'a [Segment],
    /// New marks of the memory timeline.
    pub marks: &'a [Mark],
}

impl Journal {
    /// Adds jobs, all of them or none. Returns their keys in order.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn add(&self, entries: &[NewJob]) -> Result<Vec<JobKey>, Error> {
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
                    // Results are in tables of their own.
                    json(&Job { resume: None, ..entry.job.clone() })?,
                    json(entry.outputs)?,
                    word(&entry.job.strategy)?,
                    host.pid,
                    host.started,
                    now(),
                ])?;
                keys.push(JobKey(transaction.last_insert_rowid()));
            }
            Ok(keys)
        })
    }

    /// Records that the `attempts`-th attempt at a job starts, from `resume`.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn begin_attempt(&self, key: JobKey, attempts: u32, resume: &Resume) -> Result<(), Error> {
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

    /// Records what preparing a channel found: its stretches of speech and its
    /// maximum log-mel energy. Every attempt records it again.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn record_channel(
        &self,
        key: JobKey,
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

    /// Records a point and the results before it, all or nothing. False if the job
    /// had reached this point or a later one: then nothing is written.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn record_point(&self, key: JobKey, step: &ReachedPoint) -> Result<bool, Error> {
        self.change(|transaction| {
            let before: Option<Option<String>> = transaction
                .query_row("SELECT point FROM jobs WHERE id = ?1", [key.0], |row| row.get(0))
                .optional()?;
            let Some(before) = before else { return Ok(false) };
            let before: Option<Point> =
                before.as_deref().map(serde_json::from_str).transpose().map_err(not_json)?;
            let order = |point: &Point| (point.channel, point.position);
            if before.is_some_and(|before| order(&before) >= order(step.point)) {
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

    /// Adds a notice, unless the job has the same one already.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn add_notice(&self, key: JobKey, notice: &Notice) -> Result<(), Error> {
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

    /// Sets the state of the job's ladder of memory settings.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_ladder(&self, key: JobKey, state: &memory::ladder::LadderState) -> Result<(), Error> {
        self.change(|transaction| {
            let values = params![key.0, json(state)?, now()];
            transaction.execute("UPDATE jobs SET ladder = ?2, changed = ?3 WHERE id = ?1", values)?;
            Ok(())
        })
    }

    /// Replaces a job of which it was decided which model follows from its language. The recording stays the one that it was added with.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_model(&self, key: JobKey, job: &Job) -> Result<(), Error> {
        self.change(|transaction| {
            let job = json(&Job { resume: None, ..job.clone() })?;
            transaction.execute("UPDATE jobs SET job = ?2 WHERE id = ?1", params![key.0, job])?;
            Ok(())
        })
    }

    /// Replaces a job that starts with other settings than it was added with.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_job(&self, key: JobKey, job: &Job, identity: Option<&Identity>) -> Result<(), Error> {
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

    /// Replaces what the host does with the transcript.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_outputs(&self, key: JobKey, outputs: &serde_json::Value) -> Result<(), Error> {
        self.change(|transaction| {
            transaction.execute(
                "UPDATE jobs SET outputs = ?2, changed = ?3 WHERE id = ?1",
                params![key.0, json(outputs)?, now()],
            )?;
            Ok(())
        })
    }

    /// Numbers jobs from 1 in the order of their host's queue.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_order(&self, order: &[JobKey]) -> Result<(), Error> {
        self.change(|transaction| {
            let mut update = transaction.prepare("UPDATE jobs SET queue_id = ?2 WHERE id = ?1")?;
            for (number, key) in (1_i64..).zip(order) {
                update.execute(params![key.0, number])?;
            }
            Ok(())
        })
    }

    /// Records that the files of the transcript are about to be written.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn set_saving(&self, key: JobKey) -> Result<(), Error> {
        self.change(|transaction| set_state(transaction, key, JournalState::Saving))
    }

    /// Ends a job that has not ended yet. Its results are removed; the job itself
    /// stays listed for a while.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn finish(&self, key: JobKey, state: JournalState) -> Result<(), Error> {
        self.finish_all(&[key], state)
    }

    /// Ends several jobs, all of them or none, see [`Journal::finish`].
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn finish_all(&self, keys: &[JobKey], state: JournalState) -> Result<(), Error> {
        self.change(|transaction| {
            for key in keys {
                set_state(transaction, *key, state)?;
                forget(transaction, *key)?;
            }
            transaction.execute(
                "DELETE FROM jobs WHERE state IN ('finished', 'failed', 'cancelled') AND id NOT IN
                    (SELECT id FROM jobs WHERE state IN ('finished', 'failed', 'cancelled')
                     ORDER BY changed DESC, id DESC LIMIT ?1)",
                [MAX_FINISHED],
            )?;
            Ok(())
        })
    }

    /// Removes all results of a job, because its file has changed.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn start_over(&self, key: JobKey, identity: Option<&Identity>) -> Result<(), Error> {
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

    /// The journal's file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// This process.
    pub fn host(&self) -> HostProcess {
        self.0.lock.host
    }

    /// Limits the file to its present size, so that writes fail as on a full disk.
    /// For tests.
    ///
    /// # Errors
    /// If the journal can't be read.
    #[doc(hidden)]
    pub fn forbid_growth(&self) -> Result<(), Error> {
        let connection = self.0.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let pages = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0));
        let limit = pages.and_then(|pages| connection.pragma_update(None, "max_page_count", pages));
        limit.map_err(|error| self.error(error))
    }

    /// Runs one exclusive transaction.
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

/// Runs one exclusive transaction.
pub(crate) fn transact<T>(
    path: &Path,
    connection: &Mutex<Connection>,
    change: impl FnOnce(&Transaction) -> rusqlite::Result<T>,
) -> Result<T, Error> {
    // The transaction of a thread that panicked was rolled back.
    let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    let done = connection.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
        let result = change(&transaction)?;
        transaction.commit()?;
        Ok(result)
    });
    done.map_err(|error| Error::of(path, error))
}

fn set_state(transaction: &Transaction, key: JobKey, state: JournalState) -> rusqlite::Result<()> {
    let values = params![key.0, state.name(), now()];
    transaction.execute(
        "UPDATE jobs SET state = ?2, changed = ?3
         WHERE id = ?1 AND state NOT IN ('finished', 'failed', 'cancelled')",
        values,
    )?;
    Ok(())
}

fn set_stage(transaction: &Transaction, key: JobKey, stage: Stage) -> rusqlite::Result<()> {
    let values = params![key.0, word(&stage)?, now()];
    transaction.execute("UPDATE jobs SET stage = ?2, changed = ?3 WHERE id = ?1", values)?;
    Ok(())
}

fn forget(transaction: &Transaction, key: JobKey) -> rusqlite::Result<()> {
    for table in ["segments", "discarded", "notices", "channels", "regions", "marks"] {
        transaction.execute(&format!("DELETE FROM {table} WHERE job = ?1"), [key.0])?;
    }
    Ok(())
}

/// Appends rows to a table of results.
fn append<T: Serialize>(
    transaction: &Transaction,
    key: JobKey,
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

/// A value whose JSON is a string, without the quotes.
fn word<T: Serialize>(value: &T) -> rusqlite::Result<String> {
    json(value).map(|text| text.trim_matches('"').to_owned())
}

/// Wraps an error of serde_json for a function that returns errors of SQLite.
pub(crate) fn not_json(error: serde_json::Error) -> rusqlite::Error {
    rusqlite::Error::ToSqlConversionFailure(Box::new(error))
}

impl HostKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CommandLine => "steno",
            Self::Window => "window",
            Self::Server => "server",
        }
    }
}

impl JournalState {
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

impl fmt::Display for JournalState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
