use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::PathBuf;

use advisor::models::Places;
use clap::Args;
use memory::Precision;
use memory::bytes::human;
use serde::Serialize;
use wire::{ErrorCode, Event, Failure, FilePath};

use crate::args::{Machine, Process};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::{models, own_engine};

/// Make a smaller copy of an installed model with quantized weights
#[derive(Debug, Args)]
pub struct Quantize {
    /// The model to copy; it is not changed
    #[arg(value_name = "NAME|FOLDER")]
    pub model: OsString,

    /// The format of the weights: q8_0 (a quarter of f32, almost lossless), q6_k, q5_1, q5_0, q4_k, q4_0, f16
    #[arg(long, value_name = "FORMAT", default_value = "q8_0")]
    pub to: Precision,

    /// The folder to create [default: NAME-FORMAT in the model folder]
    #[arg(long, value_name = "FOLDER")]
    pub output: Option<PathBuf>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub process: Process,
}

/// What was made.
#[derive(Debug, Serialize)]
struct Made {
    model: FilePath,
    precision: Precision,
    /// Of the weights.
    bytes: u64,
    /// Tensors in another format, whose rows don't fit blocks of the one asked for.
    kept: Vec<(String, Precision)>,
}

pub async fn run(args: Quantize, interrupt: Interrupt) -> Ended {
    quantize(args, interrupt).await.map_or_else(|ended| ended, |()| Ended::Done)
}

async fn quantize(args: Quantize, mut interrupt: Interrupt) -> Result<(), Ended> {
    let model = models::named(&args.model)?;
    let output = match args.output {
        Some(folder) => folder,
        None => installed(&format!("{}-{}", model.name, args.to))?,
    };
    let mut console = Console::new(false);
    let machine = Machine { device: Some("auto".into()), threads: None, process: args.process };
    let (engine, _lease) = own_engine::start(&machine, &mut console, &mut interrupt).await?;
    let handle = engine.quantise(&model.path, args.to, &output);
    let ended = own_engine::follow(handle, &mut interrupt, |event| match event {
        Event::Quantised { size, kept, .. } => ControlFlow::Break(Ok((size, kept))),
        _ => ControlFlow::Continue(()),
    });
    let ended = ended.await;
    engine.shutdown().await;
    let (bytes, kept) = ended?;
    tell(&Made { model: output.into(), precision: args.to, bytes, kept }, args.json)
}

/// Where a model of that name is looked for first of all places of the user's own.
fn installed(name: &str) -> Result<PathBuf, Failure> {
    let data = Places::of_this_process().data_folder.ok_or_else(|| {
        Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep models in.")
            .remedy("Name a folder with --output.")
    })?;
    Ok(data.join("steno/models").join(name))
}

fn tell(made: &Made, json: bool) -> Result<(), Ended> {
    print(|out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, made)?;
            return writeln!(out);
        }
        writeln!(out, "{}: {} of weights in {}", made.model, human(made.bytes), made.precision)?;
        made.kept.iter().try_for_each(|(tensor, precision)| {
            writeln!(out, "  {tensor} in {precision}: its rows don't fill blocks of {}", made.precision)
        })
    })
}
