use std::sync::{Arc, Mutex, PoisonError};

use library::Voices;
use memory::ladder::Processor;
use tokio::sync::mpsc::UnboundedSender;
use transcript::Notice;
use wire::notice::Message;
use wire::{ErrorCode, Event, Failure, Job, ModelAnswer};

use super::journal_writer::{JournalWriter, Record, blocking};
use super::recovery::{Next, RecoveryPolicy};
use super::slot::EngineSlot;
use super::{Inner, Left, Stop};
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
pub struct JobRun {
    inner: Arc<Inner>,
    job: Job,
    journal: JournalWriter,
    events: UnboundedSender<Event>,
    stop: Stop,
    /// From where the job can be resumed, once it ended early.
    left: Arc<Mutex<Left>>,
}

impl JobRun {
    pub fn new(
        inner: Arc<Inner>,
        job: Job,
        journal: JournalWriter,
        events: UnboundedSender<Event>,
        stop: Stop,
        left: Arc<Mutex<Left>>,
    ) -> Self {
        Self { inner, job, journal, events, stop, left }
    }

    pub async fn run(mut self) {
        let inner = Arc::clone(&self.inner);
        let slot = tokio::select! {
            biased;
            () = self.stop.asked() => None,
            slot = inner.slot.lock() => Some(slot),
        };
        let job = self.in_use();
        let learned = slot.as_ref().and_then(|slot| slot.learned_for(&job));
        let mut policy = RecoveryPolicy::new(job, learned);
        match slot {
            None => self.cancelled(&policy, None),
            Some(mut slot) => {
                self.attempts(&mut slot, &mut policy).await;
                slot.learn(self.in_use(), policy.learned());
            }
        }
    }

    async fn attempts(&mut self, slot: &mut EngineSlot, policy: &mut RecoveryPolicy) {
        // One turn for all attempts at a file.
        let mut lease = None;
        loop {
            let inner = Arc::clone(&self.inner);
            let engine = tokio::select! {
                biased;
                () = self.stop.asked() => return self.cancelled(policy, None),
                engine = slot.engine(&inner) => engine,
            };
            let engine = match engine {
                Ok(engine) => engine,
                Err(failure) => return self.gave_up(policy, Vec::new(), failure, None),
            };
            if lease.is_none() {
                lease = tokio::select! {
                    biased;
                    () = self.stop.asked() => return self.cancelled(policy, None),
                    lease = self.lease(&engine) => lease,
                };
            }
            if self.is_to_identify() {
                let message = self.identify(&engine).await;
                if self.stop.is_asked() {
                    return self.cancelled(policy, None);
                }
                let job = self.in_use();
                *policy = RecoveryPolicy::new(job.clone(), slot.learned_for(&job));
                if let Some(message) = message {
                    self.note(policy, message).await;
                }
                if !engine.is_running() {
                    slot.leave(&inner).await;
                    continue;
                }
            }
            let is_cpu = engine.device(self.job.device) == "cpu";
            let job = policy.next_job(if is_cpu { Processor::Cpu } else { Processor::Gpu });
            self.record(policy.attempt(), policy.progress()).await;
            self.introduce_voices(&engine, &job, policy).await;
            let handle = engine.attempt(job);
            self.stop.reach(handle.canceller());
            let (failure, partial) = match self.follow(slot, policy, handle).await {
                Ended::Over => return,
                Ended::Failed(failure, partial) => (failure, partial),
            };
            match policy.failed(failure, engine.death()) {
                Next::Again { tell, record } => {
                    for one in record {
                        self.record(one, policy.progress()).await;
                    }
                    tell.into_iter().for_each(|event| self.tell(event));
                    drop(engine);
                    slot.leave(&inner).await;
                }
                Next::GiveUp { tell, failure } => return self.gave_up(policy, tell, failure, partial),
            }
        }
    }

    /// The job as an engine does it.
    fn in_use(&self) -> Job {
        Job {
            id: self.job.id,
            resume: self.job.resume.clone(),
            by_language: None,
            ..self.job.in_use().clone()
        }
    }

    /// Text that is there already goes on with the model that wrote it.
    fn is_to_identify(&self) -> bool {
        let resume = self.job.resume.as_ref();
        let has_begun = resume.is_some_and(|resume| resume.point.is_some() || resume.ladder.is_some());
        self.job.by_language.as_ref().is_some_and(|by_language| by_language.answer.is_none()) && !has_begun
    }

    /// Identifies the language of the recording, and has the model follow from it. That it could not be identified fails no
    /// job: its own model stays. What there is to say of it.
    async fn identify(&mut self, engine: &Engine) -> Option<Message> {
        let (answer, message) = self.answer(engine).await;
        if self.stop.is_asked() {
            return None;
        }
        if let Some(by_language) = &mut self.job.by_language {
            by_language.answer = Some(answer);
        }
        self.left.lock().unwrap_or_else(PoisonError::into_inner).by_language = self.job.by_language.clone();
        if let Some(notice) = self.journal.settle(&self.job).await {
            self.notice(notice);
        }
        message
    }

    async fn answer(&mut self, engine: &Engine) -> (ModelAnswer, Option<Message>) {
        const OWN: (ModelAnswer, Option<Message>) = (ModelAnswer::Own, None);
        let Some(choose) = self.inner.choose_model else { return OWN };
        let job = self.in_use();
        // On blocking threads: it reads what the models' files and the device say.
        let choice = blocking(move || choose(&job)).await;
        let identified = match self.languages(engine).await {
            Ok(languages) => languages,
            Err(failure) => {
                let message = Message::LanguageNotIdentified { detail: failure.to_string() };
                return (ModelAnswer::Own, Some(message));
            }
        };
        let languages = identified.clone();
        let Some((job, model)) = blocking(move || choice(&languages)).await else { return OWN };
        let Some((language, probability)) = identified.into_iter().next() else { return OWN };
        let job = Job { resume: None, by_language: None, ..job };
        (ModelAnswer::Other(Box::new(job)), Some(Message::ModelOfLanguage { language, probability, model }))
    }

    async fn languages(&mut self, engine: &Engine) -> Result<Vec<(String, f32)>, Failure> {
        let by_language = self.job.by_language.as_ref();
        let identifier = by_language.map_or(&self.job.model, |by_language| &by_language.identifier).clone();
        let adapter = self.job.adapter.clone().filter(|_| identifier == self.job.model);
        let job = Job { model: identifier, adapter, resume: None, by_language: None, ..self.job.clone() };
        let mut handle = engine.detect_languages(vec![job.file.clone()], job);
        self.stop.reach(handle.canceller());
        let mut identified = Ok(Vec::new());
        while let Some(event) = handle.next().await {
            match event {
                Event::Language { probabilities, .. } => identified = Ok(probabilities),
                // What is wrong with the file is said by the job itself.
                Event::FileFailed { error, .. } if error.code != ErrorCode::OutOfMemory => {}
                Event::FileFailed { error, .. } | Event::Failed { error, .. } => identified = Err(error),
                _ => {}
            }
        }
        identified.map(|mut languages| {
            languages.sort_by(|(_, a), (_, b)| b.total_cmp(a));
            languages
        })
    }

    /// Tells the engine which people it may find among the speakers.
    async fn introduce_voices(&mut self, engine: &Engine, job: &Job, policy: &mut RecoveryPolicy) {
        let Some(path) = self.inner.voices.clone().filter(|_| job.speakers) else { return };
        match blocking(move || Voices::open_existing(&path)?.map_or(Ok(Vec::new()), |voices| voices.known()))
            .await
        {
            Ok(voices) => engine.know_voices(voices),
            Err(error) => {
                engine.know_voices(Vec::new());
                let message = Message::VoicesUnreadable { detail: error.failure().to_string() };
                self.note(policy, message).await;
            }
        }
    }

    /// Tells the client something that is kept with the text.
    async fn note(&mut self, policy: &mut RecoveryPolicy, message: Message) {
        let outcome = policy.handle_event(Event::Notice { notice: message.into() });
        if let Some(record) = outcome.record {
            self.record(record, policy.progress()).await;
        }
        outcome.tell.into_iter().for_each(|event| self.tell(event));
    }

    /// This host's turn at the device; `None` where hosts don't take turns.
    async fn lease(&self, engine: &Engine) -> Option<DeviceLease> {
        let runs = self.inner.runs.as_ref()?;
        let device = engine.device(self.job.device);
        let waiting = |holder: Holder| {
            self.notice(Message::DeviceWaiting { device: device.clone(), pid: holder.pid }.into());
        };
        // A folder that can't be used is no reason not to work.
        runs.lease(&device, waiting).await.ok()
    }

    /// Passes on what one engine says.
    async fn follow(
        &mut self,
        slot: &mut EngineSlot,
        policy: &mut RecoveryPolicy,
        mut handle: JobHandle,
    ) -> Ended {
        while let Some(event) = handle.next().await {
            match event {
                Event::Finished { mut transcript, renewal, .. } => {
                    policy.complete(&mut transcript);
                    slot.worked(renewal);
                    self.tell(Event::Finished { transcript, renewal });
                    return Ended::Over;
                }
                Event::Cancelled { partial, .. } => {
                    slot.worked(None);
                    self.cancelled(policy, partial);
                    return Ended::Over;
                }
                Event::Failed { partial, .. } if self.stop.is_asked() => {
                    self.cancelled(policy, partial);
                    return Ended::Over;
                }
                Event::Failed { error, partial, .. } => {
                    slot.worked(None);
                    return Ended::Failed(error, partial);
                }
                event => {
                    let outcome = policy.handle_event(event);
                    if let Some(record) = outcome.record {
                        self.record(record, policy.progress()).await;
                    }
                    outcome.tell.into_iter().for_each(|event| self.tell(event));
                }
            }
        }
        // A handle always has a last event.
        Ended::Over
    }

    async fn record(&mut self, record: Record, progress: &JobProgress) {
        if let Some(notice) = self.journal.record(record, progress).await {
            self.notice(notice);
        }
    }

    fn notice(&self, notice: Notice) {
        self.tell(Event::Notice { notice });
    }

    fn cancelled(&self, policy: &RecoveryPolicy, partial: Option<Box<transcript::Transcript>>) {
        self.leave(policy);
        self.tell(Event::Cancelled { partial: policy.partial(partial) });
    }

    fn gave_up(
        &self,
        policy: &RecoveryPolicy,
        tell: Vec<Event>,
        mut error: Failure,
        partial: Option<Box<transcript::Transcript>>,
    ) {
        tell.into_iter().for_each(|event| self.tell(event));
        error.file.get_or_insert_with(|| self.job.file.clone());
        let partial = policy.partial(partial);
        self.leave(policy);
        self.tell(Event::Failed { error, partial });
    }

    /// To be known before the last event.
    fn leave(&self, policy: &RecoveryPolicy) {
        let resume = Some(policy.resume()).filter(|resume| resume.point.is_some());
        self.left.lock().unwrap_or_else(PoisonError::into_inner).resume = resume;
    }

    fn tell(&self, event: Event) {
        // Fails where the receiver is gone: then the job was dropped, which stops it.
        let _ = self.events.send(event);
    }
}
