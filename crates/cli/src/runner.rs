//! Recordings from job to files, one after the other: what `transcribe` and
//! `resume` have in common.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use library::{JobKey, Journal, JournalState};
use memory::Code;
use supervisor::{SupervisedJob, Supervisor};
use transcript::export::DEMONSTRATION_WARNING;
use transcript::{Notice, Severity, Source, Transcript, save};
use wire::{Envelope, ErrorCode, Event, Failure, FilePath, Job, JobId, NO_JOB};

use crate::console::Console;
use crate::ended::{Ended, from_save};
use crate::events::{HostEvent, print_event};
use crate::fit_notice::{help, is_shortage};
use crate::interrupt::Interrupt;
use crate::outputs::{Destination, Output, Request};
use crate::progress::ProgressLine;
use crate::speakers::is_same_recording;
use crate::times::{clock, wait};
use crate::timings::Timings;

/// Gaps that are listed one by one; more are counted.
const GAPS_LISTED: usize = 5;

/// One recording, its job and its outputs.
#[derive(Debug)]
pub struct Item {
    /// The job's number in events.
    pub id: JobId,
    /// The recording, as the user named it.
    pub file: PathBuf,
    pub job: Job,
    pub output: Output,
    pub request: Request,
    /// In the journal, where it is kept in one.
    pub key: Option<JobKey>,
}

impl Item {
    /// What there is of it when it ends early goes to the working folder: its recording is not in a
    /// folder of the user.
    pub fn keep_here(&mut self) {
        if !matches!(self.request.place, Destination::Folder(_)) {
            self.output.folder = ".".into();
        }
    }
}

/// How one job ended.
enum Ending {
    Finished(Box<Transcript>),
    Cancelled(Option<Box<Transcript>>),
    Failed(Failure, Option<Box<Transcript>>),
}

/// Failures that may go away by themselves: what was reached is kept until then.
const CURABLE: [ErrorCode; 4] = [
    ErrorCode::FileNotFound,
    ErrorCode::ModelNotFound,
    ErrorCode::EngineNotFound,
    ErrorCode::DeviceUnavailable,
];

#[derive(Debug)]
pub struct Runner {
    pub console: Console,
    pub interrupt: Interrupt,
    pub supervisor: Supervisor,
    /// Events as lines of JSON on standard output.
    pub json_events: bool,
    /// Jobs that fail because something is missing stay in the journal.
    pub keeps_curable: bool,
    /// Jobs whose text is in no file: they stay in the journal, whatever happens later.
    unsaved: HashSet<JobKey>,
    /// Where the user wants to know what the time went into.
    pub timings: Option<Timings>,
    pub demonstration_told: bool,
    pub some_failed: bool,
}

impl Runner {
    pub fn new(console: Console, interrupt: Interrupt, supervisor: Supervisor, json_events: bool) -> Self {
        Self {
            console,
            interrupt,
            supervisor,
            json_events,
            keeps_curable: false,
            unsaved: HashSet::new(),
            timings: None,
            demonstration_told: false,
            some_failed: false,
        }
    }

    /// Runs all items in order. Only a failure that ends the whole command is an error.
    pub async fn all(&mut self, items: Vec<Item>) -> Result<(), Ended> {
        let keys: Vec<JobKey> = items.iter().filter_map(|item| item.key).collect();
        let result = self.each(items).await;
        // A user who interrupts the command does not want to resume it: only a killed
        // program leaves jobs in the journal.
        let is_kept = self.keeps_curable && matches!(result, Err(Ended::Failed(_)));
        if result.is_err() && !is_kept {
            for key in keys.into_iter().filter(|key| !self.unsaved.contains(key)).collect::<Vec<_>>() {
                self.finish(Some(key), JournalState::Cancelled).await;
            }
        }
        result
    }

    async fn each(&mut self, items: Vec<Item>) -> Result<(), Ended> {
        for item in items {
            if self.interrupt.is_raised() {
                return Err(Ended::Cancelled);
            }
            if let Err(failure) = item.output.check(item.request.existing) {
                self.failed(item.id, failure)?;
                // A job that is resumed has a text already.
                match item.key.filter(|_| item.job.resume.is_some()) {
                    Some(key) => self.stays_in_journal(key, &item.file),
                    None => self.finish(item.key, JournalState::Failed).await,
                }
                continue;
            }
            self.one(item).await?;
        }
        Ok(())
    }

    /// Ends the engine.
    pub async fn end(self, ended: Result<(), Ended>) -> Ended {
        self.supervisor.shutdown().await;
        match ended {
            Ok(()) if self.some_failed => Ended::SomeFailed,
            Ok(()) => Ended::Done,
            Err(ended) => ended,
        }
    }

    async fn one(&mut self, item: Item) -> Result<(), Ended> {
        let Item { id, file, job, output, request, key } = item;
        let started = Instant::now();
        match self.ready().await {
            Ok(()) => {}
            // Without an engine the other recordings would fail alike.
            Err(Ended::Failed(failure)) => {
                if self.json_events {
                    let event = Event::Failed { error: failure.clone(), partial: None };
                    print_event(&Envelope::of_engine(event))?;
                }
                return Err(Ended::Failed(failure));
            }
            Err(ended) => return Err(ended),
        }
        let is_resumed = job.resume.as_ref().is_some_and(|resume| resume.point.is_some());
        let again = Job { resume: None, ..job.clone() };
        let handle = match key {
            Some(key) => self.supervisor.submit_kept(job, key),
            None => self.supervisor.submit(job),
        };
        match self.follow(id, &file, handle, None).await? {
            Ending::Finished(mut transcript) => {
                if request.options.translation
                    && let Err(ended) = self.translate(id, &file, again, &mut transcript).await
                {
                    match ended {
                        // What was said is written all the same.
                        Ended::Failed(failure) => self.failed(id, failure)?,
                        ended => {
                            self.keep_text(id, key, &file, Some(&transcript), &output, &request).await?;
                            return Err(ended);
                        }
                    }
                }
                self.journal(key, |journal, key| journal.set_saving(key)).await;
                let written = match output.write(&transcript, &request) {
                    Ok(written) => written,
                    Err(ended) => {
                        let ended = match ended {
                            Ended::Failed(failure) => {
                                self.failed(id, failure)?;
                                Ok(())
                            }
                            // Standard output is closed: there is no reader to report to.
                            ended => Err(ended),
                        };
                        self.keep_text(id, key, &file, Some(&transcript), &output, &request).await?;
                        return ended;
                    }
                };
                self.finish(key, JournalState::Finished).await;
                self.saved(id, &written)?;
                self.summary(&file, &transcript, &written, started.elapsed(), is_resumed);
                if let (Some(timings), Some(run)) = (&mut self.timings, &transcript.run) {
                    self.console.info(&timings.table(&run.stages));
                }
                Ok(())
            }
            Ending::Cancelled(partial) => {
                self.keep_text(id, key, &file, partial.as_deref(), &output, &request).await?;
                if self.interrupt.is_raised() {
                    return Err(Ended::Cancelled);
                }
                // The cancellation did not come from this program.
                let failure = Failure::new(ErrorCode::Cancelled, "The job was cancelled.").file(file);
                self.failed(id, failure)
            }
            Ending::Failed(mut failure, partial) => {
                let is_kept = self.keeps_curable && CURABLE.contains(&failure.code);
                failure.file.get_or_insert_with(|| file.clone().into());
                self.failed_after(failure);
                if !is_kept {
                    self.keep_text(id, key, &file, partial.as_deref(), &output, &request).await?;
                }
                Ok(())
            }
        }
    }

    /// Puts a translation to English beside the text; `job` is the one that wrote the text. What is in
    /// English stays as it is.
    pub async fn translate(
        &mut self,
        id: JobId,
        file: &Path,
        job: Job,
        transcript: &mut Transcript,
    ) -> Result<(), Ended> {
        if transcript.language == "en" {
            self.console.info(&format!("{}: already in English, not translated", wire::shown(file)));
            return Ok(());
        }
        let handle = self.supervisor.submit(job.translating(transcript.language.clone()));
        match self.follow_quietly(id, file, handle, &transcript.source).await? {
            Ending::Finished(found) => {
                transcript.add_translation(&found.segments);
                Ok(())
            }
            Ending::Cancelled(_) => Err(Ended::Cancelled),
            Ending::Failed(failure, _) => Err(Ended::Failed(failure)),
        }
    }

    /// The transcript of one job that writes nothing. It ends as soon as the recording turns out to be
    /// another one than `expected`.
    pub async fn transcript(
        &mut self,
        file: &Path,
        job: Job,
        expected: &Source,
    ) -> Result<Box<Transcript>, Ended> {
        self.ready().await?;
        let (id, handle) = (job.id, self.supervisor.submit(job));
        match self.follow(id, file, handle, Some(expected)).await? {
            Ending::Finished(transcript) => Ok(transcript),
            Ending::Cancelled(_) => Err(Ended::Cancelled),
            Ending::Failed(failure, _) => Err(Ended::Failed(failure)),
        }
    }

    /// Writes the files of a transcript that was read from `file`, and tells which formats it has nothing
    /// for.
    pub fn write(
        &mut self,
        file: &Path,
        transcript: &Transcript,
        output: &Output,
        request: &Request,
    ) -> Result<Vec<PathBuf>, Ended> {
        let (request, lacking) = request.of(transcript, file);
        let written = output.write(transcript, &request)?;
        lacking.into_iter().for_each(|failure| self.failed_after(failure));
        Ok(written)
    }

    pub async fn ready(&mut self) -> Result<(), Ended> {
        let supervisor = self.supervisor.clone();
        tokio::select! {
            engine = supervisor.ready() => engine.map(drop).map_err(Ended::Failed),
            () = self.interrupt.raised() => Err(Ended::Cancelled),
        }
    }

    async fn finish(&mut self, key: Option<JobKey>, state: JournalState) {
        self.journal(key, move |journal, key| journal.finish(key, state)).await;
    }

    /// A failure of the journal is not one of the job: the result is written.
    async fn journal(
        &mut self,
        key: Option<JobKey>,
        change: impl FnOnce(&Journal, JobKey) -> Result<(), library::Error> + Send + 'static,
    ) {
        let (Some(key), Some(journal)) = (key, self.supervisor.journal().cloned()) else { return };
        let done = tokio::task::spawn_blocking(move || change(&journal, key)).await;
        if let Ok(Err(error)) = done {
            self.console.info(&format!("{} `steno resume` may offer this job again.", error.failure()));
        }
    }

    /// As [`Self::follow`], without events for other programs: a recording has one text.
    async fn follow_quietly(
        &mut self,
        id: JobId,
        file: &Path,
        handle: SupervisedJob,
        expected: &Source,
    ) -> Result<Ending, Ended> {
        let json_events = std::mem::replace(&mut self.json_events, false);
        let ending = self.follow(id, file, handle, Some(expected)).await;
        self.json_events = json_events;
        ending
    }

    /// Reports a job's events until it ends. A recording that is another one than `expected` fails before
    /// any work on it.
    async fn follow(
        &mut self,
        id: JobId,
        file: &Path,
        mut handle: SupervisedJob,
        expected: Option<&Source>,
    ) -> Result<Ending, Ended> {
        let name = wire::shown(file.file_name().map_or(file, Path::new));
        let mut line = ProgressLine::new(name);
        let mut cancelling = false;
        // Whose memory was in use before matters once the job gets too little of it.
        let mut occupied: Option<Notice> = None;
        let ending = loop {
            let event = tokio::select! {
                event = handle.next() => event,
                () = self.interrupt.raised(), if !cancelling => {
                    cancelling = true;
                    handle.cancel();
                    self.console.info("Stopping; the text so far will be kept. Press Ctrl-C again to stop immediately.");
                    continue;
                }
            };
            let Some(event) = event else {
                let failure =
                    Failure::new(ErrorCode::EngineFailed, "The engine stopped in the middle of the job.")
                        .remedy("Try again; `steno doctor` shows whether the engine works.");
                break Ending::Failed(failure, None);
            };
            let envelope = Envelope::of_job(id, event);
            if self.json_events
                && let Err(ended) = print_event(&envelope)
            {
                // Standard output was closed: the rest has no reader.
                handle.cancel();
                return Err(ended);
            }
            match envelope.body {
                Event::Started { model, source, .. } => {
                    if let Some(expected) = expected
                        && let Err(ended) = is_same_recording(expected, &source, file)
                    {
                        self.console.clear();
                        handle.cancel();
                        while handle.next().await.is_some() {}
                        return Err(ended);
                    }
                    self.tell_demonstration(model.demonstration);
                }
                Event::Progress { progress, .. } => line.show(&progress, &mut self.console),
                // The summary says where they are.
                Event::Notice { notice, .. } if notice.code == "transcript.gaps" => {}
                Event::Notice { notice, .. } if notice.code == Code::Occupied.as_str() => {
                    occupied = Some(notice);
                }
                Event::Notice { notice, .. } => {
                    if is_shortage(&notice.code) {
                        occupied.take().into_iter().for_each(|notice| self.notice(file, &notice));
                    }
                    self.notice(file, &notice);
                }
                Event::Finished { transcript, .. } => break Ending::Finished(transcript),
                Event::Cancelled { partial, .. } => break Ending::Cancelled(partial),
                Event::Failed { error, partial, .. } => {
                    if error.code == ErrorCode::OutOfMemory {
                        occupied.take().into_iter().for_each(|notice| self.notice(file, &notice));
                    }
                    break Ending::Failed(error, partial);
                }
                _ => {}
            }
        };
        self.console.clear();
        Ok(ending)
    }

    fn tell_demonstration(&mut self, demonstration: bool) {
        if demonstration && !std::mem::replace(&mut self.demonstration_told, true) {
            self.console.warning(DEMONSTRATION_WARNING);
        }
    }

    fn notice(&mut self, file: &Path, notice: &Notice) {
        let at = notice.at.map(|time| format!(" (at {})", clock(time))).unwrap_or_default();
        let help = help(&notice.code);
        let text = format!("{}: {}{at}{help}", wire::shown(file), notice.text);
        match notice.severity {
            Severity::Info => self.console.info(&text),
            Severity::Degraded | Severity::Failed => self.console.warning(&text),
        }
    }

    /// Reports a failure that did not come from the engine.
    pub fn failed(&mut self, id: JobId, failure: Failure) -> Result<(), Ended> {
        if self.json_events {
            let job = (id != NO_JOB).then_some(id);
            let body = Event::Failed { error: failure.clone(), partial: None };
            print_event(&Envelope { job, body })?;
        }
        self.failed_after(failure);
        Ok(())
    }

    fn failed_after(&mut self, failure: Failure) {
        self.some_failed = true;
        self.console.error(&failure.to_string());
    }

    /// Ends a job in the journal whose outputs were not written, once its text is safe: in a file
    /// beside them, else in the journal itself, else in a file in the folder of the program's
    /// state. Without a segment there is nothing to keep.
    async fn keep_text(
        &mut self,
        id: JobId,
        key: Option<JobKey>,
        file: &Path,
        text: Option<&Transcript>,
        output: &Output,
        request: &Request,
    ) -> Result<(), Ended> {
        let Some(text) = text.filter(|text| !text.segments.is_empty()) else {
            self.finish(key, JournalState::Cancelled).await;
            return Ok(());
        };
        let failure = match self.keep_partial(id, text, &output.folder, output, request)? {
            Ok(()) => {
                self.finish(key, JournalState::Cancelled).await;
                return Ok(());
            }
            Err(failure) => failure,
        };
        // A journal that could not be written to may lack a part.
        let is_in_journal =
            !text.notices.iter().any(|notice| notice.code == wire::notice::Code::JournalUnavailable.as_str());
        if let Some(key) = key.filter(|_| is_in_journal) {
            self.stays_in_journal(key, file);
            return Ok(());
        }
        let folder = config::folders::steno_state().map(|state| state.join("unsaved"));
        let saved = match folder.filter(|folder| config::folders::make_private(folder).is_ok()) {
            Some(folder) => self.keep_partial(id, text, &folder, output, request)?.is_ok(),
            None => false,
        };
        if !saved {
            self.failed_after(failure);
        }
        Ok(())
    }

    fn stays_in_journal(&mut self, key: JobKey, file: &Path) {
        self.unsaved.insert(key);
        self.console.warning(&format!(
            "{}: The text is kept. `steno resume --output FOLDER` writes it to another folder, \
             `steno resume --name-template NAME` under another name.",
            wire::shown(file)
        ));
    }

    fn keep_partial(
        &mut self,
        id: JobId,
        partial: &Transcript,
        folder: &Path,
        output: &Output,
        request: &Request,
    ) -> Result<Result<(), Failure>, Ended> {
        match save::save_partial(partial, &request.options, folder, &output.name) {
            Ok(path) => {
                let until = partial.segments.last().map(|segment| clock(segment.end)).unwrap_or_default();
                self.console.warning(&format!("{}: contains the text up to {until}", wire::shown(&path)));
                self.saved(id, &[path])?;
                Ok(Ok(()))
            }
            Err(error) => Ok(Err(from_save(&error))),
        }
    }

    fn saved(&self, id: JobId, paths: &[PathBuf]) -> Result<(), Ended> {
        if self.json_events {
            for path in paths {
                print_event(&HostEvent::Saved { job: id, path: &FilePath::from(path) })?;
            }
        }
        Ok(())
    }

    fn summary(
        &mut self,
        file: &Path,
        transcript: &Transcript,
        written: &[PathBuf],
        took: Duration,
        is_resumed: bool,
    ) {
        self.tell_demonstration(transcript.model.demonstration);
        let name = wire::shown(file);
        let gaps = &transcript.completeness.gaps;
        if !gaps.is_empty() {
            let listed: Vec<String> = gaps
                .iter()
                .take(GAPS_LISTED)
                .map(|gap| format!("{} to {}", clock(gap.start), clock(gap.end)))
                .collect();
            let more = match gaps.len().saturating_sub(GAPS_LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let listed = listed.join(", ");
            self.console.warning(&format!("{name}: speech without text at {listed}{more}"));
        }
        let is_silent = transcript.segments.is_empty() && gaps.is_empty();
        if is_silent {
            self.console.warning(&format!("{name}: no speech was found"));
        }
        let duration = transcript.source.duration;
        let speed = match took.as_secs_f64() {
            seconds if seconds > 0.0 => duration.seconds() / seconds,
            _ => 0.0,
        };
        // How long the whole took is not known where a part was done before.
        let mut text = if is_resumed {
            format!("{name}: the rest of {} in {}", clock(duration), wait(took.as_secs_f64()))
        } else {
            let took = wait(took.as_secs_f64());
            format!("{name}: {} in {took} ({speed:.1} times real time)", clock(duration))
        };
        // Silence has none.
        if !is_silent {
            text += &format!(", language {}", transcript.language);
            if let Some(probability) = transcript.language_probability {
                text += &format!(" ({:.0} %)", probability * 100.0);
            }
        }
        let doubtful = transcript.segments.iter().filter(|segment| !segment.suspicions.is_empty()).count();
        if doubtful > 0 {
            text += &format!(", {doubtful} of {} segments need review", transcript.segments.len());
        }
        if !written.is_empty() {
            let written: Vec<_> = written.iter().map(|path| wire::shown(path)).collect();
            text += &format!(", written to {}", written.join(", "));
        }
        self.console.info(&text);
    }
}
