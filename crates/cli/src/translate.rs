//! `steno translate`: English beside the text of a recording that has been transcribed.

use std::slice::from_ref;

use advisor::JobTemplate;
use config::Preferences;
use supervisor::runs::Runs;
use supervisor::{Supervisor, SupervisorOptions};
use transcript::export::{Format, Options};
use transcript::save::Existing;
use transcript::{Task, Transcript};
use wire::Job;

use crate::args::TranslateText;
use crate::console::Console;
use crate::ended::{Ended, from_load};
use crate::interrupt::Interrupt;
use crate::models;
use crate::outputs::{Destination, Request, Taken, plan};
use crate::runner::Runner;
use crate::speakers::replace;

pub async fn run(args: &TranslateText, interrupt: Interrupt) -> Ended {
    let request = match request(args) {
        Ok(request) => request,
        Err(text) => return Ended::Usage(text),
    };
    let preferences = match Preferences::of_this_user(&[args.memory.flags(), args.machine.flags()].concat()) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
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
    let language = Some(transcript.language.as_str());
    let model = match models::chosen(args.model.as_deref(), language, Task::Translate, &preferences) {
        Ok(model) => model,
        Err(failure) => return failure.into(),
    };
    let template = JobTemplate::new(preferences.clone(), model.clone(), args.machine.device());
    let mut job = Job::new(1, &args.recording, &model.path);
    job.device = args.machine.device();
    job.track = args.track;
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: args.machine.engine_options(preferences.engine),
        journal: None,
        runs: Runs::of_this_user(),
        voices: None,
        choose_model: None,
        memory: preferences.memory.clone(),
    });
    let mut runner = Runner::new(Console::new(args.quiet), interrupt, supervisor, false);
    let translated = match runner.ready().await {
        Ok(()) => runner.translate(1, &args.recording, template.fill(job), &mut transcript).await,
        Err(ended) => Err(ended),
    };
    let ended = translated.and_then(|()| {
        let written = match request.as_ref().zip(output) {
            Some((request, output)) => runner.write(&args.transcript, &transcript, &output, request),
            None => replace(&args.transcript, &transcript),
        };
        for path in written? {
            runner.console.info(&format!("written to {}", wire::shown(&path)));
        }
        Ok(())
    });
    runner.end(ended).await
}

/// What is to be written; `None`: the transcript itself is replaced.
fn request(args: &TranslateText) -> Result<Option<Request>, String> {
    if args.format.is_empty() && args.output.is_none() {
        return Ok(None);
    }
    let request = Request {
        place: args.output.as_deref().map_or(Ok(Destination::Beside), Destination::from_output)?,
        formats: if args.format.is_empty() { vec![Format::Json] } else { args.format.clone() },
        existing: if args.force { Existing::Replace } else { Existing::Keep },
        options: Options { translation: true, ..Options::default() },
        template: None,
        taken: Taken::default(),
    };
    request.check(1)?;
    Ok(Some(request))
}
