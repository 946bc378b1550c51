use std::path::Path;

use advisor::{JobTemplate, ModelRef, by_language};
use config::Preferences;
use config::preferences::MODEL_BY_LANGUAGE;
use supervisor::runs::Runs;
use supervisor::{Supervisor, SupervisorOptions};
use transcript::Task;
use transcript::export::{Format, Options};
use transcript::save::Existing;
use wire::{ByLanguage, FilePath, Job, JobId, NO_JOB};

use crate::args::{Decoding, Sound, SpeakerCounts, SpeakerModel, Transcribe};
use crate::console::Console;
use crate::ended::Ended;
use crate::events::{HostEvent, print_event};
use crate::fit_notice::announce;
use crate::inputs::{self, Inputs};
use crate::interrupt::Interrupt;
use crate::outputs::{Destination, NO_CHAPTERS_YET, Request, Taken, plan};
use crate::runner::{Item, Runner};
use crate::timings::Timings;
use crate::values::Language;
use crate::{models, spool, stored};

const NO_CHOICE_BY_LANGUAGE: &str = "--model-by-language changes nothing here: it needs recordings that are transcribed \
     in whatever language they have, a Whisper model for all languages, and one that is recommended for some of them, such \
     as parakeet-tdt-0.6b-v3.";

pub async fn run(mut args: Transcribe, mut interrupt: Interrupt) -> Ended {
    let timings = args.timings.then(Timings::begin);
    // Deleted when it is dropped.
    let spooled = match spool::standard_input(&mut args.files, &mut interrupt).await {
        Ok(spooled) => spooled,
        Err(ended) => return ended,
    };
    let inputs = inputs::expand(&args.files, args.recursive);
    let request = match request(&args, &inputs, spooled.is_some()) {
        Ok(request) => request,
        Err(text) => return Ended::Usage(text),
    };
    let by_language = args.model_by_language.then(|| (MODEL_BY_LANGUAGE.0, "true".to_owned()));
    let flags = [args.memory.flags(), args.machine.flags(), args.speakers.model.flags()].concat();
    let flags = flags.into_iter().chain(by_language).collect();
    let preferences = match Preferences::of_this_user(&flags) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
    let mut console = Console::new(args.quiet || args.json_events);
    let journal = supervisor::journal::open(|problem| console.warning(&problem));
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: args.machine.engine_options(preferences.engine),
        journal,
        runs: Runs::of_this_user(),
        voices: supervisor::voices_file(),
        choose_model: Some(advisor::by_language::choose),
        memory: preferences.memory.clone(),
    });
    let mut runner = Runner::new(console, interrupt, supervisor, args.json_events);
    runner.timings = timings;
    let ended = match items(&args, &preferences, &request, inputs, &mut runner) {
        Ok(mut items) => {
            if spooled.is_some() {
                items.iter_mut().for_each(Item::keep_here);
            }
            stored::keep(&mut items, &mut runner);
            runner.all(items).await
        }
        Err(ended) => Err(ended),
    };
    runner.end(ended).await
}

fn request(args: &Transcribe, inputs: &Inputs, piped: bool) -> Result<Request, String> {
    let one_alone = inputs.recordings.len() == 1 && !inputs.folder_named && args.files.len() == 1;
    let place = match &args.output {
        Some(output) => Destination::from_output(output)?,
        None if !args.format.is_empty() && !piped => Destination::Beside,
        None if args.json_events => Destination::Nowhere,
        None if one_alone => Destination::Stdout,
        None => Destination::Beside,
    };
    if args.json_events && place == Destination::Stdout {
        return Err("--json-events and --output - can't share standard output".into());
    }
    let formats = match (&args.format, &place) {
        (formats, Destination::Nowhere) => formats.clone(),
        (formats, _) if formats.is_empty() => vec![Format::Txt],
        (formats, _) => formats.clone(),
    };
    let request = Request {
        place,
        formats,
        existing: if args.force { Existing::Replace } else { Existing::Keep },
        options: Options {
            translation: args.bilingual,
            ..args.subtitles.options(args.reproducible, args.raw_text, &args.omit)
        },
        template: args.name_template.clone(),
        taken: Taken::default(),
    };
    request.check(inputs.recordings.len())?;
    args.sound.check()?;
    args.speakers.check()?;
    if request.formats.contains(&Format::Rttm) && args.speakers.count().is_none() {
        return Err("rttm lists who speaks when: add --speakers".into());
    }
    if request.formats.iter().any(|format| format.is_of_chapters()) {
        return Err(NO_CHAPTERS_YET.into());
    }
    Ok(request)
}

/// The jobs, in order.
fn items(
    args: &Transcribe,
    preferences: &Preferences,
    request: &Request,
    inputs: Inputs,
    runner: &mut Runner,
) -> Result<Vec<Item>, Ended> {
    request.prepare()?;
    for failure in inputs.failures {
        runner.failed(NO_JOB, failure)?;
    }
    for path in &inputs.repeated {
        runner.console.info(&format!("{}: given more than once, transcribed once", wire::shown(path)));
    }
    if inputs.recordings.is_empty() {
        return Ok(Vec::new());
    }
    // A model that can't translate is of no use for both.
    let task = if args.bilingual { Task::Translate } else { args.task() };
    let chosen = models::chosen(args.model.as_deref(), args.language.0.as_deref(), task, preferences);
    let model = match chosen {
        Ok(model) => model,
        Err(failure) => return runner.failed(NO_JOB, failure).map(|()| Vec::new()),
    };

    let by_language = by_language(args, &model, preferences);
    if args.model_by_language && by_language.is_none() {
        runner.console.info(NO_CHOICE_BY_LANGUAGE);
    }

    if args.speakers.count().is_some()
        && let Err(failure) = SpeakerModel::check(preferences)
    {
        return runner.failed(NO_JOB, failure).map(|()| Vec::new());
    }

    // What can't be read is said by the job.
    if let Ok(network) = advisor::model_info::read(&model.path) {
        let asked = Job { task, ..job(NO_JOB, Path::new(""), &model.path, args) };
        let is_named = args.model.is_some();
        if let Some(failure) = advisor::model_info::refusal(&network, &model.name, is_named, &asked) {
            return runner.failed(NO_JOB, failure).map(|()| Vec::new());
        }
    }

    let outputs = plan(&inputs.recordings, request, args.language.0.as_deref());
    let template = JobTemplate::new(preferences.clone(), model.clone(), args.machine.device());
    let mut items = Vec::new();
    for (id, (file, output)) in (1..).zip(inputs.recordings.into_iter().zip(outputs)) {
        if args.json_events {
            print_event(&HostEvent::Queued { job: id, file: &FilePath::from(&file) })?;
        }
        if output.renamed {
            let name = wire::shown(Path::new(&output.name));
            let why = "another recording has the same name";
            runner.console.info(&format!("{}: results are named {name}, since {why}", wire::shown(&file)));
        }
        let job = Job { by_language: by_language.clone(), ..job(id, &file, &model.path, args) };
        let job = template.fill(job);
        items.push(Item { id, file, job, output, request: request.clone(), key: None });
    }
    if let Some(first) = items.first() {
        announce(&template, &first.job, &mut runner.console);
    }
    Ok(items)
}

/// The request that the model follow from the language. A model that is named goes before the settings, and not before the
/// option.
fn by_language(args: &Transcribe, model: &ModelRef, preferences: &Preferences) -> Option<ByLanguage> {
    let is_wanted = args.model_by_language || args.model.is_none();
    let asked = || job(NO_JOB, Path::new(""), &model.path, args);
    is_wanted.then(|| by_language::request(model, &asked(), preferences)).flatten()
}

/// The job that the arguments ask for; what they leave open stays the default.
fn job(id: JobId, file: &Path, model: &Path, args: &Transcribe) -> Job {
    let mut job = Job::new(id, file, model);
    job.device = args.machine.device();
    let asked = Asked {
        language: &args.language,
        task: args.task(),
        sound: &args.sound,
        speakers: &args.speakers.counts,
        decoding: &args.decoding,
    };
    asked.apply(&mut job);
    job
}

/// What is asked for of a recording, whichever machine does it.
#[derive(Debug)]
pub struct Asked<'a> {
    pub language: &'a Language,
    pub task: Task,
    pub sound: &'a Sound,
    pub speakers: &'a SpeakerCounts,
    pub decoding: &'a Decoding,
}

impl Asked<'_> {
    pub fn apply(&self, job: &mut Job) {
        job.language = self.language.0.clone();
        job.task = self.task;
        job.channels = self.sound.channels;
        job.track = self.sound.track;
        job.limit = self.sound.limit;
        job.span = self.sound.span();
        job.speakers = self.speakers.count().is_some();
        job.speaker_count = self.speakers.count().unwrap_or_default();
        if let Some(voice_activity) = self.sound.vad {
            job.voice_activity = voice_activity;
        }
        job.strategy = self.decoding.strategy;
        let (wanted, decoding) = (self.decoding, &mut job.decoding);
        decoding.beam_size = wanted.beam_size.or(decoding.beam_size);
        decoding.best_of = wanted.best_of.unwrap_or(decoding.best_of);
        if !wanted.temperature.is_empty() {
            decoding.temperatures.clone_from(&wanted.temperature);
        }
        decoding.initial_prompt = wanted.prompt.clone().filter(|prompt| !prompt.trim().is_empty());
        let listed = wanted.vocabulary_file.iter().flat_map(|list| &list.0);
        decoding.vocabulary = wanted
            .vocabulary
            .iter()
            .chain(listed)
            .map(|word| word.trim().to_string())
            .filter(|word| !word.is_empty())
            .collect();
        decoding.vocabulary_strength = wanted.vocabulary_strength.unwrap_or(decoding.vocabulary_strength);
        decoding.condition_on_previous_text = wanted.condition_on_previous_text;
        decoding.language_per_region = wanted.language_per_region;
        decoding.word_times = !wanted.no_word_times;
        decoding.timestamps = !wanted.no_timestamps;
        decoding.repair = !wanted.no_repair;
        decoding.seed = wanted.seed.unwrap_or(decoding.seed);
    }
}
