//! People whom Steno recognises by their voice. A voice comes from recordings that the user chooses,
//! or from a speaker of a finished transcript.

use std::path::Path;

use library::{Voice, VoiceSample, Voices};
use transcript::Span;
use wire::{DeviceChoice, ErrorCode, Failure, Job, JobId, NO_JOB};

use super::Session;

impl Session {
    /// All voices in the order of their names, and the names of those of which a sample is damaged.
    /// Waits for the disk.
    ///
    /// # Errors
    /// If the file of voices can't be used.
    pub fn voices(&self) -> Result<(Vec<Voice>, Vec<String>), Failure> {
        let listed = self.existing_voices()?.map(|voices| voices.list());
        Ok(listed.transpose().map_err(|error| error.failure())?.unwrap_or_default())
    }

    /// Adds the voice of the person who speaks most in each of these recordings: all of them, or none.
    ///
    /// # Errors
    /// Where a recording can't be decoded or has too little speech, or the file of voices can't be
    /// written.
    pub async fn add_voice(&self, name: &str, files: &[std::path::PathBuf]) -> Result<(), Failure> {
        let mut samples = Vec::new();
        for file in files {
            samples.push(self.sample(file, Vec::new()).await?);
        }
        self.store_voice(name, samples).await
    }

    /// Adds the voice of a speaker of a finished transcript under the speaker's name.
    ///
    /// # Errors
    /// Where the speaker says too little, the recording is gone, or the file of voices can't be written.
    pub async fn remember_speaker(&self, id: JobId, speaker: &str) -> Result<(), Failure> {
        let spans = self.spans_of(id, speaker);
        if spans.is_empty() {
            let text = "This speaker no longer has any text.";
            return Err(Failure::new(ErrorCode::NoVoice, text).remedy("Open the transcript again."));
        }
        let sample = self.sample(&self.recording(id)?, spans).await?;
        self.store_voice(speaker, vec![sample]).await
    }

    /// Gives a voice another name; transcripts keep the old one. Waits for the disk.
    ///
    /// # Errors
    /// Where the name is empty or another voice's, or the file of voices can't be written.
    pub fn rename_voice(&self, name: &str, new: &str) -> Result<(), Failure> {
        let new = checked(new)?;
        let Some(voices) = self.existing_voices()? else { return Ok(()) };
        if new == name || voices.rename(name, new).map_err(|error| error.failure())? {
            return Ok(());
        }
        Err(Failure::new(ErrorCode::NameTaken, "Another voice already has this name."))
    }

    /// Removes a voice for good, or one sample of it, counted from 0. Waits for the disk.
    ///
    /// # Errors
    /// If the file of voices can't be written.
    pub fn remove_voice(&self, name: &str, sample: Option<usize>) -> Result<(), Failure> {
        let Some(voices) = self.existing_voices()? else { return Ok(()) };
        let removed = match sample {
            Some(number) => voices.remove_sample(name, number),
            None => voices.remove(name),
        };
        removed.map(|_| ()).map_err(|error| error.failure())
    }

    async fn sample(&self, file: &Path, spans: Vec<Span>) -> Result<VoiceSample, Failure> {
        // A voice is recognised with the model that it was added with.
        let preferences = self.preferences();
        let speaker_model = tokio::task::spawn_blocking(move || advisor::speaker_model(&preferences)).await;
        let speaker_model = speaker_model.ok().flatten();
        let job = Job { device: DeviceChoice::Cpu, speaker_model, ..Job::new(NO_JOB, file, Path::new("")) };
        let voice = self.inner.supervisor.encode_voice(job, spans).await?;
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        Ok(VoiceSample::new(&name, voice))
    }

    async fn store_voice(&self, name: &str, samples: Vec<VoiceSample>) -> Result<(), Failure> {
        let name = checked(name)?.to_owned();
        let path = self.inner.supervisor.voices_file().map(Path::to_owned).ok_or_else(no_place)?;
        let stored = tokio::task::spawn_blocking(move || Voices::open(&path)?.add(&name, &samples)).await;
        match stored {
            Ok(result) => result.map_err(|error| error.failure()),
            Err(error) => Err(Failure::new(ErrorCode::Internal, error.to_string())),
        }
    }

    fn existing_voices(&self) -> Result<Option<Voices>, Failure> {
        let Some(path) = self.inner.supervisor.voices_file() else { return Ok(None) };
        Voices::open_existing(path).map_err(|error| error.failure())
    }

    /// Where a speaker speaks, the longest first.
    fn spans_of(&self, id: JobId, speaker: &str) -> Vec<Span> {
        let shared = self.lock();
        let entry = shared.queue.get(id);
        let transcript = entry.and_then(|entry| entry.transcript.as_ref());
        let segments = transcript.iter().flat_map(|transcript| &transcript.segments);
        let own = segments.filter(|segment| segment.speaker.as_deref() == Some(speaker));
        let mut spans: Vec<Span> = own.map(|segment| Span::new(segment.start, segment.end)).collect();
        spans.sort_by_key(|span| std::cmp::Reverse(span.length()));
        spans
    }
}

fn checked(name: &str) -> Result<&str, Failure> {
    let name = name.trim();
    if name.is_empty() {
        Err(Failure::new(ErrorCode::NameMissing, "A voice needs a name."))
    } else {
        Ok(name)
    }
}

fn no_place() -> Failure {
    Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep voices in.")
        .remedy("Set STENO_STATE_FOLDER to a folder.")
}
