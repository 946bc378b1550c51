//! One job after the other, each from its turn to its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use advisor::idle::Idle;
use supervisor::SupervisedJob;
use tokio::time::MissedTickBehavior;
use transcript::{Notice, Transcript};
use wire::notice::Message;
use wire::{ErrorCode, Event, Failure, Job};

use super::{Ended, Jobs, Record, State, now};
use crate::error::ErrorBody;
use crate::feed::Feed;
use crate::scrub;

/// Between two looks for what was kept for long enough.
const EXPIRY: Duration = Duration::from_secs(600);

/// How a job ended.
#[derive(Debug)]
pub enum Outcome {
    /// Its last event.
    Over(Box<Event>),
    TooLong,
    /// The server is being stopped.
    Interrupted,
}

/// A job whose turn it is, or that is ended before its turn.
#[derive(Debug)]
pub struct Turn {
    pub number: u64,
    pub record: Record,
    pub key: library::JobKey,
    pub job: Job,
    pub feed: Arc<Feed>,
}

impl Jobs {
    /// Runs jobs until the server is stopped.
    pub async fn run(self) {
        let mut expiry = tokio::time::interval(EXPIRY);
        expiry.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut idle = Idle::default();
        loop {
            if self.lock().closed {
                return;
            }
            match self.next() {
                Some(turn) => {
                    idle.end();
                    self.one(turn).await;
                }
                None => {
                    let Self(inner) = &self;
                    tokio::select! {
                        () = idle.wait(&inner.supervisor, &inner.preferences, &inner.wake) => {}
                        _ = expiry.tick() => {
                            let jobs = self.clone();
                            let _ = tokio::task::spawn_blocking(move || jobs.expire()).await;
                        }
                    }
                }
            }
        }
    }

    fn next(&self) -> Option<Turn> {
        let mut shared = self.lock();
        let (number, entry) = shared.all.iter_mut().find(|(_, entry)| entry.state == State::Waiting)?;
        entry.take(*number)
    }

    async fn one(&self, turn: Turn) {
        let started = Instant::now();
        let handle = self.0.supervisor.submit_kept(turn.job.clone(), turn.key);
        let was_cancelled = {
            let mut shared = self.lock();
            let going = shared.all.get_mut(&turn.number).and_then(|entry| entry.going.as_mut());
            going.is_some_and(|going| {
                going.stop = Some(handle.stop());
                going.cancelled
            })
        };
        if was_cancelled {
            handle.cancel();
        }
        let outcome = self.attend(&turn, handle).await;
        if matches!(outcome, Outcome::Interrupted) {
            return;
        }
        let (jobs, seconds) = (self.clone(), started.elapsed().as_secs_f64());
        // A disk may take its time.
        let _ = tokio::task::spawn_blocking(move || jobs.end(turn, outcome, seconds)).await;
    }

    async fn attend(&self, turn: &Turn, mut handle: SupervisedJob) -> Outcome {
        let longest = self.0.limits.duration;
        let mut is_too_long = false;
        while let Some(event) = handle.next().await {
            self.0.metrics.hear(&event);
            let length = match &event {
                Event::Started { source, .. } => source.duration,
                Event::Finished { transcript, .. } => transcript.source.duration,
                _ => transcript::Time::ZERO,
            };
            if length > longest {
                is_too_long = true;
                handle.cancel();
            }
            let event = scrub::event(event, &turn.record.name);
            if !event.is_last() {
                turn.feed.tell(Arc::new(event));
                continue;
            }
            let is_closed = self.lock().closed;
            let event = match event {
                Event::Finished { mut transcript, renewal } if turn.record.bilingual && !is_too_long => {
                    self.translate(turn, &mut transcript).await;
                    Event::Finished { transcript, renewal }
                }
                event => event,
            };
            return match event {
                // The journal has all of the text but its translation: the next server goes on from there.
                Event::Finished { .. } if turn.record.bilingual && self.lock().closed => Outcome::Interrupted,
                _ if is_too_long => Outcome::TooLong,
                // A job that was over in that moment is over.
                Event::Cancelled { .. } | Event::Failed { .. } if is_closed => Outcome::Interrupted,
                event => Outcome::Over(Box::new(event)),
            };
        }
        Outcome::Interrupted
    }

    /// Puts English beside the text. Where that fails or is cancelled, what was said stays, and a notice says why.
    async fn translate(&self, turn: &Turn, transcript: &mut Transcript) {
        if transcript.language == "en" {
            return;
        }
        let plain = Job { resume: None, ..turn.job.clone() };
        let mut handle = self.0.supervisor.submit(plain.translating(transcript.language.clone()));
        let was_cancelled = {
            let mut shared = self.lock();
            let going = shared.all.get_mut(&turn.number).and_then(|entry| entry.going.as_mut());
            going.is_some_and(|going| {
                going.stop = Some(handle.stop());
                going.cancelled
            })
        };
        if was_cancelled {
            handle.cancel();
        }
        let mut failure = Failure::new(ErrorCode::Cancelled, "The translation was stopped.");
        while let Some(event) = handle.next().await {
            match scrub::event(event, &turn.record.name) {
                event @ (Event::Progress { .. } | Event::Memory { .. }) => turn.feed.tell(Arc::new(event)),
                Event::Finished { transcript: found, .. } => {
                    transcript.add_translation(&found.segments);
                    return;
                }
                Event::Failed { error, .. } => failure = error,
                _ => {}
            }
        }
        transcript.notices.push(Notice::from(Message::again_failed(failure)));
    }

    /// Keeps what came of a job, then tells the journal, then those who follow it: what they hear is true for ever.
    pub fn end(&self, turn: Turn, outcome: Outcome, seconds: f64) {
        let Turn { number, record, key, feed, .. } = turn;
        let (event, code) = match outcome {
            Outcome::Over(event) => (*event, None),
            Outcome::TooLong => (too_long(self.0.limits.duration), Some(TOO_LONG)),
            Outcome::Interrupted => return,
        };
        let (mut state, mut error, text) = match &event {
            Event::Finished { transcript, .. } => (State::Finished, None, Some(&**transcript)),
            Event::Cancelled { partial } => (State::Cancelled, None, partial.as_deref()),
            Event::Failed { error, partial } => {
                let body = ErrorBody::of(error);
                let code = code.map(str::to_owned).or_else(|| body.code.clone());
                (State::Failed, Some(ErrorBody { code, ..body }), partial.as_deref())
            }
            _ => return,
        };
        if let (State::Finished, Some(transcript)) = (state, text) {
            self.0.metrics.computed(transcript.source.duration, seconds);
        }
        let at = now();
        let mut ended = Ended { record, state, ended: at, error: error.clone() };
        let text: Option<&Transcript> =
            text.filter(|text| !text.segments.is_empty() || state == State::Finished);
        if let Err(failure) = self.0.store.end(&ended, text) {
            // Without its text the job has failed.
            let failure = Failure::named(failure.code(), &failure.message(), Some(failure.remedy()));
            let body = ErrorBody::of(&failure);
            (state, error) = (State::Failed, Some(body.clone()));
            ended = Ended { state, error: Some(body), ..ended };
            let event = Arc::new(Event::Failed { error: failure, partial: None });
            if self.0.store.end(&ended, None).is_err() {
                // The journal keeps it for the next start.
                self.over(number, state, at, error);
                return feed.tell(event);
            }
            self.tell_end(number, key, state, at, error);
            return feed.tell(event);
        }
        self.tell_end(number, key, state, at, error);
        feed.tell(Arc::new(event));
    }

    fn tell_end(&self, number: u64, key: library::JobKey, state: State, at: u64, error: Option<ErrorBody>) {
        // Where this fails, the next server finds that the job is over.
        let _ = self.0.journal.finish(key, state.journal());
        self.0.metrics.ended(state.name(), error.as_ref().and_then(|body| body.code.as_deref()));
        self.over(number, state, at, error);
    }

    fn over(&self, number: u64, state: State, at: u64, error: Option<ErrorBody>) {
        if let Some(entry) = self.lock().all.get_mut(&number) {
            entry.state = state;
            entry.ended = Some((at, error));
            entry.going = None;
        }
    }
}

/// The code of a recording that is longer than the server allows.
const TOO_LONG: &str = "recording_too_long";

fn too_long(longest: transcript::Time) -> Event {
    let message = format!("The recording is longer than this server allows ({} s).", longest.seconds());
    Event::Failed { error: Failure::new(ErrorCode::RecordingRefused, message), partial: None }
}
