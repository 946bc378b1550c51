//! From what was typed to the recordings that are meant.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use supervisor::recordings;
use wire::{ErrorCode, Failure};

use crate::platform;

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

/// A folder stands for the recordings that lie in it, by name, and where that is
/// asked for in those within it. Whether a file exists and what it holds is for
/// the engine to say.
pub fn expand(named: &[PathBuf], recursive: bool) -> Inputs {
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
                Failure::new(ErrorCode::NotAFile, "Only `steno transcribe` reads standard input.")
                    .remedy("Save it to a file first, and name that.")
                    .file(path),
            );
        } else if path.is_dir() {
            inputs.folder_named = true;
            recordings::in_folder(path, recursive, &mut |one| match one {
                Ok(file) => add(&mut inputs, file),
                Err(failure) => inputs.failures.push(failure),
            });
        } else {
            add(&mut inputs, path.clone());
        }
    }
    inputs
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
        let inputs = expand(&[folder.path().into(), path("a.wav"), path("notes.txt")], false);
        assert_eq!(inputs.recordings, [path("a.wav"), path("b.MP3"), path("notes.txt")]);
        assert_eq!(inputs.repeated, [path("a.wav")]);
        assert!(inputs.folder_named && inputs.failures.is_empty());
        let inputs = expand(&[folder.path().into()], true);
        assert_eq!(inputs.recordings, [path("a.wav"), path("b.MP3"), path("inner.mp3/c.wav")]);
    }

    #[test]
    fn what_stands_for_no_recording_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let inputs = expand(&["-".into(), folder.path().into(), "/dev/stdin".into()], false);
        let codes: Vec<_> = inputs.failures.iter().map(|failure| failure.code).collect();
        assert_eq!(codes, [ErrorCode::NotAFile, ErrorCode::NoRecordings, ErrorCode::NotAFile]);
        assert!(inputs.failures.iter().all(|failure| failure.remedy.is_some() && failure.file.is_some()));
        assert!(inputs.recordings.is_empty());
    }
}
