use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::Error;

/// Beyond this the log becomes its own predecessor, and a new one begins.
const LARGEST: u64 = 1 << 20;

/// One request to a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Connection {
    /// Process and number within it: the line that ends it has the same.
    pub number: String,
    /// Seconds since 1970.
    pub at: u64,
    /// The host that was asked.
    pub host: String,
    /// What for.
    pub why: String,
    /// Bytes of the body that came; `None` where the program was ended before
    /// it could say.
    pub bytes: Option<u64>,
}

/// The log of all connections: a line of JSON before each, a line after it.
#[derive(Debug, Clone)]
pub struct Connections {
    file: Option<PathBuf>,
}

impl Connections {
    /// The log in this file, made at its first line.
    pub fn in_file(file: impl Into<PathBuf>) -> Self {
        Self { file: Some(file.into()) }
    }

    /// For tests of what does not concern the log.
    pub fn nowhere() -> Self {
        Self { file: None }
    }

    /// What the log tells, oldest first. A log that is not there tells nothing;
    /// lines that are none of ours are passed over.
    ///
    /// # Errors
    ///
    /// Fails where the log exists and can't be read.
    pub fn read(file: &Path) -> Result<Vec<Connection>, Error> {
        let mut found: Vec<Connection> = Vec::new();
        for path in [&predecessor(file), file] {
            let text = match fs::read_to_string(path) {
                Ok(text) => text,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(Error::io(path, error)),
            };
            for line in text.lines() {
                let Ok(line) = serde_json::from_str::<Connection>(line) else { continue };
                match found.iter_mut().rev().find(|known| known.number == line.number) {
                    Some(known) => known.bytes = line.bytes,
                    None => found.push(line),
                }
            }
        }
        Ok(found)
    }

    /// Writes that a connection begins. Fails where the log can't be written:
    /// there must be no connection that it does not tell of.
    pub(crate) fn begin(&self, host: &str, why: &str) -> Result<Open, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let connection = Connection {
            number: format!("{}-{at}-{number}", std::process::id()),
            at,
            host: host.into(),
            why: why.into(),
            bytes: None,
        };
        if let Some(file) = &self.file {
            append(file, &connection).map_err(|error| Error::io(file, error))?;
        }
        Ok(Open { file: self.file.clone(), connection, bytes: 0 })
    }
}

/// A connection under way: its end is written when this is dropped.
#[derive(Debug)]
pub(crate) struct Open {
    file: Option<PathBuf>,
    connection: Connection,
    pub bytes: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connection.bytes = Some(self.bytes);
        if let Some(file) = &self.file {
            // That there was a connection is written down already.
            let _ = append(file, &self.connection);
        }
    }
}

fn predecessor(file: &Path) -> PathBuf {
    file.with_extension("old.jsonl")
}

/// One write per line, so that lines of two programs don't mix.
fn append(file: &Path, connection: &Connection) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    if fs::metadata(file).is_ok_and(|metadata| metadata.len() > LARGEST) {
        fs::rename(file, predecessor(file))?;
    }
    let mut line = serde_json::to_vec(connection)?;
    line.push(b'\n');
    OpenOptions::new().append(true).create(true).open(file)?.write_all(&line)
}
