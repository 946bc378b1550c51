use std::ffi::OsStr;
use std::path::Path;

use advisor::ModelRef;
use clap::Args;
use config::Preferences;
use hub::{Catalogue, KnownModel, StoredState};
use serde::Serialize;
use transcript::Task;
use wire::{Failure, FilePath};

use crate::console::Console;
use crate::ended::Ended;
use crate::outputs::print;

/// List the installed models
#[derive(Debug, Args)]
pub struct List {
    /// Also list models that can be downloaded
    #[arg(long)]
    pub all: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// A model as programs read it, from `steno models` and `steno doctor`.
#[derive(Debug, Serialize)]
pub struct Listed {
    name: String,
    /// Where it lies, or where the downloaded part lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<FilePath>,
    /// Knows only synthetic test sentences.
    demonstration: bool,
    #[serde(flatten)]
    state: Shown,
    /// On disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// What the catalogue says of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    catalogue: Option<KnownModel>,
    /// A sentence about when to choose it.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Shown {
    Stored(StoredState),
    Other { state: &'static str },
}

const READY: Shown = Shown::Other { state: "ready" };
const AVAILABLE: Shown = Shown::Other { state: "available" };

/// The model that `--model` names; a path may hold any bytes.
pub fn named(model: &OsStr) -> Result<ModelRef, Failure> {
    match model.to_str() {
        Some(name) => advisor::find_model(Some(name)),
        None => advisor::models::model_at(Path::new(model)),
    }
}

/// The model that `--model` names, else the one that the window would take.
pub fn chosen(
    model: Option<&OsStr>,
    language: Option<&str>,
    task: Task,
    preferences: &Preferences,
) -> Result<ModelRef, Failure> {
    match model {
        Some(model) => named(model),
        None => advisor::choice::preferred(&advisor::list_models(), language, task, preferences)
            .map_or_else(|| advisor::find_model(None), Ok),
    }
}

pub fn listed() -> Vec<Listed> {
    let speakers = advisor::list_speaker_models().into_iter().map(|model| ModelRef {
        note: model.note.or_else(|| Some("Identifies speakers: use it with --speaker-model.".into())),
        ..model
    });
    let search = advisor::list_embedding_models().into_iter().map(|model| ModelRef {
        note: model.note.or_else(|| Some("Finds transcripts by their meaning: `steno search`.".into())),
        ..model
    });
    let found = advisor::list_models().into_iter().chain(speakers).chain(search).map(|model| Listed {
        name: model.name,
        bytes: Some(hub::disk_use(&model.path)),
        path: Some(model.path.into()),
        demonstration: model.demonstration,
        state: READY,
        catalogue: None,
        note: model.note,
    });
    let mut models: Vec<Listed> = found.collect();
    // Those that can't be used: interrupted and damaged ones. A store that
    // can't be read has said so when its models were looked for.
    let stored = advisor::store::store().ok().and_then(|store| store.list().ok()).unwrap_or_default();
    for model in stored.into_iter().filter(|model| model.state != StoredState::Ready) {
        models.push(Listed {
            name: model.id,
            bytes: Some(model.bytes),
            path: Some(model.folder.into()),
            demonstration: false,
            state: Shown::Stored(model.state),
            catalogue: None,
            note: None,
        });
    }
    models
}

/// What the catalogue has besides.
fn available(installed: &[Listed]) -> Result<Vec<Listed>, Failure> {
    let catalogue = match advisor::store::store() {
        Ok(store) => Catalogue::with_own(store.folder()),
        Err(_) => Catalogue::public(),
    };
    let entries = catalogue.map_err(advisor::store::failure)?.models.into_iter();
    let others = entries.filter(|entry| !installed.iter().any(|model| model.name == entry.id));
    Ok(others
        .map(|entry| Listed {
            name: entry.id.clone(),
            bytes: None,
            path: None,
            demonstration: false,
            state: AVAILABLE,
            note: entry.note.clone(),
            catalogue: Some(entry),
        })
        .collect())
}

/// One line per model: its name, where it is or what it is, a mark.
pub fn lines(models: &[Listed]) -> Vec<String> {
    let width = models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
    models
        .iter()
        .map(|model| {
            let mark = if model.demonstration { "  (demonstration only)" } else { "" };
            let note = model.note.as_ref().map(|note| format!("\n{:width$}  {note}", "")).unwrap_or_default();
            format!("{:width$}  {}{mark}{note}", model.name, model.what())
        })
        .collect()
}

impl Listed {
    fn what(&self) -> String {
        let path = || self.path.as_ref().map(ToString::to_string).unwrap_or_default();
        let megabytes = |bytes: u64| format!("{:.0} MB", bytes as f64 / 1e6);
        let name = &self.name;
        match (&self.state, &self.catalogue) {
            (Shown::Stored(StoredState::Interrupted { done, total }), _) => {
                let of = total.map(|total| format!(" of {}", megabytes(total))).unwrap_or_default();
                format!("interrupted at {}{of}: `steno models pull {name}` resumes", megabytes(*done))
            }
            (Shown::Stored(StoredState::Damaged { files }), _) => {
                let files = files.join(", ");
                format!("damaged ({files}): `steno models verify --repair {name}`")
            }
            (_, Some(entry)) => {
                let size = entry.approx_megabytes.map(|size| format!("{size} MB"));
                let languages = entry.languages.as_ref().map(|text| format!("languages {text}"));
                let parts = [size, languages, entry.licence.clone()];
                format!("to download: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
            }
            _ => {
                let size = self.bytes.map(|bytes| format!("  {}", megabytes(bytes)));
                path() + &size.unwrap_or_default()
            }
        }
    }
}

pub fn run(args: &List) -> Ended {
    let mut models = listed();
    if args.all {
        match available(&models) {
            Ok(others) => models.extend(others),
            Err(failure) => return failure.into(),
        }
    }
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &models)?;
            return writeln!(out);
        }
        lines(&models).iter().try_for_each(|line| writeln!(out, "{line}"))
    });
    if models.is_empty() && !args.json {
        Console::new(false).info(
            "No models are installed. Download one with `steno models pull NAME`; `steno models list --all` lists \
             them. --model FOLDER uses a model in any folder.",
        );
    }
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}
