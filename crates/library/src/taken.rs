//! Which recordings of watched folders are not to be taken again, whatever
//! they are called by now.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Transaction, params};
use wire::FilePath;

use crate::host::now;
use crate::identity::Stamp;
use crate::journal::json;
use crate::{Error, Identity, Journal};

impl Journal {
    /// This recording was transcribed.
    pub fn take(&self, file: &Path, recording: &Identity) -> Result<(), Error> {
        let stamp = Stamp { bytes: recording.bytes, modified: recording.modified };
        self.change(|transaction| insert(transaction, file, stamp, Some(&recording.digest)))
    }

    /// These were there before anybody watched. They are known by name and
    /// stamp alone, so that a full disk is not read for it.
    pub fn pass_over(&self, files: &[(PathBuf, Stamp)]) -> Result<(), Error> {
        self.change(|transaction| {
            files.iter().try_for_each(|(file, stamp)| insert(transaction, file, *stamp, None))
        })
    }

    /// Whether a file of that name and stamp is not to be taken again; what
    /// is in it need not be read for this.
    pub fn is_known(&self, file: &Path, stamp: Stamp) -> Result<bool, Error> {
        self.change(|transaction| {
            let values = params![json(&FilePath::from(file))?, stamp.bytes as i64, stamp.modified];
            let query = "SELECT 1 FROM taken WHERE file = ?1 AND bytes = ?2 AND modified = ?3";
            Ok(transaction.query_row(query, values, |_| Ok(())).optional()?.is_some())
        })
    }

    /// Whether this recording was transcribed, under whatever name.
    pub fn is_taken(&self, recording: &Identity) -> Result<bool, Error> {
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
    stamp: Stamp,
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
    fn a_recording_is_known_again_under_another_name_and_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (name, content) in [("talk.wav", "sound"), ("other.wav", "Sound"), ("old.wav", "noise")] {
            std::fs::write(path(name), content).unwrap();
        }
        let identity = |name: &str| Identity::of(&path(name)).unwrap();
        let stamp = |name: &str| Stamp::of(&std::fs::metadata(path(name)).unwrap());
        {
            let journal = Journal::open(&path("journal.sqlite")).unwrap().journal;
            assert!(!journal.is_taken(&identity("talk.wav")).unwrap());
            journal.take(&path("talk.wav"), &identity("talk.wav")).unwrap();
            journal.take(&path("talk.wav"), &identity("talk.wav")).unwrap();
            journal.pass_over(&[(path("old.wav"), stamp("old.wav"))]).unwrap();
        }
        std::fs::rename(path("talk.wav"), path("moved.wav")).unwrap();
        let journal = Journal::open(&path("journal.sqlite")).unwrap().journal;
        // (name, known by its stamp, known by what is in it)
        for (name, known, taken) in
            [("moved.wav", false, true), ("other.wav", false, false), ("old.wav", true, false)]
        {
            assert_eq!(journal.is_known(&path(name), stamp(name)).unwrap(), known, "{name}");
            assert_eq!(journal.is_taken(&identity(name)).unwrap(), taken, "{name}");
        }
        // Recorded over.
        std::fs::write(path("old.wav"), "another").unwrap();
        assert!(!journal.is_known(&path("old.wav"), stamp("old.wav")).unwrap());
    }
}
