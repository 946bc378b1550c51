//! The graphics cards, and the engine that computes on them.

use std::io::{self, Write};

use advisor::engines;
use clap::{Args, Subcommand};
use config::Preferences;
use config::preferences::Values;
use hub::{Control, TransferProgress};
use memory::bytes::human;
use serde::Serialize;
use supervisor::cards;
use supervisor::status::{Card, Gpus};
use wire::{ErrorCode, FilePath};

use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::pull::line;

/// Show the graphics cards and what they lack; get the engine for them
///
/// Without a command: each card, the driver and the engine for NVIDIA cards, and for what is missing, what to do.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Gpu {
    #[command(subcommand)]
    pub command: Option<GpuCommand>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum GpuCommand {
    Install(Install),
    Remove(Remove),
}

const INSTALL: &str = "\
Download the engine for NVIDIA cards with NVIDIA's libraries for it, for this user.

The release's list of files says what they are; every file is verified before any of them is used. To resume an \
interrupted download, run the same command again. An engine that the system's administrator installed goes before it.";

/// Download the engine for NVIDIA cards
#[derive(Debug, Args)]
#[command(long_about = INSTALL)]
pub struct Install {
    /// The address of the release's list of files [default: STENO_GPU_MANIFEST, else this version's release]
    #[arg(long, value_name = "ADDRESS")]
    pub manifest: Option<String>,

    /// The proxy, such as http://HOST:PORT
    #[arg(long, value_name = "ADDRESS", help_heading = "Network")]
    pub proxy: Option<String>,

    /// Never use the network; fail instead
    #[arg(long, help_heading = "Network")]
    pub offline: bool,

    /// Print no progress, only errors
    #[arg(long, short)]
    pub quiet: bool,
}

/// Remove the engine that `steno gpu install` downloaded
#[derive(Debug, Args)]
pub struct Remove {}

/// What there is, as programs read it.
#[derive(Debug, Serialize)]
struct Report {
    #[serde(flatten)]
    gpus: Gpus,
    /// Whether `steno gpu install` would make a card compute.
    install_helps: bool,
}

pub async fn show(args: &Gpu) -> Ended {
    cards::ask().await;
    let gpus = Gpus::now(Vec::new());
    let install_helps = gpus.cards.iter().any(|card| card.lack == Some(cards::Lack::Engine));
    let report = Report { gpus, install_helps };
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &report)?;
            return writeln!(out);
        }
        write(&report.gpus, out)
    });
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}

fn write(gpus: &Gpus, out: &mut dyn Write) -> io::Result<()> {
    for card in &gpus.cards {
        let Card { gpu, number, lack, .. } = card;
        let name = number.map_or_else(|| "card".to_owned(), |number| format!("cuda:{number}"));
        let capability = gpu.capability.map(|(major, minor)| format!(", compute capability {major}.{minor}"));
        let memory = format!("{} free of {}", human(gpu.free), human(gpu.total));
        writeln!(out, "{name:9}{}, {memory}{}", gpu.name, capability.unwrap_or_default())?;
        let state =
            lack.as_ref().map_or_else(|| "It can compute.".into(), |lack| format!("It {}", lack.text()));
        writeln!(out, "         {state}")?;
    }
    if let Some(version) = &gpus.driver {
        writeln!(out, "driver   {version}")?;
    }
    let engine = gpus.cuda_engine.as_ref().map(|path| wire::shown(path).to_string());
    writeln!(out, "engine   {}", engine.unwrap_or_else(|| "none for NVIDIA cards".into()))?;
    // What a card lacks was said with the card.
    if let Some(problem) = gpus.gpu_problem.as_ref().filter(|_| gpus.cards.is_empty()) {
        writeln!(out, "{problem}")?;
    }
    Ok(())
}

pub async fn install(args: Install, mut interrupt: Interrupt) -> Ended {
    let mut flags = Values::new();
    flags.extend(args.proxy.clone().map(|proxy| ("STENO_PROXY", proxy)));
    flags.extend(args.offline.then(|| ("STENO_OFFLINE", "true".to_owned())));
    let preferences = match Preferences::of_this_user(&flags) {
        Ok(preferences) => preferences,
        Err(failure) => return Ended::Usage(failure.to_string()),
    };
    let mut console = Console::new(args.quiet);
    let control = Control::default();
    let mut waited = None;
    let mut on_progress = |progress: TransferProgress| {
        // Where no line can be redrawn, a wait is still reported, once.
        if !console.redraws() && progress.why != waited {
            waited.clone_from(&progress.why);
            if let Some(why) = &progress.why {
                console.info(why);
            }
        }
        console.redraw(&line("engine", &progress));
    };
    let result = {
        let installing = engines::install(&preferences, args.manifest.as_deref(), &control, &mut on_progress);
        tokio::pin!(installing);
        tokio::select! {
            result = &mut installing => result,
            () = interrupt.raised() => {
                control.cancel();
                installing.await
            }
        }
    };
    console.clear();
    match result {
        Ok(program) => {
            console.info(&format!("The engine is installed: {}", wire::shown(&program)));
            cards::ask().await;
            // It helps nobody where something else is missing too.
            if let Some(problem) = Gpus::now(Vec::new()).gpu_problem {
                console.info(&problem);
            }
            Ended::Done
        }
        Err(failure) if failure.code == ErrorCode::Cancelled => {
            console.info(&failure.to_string());
            Ended::Cancelled
        }
        Err(failure) => Ended::Failed(failure),
    }
}

pub fn remove(_: &Remove) -> Ended {
    match engines::remove() {
        Ok(folder) => {
            Console::new(false).info(&format!("The engine was removed from {}", FilePath::from(folder)));
            Ended::Done
        }
        Err(failure) => Ended::Failed(failure),
    }
}
