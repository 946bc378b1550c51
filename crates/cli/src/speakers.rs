//! `steno speakers`: who speaks in a recording that has been transcribed.

use std::path::{Path, PathBuf};
use std::slice::from_ref;

use advisor::JobTemplate;
use config::Preferences;
use supervisor::runs::Runs;
use supervisor::{Supervisor, SupervisorOptions};
use transcript::export::{Format, Options};
use transcript::save::{Existing, save};
use transcript::{Source, Task, Time, Transcript};
use wire::{ErrorCode, Failure, Job};

use crate::args::{FindSpeakers, SpeakerModel};
use crate::console::Console;
use crate::ended::{Ended, from_load, from_save};
use crate::interrupt::Interrupt;
use crate::models;
use crate::outputs::{Destination, Request, Taken, plan};
use crate::runner::Runner;
use crate::times::clock;

pub async fn run(args: &FindSpeakers, interrupt: Interrupt) -> Ended {
    let request = match request(args) {
        Ok(request) => request,
        Err(text) => return Ended::Usage(text),
    };
    let flags = [args.memory.flags(), args.machine.flags(), args.speakers.model.flags()].concat();
    let preferences = match Preferences::of_this_user(&flags) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
    if let Err(failure) = SpeakerModel::check(&preferences) {
        return failure.into();
    }
    let mut transcript = match Transcript::load(&args.transcript) {
        Ok(transcript) => transcript,
        Err(error) => return from_load(&args.transcript, &error).into(),
    };
    let output = request.as_ref().and_then(|request| plan(from_ref(&args.transcript), request, None).pop());
    if let Some((request, output)) = request.as_ref().zip(output.as_ref())
        && let Err(failure) = request.prepare().and_then(|()| output.check(request.existing))
    {
        return failure.into();
    }
    // The job has a model, as every job: it is not loaded, since all text is there.
    let model = match models::chosen(None, None, Task::Transcribe, &preferences) {
        Ok(model) => model,
        Err(failure) => return failure.into(),
    };
    let template = JobTemplate::new(preferences.clone(), model.clone(), args.machine.device());
    let mut job = Job::new(1, &args.recording, &model.path);
    job.device = args.machine.device();
    job.track = args.track;
    job.speaker_count = args.speakers.count().unwrap_or_default();
    if transcript.has_channels() {
        job.channels = wire::Channels::Separate;
    }
    job.find_speakers_of_text(transcript.segments.clone());
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: args.machine.engine_options(preferences.engine),
        journal: None,
        runs: Runs::of_this_user(),
        voices: supervisor::voices_file(),
        choose_model: None,
        memory: preferences.memory.clone(),
    });
    let mut runner = Runner::new(Console::new(args.quiet), interrupt, supervisor, false);
    runner.demonstration_told = true;
    let ended = match runner.transcript(&args.recording, template.fill(job), &transcript.source).await {
        Ok(found) => {
            transcript.segments = found.segments;
            transcript.turns = found.turns;
            let written = match request.as_ref().zip(output) {
                Some((request, output)) => runner.write(&args.transcript, &transcript, &output, request),
                None => replace(&args.transcript, &transcript),
            };
            written.map(|written| {
                for path in written {
                    runner.console.info(&format!("written to {}", wire::shown(&path)));
                }
            })
        }
        Err(ended) => Err(ended),
    };
    runner.end(ended).await
}

/// Longer apart than two decoders of one recording are.
const SAME_LENGTH: Time = Time::from_millis(1_000);

/// That a transcript is this recording's, as far as their lengths tell: what was found in another one
/// would replace what is there. A transcript of only the beginning is shorter, but has its name.
///
/// # Errors
/// Where it is another one's.
pub fn is_same_recording(transcribed: &Source, found: &Source, recording: &Path) -> Result<(), Ended> {
    let is_longer = transcribed.duration > found.duration + SAME_LENGTH;
    let is_shorter = found.duration > transcribed.duration + SAME_LENGTH;
    if transcribed.duration == Time::ZERO || !(is_longer || is_shorter && transcribed.name != found.name) {
        return Ok(());
    }
    let text = format!(
        "The transcript is of another recording: {}, of {}; this one lasts {}. Nothing was changed.",
        wire::shown(Path::new(&transcribed.name)),
        clock(transcribed.duration),
        clock(found.duration)
    );
    let failure = Failure::new(ErrorCode::BadSettings, text);
    Err(Ended::Failed(failure.remedy("Name the recording that was transcribed.").file(recording)))
}

/// What is to be written; `None`: the transcript itself is replaced.
fn request(args: &FindSpeakers) -> Result<Option<Request>, String> {
    args.speakers.check()?;
    if args.format.is_empty() && args.output.is_none() {
        return Ok(None);
    }
    let request = Request {
        place: args.output.as_deref().map_or(Ok(Destination::Beside), Destination::from_output)?,
        formats: if args.format.is_empty() { vec![Format::Json] } else { args.format.clone() },
        existing: if args.force { Existing::Replace } else { Existing::Keep },
        options: Options::default(),
        template: None,
        taken: Taken::default(),
    };
    request.check(1)?;
    Ok(Some(request))
}

/// Writes a transcript over the one that was read.
pub fn replace(path: &Path, transcript: &Transcript) -> Result<Vec<PathBuf>, Ended> {
    save(transcript, Format::Json, &Options::default(), path, Existing::Replace)
        .map_err(|error| Ended::Failed(from_save(&error)))?;
    Ok(vec![path.into()])
}
