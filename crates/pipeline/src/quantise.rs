use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use wire::{ErrorCode, Event, Failure, Quantise};

use crate::Control;
use crate::error::model_failure;

/// The weights' file in the new folder.
const WEIGHTS: &str = "model.gguf";
const CONFIG: &str = "config.json";
const MARKER: &str = "steno-model.json";
/// What the files of an installed model must be: not those of its copy.
const MANIFEST: &str = "steno-files.json";
/// Beside the weights of a model lie texts, the vocabulary the longest of them.
const MOST_COPIED: u64 = 64 << 20;

/// Makes the folder `asked.output`: the model's weights in another format, and
/// beside them everything else that lay in its folder. The new folder appears
/// when it is whole.
pub fn quantise(asked: &Quantise, control: &Control) -> Result<Event, Failure> {
    let (model, output) = (asked.model.as_path(), asked.output.as_path());
    if output.symlink_metadata().is_ok() {
        return Err(Failure::new(ErrorCode::OutputExists, "This folder already exists.")
            .file(asked.output.clone())
            .remedy("Remove it, or choose another folder."));
    }
    if !model.join(CONFIG).is_file() {
        let text = format!("Only a model in a folder with its {CONFIG} can be converted.");
        return Err(Failure::new(ErrorCode::ModelInvalid, text).file(asked.model.clone()));
    }
    let mut partial = output.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let result = make(asked, &partial, control);
    if result.is_err() {
        // What can't be removed was perhaps never made; the first error counts.
        let _ = fs::remove_dir_all(&partial);
    }
    result
}

fn make(asked: &Quantise, partial: &Path, control: &Control) -> Result<Event, Failure> {
    let unwritable = |error: io::Error| {
        let code = if error.kind() == io::ErrorKind::StorageFull {
            ErrorCode::DiskFull
        } else {
            ErrorCode::OutputUnwritable
        };
        Failure::new(code, format!("The folder can't be written: {error}.")).file(asked.output.clone())
    };
    // Of an attempt that was killed.
    if partial.exists() {
        fs::remove_dir_all(partial).map_err(unwritable)?;
    }
    fs::create_dir_all(partial).map_err(unwritable)?;
    let file = partial.join(WEIGHTS);
    let tick = || {
        control.worked();
        !control.is_cancelled()
    };
    let kept =
        models::quantise(asked.model.as_path(), asked.precision, &file, &tick).map_err(
            |error| match error {
                models::Error::Write { source, .. } => unwritable(source),
                other => model_failure(&other, &asked.model),
            },
        )?;
    let size = fs::metadata(&file).map_err(unwritable)?.len();
    copy_texts(asked, partial).map_err(unwritable)?;
    fs::rename(partial, asked.output.as_path()).map_err(unwritable)?;
    let kept = kept.into_iter().map(|kept| (kept.tensor, kept.precision)).collect();
    Ok(Event::Quantised { size, kept })
}

fn copy_texts(asked: &Quantise, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(asked.model.as_path())? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        let metadata = fs::metadata(&path)?;
        let is_text = metadata.is_file() && !is_weights(&path) && metadata.len() <= MOST_COPIED;
        if !is_text || name == MANIFEST {
            continue;
        }
        let copy = to.join(&name);
        if name == MARKER {
            fs::write(copy, renamed(&fs::read(&path)?, asked.precision.as_str()))?;
        } else {
            fs::copy(&path, copy)?;
        }
    }
    Ok(())
}

/// In any of the forms in which models are found, with the lists of shards.
fn is_weights(path: &Path) -> bool {
    let weights = ["safetensors", "gguf", "bin", "pt", "h5", "msgpack", "onnx", "partial"];
    path.extension().and_then(OsStr::to_str).is_some_and(|ending| weights.contains(&ending))
        || path.to_string_lossy().ends_with(".index.json")
}

/// The marker, its name with the format behind it: two models of one name
/// could not be told apart. Another program's file is left as it is.
fn renamed(marker: &[u8], precision: &str) -> Vec<u8> {
    let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(marker) else { return marker.to_vec() };
    if let Some(serde_json::Value::String(name)) = value.get_mut("name") {
        name.push('-');
        name.push_str(precision);
    }
    serde_json::to_vec_pretty(&value).unwrap_or_else(|_| marker.to_vec())
}
