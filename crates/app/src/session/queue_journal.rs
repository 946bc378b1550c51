//! The queue's jobs in the journal, from which they come back after the window was
//! killed, and what was asked of finished transcripts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use library::{HostKind, Identity, JobKey, Journal, JournalState, NewJob, ReachedPoint};
use serde::{Deserialize, Serialize};
use wire::{Failure, FilePath, Job, JobId, NO_JOB};

use super::another_machine::Placed;
use super::queue::{JobState, QueueEntry, StoppedJob, lacks_adapter};
use super::requests::Request;
use super::settings::{Part, Stored};

/// What the journal keeps of a recording besides its job.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outputs {
    /// The watched folder that it came from.
    pub folder: Option<FilePath>,
    /// Settings of its own.
    pub own: Option<Stored>,
    /// Which part of it is transcribed.
    pub part: Part,
    /// The user has it transcribed with the demonstration model, where there is no other.
    pub demonstration: bool,
    /// Why it failed; it is not begun before the user says so.
    pub failure: Option<Failure>,
    /// The user paused it; it goes on when the user says so.
    pub paused: bool,
    /// The user stopped it when it had text.
    pub stopped: bool,
    /// Its job on another machine.
    pub placed: Option<Placed>,
    /// This is no recording of the queue: it was asked of a finished transcript.
    pub request: Option<Request>,
}

impl Outputs {
    pub fn of(entry: &QueueEntry) -> Self {
        Self {
            folder: entry.watched.clone().map(FilePath::from),
            own: entry.own.as_ref().map(Stored::from),
            part: entry.part,
            demonstration: entry.approved,
            failure: entry.failure.clone().filter(|_| entry.state == JobState::Failed),
            paused: matches!(entry.state, JobState::Pausing | JobState::Paused),
            stopped: entry.state == JobState::Cancelled,
            placed: entry.placed.clone(),
            request: None,
        }
    }
}

#[derive(Debug, Default)]
pub struct QueueJournal {
    journal: Option<Journal>,
    keys: BTreeMap<JobId, JobKey>,
    /// Jobs of a window that is gone which this one has not started; with the job to
    /// resume, where that window had started it.
    taken: BTreeMap<JobId, Option<Job>>,
    /// Jobs that failed, were paused, or were stopped when they had text. They stay until the user removes them, or has them go on.
    aside: BTreeSet<JobId>,
    /// What was asked of finished transcripts.
    requests: BTreeMap<JobId, Vec<(Request, JobKey)>>,
    /// The same, of windows that are gone, as long as their transcripts are not opened.
    requests_left: Vec<(Request, JobKey)>,
}

/// A recording whose transcription was interrupted.
#[derive(Debug)]
pub struct Interrupted {
    pub file: PathBuf,
    pub outputs: Outputs,
    key: JobKey,
    /// `None` where it was only waiting.
    begun: Option<Job>,
    /// The recording's, when the job began.
    identity: Option<Identity>,
}

impl QueueJournal {
    /// Opens the journal, and takes over the jobs of windows that are gone: the unfinished and
    /// those that failed, in the order of their queue.
    pub fn open(journal: Option<Journal>) -> (Self, Vec<Interrupted>) {
        let listing = journal.as_ref().and_then(|journal| journal.take_over(HostKind::Window).ok());
        let mut found = listing.unwrap_or_default();
        found.jobs.sort_by_key(|left| left.queue_id);
        if let Some(journal) = &journal {
            for other in found.unreadable {
                let _ = journal.finish(other.key, JournalState::Cancelled);
            }
        }
        let mut requests_left = Vec::new();
        let mut jobs = Vec::new();
        for left in found.jobs {
            let mut outputs: Outputs = serde_json::from_value(left.outputs.clone()).unwrap_or_default();
            match outputs.request.take() {
                Some(request) => requests_left.push((request, left.key)),
                None => jobs.push((left, outputs)),
            }
        }
        let interrupted = jobs.into_iter().map(|(left, outputs)| Interrupted {
            file: left.job.file.0.clone(),
            outputs,
            key: left.key,
            begun: journal
                .as_ref()
                .filter(|_| left.attempts > 0)
                .map(|journal| supervisor::journal::resumed(journal, &left)),
            identity: left.identity,
        });
        let interrupted = interrupted.collect();
        (Self { journal, requests_left, ..Self::default() }, interrupted)
    }

    /// Of a job that failed, was paused or was stopped, returns from where it can be resumed.
    pub fn take_back(&mut self, id: JobId, interrupted: Interrupted) -> Option<StoppedJob> {
        let Interrupted { outputs, key, begun, identity, .. } = interrupted;
        self.keys.insert(id, key);
        if outputs.failure.is_none() && !outputs.paused && !outputs.stopped {
            self.taken.insert(id, begun);
            return None;
        }
        self.aside.insert(id);
        let has_point = |job: &Job| job.resume.as_ref().is_some_and(|resume| resume.point.is_some());
        begun.filter(has_point).map(|job| StoppedJob { job, identity })
    }

    /// Adds recordings that wait or failed, each as the job that it would be now. Of those
    /// that are in the journal only what is kept besides the job changes.
    pub fn add(&mut self, jobs: &[(JobId, Job, Outputs)]) {
        let Some(journal) = &self.journal else { return };
        let (known, jobs): (Vec<_>, Vec<_>) = jobs.iter().partition(|(id, ..)| self.keys.contains_key(id));
        // What was only not found does not wait for the user: its disk may be there again at
        // the next start.
        for (id, _, outputs) in known.iter().filter(|(id, ..)| !self.taken.contains_key(id)) {
            let _ = journal.set_outputs(self.keys[id], &json(outputs));
        }
        if jobs.is_empty() {
            return;
        }
        let outputs: Vec<_> = jobs.iter().map(|(.., outputs)| json(outputs)).collect();
        let entries: Vec<NewJob> = jobs
            .iter()
            .zip(&outputs)
            .map(|((id, job, _), outputs)| NewJob {
                kind: HostKind::Window,
                queue_id: *id,
                job,
                identity: None,
                outputs,
            })
            .collect();
        // Where this fails the jobs run all the same. If the failure persists, a notice
        // says so when one starts.
        if let Ok(keys) = journal.add(&entries) {
            self.keys.extend(jobs.iter().map(|(id, ..)| *id).zip(keys));
        }
    }

    /// Keeps a job that failed, was paused or was stopped, with what it reached, until the user removes it.
    pub fn set_aside(&mut self, id: JobId, outputs: &Outputs) {
        self.taken.remove(&id);
        if self.note(id, outputs) {
            self.aside.insert(id);
        }
    }

    /// Changes what is kept of a recording besides its job. False where it is not in the journal.
    pub fn note(&self, id: JobId, outputs: &Outputs) -> bool {
        let (Some(journal), Some(key)) = (&self.journal, self.keys.get(&id)) else { return false };
        let _ = journal.set_outputs(*key, &json(outputs));
        true
    }

    /// What earlier windows were asked of finished transcripts.
    pub fn requests_left(&self) -> Vec<Request> {
        self.requests_left.iter().map(|(request, _)| request.clone()).collect()
    }

    /// Forgets a request of an earlier window that nothing answers any more.
    pub fn drop_request(&mut self, request: &Request) {
        let keys: Vec<JobKey> =
            self.requests_left.extract_if(.., |(left, _)| left == request).map(|(_, key)| key).collect();
        self.finish_keys(&keys, JournalState::Cancelled);
    }

    /// Keeps what is asked of a finished transcript now, and nothing else of it.
    pub fn keep_requests(&mut self, id: JobId, file: &Path, requests: Vec<Request>) {
        let Some(journal) = &self.journal else { return };
        let mut before = self.requests.remove(&id).unwrap_or_default();
        let mut kept = Vec::new();
        for request in requests {
            let of_before = before.iter().position(|(one, _)| *one == request).map(|at| before.remove(at));
            let of_earlier = |left: &mut Vec<(Request, JobKey)>| {
                left.iter().position(|(one, _)| *one == request).map(|at| left.remove(at))
            };
            if let Some(known) = of_before.or_else(|| of_earlier(&mut self.requests_left)) {
                kept.push(known);
                continue;
            }
            let job = Job::new(NO_JOB, file, PathBuf::new());
            let outputs = json(&Outputs { request: Some(request.clone()), ..Outputs::default() });
            let new =
                NewJob { kind: HostKind::Window, queue_id: id, job: &job, identity: None, outputs: &outputs };
            // Where this fails it is done all the same, only not in a later window.
            if let Ok(keys) = journal.add(&[new]) {
                kept.extend(keys.into_iter().map(|key| (request.clone(), key)));
            }
        }
        let over: Vec<JobKey> = before.into_iter().map(|(_, key)| key).collect();
        if !kept.is_empty() {
            self.requests.insert(id, kept);
        }
        self.finish_keys(&over, JournalState::Finished);
    }

    /// Keeps the order of the queue.
    pub fn set_order(&self, order: &[JobId]) {
        let keys: Vec<JobKey> = order.iter().filter_map(|id| self.keys.get(id).copied()).collect();
        if let (Some(journal), false) = (&self.journal, keys.is_empty()) {
            let _ = journal.set_order(&keys);
        }
    }

    /// Changes what is kept of a recording. What an earlier window reached with other
    /// settings is dropped.
    pub fn intend(&mut self, id: JobId, outputs: &Outputs) {
        if let (Some(journal), Some(key)) = (&self.journal, self.keys.get(&id)) {
            let _ = journal.set_outputs(*key, &json(outputs));
            if self.taken.get_mut(&id).is_some_and(|begun| begun.take().is_some()) {
                let _ = journal.start_over(*key, None);
            }
        }
    }

    /// Whether an engine of an earlier window began the job.
    pub fn was_begun(&self, id: JobId) -> bool {
        self.taken.get(&id).is_some_and(Option::is_some)
    }

    /// The job to run: the interrupted one, where there is one, else what `make` returns.
    /// `identity` is that of its file. The interrupted job is kept until
    /// [`QueueJournal::runs`], in case no engine starts.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn begin<E>(
        &mut self,
        id: JobId,
        outputs: &Outputs,
        identity: Option<&Identity>,
        make: impl FnOnce() -> Result<Job, E>,
    ) -> Result<(Job, Option<JobKey>), E> {
        match self.taken.get(&id) {
            Some(Some(job)) if lacks_adapter(job) => drop(self.aside.insert(id)),
            Some(Some(job)) => return Ok((job.clone(), self.keys.get(&id).copied())),
            _ => {}
        }
        let job = make()?;
        if !self.keys.contains_key(&id) {
            self.add(&[(id, job.clone(), outputs.clone())]);
        }
        let key = self.keys.get(&id).copied();
        let was_aside = self.aside.remove(&id);
        if let (Some(journal), Some(key)) = (&self.journal, key) {
            if was_aside {
                // It may be begun anew; where it is resumed, its point is written again below.
                let _ = journal.start_over(key, identity);
            }
            let _ = journal.set_job(key, &job, identity);
            // A job that is resumed left the journal when it was stopped.
            if let Some((resume, point)) = job.resume.as_ref().and_then(|it| Some((it, it.point.as_ref()?))) {
                let (segments, discarded) = (&resume.segments, &resume.discarded);
                let _ = journal.record_point(key, &ReachedPoint { point, segments, discarded, marks: &[] });
            }
        }
        Ok((job, key))
    }

    /// An engine has started on the job.
    pub fn runs(&mut self, id: JobId) {
        self.taken.remove(&id);
    }

    /// Finishes a job: its text was saved, or it was given up or removed.
    pub fn finish(&mut self, id: JobId, state: JournalState) {
        self.finish_all(&[id], state);
    }

    /// As [`QueueJournal::finish`], for several.
    pub fn finish_all(&mut self, ids: &[JobId], state: JournalState) {
        for id in ids {
            self.runs(*id);
            self.aside.remove(id);
        }
        let keys: Vec<JobKey> = ids.iter().filter_map(|id| self.keys.remove(id)).collect();
        self.finish_keys(&keys, state);
    }

    fn finish_keys(&self, keys: &[JobKey], state: JournalState) {
        if let (Some(journal), false) = (&self.journal, keys.is_empty()) {
            let _ = journal.finish_all(keys, state);
        }
    }

    /// Finishes all jobs but the unfinished ones when the window closes. Jobs that an
    /// earlier window left and this one could not start stay too: their disk may be there
    /// again at the next start.
    pub fn finish_all_but(&mut self, unfinished: &BTreeSet<JobId>) {
        let stays = |id: &JobId| unfinished.contains(id) || self.taken.contains_key(id);
        let over: Vec<JobId> = self.keys.keys().copied().filter(|id| !stays(id)).collect();
        self.finish_all(&over, JournalState::Cancelled);
    }
}

fn json(outputs: &Outputs) -> serde_json::Value {
    serde_json::to_value(outputs).unwrap_or_default()
}
