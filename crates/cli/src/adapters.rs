//! `steno adapters`: what models have learnt from corrections, as files.

use std::path::PathBuf;

use advisor::adapters::{Adapters as Store, ListedAdapter, read};
use clap::{Args, Subcommand};
use formats::{AdapterCard, AdapterFigures, WordErrors};
use memory::bytes::human;
use serde::Serialize;
use wire::{ErrorCode, Failure, FilePath, printable};

use crate::args::EXIT_CODES;
use crate::ended::Ended;
use crate::models;
use crate::outputs::print;

const LONG: &str = "\
Manage adapters: what models have learnt with `steno adapt`.

An adapter is a file of a few megabytes beside a model, which stays as it is. While it is on, the model is used \
with it wherever recordings are transcribed on this computer, and transcripts name it.";

/// Manage what models have learnt from corrections
#[derive(Debug, Args)]
#[command(long_about = LONG, after_help = EXIT_CODES)]
pub struct Adapters {
    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    List(List),
    Show(Named),
    Export(Export),
    Import(Import),
    Verify(Verify),
    Remove(Named),
    On(Named),
    Off(Named),
}

/// List the adapters
#[derive(Debug, Default, Args)]
pub struct List {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// An adapter
#[derive(Debug, Args)]
pub struct Named {
    /// Name of the adapter
    pub name: String,
}

/// Write an adapter to a file, to import it on another computer
#[derive(Debug, Args)]
pub struct Export {
    /// Name of the adapter
    pub name: String,

    /// The file to write
    #[arg(long, short, value_name = "FILE")]
    pub output: PathBuf,
}

/// Take in the file of an adapter
#[derive(Debug, Args)]
pub struct Import {
    /// The file
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// Its name here [default: that of the file]
    #[arg(long)]
    pub name: Option<String>,
}

/// Check that adapters are whole and fit a model
#[derive(Debug, Args)]
pub struct Verify {
    /// Name of the adapter [default: all]
    pub name: Option<String>,

    /// The model that it is to fit: a name or a folder
    #[arg(long, value_name = "NAME|FOLDER")]
    pub model: Option<std::ffi::OsString>,
}

pub fn run(args: Adapters) -> Ended {
    let done = match args.command.unwrap_or(Command::List(List::default())) {
        Command::List(args) => list(&args),
        Command::Show(args) => show(&args.name),
        Command::Export(args) => store().and_then(|it| Ok(it.export(&args.name, &args.output, false)?)),
        Command::Import(args) => import(&args),
        Command::Verify(args) => verify(&args),
        Command::Remove(args) => store().and_then(|it| Ok(it.remove(&args.name)?)),
        Command::On(args) => on(&args.name),
        Command::Off(args) => store().and_then(|it| Ok(it.switch_off(&args.name)?)),
    };
    done.map_or_else(|ended| ended, |()| Ended::Done)
}

/// The user's adapters.
pub fn store() -> Result<Store, Ended> {
    let none = || Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep adapters in.");
    Ok(Store::of_this_user().ok_or_else(none)?)
}

/// An adapter as `--json` prints it.
#[derive(Debug, Serialize)]
struct Printed {
    name: String,
    path: FilePath,
    bytes: u64,
    on: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    card: Option<AdapterCard>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

fn list(args: &List) -> Result<(), Ended> {
    let listed = store()?.list();
    print(|out| {
        if args.json {
            let printed = |it: &ListedAdapter| Printed {
                name: it.name.clone(),
                path: it.path.clone().into(),
                bytes: it.bytes,
                on: it.is_on,
                card: it.card.as_ref().ok().cloned(),
                problem: it.card.as_ref().err().map(|failure| failure.message.clone()),
            };
            serde_json::to_writer_pretty(&mut *out, &listed.iter().map(printed).collect::<Vec<_>>())?;
            return writeln!(out);
        }
        listed.iter().try_for_each(|it| {
            let state = if it.is_on { "on" } else { "off" };
            let about = match &it.card {
                Ok(card) => format!("for {}, {}", printable(&card.model), human(it.bytes)),
                Err(failure) => failure.message.clone(),
            };
            writeln!(out, "{}  {state}  {about}", printable(&it.name))
        })
    })
}

fn show(name: &str) -> Result<(), Ended> {
    let store = store()?;
    let card = store.read(name)?.card;
    let is_on = store.list().iter().any(|it| it.name == name && it.is_on);
    print(|out| {
        writeln!(out, "{} ({})", printable(name), if is_on { "on" } else { "off" })?;
        writeln!(out, "model          {} ({})", printable(&card.model), card.base)?;
        writeln!(out, "made           {}", card.created)?;
        let learnt = &card.learnt;
        writeln!(
            out,
            "learnt from    {} parts of {} recordings, {} of them corrected, {:.0} s, {}",
            learnt.segments,
            learnt.recordings,
            learnt.corrected,
            learnt.seconds,
            learnt.languages.join(", ")
        )?;
        if card.rank > 0 {
            writeln!(
                out,
                "rank           {}, alpha {}, seed {}, epoch {}",
                card.rank, card.alpha, card.seed, card.epochs
            )?;
        }
        if card.remembered > 0 {
            writeln!(out, "remembers      {} corrections", card.remembered)?;
        }
        if let Some(strength) = card.strength {
            writeln!(out, "strength       {:.0} % of what was learnt", 100.0 * strength)?;
        }
        if let Some((before, after)) = card.held_back_loss {
            writeln!(out, "held-back loss {before:.3} before, {after:.3} after")?;
        }
        match &card.figures {
            Some(figures) => all_word_errors(out, figures),
            None => writeln!(out, "Its word errors were not counted."),
        }
    })
}

/// Prints what is known of the words that an adapter makes better and worse.
pub fn all_word_errors(out: &mut dyn std::io::Write, figures: &AdapterFigures) -> std::io::Result<()> {
    let AdapterFigures { corrections, others, learnt } = figures;
    let all = [
        ("Held-back corrections", Some(corrections)),
        ("Corrections that were learnt", learnt.as_ref()),
        ("Other recordings", others.as_ref()),
    ];
    all.into_iter()
        .try_for_each(|(what, errors)| errors.map_or(Ok(()), |errors| word_errors(out, what, errors)))
}

/// Word errors without and with an adapter, with the words that got better and worse.
fn word_errors(out: &mut dyn std::io::Write, what: &str, errors: &WordErrors) -> std::io::Result<()> {
    let WordErrors { words, before, after, better, worse } = errors;
    writeln!(out, "{what}: {before} of {words} words wrong without it, {after} with it")?;
    for (label, found) in [("better", better), ("worse", worse)] {
        if !found.is_empty() {
            let named = found.iter().map(|(word, times)| format!("{} ({times})", printable(word)));
            writeln!(out, "  {label}: {}", named.collect::<Vec<_>>().join(", "))?;
        }
    }
    Ok(())
}

fn import(args: &Import) -> Result<(), Ended> {
    let name = args
        .name
        .clone()
        .unwrap_or_else(|| args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned());
    let path = store()?.add(&args.file, &name)?;
    print(|out| writeln!(out, "{}", wire::shown(&path)))
}

fn verify(args: &Verify) -> Result<(), Ended> {
    let store = store()?;
    let files = match &args.name {
        Some(name) => vec![(name.clone(), store.read(name)?)],
        None => {
            let listed = store.list().into_iter();
            listed.map(|it| Ok((it.name, read(&it.path)?))).collect::<Result<Vec<_>, Failure>>()?
        }
    };
    let model = args.model.as_deref().map(models::named).transpose()?;
    for (name, file) in &files {
        let Some(model) = &model else { continue };
        let invalid = |text: String| Failure::new(ErrorCode::ModelInvalid, text).file(file.path.as_path());
        file.check_fits(&model.path).map_err(|error| invalid(error.to_string()))?;
        let base = formats::fingerprint(&model.path).map_err(|error| invalid(error.to_string()))?;
        if base != file.card.base {
            let text = format!("{name} was learnt beside other weights than those of {}.", model.name);
            return Err(invalid(text).into());
        }
    }
    print(|out| files.iter().try_for_each(|(name, _)| writeln!(out, "{}: whole", printable(name))))
}

fn on(name: &str) -> Result<(), Ended> {
    let card = store()?.switch_on(name)?;
    print(|out| writeln!(out, "{} is used with {} from now on.", printable(&card.model), printable(name)))
}
