//! `steno`: recordings to transcripts, from a terminal or a script.
//!
//! A thin host on top of `supervisor` and `advisor`: it turns arguments into jobs, events into
//! lines, and results into files. Standard output carries results only;
//! everything that is said about them goes to standard error.

mod adapt;
mod adapters;
mod args;
mod chapters;
mod clip;
mod cluster_command;
mod collect;
mod collected;
mod completions;
mod connections;
mod console;
mod detect_language;
mod doctor;
mod doctor_fit;
mod ended;
mod events;
mod export;
mod fit_notice;
mod gpu;
mod inputs;
mod installed;
mod interrupt;
mod man;
mod memory_args;
mod memory_command;
mod models;
mod nats;
mod outputs;
mod own_engine;
mod platform;
mod probe;
mod progress;
mod pull;
mod quantize;
mod recommend;
mod resume;
mod runner;
mod search;
mod serve;
mod speakers;
mod spool;
mod stored;
mod submit;
mod times;
mod timings;
mod transcribe;
mod translate;
mod values;
mod voices;
mod words;
mod worker;

use std::ffi::OsString;
use std::io;
use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, Models, ModelsCommand};
use console::Console;
use ended::Ended;
use gpu::{Gpu, GpuCommand};
use interrupt::Interrupt;

fn main() -> ExitCode {
    let cli = Cli::parse_from(arguments(std::env::args_os()));
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            Console::new(false).error(&format!("{error:#}"));
            ExitCode::from(args::EXIT_FAILED)
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    if cli.command.uses_engines() {
        sweep();
    }
    // Two workers: one may wait for a disk while the other answers the engine.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let ended = runtime.block_on(async {
        anyhow::Ok(match cli.command {
            Command::Transcribe(args) => transcribe::run(*args, Interrupt::listen()?).await,
            Command::Resume(args) => resume::run(&args, Interrupt::listen()?).await,
            Command::DetectLanguage(args) => detect_language::run(args, Interrupt::listen()?).await,
            Command::Speakers(args) => speakers::run(&args, Interrupt::listen()?).await,
            Command::Translate(args) => translate::run(&args, Interrupt::listen()?).await,
            Command::Voices(args) => voices::run(args, Interrupt::listen()?).await,
            Command::Search(args) => search::run(&args, Interrupt::listen()?).await,
            Command::Words(args) => words::run(&args),
            Command::Adapt(args) => adapt::run(&args, Interrupt::listen()?).await,
            Command::Adapters(args) => adapters::run(args),
            Command::Chapters(args) => chapters::run(&args, Interrupt::listen()?).await,
            Command::Serve(args) => serve::run(*args, Interrupt::listen()?).await,
            Command::Worker(args) => worker::run(*args, Interrupt::listen()?).await,
            Command::Submit(args) => submit::run(*args, Interrupt::listen()?).await,
            Command::Collect(args) => collect::run(args, Interrupt::listen()?).await,
            Command::Cluster(args) => cluster_command::run(&args, Interrupt::listen()?).await,
            Command::Export(args) => export::run(&args),
            Command::Clip(args) => clip::run(&args),
            Command::Models(Models { command: Some(command), .. }) => models_command(command).await?,
            Command::Models(Models { command: None, json }) => {
                models::run(&models::List { all: false, json })
            }
            Command::Gpu(Gpu { command: Some(GpuCommand::Install(args)), .. }) => {
                gpu::install(args, Interrupt::listen()?).await
            }
            Command::Gpu(Gpu { command: Some(GpuCommand::Remove(args)), .. }) => gpu::remove(&args),
            Command::Gpu(args) => gpu::show(&args).await,
            Command::Doctor(args) => doctor::run(&args, Interrupt::listen()?).await,
            Command::Memory(args) => memory_command::run(&args).await,
            Command::Completions(args) => completions::run(&args),
            Command::Man(args) => man::run(&args),
        })
    });
    // A blocked read of a name that doesn't answer must not keep us here.
    runtime.shutdown_background();
    let code = match ended? {
        Ended::Done => args::EXIT_DONE,
        Ended::SomeFailed => args::EXIT_FAILED,
        Ended::Usage(text) => {
            Console::new(false).error(&text);
            args::EXIT_USAGE
        }
        Ended::Failed(failure) => {
            Console::new(false).error(&failure.to_string());
            args::EXIT_FAILED
        }
        Ended::Cancelled => args::EXIT_CANCELLED,
        Ended::StdoutClosed => args::EXIT_STDOUT_CLOSED,
    };
    Ok(ExitCode::from(code))
}

/// Signals are taken over only by commands that answer them: the others end as any program does.
async fn models_command(command: ModelsCommand) -> io::Result<Ended> {
    Ok(match command {
        ModelsCommand::List(args) => models::run(&args),
        ModelsCommand::Recommend(args) => recommend::run(&args).await,
        ModelsCommand::Probe(args) => probe::run(args, Interrupt::listen()?).await,
        ModelsCommand::Pull(args) => pull::run(args, Interrupt::listen()?).await,
        ModelsCommand::Import(args) => installed::import(&args, Interrupt::listen()?),
        ModelsCommand::Verify(args) => installed::verify(args, Interrupt::listen()?).await,
        ModelsCommand::Remove(args) => installed::remove(&args),
        ModelsCommand::Move(args) => installed::move_store(&args),
        ModelsCommand::Add(args) => installed::add(args),
        ModelsCommand::Connections(args) => connections::run(&args),
        ModelsCommand::Quantize(args) => quantize::run(args, Interrupt::listen()?).await,
    })
}

/// `--speakers 2` as `--speakers=2`: its number may be left out, so that a recording may follow it.
fn arguments(given: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    for argument in given {
        let is_number = argument.to_str().is_some_and(|text| text.parse::<u32>().is_ok());
        match arguments.last_mut() {
            Some(last) if is_number && last == "--speakers" => {
                last.push("=");
                last.push(argument);
            }
            _ => arguments.push(argument),
        }
    }
    arguments
}

/// Ends engines that programs which are gone have left behind, and says so.
fn sweep() {
    let orphans = supervisor::runs::Runs::of_this_user().map(|runs| runs.sweep()).unwrap_or_default();
    for orphan in orphans {
        Console::new(false).warning(&orphan.to_string());
    }
}
