//! Downloads and imports that this program has under way, for hosts that show
//! them: begun, paused and stopped by name, and followed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub::{Control, Model, Store, TransferProgress};
use tokio::sync::watch;
use wire::{ErrorCode, Failure};

use crate::{engines, store};
use config::Preferences;

/// A reader can't follow more than ten changes a second.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(100);

/// A download or import, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The model's name; of an import the name of what is imported.
    pub id: String,
    /// Whether it is the engine for NVIDIA cards and no model.
    pub is_engine: bool,
    /// Whether it comes from this machine and not from the network.
    pub is_import: bool,
    /// `None` before it has begun.
    pub progress: Option<TransferProgress>,
    /// Whether the user paused it.
    pub paused: bool,
    /// Why it ended. What has come stays; it goes on when it is begun again.
    pub failure: Option<Failure>,
}

/// What has come.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrived {
    /// A model, in the store.
    Model(Model),
    /// The engine for NVIDIA cards: the next engine is that one.
    Engine,
}

/// Clones share what is under way.
#[derive(Debug, Clone, Default)]
pub struct Transfers {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    all: Mutex<BTreeMap<String, (Transfer, Control)>>,
    version: watch::Sender<u64>,
}

impl Default for Inner {
    fn default() -> Self {
        Self { all: Mutex::default(), version: watch::Sender::new(0) }
    }
}

impl Transfers {
    /// Gets a model of the catalogue, or the rest of one of the store, or the engine
    /// for NVIDIA cards ([`engines::TRANSFER`]): the only
    /// thing here that uses the network. `None` where it was stopped, or is
    /// under way already; where it fails, that stays in the list.
    pub async fn download(&self, id: &str, preferences: &Preferences) -> Option<Arrived> {
        let control = self.begin(id, false)?;
        if id == engines::TRANSFER {
            let mut on_progress = |progress| self.progress(id, progress);
            let installed = engines::install(preferences, None, &control, &mut on_progress).await;
            return self.end(id, installed).map(|_| Arrived::Engine);
        }
        let pulled = async {
            let store = store::store()?;
            let wanted = store::wanted(&store, id).map_err(store::failure)?;
            let puller = store::puller(preferences, false)?;
            let mut on_progress = |progress| self.progress(id, progress);
            puller.pull(&store, &wanted, &control, &mut on_progress).await.map_err(store::failure)
        };
        self.end(id, pulled.await).map(Arrived::Model)
    }

    /// Copies a model from this machine into the store, under a name that is
    /// free there; otherwise as [`Transfers::download`]. Blocks on the disk.
    pub fn import(&self, path: &Path) -> Option<Model> {
        let id = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let control = self.begin(&id, true)?;
        let imported = store::store().and_then(|store| self.imported(&store, path, &id, &control));
        self.end(&id, imported)
    }

    fn imported(&self, store: &Store, path: &Path, id: &str, control: &Control) -> Result<Model, Failure> {
        const MOST_OF_ONE_NAME: usize = 100;
        let (mut name, mut taken) = (None, Vec::<String>::new());
        loop {
            let mut on_progress = |progress| self.progress(id, progress);
            name = match hub::import(store, path, name.as_deref(), control, &mut on_progress) {
                Err(hub::Error::Exists { id, .. }) if taken.len() < MOST_OF_ONE_NAME => {
                    taken.push(id);
                    taken.first().map(|first| format!("{first}-{}", taken.len() + 1))
                }
                Err(hub::Error::BadName { name: bad }) if name.is_none() => Some(plain_name(&bad)),
                result => return result.map_err(store::failure),
            };
        }
    }

    /// While paused nothing comes, and what has come stays.
    pub fn pause(&self, id: &str, paused: bool) {
        self.change(|all| {
            if let Some((transfer, control)) = all.get_mut(id)
                && transfer.failure.is_none()
            {
                transfer.paused = paused;
                if paused { control.pause() } else { control.resume() }
            }
        });
    }

    /// What has come of a download stays. One that failed leaves the list.
    pub fn stop(&self, id: &str) {
        self.change(|all| match all.get(id) {
            Some((transfer, _)) if transfer.failure.is_some() => drop(all.remove(id)),
            Some((_, control)) => control.cancel(),
            None => {}
        });
    }

    /// Everything under way, then the same whenever it changed.
    pub fn follow(&self) -> Follower {
        let mut version = self.inner.version.subscribe();
        version.mark_changed();
        Follower { transfers: self.clone(), version }
    }

    /// Every transfer that is under way or failed, by name.
    pub fn list(&self) -> Vec<Transfer> {
        self.lock().values().map(|(transfer, _)| transfer.clone()).collect()
    }

    fn begin(&self, id: &str, is_import: bool) -> Option<Control> {
        let control = Control::default();
        let new = Transfer {
            id: id.to_owned(),
            is_engine: id == engines::TRANSFER,
            is_import,
            progress: None,
            paused: false,
            failure: None,
        };
        let taken = self.change(|all| {
            let busy = all.get(id).is_some_and(|(transfer, _)| transfer.failure.is_none());
            if !busy {
                all.insert(id.to_owned(), (new, control.clone()));
            }
            busy
        });
        (!taken).then_some(control)
    }

    fn progress(&self, id: &str, progress: TransferProgress) {
        self.change(|all| {
            if let Some((transfer, _)) = all.get_mut(id) {
                transfer.progress = Some(progress);
            }
        });
    }

    fn end<T>(&self, id: &str, result: Result<T, Failure>) -> Option<T> {
        self.change(|all| match result {
            Err(failure) if failure.code != ErrorCode::Cancelled => {
                if let Some((transfer, _)) = all.get_mut(id) {
                    (transfer.failure, transfer.paused) = (Some(failure), false);
                }
                None
            }
            result => {
                all.remove(id);
                result.ok()
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, (Transfer, Control)>> {
        self.inner.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, (Transfer, Control)>) -> T) -> T {
        let result = change(&mut self.lock());
        self.inner.version.send_modify(|version| *version += 1);
        result
    }
}

/// A name that the store takes, as near to this one as can be.
fn plain_name(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
    let plain: String = name.chars().map(|c| if fits(c) { c } else { '-' }).take(80).collect();
    let plain = plain.trim_matches(['.', '-', '_', '+']);
    if plain.is_empty() { "model".into() } else { plain.to_owned() }
}

/// Tells of changes of the transfers.
#[derive(Debug)]
pub struct Follower {
    transfers: Transfers,
    version: watch::Receiver<u64>,
}

impl Follower {
    /// At most ten times a second; the last state is never left out.
    pub async fn next(&mut self) -> Option<Vec<Transfer>> {
        self.version.changed().await.ok()?;
        tokio::time::sleep(PAUSE_BETWEEN_CHANGES).await;
        // Seen only now, so that what came during the pause is not told twice.
        self.version.mark_unchanged();
        Some(self.transfers.list())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn starter() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper")
    }

    #[test]
    fn an_import_finds_a_name_that_is_free_and_that_the_store_takes() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("store"));
        let odd = folder.path().join("Mein Modell (groß)");
        std::fs::create_dir(&odd).unwrap();
        for entry in std::fs::read_dir(starter()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            std::fs::copy(entry.path(), odd.join(entry.file_name())).unwrap();
        }
        let transfers = Transfers::default();
        for (path, expected) in [
            (starter(), "starter-whisper"),
            (starter(), "starter-whisper-2"),
            (starter(), "starter-whisper-3"),
            (odd.clone(), "Mein-Modell--gro"),
            (odd, "Mein-Modell--gro-2"),
        ] {
            let control = transfers.begin("it", true).unwrap();
            let model = transfers.end("it", transfers.imported(&store, &path, "it", &control));
            assert_eq!(model.unwrap().id, expected);
        }
        assert_eq!(transfers.list(), []);
    }

    #[test]
    fn what_fails_stays_in_the_list_until_it_is_closed_or_begun_again() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("store"));
        std::fs::copy(starter().join("model.safetensors"), folder.path().join("model.safetensors")).unwrap();
        let transfers = Transfers::default();
        let attempt = || {
            let control = transfers.begin("half", true).unwrap();
            // Nothing is begun twice at a time.
            assert!(transfers.begin("half", true).is_none());
            transfers.end("half", transfers.imported(&store, folder.path(), "half", &control))
        };
        for _ in 0..2 {
            assert_eq!(attempt(), None);
            let list = transfers.list();
            let failure = list[0].failure.as_ref().unwrap();
            assert!(failure.to_string().contains("config.json"), "{failure}");
        }
        transfers.stop("half");
        assert_eq!(transfers.list(), []);
    }

    /// By its name comes the engine and no model: this build knows no address of one.
    #[test]
    fn the_engine_is_a_transfer_of_its_own() {
        let transfers = Transfers::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let preferences = Preferences::default();
        let arrived = runtime.block_on(transfers.download(engines::TRANSFER, &preferences));
        assert_eq!(arrived, None);
        let list = transfers.list();
        assert!(list[0].is_engine && !list[0].is_import);
        let failure = list[0].failure.as_ref().unwrap();
        assert!(failure.to_string().contains("engine for NVIDIA cards"), "{failure}");
    }

    #[test]
    fn a_pause_and_a_stop_reach_whoever_works() {
        let transfers = Transfers::default();
        let control = transfers.begin("it", false).unwrap();
        transfers.pause("it", true);
        assert!(transfers.list()[0].paused);
        transfers.pause("it", false);
        assert!(!transfers.list()[0].paused);
        transfers.stop("it");
        let mut ignore = |_: TransferProgress| {};
        let folder = tempfile::tempdir().unwrap();
        let ended = hub::import(&Store::at(folder.path()), &starter(), None, &control, &mut ignore);
        assert_eq!(ended.unwrap_err().code(), hub::Code::Cancelled);
        assert_eq!(transfers.end::<Model>("it", Err(Failure::new(ErrorCode::Cancelled, "Stopped."))), None);
        assert_eq!(transfers.list(), []);
    }
}
