use std::sync::Arc;

use memory::ladder::Processor;
use tokio::sync::mpsc::UnboundedSender;
use transcript::{Notice, Severity};
use wire::{Event, Failure, Job};

use super::journal_writer::{JournalWriter, Record};
use super::recovery::{Next, RecoveryPolicy};
use super::slot::EngineSlot;
use super::{Inner, Stop};
use crate::progress::JobProgress;
use crate::runs::{DeviceLease, Holder};
use crate::{Engine, JobHandle};

/// How one attempt ended.
enum Ended {
    /// The client has its last event.
    Over,
    Failed(Failure, Option<Box<transcript::Transcript>>),
}

/// One job from its turn to its last event.
pub struct Run {
    inner: Arc<Inner>,
    job: Job,
    keeper: JournalWriter,
    events: UnboundedSender<Event>,
    stop: Stop,
}

impl Run {
    pub fn new(
        inner: Arc<Inner>,
        job: Job,
        keeper: JournalWriter,
        events: UnboundedSender<Event>,
        stop: Stop,
    ) -> Self {
        Self { inner, job, keeper, events, stop }
    }

    pub async fn run(mut self) {
        let inner = Arc::clone(&self.inner);
        let slot = tokio::select! {
            biased;
            () = self.stop.asked() => None,
            slot = inner.slot.lock() => Some(slot),
        };
        let learned = slot.as_ref().and_then(|slot| slot.learned_for(&self.job));
        let mut course = RecoveryPolicy::new(self.job.clone(), learned);
        match slot {
            None => self.cancelled(&course, None),
            Some(mut slot) => {
                self.attempts(&mut slot, &mut course).await;
                slot.learn(self.job.clone(), course.learned());
            }
        }
    }

    async fn attempts(&mut self, slot: &mut EngineSlot, course: &mut RecoveryPolicy) {
        // One turn for all attempts at a file.
        let mut lease = None;
        loop {
            let inner = Arc::clone(&self.inner);
            let engine = tokio::select! {
                biased;
                () = self.stop.asked() => return self.cancelled(course, None),
                engine = slot.engine(&inner) => engine,
            };
            let engine = match engine {
                Ok(engine) => engine,
                Err(failure) => return self.gave_up(course, Vec::new(), failure, None),
            };
            if lease.is_none() {
                lease = tokio::select! {
                    biased;
                    () = self.stop.asked() => return self.cancelled(course, None),
                    lease = self.lease(&engine) => lease,
                };
            }
            let is_cpu = engine.device(self.job.device) == "cpu";
            let job = course.next_job(if is_cpu { Processor::Cpu } else { Processor::Gpu });
            self.record(course.attempt(), course.progress()).await;
            let handle = engine.attempt(job);
            self.stop.reach(handle.canceller());
            let (failure, partial) = match self.follow(slot, course, handle).await {
                Ended::Over => return,
                Ended::Failed(failure, partial) => (failure, partial),
            };
            match course.failed(failure, engine.death()) {
                Next::Again { tell, record } => {
                    for one in record {
                        self.record(one, course.progress()).await;
                    }
                    tell.into_iter().for_each(|event| self.tell(event));
                    drop(engine);
                    slot.leave(&inner).await;
                }
                Next::GiveUp { tell, failure } => return self.gave_up(course, tell, failure, partial),
            }
        }
    }

    /// This host's turn at the device; `None` where hosts don't take turns.
    async fn lease(&self, engine: &Engine) -> Option<DeviceLease> {
        let runs = self.inner.runs.as_ref()?;
        let device = engine.device(self.job.device);
        let waiting = |holder: Holder| {
            self.notice(Notice::new("device.waiting", Severity::Info, holder.text(&device)));
        };
        // A folder that can't be used is no reason not to work.
        runs.lease(&device, waiting).await.ok()
    }

    /// Passes on what one engine says.
    async fn follow(
        &mut self,
        slot: &mut EngineSlot,
        course: &mut RecoveryPolicy,
        mut handle: JobHandle,
    ) -> Ended {
        while let Some(event) = handle.next().await {
            match event {
                Event::Finished { mut transcript, renewal, .. } => {
                    course.complete(&mut transcript);
                    slot.worked(renewal);
                    self.tell(Event::Finished { transcript, renewal });
                    return Ended::Over;
                }
                Event::Cancelled { partial, .. } => {
                    slot.worked(None);
                    self.cancelled(course, partial);
                    return Ended::Over;
                }
                Event::Failed { partial, .. } if self.stop.is_asked() => {
                    self.cancelled(course, partial);
                    return Ended::Over;
                }
                Event::Failed { error, partial, .. } => {
                    slot.worked(None);
                    return Ended::Failed(error, partial);
                }
                event => {
                    let heard = course.hear(event);
                    if let Some(record) = heard.record {
                        self.record(record, course.progress()).await;
                    }
                    heard.tell.into_iter().for_each(|event| self.tell(event));
                }
            }
        }
        // A handle always has a last event.
        Ended::Over
    }

    async fn record(&mut self, record: Record, progress: &JobProgress) {
        if let Some(notice) = self.keeper.record(record, progress).await {
            self.notice(notice);
        }
    }

    fn notice(&self, notice: Notice) {
        self.tell(Event::Notice { notice });
    }

    fn cancelled(&self, course: &RecoveryPolicy, partial: Option<Box<transcript::Transcript>>) {
        self.tell(Event::Cancelled { partial: course.partial(partial) });
    }

    fn gave_up(
        &self,
        course: &RecoveryPolicy,
        tell: Vec<Event>,
        mut error: Failure,
        partial: Option<Box<transcript::Transcript>>,
    ) {
        tell.into_iter().for_each(|event| self.tell(event));
        error.file.get_or_insert_with(|| self.job.file.clone());
        let partial = course.partial(partial);
        self.tell(Event::Failed { error, partial });
    }

    fn tell(&self, event: Event) {
        // Fails where nobody listens: then the job was dropped, which stops it.
        let _ = self.events.send(event);
    }
}
