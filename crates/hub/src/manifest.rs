use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::{Error, files};

/// In the folder of each model that the store knows: what its files are.
pub const MANIFEST: &str = "steno-files.json";

/// What a model consists of and where it came from. While files are missing it
/// says what they must be; afterwards it is what they are verified against, and
/// what the same name must bring at the next download.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`Manifest::VERSION`] of the program that wrote it.
    pub version: u32,
    /// The model's name.
    pub id: String,
    /// Where it came from.
    pub origin: Origin,
    /// Every file of the model.
    pub files: Vec<Stored>,
    /// Files that were found to be damaged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// Where a model came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Origin {
    /// A repository on the hub, at this commit.
    Hub {
        /// `owner/name`.
        repository: String,
        /// The commit.
        revision: String,
    },
    /// One file from anywhere.
    Url {
        /// The address.
        url: String,
    },
    /// The files of a release, which lie beside their list.
    Release {
        /// The list's address.
        list: String,
    },
    /// What was imported from this machine.
    Import {
        /// Where it was.
        path: String,
    },
    /// A copy with weights in another format, made on this machine.
    Copy {
        /// The name of the model that was copied.
        model: String,
        /// The format of the weights, as `steno models quantize --to` takes it.
        precision: String,
    },
}

/// A file of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// The file's name, with the folder within the model's that it lies in, if any:
    /// `plda/plda.npz`.
    pub name: String,
    /// In bytes; `None` where the server did not say.
    pub size: Option<u64>,
    /// What its server or publisher says that it hashes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub promised: Vec<Digest>,
    /// What it was found to hash to.
    pub sha256: Option<String>,
}

impl Manifest {
    /// Raised when an older program would misread the list.
    pub const VERSION: u32 = 1;

    /// Of a model's folder; `None` where it has none.
    ///
    /// # Errors
    ///
    /// Fails where the list exists and can't be read, or is not one.
    pub fn read(folder: &Path) -> Result<Option<Self>, Error> {
        Self::read_file(&folder.join(MANIFEST))
    }

    pub(crate) fn read_file(path: &Path) -> Result<Option<Self>, Error> {
        let manifest: Option<Self> = files::read_json(path)?;
        let Some(manifest) = manifest else { return Ok(None) };
        let stays_inside = manifest.files.iter().all(|file| files::is_plain_path(&file.name));
        if manifest.version != Self::VERSION || !stays_inside {
            return Err(Error::Invalid {
                path: path.into(),
                problem: "this version of Steno can't read its list of files".into(),
                remedy: "Remove the model and get it again.".into(),
            });
        }
        Ok(Some(manifest))
    }

    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        files::write_json(&folder.join(MANIFEST), self)
    }

    /// Whether it is that of the model in this folder, and did not come along
    /// when a user copied one.
    pub fn is_at(&self, folder: &Path) -> bool {
        folder.file_name().is_some_and(|name| *name == *self.id)
    }

    pub(crate) fn file(&self, name: &str) -> Option<&Stored> {
        self.files.iter().find(|file| file.name == name)
    }

    /// Bytes of all files, as far as known.
    pub fn bytes(&self) -> u64 {
        self.files.iter().filter_map(|file| file.size).fold(0, u64::saturating_add)
    }

    /// Files that are missing, have another size, or are known to be damaged.
    /// Nothing is read: [`crate::verify()`] does.
    pub fn missing(&self, folder: &Path) -> Vec<String> {
        let is_there = |file: &Stored| {
            let found = std::fs::metadata(folder.join(&file.name)).ok().filter(std::fs::Metadata::is_file);
            found.is_some_and(|found| file.size.is_none_or(|size| size == found.len()))
                && !self.damaged.contains(&file.name)
        };
        self.files.iter().filter(|file| !is_there(file)).map(|file| file.name.clone()).collect()
    }
}

impl Manifest {
    pub(crate) fn is_of(&self, source: &crate::pull::ModelSource) -> bool {
        use crate::pull::ModelSource;
        match (&self.origin, source) {
            (Origin::Hub { repository: ours, .. }, ModelSource::Hub { repository, .. }) => ours == repository,
            (Origin::Url { url: ours }, ModelSource::Url(url)) => ours == url,
            _ => false,
        }
    }

    /// The commit on the hub.
    pub(crate) fn revision(&self) -> Option<&str> {
        match &self.origin {
            Origin::Hub { revision, .. } => Some(revision),
            _ => None,
        }
    }
}
