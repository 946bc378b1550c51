//! What is done with models on this machine, without the network unless a
//! repair needs it.

use std::path::PathBuf;

use advisor::store::failure;
use clap::Args;
use hub::{Control, ModelLocation, Store, TransferProgress, UserEntry, Verified};
use serde::Serialize;
use wire::Failure;

use crate::console::Console;
use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::outputs::print;
use crate::pull::{self, Network, Shown};

/// Copy a model from this computer into the model folder
///
/// A folder in the Hugging Face layout or that of sentence-transformers, a safetensors or GGUF file with its config.json and tokenizer.json
/// next to it, or a ggml-*.bin of whisper.cpp. The model is checked first. Nothing in it is executed.
#[derive(Debug, Args)]
pub struct Import {
    #[arg(value_name = "FOLDER|FILE")]
    pub path: PathBuf,

    /// The name to install it under [default: its current name]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Check that installed models are unchanged
#[derive(Debug, Args)]
pub struct Verify {
    /// [default: all models that Steno downloaded, imported or made]
    #[arg(value_name = "NAME")]
    pub models: Vec<String>,

    /// Download damaged files again
    #[arg(long)]
    pub repair: bool,

    #[command(flatten)]
    pub network: Network,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Remove models that Steno downloaded, imported or made, complete or not
#[derive(Debug, Args)]
pub struct Remove {
    #[arg(required = true, value_name = "NAME")]
    pub models: Vec<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Move all models to another folder, for example on another disk
#[derive(Debug, Args)]
pub struct Move {
    #[arg(value_name = "FOLDER")]
    pub to: PathBuf,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Add a model to the catalogue
#[derive(Debug, Args)]
#[group(required = true, multiple = false, id = "place")]
pub struct AddPlace {
    /// Its repository on the hub
    #[arg(long, value_name = "OWNER/NAME")]
    pub repository: Option<String>,

    /// The address of a GGUF file or a whisper.cpp file
    #[arg(long, value_name = "ADDRESS")]
    pub url: Option<String>,

    /// Its folder or file on this computer, used without copying
    #[arg(long, value_name = "FOLDER|FILE")]
    pub path: Option<PathBuf>,
}

/// Add a model to the catalogue
#[derive(Debug, Args)]
pub struct Add {
    /// Its name
    #[arg(value_name = "NAME")]
    pub name: String,

    #[command(flatten)]
    pub place: AddPlace,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

fn done(result: Result<(), Ended>) -> Ended {
    result.map_or_else(|ended| ended, |()| Ended::Done)
}

fn tell(json: bool, value: &impl Serialize, lines: &[String]) -> Result<(), Ended> {
    print(|out| {
        if json {
            serde_json::to_writer_pretty(&mut *out, value)?;
            return writeln!(out);
        }
        lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    })
}

/// Runner that takes a while: a line of progress, and Ctrl-C ends it.
pub fn worked<T>(
    interrupt: Interrupt,
    work: impl FnOnce(&Control, &mut (dyn FnMut(String) + Send)) -> Result<T, hub::Error>,
) -> Result<T, Ended> {
    let control = Control::default();
    let cancelling = tokio::spawn({
        let (control, mut interrupt) = (control.clone(), interrupt);
        async move {
            interrupt.raised().await;
            control.cancel();
        }
    });
    let mut console = Console::new(false);
    let result = tokio::task::block_in_place(|| work(&control, &mut |line| console.redraw(&line)));
    cancelling.abort();
    result.map_err(|error| match error {
        hub::Error::Cancelled => Ended::Cancelled,
        error => Ended::Failed(failure(error)),
    })
}

pub fn import(args: &Import, interrupt: Interrupt) -> Ended {
    let import = || {
        let store = advisor::store::store()?;
        let model = worked(interrupt, |control, redraw| {
            let id = args.name.clone().unwrap_or_else(|| args.path.display().to_string());
            let mut on_progress = |progress: TransferProgress| redraw(pull::line(&id, &progress));
            hub::import(&store, &args.path, args.name.as_deref(), control, &mut on_progress)
        })?;
        let line = format!("{} is installed in {}", model.id, wire::shown(&model.folder));
        tell(args.json, &Shown::from(model), &[line])
    };
    done(import())
}

pub async fn verify(args: Verify, interrupt: Interrupt) -> Ended {
    done(verified(args, interrupt).await)
}

async fn verified(args: Verify, interrupt: Interrupt) -> Result<(), Ended> {
    let store = advisor::store::store()?;
    let names = match args.models.as_slice() {
        [] => store.list().map_err(failure)?.into_iter().map(|model| model.id).collect(),
        names => names.to_vec(),
    };
    let mut found: Vec<Verified> = Vec::new();
    for name in &names {
        found.push(worked(interrupt.clone(), |control, redraw| {
            let mut on_bytes = |read: u64, total: u64| {
                redraw(format!("{name}: {} of {} MB read", read / 1_000_000, total / 1_000_000));
            };
            hub::verify(&store, name, control, &mut on_bytes)
        })?);
    }
    let mut still = 0;
    let mut console = Console::new(false);
    for model in found.iter_mut().filter(|model| !model.damaged.is_empty()) {
        if !args.repair {
            still += 1;
            continue;
        }
        let wanted = advisor::store::wanted(&store, &model.id).map_err(failure)?;
        pull::get(&wanted, &args.network, &mut console, interrupt.clone()).await?;
        model.damaged.clear();
        console.info(&format!("{} was repaired.", model.id));
    }
    if found.is_empty() && !args.json {
        console.info(
            "No models are installed that Steno downloaded, imported or made: there is nothing to verify.",
        );
    }
    let lines: Vec<String> = found.iter().flat_map(lines).collect();
    tell(args.json, &found, &lines)?;
    if still == 0 { Ok(()) } else { Err(Ended::SomeFailed) }
}

fn lines(model: &Verified) -> Vec<String> {
    if model.damaged.is_empty() {
        return vec![format!("{}: unchanged ({} MB)", model.id, model.bytes / 1_000_000)];
    }
    let damaged = model.damaged.iter().map(|(file, problem)| format!("{}: {file}: {problem}", model.id));
    let repair = format!("{}: `steno models verify --repair {}` repairs it", model.id, model.id);
    damaged.chain([repair]).collect()
}

pub fn remove(args: &Remove) -> Ended {
    let remove = || {
        let store = advisor::store::store()?;
        let mut removed = Vec::new();
        for name in &args.models {
            match advisor::store::remove(&store, name) {
                Ok(model) => removed.extend(model.map(Shown::from)),
                Err(hub::Error::UnknownModel { .. }) => return Err(Ended::Failed(not_ours(&store, name))),
                Err(error) => return Err(failure(error).into()),
            }
        }
        let line = |it: &Shown| format!("{} was removed ({} MB)", it.model.id, it.model.bytes / 1_000_000);
        tell(args.json, &removed, &removed.iter().map(line).collect::<Vec<_>>())
    };
    done(remove())
}

/// A model that was put there by hand or by another program, or no model at all.
fn not_ours(store: &Store, name: &str) -> Failure {
    match advisor::find_model(Some(name)) {
        Ok(model) => {
            let message = "Steno did not download, import or make this model, so it leaves it alone.";
            let remedy = if model.path.parent() == Some(store.folder()) {
                "Delete its folder to remove it."
            } else {
                "Remove it with the program that installed it."
            };
            Failure::new(wire::ErrorCode::ModelNotFound, message).file(model.path).remedy(remedy)
        }
        // Whether it could be downloaded is no concern of who removes it.
        Err(failure) if failure.code == wire::ErrorCode::ModelNotFound => {
            failure.remedy("`steno models` lists the installed models.")
        }
        Err(failure) => failure,
    }
}

pub fn move_store(args: &Move) -> Ended {
    let move_store = || {
        let mut console = Console::new(false);
        let store = tokio::task::block_in_place(|| {
            advisor::store::move_store(&args.to, &mut |id| console.redraw(&format!("moving {id}")))
        })?;
        let moved = store.list().map_err(failure)?.into_iter().map(Shown::from).collect::<Vec<_>>();
        let line = format!("models moved to {}: {}", wire::shown(store.folder()), moved.len());
        tell(args.json, &moved, &[line])
    };
    done(move_store())
}

pub fn add(args: Add) -> Ended {
    let add = || {
        let store = advisor::store::store()?;
        let AddPlace { repository, url, path } = args.place;
        let place = match (repository, url, path) {
            (Some(repository), ..) => ModelLocation::Repository(repository),
            (_, Some(url), _) => ModelLocation::Url(url),
            (.., Some(path)) => {
                let path =
                    path.canonicalize().map_err(|error| failure(hub::Error::Io { path, source: error }))?;
                hub::inspect(&path).map_err(failure)?;
                ModelLocation::Path(path)
            }
            (None, None, None) => return Err(Ended::Usage("say where the model is".into())),
        };
        let entry = UserEntry { id: args.name, place };
        entry.clone().save(store.folder()).map_err(failure)?;
        tell(args.json, &entry, &[format!("{} was added to the catalogue", entry.id)])
    };
    done(add())
}
