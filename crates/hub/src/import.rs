use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use formats::{CanaryConfig, FileKind, ModelFiles, ParakeetConfig, SpeakerModel, TextEmbeddingModel};

use crate::inspect::{inspect, invalid, kind};
use crate::manifest::{Manifest, Origin, Stored};
use crate::meter::{Meter, TransferProgress, TransferStage};
use crate::store::{Model, Store};
use crate::{Control, Error, Filling, files, platform};

/// Beside the weights, each where it is there.
const BESIDE: [&str; 7] = [
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    // What a user should know of the model.
    "steno-model.json",
];
const INDEX: &str = "model.safetensors.index.json";
const WEIGHTS: &str = "model.safetensors";

/// Copies a model from this machine into the store: a folder, a safetensors or
/// GGUF file with its config.json and tokenizer.json beside it, a file of
/// whisper.cpp, a folder of pyannote's community-1, or one of sentence-transformers, told apart by what is in them. Nothing in them is run. It is
/// called `name`, else what it was called.
///
/// Fails with `Invalid`, naming what is missing or wrong, before anything is
/// copied; with `Exists` where there is one of that name.
///
/// # Errors
///
/// Fails with `Invalid` for what is no model, `Exists` and `BadName` for a name that can't be
/// taken, `InUse`, `DiskFull` and `Cancelled`.
pub fn import(
    store: &Store,
    path: &Path,
    name: Option<&str>,
    control: &Control,
    on_progress: &mut (dyn FnMut(TransferProgress) + Send),
) -> Result<Model, Error> {
    let path = path.canonicalize().map_err(|error| Error::io(path, error))?;
    let found = recognise(&path)?;
    let id = match name {
        Some(name) => name.to_owned(),
        None => name_of(&path),
    };
    if !files::is_plain_name(&id) {
        return Err(Error::BadName { name: id });
    }
    let _lock = store.lock(&id)?;
    if store.folder().join(&id).exists() {
        return Err(Error::Exists { folder: store.folder().join(&id), id });
    }
    let partial = store.unfinished(&id)?;
    let copied = copy(&found, &partial, control, on_progress).map_err(|error| error.during(Filling::Import));
    let result = copied.and_then(|copied| {
        inspect(&partial)?;
        let origin = Origin::Import { path: path.display().to_string() };
        let version = Manifest::VERSION;
        store.install(&Manifest { version, id: id.clone(), origin, files: copied, damaged: Vec::new() })
    });
    if let Err(error) = result {
        // There is nothing to go on with: the original is still there.
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    store.model(&id)
}

/// A file, and what it is called in the store.
type Named = (PathBuf, String);

/// The files that make up the model at `path`.
fn recognise(path: &Path) -> Result<Vec<Named>, Error> {
    if path.is_dir() {
        inspect(path)?;
        if let Some(files) = SpeakerModel::find(path).map_err(invalid)? {
            return Ok(within(path, files.all()));
        }
        if let Some(model) = TextEmbeddingModel::find(path).map_err(invalid)? {
            return Ok(within(path, model.all().map_err(invalid)?));
        }
        let source = ModelFiles::find(path).map_err(invalid)?;
        return Ok(match source {
            ModelFiles::Safetensors { folder, files } => {
                let index = Some(folder.join(INDEX)).filter(|index| files.len() > 1 && index.is_file());
                named(beside(&folder).into_iter().chain(files).chain(index))
            }
            ModelFiles::Gguf { folder, file } => named(beside(&folder).into_iter().chain([file])),
            ModelFiles::Ggml { file } => named([file]),
        });
    }
    match kind(path)? {
        FileKind::Ggml => {
            inspect(path)?;
            Ok(named([path.to_owned()]))
        }
        FileKind::Gguf => {
            inspect(path)?;
            Ok(named(beside(folder_of(path)).into_iter().chain([path.to_owned()])))
        }
        FileKind::Safetensors => {
            let folder = folder_of(path);
            let is_shard = folder.join(INDEX).is_file();
            if is_shard || path.file_name().is_some_and(|name| name == WEIGHTS) {
                return recognise(folder);
            }
            // Inspected under the name that it gets.
            let is_other = ParakeetConfig::find(folder).map_err(invalid)?.is_some()
                || CanaryConfig::find(folder).map_err(invalid)?.is_some();
            if !is_other {
                formats::WhisperConfig::read_folder(folder).map_err(invalid)?;
            }
            let weights = (path.to_owned(), WEIGHTS.to_owned());
            Ok(named(beside(folder)).into_iter().chain([weights]).collect())
        }
        _ => Err(Error::Invalid {
            path: path.into(),
            problem: "it is neither safetensors nor GGUF nor a file of whisper.cpp".into(),
            remedy: "Give a model's folder, or one of those files.".into(),
        }),
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

fn beside(folder: &Path) -> Vec<PathBuf> {
    BESIDE.iter().map(|name| folder.join(name)).filter(|path| path.is_file()).collect()
}

/// Each keeps its place within the folder.
fn within(folder: &Path, paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Vec<Named> {
    let named = |path: &Path| {
        let parts = path.strip_prefix(folder).ok()?.iter().map(|part| part.to_str());
        Some((path.to_owned(), parts.collect::<Option<Vec<_>>>()?.join("/")))
    };
    paths.into_iter().filter_map(|path| named(path.as_ref())).collect()
}

/// Each keeps its name.
fn named(paths: impl IntoIterator<Item = PathBuf>) -> Vec<Named> {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths.into_iter().filter_map(|path| name(&path).map(|name| (path, name))).collect()
}

/// A folder's name, or a file's without its ending; of `model.safetensors` its
/// folder's.
fn name_of(path: &Path) -> String {
    let is_folder = path.is_dir();
    let stem = if is_folder { path.file_name() } else { path.file_stem() };
    let stem = stem.unwrap_or_default().to_string_lossy().into_owned();
    if !is_folder && stem == "model" {
        return folder_of(path).file_name().unwrap_or_default().to_string_lossy().into_owned();
    }
    stem
}

fn copy(
    found: &[Named],
    partial: &Path,
    control: &Control,
    on_progress: &mut (dyn FnMut(TransferProgress) + Send),
) -> Result<Vec<Stored>, Error> {
    if let Some((_, name)) = found.iter().find(|(_, name)| !files::is_plain_path(name)) {
        return Err(Error::BadName { name: name.clone() });
    }
    let mut meter = Meter::new(on_progress);
    meter.progress.total = found.iter().map(|(path, _)| fs::metadata(path).map_or(0, |it| it.len())).sum();
    let needed = meter.progress.total;
    if let Some(free) = platform::free_space(partial).filter(|free| *free < needed) {
        return Err(Error::DiskFull {
            during: Filling::Import,
            folder: partial.into(),
            needed: Some(needed),
            free: Some(free),
        });
    }
    let mut stored = Vec::new();
    for (path, name) in found {
        meter.stage(TransferStage::Copy, Some(name));
        let target = partial.join(name);
        files::create_parent(&target)?;
        let sha256 = copy_file(path, &target, control, &mut meter)?;
        let size = fs::metadata(&target).map_err(|error| Error::io(&target, error))?.len();
        stored.push(Stored {
            name: name.clone(),
            size: Some(size),
            promised: Vec::new(),
            sha256: Some(sha256),
        });
    }
    meter.stage(TransferStage::Install, None);
    Ok(stored)
}

/// Returns what was read hashes to, so that a copy that differs shows later.
fn copy_file(from: &Path, to: &Path, control: &Control, meter: &mut Meter<'_>) -> Result<String, Error> {
    use sha2::Digest as _;
    let mut source = File::open(from).map_err(|error| Error::io(from, error))?;
    let mut target = File::create(to).map_err(|error| Error::io(to, error))?;
    let mut sha256 = sha2::Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    loop {
        if control.is_cancelled() {
            return Err(Error::Cancelled);
        }
        let count = match source.read(&mut buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            count => count.map_err(|error| Error::io(from, error))?,
        };
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        target.write_all(bytes).map_err(|error| Error::io(to, error))?;
        sha256.update(bytes);
        meter.add(count as u64);
    }
    target.sync_all().map_err(|error| Error::io(to, error))?;
    Ok(format!("{:x}", sha256.finalize()))
}
