use std::fmt;
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
    pub why: Purpose,
    /// Bytes of the body that came; `None` where the program was ended before
    /// it could say.
    pub bytes: Option<u64>,
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(tag = "of", rename_all = "snake_case")]
pub enum Purpose {
    /// Size and checksum of a model's files.
    Facts {
        /// The model.
        model: String,
    },
    /// Which files a repository has.
    FileList {
        /// Its name on the hub.
        repository: String,
    },
    /// A file of a model, or of the engine for NVIDIA cards.
    File {
        /// The file's name.
        file: String,
        /// What it is part of.
        model: String,
    },
    /// Which files the engine for NVIDIA cards has.
    EngineList,
    /// Jobs and their results, of workers and of those who give them work.
    Jobs,
    /// Recordings that are listed or fetched over SFTP.
    Recordings,
    /// Recordings for `steno serve` on another machine, and their transcripts.
    OtherMachine,
    /// In the words of an earlier version of Steno.
    #[serde(untagged)]
    Words(String),
}

impl fmt::Display for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Facts { model } => write!(f, "size and checksum of {model}"),
            Self::FileList { repository } => write!(f, "files of {repository}"),
            Self::File { file, model } => write!(f, "{file} of {model}"),
            Self::EngineList => f.write_str("list of files of the engine"),
            Self::Jobs => f.write_str("jobs for workers"),
            Self::Recordings => f.write_str("recordings over SFTP"),
            Self::OtherMachine => f.write_str("recordings for another machine"),
            Self::Words(words) => f.write_str(words),
        }
    }
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

    /// Writes that a connection begins. To be called before it is made, by everything that
    /// connects to another machine.
    ///
    /// # Errors
    ///
    /// Fails where the log can't be written: then the connection must not be made.
    pub fn begin(&self, host: &str, why: &Purpose) -> Result<Open, Error> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let connection = Connection {
            number: format!("{}-{at}-{number}", std::process::id()),
            at,
            host: host.into(),
            why: why.clone(),
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
pub struct Open {
    file: Option<PathBuf>,
    connection: Connection,
    /// That came so far.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn purposes_are_read_as_they_were_written_also_those_of_earlier_versions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("connections.jsonl");
        let old = r#"{"number":"1-2-3","at":2,"host":"hub","why":"files of us/model","bytes":7}"#;
        fs::write(&file, format!("{old}\n")).unwrap();
        let purposes = [
            Purpose::Facts { model: "us/model".into() },
            Purpose::FileList { repository: "us/model".into() },
            Purpose::File { file: "config.json".into(), model: "us/model".into() },
            Purpose::EngineList,
            Purpose::Jobs,
            Purpose::Recordings,
        ];
        for purpose in &purposes {
            drop(Connections::in_file(&file).begin("hub", purpose).unwrap());
        }
        let read: Vec<_> = Connections::read(&file).unwrap().into_iter().map(|it| it.why).collect();
        assert_eq!(read[0], Purpose::Words("files of us/model".into()));
        assert_eq!(read[1..], purposes);
        assert_eq!(read[2].to_string(), read[0].to_string());
    }
}
