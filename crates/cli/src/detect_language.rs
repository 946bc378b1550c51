use std::ops::ControlFlow;
use std::path::PathBuf;

use advisor::JobTemplate;
use config::Preferences;
use memory::death::{Death, says_device_failed};
use memory::ladder::{Processor, Step};
use serde::Serialize;
use supervisor::{step_down, take_rung};
use transcript::Task;
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

/// Engines that one file may break before it fails.
const MOST_BREAKS: u32 = 2;
/// As [`MOST_BREAKS`], where memory ran out and there was a step to take.
const MOST_BREAKS_WITH_STEPS: u32 = 3;

pub async fn run(args: DetectLanguage, interrupt: Interrupt) -> Ended {
    let mut console = Console::new(false);
    let inputs = inputs::expand(&args.files, args.recursive);
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
    let model = models::chosen(args.model.as_deref(), None, Task::Transcribe, &preferences)?;
    let (mut engine, _lease) = own_engine::start(&args.machine, console, &mut interrupt).await?;
    let mut job = Job::new(1, files[0].as_path(), model.path.as_path());
    job.device = args.machine.device();
    job.track = args.track;
    let job = JobTemplate::new(preferences, model, args.machine.device()).fill(job);
    let mut left = Remaining::new(files, job);
    while !left.files.is_empty() {
        let given = left.next();
        let handle = engine.detect_languages(given.clone(), left.job.clone());
        let ended =
            own_engine::follow(handle, &mut interrupt, |event| left.see(event, args.json, console)).await;
        let ended = match ended {
            Ok(()) => {
                left.came_through(&given);
                continue;
            }
            Err(Ended::Failed(failure)) => {
                let is_cpu = engine.device(left.job.device) == "cpu";
                let place = if is_cpu { Processor::Cpu } else { Processor::Gpu };
                match Fault::of(&failure, engine.death()) {
                    Some(fault) => {
                        left.broke(fault, failure, place, console);
                        Ok(())
                    }
                    None => Err(Ended::Failed(failure)),
                }
            }
            Err(ended) => Err(ended),
        };
        engine.shutdown().await;
        ended?;
        if left.files.is_empty() {
            return Ok(left.some_failed);
        }
        engine = own_engine::start_without_lease(&args.machine, &mut interrupt).await?;
    }
    engine.shutdown().await;
    Ok(left.some_failed)
}

/// Why a new engine may do what the last one could not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    OutOfMemory,
    Other,
}

impl Fault {
    /// `None` where a new engine would fail alike. As `supervisor` decides for
    /// transcriptions.
    fn of(failure: &Failure, death: Option<Death>) -> Option<Self> {
        let engine_failed = matches!(failure.code, ErrorCode::EngineFailed | ErrorCode::EngineSilent);
        match death {
            _ if failure.code == ErrorCode::OutOfMemory => Some(Self::OutOfMemory),
            Some(Death::OutOfMemory(_)) if engine_failed => Some(Self::OutOfMemory),
            Some(Death::Device | Death::Crash | Death::Killed) if engine_failed => Some(Self::Other),
            None if failure.code == ErrorCode::Internal || says_device_failed(&failure.message) => {
                Some(Self::Other)
            }
            _ => None,
        }
    }
}

/// The files whose language is not known yet, over several engines.
///
/// After an engine broke, the first file that is left is tried alone, since it
/// is probably the cause. A file that breaks a second engine fails, or a third
/// where memory ran out and a step down the ladder was left.
struct Remaining {
    files: Vec<FilePath>,
    job: Job,
    /// Only the first file is given to the next engine.
    alone: bool,
    /// Engines that broke at the first file.
    breaks: u32,
    /// The engine asked for a new one.
    renewing: bool,
    some_failed: bool,
}

impl Remaining {
    fn new(files: &[PathBuf], job: Job) -> Self {
        let files = files.iter().map(FilePath::from).collect();
        Self { files, job, alone: false, breaks: 0, renewing: false, some_failed: false }
    }

    fn next(&self) -> Vec<FilePath> {
        self.files[..if self.alone { 1 } else { self.files.len() }].to_vec()
    }

    fn see(&mut self, event: Event, json: bool, console: &mut Console) -> ControlFlow<Result<(), Ended>> {
        match event {
            Event::Language { file, probabilities, .. } => {
                self.told(&file);
                if let Err(ended) = tell(&file, &probabilities, json) {
                    return ControlFlow::Break(Err(ended));
                }
            }
            Event::FileFailed { file, error, .. } => self.failed(file, error, console),
            Event::Rung { rung, .. } => {
                console.warning(&rung.notice().text);
                take_rung(&mut self.job, &rung);
                self.renewing = rung.step == Step::RenewEngine;
            }
            Event::LanguagesDone => return ControlFlow::Break(Ok(())),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn told(&mut self, file: &FilePath) {
        self.files.retain(|left| left != file);
        self.breaks = 0;
    }

    fn failed(&mut self, file: FilePath, mut failure: Failure, console: &mut Console) {
        self.told(&file);
        self.some_failed = true;
        failure.file.get_or_insert(file);
        console.error(&failure.to_string());
    }

    fn came_through(&mut self, given: &[FilePath]) {
        self.files.retain(|left| !given.contains(left));
        (self.alone, self.breaks) = (false, 0);
    }

    fn broke(&mut self, fault: Fault, failure: Failure, place: Processor, console: &mut Console) {
        if std::mem::take(&mut self.renewing) {
            return;
        }
        let Some(first) = self.files.first().cloned() else { return };
        self.breaks += 1;
        let step = (fault == Fault::OutOfMemory).then(|| step_down(&self.job, place)).flatten();
        let most = if step.is_some() { MOST_BREAKS_WITH_STEPS } else { MOST_BREAKS };
        match step {
            Some((rung, job)) => {
                console.warning(&rung.notice().text);
                self.job = job;
            }
            None if self.breaks < most => {
                console.warning(&format!("{} Continuing with a new engine.", failure.message));
            }
            None => {}
        }
        self.alone = self.breaks < most;
        if !self.alone {
            // The engine's failure names the job's own file, which is the first of all.
            let failure = Failure { file: Some(first.clone()), ..failure };
            self.failed(first, failure, console);
        }
    }
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
