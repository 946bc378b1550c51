use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::lock::Lock;
use crate::manifest::{MANIFEST, Manifest, Origin};
use crate::{Error, Filling, files, platform, pull};

const PARTIAL: &str = ".partial";
const PINS: &str = ".pins";
const LOCKS: &str = ".locks";
pub(crate) const TRASH: &str = ".trash";
const MOVING: &str = ".moving";

/// A folder of models. Each model is a folder in it, and visible only when whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// A model of the store.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    /// Its name, which is that of its folder.
    pub id: String,
    /// Whether it can be used.
    pub state: StoredState,
    /// What it takes on disk.
    pub bytes: u64,
    /// Where it came from; `None` where its list of files can't be read.
    pub origin: Option<Origin>,
    /// Where its files are.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// Whether a model of the store can be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum StoredState {
    /// Every file is there.
    Ready,
    /// Its download goes on where it ended when it is asked for again.
    Interrupted {
        /// Bytes that are there.
        done: u64,
        /// Bytes in all, where that is known.
        total: Option<u64>,
    },
    /// Files that are missing or are not what they were.
    Damaged {
        /// Their names.
        files: Vec<String>,
    },
}

impl Store {
    /// The store in this folder, which need not exist yet.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The folder in which its models lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything that the store knows of, sorted by id. Models that were put
    /// into the folder by hand are not its own and not among them.
    ///
    /// # Errors
    ///
    /// Fails where the folder exists and can't be read.
    pub fn list(&self) -> Result<Vec<Model>, Error> {
        let mut models = Vec::new();
        for id in files::names(&self.folder)? {
            if files::is_plain_name(&id) && is_own(&self.folder.join(&id)) {
                models.push(self.model(&id)?);
            }
        }
        for id in files::names(&self.folder.join(PARTIAL))? {
            if files::is_plain_name(&id) && !models.iter().any(|model| model.id == id) {
                models.push(self.model(&id)?);
            }
        }
        models.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(models)
    }

    /// The model of this name. One whose list of files can't be read is damaged.
    ///
    /// # Errors
    ///
    /// Fails with `UnknownModel` where nothing of that name is in the store.
    pub fn model(&self, id: &str) -> Result<Model, Error> {
        let (whole, partial) = (self.folder.join(id), self.partial(id));
        if files::is_plain_name(id) && is_own(&whole) {
            let (state, origin) = match Manifest::read(&whole) {
                Ok(Some(manifest)) => {
                    let missing = manifest.missing(&whole);
                    let state = if missing.is_empty() {
                        StoredState::Ready
                    } else {
                        StoredState::Damaged { files: missing }
                    };
                    (state, Some(manifest.origin))
                }
                _ => (StoredState::Damaged { files: vec![MANIFEST.into()] }, None),
            };
            return Ok(Model { id: id.into(), state, bytes: files::bytes(&whole), origin, folder: whole });
        }
        if !files::is_plain_name(id) || !partial.is_dir() {
            return Err(Error::UnknownModel { name: id.into() });
        }
        let manifest = Manifest::read(&partial).ok().flatten();
        let done = manifest.as_ref().map_or(0, |manifest| pull::came(manifest, &partial));
        let state = StoredState::Interrupted { done, total: manifest.as_ref().map(Manifest::bytes) };
        let bytes = files::bytes(&partial);
        Ok(Model { id: id.into(), state, bytes, origin: manifest.map(|it| it.origin), folder: partial })
    }

    /// Removes a model, finished or not. What its files must be stays known, so
    /// that the same name brings the same files again.
    ///
    /// # Errors
    ///
    /// Fails with `UnknownModel`, with `InUse`, and where the files can't be removed.
    pub fn remove(&self, id: &str) -> Result<Model, Error> {
        let model = self.model(id)?;
        let _lock = self.lock(id)?;
        for folder in [self.folder.join(id), self.partial(id)] {
            files::remove_folder(&folder, &self.folder.join(TRASH))?;
        }
        Ok(model)
    }

    /// Moves everything to another folder, which may be on another disk, model
    /// by model: each is in one of the two at any time, or for a moment in
    /// both. `on_model` hears of each. Fails where one of that name is there.
    ///
    /// # Errors
    ///
    /// Fails with `Exists`, `InUse`, `DiskFull`, with `Invalid` for a folder within the other, and
    /// where files can't be copied. What was moved by then stays moved.
    pub fn move_to(&self, other: &Self, on_model: &mut dyn FnMut(&str)) -> Result<(), Error> {
        self.move_all(other, on_model).map_err(|error| error.during(Filling::Move))
    }

    fn move_all(&self, other: &Self, on_model: &mut dyn FnMut(&str)) -> Result<(), Error> {
        fs::create_dir_all(&other.folder).map_err(|error| Error::io(&other.folder, error))?;
        let (from, to) = (canonical(&self.folder)?, canonical(&other.folder)?);
        if to.starts_with(&from) || from.starts_with(&to) {
            return Err(Error::Invalid {
                path: other.folder.clone(),
                problem: "it is the folder of the models, or one of the two contains the other".into(),
                remedy: "Choose a folder elsewhere.".into(),
            });
        }
        let ids: Vec<String> = self.list()?.into_iter().map(|model| model.id).collect();
        if let Some(id) = ids.iter().find(|id| other.model(id).is_ok() || other.folder.join(id).exists()) {
            return Err(Error::Exists { id: id.clone(), folder: other.folder.join(id) });
        }
        other.need_room(
            ids.iter().filter_map(|id| self.model(id).ok()).map(|model| model.bytes).sum(),
            self,
        )?;
        for id in &ids {
            let (_ours, _theirs) = (self.lock(id)?, other.lock(id)?);
            on_model(id);
            for (from, to) in
                [(self.partial(id), other.partial(id)), (self.folder.join(id), other.folder.join(id))]
            {
                self.move_folder(&from, &to, other)?;
            }
            let pins = self.pins_path(id);
            if let Some(manifest) = Manifest::read_file(&pins)? {
                files::write_json(&other.pins_path(id), &manifest)?;
            }
        }
        Ok(())
    }

    fn need_room(&self, needed: u64, from: &Self) -> Result<(), Error> {
        let copies = !platform::same_disk(&self.folder, &from.folder);
        match platform::free_space(&self.folder) {
            Some(free) if copies && free < needed => Err(Error::DiskFull {
                during: Filling::Move,
                folder: self.folder.clone(),
                needed: Some(needed),
                free: Some(free),
            }),
            _ => Ok(()),
        }
    }

    fn move_folder(&self, from: &Path, to: &Path, other: &Self) -> Result<(), Error> {
        if !from.exists() {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(|error| Error::io(parent, error))?;
        }
        match fs::rename(from, to) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            Err(error) => return Err(Error::io(to, error)),
        }
        let beside = other.folder.join(MOVING).join(from.file_name().unwrap_or_default());
        files::remove_folder(&beside, &other.folder.join(TRASH))?;
        files::copy_folder(from, &beside)?;
        if let Some(damaged) = damage(from, &beside)? {
            return Err(Error::Invalid {
                path: to.join(damaged),
                problem: "it changed while it was copied".into(),
                remedy: "Check the disk; nothing was removed.".into(),
            });
        }
        fs::rename(&beside, to).map_err(|error| Error::io(to, error))?;
        files::remove_folder(from, &self.folder.join(TRASH))
    }

    /// Bytes on disk of everything in the store, unfinished and removed models
    /// included.
    pub fn disk_use(&self) -> u64 {
        files::bytes(&self.folder)
    }

    pub(crate) fn lock(&self, id: &str) -> Result<Lock, Error> {
        Lock::take(&self.folder.join(LOCKS), id)
    }

    pub(crate) fn partial(&self, id: &str) -> PathBuf {
        self.folder.join(PARTIAL).join(id)
    }

    /// The folder of a model that is not finished, made where it is not there.
    pub(crate) fn unfinished(&self, id: &str) -> Result<PathBuf, Error> {
        let partial = self.partial(id);
        fs::create_dir_all(&partial).map_err(|error| Error::io(&partial, error))?;
        Ok(partial)
    }

    fn pins_path(&self, id: &str) -> PathBuf {
        self.folder.join(PINS).join(format!("{id}.json"))
    }

    /// What the model's files were when they were first there.
    pub(crate) fn pins(&self, id: &str) -> Result<Option<Manifest>, Error> {
        Manifest::read_file(&self.pins_path(id))
    }

    /// Before a download, under the model's lock: `true` where the model is
    /// there and whole. A damaged one becomes an unfinished one, without its
    /// damaged files.
    pub(crate) fn prepare(&self, id: &str) -> Result<bool, Error> {
        let whole = self.folder.join(id);
        self.sweep()?;
        if !whole.exists() {
            return Ok(false);
        }
        let damaged = match self.model(id).map(|model| model.state) {
            Ok(StoredState::Ready) => return Ok(true),
            Ok(StoredState::Damaged { files }) => files,
            _ => return Err(Error::Exists { id: id.into(), folder: whole }),
        };
        let partial = self.partial(id);
        files::remove_folder(&partial, &self.folder.join(TRASH))?;
        fs::create_dir_all(self.folder.join(PARTIAL)).map_err(|error| Error::io(&partial, error))?;
        fs::rename(&whole, &partial).map_err(|error| Error::io(&partial, error))?;
        for name in damaged {
            match fs::remove_file(partial.join(&name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(Error::io(&partial.join(&name), error));
                }
                _ => {}
            }
        }
        Ok(false)
    }

    /// Makes a model visible under its name. All of its files are there and verified.
    pub(crate) fn install(&self, manifest: &Manifest) -> Result<(), Error> {
        let (partial, whole) = (self.partial(&manifest.id), self.folder.join(&manifest.id));
        manifest.write(&partial)?;
        files::write_json(&self.pins_path(&manifest.id), manifest)?;
        platform::sync_folder(&partial).map_err(|error| Error::io(&partial, error))?;
        // Only where a newer one was asked for is there one to replace.
        files::remove_folder(&whole, &self.folder.join(TRASH))?;
        fs::rename(&partial, &whole).map_err(|error| Error::io(&whole, error))?;
        platform::sync_folder(&self.folder).map_err(|error| Error::io(&self.folder, error))
    }

    /// Completes removals that another process began before it was killed.
    fn sweep(&self) -> Result<(), Error> {
        let trash = self.folder.join(TRASH);
        let _lock = match Lock::take(&self.folder.join(LOCKS), TRASH) {
            Ok(lock) => lock,
            // Another process is doing this.
            Err(Error::InUse { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        for name in files::names(&trash)? {
            // Another process may be removing it at the same time.
            let _ = fs::remove_dir_all(trash.join(name));
        }
        Ok(())
    }
}

/// Whether a folder is that of a model of the store: its list of files is its
/// own, or damaged beyond telling whose it is.
fn is_own(folder: &Path) -> bool {
    match Manifest::read(folder) {
        Ok(Some(manifest)) => manifest.is_at(folder),
        Ok(None) => false,
        Err(_) => folder.join(MANIFEST).is_file(),
    }
}

fn canonical(folder: &Path) -> Result<PathBuf, Error> {
    match folder.canonicalize() {
        Ok(folder) => Ok(folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(folder.into()),
        Err(error) => Err(Error::io(folder, error)),
    }
}

/// A file of a copy that differs from what it was copied from.
fn damage(from: &Path, copy: &Path) -> Result<Option<String>, Error> {
    use crate::digest::Hashes;
    for name in files::names(from)? {
        let (source, target) = (from.join(&name), copy.join(&name));
        if source.is_dir() {
            if let Some(inside) = damage(&source, &target)? {
                return Ok(Some(format!("{name}/{inside}")));
            }
            continue;
        }
        let hashes = |path: &Path| {
            Hashes::of_file(path, false, &mut |_| false).map_err(|error| Error::io(path, error))
        };
        if hashes(&source)? != hashes(&target)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
