//! The recordings of watched folders that were processed, recognised by content
//! after they are renamed. The table is called `taken`.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Transaction, params};
use wire::FilePath;

use crate::host::now;
use crate::identity::FileStamp;
use crate::journal::json;
use crate::{Error, Identity, Journal};

impl Journal {
    /// Records that a recording was transcribed.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn mark_processed(&self, file: &Path, recording: &Identity) -> Result<(), Error> {
        let stamp = FileStamp { bytes: recording.bytes, modified: recording.modified };
        self.change(|transaction| insert(transaction, file, stamp, Some(&recording.digest)))
    }

    /// Records files that were in a folder before it was watched and are not to be
    /// transcribed. They are recorded by path and stamp alone, so that a large
    /// folder need not be read.
    ///
    /// # Errors
    /// If the journal can't be written.
    pub fn mark_existing(&self, files: &[(PathBuf, FileStamp)]) -> Result<(), Error> {
        self.change(|transaction| {
            files.iter().try_for_each(|(file, stamp)| insert(transaction, file, *stamp, None))
        })
    }

    /// Whether a file with this path and stamp is recorded. Its content is not read.
    ///
    /// # Errors
    /// If the journal can't be read.
    pub fn is_recorded(&self, file: &Path, stamp: FileStamp) -> Result<bool, Error> {
        self.change(|transaction| {
            let values = params![json(&FilePath::from(file))?, stamp.bytes as i64, stamp.modified];
            let query = "SELECT 1 FROM taken WHERE file = ?1 AND bytes = ?2 AND modified = ?3";
            Ok(transaction.query_row(query, values, |_| Ok(())).optional()?.is_some())
        })
    }

    /// Whether this recording was transcribed, under this name or another.
    ///
    /// # Errors
    /// If the journal can't be read.
    pub fn is_processed(&self, recording: &Identity) -> Result<bool, Error> {
        self.change(|transaction| {
            let values = params![&recording.digest[..], recording.bytes as i64];
            let query = "SELECT 1 FROM taken WHERE digest = ?1 AND bytes = ?2";
            Ok(transaction.query_row(query, values, |_| Ok(())).optional()?.is_some())
        })
    }
}

fn insert(
    transaction: &Transaction,
    file: &Path,
    stamp: FileStamp,
    digest: Option<&[u8; 32]>,
) -> rusqlite::Result<()> {
    let digest = digest.map(|digest| &digest[..]);
    transaction.execute(
        "INSERT OR REPLACE INTO taken (file, bytes, modified, digest, at) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![json(&FilePath::from(file))?, stamp.bytes as i64, stamp.modified, digest, now()],
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processed_recordings_are_recognised_after_renaming_and_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, content) in [("talk.wav", "sound"), ("other.wav", "Sound"), ("old.wav", "noise")] {
            std::fs::write(path(name), content).unwrap();
        }
        let identity = |name: &str| Identity::of(&path(name)).unwrap();
        let stamp = |name: &str| FileStamp::of(&std::fs::metadata(path(name)).unwrap());
        {
            let journal = Journal::open(&path("journal.sqlite")).unwrap().journal;
            assert!(!journal.is_processed(&identity("talk.wav")).unwrap());
            journal.mark_processed(&path("talk.wav"), &identity("talk.wav")).unwrap();
            journal.mark_processed(&path("talk.wav"), &identity("talk.wav")).unwrap();
            journal.mark_existing(&[(path("old.wav"), stamp("old.wav"))]).unwrap();
        }
        std::fs::rename(path("talk.wav"), path("moved.wav")).unwrap();
        let journal = Journal::open(&path("journal.sqlite")).unwrap().journal;
        // (name, recognised by its stamp, recognised by its content)
        for (name, known, taken) in
            [("moved.wav", false, true), ("other.wav", false, false), ("old.wav", true, false)]
        {
            assert_eq!(journal.is_recorded(&path(name), stamp(name)).unwrap(), known, "{name}");
            assert_eq!(journal.is_processed(&identity(name)).unwrap(), taken, "{name}");
        }
        // The file was overwritten.
        std::fs::write(path("old.wav"), "another").unwrap();
        assert!(!journal.is_recorded(&path("old.wav"), stamp("old.wav")).unwrap());
    }
}
