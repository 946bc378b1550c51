use std::ffi::OsStr;
use std::path::Path;

use api::ModelRef;
use serde::Serialize;
use wire::{Failure, FilePath};

use crate::args::Models;
use crate::console::Console;
use crate::ended::Ended;
use crate::outputs::print;

/// A model as programs read it, from `steno models` and `steno doctor`.
#[derive(Debug, Serialize)]
pub struct Listed {
    name: String,
    path: FilePath,
    /// Knows only synthetic test sentences.
    demonstration: bool,
    /// A sentence for whoever chooses.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

/// The model that `--model` names; a path may hold any bytes.
pub fn chosen(model: Option<&OsStr>) -> Result<ModelRef, Failure> {
    match model.map(|model| (model, model.to_str())) {
        None => api::find_model(None),
        Some((_, Some(name))) => api::find_model(Some(name)),
        Some((path, None)) => api::models::model_at(Path::new(path)),
    }
}

pub fn listed() -> Vec<Listed> {
    api::list_models()
        .into_iter()
        .map(|model| Listed {
            name: model.name,
            path: model.path.into(),
            demonstration: model.demonstration,
            note: model.note,
        })
        .collect()
}

/// One line per model: its name, a mark, where it is.
pub fn lines(models: &[Listed]) -> Vec<String> {
    let width = models.iter().map(|model| model.name.chars().count()).max().unwrap_or(0);
    models
        .iter()
        .map(|model| {
            let mark = if model.demonstration { "  (demonstration only)" } else { "" };
            let note = model.note.as_ref().map(|note| format!("\n{:width$}  {note}", "")).unwrap_or_default();
            format!("{:width$}  {}{mark}{note}", model.name, model.path)
        })
        .collect()
}

pub fn run(args: &Models) -> Ended {
    let models = listed();
    let printed = print(|out| {
        if args.json {
            serde_json::to_writer_pretty(&mut *out, &models)?;
            return writeln!(out);
        }
        lines(&models).iter().try_for_each(|line| writeln!(out, "{line}"))
    });
    if models.is_empty() && !args.json {
        Console::new(false).info("No models are installed. Use --model FOLDER to name one by its folder.");
    }
    printed.map_or_else(|ended| ended, |()| Ended::Done)
}
