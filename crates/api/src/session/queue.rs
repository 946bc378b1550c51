//! The recordings that were opened and what became of them. A plain state
//! machine: no engine, no clock, no thread, so that it can be tested by tables.

mod told;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use library::documents::UndoPosition;
use transcript::edit::{self, Change, Mismatch};
use transcript::{Model, Notice, Segment, Severity, Source, Span, Transcript};
use wire::{Event, Failure, JobId, Progress};

use super::Settings;
use super::again::{Again, Attempt, can_be_asked};
use super::editing::Edited;
use super::length::Length;
use super::turns::Turns;
use super::usage::{Forecast, JobMemory};
use told::without_text;
pub use told::{Changes, Ending, TextChange};

/// Where a recording stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for the user's word, because only the demonstration model is there.
    Held,
    Waiting,
    Running,
    /// Asked to stop, not there yet.
    Stopping,
    Finished,
    Failed,
    Cancelled,
}

impl State {
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }

    /// Its turn is still to come.
    pub fn waits(self) -> bool {
        matches!(self, Self::Held | Self::Waiting)
    }
}

/// One recording in the queue.
#[derive(Debug, Clone)]
pub struct Entry {
    pub id: JobId,
    pub file: PathBuf,
    pub bytes: Option<u64>,
    /// The recording that comes with the program: it may be transcribed with
    /// the demonstration model without asking.
    pub sample: bool,
    /// The watched folder that it was found in.
    pub watched: Option<PathBuf>,
    /// What it is transcribed with in place of the settings at hand.
    pub own: Option<Settings>,
    pub length: Length,
    pub state: State,
    pub progress: Option<Progress>,
    pub source: Option<Source>,
    pub model: Option<Model>,
    pub device: Option<String>,
    pub failure: Option<Failure>,
    /// The whole or partial result; its segments are the entry's segments.
    pub transcript: Option<Box<Transcript>>,
    /// Where the transcript was last saved.
    pub saved: Option<PathBuf>,
    pub memory: JobMemory,
    /// Parts of it that are being transcribed again, wait for that, or for the
    /// user's choice.
    pub again: Vec<Again>,
    /// That of its text, once it is there.
    pub language: Option<String>,
    /// Its place in the history; `None`: it can't be edited.
    pub edited: Option<Edited>,
    /// The recording of a transcript of the history was not where it had been.
    pub missing: bool,
    streamed: Vec<Segment>,
    notices: Vec<Notice>,
    changed: u64,
    rewrites: Vec<Rewrite>,
}

/// Segments that were there became others.
#[derive(Debug, Clone)]
struct Rewrite {
    version: u64,
    /// The first that may be another one.
    from: usize,
    /// What was done; not of what is long ago.
    changes: Option<Arc<[Change]>>,
}

/// So many edits are told as they were done. Whoever looked last before these
/// is told the text from the first of them on.
const REMEMBERED: usize = 16;

impl Entry {
    pub fn segments(&self) -> &[Segment] {
        self.transcript.as_ref().map_or(&self.streamed, |transcript| &transcript.segments)
    }

    pub fn notices(&self) -> &[Notice] {
        self.transcript.as_ref().map_or(&self.notices, |transcript| &transcript.notices)
    }

    /// The whole of which there was a part.
    fn take(&mut self, mut transcript: Box<Transcript>, version: u64) {
        edit::assign_ids(&mut transcript);
        // What was shown while it came may have been repaired or aligned since.
        let same = self.streamed.iter().zip(&transcript.segments).take_while(|(a, b)| a == b).count();
        if same < self.streamed.len() {
            self.rewrites.push(Rewrite { version, from: same, changes: None });
        }
        self.source.get_or_insert_with(|| transcript.source.clone());
        self.model.get_or_insert_with(|| transcript.model.clone());
        self.language = Some(transcript.language.clone());
        self.transcript = Some(transcript);
        self.streamed = Vec::new();
        self.notices = Vec::new();
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    entries: BTreeMap<JobId, Entry>,
    turns: Turns,
    /// Version at which somebody else's turn came first.
    reordered: u64,
    /// With the version at which each was removed.
    removed: BTreeSet<(u64, JobId)>,
    last: JobId,
    version: u64,
}

impl Queue {
    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// `failure`: the file was found wanting before any engine saw it.
    pub fn add(
        &mut self,
        file: PathBuf,
        bytes: Option<u64>,
        sample: bool,
        failure: Option<Failure>,
    ) -> JobId {
        self.last += 1;
        let state = if failure.is_some() { State::Failed } else { State::Waiting };
        let entry = Entry {
            id: self.last,
            file,
            bytes,
            sample,
            watched: None,
            own: None,
            length: Length::NotAsked,
            state,
            progress: None,
            source: None,
            model: None,
            device: None,
            failure,
            transcript: None,
            saved: None,
            memory: JobMemory::default(),
            again: Vec::new(),
            language: None,
            edited: None,
            missing: false,
            streamed: Vec::new(),
            notices: Vec::new(),
            changed: 0,
            rewrites: Vec::new(),
        };
        self.entries.insert(self.last, entry);
        self.turns.add(self.last);
        self.touch(self.last);
        self.last
    }

    pub fn get(&self, id: JobId) -> Option<&Entry> {
        self.entries.get(&id)
    }

    /// In the order of their turns.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.turns.iter().filter_map(|id| self.entries.get(&id))
    }

    /// Moves recordings, in their order, in front of `before`, or to the end.
    pub fn reorder(&mut self, moved: &[JobId], before: Option<JobId>) {
        if self.turns.reorder(moved, before) {
            self.note_order();
        }
    }

    pub fn is_shortest_first(&self) -> bool {
        self.turns.is_shortest_first()
    }

    pub fn put_shortest_first(&mut self, on: bool) {
        self.turns.put_shortest_first(on);
        self.arrange();
    }

    /// Keeps the order what it is to be. After every change, before anybody looks.
    pub fn arrange(&mut self) {
        let wait = |id| {
            let entry: &Entry = self.entries.get(&id).filter(|entry: &&Entry| entry.state.waits())?;
            Some(entry.length.seconds().unwrap_or(f64::INFINITY))
        };
        if self.turns.arrange(wait) {
            self.note_order();
        }
    }

    fn note_order(&mut self) {
        self.version += 1;
        self.reordered = self.version;
    }

    /// What waits and whose length nobody has asked for.
    pub fn unmeasured(&self) -> impl Iterator<Item = (JobId, PathBuf)> {
        let unmeasured = |entry: &&Entry| entry.state.waits() && entry.length == Length::NotAsked;
        self.iter().filter(unmeasured).map(|entry| (entry.id, entry.file.clone()))
    }

    pub fn measured(&mut self, id: JobId, length: Length) {
        match length {
            Length::Seconds(_) => self.change(id, |entry, _| entry.length = length),
            // Nobody sees that.
            Length::Unknown | Length::NotAsked => {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.length = length;
                }
            }
        }
    }

    /// It can't be transcribed: said before its turn. False where that has come.
    pub fn refuse(&mut self, id: JobId, failure: Failure) -> bool {
        let waits = self.get(id).is_some_and(|entry| entry.state.waits());
        if waits {
            self.end(id, State::Failed, None, Some(failure));
        }
        waits
    }

    /// Gives a recording whose turn is still to come settings of its own;
    /// `None`: those at hand. False for one that has begun.
    pub fn set_own(&mut self, id: JobId, own: Option<Settings>) -> bool {
        let begun =
            |entry: &Entry| !entry.state.waits() && !matches!(entry.state, State::Failed | State::Cancelled);
        if self.get(id).is_none_or(begun) {
            return false;
        }
        self.change(id, |entry, _| entry.own = own);
        true
    }

    pub fn set_watched(&mut self, id: JobId, folder: PathBuf) {
        self.change(id, |entry, _| entry.watched = Some(folder));
    }

    /// What concerns the text as a whole and was learned after it was done.
    pub fn remark(&mut self, id: JobId, notice: Notice) {
        self.change(id, |entry, _| match &mut entry.transcript {
            Some(transcript) => transcript.notices.push(notice),
            None => entry.notices.push(notice),
        });
    }

    /// How many recordings would be left undone by closing now.
    pub fn unfinished(&self) -> usize {
        let undone =
            |entry: &&Entry| matches!(entry.state, State::Waiting | State::Running | State::Stopping);
        self.iter().filter(undone).count()
    }

    /// How many texts of the user's own recordings would be lost by closing now.
    pub fn unsaved(&self) -> usize {
        self.iter()
            .filter(|entry| entry.transcript.is_some() && entry.saved.is_none() && !entry.sample)
            // What is in the history is safe there.
            .filter(|entry| entry.edited.is_none())
            .count()
    }

    /// The next recording to work on, marked as running. None yet while the
    /// shortest is to come first and not all have been asked how long they are.
    pub fn start_next(&mut self) -> Option<Entry> {
        if self.is_shortest_first() && self.unmeasured().next().is_some() {
            return None;
        }
        self.arrange();
        let id = self.iter().find(|entry| entry.state == State::Waiting)?.id;
        let entry = self.entries.get_mut(&id)?;
        entry.state = State::Running;
        let copy = entry.clone();
        self.touch(id);
        Some(copy)
    }

    /// Holds what waits (but for the sample) where `hold` says so, else lets it go.
    pub fn hold(&mut self, hold: impl Fn(&Entry) -> bool) {
        let state = |entry: &Entry| if hold(entry) { State::Held } else { State::Waiting };
        let waiting = self.iter().filter(|entry| entry.state.waits() && !entry.sample);
        let moved: Vec<_> = waiting.filter(|entry| entry.state != state(entry)).collect();
        let moved: Vec<_> = moved.into_iter().map(|entry| (entry.id, state(entry))).collect();
        for (id, state) in moved {
            self.set(id, state);
        }
    }

    /// Takes in what the engine says of the recording `id`, whatever number
    /// the engine knows it by.
    pub fn apply(&mut self, id: JobId, event: Event) {
        match event {
            Event::Started { source, model, device, .. } => self.change(id, |entry, _| {
                entry.source = Some(source);
                entry.model = Some(model);
                entry.device = Some(device);
            }),
            Event::Progress { progress, .. } => self.change(id, |entry, _| entry.progress = Some(progress)),
            Event::Segment { mut segment, .. } => self.change(id, |entry, _| {
                // The number that it will have in the finished transcript.
                segment.id = u32::try_from(entry.streamed.len() + 1).unwrap_or(0);
                entry.streamed.push(segment);
            }),
            Event::Notice { notice, .. } => self.change(id, |entry, _| {
                entry.memory.hear(&notice);
                entry.notices.push(notice);
            }),
            Event::Memory { mark, .. } => self.change(id, |entry, _| entry.memory.add(*mark)),
            Event::Finished { transcript, .. } => self.end(id, State::Finished, Some(transcript), None),
            Event::Cancelled { partial, .. } => self.end(id, State::Cancelled, partial, None),
            Event::Failed { error, partial, .. } => self.end(id, State::Failed, partial, Some(error)),
            // Not about a transcription.
            _ => {}
        }
    }

    /// Ends a job; a second end is ignored.
    pub fn end(
        &mut self,
        id: JobId,
        state: State,
        transcript: Option<Box<Transcript>>,
        failure: Option<Failure>,
    ) {
        self.change(id, |entry, version| {
            if entry.state.is_over() {
                return;
            }
            entry.state = state;
            entry.failure = failure;
            entry.progress = None;
            if let Some(transcript) = transcript {
                entry.take(transcript, version);
            }
        });
    }

    /// True where the engine has to be told.
    pub fn cancel(&mut self, id: JobId) -> bool {
        match self.get(id).map(|entry| entry.state) {
            Some(State::Running) => {
                self.set(id, State::Stopping);
                true
            }
            Some(State::Held | State::Waiting) => {
                self.set(id, State::Cancelled);
                false
            }
            _ => false,
        }
    }

    /// Starts over with what failed or was stopped.
    pub fn retry(&mut self, id: JobId, failure: Option<Failure>) {
        self.change(id, |entry, version| {
            if !matches!(entry.state, State::Failed | State::Cancelled) {
                return;
            }
            entry.state = if failure.is_some() { State::Failed } else { State::Waiting };
            entry.failure = failure;
            entry.length = Length::NotAsked;
            entry.rewrites.push(Rewrite { version, from: 0, changes: None });
            entry.transcript = None;
            entry.saved = None;
            entry.streamed = Vec::new();
            entry.notices = Vec::new();
            entry.memory.clear();
        });
    }

    /// Part of a finished recording is to be transcribed again.
    /// What was found for it before is forgotten.
    pub fn ask_again(&mut self, id: JobId, span: Span, attempt: Option<Attempt>) {
        self.change(id, |entry, _| {
            entry.again.retain(|again| again.span != span || again.found.is_none());
            if can_be_asked(entry) && !entry.again.iter().any(|again| again.span == span) {
                entry.again.push(Again { span, attempt, found: None });
            }
        });
    }

    /// What is asked for next, in the order of the list.
    pub fn next_again(&self) -> Option<(Entry, Again)> {
        let asked = |entry: &Entry| entry.again.iter().find(|again| again.found.is_none()).cloned();
        self.iter().find_map(|entry| Some((without_text(entry), asked(entry)?)))
    }

    /// What was found waits for the user's choice, unless it is wanted no longer.
    pub fn offer_again(&mut self, id: JobId, span: Span, found: Box<Transcript>) {
        self.change(id, |entry, _| {
            if let Some(again) = entry.again.iter_mut().find(|again| again.span == span) {
                again.found = Some(found);
            }
        });
    }

    /// What waits for the user's choice.
    pub fn found_again(&self, id: JobId, span: Span) -> Option<Box<Transcript>> {
        let again = self.get(id)?.again.iter().find(|again| again.span == span)?;
        again.found.clone()
    }

    /// That part is asked for no longer; where it failed a notice says why.
    pub fn answer_again(&mut self, id: JobId, span: Span, failure: Option<Failure>) {
        self.change(id, |entry, _| {
            entry.again.retain(|other| other.span != span);
            if let (Some(transcript), Some(failure)) = (&mut entry.transcript, failure) {
                let mut notice = Notice::new("transcript.again", Severity::Failed, failure.message);
                notice.at = Some(span.start);
                transcript.notices.push(notice);
            }
        });
    }

    /// Applies what was changed in a finished transcript; index of the first
    /// segment that may be another one.
    pub fn edit(
        &mut self,
        id: JobId,
        changes: Vec<Change>,
        edited: Option<Edited>,
    ) -> Result<usize, Mismatch> {
        let mut done = Err(Mismatch);
        self.change(id, |entry, version| {
            let Some(transcript) = &mut entry.transcript else { return };
            done = edit::apply(transcript, &changes);
            if let Ok(from) = done {
                entry.rewrites.push(Rewrite { version, from, changes: Some(changes.into()) });
                if let Some(last) = entry.rewrites.len().checked_sub(REMEMBERED + 1) {
                    entry.rewrites[last].changes = None;
                }
                entry.edited = edited;
                // What was saved is not what is here now.
                entry.saved = None;
            }
        });
        done
    }

    /// It is in the history from now on.
    pub fn set_edited(&mut self, id: JobId, edited: Edited) {
        self.change(id, |entry, _| entry.edited = Some(edited));
    }

    /// A transcript of the history, at the list's end; its first segments, until
    /// [`Queue::opened`] has all of it.
    pub fn open(&mut self, file: PathBuf, missing: bool, segments: Vec<Segment>, edited: Edited) -> JobId {
        let id = self.add(file, None, false, None);
        self.change(id, |entry, _| {
            entry.state = State::Finished;
            entry.edited = Some(edited);
            entry.missing = missing;
            entry.streamed = segments;
        });
        id
    }

    /// All of it and where it stands, or why that can't be had: what is there
    /// can be read then, and no more.
    pub fn opened(&mut self, id: JobId, opened: Result<(Box<Transcript>, UndoPosition), Failure>) {
        self.change(id, |entry, version| match opened {
            Ok((transcript, undo_position)) => {
                entry.take(transcript, version);
                entry.edited = entry.edited.map(|edited| Edited { undo_position, ..edited });
            }
            Err(failure) => {
                entry.edited = None;
                let text = format!("Only the beginning could be read. {failure}");
                entry.notices.push(Notice::new("history.unavailable", Severity::Failed, text));
            }
        });
    }

    /// Its recording lies elsewhere by now.
    pub fn place(&mut self, id: JobId, file: PathBuf) {
        self.change(id, |entry, _| {
            entry.file = file;
            entry.missing = false;
        });
    }

    /// Nothing more of it is transcribed again; what was found still waits.
    pub fn forget_again(&mut self, id: JobId) {
        self.change(id, |entry, _| entry.again.retain(|again| again.found.is_some()));
    }

    /// Takes a recording off the list, unless it is being worked on.
    pub fn remove(&mut self, id: JobId) {
        let busy =
            |entry: &Entry| matches!(entry.state, State::Running | State::Stopping) || entry.is_asked_again();
        if self.get(id).is_some_and(|entry| !busy(entry)) {
            self.entries.remove(&id);
            self.turns.remove(id);
            self.version += 1;
            self.removed.insert((self.version, id));
        }
    }

    pub fn forecast(&mut self, id: JobId, forecast: Option<Forecast>) {
        self.change(id, |entry, _| entry.memory.forecast = forecast);
    }

    pub fn saved(&mut self, id: JobId, file: PathBuf) {
        self.change(id, |entry, _| entry.saved = Some(file));
    }

    fn set(&mut self, id: JobId, state: State) {
        self.change(id, |entry, _| entry.state = state);
    }

    fn change(&mut self, id: JobId, change: impl FnOnce(&mut Entry, u64)) {
        let version = self.version + 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            change(entry, version);
            self.touch(id);
        }
    }

    fn touch(&mut self, id: JobId) {
        self.version += 1;
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.changed = self.version;
        }
    }
}

#[cfg(test)]
mod tests;
