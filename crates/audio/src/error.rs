use std::io;
use std::path::PathBuf;

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

fn detail_text(detail: &Option<String>) -> String {
    detail.as_ref().map(|text| format!(" ({text})")).unwrap_or_default()
}
