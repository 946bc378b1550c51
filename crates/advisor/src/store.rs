//! Models of this user: the store that downloads and imports go to, and the
//! network as the user allows it.

use std::path::{Path, PathBuf};

use hub::{
    Cache, Catalogue, Code, Connection, Connections, HubSettings, Model, ModelSource, Origin, Proxying,
    Puller, Store, UserEntry, Wanted,
};
use wire::{ErrorCode, Failure};

use crate::models::Places;
use config::{Preferences, folders};

/// Beside the usual folder of models: where they are instead.
const ELSEWHERE: &str = "steno/models-folder";

/// The user's store. Fails where the system has no place for one and none was
/// named.
///
/// # Errors
/// Where the system has no folder for one and none was named.
pub fn store() -> Result<Store, Failure> {
    let folder = Places::of_this_process().store_folder();
    folder.map(Store::at).ok_or_else(|| {
        Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep models in.")
            .remedy("Set STENO_MODELS to a folder for them.")
    })
}

/// Whether a model lies in the user's store, which alone may remove it.
pub fn is_own(path: &Path) -> bool {
    let own = store().ok();
    own.is_some_and(|store| path.parent() == Some(store.folder()) && path.join(hub::MANIFEST).is_file())
}

/// The puller, as settings and environment allow. `off` forbids the
/// network in any case.
///
/// # Errors
/// Where a setting of the network is wrong or its TLS can't be set up.
pub fn puller(preferences: &Preferences, off: bool) -> Result<Puller, Failure> {
    let log = connections_log().map_or_else(Connections::nowhere, Connections::in_file);
    Puller::new(settings(preferences, off)?, log).map_err(failure)
}

/// Whether the user forbids any use of the network.
pub fn is_offline(preferences: &Preferences) -> bool {
    settings(preferences, false).is_ok_and(|settings| settings.offline)
}

/// Through which proxy other machines are reached.
///
/// # Errors
/// Where a setting of the network is wrong.
pub fn proxy(preferences: &Preferences) -> Result<Proxying, Failure> {
    Ok(settings(preferences, false)?.proxy)
}

fn settings(preferences: &Preferences, off: bool) -> Result<HubSettings, Failure> {
    let network = &preferences.network;
    let variable = |name: &str| match name {
        "HF_ENDPOINT" => network.hub.clone(),
        "STENO_OFFLINE" => Some((network.off || off).to_string()),
        name => std::env::var(name).ok(),
    };
    let mut settings = HubSettings::of_environment(&variable, home().as_deref()).map_err(failure)?;
    if let Some(proxy) = &network.proxy {
        settings.proxy = Proxying::Through(proxy.clone());
    }
    Ok(settings)
}

/// What to get for a model of the catalogue, or for one that the store has
/// unfinished or damaged; no other name leads anywhere.
///
/// # Errors
/// `UnknownModel` for any other name, `NotOffered` for a model that can't be
/// downloaded, and those of reading the catalogue.
pub fn wanted(store: &Store, id: &str) -> Result<Wanted, hub::Error> {
    let catalogue = Catalogue::with_own(store.folder())?;
    let known = || catalogue.find(id).map(hub::KnownModel::wanted);
    match store.model(id).ok().and_then(|model| model.origin) {
        Some(Origin::Hub { repository, .. }) => {
            known().and_then(Result::ok).map_or_else(|| Wanted::of_repository(id, &repository), Ok)
        }
        Some(Origin::Url { url }) => Wanted::new(id, ModelSource::Url(url)),
        Some(Origin::Release { .. }) => Err(hub::Error::UnknownModel { name: id.to_owned() }),
        Some(Origin::Import { path }) => Err(hub::Error::NotOffered {
            id: id.to_owned(),
            why: format!("it was imported from {path}"),
            remedy: format!("Remove it (`steno models remove {id}`) and import it again."),
        }),
        Some(Origin::Copy { model, precision }) => Err(hub::Error::NotOffered {
            id: id.to_owned(),
            why: format!("it is a copy of {model} that was made on this machine"),
            remedy: format!(
                "Remove it (`steno models remove {id}`) and make it again: `steno models quantize {model} --to {precision}`."
            ),
        }),
        None => known().unwrap_or_else(|| Err(hub::Error::UnknownModel { name: id.to_owned() })),
    }
}

/// Removes a model of the store, finished or not, and the user's own entry of
/// that name; `None` where there was the entry alone. Fails with
/// `UnknownModel` for one that another program put there.
///
/// # Errors
/// `UnknownModel` for a model that is not the store's, and those of the file
/// system.
pub fn remove(store: &Store, id: &str) -> Result<Option<Model>, hub::Error> {
    let entry = UserEntry::forget(store.folder(), id)?;
    match store.remove(id) {
        Ok(model) => Ok(Some(model)),
        Err(hub::Error::UnknownModel { .. }) if entry => Ok(None),
        Err(error) => Err(error),
    }
}

/// Every connection there was, the newest first.
///
/// # Errors
/// Where the log can't be read.
pub fn connections() -> Result<Vec<Connection>, Failure> {
    let Some(log) = connections_log() else { return Ok(Vec::new()) };
    let mut all = Connections::read(&log).map_err(failure)?;
    all.reverse();
    Ok(all)
}

/// Where every connection is written down; `None` where there is no place for
/// what is kept from one start to the next.
pub fn connections_log() -> Option<PathBuf> {
    Some(folders::steno_state()?.join("connections.jsonl"))
}

/// Moves the store to another folder; from then on models are looked for and
/// put there. `on_model` hears of each.
///
/// # Errors
/// `BadSettings` where `STENO_MODELS` names the folder, and those of the file
/// system.
pub fn move_store(to: &Path, on_model: &mut dyn FnMut(&str)) -> Result<Store, Failure> {
    let places = Places::of_this_process();
    if places.chosen.is_some() {
        let message = "STENO_MODELS sets where the models are, so they can't be moved from here.";
        return Err(Failure::new(ErrorCode::BadSettings, message)
            .remedy("Unset it, or move the folder yourself and set it to the new folder."));
    }
    std::fs::create_dir_all(to)
        .map_err(|error| failure(hub::Error::Io { path: to.into(), source: error }))?;
    let to = to.canonicalize().map_err(|error| failure(hub::Error::Io { path: to.into(), source: error }))?;
    let (from, other) = (store()?, Store::at(&to));
    from.move_to(&other, on_model).map_err(failure)?;
    let Some(note) = places.data_folder.as_deref().map(note) else { return Ok(other) };
    let written = note.parent().map_or(Ok(()), std::fs::create_dir_all);
    written
        .and_then(|()| std::fs::write(&note, hub::platform::to_bytes(&to)))
        .map_err(|error| failure(hub::Error::Io { path: note.clone(), source: error }))?;
    Ok(other)
}

fn note(data_folder: &Path) -> PathBuf {
    data_folder.join(ELSEWHERE)
}

/// Where the models were moved to, if they were.
pub(crate) fn moved_to(data_folder: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(note(data_folder)).ok().filter(|bytes| !bytes.is_empty())?;
    Some(hub::platform::from_bytes(bytes).into())
}

/// What other programs keep of the hub's models.
pub(crate) fn cache() -> Option<Cache> {
    Cache::of_environment(&|name| std::env::var(name).ok(), home().as_deref())
}

fn home() -> Option<PathBuf> {
    folders::home()
}

/// An error of the store or of a download, as hosts tell it.
pub fn failure(error: hub::Error) -> Failure {
    let code = match error.code() {
        Code::NetworkOff => ErrorCode::NetworkOff,
        Code::NetworkFailed => ErrorCode::NetworkFailed,
        Code::Refused => ErrorCode::DownloadRefused,
        Code::NotFound => ErrorCode::ModelNotFound,
        Code::Corrupt => ErrorCode::ModelCorrupt,
        Code::InUse => ErrorCode::ModelInUse,
        Code::DiskFull => ErrorCode::DiskFull,
        Code::Unreadable => ErrorCode::FileUnreadable,
        Code::Invalid => ErrorCode::ModelInvalid,
        Code::Cancelled => ErrorCode::Cancelled,
    };
    let failure = Failure::new(code, error.message()).remedy(error.remedy());
    match error.path() {
        Some(path) => failure.file(path),
        None => failure,
    }
}
