use std::io;
use std::path::{Path, PathBuf};

/// Why a recording could not be opened, read or prepared. Every variant that
/// concerns the recording names it; the text says what is wrong and, where the
/// user can do something, what.
#[derive(Debug, thiserror::Error)]
pub enum AudioError {
    #[error("{path}: there is no such file", path = .path.display())]
    NotFound { path: PathBuf },
    #[error("{path}: cannot be read: {source}. Check its permissions.", path = .path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// A folder, a pipe, a device.
    #[error("{path}: is {what}, not a file. Choose an audio or video file.", path = .path.display())]
    NotAFile { path: PathBuf, what: &'static str },
    #[error("{path}: is empty (0 bytes)", path = .path.display())]
    Empty { path: PathBuf },
    #[error("{path}: holds no audio track", path = .path.display())]
    NoAudioTrack { path: PathBuf },
    #[error("{path}: has no audio track {track}; it has {available}, counted from 0", path = .path.display())]
    NoSuchTrack { path: PathBuf, track: usize, available: usize },
    #[error("{path}: has no channel {channel}; it has {available}, counted from 0", path = .path.display())]
    NoSuchChannel { path: PathBuf, channel: usize, available: usize },
    /// Neither we nor, where there is one, `ffmpeg` knows what this is.
    #[error("{path}: is not a known audio or video format{}", detail_text(.detail), path = .path.display())]
    UnknownFormat { path: PathBuf, detail: Option<String> },
    #[error(
        "{path}: {what} can only be decoded with ffmpeg, which was not found. \
         Install ffmpeg, or name its executable in STENO_FFMPEG.",
        path = .path.display()
    )]
    NeedsFfmpeg { path: PathBuf, what: String },
    /// `ffmpeg` was asked and cannot decode it either.
    #[error("{path}: {codec} cannot be decoded{}", detail_text(.detail), path = .path.display())]
    UnsupportedCodec { path: PathBuf, codec: String, detail: Option<String> },
    /// Nothing of the recording could be decoded.
    #[error("{path}: is damaged, nothing of it could be decoded ({detail})", path = .path.display())]
    Broken { path: PathBuf, detail: String },
    #[error("{path}: holds zero seconds of sound", path = .path.display())]
    ZeroLength { path: PathBuf },
    #[error("{path}: ffmpeg could not be run: {source}", path = .path.display())]
    Ffmpeg { path: PathBuf, source: io::Error },
    /// The temporary file that long recordings are kept in.
    #[error("the decoded sound could not be kept in {folder}: {source}", folder = .folder.display())]
    Spool { folder: PathBuf, source: io::Error },
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
            Self::NoAudioTrack { .. } => "no_audio_track",
            Self::NoSuchTrack { .. } | Self::NoSuchChannel { .. } => "no_such_track",
            Self::UnknownFormat { .. } => "unknown_format",
            Self::NeedsFfmpeg { .. } => "needs_ffmpeg",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::Broken { .. } | Self::Ffmpeg { .. } => "audio_broken",
            Self::Spool { .. } => "disk_full",
            Self::Cancelled => "cancelled",
        }
    }

    /// What is wrong with the recording at `path`, in a text that does not name
    /// it, and what to do where the text doesn't say that.
    pub fn explain(&self, path: &Path) -> (String, Option<&'static str>) {
        let text = self.to_string();
        let text = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
        // Without the name before it the sentence needs another subject.
        let verbs = ["is ", "has ", "holds ", "cannot "];
        let subject = if verbs.iter().any(|verb| text.starts_with(verb)) { "the file " } else { "" };
        (format!("{subject}{text}"), self.remedy())
    }

    fn remedy(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotFound { .. } => "Check its name and its folder, or put it back where it was.",
            Self::Empty { .. } | Self::ZeroLength { .. } => "Copy or record it again.",
            Self::NoAudioTrack { .. } => "Choose a recording with sound.",
            Self::NoSuchTrack { .. } => "Choose one of them.",
            Self::NoSuchChannel { .. } => "Choose one of them, or mix all channels.",
            Self::UnknownFormat { .. } => {
                "Choose an audio or video file. If it is one, convert it to wav or flac first."
            }
            Self::UnsupportedCodec { .. } => "Convert it to wav or flac first.",
            Self::Broken { .. } => {
                "Copy it again from where it came from, or have another program repair it."
            }
            Self::Ffmpeg { .. } => "Install ffmpeg again, or name its executable in STENO_FFMPEG.",
            Self::Spool { .. } => "Make room there, or choose another temporary folder.",
            Self::Unreadable { .. } | Self::NotAFile { .. } | Self::NeedsFfmpeg { .. } | Self::Cancelled => {
                return None;
            }
        })
    }
}

fn detail_text(detail: &Option<String>) -> String {
    detail.as_ref().map(|text| format!(" ({text})")).unwrap_or_default()
}
