//! Writing files to disk: completely or not at all, and over an existing file
//! only on request.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Transcript;
use crate::export::{self, Format, NoFont, Options};

/// Why a file was not written. The message names the file, what is wrong and
/// what to do.
#[derive(Debug)]
pub enum SaveError {
    /// The file exists and may not be replaced.
    Exists(PathBuf),
    /// The disk or the user's quota is full.
    DiskFull(PathBuf),
    /// This folder does not exist.
    NoFolder(PathBuf),
    /// The path is an existing folder's.
    IsFolder(PathBuf),
    /// The user may not write here, or the file system is read-only.
    NotAllowed(PathBuf),
    /// The file system does not accept the name.
    NameTooLong(PathBuf),
    /// The format needs fonts, and no installed one has these letters.
    NoFont {
        /// The file that was to be written.
        path: PathBuf,
        /// Some of the letters.
        letters: String,
    },
    /// The format holds the chapters, and the transcript has none.
    NoChapters(PathBuf),
    /// The format holds who speaks when, and the transcript has no speakers.
    NoSpeakers(PathBuf),
    /// Any other error of the system.
    Io {
        /// The file that was to be written.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl SaveError {
    fn new(path: &Path, source: io::Error) -> Self {
        use io::ErrorKind::{
            AlreadyExists, InvalidFilename, NotADirectory, NotFound, PermissionDenied, QuotaExceeded,
            ReadOnlyFilesystem, StorageFull, Unsupported,
        };
        let path = path.to_path_buf();
        match source.kind() {
            AlreadyExists => Self::Exists(path),
            StorageFull | QuotaExceeded => Self::DiskFull(path),
            NotFound | NotADirectory => Self::NoFolder(parent(&path).into()),
            PermissionDenied | ReadOnlyFilesystem => Self::NotAllowed(path),
            InvalidFilename => Self::NameTooLong(path),
            Unsupported => match source.get_ref().and_then(|inner| inner.downcast_ref::<NoFont>()) {
                Some(NoFont(letters)) => Self::NoFont { path, letters: letters.clone() },
                None => Self::Io { path, source },
            },
            _ => Self::Io { path, source },
        }
    }

    /// A stable name of what is wrong, for programs to branch on. It is one of the names that
    /// `wire::ErrorCode` has in JSON; this crate does not know `wire`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Exists(_) => "output_exists",
            Self::DiskFull(_) => "disk_full",
            Self::NameTooLong(_) => "output_name_too_long",
            Self::NoChapters(_) => "no_chapters",
            Self::NoSpeakers(_) => "no_speakers",
            Self::NoFolder(_)
            | Self::IsFolder(_)
            | Self::NotAllowed(_)
            | Self::NoFont { .. }
            | Self::Io { .. } => "output_unwritable",
        }
    }

    /// The file or folder that the message is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Exists(path)
            | Self::DiskFull(path)
            | Self::NoFolder(path)
            | Self::IsFolder(path)
            | Self::NotAllowed(path)
            | Self::NameTooLong(path)
            | Self::NoChapters(path)
            | Self::NoSpeakers(path)
            | Self::NoFont { path, .. }
            | Self::Io { path, .. } => path,
        }
    }

    /// One sentence that says what is wrong.
    pub fn message(&self) -> String {
        match self {
            Self::Exists(_) => "The file already exists.".into(),
            Self::DiskFull(_) => "The disk is full.".into(),
            Self::NoFolder(_) => "There is no such folder.".into(),
            Self::IsFolder(_) => "A folder with this name already exists.".into(),
            Self::NotAllowed(_) => "You don't have permission to write here.".into(),
            Self::NameTooLong(_) => "The file system does not allow this name; it may be too long.".into(),
            Self::NoChapters(_) => "The transcript has no chapters.".into(),
            Self::NoSpeakers(_) => "The transcript has no speakers.".into(),
            Self::NoFont { letters, .. } => format!("No installed font has these letters: {letters}"),
            Self::Io { source, .. } => format!("The file could not be written ({source})."),
        }
    }

    /// One sentence that says what to do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Exists(_) => "Replace it, or choose another folder.",
            Self::DiskFull(_) => "Free some disk space, or choose a folder on another disk.",
            Self::NoFolder(_) => "Create it first, or choose another folder.",
            Self::NameTooLong(_) => "Choose a shorter name or name template.",
            Self::NoChapters(_) => "Find them first: `steno chapters --save`, or in the window.",
            Self::NoSpeakers(_) => "Find them first: `steno speakers`, or in the window.",
            Self::NoFont { .. } => "Install a font that has them, or choose another format, such as docx.",
            Self::IsFolder(_) | Self::NotAllowed(_) | Self::Io { .. } => "Choose another folder.",
        }
    }
}

impl fmt::Display for SaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}", self.path().display(), self.message(), self.remedy())
    }
}

impl std::error::Error for SaveError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// What happens to a file that exists already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Existing {
    /// It stays, and saving fails with [`SaveError::Exists`].
    #[default]
    Keep,
    /// It is replaced.
    Replace,
}

/// Checks whether a format would hold anything of this transcript; `path` is the file that it would be.
///
/// # Errors
/// [`SaveError::NoChapters`] or [`SaveError::NoSpeakers`].
pub fn check_content(transcript: &Transcript, format: Format, path: &Path) -> Result<(), SaveError> {
    match format {
        Format::Chapters | Format::ChaptersVtt if transcript.placed_chapters().is_empty() => {
            Err(SaveError::NoChapters(path.into()))
        }
        Format::Rttm if crate::speakers::current_turns(transcript).is_empty() => {
            Err(SaveError::NoSpeakers(path.into()))
        }
        _ => Ok(()),
    }
}

/// Exports a transcript to a file, see [`write_file`].
///
/// # Errors
/// If the file can't be written; no partial file stays behind.
pub fn save(
    transcript: &Transcript,
    format: Format,
    options: &Options,
    path: &Path,
    existing: Existing,
) -> Result<(), SaveError> {
    write_file(path, existing, |out| export::export(transcript, format, options, out))
}

/// Length in bytes of a name that is cut. Most file systems have room for 255 with the ending, those that
/// encrypt names for 143.
const LONGEST_CUT: usize = 120;

/// Saves the partial result of a cancelled or failed job as
/// `NAME.partial.json` in `folder`. An earlier partial result may be longer, so
/// it is kept and the new one is numbered: `NAME.partial-2.json`. A name that is too
/// long for the file system is cut, as this text is to be kept in any case. Returns the
/// path of the new file.
///
/// # Errors
/// As for [`save`], but never [`SaveError::Exists`].
pub fn save_partial(
    transcript: &Transcript,
    options: &Options,
    folder: &Path,
    name: &std::ffi::OsStr,
) -> Result<PathBuf, SaveError> {
    let mut name: OsString = name.into();
    let mut number = 1;
    loop {
        let mut file = name.clone();
        file.push(if number == 1 { ".partial.json".into() } else { format!(".partial-{number}.json") });
        let path = folder.join(file);
        match save(transcript, Format::Json, options, &path, Existing::Keep) {
            Err(SaveError::Exists(_)) => number += 1,
            Err(SaveError::NameTooLong(_)) if name.len() > LONGEST_CUT => {
                let text = name.to_string_lossy();
                name = text[..text.floor_char_boundary(LONGEST_CUT)].into();
            }
            Err(error) => return Err(error),
            Ok(()) => return Ok(path),
        }
    }
}

/// Checks, before hours of work, whether [`write_file`] would fail at their end
/// because of an existing file or folder, or a name that the file system refuses.
///
/// # Errors
/// [`SaveError::Exists`], [`SaveError::IsFolder`] or [`SaveError::NameTooLong`].
pub fn check_free(path: &Path, existing: Existing) -> Result<(), SaveError> {
    // A dangling symbolic link counts as an existing file.
    match fs::symlink_metadata(path) {
        Ok(_) if path.is_dir() => Err(SaveError::IsFolder(path.into())),
        Ok(_) if existing == Existing::Keep => Err(SaveError::Exists(path.into())),
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => Err(SaveError::new(path, error)),
        _ => Ok(()),
    }
}

/// Checks whether files can be written in `folder` by creating a temporary one.
///
/// # Errors
/// The error that [`write_file`] would give.
pub fn check_writable(folder: &Path) -> Result<(), SaveError> {
    match temporary_file(folder) {
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Err(SaveError::NoFolder(folder.into()))
        }
        Err(error) => Err(SaveError::new(folder, error)),
    }
}

/// Writes `content` to a temporary file in the target's folder, flushes it to
/// the disk and renames it. Readers see the old content or the new one, and a
/// crash leaves no partial file under this name.
///
/// # Errors
/// If `content` fails or the file can't be written; an existing file is unchanged then.
pub fn write_file(
    path: &Path,
    existing: Existing,
    content: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), SaveError> {
    let failed = |error| SaveError::new(path, error);
    check_free(path, existing)?;
    // Renaming over a symbolic link would replace the link and not its target.
    let target = match existing {
        Existing::Replace => fs::canonicalize(path).unwrap_or_else(|_| path.into()),
        Existing::Keep => path.into(),
    };
    let folder = parent(&target);
    let mut out = BufWriter::new(temporary_file(folder).map_err(failed)?);
    content(&mut out).map_err(failed)?;
    let file = out.into_inner().map_err(|error| failed(error.into_error()))?;
    if existing == Existing::Replace
        && let Ok(before) = fs::metadata(&target)
    {
        // Best effort: some file systems have no permissions.
        let _ = file.as_file().set_permissions(before.permissions());
    }
    file.as_file().sync_all().map_err(failed)?;
    match existing {
        Existing::Replace => file.persist(&target).map_err(|error| failed(error.error))?,
        Existing::Keep => persist_new(file, &target).map_err(failed)?,
    };
    sync_folder(folder);
    Ok(())
}

/// Renames without replacing. `persist_noclobber` needs a rename that refuses to
/// replace, or hard links; on file systems that have neither (FAT, some network
/// shares) the target is checked just before the rename.
fn persist_new(file: tempfile::NamedTempFile, target: &Path) -> io::Result<File> {
    match file.persist_noclobber(target) {
        Ok(file) => Ok(file),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Err(error.error),
        Err(error) => {
            if fs::symlink_metadata(target).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            error.file.persist(target).map_err(|error| error.error)
        }
    }
}

/// How old a temporary file without a writer is, at least, when it is removed: between its
/// making and its lock is a moment.
const STALE: Duration = Duration::from_secs(60);
const PREFIX: &str = ".steno-";
const SUFFIX: &str = ".tmp";

/// Removes what programs left in a folder that were killed while they wrote: files of ours
/// that no process holds the lock of. Once per folder and process.
fn remove_leftovers(folder: &Path) {
    static SEEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    if SEEN.lock().unwrap_or_else(PoisonError::into_inner).insert(folder.into()) {
        remove_older_than(folder, STALE);
    }
}

fn remove_older_than(folder: &Path, age: Duration) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.as_encoded_bytes();
        if !(name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())) {
            continue;
        }
        // Another user's file can't be opened, and one that is written to can't be locked.
        let is_old = |file: &File| file.metadata()?.modified()?.elapsed().map_err(io::Error::other);
        let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
        if is_old(&file).is_ok_and(|passed| passed >= age) && file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A temporary file that is removed on drop, and locked until then. It gets the permissions of any new
/// file of the user, as the renamed file keeps them.
fn temporary_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    remove_leftovers(folder);
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX).suffix(SUFFIX);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    // Without locks on this file system its age alone protects it.
    let _ = file.as_file().try_lock();
    Ok(file)
}

/// The folder of a path; `.` for a file name alone.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Flushes the folder, without which a crash can undo the rename. The content is
/// on the disk by now, so failures are ignored.
fn sync_folder(folder: &Path) {
    #[cfg(unix)]
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    #[cfg(not(unix))]
    let _ = folder;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::tests::{segment, transcript};

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn letters_without_a_font_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.pdf");
        let said = transcript(vec![segment(0, 1_000, "\u{10d50}")]);
        let error = save(&said, Format::Pdf, &Options::default(), &path, Existing::Keep).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("these letters: \u{10d50} Install a font") && text.contains("docx"), "{text}");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn existing_files_are_kept_unless_replacing_is_requested() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.srt");
        let write =
            |existing, text: &'static str| write_file(&path, existing, |out| out.write_all(text.as_bytes()));
        write(Existing::Keep, "first").unwrap();
        let error = write(Existing::Keep, "second").unwrap_err();
        assert!(matches!(error, SaveError::Exists(_)), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        write(Existing::Replace, "third").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "third");
        assert_eq!(names(folder.path()), ["talk.srt"]);
    }

    #[test]
    fn a_file_created_during_the_write_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.srt");
        let error = write_file(&path, Existing::Keep, |out| {
            fs::write(&path, "theirs")?;
            out.write_all(b"ours")
        });
        assert!(matches!(error, Err(SaveError::Exists(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(names(folder.path()), ["talk.srt"]);
    }

    #[test]
    fn a_failure_while_writing_leaves_the_old_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("talk.srt");
        fs::write(&path, "old").unwrap();
        for (kind, expected) in [
            (io::ErrorKind::StorageFull, "disk is full"),
            (io::ErrorKind::QuotaExceeded, "disk is full"),
            (io::ErrorKind::Other, "could not be written"),
        ] {
            let error = write_file(&path, Existing::Replace, |out| {
                out.write_all(&[b'x'; 100_000])?;
                Err(kind.into())
            })
            .unwrap_err()
            .to_string();
            assert!(error.contains("talk.srt: ") && error.contains(expected), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
            assert_eq!(names(folder.path()), ["talk.srt"]);
        }
    }

    #[test]
    fn errors_name_missing_folders_and_folders_at_the_target() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("none");
        let error = write_file(&missing.join("a.srt"), Existing::Keep, |_| Ok(())).unwrap_err();
        assert!(matches!(&error, SaveError::NoFolder(path) if *path == missing), "{error}");
        assert!(matches!(check_writable(&missing), Err(SaveError::NoFolder(path)) if path == missing));
        for existing in [Existing::Keep, Existing::Replace] {
            let error = write_file(folder.path(), existing, |_| Ok(())).unwrap_err();
            assert!(matches!(error, SaveError::IsFolder(_)), "{error}");
        }
        check_writable(folder.path()).unwrap();
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn partial_results_are_numbered_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let first = transcript(vec![segment(0, 1000, "a"), segment(1000, 2000, "b")]);
        let second = transcript(vec![segment(0, 1000, "a")]);
        let name = std::ffi::OsStr::new("talk");
        let first_path = save_partial(&first, &Options::default(), folder.path(), name).unwrap();
        let second_path = save_partial(&second, &Options::default(), folder.path(), name).unwrap();
        assert_eq!(names(folder.path()), ["talk.partial-2.json", "talk.partial.json"]);
        assert_eq!(Transcript::load(&first_path).unwrap(), first);
        assert_eq!(Transcript::load(&second_path).unwrap(), second);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn names_without_room_for_their_ending_are_found_early_and_cut_for_what_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let name = "é".repeat(126);
        let talk = transcript(vec![segment(0, 1000, "a")]);
        let path = |ending: &str| folder.path().join(format!("{name}{ending}"));
        check_free(&path(""), Existing::Keep).unwrap();
        for existing in [Existing::Keep, Existing::Replace] {
            let error = check_free(&path(".json"), existing).unwrap_err();
            assert!(matches!(&error, SaveError::NameTooLong(it) if *it == path(".json")), "{error:?}");
        }
        for number in ["", "-2"] {
            let kept = save_partial(&talk, &Options::default(), folder.path(), name.as_ref()).unwrap();
            let expected = format!("{}.partial{number}.json", "é".repeat(LONGEST_CUT / 2));
            assert_eq!(kept.file_name().unwrap().to_str(), Some(expected.as_str()));
            assert_eq!(Transcript::load(&kept).unwrap(), talk);
        }
    }

    #[test]
    fn what_a_killed_program_left_is_removed_and_what_is_being_written_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        for name in [".steno-dead.tmp", ".steno-notes", "talk.tmp"] {
            fs::write(place(name), "half").unwrap();
        }
        let writing = temporary_file(folder.path()).unwrap();
        // A young one may be about to be locked.
        assert!(place(".steno-dead.tmp").exists());
        remove_older_than(folder.path(), Duration::ZERO);
        assert!(writing.path().exists() && !place(".steno-dead.tmp").exists());
        assert!(place(".steno-notes").exists() && place("talk.tmp").exists());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_and_permissions_kept_when_replacing() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real.srt"), folder.path().join("link.srt"));
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o604)).unwrap();
        symlink(&real, &link).unwrap();
        write_file(&link, Existing::Replace, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&real).unwrap(), "new");
        assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o604);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_unicode_work() {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.srt"));
        write_file(&path, Existing::Keep, |out| out.write_all(b"text")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }
}
