//! Which models there are and where.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use wire::{ErrorCode, Failure};

use crate::platform;

/// Used where no model is named: it ships with the program.
pub const DEFAULT_MODEL: &str = "starter-whisper";

/// In a model's folder, optional: what a user should know of it.
const MARKER: &str = "steno-model.json";

/// What makes a folder a model's.
const CONFIG: &str = "config.json";

/// A model on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRef {
    pub name: String,
    /// Its folder, or the one file that it consists of.
    pub path: PathBuf,
    /// Its text is not to be relied on and must say so wherever it goes.
    pub demonstration: bool,
    /// A sentence for whoever chooses a model.
    pub note: Option<String>,
}

/// The model of that name, or at that path; without either the default one.
///
/// Names are looked for in `STENO_MODELS`, the user's data folder, beside the
/// executable, in the package's folder, and in the source checkout that the
/// executable was built in. Fails with `ModelNotFound`, naming the models that
/// there are, or `ModelInvalid` for a folder without a model.
pub fn find_model(name_or_path: Option<&str>) -> Result<ModelRef, Failure> {
    Places::of_this_process().find(name_or_path)
}

/// Every model that [`find_model`] knows by name, sorted by it.
pub fn list_models() -> Vec<ModelRef> {
    Places::of_this_process().list()
}

/// The model at a path, which may hold any bytes.
pub fn model_at(path: &Path) -> Result<ModelRef, Failure> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Err(Failure::new(ErrorCode::ModelNotFound, "There is no such model folder or file.")
            .file(path)
            .remedy("`steno models` lists the installed ones."));
    };
    if metadata.is_dir() && !path.join(CONFIG).is_file() {
        return Err(Failure::new(
            ErrorCode::ModelInvalid,
            format!("This folder holds no model: it has no {CONFIG}."),
        )
        .file(path)
        .remedy("Give the folder that the model's files lie in."));
    }
    Ok(describe(path))
}

/// Where models are looked for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `STENO_MODELS`: a list of folders.
    pub chosen: Option<OsString>,
    /// As `~/.local/share`.
    pub data_folder: Option<PathBuf>,
    pub executable: Option<PathBuf>,
    /// Folders to look in last.
    pub package_folders: Vec<PathBuf>,
}

impl Places {
    pub fn of_this_process() -> Self {
        let package = ["/usr/share/steno/models", "/usr/lib/steno/models"];
        Self {
            chosen: std::env::var_os("STENO_MODELS").filter(|value| !value.is_empty()),
            data_folder: platform::data_folder(),
            executable: std::env::current_exe().ok(),
            package_folders: package.into_iter().filter(|_| cfg!(unix)).map(PathBuf::from).collect(),
        }
    }

    pub fn find(&self, name_or_path: Option<&str>) -> Result<ModelRef, Failure> {
        let wanted = name_or_path.unwrap_or(DEFAULT_MODEL);
        let path = Path::new(wanted);
        let is_name = path.components().count() == 1 && path.file_name().is_some_and(|name| name == wanted);
        if is_name {
            if let Some(model) = self.candidates(wanted).find(|path| path.join(CONFIG).is_file()) {
                return Ok(describe(&model));
            }
            if !path.exists() {
                return Err(self.not_found(wanted));
            }
        }
        model_at(path)
    }

    pub fn list(&self) -> Vec<ModelRef> {
        let mut names = BTreeSet::new();
        for folder in self.folders() {
            let Ok(entries) = std::fs::read_dir(folder) else { continue };
            names.extend(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()));
        }
        // By the same way as they are found, so that what is listed is what
        // the name stands for.
        let found = |name: &String| self.candidates(name).find(|path| path.join(CONFIG).is_file());
        names.iter().filter_map(found).map(|path| describe(&path)).collect()
    }

    /// In the order in which they are looked through.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        folders.extend(self.chosen.iter().flat_map(std::env::split_paths));
        folders.extend(self.data_folder.iter().map(|data| data.join("steno/models")));
        if let Some(beside) = self.executable.as_deref().and_then(Path::parent) {
            folders.push(beside.join("models"));
            if let Some(prefix) = beside.parent() {
                folders.push(prefix.join("share/steno/models"));
                folders.push(prefix.join("lib/steno/models"));
            }
            // `target/debug/deps` is three levels down; a `models` folder
            // without the workspace's manifest beside it is somebody else's.
            let checkout = beside.ancestors().take(4).find(|folder| folder.join("Cargo.lock").is_file());
            folders.extend(checkout.map(|folder| folder.join("models")));
        }
        folders.extend(self.package_folders.iter().cloned());
        let mut seen = BTreeSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    fn candidates(&self, name: &str) -> impl Iterator<Item = PathBuf> {
        self.folders().into_iter().map(move |folder| folder.join(name))
    }

    fn not_found(&self, wanted: &str) -> Failure {
        let names: Vec<String> = self.list().into_iter().map(|model| model.name).collect();
        let (there_are, remedy) = if names.is_empty() {
            let folders: Vec<String> = self.folders().iter().map(|path| path.display().to_string()).collect();
            (
                format!("No model is installed; looked in {}.", folders.join(", ")),
                "Give a model's folder, or set STENO_MODELS to the folder that the models' folders lie in.",
            )
        } else {
            (format!("There are: {}.", names.join(", ")), "Choose one of them, or give a model's folder.")
        };
        let message = format!("There is no model named \"{wanted}\". {there_are}");
        Failure::new(ErrorCode::ModelNotFound, message).remedy(remedy)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marker {
    name: Option<String>,
    demonstration: bool,
    note: Option<String>,
}

/// A marker that can't be read counts as none: it must not keep anybody from
/// using a model.
fn describe(path: &Path) -> ModelRef {
    let text = std::fs::read(path.join(MARKER)).unwrap_or_default();
    let marker: Marker = serde_json::from_slice(&text).unwrap_or_default();
    // Of `.` and `..` the folder that they stand for.
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let own_name = path.file_name().or_else(|| real.file_name());
    let name = match (&marker.name, own_name) {
        (Some(name), _) if marker.demonstration => name.clone(),
        (_, Some(name)) => name.to_string_lossy().into_owned(),
        (_, None) => path.display().to_string(),
    };
    ModelRef { name, path: path.to_path_buf(), demonstration: marker.demonstration, note: marker.note }
}
