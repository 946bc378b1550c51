//! Parts of a finished recording that are transcribed once more.

use std::sync::Arc;

use transcript::{Span, Transcript};
use wire::{ErrorCode, Event, Failure, JobId};

use super::queue::{JobState, QueueEntry};
use super::{Done, Inner, JobSettings, Session, runner};
use advisor::ModelRef;
use advisor::with_alternatives;
use config::Preferences;

/// A part of a finished recording that is to be transcribed once more.
#[derive(Debug, Clone, PartialEq)]
pub struct Again {
    pub span: Span,
    /// Asked for to be compared: what is found waits for the user's choice.
    /// `None`: it takes its place at once.
    pub attempt: Option<Attempt>,
    /// What was found and waits.
    pub found: Option<Box<Transcript>>,
}

/// What another attempt does otherwise; `None`: as the recording.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempt {
    pub model: Option<ModelRef>,
    /// ISO 639-1.
    pub language: Option<String>,
}

impl Session {
    /// Transcribes a part of a finished recording again, before anything else
    /// that waits, with the settings as they are now but for those of the attempt.
    pub fn again(&self, id: JobId, span: Span, attempt: Option<Attempt>) {
        self.change(|shared| shared.queue.ask_again(id, span, attempt));
    }

    /// The user's choice: the text that was found for `span` takes the place of
    /// what stands there, as an edit, or is forgotten. `None` where there is
    /// none. Waits for the disk.
    ///
    /// # Errors
    /// Where it can't be written down: then it still waits.
    pub fn choose_again(&self, id: JobId, span: Span, take: bool) -> Result<Option<Done>, Failure> {
        let found = self.lock().queue.found_again(id, span);
        let done = match found {
            Some(found) if take => self.put_again(id, span, *found)?,
            _ => None,
        };
        self.change(|shared| shared.queue.answer_again(id, span, None));
        Ok(done)
    }
}

/// The text of `span` takes the place of what was there, or waits for the
/// user's choice. Where it fails the transcript stays as it was, and a notice
/// with it says why.
pub async fn transcribe_again(
    inner: &Arc<Inner>,
    entry: QueueEntry,
    again: Again,
    settings: JobSettings,
    preferences: Preferences,
) {
    let (id, span, waits) = (entry.id, again.span, again.attempt.is_some());
    let result = found(inner, entry, again, settings, preferences).await;
    let failure = match result {
        Ok(Some(found)) if waits => {
            return inner.change(|shared| {
                shared.running = None;
                shared.queue.offer_again(id, span, found);
            });
        }
        Ok(Some(found)) => {
            let session = Session { inner: Arc::clone(inner) };
            let put = tokio::task::spawn_blocking(move || session.put_again(id, span, *found)).await;
            put.unwrap_or_else(|_| Err(nothing_came())).err()
        }
        Ok(None) => None,
        Err(failure) => Some(failure),
    };
    inner.change(|shared| {
        shared.running = None;
        shared.queue.answer_again(id, span, failure);
    });
}

async fn found(
    inner: &Arc<Inner>,
    mut entry: QueueEntry,
    again: Again,
    settings: JobSettings,
    preferences: Preferences,
) -> Result<Option<Box<Transcript>>, Failure> {
    let (id, span) = (entry.id, again.span);
    let mut settings = entry.own.take().unwrap_or(settings);
    if let Some(Attempt { model, language }) = again.attempt {
        settings.model = model.or(settings.model);
        settings.language = language;
    }
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
        shared.closed
            || !shared.queue.get(id).is_some_and(|entry| entry.again.iter().any(|other| other.span == span))
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

impl QueueEntry {
    /// Something of it is being transcribed again, or waits for that.
    pub(super) fn is_asked_again(&self) -> bool {
        self.again.iter().any(|again| again.found.is_none())
    }
}

/// Whether a recording can be asked for a part of it.
pub fn can_be_asked(entry: &QueueEntry) -> bool {
    entry.state == JobState::Finished && entry.transcript.is_some()
}
