//! The queue's side of the journal: what is under way is written down, so that
//! it comes back when the window was ended by force.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use library::{Entry, Identity, Journal, Key, Kind, State};
use serde::{Deserialize, Serialize};
use wire::{FilePath, Job, JobId};

use super::queue;
use super::settings::Stored;

/// What is to become of a recording besides its job. Nothing is written of
/// what was saved before: the window asks for that anew.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Outputs {
    /// The watched folder that it came from.
    pub folder: Option<FilePath>,
    /// Settings of its own.
    pub own: Option<Stored>,
}

impl Outputs {
    pub fn of(entry: &queue::Entry) -> Self {
        Self { folder: entry.watched.clone().map(FilePath::from), own: entry.own.as_ref().map(Stored::from) }
    }
}

#[derive(Debug, Default)]
pub struct Kept {
    journal: Option<Journal>,
    keys: BTreeMap<JobId, Key>,
    /// Begun by a window that is gone, with what it had reached.
    begun: BTreeMap<JobId, Job>,
}

/// A recording whose transcription was interrupted.
#[derive(Debug)]
pub struct Interrupted {
    pub file: PathBuf,
    pub outputs: Outputs,
    key: Key,
    /// `None` where it had only been waiting.
    begun: Option<Job>,
}

impl Kept {
    /// What windows that are gone have left.
    pub fn open(journal: Option<Journal>) -> (Self, Vec<Interrupted>) {
        let listing = journal.as_ref().and_then(|journal| journal.take_over(Kind::Window).ok());
        let found = listing.unwrap_or_default();
        if let Some(journal) = &journal {
            for other in found.unreadable {
                let _ = journal.finish(other.key, State::Cancelled);
            }
        }
        let interrupted = found.jobs.into_iter().map(|left| Interrupted {
            file: left.job.file.0.clone(),
            outputs: serde_json::from_value(left.outputs.clone()).unwrap_or_default(),
            key: left.key,
            begun: journal
                .as_ref()
                .filter(|_| left.attempts > 0)
                .map(|journal| crate::state::resumed(journal, &left)),
        });
        let interrupted = interrupted.collect();
        (Self { journal, ..Self::default() }, interrupted)
    }

    pub fn take_back(&mut self, id: JobId, interrupted: Interrupted) {
        self.keys.insert(id, interrupted.key);
        if let Some(job) = interrupted.begun {
            self.begun.insert(id, job);
        }
    }

    /// Writes down recordings that wait, each as the job that it would be now.
    pub fn add(&mut self, jobs: &[(JobId, Job, Outputs)]) {
        let Some(journal) = &self.journal else { return };
        let outputs: Vec<_> = jobs.iter().map(|(.., outputs)| json(outputs)).collect();
        let entries: Vec<Entry> = jobs
            .iter()
            .zip(&outputs)
            .map(|((id, job, _), outputs)| Entry {
                kind: Kind::Window,
                queue_id: *id,
                job,
                identity: None,
                outputs,
            })
            .collect();
        // Where this fails the jobs run all the same; that they can't be
        // resumed is told when one begins and the trouble is still there.
        if let Ok(keys) = journal.add(&entries) {
            self.keys.extend(jobs.iter().map(|(id, ..)| *id).zip(keys));
        }
    }

    /// Something else is to become of it.
    pub fn intend(&self, id: JobId, outputs: &Outputs) {
        if let (Some(journal), Some(key)) = (&self.journal, self.keys.get(&id)) {
            let _ = journal.intend(*key, &json(outputs));
        }
    }

    /// The job that the recording's turn has come for: as it was begun, where
    /// it was, else the one that `make` says.
    pub fn begin<E>(
        &mut self,
        id: JobId,
        outputs: &Outputs,
        make: impl FnOnce() -> Result<Job, E>,
    ) -> Result<(Job, Option<Key>), E> {
        if let Some(job) = self.begun.remove(&id) {
            return Ok((job, self.keys.get(&id).copied()));
        }
        let job = make()?;
        if !self.keys.contains_key(&id) {
            self.add(&[(id, job.clone(), outputs.clone())]);
        }
        let key = self.keys.get(&id).copied();
        if let (Some(journal), Some(key)) = (&self.journal, key) {
            let identity = Identity::of(job.file.as_path()).ok();
            let _ = journal.settle(key, &job, identity.as_ref());
        }
        Ok((job, key))
    }

    /// There is nothing more to do for it: it was saved, given up or removed.
    pub fn finish(&mut self, id: JobId, state: State) {
        self.begun.remove(&id);
        if let (Some(journal), Some(key)) = (&self.journal, self.keys.remove(&id)) {
            let _ = journal.finish(key, state);
        }
    }

    /// The user closed the window and was asked about what would be lost.
    pub fn finish_all_but(&mut self, unfinished: &BTreeSet<JobId>) {
        let over: Vec<JobId> = self.keys.keys().copied().filter(|id| !unfinished.contains(id)).collect();
        for id in over {
            self.finish(id, State::Cancelled);
        }
    }
}

fn json(outputs: &Outputs) -> serde_json::Value {
    serde_json::to_value(outputs).unwrap_or_default()
}
