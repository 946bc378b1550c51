//! Where a transcript goes when the window saves it.

use std::path::{Path, PathBuf};

use transcript::export::{Format, Options};
use transcript::save::{Existing, SaveError};
use transcript::{Span, Time, Transcript};
use wire::{ErrorCode, Failure};

/// Where to save to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveTarget {
    /// In the recording's folder, under the recording's name; never over
    /// another file unless that was asked for.
    Beside {
        /// Whether a file of that name is replaced.
        replace: bool,
    },
    /// A file that the user chose in a dialog, which asks before it replaces.
    At(PathBuf),
    /// In a folder that the user chose, under the recording's name.
    Within {
        /// The folder, which is there.
        folder: PathBuf,
        /// Whether a file of that name is replaced.
        replace: bool,
    },
}

/// Saves and returns the file written.
///
/// # Errors
/// With the file they are about, and [`ErrorCode::OutputExists`] where
/// [`SaveTarget::Beside`] would replace another file.
pub fn save(
    recording: &Path,
    transcript: &Transcript,
    format: Format,
    options: &Options,
    place: &SaveTarget,
) -> Result<PathBuf, Failure> {
    let path = name_of(recording, transcript.complete, format, place);
    let existing = match place {
        SaveTarget::At(_)
        | SaveTarget::Beside { replace: true }
        | SaveTarget::Within { replace: true, .. } => Existing::Replace,
        SaveTarget::Beside { .. } | SaveTarget::Within { .. } => Existing::Keep,
    };
    transcript::save::save(transcript, format, options, &path, existing).map_err(failure)?;
    Ok(path)
}

/// What came of saving in several formats.
#[derive(Debug, Default)]
pub struct Written {
    /// The files that were written.
    pub files: Vec<PathBuf>,
    /// The formats that were not written, with the reason.
    pub failures: Vec<(Format, Failure)>,
}

impl FromIterator<(Format, Result<PathBuf, Failure>)> for Written {
    fn from_iter<I: IntoIterator<Item = (Format, Result<PathBuf, Failure>)>>(saved: I) -> Self {
        let mut written = Self::default();
        for (format, saved) in saved {
            match saved {
                Ok(file) => written.files.push(file),
                Err(failure) => written.failures.push((format, failure)),
            }
        }
        written
    }
}

/// Writes a file whole or not at all, over one that a dialog asked about.
///
/// # Errors
/// `DiskFull` or `OutputUnwritable` where it can't be written.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    transcript::save::write_file(path, Existing::Replace, |out| out.write_all(bytes)).map_err(failure)
}

/// `talk.mp3` becomes `talk.srt`; the text of a stopped job becomes `talk.partial.srt`,
/// so that it is not mistaken for the whole.
pub fn beside(recording: &Path, complete: bool, format: Format) -> PathBuf {
    let ending =
        if complete { format.extension().to_owned() } else { format!("partial.{}", format.extension()) };
    recording.with_extension(ending)
}

/// What the sound of a part of a recording is called: `talk.mp3` becomes `talk 0.12.30-0.13.05.wav`.
pub fn clip_name(recording: &Path, part: Span) -> PathBuf {
    let clock = |time: Time| {
        let seconds = time.millis() / 1000;
        format!("{}.{:02}.{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    };
    let mut name = recording.file_stem().unwrap_or_default().to_owned();
    name.push(format!(" {}-{}.wav", clock(part.start), clock(part.end)));
    recording.with_file_name(name)
}

/// The file that a transcript is saved to.
pub fn name_of(recording: &Path, complete: bool, format: Format, place: &SaveTarget) -> PathBuf {
    let beside = beside(recording, complete, format);
    match place {
        SaveTarget::Beside { .. } => beside,
        SaveTarget::At(path) => path.clone(),
        SaveTarget::Within { folder, .. } => folder.join(beside.file_name().unwrap_or_default()),
    }
}

fn failure(error: SaveError) -> Failure {
    let code = match &error {
        SaveError::Exists(_) => ErrorCode::OutputExists,
        SaveError::DiskFull(_) => ErrorCode::DiskFull,
        SaveError::NoFolder(_)
        | SaveError::IsFolder(_)
        | SaveError::NotAllowed(_)
        | SaveError::NameTooLong(_)
        | SaveError::NoFont { .. }
        | SaveError::Io { .. } => ErrorCode::OutputUnwritable,
    };
    Failure::new(code, error.message()).file(error.path()).remedy(error.remedy())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub fn transcript(complete: bool) -> Transcript {
        let json = format!(
            r#"{{"schema_version": 1, "complete": {complete}, "language": "en", "task": "transcribe", "settings": null,
            "source": {{"name": "talk", "duration": 1, "sample_rate": 16000, "channels": 1, "format": "wav"}},
            "model": {{"name": "m", "precision": "f32", "demonstration": false}},
            "segments": [{{"start": 0, "end": 0.9, "text": "Good morning."}}],
            "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
        );
        Transcript::from_json(json.as_bytes()).unwrap()
    }

    #[test]
    fn the_recordings_name_is_kept_whatever_it_is() {
        for (recording, complete, expected) in [
            ("talk.mp3", true, "talk.srt"),
            ("talk", true, "talk.srt"),
            ("Gespräch 1.2.wav", true, "Gespräch 1.2.srt"),
            ("talk.mp3", false, "talk.partial.srt"),
        ] {
            assert_eq!(beside(Path::new(recording), complete, Format::Srt), Path::new(expected));
        }
    }

    #[test]
    fn a_clip_is_called_after_its_part() {
        let part = Span::new(Time::from_millis(750_400), Time::from_millis(3_785_000));
        assert_eq!(clip_name(Path::new("/a/talk.mp3"), part), Path::new("/a/talk 0.12.30-1.03.05.wav"));
    }

    #[test]
    fn a_file_in_the_way_is_kept_until_the_user_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("talk.wav");
        std::fs::write(folder.path().join("talk.srt"), "mine").unwrap();
        let save = |replace| {
            save(
                &recording,
                &transcript(true),
                Format::Srt,
                &Options::default(),
                &SaveTarget::Beside { replace },
            )
        };
        let error = save(false).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputExists);
        assert_eq!(error.file.unwrap().as_path(), folder.path().join("talk.srt"));
        let path = save(true).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().contains("Good morning."));
    }

    #[test]
    fn a_folder_that_is_gone_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let error = save(
            &gone.join("talk.wav"),
            &transcript(true),
            Format::Txt,
            &Options::default(),
            &SaveTarget::Beside { replace: false },
        )
        .unwrap_err();
        assert_eq!(
            (error.code, error.file.unwrap().as_path()),
            (ErrorCode::OutputUnwritable, gone.as_path())
        );
    }
}
