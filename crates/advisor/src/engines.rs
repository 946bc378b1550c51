//! The engine for NVIDIA cards that the user had downloaded.

use std::path::PathBuf;

use config::Preferences;
use hub::{Control, ENGINE, Store, TransferProgress, installed_engine};
use supervisor::cards::Lack;
use supervisor::status::Gpus;
use wire::{ErrorCode, Failure};

use crate::store;

/// What the download of the engine is called beside those of models.
pub const TRANSFER: &str = "steno-engine-cuda";

/// The list of files of this version's release, which whoever builds a release names when it is compiled.
pub const RELEASE: Option<&str> = option_env!("STENO_GPU_RELEASE");

/// The address of the list: `given`, else `STENO_GPU_MANIFEST`, else [`RELEASE`].
///
/// # Errors
/// `BadSettings` where none is known.
pub fn address(given: Option<&str>) -> Result<String, Failure> {
    let variable = std::env::var("STENO_GPU_MANIFEST").ok().filter(|address| !address.is_empty());
    given.map(str::to_owned).or(variable).or_else(|| RELEASE.map(str::to_owned)).ok_or_else(|| {
        let text = "This build of Steno knows no address for the engine for NVIDIA cards.";
        Failure::new(ErrorCode::BadSettings, text).remedy(
            "Give the address of a release's list of files with --manifest or in STENO_GPU_MANIFEST. In a checkout \
             of the sources, `make engine-cuda` builds the engine.",
        )
    })
}

/// Whether a download of the engine would have a card compute.
pub fn would_help(gpus: &Gpus) -> bool {
    address(None).is_ok() && gpus.cards.iter().any(|card| card.lack == Some(Lack::Engine))
}

fn engines() -> Result<Store, Failure> {
    supervisor::find::downloaded_engines().map(Store::at).ok_or_else(|| {
        Failure::new(ErrorCode::OutputUnwritable, "There is no home folder to keep the engine in.")
            .remedy("Set HOME, or XDG_DATA_HOME to a folder for it.")
    })
}

/// Downloads the engine from the list at [`address`] and puts it where engines are looked for. Returns the program.
///
/// # Errors
/// As [`address`], [`store::puller`] and [`hub::Puller::pull_engine`].
pub async fn install(
    preferences: &Preferences,
    manifest: Option<&str>,
    control: &Control,
    on_progress: &mut (dyn FnMut(TransferProgress) + Send),
) -> Result<PathBuf, Failure> {
    let (store, address) = (engines()?, address(manifest)?);
    let puller = store::puller(preferences, false)?;
    puller.pull_engine(&store, &address, control, on_progress).await.map_err(store::failure)?;
    installed_engine(&store).ok_or_else(|| {
        Failure::new(ErrorCode::ModelCorrupt, "A file of the engine went missing while it was installed.")
            .remedy("Run the same command again.")
    })
}

/// Removes the downloaded engine, finished or not. Returns its folder.
///
/// # Errors
/// `EngineNotFound` where there is none, and those of the file system.
pub fn remove() -> Result<PathBuf, Failure> {
    let store = engines()?;
    let there = store.model(ENGINE).map_err(|_| {
        let text = "No engine for NVIDIA cards was downloaded.";
        Failure::new(ErrorCode::EngineNotFound, text).remedy(
            "`steno gpu` shows which one is used; another one belongs to the system or to a checkout.",
        )
    })?;
    store.remove(ENGINE).map(|_| there.folder).map_err(store::failure)
}
