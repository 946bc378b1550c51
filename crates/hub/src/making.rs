use std::fs;
use std::path::{Path, PathBuf};

use crate::digest::Hashes;
use crate::lock::Lock;
use crate::manifest::{Manifest, Origin, Stored};
use crate::store::{Model, Store, TRASH};
use crate::{Control, Error, files};

/// A model that is being made on this machine, out of sight until it is whole. Its name is
/// locked meanwhile. What was made of it goes when this is dropped before [`Making::install`].
#[derive(Debug)]
pub struct Making<'a> {
    store: &'a Store,
    id: String,
    folder: PathBuf,
    _lock: Lock,
}

impl Store {
    /// Begins a model of this name. What an attempt that was killed left of it is removed.
    ///
    /// # Errors
    ///
    /// Fails with `Exists` where there is one, finished or not, `BadName`, `InUse`, and where the
    /// folder can't be written.
    pub fn make(&self, id: &str) -> Result<Making<'_>, Error> {
        if !files::is_plain_name(id) {
            return Err(Error::BadName { name: id.into() });
        }
        let lock = self.lock(id)?;
        let (whole, folder) = (self.folder().join(id), self.partial(id));
        let is_download = || Manifest::read(&folder).is_ok_and(|manifest| manifest.is_some());
        if whole.symlink_metadata().is_ok() {
            return Err(Error::Exists { id: id.into(), folder: whole });
        }
        if is_download() {
            return Err(Error::Exists { id: id.into(), folder });
        }
        let left = folder.with_file_name(format!("{id}.partial"));
        for left in [&folder, &left] {
            files::remove_folder(left, &self.folder().join(TRASH))?;
        }
        // For the parent: the folder itself is the maker's to create.
        files::create_parent(&folder)?;
        Ok(Making { store: self, id: id.into(), folder, _lock: lock })
    }
}

impl Making<'_> {
    /// Where its files belong; the folder does not exist yet.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes it visible under its name, with a list of its files, so that it can be verified, moved
    /// and removed.
    ///
    /// # Errors
    ///
    /// Fails with `Cancelled`, and where files can't be read or written.
    pub fn install(self, origin: Origin, control: &Control) -> Result<Model, Error> {
        let mut stored = Vec::new();
        for name in files::names(&self.folder)? {
            let path = self.folder.join(&name);
            // Any other name can't be on a list. The file goes with its folder.
            if !path.is_file() || !files::is_plain_name(&name) {
                continue;
            }
            let hashes = Hashes::of_file(&path, false, &mut |_| control.is_cancelled());
            let hashes = hashes.map_err(|error| match error.kind() {
                std::io::ErrorKind::Interrupted => Error::Cancelled,
                _ => Error::io(&path, error),
            })?;
            stored.push(Stored {
                name,
                size: Some(hashes.size),
                promised: Vec::new(),
                sha256: Some(hashes.sha256),
            });
        }
        let (id, version) = (self.id.clone(), Manifest::VERSION);
        self.store.install(&Manifest { version, id, origin, files: stored, damaged: Vec::new() })?;
        self.store.model(&self.id)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        // Nothing is there once it is installed; what can't be removed now is at the next attempt.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
