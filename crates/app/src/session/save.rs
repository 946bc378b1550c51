//! Where a transcript goes when the window saves it.

use std::path::{Path, PathBuf};

use transcript::export::{Format, Options};
use transcript::naming::{NameFacts, NameTemplate, today};
use transcript::save::{Existing, SaveError};
use transcript::{Span, Time, Transcript};
use wire::Failure;

use super::Exporting;

/// Where to save to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SaveTarget {
    /// In the folder and under the name of the settings, else the recording's; never over another
    /// file unless that was asked for.
    Beside {
        /// Whether a file of that name is replaced.
        replace: bool,
    },
    /// A file that the user chose in a dialog, which asks before it replaces.
    At(PathBuf),
    /// In a folder that the user chose, under the same name.
    Within {
        /// The folder, which is there.
        folder: PathBuf,
        /// Whether a file of that name is replaced.
        replace: bool,
    },
}

/// The folder and the names of files that the user does not choose one by one.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Naming {
    /// `None`: the recording's.
    pub folder: Option<PathBuf>,
    /// `None`: as the recording.
    pub template: Option<NameTemplate>,
}

/// Saves and returns the file written.
///
/// # Errors
/// With the file they are about: [`wire::ErrorCode::OutputExists`] where [`SaveTarget::Beside`] would
/// replace another file, [`wire::ErrorCode::NoChapters`] and [`wire::ErrorCode::NoSpeakers`] where the
/// file would be empty.
pub fn save(
    recording: &Path,
    transcript: &Transcript,
    format: Format,
    options: &Options,
    place: &SaveTarget,
    naming: &Naming,
) -> Result<PathBuf, Failure> {
    let path = name_of(recording, Some(transcript), format, place, naming)
        .unwrap_or_else(|| recording.with_extension(format.extension()));
    transcript::save::check_content(transcript, format, &path).map_err(failure)?;
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

/// What was to be saved when a transcript was finished, and was not.
#[derive(Debug, Clone, PartialEq)]
pub struct Unsaved {
    /// Why, of the first format.
    pub failure: Failure,
    /// The formats that are not written, with their options.
    pub exporting: Exporting,
    /// Where they go.
    pub place: SaveTarget,
}

impl SaveTarget {
    /// The same place, where a file of that name is replaced or not. A file that the user chose is replaced.
    pub fn replacing(self, replace: bool) -> Self {
        match self {
            Self::Beside { .. } => Self::Beside { replace },
            Self::Within { folder, .. } => Self::Within { folder, replace },
            Self::At(path) => Self::At(path),
        }
    }
}

/// Writes a file whole or not at all, over one that a dialog asked about.
///
/// # Errors
/// `DiskFull` or `OutputUnwritable` where it can't be written.
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    transcript::save::write_file(path, Existing::Replace, |out| out.write_all(bytes)).map_err(failure)
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

/// The file that a transcript is saved to: `talk.mp3` becomes `talk.srt`, and the text of a stopped
/// job `talk.partial.srt`, so that it is not mistaken for the whole. `None` where the name can't be
/// known without the transcript.
pub fn name_of(
    recording: &Path,
    transcript: Option<&Transcript>,
    format: Format,
    place: &SaveTarget,
    naming: &Naming,
) -> Option<PathBuf> {
    let folder = match place {
        SaveTarget::At(path) => return Some(path.clone()),
        SaveTarget::Within { folder, .. } => folder.clone(),
        SaveTarget::Beside { .. } => match &naming.folder {
            Some(folder) => folder.clone(),
            None => recording.parent().map(Path::to_path_buf).unwrap_or_default(),
        },
    };
    let stem = recording.file_stem().unwrap_or_default();
    let mut name = match &naming.template {
        Some(template) => {
            let date = today();
            let unknown = NameFacts { name: stem, date: &date, language: None, model: None };
            let facts = transcript.map_or(unknown, |text| NameFacts::of(stem, &date, text));
            template.fill(&facts)?
        }
        None => stem.to_os_string(),
    };
    if transcript.is_some_and(|transcript| !transcript.complete) {
        name.push(".partial");
    }
    name.push(".");
    name.push(format.extension());
    Some(folder.join(name))
}

fn failure(error: SaveError) -> Failure {
    Failure::named(error.code(), &error.message(), Some(error.remedy())).file(error.path())
}

#[cfg(test)]
pub(super) mod tests {
    use wire::ErrorCode;

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
            let (text, place) = (transcript(complete), SaveTarget::Beside { replace: false });
            let name = |naming: &Naming| {
                name_of(Path::new(recording), Some(&text), Format::Srt, &place, naming).unwrap()
            };
            assert_eq!(name(&Naming::default()), Path::new(expected));
            // In the folder and with the name that the settings have.
            let named = |template: &str| Naming {
                folder: Some("/texts".into()),
                template: Some(template.parse().unwrap()),
            };
            assert_eq!(name(&named("{name}")), Path::new("/texts").join(expected));
            let partial = if complete { "" } else { ".partial" };
            let day = today();
            let dated = format!("/texts/{day}-en-m{partial}.srt");
            assert_eq!(name(&named("{date}-{language}-{model}")), Path::new(&dated));
            let before = |template| {
                let place = SaveTarget::Within { folder: "/chosen".into(), replace: false };
                name_of(Path::new(recording), None, Format::Srt, &place, &named(template))
            };
            assert_eq!(before("{language}"), None, "it is not known before");
            assert_eq!(before("{date}"), Some(format!("/chosen/{day}.srt").into()));
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
                &Naming::default(),
            )
        };
        let error = save(false).unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputExists);
        assert_eq!(error.file.unwrap().as_path(), folder.path().join("talk.srt"));
        let path = save(true).unwrap();
        assert!(std::fs::read_to_string(path).unwrap().contains("Good morning."));
    }

    #[test]
    fn a_format_without_content_is_refused_and_no_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("talk.wav");
        let (options, place) = (Options::default(), SaveTarget::Beside { replace: false });
        let save =
            |text: &Transcript, format| save(&recording, text, format, &options, &place, &Naming::default());
        let mut text = transcript(true);
        for (format, code) in [
            (Format::Rttm, ErrorCode::NoSpeakers),
            (Format::Chapters, ErrorCode::NoChapters),
            (Format::ChaptersVtt, ErrorCode::NoChapters),
        ] {
            assert_eq!(save(&text, format).unwrap_err().code, code, "{format}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        text.segments[0].speaker = Some("Ada".into());
        let file = save(&text, Format::Rttm).unwrap();
        assert!(std::fs::read_to_string(file).unwrap().contains("Ada"));
    }

    #[test]
    fn a_translation_is_saved_with_its_original_unless_that_is_switched_off() {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("talk.wav");
        let mut text = transcript(true);
        text.segments[0].translation = Some("Bonjour.".into());
        let place = SaveTarget::Beside { replace: true };
        for translation in [true, false] {
            let exporting = match translation {
                true => Exporting::default(),
                false => Exporting { translation, ..Exporting::default() },
            };
            let file = save(&recording, &text, Format::Srt, &exporting.options(), &place, &Naming::default())
                .unwrap();
            let saved = std::fs::read_to_string(file).unwrap();
            assert!(saved.contains("Good morning."), "{saved}");
            assert_eq!(saved.contains("Bonjour."), translation, "{saved}");
        }
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
            &Naming::default(),
        )
        .unwrap_err();
        assert_eq!(
            (error.code, error.file.unwrap().as_path()),
            (ErrorCode::OutputUnwritable, gone.as_path())
        );
    }

    #[test]
    fn a_name_that_is_too_long_is_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let naming =
            Naming { folder: Some(folder.path().into()), template: Some("x".repeat(300).parse().unwrap()) };
        let place = SaveTarget::Beside { replace: false };
        let text = transcript(true);
        let saved = save(Path::new("talk.wav"), &text, Format::Srt, &Options::default(), &place, &naming);
        let error = saved.unwrap_err();
        assert_eq!(error.code, ErrorCode::OutputNameTooLong);
        assert!(error.remedy.is_some(), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    /// `transcript` does not know the codes: it names them.
    #[test]
    fn every_failure_to_save_has_a_code_of_its_own() {
        let path = || "talk.srt".into();
        for error in [
            SaveError::Exists(path()),
            SaveError::DiskFull(path()),
            SaveError::NameTooLong(path()),
            SaveError::NoFolder(path()),
            SaveError::IsFolder(path()),
            SaveError::NotAllowed(path()),
            SaveError::NoChapters(path()),
            SaveError::NoSpeakers(path()),
            SaveError::NoFont { path: path(), letters: "漢".into() },
            SaveError::Io { path: path(), source: std::io::Error::other("worn") },
        ] {
            let name = error.code();
            let code = failure(error).code;
            assert_eq!(serde_json::to_value(code).unwrap(), name);
        }
    }
}
