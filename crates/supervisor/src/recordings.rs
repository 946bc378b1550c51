//! Which files of a folder are recordings: one rule for every host.

use std::path::{Path, PathBuf};
use std::{fs, io};

use wire::{ErrorCode, Failure};

/// Depth to which folders are searched: deeper than recordings are sorted, and an end for
/// file systems that loop.
pub const DEEPEST: usize = 8;

/// Endings that a folder is searched for. A file that was named itself is
/// tried whatever it is called.
const RECORDINGS: &[&str] = &[
    "3gp", "aac", "ac3", "aif", "aifc", "aiff", "alac", "amr", "ape", "au", "avi", "caf", "dts", "eac3",
    "flac", "flv", "m4a", "m4b", "m4v", "mka", "mkv", "mov", "mp2", "mp3", "mp4", "mpeg", "mpg", "mts",
    "oga", "ogg", "ogv", "opus", "spx", "ts", "wav", "wave", "weba", "webm", "wma", "wmv", "wv",
];

/// The recordings in a folder and in those within it, `deepest` levels down, by
/// name, and the folders that can't be opened. Hidden files and folders are passed over.
pub fn walk(folder: &Path, deepest: usize, each: &mut impl FnMut(Result<PathBuf, (PathBuf, io::Error)>)) {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) => return each(Err((folder.into(), error))),
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // The type of the entry itself: links to folders may lead in circles.
        let Ok(kind) = entry.file_type() else { continue };
        let path = entry.path();
        if hidden {
            continue;
        } else if kind.is_dir() {
            if deepest > 0 {
                walk(&path, deepest - 1, each);
            }
        } else if is_recording(&path) && path.is_file() {
            each(Ok(path));
        }
    }
}

/// The recordings in a folder and, if asked to, in those within it. Folders that can't be
/// opened are failures, and so is a folder without any recording.
pub fn in_folder(folder: &Path, recursive: bool, each: &mut impl FnMut(Result<PathBuf, Failure>)) {
    let mut is_empty = true;
    walk(folder, if recursive { DEEPEST } else { 0 }, &mut |one| {
        is_empty = false;
        each(one.map_err(|(folder, error)| unreadable(&folder, &error)));
    });
    if is_empty {
        let mut below = 0;
        if !recursive {
            walk(folder, DEEPEST, &mut |one| below += usize::from(one.is_ok()));
        }
        each(Err(none(folder, below)));
    }
}

/// Whether a file's name is that of a recording.
pub fn is_recording(file: &Path) -> bool {
    has_ending(file, RECORDINGS)
}

/// Whether a file has one of these endings.
pub fn has_ending(file: &Path, endings: &[&str]) -> bool {
    file.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| endings.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

fn unreadable(folder: &Path, error: &io::Error) -> Failure {
    Failure::new(ErrorCode::FileUnreadable, format!("This folder can't be opened ({error})."))
        .file(folder)
        .remedy("Change its permissions, or copy the recordings elsewhere.")
}

/// Of a folder without recordings, with so many in the folders within it.
fn none(folder: &Path, below: usize) -> Failure {
    let (message, remedy) = match below {
        0 => (
            "There is no audio or video file in this folder.".to_owned(),
            "Choose another folder, or the files themselves.",
        ),
        1 => (
            "There is no audio or video file directly in this folder, but one in a subfolder.".into(),
            "Add --recursive to search subfolders.",
        ),
        many => (
            format!("There is no audio or video file directly in this folder, but {many} in subfolders."),
            "Add --recursive to search subfolders.",
        ),
    };
    Failure::new(ErrorCode::NoRecordings, message).file(folder).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_stands_for_its_recordings() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["tape 2.mp3", "tape 2.mp3/deeper", ".hidden", "empty"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        for name in [
            "b.wav",
            "a.MP3",
            "notes.txt",
            "tape 2.mp3/c.flac",
            "tape 2.mp3/deeper/d.aifc",
            ".hidden/e.wav",
            ".f.wav",
            "strange.xyz",
        ] {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), folder.path().join("tape 2.mp3/again")).unwrap();
        let check = |within: &str, recursive, expected: &[&str]| {
            let mut found = Vec::new();
            in_folder(&folder.path().join(within), recursive, &mut |one| {
                found.push(match one {
                    Ok(file) => file.strip_prefix(folder.path()).unwrap().to_str().unwrap().to_owned(),
                    Err(failure) => format!("{:?}: {}", failure.code, failure.message),
                });
            });
            assert_eq!(found, expected, "{within} {recursive}");
        };
        check("", false, &["a.MP3", "b.wav"]);
        check("", true, &["a.MP3", "b.wav", "tape 2.mp3/c.flac", "tape 2.mp3/deeper/d.aifc"]);
        check("empty", true, &["NoRecordings: There is no audio or video file in this folder."]);
        check("empty", false, &["NoRecordings: There is no audio or video file in this folder."]);
        fs::remove_file(folder.path().join("tape 2.mp3/c.flac")).unwrap();
        check(
            "tape 2.mp3",
            false,
            &[
                "NoRecordings: There is no audio or video file directly in this folder, but one in a subfolder.",
            ],
        );
    }
}
