use std::path::Path;

use audio::AudioError;
use wire::{ErrorCode, Failure};

/// In the words of the engine's own failures.
pub(crate) fn of(error: &AudioError, path: &Path) -> Failure {
    use ErrorCode as Code;
    let (code, remedy) = match error {
        AudioError::NotFound { .. } => {
            (Code::FileNotFound, Some("Put it back where it was, or add it again from where it is now."))
        }
        AudioError::Unreadable { .. } => (Code::FileUnreadable, None),
        AudioError::NotAFile { .. } => (Code::NotAFile, None),
        AudioError::Empty { .. } | AudioError::ZeroLength { .. } => (Code::FileEmpty, None),
        AudioError::NoAudioTrack { .. } => (Code::NoAudioTrack, None),
        AudioError::NoSuchTrack { .. } | AudioError::NoSuchChannel { .. } => (Code::NoSuchTrack, None),
        AudioError::UnknownFormat { .. } => (Code::UnknownFormat, None),
        AudioError::NeedsFfmpeg { .. } => (Code::NeedsFfmpeg, None),
        AudioError::UnsupportedCodec { .. } => (Code::UnsupportedCodec, None),
        AudioError::Broken { .. } | AudioError::Ffmpeg { .. } => (Code::AudioBroken, None),
        AudioError::Spool { .. } => (Code::DiskFull, Some("Make room there.")),
        AudioError::Cancelled => (Code::Cancelled, None),
    };
    // The file is a field of its own; the text should not name it twice.
    let text = error.to_string();
    let text = text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text);
    let stop = if text.ends_with('.') { "" } else { "." };
    let failure = Failure::new(code, format!("This recording cannot be played: {text}{stop}")).file(path);
    match remedy {
        Some(remedy) => failure.remedy(remedy),
        None => failure,
    }
}
