//! Models to download, downloads in progress, and the uses of the network. Amounts are
//! bytes, times seconds.

use advisor::{catalog, store, transfers};
use memory::fit::Fit;
use serde::Serialize;
use ts_rs::TS;

use super::Failure;

/// What there is beside the installed models.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Shelf {
    /// In the order in which to show them.
    pub offers: Vec<Offer>,
    /// The name of the model to take on this machine, installed or not.
    pub recommended: Option<String>,
    /// The user forbids any use of the network.
    pub offline: bool,
    /// Where models go, and what is free there.
    pub folder: Option<String>,
    /// Free bytes on the disk of that folder; null where the system does not say.
    pub free: Option<u64>,
}

/// A model that can be downloaded.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Offer {
    /// Its name in the catalogue.
    pub id: String,
    /// How much of it is here.
    pub stands: Stands,
    /// What is to be downloaded in all.
    pub bytes: Option<u64>,
    /// `en`, `99+`.
    pub languages: Option<String>,
    /// Its licence, by name.
    pub licence: Option<String>,
    /// Slower than most recordings on this device, as far as it was measured.
    pub slow: bool,
    /// Null where it is not known before it is there, or not for the language
    /// and task that are set.
    pub facts: Option<OfferFacts>,
    /// Whether the network can bring it, or what it lacks.
    pub can_be_had: bool,
}

/// How much of an offered model is on this machine.
#[derive(Debug, Clone, Serialize, TS)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Stands {
    /// Nothing.
    Offered,
    /// A part: its download was interrupted.
    Interrupted {
        /// Bytes that are here.
        done: u64,
        /// Bytes of all its files; null where that is not known.
        total: Option<u64>,
    },
    /// Files that are missing or not what they were.
    Damaged {
        /// Their names.
        files: Vec<String>,
    },
}

/// What is known of an offered model, for the settings in force.
#[derive(Debug, Clone, Serialize, TS)]
pub struct OfferFacts {
    /// Whether it fits into what is free now.
    pub fit: Fit,
    /// How its weights would be held.
    pub precision: String,
    /// Predicted peak, what is free for it, and what would have to become free.
    pub peak: u64,
    /// Free where it would compute.
    pub free: u64,
    /// What would have to become free.
    pub missing: u64,
    /// Numbers in the network.
    pub parameters: u64,
    /// Seconds of recording per second, where this machine's speed was measured.
    pub speed: Option<f64>,
}

/// A download or import under way, or one that failed.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Transfer {
    /// The name of the model.
    pub id: String,
    /// It comes from this machine.
    pub is_import: bool,
    /// What is being done.
    pub stage: TransferStage,
    /// The file that is being transferred.
    pub file: Option<String>,
    /// Bytes that are done.
    pub done: u64,
    /// 0: not known yet.
    pub total: u64,
    /// Bytes per second.
    pub speed: Option<f64>,
    /// Seconds until it is done.
    pub left: Option<f64>,
    /// Seconds until the next attempt, where one failed.
    pub wait: Option<f64>,
    /// The user paused it.
    pub paused: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// The steps of a download or an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case")]
pub enum TransferStage {
    /// The files and their sizes are asked for.
    Look,
    /// Files are downloaded.
    Download,
    /// Files are copied.
    Copy,
    /// Another attempt follows.
    Wait,
    /// Files are compared with their checksums.
    Verify,
    /// The model becomes visible.
    Install,
}

/// One use of the network.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Connection {
    /// Since 1970.
    pub at: u64,
    /// The host that was asked.
    pub host: String,
    /// What was asked for.
    pub why: String,
    /// Null where it is not over, or ended with the program.
    pub bytes: Option<u64>,
}

impl From<catalog::Shelf> for Shelf {
    fn from(shelf: catalog::Shelf) -> Self {
        Self {
            offers: shelf.offers.into_iter().map(Into::into).collect(),
            recommended: shelf.recommended,
            offline: shelf.offline,
            folder: shelf.folder.map(|folder| folder.display().to_string()),
            free: shelf.free,
        }
    }
}

impl From<catalog::Offer> for Offer {
    fn from(offer: catalog::Offer) -> Self {
        let facts = offer.choice.map(|choice| OfferFacts {
            fit: choice.fit.check.fit,
            peak: choice.fit.check.peak,
            free: choice.fit.check.free,
            missing: choice.fit.check.missing(),
            precision: choice.fit.precision,
            parameters: choice.parameters,
            speed: choice.speed,
        });
        Self {
            id: offer.id,
            stands: match offer.stands {
                catalog::Stands::Offered => Stands::Offered,
                catalog::Stands::Interrupted { done, total } => Stands::Interrupted { done, total },
                catalog::Stands::Damaged { files } => Stands::Damaged { files },
            },
            bytes: offer.bytes,
            languages: offer.languages,
            licence: offer.licence,
            slow: offer.slow,
            facts,
            can_be_had: offer.can_be_had,
        }
    }
}

impl From<transfers::Transfer> for Transfer {
    fn from(transfer: transfers::Transfer) -> Self {
        let progress = transfer.progress;
        let number = |of: fn(&hub::TransferProgress) -> Option<f64>| progress.as_ref().and_then(of);
        Self {
            stage: progress.as_ref().map_or(TransferStage::Look, |progress| progress.stage.into()),
            file: progress.as_ref().and_then(|progress| progress.file.clone()),
            done: progress.as_ref().map_or(0, |progress| progress.done),
            total: progress.as_ref().map_or(0, |progress| progress.total),
            speed: number(|progress| progress.speed),
            left: number(|progress| progress.left),
            wait: number(|progress| progress.wait),
            id: transfer.id,
            is_import: transfer.is_import,
            paused: transfer.paused,
            failure: transfer.failure.map(Into::into),
        }
    }
}

impl From<hub::TransferStage> for TransferStage {
    fn from(stage: hub::TransferStage) -> Self {
        match stage {
            hub::TransferStage::Look => Self::Look,
            hub::TransferStage::Download => Self::Download,
            hub::TransferStage::Copy => Self::Copy,
            hub::TransferStage::Wait => Self::Wait,
            hub::TransferStage::Verify => Self::Verify,
            hub::TransferStage::Install | hub::TransferStage::Installed => Self::Install,
        }
    }
}

impl Connection {
    /// The latest connections, newest first.
    ///
    /// # Errors
    /// Where the log can't be read.
    pub fn latest() -> Result<Vec<Self>, wire::Failure> {
        /// As many as fit a page; the command line shows all.
        const MOST: usize = 500;
        Ok(store::connections()?.into_iter().take(MOST).map(Self::from).collect())
    }
}

impl From<hub::Connection> for Connection {
    fn from(connection: hub::Connection) -> Self {
        let hub::Connection { at, host, why, bytes, .. } = connection;
        Self { at, host, why, bytes }
    }
}
