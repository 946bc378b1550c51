//! `steno submit`: recordings for workers.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use advisor::fit::{DeviceMemory, ModelFit};
use clap::Args;
use clap::builder::PossibleValuesParser;
use cluster::{Accepted, Cluster, Kind, Recording, Remote, Source, Submitted};
use config::Preferences;
use config::preferences::Values;
use futures_util::StreamExt;
use hub::Catalogue;
use transcript::Task;
use wire::{ErrorCode, Failure, FilePath, Job, NO_JOB};

use crate::args::{Decoding, EXIT_CODES, Sound, SpeakerCounts};
use crate::collected::{Collector, Files};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::nats::{Copies, Nats, Sftp, unless};
use crate::transcribe::Asked;
use crate::values::{self, Language};
use crate::{inputs, models};

/// Jobs on their way to NATS at once.
const AT_ONCE: usize = 16;

const LONG: &str = "\
Put recordings into a queue in NATS, for workers on other machines.

FILE is a recording, a folder of them, or sftp://USER@HOST/FOLDER, which workers read themselves. Recordings of this \
computer are uploaded to NATS and deleted there when they are transcribed; with --shared, workers read them under the \
same path instead, for instance from a network drive. The same recording with the same settings is one job, however \
often it is submitted. --wait writes the transcripts, as `steno collect` does later.";

/// Submit recordings to workers on other machines
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Submit {
    /// Recordings, folders of them, or sftp:// addresses
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Search subfolders too
    #[arg(long, short = 'R')]
    pub recursive: bool,

    /// Workers see the recordings under the same paths: upload nothing
    #[arg(long)]
    pub shared: bool,

    /// Name of the model; workers that have it installed take the jobs [default: the recommended one of this computer]
    #[arg(long, short, value_name = "NAME", env = "STENO_MODEL", hide_env_values = true)]
    pub model: Option<OsString>,

    /// Spoken language, as a two-letter code (en, de, ...); auto detects it
    #[arg(long, short, value_parser = values::language, default_value = "auto", value_name = "CODE")]
    pub language: Language,

    /// Whether to transcribe, or to translate into English
    #[arg(long, value_parser = values::task(), default_value = "transcribe")]
    pub task: Task,

    /// Same as --task translate
    #[arg(long, conflicts_with = "task")]
    pub translate: bool,

    /// Only detect the language; the result is a table, languages.csv
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(["language"]))]
    pub only: Option<String>,

    /// Wait until the jobs are finished and write their transcripts
    #[arg(long)]
    pub wait: bool,

    #[command(flatten)]
    pub written: Files,

    /// Print no progress, only warnings and errors
    #[arg(long, short)]
    pub quiet: bool,

    #[command(flatten)]
    pub nats: Nats,
    #[command(flatten)]
    pub copies: Copies,
    #[command(flatten)]
    pub sftp: Sftp,
    #[command(flatten)]
    pub sound: Sound,
    #[command(flatten)]
    pub speakers: SpeakerCounts,
    #[command(flatten)]
    pub decoding: Decoding,
}

/// The model, by the name that workers know it by, and what it needs.
struct Model {
    name: String,
    needs: Option<u64>,
}

pub async fn run(args: Submit, mut interrupt: Interrupt) -> Ended {
    match submit(args, &mut interrupt).await {
        Ok(ended) | Err(ended) => ended,
    }
}

async fn submit(args: Submit, interrupt: &mut Interrupt) -> Result<Ended, Ended> {
    args.sound.check().map_err(Ended::Usage)?;
    args.speakers.check().map_err(Ended::Usage)?;
    let request = args.written.request().map_err(Ended::Usage)?;
    if !args.wait && (args.written.output.is_some() || !args.written.format.is_empty() || args.written.force)
    {
        let text =
            "--format, --output and --force are for transcripts: add --wait, or give them to `steno collect`";
        return Err(Ended::Usage(text.into()));
    }
    let kind = if args.only.is_some() { Kind::Language } else { Kind::Transcribe };
    if kind == Kind::Language && !args.written.format.is_empty() {
        return Err(Ended::Usage("--only language writes a table: leave out --format".into()));
    }
    let preferences =
        Preferences::of_this_user(&Values::new()).map_err(|failure| Ended::Usage(failure.to_string()))?;
    let mut console = Console::new(args.quiet);
    let cluster = args.nats.connect(&preferences, args.copies.replicas, interrupt).await?;
    let mut job = Job::new(NO_JOB, "", "");
    let task = if args.translate { Task::Translate } else { args.task };
    let (language, sound, speakers, decoding) = (&args.language, &args.sound, &args.speakers, &args.decoding);
    Asked { language, task, sound, speakers, decoding }.apply(&mut job);
    let model = unless(interrupt, model(&cluster, &args, &job, &preferences)).await?;

    let mut some_failed = false;
    let mut fail = |failure: Failure, console: &mut Console| {
        some_failed = true;
        console.error(&failure.to_string());
    };
    let mut local = Vec::new();
    let mut orders: Vec<Result<(Submitted, Option<PathBuf>), Failure>> = Vec::new();
    for file in &args.files {
        let remote = file.to_str().and_then(Remote::parse);
        let Some(remote) = remote else {
            local.push(file.clone());
            continue;
        };
        let ssh = args.sftp.ssh(&preferences);
        match unless(interrupt, async { ssh.list(&remote?, args.recursive).await }).await {
            Ok(found) => orders.extend(found.into_iter().map(|file| {
                let recording = Recording { bytes: file.bytes, digest: None, modified: file.modified };
                let (name, source) = (file.name().to_owned(), Source::Sftp(file.remote));
                Ok((order(name, source, recording, &model, kind, &job), None))
            })),
            Err(Ended::Failed(failure)) => fail(failure, &mut console),
            Err(ended) => return Err(ended),
        }
    }
    let inputs = inputs::expand(&local, args.recursive);
    inputs.failures.into_iter().for_each(|failure| fail(failure, &mut console));
    let read = inputs.recordings.into_iter().map(|file| {
        let recording = Recording::of(&file)?;
        let name = file.file_name().map_or_else(|| "recording".into(), OsStr::to_string_lossy).into_owned();
        if args.shared {
            let path: FilePath = std::path::absolute(&file).unwrap_or(file).into();
            return Ok((order(name, Source::Path { path }, recording, &model, kind, &job), None));
        }
        Ok((order(name, Source::Upload, recording, &model, kind, &job), Some(file)))
    });
    let sent = send(&cluster, orders.into_iter().chain(read));
    let sent = tokio::select! {
        sent = sent => sent,
        // What was sent stays: the command can be repeated.
        () = interrupt.raised() => return Err(Ended::Cancelled),
    };
    cluster.wake().await;
    let (mut ids, mut counts) = (HashSet::new(), [0; 4]);
    for one in sent {
        match one {
            Ok((id, accepted)) => {
                ids.insert(id);
                counts[accepted as usize] += 1;
            }
            // Without NATS the others failed alike.
            Err(failure) => fail(failure, &mut console),
        }
    }
    console.info(&summary(&counts));
    if !args.wait {
        return Ok(if some_failed { Ended::SomeFailed } else { Ended::Done });
    }
    let collector = Collector::new(cluster, Some(&ids), request, false, console, interrupt).await?;
    let ended = collector.run(true, interrupt).await;
    Ok(if some_failed && matches!(ended, Ended::Done) { Ended::SomeFailed } else { ended })
}

fn order(
    name: String,
    source: Source,
    recording: Recording,
    model: &Model,
    kind: Kind,
    job: &Job,
) -> Submitted {
    let order = Submitted::new(name, source, recording, model.name.clone(), kind, job);
    Submitted { needs: model.needs, ..order }
}

/// Several at once, since each waits for NATS to have it on its disk.
async fn send(
    cluster: &Cluster,
    orders: impl Iterator<Item = Result<(Submitted, Option<PathBuf>), Failure>>,
) -> Vec<Result<(String, Accepted), Failure>> {
    let one = move |order: Result<(Submitted, Option<PathBuf>), Failure>| async move {
        let (submitted, local) = order?;
        let id = submitted.id.clone();
        cluster.submit(submitted, local.as_deref()).await.map(|accepted| (id, accepted))
    };
    futures_util::stream::iter(orders).map(one).buffered(AT_ONCE).collect().await
}

fn summary(counts: &[usize; 4]) -> String {
    let [new, known, done, again] = counts;
    let jobs = if *new == 1 { "1 job was".to_owned() } else { format!("{new} jobs were") };
    let mut text = format!("{jobs} submitted");
    for (count, what) in
        [(known, "wait or run already"), (done, "are finished already"), (again, "are tried again")]
    {
        if *count > 0 {
            text += &format!(", {count} {what}");
        }
    }
    text + "."
}

/// The model by name: one of this computer, of a worker, or of the catalogue.
async fn model(
    cluster: &Cluster,
    args: &Submit,
    job: &Job,
    preferences: &Preferences,
) -> Result<Model, Failure> {
    let found = models::chosen(args.model.as_deref(), job.language.as_deref(), job.task, preferences);
    let missing = match found {
        Ok(model) => {
            let needs = needs(&model.name, &model.path, job);
            return Ok(Model { name: model.name, needs });
        }
        Err(failure) => failure,
    };
    let Some(name) = args.model.as_deref().and_then(OsStr::to_str) else { return Err(missing) };
    let workers = cluster.workers().await?;
    let mut offers = workers.iter().flat_map(|worker| &worker.models);
    if let Some(offer) = offers.find(|offer| offer.model == name) {
        return Ok(Model { name: name.to_owned(), needs: Some(offer.needs) });
    }
    let catalogue = Catalogue::public().map_err(advisor::store::failure)?;
    match catalogue.find(name) {
        Some(known) => {
            let needs = known.approx_megabytes.map(|megabytes| megabytes.saturating_mul(1_000_000));
            Ok(Model { name: name.to_owned(), needs })
        }
        None => Err(Failure::new(
            ErrorCode::ModelNotFound,
            format!("Neither this computer nor a worker has a model named \"{}\".", wire::printable(name)),
        )
        .remedy("`steno cluster` lists the workers and their models.")),
    }
}

/// What a job needs at the least, in bytes, on the CPU: where it will run is not known yet.
fn needs(name: &str, folder: &Path, job: &Job) -> Option<u64> {
    let device =
        DeviceMemory { kind: memory::DeviceKind::Host, name: String::new(), free: u64::MAX, total: u64::MAX };
    ModelFit::read(name, folder, job, &device).ok().map(|fit| fit.check.peak)
}
