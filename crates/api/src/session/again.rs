//! Parts of a finished recording that are transcribed once more.

use std::sync::Arc;

use transcript::Span;
use wire::{ErrorCode, Event, Failure, JobId};

use super::queue::{Entry, State};
use super::{Inner, Session, Settings, runner};
use crate::Preferences;
use crate::alternatives::with_alternatives;

impl Session {
    /// Transcribes a part of a finished recording again, before anything else
    /// that waits, with the settings as they are now.
    pub fn again(&self, id: JobId, span: Span) {
        self.change(|shared| shared.queue.ask_again(id, span));
    }
}

/// The text of `span` takes the place of what was there. Where it fails the
/// transcript stays as it was, and a notice with it says why.
pub async fn transcribe_again(
    inner: &Arc<Inner>,
    entry: Entry,
    span: Span,
    settings: Settings,
    preferences: Preferences,
) {
    let id = entry.id;
    let result = found(inner, entry, span, settings, preferences).await;
    inner.change(|shared| {
        shared.running = None;
        shared.queue.answer_again(id, span, result);
    });
}

async fn found(
    inner: &Arc<Inner>,
    mut entry: Entry,
    span: Span,
    settings: Settings,
    preferences: Preferences,
) -> Result<Option<Box<transcript::Transcript>>, Failure> {
    let id = entry.id;
    let mut settings = entry.own.take().unwrap_or(settings);
    if settings.language.is_none() {
        // A few seconds say less of the language than the whole recording did.
        settings.language = entry.language.clone();
    }
    let made = tokio::task::spawn_blocking(move || {
        let mut job = runner::job(&entry, &settings, &preferences)?;
        job.span = Some(span);
        Ok(with_alternatives(job))
    });
    let job = made.await.unwrap_or_else(|_| Err(nothing_came()))?;
    inner.supervisor.ready().await?;
    let mut handle = inner.supervisor.submit(job);
    let stopped_meanwhile = inner.change(|shared| {
        shared.running = Some((id, handle.stop()));
        shared.closed || !shared.queue.get(id).is_some_and(|entry| entry.again.contains(&span))
    });
    if stopped_meanwhile {
        handle.cancel();
    }
    while let Some(event) = handle.next().await {
        match event {
            Event::Finished { transcript, .. } => return Ok(Some(transcript)),
            Event::Cancelled { .. } => return Ok(None),
            Event::Failed { error, .. } => return Err(error),
            _ => {}
        }
    }
    Err(nothing_came())
}

fn nothing_came() -> Failure {
    Failure::new(ErrorCode::Internal, "The engine gave no answer.").remedy("Try it again.")
}

/// Whether a recording can be asked for a part of it.
pub fn can_be_asked(entry: &Entry) -> bool {
    entry.state == State::Finished && entry.transcript.is_some()
}
