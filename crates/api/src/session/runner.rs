//! Takes one recording after the other to the engine.

use std::sync::Arc;

use library::Identity;
use wire::{ErrorCode, Event, Failure, Job, NO_JOB};

use super::again::transcribe_again;
use super::kept::Outputs;
use super::queue::{Entry, State};
use super::usage::Forecast;
use super::{Inner, Session, Settings};
use crate::Preferences;
use crate::alternatives::with_alternatives;

/// Runs until the session is closed.
pub async fn run(inner: Arc<Inner>) {
    loop {
        let next = inner.change(|shared| {
            if shared.closed {
                return Err(());
            }
            let settings = (shared.settings.clone(), shared.preferences.clone());
            // Somebody waits for it who looks at the text: also while the queue is paused.
            if let Some((entry, again)) = shared.queue.next_again() {
                return Ok(Some((entry, Some(again), settings)));
            }
            if shared.paused {
                return Ok(None);
            }
            Ok(shared.queue.start_next().map(|entry| (entry, None, settings)))
        });
        match next {
            Err(()) => return,
            Ok(None) => inner.wake.notified().await,
            Ok(Some((entry, Some(again), (settings, preferences)))) => {
                transcribe_again(&inner, entry, again, settings, preferences).await;
            }
            Ok(Some((entry, None, (settings, preferences)))) => {
                let id = entry.id;
                if let Err(failure) = transcribe(&inner, entry, settings, preferences).await {
                    inner.change(|shared| shared.queue.end(id, State::Failed, None, Some(failure)));
                }
            }
        }
    }
}

async fn transcribe(
    inner: &Arc<Inner>,
    entry: Entry,
    settings: Settings,
    preferences: Preferences,
) -> Result<(), Failure> {
    let (id, keeper) = (entry.id, Arc::clone(inner));
    // The recording is looked at, wherever it lies, and the journal written.
    let begun = tokio::task::spawn_blocking(move || {
        let (job, key) = if entry.sample {
            (job(&entry, &settings, &preferences)?, None)
        } else {
            let outputs = Outputs::of(&entry);
            let identity = Identity::of(&entry.file).ok();
            let make = || job(&entry, &settings, &preferences);
            keeper.kept().begin(entry.id, &outputs, identity.as_ref(), make)?
        };
        // What is installed now, also for a job of an earlier window.
        let forecast = Forecast::of(&job);
        Ok((with_alternatives(job), key, forecast))
    });
    let (job, key, forecast) = begun.await.unwrap_or_else(|_| {
        Err(Failure::new(ErrorCode::Internal, "The job could not be begun.").remedy("Try it again."))
    })?;
    inner.change(|shared| shared.queue.forecast(id, forecast));
    // Where there is no engine, this job is not the only one to fail.
    inner.supervisor.ready().await?;
    inner.kept().runs(id);
    let mut handle = match key {
        Some(key) => inner.supervisor.submit_kept(job, key),
        None => inner.supervisor.submit(job),
    };
    let stopped_meanwhile = inner.change(|shared| {
        shared.running = Some((id, handle.stop()));
        shared.closed || shared.queue.get(id).is_some_and(|entry| entry.state == State::Stopping)
    });
    if stopped_meanwhile {
        handle.cancel();
    }
    let mut given_up = false;
    while let Some(event) = handle.next().await {
        let ended = match &event {
            Event::Failed { .. } => Some(library::JournalState::Failed),
            Event::Cancelled { .. } => Some(library::JournalState::Cancelled),
            // What is finished stays in the journal until it is in the history, or saved.
            _ => None,
        };
        given_up = ended.is_some();
        // Both at once: who starts over is written down anew, and not crossed out.
        let mut kept = ended.map(|state| (inner.kept(), state));
        let closed = inner.change(|shared| {
            shared.queue.apply(id, event);
            shared.closed
        });
        // What the end of the window stopped goes on at its next start.
        if let (Some((kept, state)), false) = (&mut kept, closed) {
            kept.finish(id, *state);
        }
    }
    inner.change(|shared| shared.running = None);
    if !given_up {
        let session = Session { inner: Arc::clone(inner) };
        let _ = tokio::task::spawn_blocking(move || session.put_away(id)).await;
    }
    Ok(())
}

/// The job that a recording is with these settings.
pub fn job(entry: &Entry, settings: &Settings, preferences: &Preferences) -> Result<Job, Failure> {
    let settings = entry.own.as_ref().unwrap_or(settings);
    let model = settings.model.as_ref().ok_or_else(|| {
        Failure::new(ErrorCode::ModelNotFound, "There is no model to transcribe with.")
            .remedy("Choose a model's folder.")
    })?;
    let mut job = Job::new(NO_JOB, entry.file.clone(), model.path.clone());
    settings.fill(&mut job);
    job.threads = preferences.engine.threads;
    job.memory = preferences.memory.clone();
    job.precision = preferences.precision;
    Ok(job)
}
