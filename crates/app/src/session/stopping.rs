//! Ends runs before their time, as the user asks, and has them go on.

use wire::{Failure, JobId};

use super::queue::{JobState, QueueEntry};
use super::queue_journal::Outputs;
use super::{Session, Shared, files, runner};
use library::Identity;

impl Session {
    /// Pauses a running recording: its run ends, its text stays, also in a later window, and the next
    /// recording has its turn. [`Session::retry`] has it go on. Waits for the disk.
    pub fn pause_recording(&self, id: JobId) {
        let journal = self.inner.journal();
        // Written down at once: a window that is killed before the run ends comes back with it paused.
        if let Some(outputs) = self.change(|shared| shared.pause(id)) {
            journal.note(id, &outputs);
        }
    }

    /// Stops a recording. What there is of its text stays.
    pub fn cancel(&self, id: JobId) {
        if self.change(|shared| shared.cancel(id)) {
            self.inner.journal().finish(id, library::JournalState::Cancelled);
        }
        self.keep_requests(id);
    }

    /// Stops the running job and all that wait. None of them starts meanwhile.
    pub fn cancel_all(&self) {
        let (asked, cancelled): (Vec<JobId>, Vec<JobId>) = self.change(|shared| {
            let undone =
                |entry: &&QueueEntry| entry.state.waits() || entry.state.runs() || entry.is_asked_again();
            let asked = shared.queue.iter().filter(|entry| entry.is_asked_again()).map(|entry| entry.id);
            let asked = asked.collect();
            let undone: Vec<JobId> = shared.queue.iter().filter(undone).map(|entry| entry.id).collect();
            (asked, undone.into_iter().filter(|id| shared.cancel(*id)).collect())
        });
        asked.into_iter().for_each(|id| self.keep_requests(id));
        self.inner.journal().finish_all(&cancelled, library::JournalState::Cancelled);
    }

    /// Resumes a recording that was paused, or starts over with one that failed or was stopped. Waits
    /// for the disk.
    pub fn retry(&self, id: JobId) {
        self.retry_those(|entry| entry.id == id);
    }

    /// Starts over with all recordings that failed, but not with those that the user
    /// stopped. Waits for the disk.
    pub fn retry_failed(&self) {
        self.retry_those(|entry| entry.state == JobState::Failed);
    }

    fn retry_those(&self, which: impl Fn(&QueueEntry) -> bool) {
        let aside = |entry: &&QueueEntry| entry.state.is_set_aside();
        let files: Vec<_> = {
            let shared = self.lock();
            let those = shared.queue.iter().filter(aside).filter(|entry| which(entry));
            those.map(|entry| (entry.id, entry.file.clone())).collect()
        };
        // Without the lock: a disk may take long to answer that it is gone.
        let checked: Vec<_> = files.into_iter().map(|(id, file)| (id, files::check(file).failure)).collect();
        let mut journal = self.inner.journal();
        let jobs = self.change(|shared| {
            let ids: Vec<JobId> = checked.iter().map(|(id, _)| *id).collect();
            for (id, failure) in checked {
                shared.queue.retry(id, failure);
            }
            shared.hold_or_release();
            shared.to_write_down(&ids)
        });
        journal.add(&jobs);
        journal.set_order(&self.lock().queue.given_order());
    }
}

impl Session {
    /// Finds out, behind this call, which recordings would begin anew with the settings that they have now.
    pub(super) fn judge_later(&self) {
        if self.lock().queue.resumable().is_empty() {
            return;
        }
        let session = self.clone();
        self.inner.runtime.spawn_blocking(move || session.judge_resuming());
    }

    /// As [`Session::judge_later`], at once. Waits for the disk: what a model takes stands in its files.
    pub(super) fn judge_resuming(&self) {
        let (entries, settings, preferences) = {
            let shared = self.lock();
            (shared.queue.resumable(), shared.settings.clone(), shared.preferences.clone())
        };
        for entry in entries {
            let Some(stopped) = &entry.stopped else { continue };
            // Without a model it does not begin at all, and says so.
            let fresh = runner::job_to_run(&entry, &settings, &preferences);
            let starts_over = fresh.is_ok_and(|fresh| !stopped.is_same_job(&fresh));
            self.change(|shared| {
                // What was changed meanwhile is judged by a later call.
                let same = |now: &QueueEntry| now.own == entry.own && now.part == entry.part;
                if shared.settings == settings && shared.queue.get(entry.id).is_some_and(same) {
                    shared.queue.set_starts_over(entry.id, starts_over);
                }
            });
        }
    }

    /// The text of a recording whose run does not go on from it goes into the history: nothing that was
    /// transcribed is lost. Waits for the disk.
    ///
    /// # Errors
    /// Where the history can't be written: then the run is not to begin.
    pub(super) fn keep_earlier(&self, id: JobId) -> Result<(), Failure> {
        let earlier = {
            let shared = self.lock();
            shared.queue.unkept(id).map(|(entry, text)| {
                (entry.file.clone(), entry.stopped.as_ref().and_then(|it| it.identity.clone()), text.clone())
            })
        };
        let Some((file, identity, text)) = earlier else { return Ok(()) };
        let identity = identity.or_else(|| Identity::of(&file).ok());
        self.documents()?.add(&file, identity.as_ref(), &text).map_err(|error| error.failure())?;
        self.change(|shared| shared.queue.set_kept(id));
        Ok(())
    }
}

impl Shared {
    /// What is kept of the recording that is paused by this; `None`: it does not run.
    fn pause(&mut self, id: JobId) -> Option<Outputs> {
        if !self.queue.pause(id) {
            return None;
        }
        if let Some((running, stop)) = &self.running
            && *running == id
        {
            stop.ask();
        }
        self.queue.get(id).map(Outputs::of)
    }

    /// Returns whether the job is over with this.
    fn cancel(&mut self, id: JobId) -> bool {
        let again = self.queue.get(id).is_some_and(QueueEntry::is_asked_again);
        if again {
            self.queue.forget_again(id);
        }
        if (again || self.queue.cancel(id))
            && let Some((running, stop)) = &self.running
            && *running == id
        {
            stop.ask();
        }
        self.queue.get(id).is_some_and(|entry| entry.state == JobState::Cancelled)
    }
}
