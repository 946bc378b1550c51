//! Downloads in progress, and the uses of the network. Amounts are
//! bytes, times seconds.

use advisor::{store, transfers};
use hub::TransferProgress;
use serde::Serialize;
use ts_rs::TS;

use super::Failure;

/// A download or import under way, or one that failed.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Transfer {
    /// The name of the model.
    pub id: String,
    /// It comes from this machine.
    pub is_import: bool,
    /// Whether it is the engine for NVIDIA cards and no model.
    pub is_engine: bool,
    /// Where it stands.
    #[serde(flatten)]
    pub progress: TransferProgress,
    /// The user paused it.
    pub paused: bool,
    /// Why it failed.
    pub failure: Option<Failure>,
}

/// One use of the network.
#[derive(Debug, Clone, Serialize, TS)]
pub struct Connection {
    /// Since 1970.
    pub at: u64,
    /// The host that was asked.
    pub host: String,
    /// What was asked for.
    pub why: hub::Purpose,
    /// Null where it is not over, or ended with the program.
    pub bytes: Option<u64>,
}

impl From<transfers::Transfer> for Transfer {
    fn from(transfer: transfers::Transfer) -> Self {
        Self {
            progress: transfer.progress.unwrap_or_default(),
            id: transfer.id,
            is_import: transfer.is_import,
            is_engine: transfer.is_engine,
            paused: transfer.paused,
            failure: transfer.failure.map(Into::into),
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
