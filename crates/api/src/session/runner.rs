//! Takes one recording after the other to the engine.

use std::sync::Arc;

use wire::{ErrorCode, Failure, Job, NO_JOB};

use super::queue::{Entry, State};
use super::{Inner, Settings};
use crate::Engine;

/// Runs until the session is closed.
pub async fn run(inner: Arc<Inner>) {
    loop {
        let next = inner.change(|shared| {
            if shared.closed {
                return Err(());
            }
            Ok(shared.queue.start_next().map(|entry| (entry, shared.settings.clone())))
        });
        match next {
            Err(()) => return,
            Ok(None) => inner.wake.notified().await,
            Ok(Some((entry, settings))) => {
                let id = entry.id;
                if let Err(failure) = transcribe(&inner, entry, settings).await {
                    inner.change(|shared| shared.queue.end(id, State::Failed, None, Some(failure)));
                }
            }
        }
    }
}

async fn transcribe(inner: &Inner, entry: Entry, settings: Settings) -> Result<(), Failure> {
    let job = job(&entry, settings)?;
    let engine = engine(inner).await?;
    let mut handle = engine.transcribe(job);
    let stopped_meanwhile = inner.change(|shared| {
        shared.running = Some((entry.id, handle.canceller()));
        shared.closed || shared.queue.get(entry.id).is_some_and(|entry| entry.state == State::Stopping)
    });
    if stopped_meanwhile {
        handle.cancel();
    }
    while let Some(event) = handle.next().await {
        inner.change(|shared| shared.queue.apply(entry.id, event));
    }
    inner.change(|shared| shared.running = None);
    Ok(())
}

fn job(entry: &Entry, settings: Settings) -> Result<Job, Failure> {
    let model = settings.model.ok_or_else(|| {
        Failure::new(ErrorCode::ModelNotFound, "There is no model to transcribe with.")
            .remedy("Choose a model's folder.")
    })?;
    let mut job = Job::new(NO_JOB, entry.file.clone(), model.path);
    job.language = settings.language;
    job.task = settings.task;
    Ok(job)
}

/// The engine, started where there is none or the last one died.
pub async fn engine(inner: &Inner) -> Result<Arc<Engine>, Failure> {
    let mut engine = inner.engine.lock().await;
    if inner.lock().closed {
        return Err(Failure::new(ErrorCode::Cancelled, "The program is being closed."));
    }
    match &*engine {
        Some(running) if running.is_running() => Ok(Arc::clone(running)),
        _ => {
            let started = Arc::new(Engine::start(&inner.options).await?);
            *engine = Some(Arc::clone(&started));
            Ok(started)
        }
    }
}
