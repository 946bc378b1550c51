use std::path::PathBuf;

use config::Preferences;
use serde::Serialize;
use wire::{ErrorCode, Event, Failure, FilePath, Job};

use crate::args::DetectLanguage;
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::{inputs, models, own_engine};

/// Less likely ones are not worth a place on the line.
const LEAST_LISTED: f32 = 0.01;
const MOST_LISTED: usize = 3;

pub async fn run(args: DetectLanguage, interrupt: Interrupt) -> Ended {
    let mut console = Console::new(false);
    let inputs = inputs::expand(&args.files);
    let mut some_failed = !inputs.failures.is_empty();
    for failure in &inputs.failures {
        console.error(&failure.to_string());
    }
    if !inputs.recordings.is_empty() {
        match detect(&args, &inputs.recordings, interrupt, &mut console).await {
            Ok(failed) => some_failed |= failed,
            Err(ended) => return ended,
        }
    }
    if some_failed { Ended::SomeFailed } else { Ended::Done }
}

/// Whether some of the files failed.
async fn detect(
    args: &DetectLanguage,
    files: &[PathBuf],
    mut interrupt: Interrupt,
    console: &mut Console,
) -> Result<bool, Ended> {
    let preferences = Preferences::of_this_user(&args.machine.flags())
        .map_err(|failure| Ended::Usage(failure.to_string()))?;
    let model = models::chosen(args.model.as_deref())?;
    let (engine, _turn) = own_engine::start(&args.machine, console, &mut interrupt).await?;
    let mut job = Job::new(1, files[0].as_path(), model.path.as_path());
    job.device = args.machine.device;
    job.threads = preferences.engine.threads;
    job.memory = preferences.memory;
    job.track = args.track;
    let mut handle = engine.detect_languages(files.iter().map(FilePath::from).collect(), job);

    let mut some_failed = false;
    let mut cancelling = false;
    let ended = loop {
        let event = tokio::select! {
            event = handle.next() => event,
            () = interrupt.raised(), if !cancelling => {
                cancelling = true;
                handle.cancel();
                continue;
            }
        };
        match event {
            Some(Event::Language { file, probabilities, .. }) => {
                if let Err(ended) = tell(&file, &probabilities, args.json) {
                    break Err(ended);
                }
            }
            Some(Event::Rung { rung, .. }) => console.warning(&rung.notice().text),
            Some(Event::FileFailed { file, mut error, .. }) => {
                some_failed = true;
                error.file.get_or_insert(file);
                console.error(&error.to_string());
            }
            Some(Event::LanguagesDone) => break Ok(some_failed),
            Some(Event::Cancelled { .. }) => break Err(Ended::Cancelled),
            Some(Event::Failed { error, .. }) => break Err(error.into()),
            Some(_) => {}
            None => {
                break Err(Failure::new(
                    ErrorCode::EngineFailed,
                    "The engine ended in the middle of the job.",
                )
                .remedy("Try again; `steno doctor` shows whether the engine works.")
                .into());
            }
        }
    };
    engine.shutdown().await;
    if cancelling { Err(Ended::Cancelled) } else { ended }
}

fn tell(file: &FilePath, probabilities: &[(String, f32)], json: bool) -> Result<(), Ended> {
    #[derive(Serialize)]
    struct Line<'a> {
        file: &'a FilePath,
        /// The likeliest one.
        language: Option<&'a str>,
        probability: Option<f32>,
        /// All that the model knows, likeliest first.
        probabilities: Vec<(&'a str, f32)>,
    }

    let mut sorted: Vec<(&str, f32)> =
        probabilities.iter().map(|(language, probability)| (language.as_str(), *probability)).collect();
    sorted.sort_by(|a, b| b.1.total_cmp(&a.1));
    let likeliest = sorted.first().copied();
    if json {
        let line = Line {
            file,
            language: likeliest.map(|it| it.0),
            probability: likeliest.map(|it| it.1),
            probabilities: sorted,
        };
        return print(|out| {
            serde_json::to_writer(&mut *out, &line)?;
            out.write_all(b"\n")
        });
    }
    let listed: Vec<String> = sorted
        .iter()
        .enumerate()
        .filter(|(index, (_, probability))| *index == 0 || *probability >= LEAST_LISTED)
        .take(MOST_LISTED)
        .map(|(_, (language, probability))| format!("{language} {:.1} %", probability * 100.0))
        .collect();
    print(|out| writeln!(out, "{file}: {}", listed.join(", ")))
}
