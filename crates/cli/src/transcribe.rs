use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use api::Engine;
use transcript::export::{DEMONSTRATION_WARNING, Format};
use transcript::save::{self, Existing};
use transcript::{Notice, Severity, Task, Transcript};
use wire::{ErrorCode, Event, Failure, FilePath, Job, JobId, NO_JOB};

use crate::args::Transcribe;
use crate::console::Console;
use crate::ended::{Ended, from_save};
use crate::events::{HostEvent, print_event, renumber};
use crate::inputs::{self, Inputs};
use crate::interrupt::Interrupt;
use crate::models;
use crate::outputs::{Output, Place, Request, plan};
use crate::progress::ProgressLine;
use crate::times::{clock, wait};

/// Gaps that are listed one by one; of more, the number is told.
const GAPS_LISTED: usize = 5;

pub async fn run(args: Transcribe, interrupt: Interrupt) -> Ended {
    let inputs = inputs::expand(&args.files);
    let request = match request(&args, &inputs) {
        Ok(request) => request,
        Err(text) => return Ended::Usage(text),
    };
    let quiet_line = args.quiet || args.json_events;
    let mut session = Session {
        console: Console::new(quiet_line),
        args: &args,
        request,
        interrupt,
        engine: None,
        demonstration_told: false,
        some_failed: false,
    };
    let ended = session.run(inputs).await;
    if let Some(engine) = session.engine.take() {
        engine.shutdown().await;
    }
    match ended {
        Ok(()) if session.some_failed => Ended::SomeFailed,
        Ok(()) => Ended::Done,
        Err(ended) => ended,
    }
}

fn request(args: &Transcribe, inputs: &Inputs) -> Result<Request, String> {
    let one_alone = inputs.recordings.len() == 1 && !inputs.folder_named && args.files.len() == 1;
    let place = match &args.output {
        Some(output) => Place::from_output(output)?,
        None if !args.format.is_empty() => Place::Beside,
        None if args.json_events => Place::Nowhere,
        None if one_alone => Place::Stdout,
        None => Place::Beside,
    };
    if args.json_events && place == Place::Stdout {
        return Err("--json-events and --output - can't share standard output".into());
    }
    let formats = match (&args.format, &place) {
        (formats, Place::Nowhere) => formats.clone(),
        (formats, _) if formats.is_empty() => vec![Format::Txt],
        (formats, _) => formats.clone(),
    };
    let request = Request {
        place,
        formats,
        existing: if args.force { Existing::Replace } else { Existing::Keep },
        options: args.subtitles.options(args.reproducible),
    };
    request.check(inputs.recordings.len())?;
    Ok(request)
}

/// How one job ended.
enum Ending {
    Finished(Box<Transcript>),
    Cancelled(Option<Box<Transcript>>),
    Failed(Failure, Option<Box<Transcript>>),
}

struct Session<'a> {
    args: &'a Transcribe,
    request: Request,
    console: Console,
    interrupt: Interrupt,
    /// Started for the first recording, kept for the others.
    engine: Option<Engine>,
    demonstration_told: bool,
    some_failed: bool,
}

impl Session<'_> {
    async fn run(&mut self, inputs: Inputs) -> Result<(), Ended> {
        self.request.prepare()?;
        for failure in inputs.failures {
            self.failed(NO_JOB, failure, None)?;
        }
        for path in &inputs.repeated {
            self.console.info(&format!("{}: named more than once, transcribed once", path.display()));
        }
        if inputs.recordings.is_empty() {
            return Ok(());
        }
        let model = match models::chosen(self.args.model.as_deref()) {
            Ok(model) => model,
            Err(failure) => return self.failed(NO_JOB, failure, None),
        };

        let outputs = plan(&inputs.recordings, &self.request);
        let jobs: Vec<(JobId, &PathBuf, &Output)> = (1..)
            .zip(inputs.recordings.iter().zip(&outputs))
            .map(|(id, (file, output))| (id, file, output))
            .collect();
        for (id, file, output) in &jobs {
            if self.args.json_events {
                print_event(&HostEvent::Queued { id: *id, file: &FilePath::from(*file) })?;
            }
            if output.renamed {
                let name = output.name.to_string_lossy();
                let why = "another recording has the same name";
                self.console.info(&format!("{}: results are named {name}, since {why}", file.display()));
            }
        }
        for (id, file, output) in jobs {
            if self.interrupt.is_raised() {
                return Err(Ended::Cancelled);
            }
            if let Err(failure) = output.check(self.request.existing) {
                self.failed(id, failure, None)?;
                continue;
            }
            let job = job(id, file, &model.path, self.args);
            self.one(id, file, output, job).await?;
        }
        Ok(())
    }

    /// One recording, from job to files. Only what ends the whole command is an error.
    async fn one(&mut self, id: JobId, file: &Path, output: &Output, job: Job) -> Result<(), Ended> {
        let started = Instant::now();
        let engine = match self.engine().await {
            Ok(engine) => engine,
            // Without an engine the other recordings would fail alike.
            Err(Ended::Failed(failure)) => {
                if self.args.json_events {
                    print_event(&Event::Failed { id: NO_JOB, error: failure.clone(), partial: None })?;
                }
                return Err(Ended::Failed(failure));
            }
            Err(ended) => return Err(ended),
        };
        let handle = engine.transcribe(job);
        match self.follow(id, file, handle).await? {
            Ending::Finished(transcript) => {
                let written = match output.write(&transcript, &self.request) {
                    Ok(written) => written,
                    Err(Ended::Failed(failure)) => {
                        // Hours of work are not lost to a full disk if another place takes them.
                        return self.failed(id, failure, Some((&transcript, output)));
                    }
                    Err(ended) => return Err(ended),
                };
                self.saved(id, &written)?;
                self.summary(file, &transcript, &written, started.elapsed());
                Ok(())
            }
            Ending::Cancelled(partial) => {
                self.keep_partial(id, partial.as_deref(), output)?;
                if self.interrupt.is_raised() {
                    return Err(Ended::Cancelled);
                }
                // Nobody here asked for it.
                let failure = Failure::new(ErrorCode::Cancelled, "The job was cancelled.").file(file);
                self.failed(id, failure, None)
            }
            Ending::Failed(mut failure, partial) => {
                // The next recording gets another engine where this one is gone.
                self.engine = self.engine.take().filter(Engine::is_running);
                failure.file.get_or_insert_with(|| file.into());
                self.failed_after(id, failure, partial.as_deref().map(|partial| (partial, output)))
            }
        }
    }

    async fn engine(&mut self) -> Result<&Engine, Ended> {
        if self.engine.is_none() {
            let options = self.args.machine.engine_options();
            let engine = tokio::select! {
                engine = Engine::start(&options) => engine?,
                () = self.interrupt.raised() => return Err(Ended::Cancelled),
            };
            self.engine = Some(engine);
        }
        self.engine.as_ref().ok_or(Ended::Cancelled)
    }

    /// Tells what happens until the job ends.
    async fn follow(&mut self, id: JobId, file: &Path, mut handle: api::JobHandle) -> Result<Ending, Ended> {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
        let mut line = ProgressLine::new(name);
        let mut cancelling = false;
        let ending = loop {
            let event = tokio::select! {
                event = handle.next() => event,
                () = self.interrupt.raised(), if !cancelling => {
                    cancelling = true;
                    handle.cancel();
                    self.console.info("Stopping; what there is will be kept. Ctrl-C again ends at once.");
                    continue;
                }
            };
            let Some(mut event) = event else {
                let failure =
                    Failure::new(ErrorCode::EngineFailed, "The engine ended in the middle of the job.")
                        .remedy("Try again; `steno doctor` shows whether the engine works.");
                break Ending::Failed(failure, None);
            };
            renumber(&mut event, id);
            if self.args.json_events
                && let Err(ended) = print_event(&event)
            {
                // The reader has gone: nobody waits for the rest.
                handle.cancel();
                return Err(ended);
            }
            match event {
                Event::Started { model, .. } => self.tell_demonstration(model.demonstration),
                Event::Progress { progress, .. } => line.show(&progress, &mut self.console),
                Event::Notice { notice, .. } => self.notice(file, &notice),
                Event::Finished { transcript, .. } => break Ending::Finished(transcript),
                Event::Cancelled { partial, .. } => break Ending::Cancelled(partial),
                Event::Failed { error, partial, .. } => break Ending::Failed(error, partial),
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
        let text = format!("{}: {}{at}", file.display(), notice.text);
        match notice.severity {
            Severity::Info => self.console.info(&text),
            Severity::Degraded | Severity::Failed => self.console.warning(&text),
        }
    }

    /// A failure that the engine didn't tell itself.
    fn failed(
        &mut self,
        id: JobId,
        failure: Failure,
        left: Option<(&Transcript, &Output)>,
    ) -> Result<(), Ended> {
        if self.args.json_events {
            print_event(&Event::Failed { id, error: failure.clone(), partial: None })?;
        }
        self.failed_after(id, failure, left)
    }

    fn failed_after(
        &mut self,
        id: JobId,
        failure: Failure,
        left: Option<(&Transcript, &Output)>,
    ) -> Result<(), Ended> {
        self.some_failed = true;
        self.console.error(&failure.to_string());
        match left {
            Some((transcript, output)) => self.keep_partial(id, Some(transcript), output),
            None => Ok(()),
        }
    }

    /// Saves what a job left behind. Without a segment there is nothing to keep.
    fn keep_partial(
        &mut self,
        id: JobId,
        partial: Option<&Transcript>,
        output: &Output,
    ) -> Result<(), Ended> {
        let Some(partial) = partial.filter(|partial| !partial.segments.is_empty()) else { return Ok(()) };
        match save::save_partial(partial, &self.request.options, &output.folder, &output.name) {
            Ok(path) => {
                let until = partial.segments.last().map(|segment| clock(segment.end)).unwrap_or_default();
                self.console.warning(&format!("{}: holds the text until {until}", path.display()));
                self.saved(id, &[path])
            }
            Err(error) => {
                self.some_failed = true;
                self.console.error(&from_save(&error).to_string());
                Ok(())
            }
        }
    }

    fn saved(&self, id: JobId, paths: &[PathBuf]) -> Result<(), Ended> {
        if self.args.json_events {
            for path in paths {
                print_event(&HostEvent::Saved { id, path: &FilePath::from(path) })?;
            }
        }
        Ok(())
    }

    fn summary(&mut self, file: &Path, transcript: &Transcript, written: &[PathBuf], took: Duration) {
        self.tell_demonstration(transcript.model.demonstration);
        let name = file.display();
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
            self.console
                .warning(&format!("{name}: somebody speaks, but there is no text, at {listed}{more}"));
        }
        let duration = transcript.source.duration;
        let speed = match took.as_secs_f64() {
            seconds if seconds > 0.0 => duration.seconds() / seconds,
            _ => 0.0,
        };
        let mut text = format!("{name}: {} in {}", clock(duration), wait(took.as_secs_f64()));
        text += &format!(" ({speed:.1} times real time), language {}", transcript.language);
        if let Some(probability) = transcript.language_probability {
            text += &format!(" ({:.0} %)", probability * 100.0);
        }
        let doubtful = transcript.segments.iter().filter(|segment| !segment.suspicions.is_empty()).count();
        if doubtful > 0 {
            text += &format!(", {doubtful} doubtful of {} segments", transcript.segments.len());
        }
        if !written.is_empty() {
            let written: Vec<_> = written.iter().map(|path| path.display().to_string()).collect();
            text += &format!(", written to {}", written.join(", "));
        }
        self.console.info(&text);
    }
}

/// The job that the arguments ask for; what they leave open stays the default.
fn job(id: JobId, file: &Path, model: &Path, args: &Transcribe) -> Job {
    let mut job = Job::new(id, file, model);
    job.device = args.machine.device;
    job.threads = args.machine.threads;
    job.language = args.language.0.clone();
    job.task = if args.translate { Task::Translate } else { args.task };
    job.channels = args.sound.channels;
    job.track = args.sound.track;
    job.limit = args.sound.limit;
    if let Some(voice_activity) = args.sound.vad {
        job.voice_activity = voice_activity;
    }
    let (wanted, decoding) = (&args.decoding, &mut job.decoding);
    decoding.beam_size = wanted.beam_size.unwrap_or(decoding.beam_size);
    decoding.best_of = wanted.best_of.unwrap_or(decoding.best_of);
    if !wanted.temperature.is_empty() {
        decoding.temperatures.clone_from(&wanted.temperature);
    }
    decoding.initial_prompt = wanted.prompt.clone().filter(|prompt| !prompt.trim().is_empty());
    decoding.vocabulary = wanted
        .vocabulary
        .iter()
        .map(|word| word.trim().to_string())
        .filter(|word| !word.is_empty())
        .collect();
    decoding.condition_on_previous_text = wanted.condition_on_previous_text;
    decoding.word_times = !wanted.no_word_times;
    decoding.timestamps = !wanted.no_timestamps;
    decoding.repair = !wanted.no_repair;
    decoding.seed = wanted.seed.unwrap_or(decoding.seed);
    job
}
