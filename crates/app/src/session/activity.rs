//! When the queue begins to work and when it ends: the shell keeps the machine awake
//! meanwhile, and then notifies the user.

use std::collections::BTreeSet;
use std::sync::Arc;

use wire::JobId;

use super::follow::Pace;
use super::queue::{JobState, Queue};
use super::{Inner, Shared};

/// The queue began to work, or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activity {
    /// A recording is about to be transcribed.
    Begun,
    /// Nothing runs and nothing is about to. Counts the recordings since the queue began
    /// to work; those that the user stopped count as neither.
    Ended {
        /// Recordings that were transcribed.
        finished: usize,
        /// Recordings that failed.
        failed: usize,
    },
}

/// Tells when the queue begins to work and when it ends.
#[derive(Debug)]
pub struct ActivityFollower {
    inner: Arc<Inner>,
    pace: Pace,
    watch: Watch,
}

impl ActivityFollower {
    pub(super) fn new(inner: &Arc<Inner>) -> Self {
        Self { inner: Arc::clone(inner), pace: Pace::new(inner), watch: Watch::default() }
    }

    /// The next change. Cancel safe.
    pub async fn next(&mut self) -> Option<Activity> {
        loop {
            self.pace.next().await?;
            let shared = self.inner.lock();
            if let Some(work) = self.watch.look(&shared) {
                return Some(work);
            }
        }
    }
}

#[derive(Debug, Default)]
struct Watch {
    busy: bool,
    /// Recordings that were over when the work began.
    before: BTreeSet<JobId>,
}

impl Watch {
    fn look(&mut self, shared: &Shared) -> Option<Activity> {
        let queue = &shared.queue;
        let over = |state| over(queue, state);
        // Recordings that are started over count again.
        self.before.retain(|id| queue.get(*id).is_some_and(|entry| entry.state.is_over()));
        let busy = is_busy(queue, shared.paused);
        if busy == self.busy {
            return None;
        }
        self.busy = busy;
        if busy {
            let all = queue.iter().filter(|entry| entry.state.is_over());
            self.before = all.map(|entry| entry.id).collect();
            return Some(Activity::Begun);
        }
        let new = |state| over(state).filter(|id| !self.before.contains(id)).count();
        Some(Activity::Ended { finished: new(JobState::Finished), failed: new(JobState::Failed) })
    }
}

/// Whether a recording runs or is about to: true between two recordings, too.
pub(super) fn is_busy(queue: &Queue, paused: bool) -> bool {
    queue.iter().any(|entry| match entry.state {
        _ if entry.is_asked_again() => true,
        JobState::Running | JobState::Stopping | JobState::Pausing => true,
        JobState::Waiting => !paused,
        JobState::Held | JobState::Paused | JobState::Finished | JobState::Failed | JobState::Cancelled => {
            false
        }
    })
}

fn over(queue: &Queue, state: JobState) -> impl Iterator<Item = JobId> {
    queue.iter().filter(move |entry| entry.state == state).map(|entry| entry.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_begins_once_and_its_end_counts_what_came_of_it() {
        let mut shared = Shared::default();
        let mut watch = Watch::default();
        assert_eq!(watch.look(&shared), None);
        let broken = Some(wire::Failure::new(wire::ErrorCode::FileEmpty, "The file is empty."));
        shared.queue.add("empty".into(), None, false, broken.clone());
        // No job was started for it.
        assert_eq!(watch.look(&shared), None);
        let ids: Vec<JobId> =
            ["a", "b", "c"].map(|file| shared.queue.add(file.into(), None, false, None)).into();
        assert_eq!(watch.look(&shared), Some(Activity::Begun));
        for (state, failure) in [(JobState::Finished, None), (JobState::Failed, broken)] {
            let id = shared.queue.start_next().unwrap().id;
            assert_eq!(watch.look(&shared), None);
            shared.queue.end(id, state, None, failure);
            assert_eq!(watch.look(&shared), None);
        }
        shared.queue.cancel(ids[2]);
        assert_eq!(watch.look(&shared), Some(Activity::Ended { finished: 1, failed: 1 }));
        shared.queue.retry(ids[1], None);
        assert_eq!(watch.look(&shared), Some(Activity::Begun));
        shared.paused = true;
        assert_eq!(watch.look(&shared), Some(Activity::Ended { finished: 0, failed: 0 }));
    }
}
