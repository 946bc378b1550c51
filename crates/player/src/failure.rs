use std::path::Path;

use audio::AudioError;
use wire::{ErrorCode, Failure, sentence};

/// In the words of the engine's own failures.
pub(crate) fn of(error: &AudioError, path: &Path) -> Failure {
    use ErrorCode as Code;
    let code = match error {
        AudioError::NotFound { .. } => Code::FileNotFound,
        AudioError::Unreadable { .. } => Code::FileUnreadable,
        AudioError::NotAFile { .. } => Code::NotAFile,
        AudioError::Empty { .. } | AudioError::ZeroLength { .. } => Code::FileEmpty,
        AudioError::NoAudioTrack { .. } => Code::NoAudioTrack,
        AudioError::NoSuchTrack { .. } | AudioError::NoSuchChannel { .. } => Code::NoSuchTrack,
        AudioError::UnknownFormat { .. } => Code::UnknownFormat,
        AudioError::NeedsFfmpeg { .. } => Code::NeedsFfmpeg,
        AudioError::UnsupportedCodec { .. } => Code::UnsupportedCodec,
        AudioError::Broken { .. } | AudioError::Ffmpeg { .. } => Code::AudioBroken,
        AudioError::Spool { .. } => Code::DiskFull,
        AudioError::Cancelled => Code::Cancelled,
    };
    // The file is a field of its own.
    let (text, remedy) = error.explain(path);
    let failure = Failure::new(code, sentence(&text)).file(path);
    match remedy {
        Some(remedy) => failure.remedy(remedy),
        None => failure,
    }
}
