//! Reading unfinished jobs from the journal and taking them over.

use rusqlite::{Connection, Row, Transaction, params};
use serde::de::DeserializeOwned;
use wire::{FilePath, Job, Resume};

use crate::journal::{HostKind, JobKey, JournalState, not_json};
use crate::{Error, HostProcess, Identity, Journal};

/// A job of the journal that has not ended.
#[derive(Debug)]
pub struct UnfinishedJob {
    /// Its key.
    pub key: JobKey,
    /// Number of the job in its host's queue.
    pub queue_id: u64,
    /// The job without its results.
    pub job: Job,
    /// The recording when the job was added or last started.
    pub identity: Option<Identity>,
    /// What the host does with the transcript, as the host wrote it.
    pub outputs: serde_json::Value,
    /// Its state.
    pub state: JournalState,
    /// Its results so far, for [`Job::resume`].
    pub resume: Resume,
    /// Number of attempts that were started.
    pub attempts: u32,
    /// The host that it belongs to.
    pub host: HostProcess,
    /// When the journal last heard of it, in milliseconds since 1970.
    pub changed: i64,
    /// Whether its host is alive.
    pub has_live_host: bool,
}

/// A job that another version of the program wrote and this one can't read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableJob {
    /// Its key.
    pub key: JobKey,
    /// The recording, if at least that could be read.
    pub file: Option<FilePath>,
}

/// Unfinished jobs in the order in which they were added.
#[derive(Debug, Default)]
pub struct UnfinishedJobs {
    /// Jobs that this version can read.
    pub jobs: Vec<UnfinishedJob>,
    /// Other jobs, of hosts that have ended.
    pub unreadable: Vec<UnreadableJob>,
}

impl Journal {
    /// All unfinished jobs of this kind of host, of living and of ended ones.
    ///
    /// # Errors
    /// If the journal can't be read.
    pub fn unfinished(&self, kind: HostKind) -> Result<UnfinishedJobs, Error> {
        self.change(|transaction| self.list(transaction, kind))
    }

    /// The unfinished jobs of hosts of this kind that have ended. They belong to
    /// this host from now on; no job is taken over by two hosts.
    ///
    /// # Errors
    /// If the journal can't be read or written.
    pub fn take_over(&self, kind: HostKind) -> Result<UnfinishedJobs, Error> {
        let ours = self.host();
        self.change(|transaction| {
            let mut listing = self.list(transaction, kind)?;
            listing.jobs.retain(|left| !left.has_live_host);
            for left in &mut listing.jobs {
                transaction.execute(
                    "UPDATE jobs SET host_pid = ?2, host_started = ?3 WHERE id = ?1",
                    params![left.key.0, ours.pid, ours.started],
                )?;
                left.host = ours;
            }
            Ok(listing)
        })
    }

    fn list(&self, transaction: &Transaction, kind: HostKind) -> rusqlite::Result<UnfinishedJobs> {
        let mut listing = UnfinishedJobs::default();
        let mut select = transaction.prepare(
            "SELECT * FROM jobs WHERE kind = ?1 AND state NOT IN ('finished', 'failed', 'cancelled') ORDER BY id",
        )?;
        let mut rows = select.query([kind.name()])?;
        while let Some(row) = rows.next()? {
            let key = JobKey(row.get("id")?);
            let host = HostProcess { pid: row.get("host_pid")?, started: row.get("host_started")? };
            let has_live_host = self.0.lock.is_alive(host);
            match read(transaction, row, key, host, has_live_host) {
                Ok(left) => listing.jobs.push(left),
                Err(error) if is_about_content(&error) => {
                    if !has_live_host {
                        let file = serde_json::from_str(&row.get::<_, String>("file")?).ok();
                        listing.unreadable.push(UnreadableJob { key, file });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(listing)
    }
}

/// Whether the error concerns the content of a row and not reading it.
fn is_about_content(error: &rusqlite::Error) -> bool {
    use rusqlite::Error::{
        FromSqlConversionFailure, IntegralValueOutOfRange, InvalidColumnType, ToSqlConversionFailure,
    };
    matches!(
        error,
        ToSqlConversionFailure(_)
            | FromSqlConversionFailure(..)
            | InvalidColumnType(..)
            | IntegralValueOutOfRange(..)
    )
}

fn read(
    connection: &Connection,
    row: &Row,
    key: JobKey,
    host: HostProcess,
    has_live_host: bool,
) -> rusqlite::Result<UnfinishedJob> {
    let digest: Option<Vec<u8>> = row.get("file_digest")?;
    let digest = digest.and_then(|digest| <[u8; 32]>::try_from(digest).ok());
    let bytes: Option<i64> = row.get("file_bytes")?;
    let identity = match (bytes, digest) {
        (Some(bytes), Some(digest)) => {
            Some(Identity { bytes: bytes as u64, modified: row.get("file_modified")?, digest })
        }
        _ => None,
    };
    let state: String = row.get("state")?;
    let state = JournalState::from_name(&state)
        .ok_or_else(|| not_json(serde::de::Error::custom("an unknown state")))?;
    let queue_id: i64 = row.get("queue_id")?;
    Ok(UnfinishedJob {
        key,
        queue_id: queue_id as u64,
        job: from_json(&row.get::<_, String>("job")?)?,
        identity,
        outputs: from_json(&row.get::<_, String>("outputs")?)?,
        state,
        resume: Resume {
            point: optional(row, "point")?,
            segments: column(connection, "SELECT segment FROM segments WHERE job = ?1 ORDER BY number", key)?,
            discarded: column(
                connection,
                "SELECT segment FROM discarded WHERE job = ?1 ORDER BY number",
                key,
            )?,
            notices: column(connection, "SELECT notice FROM notices WHERE job = ?1 ORDER BY number", key)?,
            ladder: optional(row, "ladder")?,
            skip: from_json(&row.get::<_, String>("skip")?)?,
        },
        attempts: row.get("attempts")?,
        host,
        changed: row.get("changed")?,
        has_live_host,
    })
}

/// The JSON of a column that may be NULL.
fn optional<T: DeserializeOwned>(row: &Row, column: &str) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.as_deref().map(from_json).transpose()
}

/// All rows of a query with one column of JSON.
fn column<T: DeserializeOwned>(
    connection: &Connection,
    query: &str,
    key: JobKey,
) -> rusqlite::Result<Vec<T>> {
    let mut select = connection.prepare(query)?;
    let rows = select.query_map([key.0], |row| row.get::<_, String>(0))?;
    rows.map(|row| from_json(&row?)).collect()
}

fn from_json<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(not_json)
}
