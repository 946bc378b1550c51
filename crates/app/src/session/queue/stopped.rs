//! Recordings whose run ended before its time: paused, stopped, failed, and resumed.

use std::sync::Arc;

use library::Identity;
use transcript::{Time, Transcript};
use wire::{Failure, Job, JobId};

use super::super::another_machine::Placed;
use super::super::elsewhere::Elsewhere;
use super::super::length::Length;
use super::diff::without_text;
use super::{JobState, Queue, QueueEntry, Rewrite};

/// A job that was paused, stopped or failed, and from where it can be resumed.
#[derive(Debug)]
pub struct StoppedJob {
    /// With the point in `resume`.
    pub job: Job,
    /// The recording's, when the job began.
    pub identity: Option<Identity>,
}

impl StoppedJob {
    /// The job to resume, where `fresh` is the same one: the same recording, model and settings.
    /// Anything else is begun anew.
    pub fn resumed(&self, fresh: &Job, identity: Option<&Identity>) -> Option<Job> {
        self.continued(identity).filter(|_| self.is_same_job(fresh))
    }

    /// Whether a job that begins anew has the same model and settings.
    pub fn is_same_job(&self, fresh: &Job) -> bool {
        self.job.is_same_request(fresh)
    }

    /// The model of its text, as far as its files say. Waits for the disk.
    fn model(&self) -> transcript::Model {
        let job = self.job.in_use();
        let found = advisor::models::model_at(job.model.as_path());
        let (name, demonstration) = found.map(|found| (found.name, found.demonstration)).unwrap_or_default();
        let precision = job.precision.map(|precision| precision.as_str().to_owned()).unwrap_or_default();
        let adapter = job.adapter.as_ref().and_then(|file| file.as_path().file_stem());
        let adapter = adapter.map(|name| name.to_string_lossy().into_owned());
        transcript::Model { name, precision, demonstration, adapter }
    }

    /// The job to resume as it was begun, whatever the settings are now. `None` where the recording
    /// is another one, or what its model had learnt was removed.
    pub fn continued(&self, identity: Option<&Identity>) -> Option<Job> {
        if lacks_adapter(&self.job) {
            return None;
        }
        let is_same_file = match (&self.identity, identity) {
            (Some(before), Some(now)) => before.is_same_recording(now),
            (None, None) => true,
            _ => false,
        };
        is_same_file.then(|| self.job.clone())
    }

    /// Up to where the recording is done.
    pub fn reached(&self) -> Option<Time> {
        Some(self.job.resume.as_ref()?.point.as_ref()?.reached())
    }
}

/// Whether what the job's model had learnt was removed, so that it can't go on as it was begun.
pub fn lacks_adapter(job: &Job) -> bool {
    job.in_use().adapter.as_ref().is_some_and(|file| !file.as_path().is_file())
}

impl Queue {
    /// Pauses a running recording. True where the engine has to be asked to. Another machine can't pause.
    pub fn pause(&mut self, id: JobId) -> bool {
        let here = |entry: &QueueEntry| entry.state == JobState::Running && entry.elsewhere.is_none();
        let runs = self.get(id).is_some_and(here);
        if runs {
            self.set(id, JobState::Pausing);
        }
        runs
    }

    /// Stops a recording. True where the engine has to be asked to.
    pub fn cancel(&mut self, id: JobId) -> bool {
        match self.get(id).map(|entry| entry.state) {
            Some(JobState::Running | JobState::Pausing) => {
                self.set(id, JobState::Stopping);
                true
            }
            Some(JobState::Held | JobState::Waiting) => {
                self.set(id, JobState::Cancelled);
                false
            }
            _ => false,
        }
    }

    /// Resumes a recording that was paused, stopped or failed, or starts over with it. `failure`: why
    /// that is not possible now; then all stays as it is. Its text stays until the next run has more.
    /// What was paused goes before all that wait.
    pub fn retry(&mut self, id: JobId, failure: Option<Failure>) {
        self.change(id, |entry, version| {
            if !entry.state.is_set_aside() {
                return;
            }
            entry.failure = failure;
            if entry.failure.is_some() {
                return;
            }
            entry.resumed = entry.state == JobState::Paused;
            entry.starts_over = false;
            entry.state = JobState::Waiting;
            entry.length = Length::NotAsked;
            entry.earlier = entry.transcript.take().filter(|earlier| !earlier.segments.is_empty());
            if entry.earlier.is_none() {
                entry.rewrites.push(Rewrite { version, from: 0, changes: None });
            }
            entry.saved = None;
            entry.not_saved = None;
            entry.truncated_at = None;
            entry.streamed = Vec::new();
            entry.notices = Vec::new();
            entry.memory.clear();
        });
        if self.get(id).is_some_and(|entry| entry.resumed) {
            let entries = &self.entries;
            self.turns.put_first(id, |other| entries.get(&other).is_some_and(|entry| entry.state.waits()));
        }
    }

    /// Those that failed or were stopped and have a point to go on from, without their texts.
    pub fn resumable(&self) -> Vec<QueueEntry> {
        let begins = |entry: &&QueueEntry| matches!(entry.state, JobState::Failed | JobState::Cancelled);
        let stopped = self.iter().filter(begins).filter(|entry| entry.stopped.is_some());
        stopped.map(without_text).collect()
    }

    /// Whether resuming a recording would begin anew.
    pub fn set_starts_over(&mut self, id: JobId, starts_over: bool) {
        if self.get(id).is_some_and(|entry| entry.starts_over != starts_over) {
            self.change(id, |entry, _| entry.starts_over = starts_over);
        }
    }

    /// The text before this run, with what its job was, unless it is in the history already.
    pub fn unkept(&self, id: JobId) -> Option<(&QueueEntry, &Transcript)> {
        let entry = self.get(id).filter(|entry| !entry.is_kept && !entry.sample)?;
        Some((entry, entry.earlier.as_deref()?))
    }

    /// The text before this run is in the history.
    pub fn set_kept(&mut self, id: JobId) {
        self.change(id, |entry, _| entry.is_kept = true);
    }

    /// A recording that failed, was paused or was stopped in an earlier window has the text that was there.
    pub fn set_stopped_before(&mut self, id: JobId, stopped: StoppedJob) {
        let model = stopped.model();
        self.change(id, |entry, version| {
            if let Some(mut text) = supervisor::partial_of(&stopped.job) {
                text.model = model.clone();
                entry.take(text, version);
            }
            entry.model = Some(model);
            entry.stopped = Some(Arc::new(stopped));
        });
    }

    /// The text that its job had in an earlier window, shown until this run has more.
    pub fn show_earlier(&mut self, id: JobId, text: Option<Box<Transcript>>) {
        let Some(text) = text.filter(|text| !text.segments.is_empty()) else { return };
        self.change(id, |entry, version| {
            if entry.earlier.is_none() {
                entry.earlier = Some(text);
                entry.rewrites.push(Rewrite { version, from: 0, changes: None });
            }
        });
    }

    /// A recording that was paused in an earlier window still is. `failure`: why it can't go on now.
    pub fn set_paused_before(&mut self, id: JobId, failure: Option<Failure>) {
        self.change(id, |entry, _| {
            entry.state = JobState::Paused;
            entry.failure = failure;
        });
    }

    /// A recording that was stopped in an earlier window still is.
    pub fn set_cancelled_before(&mut self, id: JobId) {
        self.set(id, JobState::Cancelled);
    }

    /// Where it is transcribed; `None`: here.
    pub fn set_elsewhere(&mut self, id: JobId, elsewhere: Option<Elsewhere>) {
        self.change(id, |entry, _| entry.elsewhere = elsewhere.map(Box::new));
    }

    /// Changes what is known of its place, if that is another machine.
    pub fn change_elsewhere(&mut self, id: JobId, change: impl FnOnce(&mut Elsewhere)) {
        self.change(id, |entry, _| {
            if let Some(elsewhere) = &mut entry.elsewhere {
                change(elsewhere);
            }
        });
    }

    /// Its job on another machine.
    pub fn set_placed(&mut self, id: JobId, placed: Option<Placed>) {
        self.change(id, |entry, _| entry.placed = placed);
    }

    /// Remembers from where a job that ended early can be resumed.
    pub fn set_stopped(&mut self, id: JobId, stopped: Option<StoppedJob>) {
        self.change(id, |entry, _| entry.stopped = stopped.map(Arc::new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::NO_JOB;

    #[test]
    fn what_was_begun_with_an_adapter_that_is_gone_does_not_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let adapter = folder.path().join("learnt.safetensors");
        std::fs::write(&adapter, "").unwrap();
        let job = Job { adapter: Some(adapter.as_path().into()), ..Job::new(NO_JOB, "a.wav", "model") };
        let stopped = StoppedJob { job: job.clone(), identity: None };
        assert_eq!(stopped.continued(None), Some(job.clone()));
        assert_eq!(stopped.resumed(&job, None), Some(job.clone()));
        // Switched off meanwhile: begun anew.
        assert_eq!(stopped.resumed(&Job { adapter: None, ..job }, None), None);
        assert_eq!(stopped.model().adapter.as_deref(), Some("learnt"));
        std::fs::remove_file(&adapter).unwrap();
        assert_eq!(stopped.continued(None), None);
    }
}
