use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use advisor::store::failure;
use clap::Args;
use hub::{Making, Origin, Store};
use memory::Precision;
use memory::bytes::human;
use serde::Serialize;
use wire::{Event, Failure, FilePath};

use crate::args::{Machine, Process};
use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::{installed, models, own_engine};

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
    let store = advisor::store::store()?;
    let in_store = |name: &str| store.make(name).map(Place::Store).map_err(not_made);
    let place = match args.output {
        None => in_store(&format!("{}-{}", model.name, args.to))?,
        Some(folder) => match name_in(&store, &folder) {
            Some(name) => in_store(&name)?,
            None => Place::Elsewhere(folder),
        },
    };
    let mut console = Console::new(false);
    let machine = Machine { device: Some("auto".into()), threads: None, process: args.process };
    let (engine, _lease) = own_engine::start(&machine, &mut console, &mut interrupt).await?;
    let handle = engine.quantise(&model.path, args.to, place.folder());
    let ended = own_engine::follow(handle, &mut interrupt, |event| match event {
        Event::Quantised { size, kept, .. } => ControlFlow::Break(Ok((size, kept))),
        _ => ControlFlow::Continue(()),
    });
    let ended = ended.await;
    engine.shutdown().await;
    let (bytes, kept) = ended?;
    let output = match place {
        Place::Store(making) => {
            let origin = Origin::Copy { model: model.name, precision: args.to.to_string() };
            installed::worked(interrupt, |control, _| making.install(origin, control))?.folder
        }
        Place::Elsewhere(folder) => folder,
    };
    tell(&Made { model: output.into(), precision: args.to, bytes, kept }, args.json)
}

/// Where a copy is made.
enum Place<'a> {
    /// It becomes a model of the store, which verifies, moves and removes it.
    Store(Making<'a>),
    /// A folder of the user's, whose files are the user's to look after.
    Elsewhere(PathBuf),
}

impl Place<'_> {
    fn folder(&self) -> &Path {
        match self {
            Self::Store(making) => making.folder(),
            Self::Elsewhere(folder) => folder,
        }
    }
}

/// The name of the model that `folder` is in the store; `None` for a folder elsewhere.
fn name_in(store: &Store, folder: &Path) -> Option<String> {
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_there = parent.canonicalize().ok()? == store.folder().canonicalize().ok()?;
    folder.file_name().filter(|_| is_there)?.to_str().map(str::to_owned)
}

fn not_made(error: hub::Error) -> Failure {
    let remedy = match &error {
        hub::Error::Exists { id, .. } => {
            format!("Choose another folder with --output, or remove it first: `steno models remove {id}`.")
        }
        _ => return failure(error),
    };
    failure(error).remedy(remedy)
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
