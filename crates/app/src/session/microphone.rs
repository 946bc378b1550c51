//! A voice from the microphone: recorded, listened to, and added or forgotten. What is recorded is in
//! a folder that only the user can read, and deleted in either case.

use std::path::PathBuf;
use std::sync::{MutexGuard, PoisonError};

use supervisor::microphone::{Capture, Recorder};
use tempfile::TempDir;
use wire::{ErrorCode, Failure};

use super::Session;

/// What samples from the microphone are called.
const FILE: &str = "Microphone.wav";

/// What there is of a recording from the microphone.
#[derive(Debug, Default)]
pub(super) enum FromMicrophone {
    #[default]
    Nothing,
    Recording(Capture),
    Recorded(TempDir),
}

/// How far a recording from the microphone is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Microphone {
    /// There is a program that can record.
    pub available: bool,
    /// Seconds so far; `None`: nothing is being recorded.
    pub seconds: Option<f64>,
    /// How loud the latest is, from 0 to 1.
    pub level: f32,
    /// Why nothing could be recorded.
    pub failure: Option<Failure>,
}

impl Session {
    /// How far a recording is. One that failed is over with that.
    pub fn microphone(&self) -> Microphone {
        let mut state = self.recorded();
        let mut found = Microphone::default();
        if let FromMicrophone::Recording(capture) = &mut *state {
            found.available = true;
            found.failure = capture.failure();
            if found.failure.is_none() {
                let (seconds, level) = capture.level();
                return Microphone { seconds: Some(seconds), level, ..found };
            }
            *state = FromMicrophone::Nothing;
            return found;
        }
        Microphone { available: Recorder::find().is_some(), ..found }
    }

    /// Begins to record, in place of what was recorded before.
    ///
    /// # Errors
    /// `NoMicrophone` if there is no program that records, or it can't be started.
    pub fn start_microphone(&self) -> Result<(), Failure> {
        let mut state = self.recorded();
        *state = FromMicrophone::Nothing;
        let recorder = Recorder::find().ok_or_else(|| {
            Failure::new(ErrorCode::NoMicrophone, "No recording program is installed.").remedy(
                "Install parecord (pulseaudio-utils), arecord (alsa-utils) or pw-record (pipewire-bin).",
            )
        })?;
        *state = FromMicrophone::Recording(recorder.start()?);
        Ok(())
    }

    /// Ends the recording; returns the file, to be listened to.
    ///
    /// # Errors
    /// `NoMicrophone` if nothing was recorded, `OutputUnwritable` if it can't be kept.
    pub fn stop_microphone(&self) -> Result<PathBuf, Failure> {
        let mut state = self.recorded();
        let FromMicrophone::Recording(capture) = std::mem::take(&mut *state) else {
            return Err(Failure::new(ErrorCode::NoMicrophone, "Nothing is being recorded."));
        };
        let folder = tempfile::Builder::new().prefix("steno-voice-").tempdir().map_err(|error| {
            Failure::new(ErrorCode::OutputUnwritable, format!("The recording can't be saved ({error})."))
                .file(std::env::temp_dir())
        })?;
        let file = folder.path().join(FILE);
        capture.finish(&file)?;
        *state = FromMicrophone::Recorded(folder);
        Ok(file)
    }

    /// Adds what was recorded to the voice of this name, and deletes the recording.
    ///
    /// # Errors
    /// As [`Session::add_voice`]; the recording stays then.
    pub async fn keep_microphone(&self, name: &str) -> Result<(), Failure> {
        let FromMicrophone::Recorded(folder) = std::mem::take(&mut *self.recorded()) else {
            return Err(Failure::new(ErrorCode::NoMicrophone, "Nothing was recorded."));
        };
        let added = self.add_voice(name, &[folder.path().join(FILE)]).await;
        if added.is_err() {
            *self.recorded() = FromMicrophone::Recorded(folder);
        }
        added
    }

    /// Ends a recording and forgets it.
    pub fn drop_microphone(&self) {
        *self.recorded() = FromMicrophone::Nothing;
    }

    fn recorded(&self) -> MutexGuard<'_, FromMicrophone> {
        self.inner.microphone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
