//! From what was typed to the recordings that are meant.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use wire::{ErrorCode, Failure};

use crate::platform;

/// Endings of recordings: other files in a folder are passed over.
/// A file that is named itself may have any ending.
const RECORDINGS: &[&str] = &[
    "3gp", "aac", "ac3", "aif", "aifc", "aiff", "alac", "amr", "au", "avi", "caf", "dts", "eac3", "flac",
    "flv", "m4a", "m4b", "m4v", "mka", "mkv", "mov", "mp2", "mp3", "mp4", "mpeg", "mpg", "mts", "oga", "ogg",
    "ogv", "opus", "ts", "wav", "wave", "weba", "webm", "wma", "wmv",
];

/// The recordings, in order, and what stands for none.
#[derive(Debug, Default)]
pub struct Inputs {
    pub recordings: Vec<PathBuf>,
    pub failures: Vec<Failure>,
    /// Named more than once; transcribed once.
    pub repeated: Vec<PathBuf>,
    /// A folder was named, so that more than one recording is to be expected.
    pub folder_named: bool,
}

/// A folder stands for the recordings that lie directly in it, by name. Whether
/// a file exists and what it holds is for the engine to say.
pub fn expand(named: &[PathBuf]) -> Inputs {
    let mut inputs = Inputs::default();
    let mut seen = HashSet::new();
    let mut add = |inputs: &mut Inputs, path: PathBuf| {
        let identity = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        if seen.insert(identity) {
            inputs.recordings.push(path);
        } else {
            inputs.repeated.push(path);
        }
    };
    for path in named {
        if platform::is_standard_input(path) {
            inputs.failures.push(
                Failure::new(ErrorCode::NotAFile, "A recording can't be read from standard input.")
                    .remedy("Save it to a file first, and name that.")
                    .file(path),
            );
        } else if path.is_dir() {
            inputs.folder_named = true;
            match recordings_in(path) {
                Ok(found) => found.into_iter().for_each(|path| add(&mut inputs, path)),
                Err(failure) => inputs.failures.push(failure),
            }
        } else {
            add(&mut inputs, path.clone());
        }
    }
    inputs
}

fn recordings_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let unreadable = |error: std::io::Error| {
        Failure::new(ErrorCode::FileUnreadable, format!("The folder could not be read ({error})."))
            .remedy("Check that you may read it.")
            .file(folder)
    };
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && is_recording(&path) && path.is_file() {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(Failure::new(ErrorCode::NotAFile, "No recordings lie directly in this folder.")
            .remedy("Name the files, or the folder that they are in.")
            .file(folder));
    }
    found.sort();
    Ok(found)
}

fn is_recording(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| RECORDINGS.contains(&ending.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_its_recordings() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("inner.mp3")).unwrap();
        for name in ["b.MP3", "a.wav", "notes.txt", ".hidden.wav", "inner.mp3/c.wav"] {
            fs::write(path(name), "").unwrap();
        }
        let inputs = expand(&[folder.path().into(), path("a.wav"), path("notes.txt")]);
        assert_eq!(inputs.recordings, [path("a.wav"), path("b.MP3"), path("notes.txt")]);
        assert_eq!(inputs.repeated, [path("a.wav")]);
        assert!(inputs.folder_named && inputs.failures.is_empty());
    }

    #[test]
    fn what_stands_for_no_recording_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = expand(&["-".into(), folder.path().into(), "/dev/stdin".into()]);
        let codes: Vec<_> = inputs.failures.iter().map(|failure| failure.code).collect();
        assert_eq!(codes, [ErrorCode::NotAFile; 3]);
        assert!(inputs.failures.iter().all(|failure| failure.remedy.is_some() && failure.file.is_some()));
        assert!(inputs.recordings.is_empty());
    }
}
