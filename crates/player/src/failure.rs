use std::path::Path;

use audio::AudioError;
use wire::Failure;

/// The failure that an engine reports for the same error.
pub(crate) fn of(error: &AudioError, path: &Path) -> Failure {
    // The file is a field of its own, so the text leaves it out.
    let (text, remedy) = error.explain(path);
    Failure::named(error.code(), &text, remedy).file(path)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use wire::ErrorCode;

    use super::*;

    #[test]
    fn every_audio_error_has_its_wire_code() {
        let path = || PathBuf::from("talk.wav");
        let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
        let (detail, codec, what) = (None, String::new(), String::new());
        for (error, expected) in [
            (AudioError::NotFound { path: path() }, ErrorCode::FileNotFound),
            (AudioError::Unreadable { path: path(), source: denied() }, ErrorCode::FileUnreadable),
            (AudioError::NotAFile { path: path(), what: "a folder" }, ErrorCode::NotAFile),
            (AudioError::Empty { path: path() }, ErrorCode::FileEmpty),
            (AudioError::ZeroLength { path: path() }, ErrorCode::FileEmpty),
            (AudioError::Incomplete { path: path() }, ErrorCode::FileIncomplete),
            (AudioError::NoAudioTrack { path: path() }, ErrorCode::NoAudioTrack),
            (AudioError::NoSuchTrack { path: path(), track: 1, available: 1 }, ErrorCode::NoSuchTrack),
            (AudioError::NoSuchChannel { path: path(), channel: 1, available: 1 }, ErrorCode::NoSuchTrack),
            (AudioError::UnknownFormat { path: path(), detail: None }, ErrorCode::UnknownFormat),
            (AudioError::NeedsFfmpeg { path: path(), what }, ErrorCode::NeedsFfmpeg),
            (AudioError::UnsupportedCodec { path: path(), codec, detail }, ErrorCode::UnsupportedCodec),
            (AudioError::Broken { path: path(), detail: String::new() }, ErrorCode::AudioBroken),
            (AudioError::Ffmpeg { path: path(), source: denied() }, ErrorCode::AudioBroken),
            (AudioError::Spool { folder: path(), source: denied() }, ErrorCode::DiskFull),
            (AudioError::Cancelled, ErrorCode::Cancelled),
        ] {
            assert_eq!(of(&error, &path()).code, expected, "{error}");
        }
    }
}
