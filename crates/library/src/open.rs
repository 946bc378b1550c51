//! Opening the files of the journal and the history, and migrating them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::subject;
use crate::host::HostLock;
use crate::journal::Inner;
use crate::{Error, Journal, Problem};

/// File name of the journal in the state folder.
pub const JOURNAL_FILE: &str = "journal.sqlite";

/// How long to wait for a lock. Writes take milliseconds, so that a lock held for
/// longer is not about to be released.
pub(crate) const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// One script per version of the schema, in order. `user_version` is the number of
/// scripts that were run.
const MIGRATIONS: [&str; 2] = [include_str!("1.sql"), include_str!("2.sql")];

/// An open journal, and the file that it replaced.
#[derive(Debug)]
pub struct OpenedJournal {
    /// The journal.
    pub journal: Journal,
    /// The earlier file, if it could not be used.
    pub aside: Option<QuarantinedFile>,
}

/// A file that could not be used and was moved aside.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {} {reason}, so a new one was started. The old one was kept as {}; this program can't use its contents.",
    .path.display(), subject(.path), .kept.display())]
pub struct QuarantinedFile {
    /// Its path before.
    pub path: PathBuf,
    /// Its path now.
    pub kept: PathBuf,
    /// Why it could not be used.
    pub reason: QuarantineReason,
}

/// Why a file can't be used as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuarantineReason {
    /// It is not a database or inconsistent; the text says how.
    #[error("is damaged ({0})")]
    Damaged(String),
    /// A newer version of the program wrote it; the number is its schema's.
    #[error("was written by a newer version of Steno (version {0})")]
    Newer(i64),
}

impl Journal {
    /// Opens the journal at `path` and creates it and its folder if missing. A file
    /// that is damaged or of a newer version is moved aside.
    ///
    /// # Errors
    /// If the file or its folder can't be read, written or locked.
    pub fn open(path: &Path) -> Result<OpenedJournal, Error> {
        let io = |error| Error::io(path, error);
        let (connection, aside) = match connect(path, &MIGRATIONS)? {
            Ok(connection) => (connection, None),
            Err(reason) => replace_file(path, reason, &MIGRATIONS)?,
        };
        let lock = HostLock::start(&path.with_extension("hosts")).map_err(io)?;
        let inner = Inner { path: path.into(), connection: Mutex::new(connection), lock };
        Ok(OpenedJournal { journal: Journal(Arc::new(inner)), aside })
    }
}

/// Moves an unusable file aside and creates a new one.
pub(crate) fn replace_file(
    path: &Path,
    reason: QuarantineReason,
    migrations: &[&str],
) -> Result<(Connection, Option<QuarantinedFile>), Error> {
    let kept = move_aside(path, &reason).map_err(|error| Error::io(path, error))?;
    let aside = QuarantinedFile { path: path.into(), kept, reason };
    let connection = connect(path, migrations)?
        .map_err(|reason| Error { path: path.into(), problem: Problem::Damaged(reason.to_string()) })?;
    Ok((connection, Some(aside)))
}

/// Opens and migrates a file, which is created if missing. The inner error says why it must be
/// replaced. The file and its folder are made this user's alone: they hold what people said.
pub(crate) fn connect(
    path: &Path,
    migrations: &[&str],
) -> Result<Result<Connection, QuarantineReason>, Error> {
    private::protect(path).map_err(|error| Error::io(path, error))?;
    let to_check = needs_check(path);
    let opened = Connection::open(path).and_then(|connection| {
        connection.busy_timeout(LOCK_TIMEOUT)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", "full")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Deleted text must not stay in the file's free pages.
        connection.pragma_update(None, "secure_delete", true)?;
        if to_check {
            let check: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
            if check != "ok" {
                return Ok(Err(QuarantineReason::Damaged(check)));
            }
            if is_large(path) {
                // Without it the next program checks again.
                let _ = private::protect(&checked(path)).and_then(|()| fs::write(checked(path), ""));
            }
        }
        let connection = match migrate(connection, migrations)? {
            Ok(connection) => connection,
            Err(reason) => return Ok(Err(reason)),
        };
        Ok(match missing_column(&connection, migrations)? {
            Some(column) => Err(QuarantineReason::Damaged(format!("{column} is missing"))),
            None => Ok(connection),
        })
    });
    let error = match opened.map_err(|error| Error::sqlite(path, error)) {
        Ok(connection) => return Ok(connection),
        Err(error) => error,
    };
    match error.problem {
        Problem::Damaged(why) => Ok(Err(QuarantineReason::Damaged(why))),
        // SQLite opens a file of an unknown format for reading only.
        Problem::NotAllowed if is_writable(path) => {
            Ok(Err(QuarantineReason::Damaged("it is of an unknown format".into())))
        }
        // A disk that fails may work again; anything else stays as it is.
        Problem::Sqlite(why)
            if !matches!(
                why.sqlite_error_code(),
                Some(rusqlite::ErrorCode::SystemIoFailure | rusqlite::ErrorCode::OutOfMemory)
            ) =>
        {
            Ok(Err(QuarantineReason::Damaged(why.to_string())))
        }
        problem => Err(Error { path: path.into(), problem }),
    }
}

/// Whether a file is looked through before it is used. That reads all of it, a second for a year's
/// history: a large file that was closed in order is looked through once a day.
fn needs_check(path: &Path) -> bool {
    const DAY: Duration = Duration::from_secs(24 * 3600);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let lately = fs::metadata(checked(path)).and_then(|metadata| metadata.modified());
    let is_known = lately.is_ok_and(|at| at.elapsed().is_ok_and(|age| age < DAY));
    !is_large(path) || length(Path::new(&log)) > 0 || !is_known
}

/// Whether looking through a file takes so long that a user notices it.
fn is_large(path: &Path) -> bool {
    length(path) > 32 << 20
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// The file whose age says when another one was last looked through.
fn checked(path: &Path) -> PathBuf {
    path.with_extension("checked")
}

fn is_writable(path: &Path) -> bool {
    fs::OpenOptions::new().write(true).open(path).is_ok()
}

/// `TABLE.COLUMN` of the schema that the file lacks, if any: its version promises it.
fn missing_column(connection: &Connection, migrations: &[&str]) -> rusqlite::Result<Option<String>> {
    let columns = |connection: &Connection| -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(
            "SELECT tables.name || '.' || columns.name FROM sqlite_schema AS tables,
             pragma_table_info(tables.name) AS columns WHERE tables.type = 'table'",
        )?;
        let names = statement.query_map([], |row| row.get(0))?;
        names.collect()
    };
    let expected = Connection::open_in_memory()?;
    for script in migrations {
        expected.execute_batch(script)?;
    }
    let present = columns(connection)?;
    Ok(columns(&expected)?.into_iter().find(|column| !present.contains(column)))
}

/// Files that only their user can read.
mod private {
    use std::fs;
    use std::io;
    use std::path::Path;

    /// Name of the folder that Steno makes for itself in a user's folder of such folders.
    const OWN_FOLDER: &str = "steno";

    /// Makes sure that the file and its folder exist and that only the user can read them. A folder
    /// that the user chose keeps its permissions.
    pub fn protect(path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            let mut builder = fs::DirBuilder::new();
            builder.recursive(true);
            #[cfg(unix)]
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            builder.create(folder)?;
            if folder.file_name().is_some_and(|name| name == OWN_FOLDER) {
                restrict(folder, 0o700);
            }
        }
        let mut options = fs::OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        // SQLite gives its log files the permissions of the database.
        for ending in ["", "-wal", "-shm"] {
            let mut file = path.as_os_str().to_owned();
            file.push(ending);
            restrict(Path::new(&file), 0o600);
        }
        Ok(())
    }

    /// Takes away what `mode` does not grant. What belongs to another user stays as it is.
    fn restrict(path: &Path, mode: u32) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            if let Ok(metadata) = fs::metadata(path)
                && metadata.is_dir() == (mode & 0o100 != 0)
                && metadata.permissions().mode() & 0o777 & !mode != 0
            {
                let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode));
            }
        }
        #[cfg(not(unix))]
        let _ = (path, mode);
    }
}

fn migrate(
    mut connection: Connection,
    migrations: &[&str],
) -> rusqlite::Result<Result<Connection, QuarantineReason>> {
    // Immediate: of two programs that start together only one migrates.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let Some(missing) = usize::try_from(version).ok().and_then(|version| migrations.get(version..)) else {
        return Ok(Err(QuarantineReason::Newer(version)));
    };
    for script in missing {
        transaction.execute_batch(script)?;
    }
    transaction.pragma_update(None, "user_version", migrations.len() as i64)?;
    transaction.commit()?;
    Ok(Ok(connection))
}

/// Renames a database and its log files. Returns the new path.
fn move_aside(path: &Path, reason: &QuarantineReason) -> std::io::Result<PathBuf> {
    let word = match reason {
        QuarantineReason::Damaged(_) => "damaged",
        QuarantineReason::Newer(_) => "newer",
    };
    let with = |path: &Path, ending: &str| {
        let mut name: OsString = path.into();
        name.push(ending);
        PathBuf::from(name)
    };
    let kept = (1..).map(|number| with(path, &format!(".{word}-{number}"))).find(|kept| !kept.exists());
    let kept = kept.unwrap_or_else(|| with(path, ".old"));
    fs::rename(path, &kept)?;
    // The write-ahead log holds changes that are not in the database file yet.
    for ending in ["-wal", "-shm"] {
        let log = with(path, ending);
        if log.exists() {
            fs::rename(&log, with(&kept, ending))?;
        }
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, SeekFrom, Write};
    use std::time::SystemTime;

    use super::*;

    /// Looking through a large file takes a second: it is done once a day, and after a program that could not
    /// close it.
    #[test]
    fn a_large_file_is_looked_through_once_a_day() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.sqlite");
        let open = || connect(&path, &MIGRATIONS).unwrap();
        let connection = open().unwrap();
        connection
            .execute_batch("CREATE TABLE large (bytes); INSERT INTO large VALUES (zeroblob(40 << 20))")
            .unwrap();
        drop(connection);
        // Large for the first time.
        drop(open().unwrap());
        // A link from one part of the value to the next leads nowhere.
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.seek(SeekFrom::Start(20 << 20)).unwrap();
        file.write_all(&[0xff; 4]).unwrap();
        drop(file);

        assert!(open().is_ok(), "it was looked through a moment ago");
        let checked = fs::File::open(checked(&path)).unwrap();
        checked.set_modified(SystemTime::now() - Duration::from_secs(48 * 3600)).unwrap();
        let reason = open().unwrap_err();
        assert!(matches!(reason, QuarantineReason::Damaged(_)), "{reason}");

        // What a killed program left is looked through at once.
        checked.set_modified(SystemTime::now()).unwrap();
        fs::write(path.with_extension("sqlite-wal"), [0; 64]).unwrap();
        assert!(open().is_err());
    }
}
