//! The user's adapters: files in one folder, and which of them is on for which model.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use formats::{AdapterCard, AdapterFile, write_whole};
use wire::{ErrorCode, Failure, FilePath};

use crate::models::Places;

const ENDING: &str = "safetensors";
/// Which adapter is on, by the fingerprint of the weights that it belongs to.
const SWITCHES: &str = "on.json";
/// Locked while the switches are read, changed and written.
const LOCK: &str = "on.lock";

/// The folder of adapters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapters {
    folder: PathBuf,
}

/// An adapter in the folder.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedAdapter {
    /// By which it is chosen; its file's.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// Bytes of its file.
    pub bytes: u64,
    /// Whether its model is used with it.
    pub is_on: bool,
    /// What it is, or why it can't be read.
    pub card: Result<AdapterCard, Failure>,
}

impl Adapters {
    /// Those of this user; `None` where there is no home folder.
    pub fn of_this_user() -> Option<Self> {
        Some(Self::at(Places::of_this_process().data_folder?.join("steno/adapters")))
    }

    /// The file that this user has the model at `path` used with.
    pub fn switched_on(path: &Path) -> Option<FilePath> {
        Self::of_this_user()?.of_model(path).map(FilePath::from)
    }

    /// Those in a folder, which need not exist.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// All of them by name, damaged ones too.
    pub fn list(&self) -> Vec<ListedAdapter> {
        let switches = self.switches();
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut found: Vec<ListedAdapter> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ending| ending == ENDING))
            .filter_map(|path| {
                let name = path.file_stem()?.to_str()?.to_owned();
                let card = read(&path).map(|file| file.card);
                let is_on = switches.values().any(|on| *on == name);
                Some(ListedAdapter { bytes: fs::metadata(&path).ok()?.len(), name, path, is_on, card })
            })
            .collect();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found
    }

    /// The one of that name, read and checked.
    ///
    /// # Errors
    /// Where there is none or it is damaged.
    pub fn read(&self, name: &str) -> Result<AdapterFile, Failure> {
        read(&self.existing(name)?)
    }

    /// The adapter that the model at `path` is used with.
    pub fn of_model(&self, path: &Path) -> Option<PathBuf> {
        let switches = self.switches();
        if switches.is_empty() {
            return None;
        }
        let name = switches.get(&formats::fingerprint(path).ok()?)?;
        Some(self.path(name).ok()?).filter(|file| file.is_file())
    }

    /// Takes in a file under a name, off.
    ///
    /// # Errors
    /// Where it is no adapter, the name is taken or can't be one, or the folder can't be written.
    pub fn add(&self, file: &Path, name: &str) -> Result<PathBuf, Failure> {
        let adapter = read(file)?;
        let path = self.path(name)?;
        if path.exists() {
            let text = format!("There is an adapter named {name} already.");
            return Err(Failure::new(ErrorCode::NameTaken, text).remedy("Choose another name with --name."));
        }
        fs::create_dir_all(&self.folder).map_err(|error| unwritable(&self.folder, &error))?;
        let adapter = AdapterFile { path: path.clone(), ..adapter };
        adapter.write().map_err(|error| unwritable(&path, &error))?;
        Ok(path)
    }

    /// Copies one to a file; `replace`: also to one that is there.
    ///
    /// # Errors
    /// Where there is no such adapter, it is damaged, or the file can't be written.
    pub fn export(&self, name: &str, to: &Path, replace: bool) -> Result<(), Failure> {
        let adapter = self.read(name)?;
        if to.exists() && !replace {
            return Err(Failure::new(ErrorCode::OutputExists, "This file already exists.")
                .file(to)
                .remedy("Remove it, or choose another name."));
        }
        AdapterFile { path: to.to_owned(), ..adapter }.write().map_err(|error| unwritable(to, &error))
    }

    /// Removes one, which is then on nowhere.
    ///
    /// # Errors
    /// Where there is none, or it can't be removed.
    pub fn remove(&self, name: &str) -> Result<(), Failure> {
        let path = self.existing(name)?;
        self.switch_off(name)?;
        fs::remove_file(&path).map_err(|error| unwritable(&path, &error))
    }

    /// Has its model used with it, in place of another one.
    ///
    /// # Errors
    /// Where there is none, it is damaged, or the folder can't be written.
    pub fn switch_on(&self, name: &str) -> Result<AdapterCard, Failure> {
        let card = self.read(name)?.card;
        self.switch(|switches| {
            switches.insert(card.base.clone(), name.to_owned());
        })?;
        Ok(card)
    }

    /// Has its model used as it is.
    ///
    /// # Errors
    /// Where there is none, or the folder can't be written.
    pub fn switch_off(&self, name: &str) -> Result<(), Failure> {
        self.existing(name)?;
        self.switch(|switches| switches.retain(|_, on| on != name))
    }

    /// A name as much like `wanted` as an adapter can have, and has not yet.
    pub fn free_name(&self, wanted: &str) -> String {
        let named = |c: char| if is_plain(c) { c } else { '-' };
        let name: String = wanted.trim_start_matches('.').chars().map(named).collect();
        let name = if name.is_empty() { "adapter".into() } else { name };
        let is_free = |name: &String| self.path(name).is_ok_and(|path| !path.exists());
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).unwrap_or(name)
    }

    /// Where an adapter of that name lies or would lie.
    ///
    /// # Errors
    /// Where a file can't have the name.
    pub fn path(&self, name: &str) -> Result<PathBuf, Failure> {
        if name.is_empty() || name.starts_with('.') || !name.chars().all(is_plain) {
            let text = format!("An adapter can't be named {name:?}.");
            return Err(Failure::new(ErrorCode::NameMissing, text)
                .remedy("Use letters, digits, spaces, dots, hyphens and underscores."));
        }
        Ok(self.folder.join(format!("{name}.{ENDING}")))
    }

    fn existing(&self, name: &str) -> Result<PathBuf, Failure> {
        let path = self.path(name)?;
        if path.is_file() {
            return Ok(path);
        }
        let text = format!("There is no adapter named {name}.");
        Err(Failure::new(ErrorCode::ModelNotFound, text)
            .remedy("`steno adapters` lists those that there are."))
    }

    /// A file that can't be read switches nothing on.
    fn switches(&self) -> BTreeMap<String, String> {
        let bytes = fs::read(self.folder.join(SWITCHES)).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Changes the switches. The window and the command line may do so at the same moment; the lock has them take turns.
    fn switch(&self, change: impl FnOnce(&mut BTreeMap<String, String>)) -> Result<(), Failure> {
        let path = self.folder.join(SWITCHES);
        let write = || {
            let _lock = self.lock()?;
            let mut switches = self.switches();
            change(&mut switches);
            write_whole(&path, &serde_json::to_vec_pretty(&switches)?)
        };
        write().map_err(|error| unwritable(&path, &error))
    }

    /// Holds the lock until the file is dropped. Where the file system has no locks, the switches change without one.
    fn lock(&self) -> io::Result<File> {
        let file =
            OpenOptions::new().write(true).create(true).truncate(false).open(self.folder.join(LOCK))?;
        let _ = file.lock();
        Ok(file)
    }
}

/// What the name of an adapter may consist of.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ')
}

/// An adapter's file, read and checked.
///
/// # Errors
/// Where it can't be read, is damaged, or is no adapter.
pub fn read(path: &Path) -> Result<AdapterFile, Failure> {
    AdapterFile::read(path).map_err(|error| {
        let reason = match error {
            formats::Error::Io { source, .. } => format!("can't be read: {source}"),
            formats::Error::Invalid { reason, .. } => format!("is not valid: {reason}"),
            other => other.to_string(),
        };
        Failure::new(ErrorCode::ModelInvalid, format!("The adapter {reason}.")).file(path)
    })
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    let code = match error.kind() {
        io::ErrorKind::StorageFull => ErrorCode::DiskFull,
        _ => ErrorCode::OutputUnwritable,
    };
    Failure::new(code, format!("It can't be written: {error}.")).file(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use formats::AdapterMatrix;

    fn adapter(path: &Path, base: &str) -> PathBuf {
        let matrix = AdapterMatrix { name: "fc1".into(), output: 1, input: 1, a: vec![1.0], b: vec![1.0] };
        let card = AdapterCard { rank: 1, alpha: 1.0, base: base.into(), ..AdapterCard::default() };
        let file = AdapterFile { path: path.into(), card, matrices: vec![matrix], ..AdapterFile::default() };
        file.write().unwrap();
        file.path
    }

    #[test]
    fn adapters_are_added_switched_exported_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let adapters = Adapters::at(folder.path().join("adapters"));
        assert!(adapters.list().is_empty());
        let file = adapter(&folder.path().join("a.safetensors"), "base");
        adapters.add(&file, "names").unwrap();
        assert_eq!(adapters.add(&file, "names").unwrap_err().code, ErrorCode::NameTaken);
        assert_eq!(adapters.add(&file, "../names").unwrap_err().code, ErrorCode::NameMissing);
        let is_on = || adapters.list().iter().map(|it| it.is_on).collect::<Vec<_>>();
        assert_eq!(is_on(), [false]);
        adapters.switch_on("names").unwrap();
        assert_eq!(is_on(), [true]);
        // Another one of the same model takes its place.
        adapters.add(&file, "others").unwrap();
        adapters.switch_on("others").unwrap();
        assert_eq!(is_on(), [false, true]);
        let to = folder.path().join("exported.safetensors");
        adapters.export("names", &to, false).unwrap();
        assert!(read(&to).is_ok());
        assert_eq!(adapters.export("names", &to, false).unwrap_err().code, ErrorCode::OutputExists);
        adapters.export("names", &to, true).unwrap();
        assert_eq!(
            ["names", "large+v3 (1)", "..", ""].map(|name| adapters.free_name(name)),
            ["names-2", "large-v3 -1-", "adapter", "adapter"]
        );
        adapters.remove("others").unwrap();
        assert_eq!(is_on(), [false]);
        assert_eq!(adapters.remove("others").unwrap_err().code, ErrorCode::ModelNotFound);
    }

    #[test]
    fn programs_that_switch_at_once_keep_each_others_switches() {
        let folder = tempfile::tempdir().unwrap();
        let adapters = Adapters::at(folder.path());
        for name in ["one", "other"] {
            adapter(&folder.path().join(format!("{name}.safetensors")), name);
        }
        // A lock belongs to an opened file, and each change opens it anew, so two threads stand for two programs.
        let switch = |name: &str| {
            for _ in 0..50 {
                adapters.switch_off(name).unwrap();
                assert!(!adapters.switches().contains_key(name));
                adapters.switch_on(name).unwrap();
                assert!(adapters.switches().contains_key(name));
            }
        };
        std::thread::scope(|scope| {
            scope.spawn(|| switch("one"));
            scope.spawn(|| switch("other"));
        });
        assert!(adapters.list().iter().all(|it| it.is_on));
    }

    #[test]
    fn a_damaged_adapter_is_listed_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a.safetensors"), "nothing").unwrap();
        let listed = Adapters::at(folder.path()).list();
        assert_eq!(listed[0].card.as_ref().unwrap_err().code, ErrorCode::ModelInvalid);
    }
}
