//! One job, from its delivery to its end.

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::message::{AckKind, Acker};
use async_nats::jetstream::object_store::ObjectMetadata;
use serde::Serialize;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use transcript::export::{Format, Options, export};
use transcript::{Time, Transcript};
use wire::{ErrorCode, Event, Failure, FilePath, Job, Resume};

use super::runner::{Runner, raised};
use super::{Told, Worker};
use crate::connection::{Cluster, failed};
use crate::job::Submitted;
use crate::record::{End, Note, Under, now};
use crate::source::upload_name;
use crate::steps::Recorder;

/// Failures that every worker would have alike.
const LASTING: [ErrorCode; 11] = [
    ErrorCode::FileEmpty,
    ErrorCode::FileIncomplete,
    ErrorCode::NotAFile,
    ErrorCode::NoAudioTrack,
    ErrorCode::NoSuchTrack,
    ErrorCode::UnknownFormat,
    ErrorCode::UnsupportedCodec,
    ErrorCode::AudioBroken,
    ErrorCode::LanguageUnknown,
    ErrorCode::BadSettings,
    ErrorCode::ModelUnsupported,
];

/// For NATS to take a result while the worker is being stopped.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// After it did not take one.
const AGAIN: Duration = Duration::from_secs(1);

/// How a delivery ended.
enum Outcome {
    Finished(Box<Transcript>),
    Failed(Failure),
    /// The worker is to end.
    Stopped,
}

/// A job that this worker has, until it is acknowledged or handed back.
pub(super) struct Taken {
    pub submitted: Submitted,
    /// How often it was delivered, this time included.
    pub delivered: u64,
    note: Note,
    acker: Arc<Acker>,
    heartbeat: Heartbeat,
    started: Instant,
}

impl Taken {
    /// Deliveries that count.
    fn tries(&self) -> u64 {
        self.delivered.saturating_sub(self.note.handed_back)
    }

    pub fn name(&self) -> String {
        self.submitted.name.clone()
    }

    /// Seconds since it was delivered.
    pub fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Why a job was given up, as a message of its own.
#[derive(Serialize)]
struct DeadLetter<'a> {
    id: &'a str,
    name: &'a str,
    failure: &'a Failure,
    worker: &'a str,
    deliveries: u64,
    at: u64,
}

/// Says that the job is still worked on, until it is dropped.
pub(super) struct Heartbeat(JoinHandle<()>);

impl Heartbeat {
    fn start(acker: Arc<Acker>, redeliver_after: Duration) -> Self {
        Self(tokio::spawn(async move {
            loop {
                tokio::time::sleep(redeliver_after / 3).await;
                // Where NATS is away, so is its clock.
                let _ = acker.ack_with(AckKind::Progress).await;
            }
        }))
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl<R: Runner> Worker<R> {
    /// Whatever happens, the job is acknowledged only once it is over; else it comes to another worker.
    pub(super) async fn one(
        &self,
        model: &str,
        message: jetstream::Message,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let Some(taken) = self.take(message, stop, tell).await else { return };
        self.lock().job = Some(Under {
            id: taken.submitted.id.clone(),
            name: taken.name(),
            model: model.to_owned(),
            position: Time::ZERO,
            duration: None,
        });
        let (outcome, resumed_at) = self.deliver(&taken, model, stop, tell).await;
        self.lock().job = None;
        match outcome {
            Outcome::Finished(transcript) => {
                let end = End { duration: transcript.source.duration, resumed_at, ..self.end_of(&taken) };
                let mut json = Vec::new();
                match export(&transcript, Format::Json, &Options::default(), &mut json) {
                    Ok(()) => self.finished(taken, end, Some(&json), stop, tell).await,
                    Err(error) => {
                        let message = format!("The text can't be sent ({error}).");
                        self.failed(taken, Failure::new(ErrorCode::Internal, message), stop, tell).await;
                    }
                }
            }
            Outcome::Stopped => self.hand_back(taken, stop, tell).await,
            Outcome::Failed(failure) => self.failed(taken, failure, stop, tell).await,
        }
    }

    /// Says that the job is worked on from now on. `None` where nothing is to be done: it is over, was removed, or was
    /// tried too often.
    pub(super) async fn take(
        &self,
        message: jetstream::Message,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) -> Option<Taken> {
        let started = Instant::now();
        let delivered = message.info().map_or(1, |info| u64::try_from(info.delivered).unwrap_or(1));
        let (message, acker) = message.split();
        let id = String::from_utf8_lossy(&message.payload).into_owned();
        let acker = Arc::new(acker);
        let heartbeat = Heartbeat::start(Arc::clone(&acker), self.options.redeliver_after);
        let Some((submitted, note)) = self.insist(stop, || self.cluster.known(&id, delivered)).await? else {
            self.acknowledge(stop, &acker).await;
            return None;
        };
        let mut taken = Taken { submitted, delivered, note, acker, heartbeat, started };
        if taken.tries() > self.options.max_deliveries {
            let note = std::mem::take(&mut taken.note);
            let failure = note.failure.unwrap_or_else(|| workers_died(&note.worker, &taken.submitted));
            self.give_up(taken, failure, stop, tell).await;
            return None;
        }
        if delivered > 1 {
            // Should this worker die too, the next one knows its name.
            taken.note = Note { worker: self.options.name.clone(), failure: None, ..taken.note };
            self.insist(stop, || self.cluster.note(&id, &taken.note)).await?;
        }
        Some(taken)
    }

    /// How a job ended of which nothing more is known.
    pub(super) fn end_of(&self, taken: &Taken) -> End {
        End {
            failure: None,
            worker: self.options.name.clone(),
            duration: Time::ZERO,
            seconds: taken.seconds(),
            resumed_at: None,
            languages: Vec::new(),
            at: now(),
        }
    }

    /// The result goes to NATS, and the job is over.
    pub(super) async fn finished(
        &self,
        taken: Taken,
        end: End,
        transcript: Option<&[u8]>,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let kept = self.insist(stop, || self.cluster.finish(&taken.submitted, &end, transcript)).await;
        if kept.is_none() {
            return;
        }
        self.acknowledge(stop, &taken.acker).await;
        self.cluster.tidy(&taken.submitted, taken.delivered > 1).await;
        let (duration, seconds) = (end.duration, taken.seconds());
        {
            let mut status = self.lock();
            status.finished += 1;
            status.recorded += duration.seconds();
            status.worked += seconds;
        }
        tell(Told::Finished { name: taken.name(), duration, seconds });
    }

    /// This worker is to end: another one has the job at once.
    pub(super) async fn hand_back(
        &self,
        taken: Taken,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let note = Note { handed_back: taken.note.handed_back + 1, ..taken.note.clone() };
        self.insist(stop, || self.cluster.note(&taken.submitted.id, &note)).await;
        let name = taken.name();
        self.put_back(taken, None).await;
        tell(Told::HandedBack { name });
    }

    /// The job is tried again, here or elsewhere, unless it would fail alike or was tried often enough.
    pub(super) async fn failed(
        &self,
        taken: Taken,
        mut failure: Failure,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let name = taken.name();
        // A path of this machine says nothing elsewhere.
        failure.file = Some(FilePath::from(name.as_str()));
        if LASTING.contains(&failure.code) || taken.tries() >= self.options.max_deliveries {
            return self.give_up(taken, failure, stop, tell).await;
        }
        let worker = self.options.name.clone();
        let note = Note { failure: Some(failure.clone()), worker, ..taken.note.clone() };
        self.insist(stop, || self.cluster.note(&taken.submitted.id, &note)).await;
        self.put_back(taken, Some(self.options.redeliver_after / 3)).await;
        tell(Told::PutBack { name, failure });
    }

    async fn put_back(&self, taken: Taken, after: Option<Duration>) {
        let Taken { heartbeat, acker, .. } = taken;
        // Its next beat would say that the job is still worked on.
        drop(heartbeat);
        // Where NATS does not hear of it, it finds out when the heartbeat is missed.
        let _ = acker.ack_with(AckKind::Nak(after)).await;
        self.cluster.flush().await;
    }

    /// Fetches the recording and runs the job.
    async fn deliver(
        &self,
        taken: &Taken,
        model: &str,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) -> (Outcome, Option<Time>) {
        let (submitted, mut stopped) = (&taken.submitted, stop.clone());
        let fetched = tokio::select! {
            fetched = self.cluster.fetch(submitted, &self.spool, &self.options.ssh) => fetched,
            () = raised(&mut stopped) => return (Outcome::Stopped, None),
        };
        let fetched = match fetched {
            Ok(fetched) => fetched,
            Err(failure) => return (Outcome::Failed(failure), None),
        };
        // What can't be read now is computed again.
        let resume =
            if taken.delivered > 1 { self.cluster.steps(&submitted.id).await.ok().flatten() } else { None };
        let resumed_at = resume.as_ref().and_then(|resume| resume.point.as_ref()).map(wire::Point::reached);
        tell(Told::Began { name: submitted.name.clone(), resumed_at });
        let mut job = match self.job(submitted, model, fetched.file.as_path().into()) {
            Ok(job) => job,
            Err(failure) => return (Outcome::Failed(failure), None),
        };
        job.resume = resume.clone().map(Box::new);
        (self.compute(submitted, job, resume.as_ref(), stop).await, resumed_at)
    }

    /// The job with what this machine has for it.
    pub(super) fn job(&self, submitted: &Submitted, model: &str, file: FilePath) -> Result<Job, Failure> {
        let installed = self.options.models.iter().find(|installed| installed.name == model);
        let Some((installed, template)) = installed.zip(self.templates.get(model)) else {
            let message = format!("The model \"{model}\" is not installed on this worker.");
            return Err(Failure::new(ErrorCode::ModelNotFound, message));
        };
        Ok(template.fill(Job {
            file,
            model: installed.path.as_path().into(),
            device: self.options.device,
            ..submitted.job.clone()
        }))
    }

    /// Runs the job, and publishes each step of it as it is reached.
    async fn compute(
        &self,
        submitted: &Submitted,
        job: Job,
        resume: Option<&Resume>,
        stop: &watch::Receiver<bool>,
    ) -> Outcome {
        let (events, mut heard) = mpsc::unbounded_channel();
        let (steps, to_publish) = mpsc::unbounded_channel();
        let publisher = tokio::spawn(self.cluster.clone().publish_steps(submitted.id.clone(), to_publish));
        let mut recorder = Recorder::new(resume);
        let mut hear = |event: &Event| {
            if let Some(step) = recorder.hear(event) {
                let _ = steps.send(step);
            }
            let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(under) = &mut status.job else { return };
            match event {
                Event::Progress { progress } => {
                    under.position = progress.position;
                    under.duration = progress.duration.or(under.duration);
                }
                Event::Started { source, .. } => under.duration = Some(source.duration),
                _ => {}
            }
        };
        let mut running = std::pin::pin!(self.runner.run(job, events, stop.clone()));
        let last = loop {
            tokio::select! {
                biased;
                Some(event) = heard.recv() => hear(&event),
                last = &mut running => break last,
            }
        };
        while let Ok(event) = heard.try_recv() {
            hear(&event);
        }
        let is_stopped = *stop.borrow();
        drop(steps);
        match last {
            Event::Finished { transcript, .. } => {
                publisher.abort();
                Outcome::Finished(transcript)
            }
            last => {
                // The next worker goes on from the last of them.
                let _ = tokio::time::timeout(LAST_WORDS, publisher).await;
                match last {
                    _ if is_stopped => Outcome::Stopped,
                    Event::Failed { error, .. } => Outcome::Failed(error),
                    _ => Outcome::Failed(Failure::new(ErrorCode::Cancelled, "The job was cancelled.")),
                }
            }
        }
    }

    /// No further try is made: the reason is published, and the job is over.
    async fn give_up(
        &self,
        taken: Taken,
        failure: Failure,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let end = End { failure: Some(failure.clone()), ..self.end_of(&taken) };
        let deliveries = taken.delivered;
        if self.insist(stop, || self.cluster.give_up(&taken.submitted, &end, deliveries)).await.is_none() {
            return;
        }
        self.acknowledge(stop, &taken.acker).await;
        self.cluster.tidy(&taken.submitted, true).await;
        tell(Told::GaveUp { name: taken.name(), failure });
    }

    /// The queue forgets the job. Where it does not hear of this, the job comes again and is found to be over.
    async fn acknowledge(&self, stop: &watch::Receiver<bool>, acker: &Acker) {
        let confirmed = || async {
            let confirmed = tokio::time::timeout(LAST_WORDS, acker.double_ack()).await;
            match confirmed {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(failed("hear that a job is over", &error)),
                Err(_) => Err(failed("hear that a job is over", &"it is silent")),
            }
        };
        self.insist(stop, confirmed).await;
    }

    /// Until NATS takes it: a result is not given up because a server starts again. `None` where the worker has to
    /// end before that.
    async fn insist<T, F>(&self, stop: &watch::Receiver<bool>, request: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let work = async {
            loop {
                match request().await {
                    Ok(done) => return done,
                    Err(_) => tokio::time::sleep(AGAIN).await,
                }
            }
        };
        let mut stopped = stop.clone();
        let late = async {
            raised(&mut stopped).await;
            tokio::time::sleep(LAST_WORDS).await;
        };
        tokio::select! {
            done = work => Some(done),
            () = late => None,
        }
    }
}

fn workers_died(worker: &str, submitted: &Submitted) -> Failure {
    let who = if worker.is_empty() { String::new() } else { format!(" The last one was {worker}.") };
    Failure::new(
        ErrorCode::EngineFailed,
        format!("Every worker that had this job ended without a word.{who}"),
    )
    .file(FilePath::from(submitted.name.as_str()))
    .remedy("Try the recording on its own: steno transcribe.")
}

impl Cluster {
    /// The job and what its workers said; `None` where it is over or was removed.
    async fn known(&self, id: &str, delivered: u64) -> Result<Option<(Submitted, Note)>, Failure> {
        if self
            .records
            .get(format!("end.{id}"))
            .await
            .map_err(|error| failed("tell of a job", &error))?
            .is_some()
        {
            return Ok(None);
        }
        let Some(submitted) = self.submitted(id).await? else { return Ok(None) };
        if delivered == 1 {
            return Ok(Some((submitted, Note::default())));
        }
        let note = self.records.get(format!("note.{id}")).await;
        let note = note.map_err(|error| failed("tell of a job", &error))?;
        let note = note.and_then(|json| serde_json::from_slice(&json).ok()).unwrap_or_default();
        Ok(Some((submitted, note)))
    }

    async fn note(&self, id: &str, note: &Note) -> Result<(), Failure> {
        let json = serde_json::to_vec(note).unwrap_or_default();
        let put = self.records.put(format!("note.{id}"), json.into()).await;
        put.map(drop).map_err(|error| failed("keep a note", &error))
    }

    /// The transcript first: what is over has one.
    async fn finish(
        &self,
        submitted: &Submitted,
        end: &End,
        transcript: Option<&[u8]>,
    ) -> Result<(), Failure> {
        if let Some(mut json) = transcript {
            let meta = ObjectMetadata { name: transcript_name(&submitted.id), ..ObjectMetadata::default() };
            self.files.put(meta, &mut json).await.map_err(|error| failed("keep a transcript", &error))?;
        }
        self.end(&submitted.id, end).await
    }

    async fn give_up(&self, submitted: &Submitted, end: &End, deliveries: u64) -> Result<(), Failure> {
        let Some(failure) = &end.failure else { return Ok(()) };
        let (id, name, worker) = (submitted.id.as_str(), submitted.name.as_str(), end.worker.as_str());
        let letter = DeadLetter { id, name, failure, worker, deliveries, at: end.at };
        let json = serde_json::to_vec(&letter).unwrap_or_default();
        let trouble = |error: &dyn std::fmt::Display| failed("keep a dead letter", error);
        let sent = self.context.publish(self.subject("dead", id), json.into()).await;
        sent.map_err(|error| trouble(&error))?.await.map_err(|error| trouble(&error))?;
        self.end(id, end).await
    }

    async fn end(&self, id: &str, end: &End) -> Result<(), Failure> {
        let json = serde_json::to_vec(end).unwrap_or_default();
        let put = self.records.put(format!("end.{id}"), json.into()).await;
        put.map(drop).map_err(|error| failed("keep how a job ended", &error))
    }

    /// Removes what a job that is over needs no more. What stays where this fails goes with the job.
    async fn tidy(&self, submitted: &Submitted, had_notes: bool) {
        self.forget_steps(&submitted.id).await;
        if had_notes {
            let _ = self.records.purge(format!("note.{}", submitted.id)).await;
        }
        if submitted.source == crate::Source::Upload {
            let _ = self.files.delete(upload_name(&submitted.id)).await;
        }
    }
}

/// The object that a transcript is.
pub(crate) fn transcript_name(id: &str) -> String {
    format!("transcript.{id}")
}
