//! Which models there are and where.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use formats::{ModelFiles, SpeakerModel, TextEmbeddingModel};
use hub::{Cache, Catalogue, KnownModel, Manifest, ModelKind, Store};
use serde::Deserialize;
use wire::{ErrorCode, Failure};

use crate::store;
use config::folders;

/// Used where no other is installed: it ships with the program.
pub const DEFAULT_MODEL: &str = "starter-whisper";

/// In a model's folder, optional: what a user should know of it.
const MARKER: &str = "steno-model.json";

/// What makes a folder a model's.
const CONFIG: &str = "config.json";

/// A model on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelRef {
    /// By which it is chosen.
    pub name: String,
    /// Its folder, or the one file that it consists of.
    pub path: PathBuf,
    /// Its text is not to be relied on and must say so wherever it goes.
    pub demonstration: bool,
    /// A sentence for the user who chooses a model.
    pub note: Option<String>,
}

/// The model of that name, or at that path; without either the default one.
///
/// Names are looked for in `STENO_MODELS`, the store, the user's data folder,
/// beside the executable, in the package's folder, in the source checkout that
/// the executable was built in, and at last among the models that other
/// programs got from the hub. Fails with `ModelNotFound`, naming the models that
/// there are, or `ModelInvalid` for a folder without a model.
///
/// # Errors
/// `ModelNotFound`, naming the models that there are; `ModelInvalid` for a
/// folder without a model; `ModelCorrupt` for a model of the store that is not
/// whole.
pub fn find_model(name_or_path: Option<&str>) -> Result<ModelRef, Failure> {
    Places::of_this_process().find(name_or_path)
}

/// Every model that [`find_model`] knows by name, sorted by it.
pub fn list_models() -> Vec<ModelRef> {
    Places::of_this_process().list()
}

/// The model of that name, or at that path, that tells speakers apart. Names are looked
/// for where those of speech models are.
///
/// # Errors
/// `ModelNotFound`, naming the models that there are; `ModelInvalid` for a folder without
/// such a model; `ModelCorrupt` for a model of the store that is not whole.
pub fn find_speaker_model(name_or_path: &str) -> Result<ModelRef, Failure> {
    Places::of_this_process().find_speakers(name_or_path)
}

/// Every model that [`find_speaker_model`] knows by name, sorted by it.
pub fn list_speaker_models() -> Vec<ModelRef> {
    Places::of_this_process().list_speakers()
}

/// The model at a path, which may hold any bytes.
///
/// # Errors
/// As [`find_model`].
pub fn model_at(path: &Path) -> Result<ModelRef, Failure> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Err(Failure::new(ErrorCode::ModelNotFound, "There is no such model folder or file.")
            .file(path)
            .remedy("`steno models` lists the installed models."));
    };
    if metadata.is_dir() && !is_model(path) {
        return Err(Failure::new(
            ErrorCode::ModelInvalid,
            format!("This folder contains no model: it has no {CONFIG}."),
        )
        .file(path)
        .remedy("Choose the folder that contains the model's files."));
    }
    whole(path)?;
    Ok(describe(path))
}

/// A folder in the Hugging Face layout, or with one GGUF file or one of
/// whisper.cpp, or such a file.
fn is_model(path: &Path) -> bool {
    !is_speaker_model(path) && !is_embedding_model(path) && is_speech_model(path)
}

/// A folder of a network that turns texts into vectors, whole or not.
fn is_embedding_model(path: &Path) -> bool {
    !matches!(TextEmbeddingModel::find(path), Ok(None))
}

/// A folder of networks that tell speakers apart, whole or not.
fn is_speaker_model(path: &Path) -> bool {
    !matches!(SpeakerModel::find(path), Ok(None))
}

fn is_speech_model(path: &Path) -> bool {
    path.join(CONFIG).is_file() || path.join(hub::MANIFEST).is_file() || ModelFiles::find(path).is_ok()
}

/// Fails with `ModelInvalid` for a model of the store that is not whole.
fn whole(path: &Path) -> Result<(), Failure> {
    let manifest = Manifest::read(path).map_err(store::failure)?;
    let Some(manifest) = manifest.filter(|manifest| manifest.is_at(path)) else { return Ok(()) };
    let missing = manifest.missing(path);
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("This model is damaged: {} is not what it was.", missing.join(", "));
    let remedy = format!("Repair it: `steno models verify --repair {}`.", manifest.id);
    Err(Failure::new(ErrorCode::ModelCorrupt, message).file(path).remedy(remedy))
}

/// Where models are looked for.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `STENO_MODELS`: a list of folders.
    pub chosen: Option<OsString>,
    /// As `~/.local/share`.
    pub data_folder: Option<PathBuf>,
    /// Of this process: models may lie beside it.
    pub executable: Option<PathBuf>,
    /// Folders to look in last.
    pub package_folders: Vec<PathBuf>,
    /// What other programs got from the hub: used where it lies.
    pub cache: Option<Cache>,
}

impl Places {
    /// As this process's environment and executable say.
    pub fn of_this_process() -> Self {
        let package = ["/usr/share/steno/models", "/usr/lib/steno/models"];
        Self {
            chosen: std::env::var_os("STENO_MODELS").filter(|value| !value.is_empty()),
            data_folder: folders::data(),
            executable: std::env::current_exe().ok(),
            package_folders: package.into_iter().filter(|_| cfg!(unix)).map(PathBuf::from).collect(),
            cache: store::cache(),
        }
    }

    /// As [`find_model`].
    ///
    /// # Errors
    /// As [`find_model`].
    pub fn find(&self, name_or_path: Option<&str>) -> Result<ModelRef, Failure> {
        let wanted = name_or_path.unwrap_or(DEFAULT_MODEL);
        let path = Path::new(wanted);
        let is_name = path.components().count() == 1 && path.file_name().is_some_and(|name| name == wanted);
        if is_name {
            if let Some((_, model)) = self.candidates().find(|(name, path)| name == wanted && is_model(path))
            {
                whole(&model)?;
                return Ok(named(wanted.to_owned(), &model));
            }
            if !path.exists() {
                return Err(self.not_found(wanted));
            }
        }
        model_at(path)
    }

    /// As [`find_speaker_model`].
    ///
    /// # Errors
    /// As [`find_speaker_model`].
    pub fn find_speakers(&self, wanted: &str) -> Result<ModelRef, Failure> {
        let mut named_so = self.candidates().filter(|(name, path)| name == wanted && is_speaker_model(path));
        let path = named_so.next().map_or_else(|| PathBuf::from(wanted), |(_, path)| path);
        if !path.exists() {
            let names: Vec<String> = self.list_speakers().into_iter().map(|model| model.name).collect();
            let there_are = if names.is_empty() {
                "None is installed besides the built-in one.".to_owned()
            } else {
                format!("There are: {}.", names.join(", "))
            };
            let message = format!("There is no speaker model named \"{wanted}\". {there_are}");
            return Err(Failure::new(ErrorCode::ModelNotFound, message)
                .remedy("Download one with `steno models pull community-1`, or use \"built-in\"."));
        }
        whole(&path)?;
        if !matches!(SpeakerModel::find(&path), Ok(Some(_))) {
            let message = "This folder contains no speaker model.";
            return Err(Failure::new(ErrorCode::ModelInvalid, message).file(path.as_path()).remedy(
                "Choose a folder that contains segmentation, embedding and plda, as community-1 does, or the files of nemotron-3-diarization.",
            ));
        }
        whole(&path)?;
        Ok(describe(&path))
    }

    /// As [`list_speaker_models`]. Damaged ones are left out.
    pub fn list_speakers(&self) -> Vec<ModelRef> {
        let is_whole = |path: &Path| matches!(SpeakerModel::find(path), Ok(Some(_))) && whole(path).is_ok();
        self.list_of(&is_whole)
    }

    /// As [`list_embedding_models`](crate::list_embedding_models). Damaged ones are left out.
    pub fn list_embedding(&self) -> Vec<ModelRef> {
        let is_whole = |path: &Path| {
            matches!(TextEmbeddingModel::find(path), Ok(Some(model)) if model.check().is_ok())
                && whole(path).is_ok()
        };
        self.list_of(&is_whole)
    }

    /// Damaged ones are left out.
    pub fn list(&self) -> Vec<ModelRef> {
        self.list_of(&|path| is_model(path) && whole(path).is_ok())
    }

    fn list_of(&self, is_one: &dyn Fn(&Path) -> bool) -> Vec<ModelRef> {
        let mut seen = BTreeSet::new();
        // The first of a name is what the name stands for.
        let mut models: Vec<ModelRef> = self
            .candidates()
            .filter(|(name, path)| is_one(path) && seen.insert(name.clone()))
            .map(|(name, path)| named(name, &path))
            .collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        models
    }

    /// Where downloads and imports go: the first folder of `STENO_MODELS`, else
    /// where the store was moved to, else the user's data folder.
    pub fn store_folder(&self) -> Option<PathBuf> {
        let chosen = self.chosen.iter().flat_map(std::env::split_paths).next();
        let usual = || {
            let data = self.data_folder.as_deref()?;
            store::moved_to(data).or_else(|| Some(data.join("steno/models")))
        };
        chosen.or_else(usual)
    }

    /// In the order in which they are looked through.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = Vec::new();
        folders.extend(self.chosen.iter().flat_map(std::env::split_paths));
        folders.extend(self.data_folder.as_deref().and_then(store::moved_to));
        folders.extend(self.data_folder.iter().map(|data| data.join("steno/models")));
        if let Some(beside) = self.executable.as_deref().and_then(Path::parent) {
            folders.push(beside.join("models"));
            if let Some(prefix) = beside.parent() {
                folders.push(prefix.join("share/steno/models"));
                folders.push(prefix.join("lib/steno/models"));
            }
            // `target/debug/deps` is three levels down; a `models` folder
            // without the workspace's manifest beside it belongs to another program.
            let checkout = beside.ancestors().take(4).find(|folder| folder.join("Cargo.lock").is_file());
            folders.extend(checkout.map(|folder| folder.join("models")));
        }
        folders.extend(self.package_folders.iter().cloned());
        let mut seen = BTreeSet::new();
        folders.retain(|folder| seen.insert(folder.clone()));
        folders
    }

    /// What can be downloaded, and what the user added.
    fn catalogue(&self) -> Option<Catalogue> {
        let own = self.store_folder().and_then(|store| Catalogue::with_own(&store).ok());
        own.or_else(|| Catalogue::public().ok())
    }

    /// Everything that could be a model, with its name.
    fn candidates(&self) -> impl Iterator<Item = (String, PathBuf)> {
        let in_folders = self.folders().into_iter().flat_map(|folder| {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let named =
                entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())));
            let mut named: Vec<_> = named.filter(|(name, _)| !name.starts_with('.')).collect();
            named.sort();
            named
        });
        let catalogue = self.catalogue();
        let added: Vec<_> = catalogue.iter().flat_map(|catalogue| &catalogue.models).cloned().collect();
        let added = added.into_iter().filter_map(|entry| Some((entry.id, entry.path?)));
        let cached = self.cache.as_ref().map(Cache::list).unwrap_or_default().into_iter();
        let cached = cached.map(move |model| {
            let known = catalogue.as_ref().and_then(|it| it.of_repository(&model.repository));
            let last = || model.repository.rsplit('/').next().unwrap_or_default().to_owned();
            (known.map_or_else(last, |entry| entry.id.clone()), model.folder)
        });
        in_folders.chain(added).chain(cached)
    }

    fn not_found(&self, wanted: &str) -> Failure {
        if self.candidates().any(|(name, path)| name == wanted && is_speaker_model(&path)) {
            let message = format!("The model \"{wanted}\" identifies speakers; it can't transcribe.");
            return Failure::new(ErrorCode::ModelNotFound, message)
                .remedy(format!("Choose another model; to use this one, give --speaker-model {wanted}."));
        }
        if self.candidates().any(|(name, path)| name == wanted && is_embedding_model(&path)) {
            let message =
                format!("The model \"{wanted}\" is for the search by meaning; it can't transcribe.");
            return Failure::new(ErrorCode::ModelNotFound, message).remedy("Choose another model.");
        }
        if let Some(Ok(_)) = self.store_folder().map(|folder| Store::at(folder).model(wanted)) {
            let message = format!("The download of the model \"{wanted}\" was interrupted.");
            return Failure::new(ErrorCode::ModelNotFound, message)
                .remedy(format!("`steno models pull {wanted}` resumes it."));
        }
        let names: Vec<String> = self.list().into_iter().map(|model| model.name).collect();
        if self.catalogue().is_some_and(|known| known.find(wanted).is_some_and(is_speech_to_download)) {
            let message = format!("The model \"{wanted}\" is not installed.");
            let remedy = format!("Download it: `steno models pull {wanted}`.");
            return Failure::new(ErrorCode::ModelNotFound, message).remedy(remedy);
        }
        if names.is_empty() {
            let folders: Vec<String> = self.folders().iter().map(|path| path.display().to_string()).collect();
            let message = format!("No model is installed; looked in {}.", folders.join(", "));
            return Failure::new(ErrorCode::ModelNotFound, message).remedy(
                "`steno models recommend` names one for this machine, and `steno models pull NAME` downloads it. \
                 Or give the folder of a model.",
            );
        }
        let message = format!("There is no model named \"{wanted}\". There are: {}.", names.join(", "));
        Failure::new(ErrorCode::ModelNotFound, message)
            .remedy("Choose one of them, or give the folder of a model.")
    }
}

fn is_speech_to_download(model: &KnownModel) -> bool {
    model.kind == ModelKind::Speech && model.wanted().is_ok()
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Marker {
    name: Option<String>,
    demonstration: bool,
    note: Option<String>,
}

/// Under the name that it was found by; a demonstration always says that it is
/// one.
fn named(name: String, path: &Path) -> ModelRef {
    let model = describe(path);
    if model.demonstration { model } else { ModelRef { name, ..model } }
}

/// A marker that can't be read counts as none: it must not keep a user from
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
