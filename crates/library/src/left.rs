//! Reading back what was left by hosts that are gone.

use rusqlite::{Connection, Row, Transaction, params};
use serde::de::DeserializeOwned;
use wire::{FilePath, Job, Resume};

use crate::journal::{Key, Kind, State, not_json};
use crate::{Error, Host, Identity, Journal};

/// A job that is not over.
#[derive(Debug)]
pub struct Left {
    pub key: Key,
    pub queue_id: u64,
    pub job: Job,
    /// Of the file as it was when the job was written down.
    pub identity: Option<Identity>,
    pub outputs: serde_json::Value,
    pub state: State,
    /// What was reached; for [`Job::resume`].
    pub resume: Resume,
    pub attempts: u32,
    pub host: Host,
    /// Milliseconds since 1970 of the last thing that was heard of it.
    pub changed: i64,
    /// Its host lives and works on it.
    pub is_worked_on: bool,
}

/// A job whose entry was written by another version and makes no sense to this one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub key: Key,
    pub file: Option<FilePath>,
}

/// In the order in which they were written down.
#[derive(Debug, Default)]
pub struct Listing {
    pub jobs: Vec<Left>,
    /// Of hosts that are gone.
    pub unreadable: Vec<Unreadable>,
}

impl Journal {
    /// Jobs of this kind of host that are not over, whoever's they are.
    pub fn unfinished(&self, kind: Kind) -> Result<Listing, Error> {
        self.change(|transaction| self.list(transaction, kind))
    }

    /// As [`Journal::unfinished`], but those of hosts that are gone alone, and
    /// from now on they are this host's. No job is taken by two.
    pub fn take_over(&self, kind: Kind) -> Result<Listing, Error> {
        let ours = self.host();
        self.change(|transaction| {
            let mut listing = self.list(transaction, kind)?;
            listing.jobs.retain(|left| !left.is_worked_on);
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

    fn list(&self, transaction: &Transaction, kind: Kind) -> rusqlite::Result<Listing> {
        let mut listing = Listing::default();
        let mut select = transaction.prepare(
            "SELECT * FROM jobs WHERE kind = ?1 AND state NOT IN ('finished', 'failed', 'cancelled') ORDER BY id",
        )?;
        let mut rows = select.query([kind.name()])?;
        while let Some(row) = rows.next()? {
            let key = Key(row.get("id")?);
            let host = Host { pid: row.get("host_pid")?, started: row.get("host_started")? };
            let is_worked_on = self.0.sign.is_alive(host);
            match read(transaction, row, key, host, is_worked_on) {
                Ok(left) => listing.jobs.push(left),
                Err(error) if is_about_content(&error) => {
                    if !is_worked_on {
                        let file = serde_json::from_str(&row.get::<_, String>("file")?).ok();
                        listing.unreadable.push(Unreadable { key, file });
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(listing)
    }
}

/// Whether the row was read and only not understood.
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
    key: Key,
    host: Host,
    is_worked_on: bool,
) -> rusqlite::Result<Left> {
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
    let state =
        State::from_name(&state).ok_or_else(|| not_json(serde::de::Error::custom("an unknown state")))?;
    let queue_id: i64 = row.get("queue_id")?;
    Ok(Left {
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
        is_worked_on,
    })
}

fn optional<T: DeserializeOwned>(row: &Row, column: &str) -> rusqlite::Result<Option<T>> {
    let text: Option<String> = row.get(column)?;
    text.as_deref().map(from_json).transpose()
}

fn column<T: DeserializeOwned>(connection: &Connection, query: &str, key: Key) -> rusqlite::Result<Vec<T>> {
    let mut select = connection.prepare(query)?;
    let rows = select.query_map([key.0], |row| row.get::<_, String>(0))?;
    rows.map(|row| from_json(&row?)).collect()
}

fn from_json<T: DeserializeOwned>(text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(not_json)
}
