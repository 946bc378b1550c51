//! The recordings in the window's list and the state of each. A plain state machine: no
//! engine, no clock, no thread, so that it can be tested by tables.

mod diff;
mod stopped;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use advisor::fit::Announcement;
use library::documents::UndoPosition;
use serde::Serialize;
use transcript::edit::{self, Change, Mismatch};
use transcript::export::Format;
use transcript::speakers;
use transcript::{Model, Notice, Segment, Source, Span, Time, Transcript};
use ts_rs::TS;
use wire::notice::Message;
use wire::{AudioTrack, Event, Failure, JobId, Progress};

use super::again::{Again, can_be_asked};
use super::another_machine::Placed;
use super::editing::Edited;
use super::elsewhere::Elsewhere;
use super::length::Length;
use super::queue_order::QueueOrder;
use super::save::Unsaved;
use super::usage::{Forecast, JobMemory};
use super::{JobSettings, Part};
use diff::without_text;
pub use diff::{Changes, Ending, TextChange};
pub use stopped::{StoppedJob, lacks_adapter};

/// The state of a recording in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "lowercase")]
pub enum JobState {
    /// Waits for the user's consent, because only the demonstration model is installed.
    Held,
    /// It has not started.
    Waiting,
    /// An engine works on it.
    Running,
    /// Asked to stop, and still running.
    Stopping,
    /// Asked to pause, and still running.
    Pausing,
    /// The user paused it: its text stays, and it goes on from there when the user resumes it.
    Paused,
    /// Its transcript is whole.
    Finished,
    /// It ended with a failure, perhaps with a part of the text.
    Failed,
    /// The user stopped it.
    Cancelled,
}

impl JobState {
    /// Whether nothing more will happen to it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled)
    }

    /// Its turn is still to come.
    pub fn waits(self) -> bool {
        matches!(self, Self::Held | Self::Waiting)
    }

    /// An engine works on it.
    pub fn runs(self) -> bool {
        matches!(self, Self::Running | Self::Stopping | Self::Pausing)
    }

    /// It ended before its text was whole, and begins again only if the user says so.
    pub fn is_set_aside(self) -> bool {
        matches!(self, Self::Paused | Self::Failed | Self::Cancelled)
    }
}

/// One recording in the queue.
#[derive(Debug, Clone)]
pub struct QueueEntry {
    /// Its number in the queue.
    pub id: JobId,
    /// The recording.
    pub file: PathBuf,
    /// The file's size.
    pub bytes: Option<u64>,
    /// The recording that comes with the program: it may be transcribed with
    /// the demonstration model without asking.
    pub sample: bool,
    /// The user has it transcribed with the demonstration model, where there is no other.
    pub approved: bool,
    /// The watched folder that it was found in.
    pub watched: Option<PathBuf>,
    /// Settings of its own, in place of the session's.
    pub own: Option<JobSettings>,
    /// Which part of it is transcribed.
    pub part: Part,
    /// Its audio tracks, where it was found to have several.
    pub tracks: Arc<[AudioTrack]>,
    /// How long the recording is, as far as its header says.
    pub length: Length,
    /// Its state.
    pub state: JobState,
    /// How far its job has come.
    pub progress: Option<Progress>,
    /// The recording as the engine describes it.
    pub source: Option<Source>,
    /// The model that transcribes it.
    pub model: Option<Model>,
    /// What computes: `cpu` or `cuda:N`.
    pub device: Option<String>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The whole or partial result; its segments are the entry's segments.
    pub transcript: Option<Box<Transcript>>,
    /// Where the transcript was last saved.
    pub saved: Option<PathBuf>,
    /// Why its transcript is not in the history, until it is.
    pub not_stored: Option<Failure>,
    /// What was to be saved when it was finished and was not, until all of it is.
    pub not_saved: Option<Arc<Unsaved>>,
    /// What was seen of the memory of its job.
    pub memory: JobMemory,
    /// Parts of it that are being transcribed again, wait for that, or for the
    /// user's choice.
    pub again: Vec<Again>,
    /// The language of its text, once that is there.
    pub language: Option<String>,
    /// Its place in the history; `None`: it can't be edited.
    pub edited: Option<Edited>,
    /// The recording of a transcript of the history was not where it had been.
    pub missing: bool,
    /// Why its model was not expected to fit when its job began, until the job ends.
    pub will_not_fit: Option<Box<Announcement>>,
    /// Its job tells speakers apart, once the text is there.
    pub speakers: bool,
    /// The file is damaged or cut off: up to here it could be decoded.
    pub truncated_at: Option<Time>,
    /// From where it can be resumed, after it was paused, stopped or failed.
    pub stopped: Option<Arc<StoppedJob>>,
    /// It was paused and is to go on: before all that wait, and as the job that it was.
    pub resumed: bool,
    /// Resuming it would begin anew: it was begun with other settings than it has now.
    pub starts_over: bool,
    /// Where it is transcribed, or was, if not here.
    pub elsewhere: Option<Box<Elsewhere>>,
    /// Its job on another machine, as long as that has it.
    pub placed: Option<Placed>,
    /// The text of the run before this one. It is shown until this one has text, and stays where
    /// this one ends earlier.
    earlier: Option<Box<Transcript>>,
    /// The text before this run is in the history, since this run does not go on from it.
    is_kept: bool,
    streamed: Vec<Segment>,
    /// What is being written behind them.
    live_text: Option<String>,
    notices: Vec<Notice>,
    changed: u64,
    rewrites: Vec<Rewrite>,
}

/// Up to where the file of a notice could be decoded, if it says that.
fn truncation(notice: &Notice) -> Option<Time> {
    notice.at.filter(|_| notice.code == wire::notice::Code::Truncated.as_str())
}

/// Whether a notice says that a text is not in the history, which passes.
pub(super) fn says_not_stored(notice: &Notice) -> bool {
    notice.code == wire::notice::Code::HistoryUnavailable.as_str()
}

/// Where a text ends.
fn reach(transcript: &Transcript) -> Time {
    transcript.segments.iter().map(|segment| segment.end).max().unwrap_or_default()
}

/// Existing segments were replaced.
#[derive(Debug, Clone)]
struct Rewrite {
    version: u64,
    /// Index of the first segment that may have been replaced.
    from: usize,
    /// The edits; `None` for all but the latest [`REMEMBERED`].
    changes: Option<Arc<[Change]>>,
}

/// How many of the latest edits followers get as edits. A follower that missed more gets
/// the text from the first changed segment on.
const REMEMBERED: usize = 16;

impl QueueEntry {
    /// Whether it ended early and stays, with what it reached, until the user removes it or has it go
    /// on: it failed, was paused, or was stopped when it had text.
    pub(super) fn stays_aside(&self) -> bool {
        let has_text = || self.transcript.as_ref().is_some_and(|text| !text.segments.is_empty());
        matches!(self.state, JobState::Failed | JobState::Paused)
            || (self.state == JobState::Cancelled && has_text())
    }

    /// Its text so far.
    pub fn segments(&self) -> &[Segment] {
        match (&self.transcript, &self.earlier) {
            (Some(transcript), _) => &transcript.segments,
            (None, Some(earlier)) if self.streamed.is_empty() => &earlier.segments,
            (None, _) => &self.streamed,
        }
    }

    /// What is being written behind its segments; `None` while those of an earlier run are shown.
    pub fn live_text(&self) -> Option<&str> {
        let is_earlier = self.streamed.is_empty() && self.earlier.is_some();
        self.live_text.as_deref().filter(|_| !is_earlier && self.transcript.is_none())
    }

    /// Notices about the text as a whole.
    pub fn notices(&self) -> &[Notice] {
        self.transcript.as_ref().map_or(&self.notices, |transcript| &transcript.notices)
    }

    /// Takes over the transcript of which parts were streamed.
    fn take(&mut self, mut transcript: Box<Transcript>, version: u64) {
        edit::assign_ids(&mut transcript);
        // Streamed segments may have been repaired or aligned since.
        let shown = self.segments();
        let same = shown.iter().zip(&transcript.segments).take_while(|(a, b)| a == b).count();
        if same < shown.len() {
            self.rewrites.push(Rewrite { version, from: same, changes: None });
        }
        self.source.get_or_insert_with(|| transcript.source.clone());
        self.model.get_or_insert_with(|| transcript.model.clone());
        self.language = Some(transcript.language.clone());
        self.truncated_at = transcript.notices.iter().find_map(truncation);
        self.transcript = Some(transcript);
        self.earlier = None;
        self.streamed = Vec::new();
        self.live_text = None;
        self.notices = Vec::new();
    }
}

#[derive(Debug, Default)]
pub struct Queue {
    entries: BTreeMap<JobId, QueueEntry>,
    turns: QueueOrder,
    /// Version at which the order last changed.
    reordered: u64,
    /// Removed recordings, each with the version at which it was removed.
    removed: BTreeSet<(u64, JobId)>,
    last: JobId,
    version: u64,
}

impl Queue {
    /// Grows with every change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// `failure`: why the file can't be transcribed, where that is known already.
    pub fn add(
        &mut self,
        file: PathBuf,
        bytes: Option<u64>,
        sample: bool,
        failure: Option<Failure>,
    ) -> JobId {
        self.last += 1;
        let state = if failure.is_some() { JobState::Failed } else { JobState::Waiting };
        let entry = QueueEntry {
            id: self.last,
            file,
            bytes,
            sample,
            approved: false,
            watched: None,
            own: None,
            part: Part::default(),
            tracks: Arc::default(),
            length: Length::NotAsked,
            state,
            progress: None,
            source: None,
            model: None,
            device: None,
            failure,
            transcript: None,
            saved: None,
            not_stored: None,
            not_saved: None,
            memory: JobMemory::default(),
            again: Vec::new(),
            language: None,
            edited: None,
            missing: false,
            will_not_fit: None,
            speakers: false,
            truncated_at: None,
            stopped: None,
            resumed: false,
            starts_over: false,
            elsewhere: None,
            placed: None,
            earlier: None,
            is_kept: false,
            streamed: Vec::new(),
            live_text: None,
            notices: Vec::new(),
            changed: 0,
            rewrites: Vec::new(),
        };
        self.entries.insert(self.last, entry);
        self.turns.add(self.last);
        self.touch(self.last);
        self.last
    }

    pub fn get(&self, id: JobId) -> Option<&QueueEntry> {
        self.entries.get(&id)
    }

    /// All recordings in the order in which they are transcribed.
    pub fn iter(&self) -> impl Iterator<Item = &QueueEntry> {
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

    /// Sorts the queue. Called after every change, before followers see it.
    pub fn arrange(&mut self) {
        let wait = |id| {
            let entry: &QueueEntry =
                self.entries.get(&id).filter(|entry: &&QueueEntry| entry.state.waits())?;
            // What is resumed goes before the shortest.
            Some(if entry.resumed { -1.0 } else { entry.length.seconds().unwrap_or(f64::INFINITY) })
        };
        if self.turns.arrange(wait) {
            self.note_order();
        }
    }

    fn note_order(&mut self) {
        self.version += 1;
        self.reordered = self.version;
    }

    /// Recordings that were not looked at yet: those that wait, those that began before they could be,
    /// and those that were paused in an earlier window.
    pub fn unmeasured(&self) -> impl Iterator<Item = &QueueEntry> {
        let undone = |entry: &&QueueEntry| {
            entry.state.waits() || entry.state.runs() || entry.state == JobState::Paused
        };
        self.iter().filter(undone).filter(|entry| entry.length == Length::NotAsked)
    }

    pub fn measured(&mut self, id: JobId, length: Length, tracks: Vec<AudioTrack>) {
        if tracks.len() > 1 {
            self.change(id, |entry, _| entry.tracks = tracks.into());
        }
        match length {
            Length::Seconds(_) => self.change(id, |entry, _| entry.length = length),
            // Not shown, so that followers need no update.
            Length::Unknown | Length::NotAsked => {
                if let Some(entry) = self.entries.get_mut(&id) {
                    entry.length = length;
                }
            }
        }
    }

    /// Fails a recording that can't be transcribed. False where it has started.
    pub fn refuse(&mut self, id: JobId, failure: Failure) -> bool {
        let waits = self.get(id).is_some_and(|entry| entry.state.waits());
        if waits {
            self.end(id, JobState::Failed, None, Some(failure));
        }
        waits
    }

    /// Gives a waiting recording settings of its own; `None`: the session's. False where
    /// it has started.
    pub fn set_own(&mut self, id: JobId, own: Option<JobSettings>) -> bool {
        self.prepare(id, |entry| entry.own = own)
    }

    /// Sets which part of a waiting recording is transcribed. False where it has started.
    pub fn set_part(&mut self, id: JobId, part: Part) -> bool {
        self.prepare(id, |entry| entry.part = part)
    }

    /// Changes what a recording will be transcribed with; what was paused keeps it.
    fn prepare(&mut self, id: JobId, change: impl FnOnce(&mut QueueEntry)) -> bool {
        let begun = |entry: &QueueEntry| {
            !entry.state.waits() && !matches!(entry.state, JobState::Failed | JobState::Cancelled)
        };
        if self.get(id).is_none_or(begun) {
            return false;
        }
        self.change(id, |entry, _| {
            change(entry);
            entry.resumed = false;
        });
        true
    }

    pub fn set_watched(&mut self, id: JobId, folder: PathBuf) {
        self.change(id, |entry, _| entry.watched = Some(folder));
    }

    /// Adds a notice about the text as a whole.
    pub fn remark(&mut self, id: JobId, notice: Notice) {
        self.change(id, |entry, _| match &mut entry.transcript {
            Some(transcript) => transcript.notices.push(notice),
            None => entry.notices.push(notice),
        });
    }

    /// How many recordings are not transcribed yet.
    pub fn unfinished(&self) -> usize {
        let undone = |entry: &&QueueEntry| entry.state == JobState::Waiting || entry.state.runs();
        self.iter().filter(undone).count()
    }

    /// How many texts of the user's recordings would be lost if the window closed now.
    pub fn unsaved(&self) -> usize {
        self.lost().count()
    }

    /// The recordings whose texts would be lost if the window closed now.
    pub fn lost(&self) -> impl Iterator<Item = &QueueEntry> {
        self.iter()
            .filter(|entry| entry.transcript.is_some() && entry.saved.is_none() && !entry.sample)
            // Texts in the history are safe, and these stay in the journal.
            .filter(|entry| entry.edited.is_none() && !entry.stays_aside())
    }

    /// Marks the next recording as running and returns it. `None` while the shortest is
    /// to come first and some lengths are unknown yet.
    pub fn start_next(&mut self) -> Option<QueueEntry> {
        if self.is_shortest_first() && self.unmeasured().any(|entry| entry.state.waits()) {
            return None;
        }
        self.arrange();
        let id = self.iter().find(|entry| entry.state == JobState::Waiting)?.id;
        let entry = self.entries.get_mut(&id)?;
        entry.state = JobState::Running;
        let copy = entry.clone();
        self.touch(id);
        Some(copy)
    }

    /// Holds waiting recordings for which `hold` is true, and releases the others. The
    /// sample is never held.
    pub fn hold(&mut self, hold: impl Fn(&QueueEntry) -> bool) {
        let state = |entry: &QueueEntry| if hold(entry) { JobState::Held } else { JobState::Waiting };
        let waiting = self.iter().filter(|entry| entry.state.waits() && !entry.sample);
        let moved: Vec<_> = waiting.filter(|entry| entry.state != state(entry)).collect();
        let moved: Vec<_> = moved.into_iter().map(|entry| (entry.id, state(entry))).collect();
        for (id, state) in moved {
            self.set(id, state);
        }
    }

    /// The user will have these transcribed with the demonstration model; returns their ids.
    pub fn approve(&mut self, which: impl Fn(&QueueEntry) -> bool) -> Vec<JobId> {
        let ids: Vec<JobId> = self.iter().filter(|entry| which(entry)).map(|entry| entry.id).collect();
        for id in &ids {
            self.change(*id, |entry, _| entry.approved = true);
        }
        ids
    }

    /// Applies an event of the engine to the recording `id`, whatever job number the
    /// event has.
    pub fn apply(&mut self, id: JobId, event: Event) {
        match event {
            Event::Started { source, model, device, .. } => self.change(id, |entry, _| {
                entry.source = Some(source);
                entry.model = Some(model);
                entry.device = Some(device);
            }),
            Event::Progress { progress, .. } => self.change(id, |entry, _| entry.progress = Some(progress)),
            Event::Segment { mut segment, .. } => self.change(id, |entry, version| {
                if entry.streamed.is_empty() && entry.earlier.is_some() {
                    entry.rewrites.push(Rewrite { version, from: 0, changes: None });
                }
                // The number that it will have in the finished transcript.
                segment.id = u32::try_from(entry.streamed.len() + 1).unwrap_or(0);
                entry.live_text = None;
                entry.streamed.push(segment);
            }),
            Event::LiveText { text } => self.change(id, |entry, _| entry.live_text = Some(text)),
            Event::Reached { .. } if self.get(id).is_some_and(|entry| entry.live_text.is_some()) => {
                self.change(id, |entry, _| entry.live_text = None);
            }
            Event::Turns { turns } => self.change(id, |entry, version| {
                if let Some(from) = speakers::guess(&mut entry.streamed, &turns) {
                    entry.rewrites.push(Rewrite { version, from, changes: None });
                }
            }),
            Event::Notice { notice, .. } => self.change(id, |entry, _| {
                entry.memory.hear(&notice);
                entry.truncated_at = entry.truncated_at.or(truncation(&notice));
                entry.notices.push(notice);
            }),
            Event::Memory { sample } => self.change(id, |entry, _| entry.memory.add(*sample)),
            Event::Finished { transcript, .. } => self.end(id, JobState::Finished, Some(transcript), None),
            Event::Cancelled { partial, .. } => self.end(id, JobState::Cancelled, partial, None),
            Event::Failed { error, partial, .. } => self.end(id, JobState::Failed, partial, Some(error)),
            // Not about a transcription.
            _ => {}
        }
    }

    /// Ends a job; a second end is ignored.
    pub fn end(
        &mut self,
        id: JobId,
        state: JobState,
        transcript: Option<Box<Transcript>>,
        failure: Option<Failure>,
    ) {
        self.change(id, |entry, version| {
            if entry.state.is_over() || entry.state == JobState::Paused {
                return;
            }
            let is_paused = entry.state == JobState::Pausing && state == JobState::Cancelled;
            entry.state = if is_paused { JobState::Paused } else { state };
            entry.resumed = false;
            entry.failure = failure;
            entry.progress = None;
            entry.live_text = None;
            entry.will_not_fit = None;
            let transcript = match (transcript, entry.earlier.clone()) {
                (None, earlier) if state != JobState::Finished => earlier,
                (Some(new), Some(earlier))
                    if state != JobState::Finished && reach(&new) < reach(&earlier) =>
                {
                    Some(earlier)
                }
                (new, _) => {
                    entry.is_kept = false;
                    new
                }
            };
            if let Some(transcript) = transcript {
                entry.take(transcript, version);
            }
        });
    }

    /// All recordings in the order that does not depend on their lengths.
    pub fn given_order(&self) -> Vec<JobId> {
        self.turns.given().to_vec()
    }

    /// Asks for a part of a finished recording to be transcribed again. An earlier result
    /// for the same part is dropped.
    pub fn ask_again(&mut self, id: JobId, asked: Again) {
        self.change(id, |entry, _| {
            entry.again.retain(|again| again.span != asked.span || again.found.is_none());
            if can_be_asked(entry) && !entry.again.iter().any(|again| again.span == asked.span) {
                entry.again.push(asked);
            }
        });
    }

    /// The next part to transcribe again, in the order of the list.
    pub fn next_again(&self) -> Option<(QueueEntry, Again)> {
        let asked = |entry: &QueueEntry| entry.again.iter().find(|again| again.found.is_none()).cloned();
        self.iter().find_map(|entry| Some((without_text(entry), asked(entry)?)))
    }

    /// Stores the result of an attempt for the user's choice, unless the attempt was
    /// cancelled.
    pub fn offer_again(&mut self, id: JobId, span: Span, found: Box<Transcript>) {
        self.change(id, |entry, _| {
            if let Some(again) = entry.again.iter_mut().find(|again| again.span == span) {
                again.found = Some(found);
            }
        });
    }

    /// The result that waits for the user's choice.
    pub fn found_again(&self, id: JobId, span: Span) -> Option<Box<Transcript>> {
        let again = self.get(id)?.again.iter().find(|again| again.span == span)?;
        again.found.clone()
    }

    /// Ends the request for a part; a notice says why it failed, where it did.
    pub fn answer_again(&mut self, id: JobId, span: Span, failure: Option<Failure>) {
        self.change(id, |entry, _| {
            entry.again.retain(|other| other.span != span);
            if let (Some(transcript), Some(failure)) = (&mut entry.transcript, failure) {
                transcript.notices.push(Notice::from(Message::again_failed(failure)).at(span.start));
            }
        });
    }

    /// Applies changes to a finished transcript, and returns the index of the first
    /// segment that may have changed.
    ///
    /// # Errors
    /// Where the changes don't match the text, which then stays as it is.
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
                // The saved file is out of date now.
                entry.saved = None;
            }
        });
        done
    }

    /// Notes that the text is in the history.
    pub fn set_edited(&mut self, id: JobId, edited: Edited) {
        self.change(id, |entry, _| {
            entry.edited = Some(edited);
            entry.not_stored = None;
            if let Some(transcript) = &mut entry.transcript {
                transcript.notices.retain(|notice| !says_not_stored(notice));
            }
        });
    }

    /// Says, once, why the text is not in the history.
    pub fn set_not_stored(&mut self, id: JobId, failure: Failure) {
        let known = self.get(id).and_then(|entry| entry.not_stored.clone());
        if known.as_ref() == Some(&failure) {
            return;
        }
        if known.is_none() {
            self.remark(id, Message::HistoryUnavailable { detail: failure.to_string() }.into());
        }
        self.change(id, |entry, _| entry.not_stored = Some(failure));
    }

    /// Adds a transcript of the history at the end of the list, with its first segments.
    /// [`Queue::opened`] adds the rest.
    pub fn open(&mut self, file: PathBuf, missing: bool, segments: Vec<Segment>, edited: Edited) -> JobId {
        let id = self.add(file, None, false, None);
        self.change(id, |entry, _| {
            entry.state = JobState::Finished;
            entry.edited = Some(edited);
            entry.missing = missing;
            entry.streamed = segments;
        });
        id
    }

    /// Completes a transcript of the history, or says why it stays incomplete and can't
    /// be edited.
    pub fn opened(&mut self, id: JobId, opened: Result<(Box<Transcript>, UndoPosition), Failure>) {
        self.change(id, |entry, version| match opened {
            Ok((transcript, undo_position)) => {
                entry.take(transcript, version);
                entry.edited = entry.edited.map(|edited| Edited { undo_position, ..edited });
            }
            Err(failure) => {
                entry.edited = None;
                entry.notices.push(Message::HistoryDamaged { detail: failure.to_string() }.into());
            }
        });
    }

    /// Its recording was found at another path.
    pub fn place(&mut self, id: JobId, file: PathBuf) {
        self.change(id, |entry, _| {
            entry.file = file;
            entry.missing = false;
        });
    }

    /// Drops requests for parts of it; results still wait for the user's choice.
    pub fn forget_again(&mut self, id: JobId) {
        self.change(id, |entry, _| entry.again.retain(|again| again.found.is_some()));
    }

    /// Removes a recording from the list, unless an engine works on it.
    pub fn remove(&mut self, id: JobId) {
        let busy = |entry: &QueueEntry| entry.state.runs() || entry.is_asked_again();
        if self.get(id).is_some_and(|entry| !busy(entry)) {
            self.entries.remove(&id);
            self.turns.remove(id);
            self.version += 1;
            self.removed.insert((self.version, id));
        }
    }

    /// What is known of a job before it runs: its memory, and whether speakers are told apart in it.
    pub fn forecast(&mut self, id: JobId, forecast: Option<Forecast>, speakers: bool) {
        self.change(id, |entry, _| {
            entry.memory.forecast = forecast;
            entry.speakers = speakers;
        });
    }

    pub fn set_will_not_fit(&mut self, id: JobId, announcement: Option<Announcement>) {
        self.change(id, |entry, _| entry.will_not_fit = announcement.map(Box::new));
    }

    pub fn saved(&mut self, id: JobId, file: PathBuf) {
        self.change(id, |entry, _| entry.saved = Some(file));
    }

    /// These formats were written: they are no longer among those that were not saved when it was finished.
    pub fn wrote(&mut self, id: JobId, formats: &[Format]) {
        let waits = |entry: &QueueEntry| entry.not_saved.clone();
        let Some(mut unsaved) = self.get(id).and_then(waits) else { return };
        Arc::make_mut(&mut unsaved).exporting.formats.retain(|format| !formats.contains(format));
        let left = Some(unsaved).filter(|unsaved| !unsaved.exporting.formats.is_empty());
        self.change(id, |entry, _| entry.not_saved = left);
    }

    pub fn not_saved(&mut self, id: JobId, unsaved: Unsaved) {
        self.change(id, |entry, _| entry.not_saved = Some(Arc::new(unsaved)));
    }

    fn set(&mut self, id: JobId, state: JobState) {
        self.change(id, |entry, _| entry.state = state);
    }

    fn change(&mut self, id: JobId, change: impl FnOnce(&mut QueueEntry, u64)) {
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
