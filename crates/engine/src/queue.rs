use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pipeline::Control;
use wire::{Adapt, EmbedTexts, EncodeVoice, FilePath, Job, JobId, KnownVoice, Quantise};

/// What the device thread can be asked to do.
#[derive(Debug)]
pub enum Work {
    Describe,
    Transcribe(Box<Job>),
    DetectLanguages { id: JobId, files: Vec<FilePath>, job: Box<Job> },
    Quantise(Box<Quantise>),
    KnowVoices(Vec<KnownVoice>),
    EncodeVoice(Box<EncodeVoice>),
    EmbedTexts(Box<EmbedTexts>),
    Adapt(Box<Adapt>),
}

impl Work {
    pub fn id(&self) -> Option<JobId> {
        match self {
            Work::Describe | Work::KnowVoices(_) => None,
            Work::Transcribe(job) => Some(job.id),
            Work::DetectLanguages { id, .. } => Some(*id),
            Work::Quantise(asked) => Some(asked.id),
            Work::EncodeVoice(asked) => Some(asked.job.id),
            Work::EmbedTexts(asked) => Some(asked.job.id),
            Work::Adapt(asked) => Some(asked.job.id),
        }
    }
}

/// Work that waits and the work that runs, shared by the thread that takes
/// commands and the one that obeys them.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Its work counter is every job's.
    control: Control,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Work>,
    running: Option<Running>,
    closed: bool,
}

#[derive(Debug)]
struct Running {
    id: Option<JobId>,
    control: Control,
}

/// What became of a wish to cancel.
#[derive(Debug, PartialEq, Eq)]
pub enum Cancelled {
    /// It had not begun and never will: the caller says so to the host.
    Waiting,
    /// It was asked to stop: the device thread says when it has.
    Running,
    /// It ended already, or never was.
    Unknown,
}

impl Queue {
    /// False where the queue is closed.
    pub fn push(&self, work: Work) -> bool {
        let mut state = self.lock();
        if state.closed {
            return false;
        }
        match work {
            // It is quick, and a user waits for the answer.
            Work::Describe => state.waiting.push_front(work),
            _ => state.waiting.push_back(work),
        }
        self.changed.notify_all();
        true
    }

    /// Waits for work; `None` once the queue is closed. The work counts as
    /// running until [`Queue::done`].
    pub fn next(&self) -> Option<(Work, Control)> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(work) = state.waiting.pop_front() {
                let control = self.control.for_next_job();
                state.running = Some(Running { id: work.id(), control: control.clone() });
                return Some((work, control));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// To be called after the last event of what ran was sent.
    pub fn done(&self) {
        self.lock().running = None;
        self.changed.notify_all();
    }

    pub fn cancel(&self, id: JobId) -> Cancelled {
        let mut state = self.lock();
        if let Some(running) = state.running.as_ref().filter(|running| running.id == Some(id)) {
            running.control.cancel();
            return Cancelled::Running;
        }
        let before = state.waiting.len();
        state.waiting.retain(|work| work.id() != Some(id));
        if state.waiting.len() < before { Cancelled::Waiting } else { Cancelled::Unknown }
    }

    /// Takes no more work, asks what runs to stop, and returns the jobs that
    /// now never begin.
    pub fn close(&self) -> Vec<JobId> {
        let mut state = self.lock();
        state.closed = true;
        if let Some(running) = &state.running {
            running.control.cancel();
        }
        self.changed.notify_all();
        state.waiting.drain(..).filter_map(|work| work.id()).collect()
    }

    /// False where something still runs after `limit`.
    pub fn wait_until_idle(&self, limit: Duration) -> bool {
        let state = self.lock();
        let (_state, timeout) = self
            .changed
            .wait_timeout_while(state, limit, |state| state.running.is_some())
            .unwrap_or_else(PoisonError::into_inner);
        !timeout.timed_out()
    }

    pub fn is_running(&self) -> bool {
        self.lock().running.is_some()
    }

    /// Grows for as long as the device thread gets anywhere.
    pub fn work(&self) -> u64 {
        self.control.work()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(id: JobId) -> Work {
        Work::Transcribe(Box::new(Job::new(id, "file", "model")))
    }

    #[test]
    fn cancelling_tells_waiting_running_and_unknown_jobs_apart() {
        let queue = Queue::default();
        for id in 1..=3 {
            assert!(queue.push(job(id)));
        }
        let (first, control) = queue.next().unwrap();
        assert_eq!(first.id(), Some(1));

        assert_eq!(queue.cancel(2), Cancelled::Waiting);
        assert_eq!(queue.cancel(2), Cancelled::Unknown);
        assert!(!control.is_cancelled());
        assert_eq!(queue.cancel(1), Cancelled::Running);
        assert!(control.is_cancelled());
        queue.done();
        assert_eq!(queue.cancel(1), Cancelled::Unknown);

        let (third, control) = queue.next().unwrap();
        assert_eq!(third.id(), Some(3));
        assert!(!control.is_cancelled(), "a cancel concerns one job");
        control.worked();
        assert_eq!(queue.work(), 1);
    }

    #[test]
    fn closing_stops_what_runs_and_names_what_never_began() {
        let queue = Queue::default();
        for id in 1..=3 {
            queue.push(job(id));
        }
        let (_, control) = queue.next().unwrap();
        assert_eq!(queue.close(), vec![2, 3]);
        assert!(control.is_cancelled());
        assert!(!queue.push(job(4)));
        assert!(!queue.wait_until_idle(Duration::from_millis(1)));
        queue.done();
        assert!(queue.wait_until_idle(Duration::ZERO));
        assert!(queue.next().is_none());
    }
}
