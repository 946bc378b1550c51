//! Errors, and how to explain them to a user.

use std::io;
use std::path::{Path, PathBuf};

/// What [`AudioError::NotAFile`] calls a named pipe.
pub(crate) const PIPE: &str = "a pipe";

/// Why a recording could not be opened, decoded or prepared. The text names the
/// recording and says what is wrong.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the fields are explained by the messages above them")]
pub enum AudioError {
    /// The file does not exist.
    #[error("{path}: there is no such file", path = .path.display())]
    NotFound { path: PathBuf },
    /// The file can't be opened or read.
    #[error("{path}: cannot be read: {source}. Check its permissions.", path = .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The path is a folder's, a pipe's or a device's.
    #[error("{path}: is {what}, not a file", path = .path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    /// The file has no bytes.
    #[error("{path}: is empty (0 bytes)", path = .path.display())]
    Empty { path: PathBuf },
    /// An MP4 file without the index that stands at its end.
    #[error("{path}: is incomplete: the index at its end is missing", path = .path.display())]
    Incomplete { path: PathBuf },
    /// The file has no audio track.
    #[error("{path}: has no audio track", path = .path.display())]
    NoAudioTrack { path: PathBuf },
    /// The file has fewer audio tracks.
    #[error("{path}: has no audio track {}; it has {available}", .track + 1, path = .path.display())]
    NoSuchTrack { path: PathBuf, track: usize, available: usize },
    /// The track has fewer channels.
    #[error("{path}: has no channel {}; it has {available}", .channel + 1, path = .path.display())]
    NoSuchChannel { path: PathBuf, channel: usize, available: usize },
    /// The file is a list of other files or addresses, which a decoder would open in its place.
    #[error("{path}: is {what}, not a recording", path = .path.display())]
    Playlist { path: PathBuf, what: &'static str },
    /// The file declares what no recording has.
    #[error("{path}: is damaged: it declares {what}", path = .path.display())]
    Implausible { path: PathBuf, what: String },
    /// Neither this crate nor an installed `ffmpeg` recognises the format.
    #[error("{path}: is not a known audio or video format{}", detail_text(.detail), path = .path.display())]
    UnknownFormat { path: PathBuf, detail: Option<String> },
    /// Only `ffmpeg` can decode it, and none is installed.
    #[error(
        "{path}: {what} can only be decoded with ffmpeg, which was not found. \
         Install ffmpeg, or name its executable in STENO_FFMPEG.",
        path = .path.display()
    )]
    NeedsFfmpeg { path: PathBuf, what: String },
    /// An installed `ffmpeg` can't decode it either.
    #[error("{path}: {codec} cannot be decoded{}", detail_text(.detail), path = .path.display())]
    UnsupportedCodec { path: PathBuf, codec: String, detail: Option<String> },
    /// Nothing of the recording could be decoded.
    #[error("{path}: is damaged: nothing could be decoded ({detail})", path = .path.display())]
    Broken { path: PathBuf, detail: String },
    /// The recording has no samples.
    #[error("{path}: has no sound (0 seconds)", path = .path.display())]
    ZeroLength { path: PathBuf },
    /// The `ffmpeg` process could not be started.
    #[error("{path}: ffmpeg could not be run: {source}", path = .path.display())]
    Ffmpeg { path: PathBuf, source: io::Error },
    /// The temporary file of a long recording could not be written or read.
    #[error("the decoded sound could not be saved in {folder}: {source}", folder = .folder.display())]
    Spool { folder: PathBuf, source: io::Error },
    /// The caller cancelled.
    #[error("cancelled")]
    Cancelled,
}

impl AudioError {
    /// A stable name of what is wrong, for programs to branch on. It is one of
    /// the names that `wire::ErrorCode` has in JSON; `wire` depends on no
    /// audio, so that the two meet in a test of `player`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "file_not_found",
            Self::Unreadable { .. } => "file_unreadable",
            Self::NotAFile { .. } => "not_a_file",
            Self::Empty { .. } | Self::ZeroLength { .. } => "file_empty",
            Self::Incomplete { .. } => "file_incomplete",
            Self::NoAudioTrack { .. } => "no_audio_track",
            Self::NoSuchTrack { .. } | Self::NoSuchChannel { .. } => "no_such_track",
            Self::UnknownFormat { .. } | Self::Playlist { .. } => "unknown_format",
            Self::NeedsFfmpeg { .. } => "needs_ffmpeg",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::Broken { .. } | Self::Implausible { .. } | Self::Ffmpeg { .. } => "audio_broken",
            Self::Spool { .. } => "disk_full",
            Self::Cancelled => "cancelled",
        }
    }

    /// A text that says what is wrong without naming the recording, which is at
    /// `path`, and a sentence that says what to do if the text doesn't.
    pub fn explain(&self, path: &Path) -> (String, Option<&'static str>) {
        let text = self.to_string();
        let text = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
        // Without the name the sentence needs a subject.
        let verbs = ["is ", "has ", "cannot "];
        let subject = if verbs.iter().any(|verb| text.starts_with(verb)) { "the file " } else { "" };
        (format!("{subject}{text}"), self.remedy())
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound { .. } => "Check its name and its folder.",
            Self::Empty { .. } | Self::ZeroLength { .. } => "Copy or record it again.",
            Self::Incomplete { .. } => {
                "Copy it again from its source. A recording that was interrupted needs a program that repairs it."
            }
            Self::NoAudioTrack { .. } => "Choose a recording with sound.",
            Self::NoSuchTrack { .. } => "Choose one of them.",
            Self::NoSuchChannel { .. } => "Choose one of them, or mix all channels.",
            Self::UnknownFormat { .. } => {
                "Choose an audio or video file. If it is one, convert it to wav or flac first."
            }
            Self::UnsupportedCodec { .. } => "Convert it to wav or flac first.",
            Self::NotAFile { what: PIPE, .. } => {
                "Save what comes from it to a file; `steno transcribe - < PIPE` reads it from standard input."
            }
            Self::NotAFile { .. } => "Choose an audio or video file.",
            Self::Playlist { .. } => "Choose the recordings that it lists.",
            Self::Broken { .. } | Self::Implausible { .. } => {
                "Copy it again from its source, or repair it with another program."
            }
            Self::Ffmpeg { .. } => "Install ffmpeg again, or name its executable in STENO_FFMPEG.",
            Self::Spool { .. } => "Free some space there, or set TMPDIR to another folder.",
            Self::Unreadable { .. } | Self::NeedsFfmpeg { .. } | Self::Cancelled => return None,
        })
    }
}

fn detail_text(detail: &Option<String>) -> String {
    detail.as_ref().map(|text| format!(" ({text})")).unwrap_or_default()
}
