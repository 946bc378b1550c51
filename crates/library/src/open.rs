use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::subject;
use crate::host::SignOfLife;
use crate::journal::Inner;
use crate::{Error, Journal, Problem};

/// The journal's name in the state folder.
pub const FILE: &str = "journal.sqlite";

/// For how long another program's write is waited for. Writes take
/// milliseconds; a lock that is held for longer is held for good.
const PATIENCE: Duration = Duration::from_secs(1);

/// One script per version, in order; `user_version` counts those that ran.
const MIGRATIONS: [&str; 2] = [include_str!("1.sql"), include_str!("2.sql")];

/// A journal, and what became of the file that was there before.
#[derive(Debug)]
pub struct Opened {
    pub journal: Journal,
    pub aside: Option<Aside>,
}

/// A file that could not be used, kept under another name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {} {reason}, so that a new one was begun. The old one is now {}; what it held can't be used by this program.",
    .path.display(), subject(.path), .kept.display())]
pub struct Aside {
    pub path: PathBuf,
    pub kept: PathBuf,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("is damaged ({0})")]
    Damaged(String),
    #[error("was written by a newer version of Steno (version {0})")]
    Newer(i64),
}

impl Journal {
    /// Opens the journal at `path`, made with its folder where there is none.
    /// A file that is damaged or of a newer version is moved aside.
    ///
    /// # Errors
    /// Where the file or its folder can't be read, written or locked.
    pub fn open(path: &Path) -> Result<Opened, Error> {
        let io = |error| Error::io(path, error);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(io)?;
        }
        let (connection, aside) = match connect(path, &MIGRATIONS)? {
            Ok(connection) => (connection, None),
            Err(reason) => begin_anew(path, reason, &MIGRATIONS)?,
        };
        let sign = SignOfLife::start(&path.with_extension("hosts")).map_err(io)?;
        let inner = Inner { path: path.into(), connection: Mutex::new(connection), sign };
        Ok(Opened { journal: Journal(Arc::new(inner)), aside })
    }
}

/// Moves a file aside that can't be used, and makes a new one.
pub(crate) fn begin_anew(
    path: &Path,
    reason: Reason,
    migrations: &[&str],
) -> Result<(Connection, Option<Aside>), Error> {
    let kept = move_aside(path, &reason).map_err(|error| Error::io(path, error))?;
    let aside = Aside { path: path.into(), kept, reason };
    let connection = connect(path, migrations)?
        .map_err(|reason| Error { path: path.into(), problem: Problem::Damaged(reason.to_string()) })?;
    Ok((connection, Some(aside)))
}

/// The inner error tells why the file can't be used as it is.
pub(crate) fn connect(path: &Path, migrations: &[&str]) -> Result<Result<Connection, Reason>, Error> {
    let opened = Connection::open(path).and_then(|connection| {
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // What was said in a recording does not stay in the file's free pages.
        connection.pragma_update(None, "secure_delete", true)?;
        let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
        if check != "ok" {
            return Ok(Err(Reason::Damaged(check)));
        }
        migrate(connection, migrations)
    });
    match opened.map_err(|error| Error::sqlite(path, error)) {
        Ok(connection) => Ok(connection),
        Err(Error { problem: Problem::Damaged(why), .. }) => Ok(Err(Reason::Damaged(why))),
        Err(error) => Err(error),
    }
}

fn migrate(mut connection: Connection, migrations: &[&str]) -> rusqlite::Result<Result<Connection, Reason>> {
    // Taken at once: of two programs that start together one migrates.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let Some(missing) = usize::try_from(version).ok().and_then(|version| migrations.get(version..)) else {
        return Ok(Err(Reason::Newer(version)));
    };
    for script in missing {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "user_version", migrations.len() as i64)?;
    transaction.commit()?;
    Ok(Ok(connection))
}

/// Renames the file and what belongs to it; returns the new name.
fn move_aside(path: &Path, reason: &Reason) -> std::io::Result<PathBuf> {
    let word = match reason {
        Reason::Damaged(_) => "damaged",
        Reason::Newer(_) => "newer",
    };
    let with = |path: &Path, ending: &str| {
        let mut name: OsString = path.into();
        name.push(ending);
        PathBuf::from(name)
    };
    let kept = (1..).map(|number| with(path, &format!(".{word}-{number}"))).find(|kept| !kept.exists());
    let kept = kept.unwrap_or_else(|| with(path, ".old"));
    fs::rename(path, &kept)?;
    // The log of writes holds what has not reached the file itself.
    for ending in ["-wal", "-shm"] {
        let belonging = with(path, ending);
        if belonging.exists() {
            fs::rename(&belonging, with(&kept, ending))?;
        }
    }
    Ok(kept)
}
