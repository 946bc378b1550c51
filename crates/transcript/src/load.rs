//! Loading transcripts that were saved as JSON.

use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer};

use crate::{SCHEMA_VERSION, Transcript};

/// Why a transcript could not be loaded. Every message says what to do; the
/// caller puts the file's name before it.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("The file could not be read ({0}).")]
    Io(#[from] io::Error),
    /// The path is a folder's.
    #[error("This is a folder. Name the .json file in it.")]
    Folder(PathBuf),
    /// The file is not JSON.
    #[error("This is not JSON ({0}). Name a .json file that Steno saved.")]
    NotJson(serde_json::Error),
    /// The JSON ends too early.
    #[error(
        "The file ends too early, as after a full disk or a broken copy. Transcribe the recording again."
    )]
    CutShort,
    /// The JSON has no `schema_version` that a transcript can have.
    #[error(
        "This is JSON, but not a transcript that Steno saved: `schema_version` is missing. \
         Name a .json file from `steno transcribe --format json`."
    )]
    Foreign,
    /// A later version of the program saved the file.
    #[error(
        "A newer version of Steno saved this (format {found}, this version reads up to {SCHEMA_VERSION}). \
         Update Steno, or convert the file where it was made."
    )]
    Newer {
        /// The file's `schema_version`.
        found: u64,
    },
    /// A field is missing or has the wrong type.
    #[error("The file is damaged ({0}). Transcribe the recording again.")]
    Damaged(serde_json::Error),
}

impl Transcript {
    /// Reads a transcript that [`export`](crate::export::export) wrote as JSON.
    ///
    /// # Errors
    /// If the file can't be read or holds no transcript of this version or an
    /// earlier one.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        if path.is_dir() {
            return Err(LoadError::Folder(path.into()));
        }
        Self::from_json(&std::fs::read(path)?)
    }

    /// Reads a transcript from JSON in memory.
    ///
    /// # Errors
    /// As for [`Transcript::load`], but for reading the file.
    pub fn from_json(json: &[u8]) -> Result<Self, LoadError> {
        /// The version alone, so that a later version is recognised whatever its fields are.
        #[derive(Deserialize)]
        struct Probe {
            schema_version: Option<u64>,
        }

        // Some editors on Windows add a byte order mark.
        let json = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        // serde reads a struct from an array as well, but no transcript is saved so.
        if json.trim_ascii_start().first() == Some(&b'[') {
            return Err(LoadError::Foreign);
        }
        let probe: Probe = serde_json::from_slice(json).map_err(|error| match error.classify() {
            serde_json::error::Category::Eof if !json.trim_ascii().is_empty() => LoadError::CutShort,
            serde_json::error::Category::Data => LoadError::Foreign,
            _ => LoadError::NotJson(error),
        })?;
        match probe.schema_version {
            None | Some(0) => Err(LoadError::Foreign),
            Some(found) if found > u64::from(SCHEMA_VERSION) => Err(LoadError::Newer { found }),
            Some(_) => serde_json::from_slice(json).map_err(LoadError::Damaged),
        }
    }
}

/// Reads a float and takes null as 0: JSON has no infinities, and serde_json
/// writes them as null.
pub(crate) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f32, D::Error> {
    Ok(Option::<f32>::deserialize(deserializer)?.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    fn check(json: &str, expected: &str) {
        let error = Transcript::from_json(json.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(expected), "{json}: {error}");
    }

    #[test]
    fn other_files_are_refused_with_a_remedy() {
        check("", "not JSON");
        check("Hello, I am a text.", "not JSON");
        check(r#"{"schema_version": 1, "source": {"na"#, "ends too early");
        check("[1, 2]", "not a transcript that Steno saved");
        check(r#"{"text": "from another program", "segments": []}"#, "not a transcript that Steno saved");
        check(r#"{"schema_version": "one"}"#, "not a transcript that Steno saved");
        check(r#"{"schema_version": 2, "unheard": true}"#, "Update Steno");
        check(r#"{"schema_version": 1, "segments": 3}"#, "damaged");
    }

    #[test]
    fn a_missing_file_and_a_folder_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let missing = Transcript::load(&folder.path().join("none.json")).unwrap_err();
        assert!(matches!(missing, LoadError::Io(_)), "{missing}");
        let folder = Transcript::load(folder.path()).unwrap_err();
        assert!(matches!(folder, LoadError::Folder(_)), "{folder}");
    }

    #[test]
    fn infinite_and_undefined_numbers_are_read_as_zero() {
        let mut silent = segment(0, 1000, "hm");
        silent.mean_log_probability = f32::NEG_INFINITY;
        silent.compression_ratio = f32::NAN;
        let saved = serde_json::to_vec(&transcript(vec![silent])).unwrap();
        let read = Transcript::from_json(&saved).unwrap();
        assert_eq!(read.segments[0].text, "hm");
        assert_eq!(read.segments[0].mean_log_probability, 0.0);
    }

    #[test]
    fn a_byte_order_mark_is_ignored() {
        let original = transcript(vec![segment(0, 1000, "hm")]);
        let mut saved = b"\xef\xbb\xbf".to_vec();
        saved.extend(serde_json::to_vec(&original).unwrap());
        assert_eq!(Transcript::from_json(&saved).unwrap(), original);
    }
}
