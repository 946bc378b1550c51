//! Files that were dropped or chosen: folders are searched for recordings, and files that
//! are certainly none fail before any engine is started. The rest is left to decoding.

use std::path::{Path, PathBuf};
use std::{fs, io};

use supervisor::recordings::{self, has_ending};
use wire::{ErrorCode, Failure};

/// Endings of what is certainly no recording, so that it is said at once.
const OTHERS: &[&str] = &[
    "7z", "bmp", "csv", "doc", "docx", "epub", "exe", "gif", "gz", "heic", "htm", "html", "jpeg", "jpg",
    "json", "md", "odt", "pdf", "png", "ppt", "pptx", "rar", "rtf", "srt", "svg", "tar", "tif", "tiff",
    "txt", "vtt", "webp", "xls", "xlsx", "xml", "zip",
];

/// A file to be put in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    pub file: PathBuf,
    pub bytes: Option<u64>,
    /// Why it can't be transcribed.
    pub failure: Option<Failure>,
}

/// Files in the order given, folders replaced by the recordings in them.
pub fn inspect(paths: impl IntoIterator<Item = PathBuf>) -> Vec<Found> {
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            recordings::in_folder(&path, true, &mut |one| {
                found.push(match one {
                    Ok(file) => check(file),
                    Err(failure) => {
                        Found { file: place(&failure, &path), bytes: None, failure: Some(failure) }
                    }
                });
            });
        } else {
            found.push(check(path));
        }
    }
    found
}

/// Where a failure is, which `searched` led to.
fn place(failure: &Failure, searched: &Path) -> PathBuf {
    failure.file.as_ref().map_or_else(|| searched.into(), |file| file.as_path().into())
}

/// A file as it is now: there, readable and not empty.
pub fn check(file: PathBuf) -> Found {
    match look(&file) {
        Ok(bytes) => Found { file, bytes: Some(bytes), failure: None },
        Err(failure) => Found { failure: Some(failure.file(file.clone())), file, bytes: None },
    }
}

/// The recording that comes with the program: beside the executable, in the
/// package's folder, or in the source checkout that it was built in.
pub fn find_sample() -> Option<PathBuf> {
    let executable = std::env::current_exe().ok()?;
    let beside = executable.parent()?;
    let mut places = vec![beside.to_path_buf(), PathBuf::from("/usr/share/steno")];
    places.extend(beside.parent().map(|prefix| prefix.join("share/steno")));
    // `target/debug/deps` is three levels down.
    let checkout = beside.ancestors().take(4).find(|folder| folder.join("Cargo.lock").is_file());
    places.extend(checkout.map(|folder| folder.join("tests/data")));
    places.into_iter().map(|folder| folder.join("sample.flac")).find(|file| file.is_file())
}

fn look(file: &Path) -> Result<u64, Failure> {
    let meta = fs::metadata(file).map_err(unreadable)?;
    if !meta.is_file() {
        return Err(Failure::new(ErrorCode::NotAFile, "This is neither a file nor a folder.")
            .remedy("Choose an audio or video file."));
    }
    if has_ending(file, OTHERS) {
        return Err(Failure::new(ErrorCode::UnknownFormat, "This is not a recording.")
            .remedy("Choose an audio or video file."));
    }
    if meta.len() == 0 {
        return Err(
            Failure::new(ErrorCode::FileEmpty, "The file is empty.").remedy("Copy or record it again.")
        );
    }
    fs::File::open(file).map_err(unreadable)?;
    Ok(meta.len())
}

fn unreadable(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound => Failure::new(ErrorCode::FileNotFound, "There is no such file.")
            .remedy("It may have been moved or renamed. Choose it again."),
        io::ErrorKind::PermissionDenied => {
            Failure::new(ErrorCode::FileUnreadable, "You are not allowed to read this file.")
                .remedy("Change its permissions, or copy it to a folder of your own.")
        }
        _ => Failure::new(ErrorCode::FileUnreadable, format!("The file can't be read ({error})."))
            .remedy("Check the disk or the network that it is on."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_files_are_named_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("talk.mp3"), "x").unwrap();
        fs::write(path("no ending"), "x").unwrap();
        fs::write(path("empty.wav"), "").unwrap();
        fs::write(path("letter.PDF"), "x").unwrap();
        fs::create_dir(path("nothing here")).unwrap();
        for (name, expected) in [
            ("talk.mp3", None),
            ("no ending", None),
            ("empty.wav", Some(ErrorCode::FileEmpty)),
            ("letter.PDF", Some(ErrorCode::UnknownFormat)),
            ("missing.wav", Some(ErrorCode::FileNotFound)),
            ("nothing here", Some(ErrorCode::NoRecordings)),
        ] {
            let found = inspect([path(name)]);
            assert_eq!(found.len(), 1, "{name}");
            let failure = found[0].failure.as_ref();
            assert_eq!(failure.map(|failure| failure.code), expected, "{name}");
            if let Some(failure) = failure {
                assert_eq!(failure.file.as_ref().unwrap().as_path(), path(name));
                assert!(failure.remedy.is_some(), "{name}");
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_refused_without_waiting_for_it() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.wav");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let found = check(pipe);
        assert_eq!(found.failure.unwrap().code, ErrorCode::NotAFile);
    }
}
