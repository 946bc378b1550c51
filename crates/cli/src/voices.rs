//! `steno voices`: people whom Steno recognises by their voice.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use config::Preferences;
use library::{Flaw, Voice, VoiceSample, Voices as Library};
use serde::{Deserialize, Serialize};
use transcript::save::{Existing, write_file};
use wire::{DeviceChoice, ErrorCode, Event, Failure, Job, printable};

use crate::args::{EXIT_CODES, Machine, Process, SpeakerModel};
use crate::console::Console;
use crate::ended::{Ended, from_save};
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::own_engine;

const LONG: &str = "\
Manage the people whom Steno recognizes by their voice.

A voice that you add is recognized in every later recording whose speakers are identified: the transcript then has \
the person's name instead of \"Speaker 2\". An uncertain match is only mentioned. Voices are kept in one file on this \
computer that only you can read, and nowhere else; without voices there is no such file.";

/// Manage the people whom Steno recognizes by their voice
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Voices {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Add(Add),
    List(List),
    Show(Show),
    Rename(Rename),
    Remove(Remove),
    Export(Export),
    Import(Import),
}

/// Add samples of a person's voice
///
/// Each FILE is a recording in which the person speaks, ideally alone and for at least ten seconds. If several
/// people speak, the one who speaks most is used, with a warning.
#[derive(Debug, Args)]
pub struct Add {
    /// Name of the person in transcripts; if it exists already, the samples are added to it
    pub name: String,

    /// Recordings of the person
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    #[command(flatten)]
    pub model: SpeakerModel,
    #[command(flatten)]
    pub process: Process,
}

/// List the voices
#[derive(Debug, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show the samples of a voice and how similar they are
#[derive(Debug, Args)]
pub struct Show {
    /// The person
    pub name: String,
}

/// Give a voice another name; transcripts keep the old one
#[derive(Debug, Args)]
pub struct Rename {
    /// The person
    pub name: String,

    /// The new name
    pub new: String,
}

/// Remove a voice, or one sample of it, for good; names in transcripts stay
#[derive(Debug, Args)]
pub struct Remove {
    /// The person
    pub name: String,

    /// Remove only this sample, by its number in `steno voices show`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub sample: Option<u32>,
}

/// Write voices to a file, to import them on another computer
#[derive(Debug, Args)]
pub struct Export {
    /// The people [default: all]
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

/// Add the voices of an exported file
#[derive(Debug, Args)]
pub struct Import {
    /// The file that `steno voices export` wrote
    pub file: PathBuf,
}

/// An exported file.
#[derive(Debug, Serialize, Deserialize)]
struct Exported {
    steno_voices: u32,
    voices: BTreeMap<String, Vec<VoiceSample>>,
}

const EXPORT_VERSION: u32 = 1;

pub async fn run(args: Voices, interrupt: Interrupt) -> Ended {
    let done = match args.command {
        Command::Add(args) => add(args, interrupt).await,
        Command::List(args) => list(&args),
        Command::Show(args) => show(&args),
        Command::Rename(args) => rename(&args),
        Command::Remove(args) => remove(&args),
        Command::Export(args) => export(&args),
        Command::Import(args) => import(&args),
    };
    done.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn add(args: Add, mut interrupt: Interrupt) -> Result<(), Ended> {
    let name = args.name.trim().to_owned();
    if name.is_empty() {
        return Err(Ended::Usage("NAME must not be empty".into()));
    }
    // A voice is recognised with the model that it was added with.
    let preferences = Preferences::of_this_user(&args.model.flags())
        .map_err(|failure| Ended::Usage(failure.to_string()))?;
    SpeakerModel::check(&preferences)?;
    let speaker_model = advisor::speaker_model(&preferences);
    let library = Library::open(&file()?).map_err(|error| error.failure())?;
    let mut console = Console::new(false);
    let machine = Machine { device: Some("cpu".into()), threads: None, process: args.process };
    let (engine, _lease) = own_engine::start(&machine, &mut console, &mut interrupt).await?;
    let mut samples = Vec::new();
    for file in &args.files {
        let job = Job::new(wire::NO_JOB, file.as_path(), PathBuf::new());
        let job = Job { device: DeviceChoice::Cpu, speaker_model: speaker_model.clone(), ..job };
        let handle = engine.encode_voice(job, Vec::new());
        let encoded = own_engine::follow(handle, &mut interrupt, |event| match event {
            Event::Voice { voice } => ControlFlow::Break(Ok(voice)),
            _ => ControlFlow::Continue(()),
        });
        match encoded.await {
            Ok(voice) => samples.push(VoiceSample::new(&source(file), *voice)),
            Err(ended) => {
                engine.shutdown().await;
                return Err(ended);
            }
        }
    }
    engine.shutdown().await;
    library.add(&name, &samples).map_err(|error| error.failure())?;
    let voice = named(&library, &name)?;
    let first = voice.samples.len() - samples.len();
    for number in first..voice.samples.len() {
        console.info(&format!("{}: {}", printable(&name), described(&voice, number)));
        for flaw in voice.flaws(number) {
            console.warning(&format!("{}: {}", printable(&voice.samples[number].source), advice(flaw)));
        }
    }
    Ok(())
}

fn list(args: &List) -> Result<(), Ended> {
    let (voices, damaged) = match existing()? {
        Some(library) => library.list().map_err(|error| error.failure())?,
        None => Default::default(),
    };
    for name in damaged {
        Console::new(false).warning(&damaged_text(&name));
    }
    if args.json {
        let seconds = |voice: &Voice| voice.samples.iter().map(|sample| sample.seconds).sum::<f64>();
        let all: Vec<_> = voices
            .iter()
            .map(|voice| {
                serde_json::json!({
                    "name": voice.name, "samples": voice.samples.len(), "seconds": seconds(voice),
                })
            })
            .collect();
        return print(|out| {
            serde_json::to_writer_pretty(&mut *out, &all)?;
            writeln!(out)
        });
    }
    if voices.is_empty() {
        Console::new(false).info("No voice was added yet: `steno voices add NAME FILE...` adds one.");
    }
    print(|out| {
        voices.iter().try_for_each(|voice| {
            let seconds: f64 = voice.samples.iter().map(|sample| sample.seconds).sum();
            let count = voice.samples.len();
            let samples = if count == 1 { "sample" } else { "samples" };
            writeln!(out, "{}: {count} {samples}, {seconds:.0} s of speech", printable(&voice.name))
        })
    })
}

fn show(args: &Show) -> Result<(), Ended> {
    let library = existing()?.ok_or_else(|| unknown(&args.name))?;
    let voice = named(&library, &args.name)?;
    print(|out| {
        (0..voice.samples.len()).try_for_each(|number| {
            writeln!(out, "{}. {}", number + 1, described(&voice, number))?;
            voice.flaws(number).into_iter().try_for_each(|flaw| writeln!(out, "   {}", advice(flaw)))
        })
    })
}

fn rename(args: &Rename) -> Result<(), Ended> {
    let library = existing()?.ok_or_else(|| unknown(&args.name))?;
    named(&library, &args.name)?;
    let new = args.new.trim();
    if new.is_empty() {
        return Err(Ended::Usage("NEW must not be empty".into()));
    }
    if library.rename(&args.name, new).map_err(|error| error.failure())? {
        Console::new(false).info(&format!("{} is now {}.", printable(&args.name), printable(new)));
        return Ok(());
    }
    let text = format!("A voice named {} already exists.", printable(new));
    Err(Failure::new(ErrorCode::OutputExists, text).into())
}

fn remove(args: &Remove) -> Result<(), Ended> {
    let library = existing()?.ok_or_else(|| unknown(&args.name))?;
    let removed = match args.sample {
        Some(number) => library.remove_sample(&args.name, number as usize - 1),
        None => library.remove(&args.name),
    };
    if !removed.map_err(|error| error.failure())? {
        return Err(unknown(&args.name).into());
    }
    let what = args.sample.map(|number| format!("Sample {number} of ")).unwrap_or_default();
    Console::new(false).info(&format!("{what}{} was deleted.", printable(&args.name)));
    Ok(())
}

fn export(args: &Export) -> Result<(), Ended> {
    let voices = match existing()? {
        Some(library) => library.list().map_err(|error| error.failure())?.0,
        None => Vec::new(),
    };
    if let Some(name) = args.names.iter().find(|name| voices.iter().all(|voice| voice.name != **name)) {
        return Err(unknown(name).into());
    }
    let is_wanted = |voice: &Voice| args.names.is_empty() || args.names.contains(&voice.name);
    let voices = voices.into_iter().filter(is_wanted).map(|voice| (voice.name, voice.samples)).collect();
    let exported = Exported { steno_voices: EXPORT_VERSION, voices };
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    // Like every file that `write_file` makes anew, it is this user's alone.
    write_file(&args.output, existing, |out| Ok(serde_json::to_writer(out, &exported)?))
        .map_err(|error| Ended::Failed(from_save(&error)))
}

fn import(args: &Import) -> Result<(), Ended> {
    let invalid = |detail: String| {
        Failure::new(ErrorCode::FileUnreadable, format!("This is not a file of voices: {detail}."))
            .file(args.file.as_path())
            .remedy("Choose a file that `steno voices export` wrote.")
    };
    let bytes = std::fs::read(&args.file).map_err(|error| {
        Failure::new(ErrorCode::FileUnreadable, format!("The file can't be read: {error}."))
            .file(args.file.as_path())
    })?;
    let exported: Exported = serde_json::from_slice(&bytes).map_err(|error| invalid(error.to_string()))?;
    if exported.steno_voices != EXPORT_VERSION {
        return Err(invalid(format!("it has version {}", exported.steno_voices)).into());
    }
    let is_whole = |sample: &VoiceSample| {
        let length = sample.vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        (length - 1.0).abs() < 1e-3
    };
    if let Some((name, _)) = exported.voices.iter().find(|(_, samples)| !samples.iter().all(is_whole)) {
        return Err(invalid(format!("a sample of {} is damaged", printable(name))).into());
    }
    let library = Library::open(&file()?).map_err(|error| error.failure())?;
    for (name, samples) in &exported.voices {
        library.add(name, samples).map_err(|error| error.failure())?;
    }
    Ok(())
}

/// Where the user's voices are.
fn file() -> Result<PathBuf, Failure> {
    supervisor::voices_file().ok_or_else(|| {
        Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep voices in.")
            .remedy("Set STENO_STATE_FOLDER to a folder.")
    })
}

fn existing() -> Result<Option<Library>, Failure> {
    Library::open_existing(&file()?).map_err(|error| error.failure())
}

fn named(library: &Library, name: &str) -> Result<Voice, Failure> {
    let (voices, damaged) = library.list().map_err(|error| error.failure())?;
    if damaged.iter().any(|other| other == name) {
        Console::new(false).warning(&damaged_text(name));
    }
    voices.into_iter().find(|voice| voice.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let text = format!("There is no voice named {}.", printable(name));
    Failure::new(ErrorCode::BadSettings, text).remedy("`steno voices list` lists all voices.")
}

fn damaged_text(name: &str) -> String {
    format!("A sample of {} is damaged and is not used. Add it again.", printable(name))
}

/// What a sample is called: it names no folder of the user's.
fn source(file: &Path) -> String {
    file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned()
}

fn described(voice: &Voice, number: usize) -> String {
    let sample = &voice.samples[number];
    let alike = voice.distance(number).map(|distance| {
        format!(", {:.0} % similar to the other samples", 100.0 * f64::from((1.0 - distance).clamp(0.0, 1.0)))
    });
    format!("{}, {:.0} s of speech{}", printable(&sample.source), sample.seconds, alike.unwrap_or_default())
}

fn advice(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::Short => "This sample is short: samples of ten seconds or more make recognition more reliable.",
        Flaw::Mixed => {
            "Other people speak in this recording too; the voice of the one who speaks most was used."
        }
        Flaw::Unlike => "This sample does not sound like the others. Is it the same person?",
    }
}
