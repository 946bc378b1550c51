//! Parts of a finished recording that are transcribed again.

use std::sync::Arc;

use transcript::{Severity, Span, Time, Transcript};
use wire::{Channels, ErrorCode, Event, Failure, JobId};

use super::queue::{JobState, QueueEntry};
use super::{Done, Inner, JobSettings, Session, runner};
use advisor::ModelRef;
use advisor::with_alternatives;
use config::Preferences;
use serde::{Deserialize, Serialize};

/// All of any recording.
const WHOLE: Span = Span { start: Time::ZERO, end: Time::from_millis(u32::MAX) };
/// The same. A request is known by its part, and both may be asked of one recording.
const WHOLE_IN_ENGLISH: Span = Span { start: Time::ZERO, end: Time::from_millis(u32::MAX - 1) };

/// What is asked of a finished recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgainKind {
    /// A part of it is transcribed again.
    Text,
    /// Who speaks is found, in all of it; nothing is transcribed.
    Speakers,
    /// All of it is translated to English, beside its text.
    Translation,
}

/// A part of a finished recording that is to be transcribed again.
#[derive(Debug, Clone, PartialEq)]
pub struct Again {
    /// The part of the recording.
    pub span: Span,
    /// What is done.
    pub kind: AgainKind,
    /// Other settings, whose result waits for the user's choice. `None`: the new text
    /// replaces the old one at once.
    pub attempt: Option<Attempt>,
    /// The result that waits for the user's choice.
    pub found: Option<Box<Transcript>>,
}

/// Settings of another attempt; `None`: as the recording's.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attempt {
    /// Another model.
    pub model: Option<ModelRef>,
    /// ISO 639-1.
    pub language: Option<String>,
}

impl Session {
    /// Transcribes a part of a finished recording again, before all that waits, with the
    /// settings as they are now and those of the attempt.
    pub fn again(&self, id: JobId, span: Span, attempt: Option<Attempt>) {
        self.ask(id, Again { span, kind: AgainKind::Text, attempt, found: None });
    }

    /// Finds who speaks in a finished recording, before all that waits. Nothing is transcribed again;
    /// names that segments have are replaced, as an edit.
    pub fn find_speakers(&self, id: JobId) {
        self.ask(id, Again { span: WHOLE, kind: AgainKind::Speakers, attempt: None, found: None });
    }

    /// Translates a finished recording to English, before all that waits. The translation stands
    /// beside the text, in place of an earlier one, as an edit.
    pub fn translate(&self, id: JobId) {
        self.ask(id, Again::translation());
    }

    fn ask(&self, id: JobId, again: Again) {
        self.change(|shared| shared.queue.ask_again(id, again));
        self.keep_requests(id);
    }

    /// Replaces the text of `span` by the result of another attempt, as an edit, or drops
    /// that result. `None` where there is none. Waits for the disk.
    ///
    /// # Errors
    /// Where the edit can't be stored: then the result still waits.
    pub fn choose_again(&self, id: JobId, span: Span, take: bool) -> Result<Option<Done>, Failure> {
        let found = self.lock().queue.found_again(id, span);
        let done = match found {
            Some(found) if take => self.put_again(id, span, *found)?,
            _ => None,
        };
        self.change(|shared| shared.queue.answer_again(id, span, None));
        self.keep_requests(id);
        Ok(done)
    }
}

/// Transcribes a part again. Its text replaces the old one, or waits for the user's
/// choice. After a failure the transcript stays as it was, and a notice says why.
pub async fn transcribe_again(
    inner: &Arc<Inner>,
    entry: QueueEntry,
    again: Again,
    settings: JobSettings,
    preferences: Preferences,
) {
    let (id, span, waits, kind) = (entry.id, again.span, again.attempt.is_some(), again.kind);
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
            let put = tokio::task::spawn_blocking(move || match kind {
                AgainKind::Speakers if found.turns.is_empty() => Err(nobody(&found)),
                AgainKind::Speakers => session.put_speakers(id, found.turns),
                AgainKind::Text => session.put_again(id, span, *found),
                AgainKind::Translation => session.put_translation(id, &found.segments),
            });
            let put = put.await;
            put.unwrap_or_else(|_| Err(nothing_came())).err()
        }
        Ok(None) => None,
        Err(failure) => Some(failure),
    };
    inner.change(|shared| {
        shared.running = None;
        shared.queue.answer_again(id, span, failure);
    });
    Session { inner: Arc::clone(inner) }.keep_requests(id);
}

async fn found(
    inner: &Arc<Inner>,
    mut entry: QueueEntry,
    again: Again,
    settings: JobSettings,
    preferences: Preferences,
) -> Result<Option<Box<Transcript>>, Failure> {
    let (id, span, kind) = (entry.id, again.span, again.kind);
    let mut settings = entry.own.take().unwrap_or(settings);
    if let Some(Attempt { model, language }) = again.attempt {
        settings.model = model.or(settings.model);
        settings.language = language;
    }
    if settings.language.is_none() {
        // A few seconds tell less about the language than the whole recording.
        settings.language = entry.language.clone();
    }
    // As the text is, whatever is set now. The entry itself comes without its text.
    let (has_channels, language) = {
        let shared = inner.lock();
        let transcript = shared.queue.get(id).and_then(|entry| entry.transcript.as_deref());
        let transcript = transcript.ok_or_else(nothing_came)?;
        (transcript.has_channels(), transcript.language.clone())
    };
    let made = tokio::task::spawn_blocking(move || {
        let mut job = runner::adapted(runner::job(&entry, &settings, &preferences)?);
        job.channels = if has_channels { Channels::Separate } else { Channels::Mix };
        job.span = None;
        match kind {
            AgainKind::Speakers => job.find_speakers_of_text(Vec::new()),
            AgainKind::Translation => job = job.translating(language),
            AgainKind::Text => job.span = Some(span),
        }
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

impl Again {
    /// All of a recording, to English.
    pub fn translation() -> Self {
        Self { span: WHOLE_IN_ENGLISH, kind: AgainKind::Translation, attempt: None, found: None }
    }
}

/// Why no speaker was found.
fn nobody(found: &Transcript) -> Failure {
    let notice = found.notices.iter().find(|notice| notice.severity != Severity::Info);
    let text = notice.map_or("No speech was found in this recording.", |notice| notice.text.as_str());
    Failure::new(ErrorCode::NoVoice, text)
}

fn nothing_came() -> Failure {
    Failure::new(ErrorCode::Internal, "The engine gave no answer.").remedy("Try again.")
}

impl QueueEntry {
    /// Whether a part of it is being transcribed again, or waits for that.
    pub(super) fn is_asked_again(&self) -> bool {
        self.again.iter().any(|again| again.found.is_none())
    }
}

/// Whether parts of a recording can be transcribed again.
pub fn can_be_asked(entry: &QueueEntry) -> bool {
    entry.state == JobState::Finished && entry.transcript.is_some()
}
