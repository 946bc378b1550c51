//! Downloads and imports that this program has under way, for hosts that show
//! them: begun, paused and stopped by name, and followed.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hub::{Control, Model, Progress};
use tokio::sync::watch;
use wire::{ErrorCode, Failure};

use crate::{Preferences, store};

/// Nobody reads more than ten numbers a second.
const PAUSE_BETWEEN_CHANGES: Duration = Duration::from_millis(100);

/// A download or import, as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Transfer {
    /// The model's name; of an import the name of what is imported.
    pub id: String,
    pub is_import: bool,
    /// `None` before it has begun.
    pub progress: Option<Progress>,
    pub paused: bool,
    /// Why it ended. What has come stays; it goes on when it is begun again.
    pub failure: Option<Failure>,
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
    /// Gets a model of the catalogue, or the rest of one of the store: the only
    /// thing here that uses the network. `None` where it was stopped, or is
    /// under way already; where it fails, that stays in the list.
    pub async fn download(&self, id: &str, preferences: &Preferences) -> Option<Model> {
        let control = self.begin(id, false)?;
        let pulled = async {
            let store = store::store()?;
            let wanted = store::wanted(&store, id).map_err(store::failure)?;
            let puller = store::puller(preferences, false)?;
            let mut on_progress = |progress| self.progress(id, progress);
            puller.pull(&store, &wanted, &control, &mut on_progress).await.map_err(store::failure)
        };
        self.end(id, pulled.await)
    }

    /// Copies a model from this machine into the store, under a name that is
    /// free there; otherwise as [`Transfers::download`]. Blocks on the disk.
    pub fn import(&self, path: &Path) -> Option<Model> {
        let id = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let control = self.begin(&id, true)?;
        self.end(&id, self.imported(path, &id, &control))
    }

    fn imported(&self, path: &Path, id: &str, control: &Control) -> Result<Model, Failure> {
        let store = store::store()?;
        let mut name = None;
        for number in 2..100 {
            let mut on_progress = |progress| self.progress(id, progress);
            name = match hub::import(&store, path, name.as_deref(), control, &mut on_progress) {
                Err(hub::Error::Exists { id, .. }) => {
                    let stem = id.strip_suffix(&format!("-{}", number - 1)).unwrap_or(&id);
                    Some(format!("{stem}-{number}"))
                }
                Err(hub::Error::BadName { name: bad }) if name.is_none() => Some(plain_name(&bad)),
                result => return result.map_err(store::failure),
            };
        }
        Err(Failure::new(ErrorCode::BadSettings, "There are a hundred models of this name.").file(path))
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

    pub fn list(&self) -> Vec<Transfer> {
        self.lock().values().map(|(transfer, _)| transfer.clone()).collect()
    }

    fn begin(&self, id: &str, is_import: bool) -> Option<Control> {
        let control = Control::default();
        let new = Transfer { id: id.to_owned(), is_import, progress: None, paused: false, failure: None };
        let taken = self.change(|all| {
            let busy = all.get(id).is_some_and(|(transfer, _)| transfer.failure.is_none());
            if !busy {
                all.insert(id.to_owned(), (new, control.clone()));
            }
            busy
        });
        (!taken).then_some(control)
    }

    fn progress(&self, id: &str, progress: Progress) {
        self.change(|all| {
            if let Some((transfer, _)) = all.get_mut(id) {
                transfer.progress = Some(progress);
            }
        });
    }

    fn end(&self, id: &str, result: Result<Model, Failure>) -> Option<Model> {
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
