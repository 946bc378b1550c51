//! A queue of workers in NATS that the window looks at, as `steno cluster` does.

use cluster::{Access, Cluster, Overview};
use hub::Connections;
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;
use ts_rs::TS;
use wire::{ErrorCode, Failure};

use super::AppState;
use advisor::store;

/// Where the queue is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(default)]
pub struct WorkerQueue {
    /// Such as `nats://head:4222`; empty: none.
    pub address: String,
    /// The queue's name.
    pub queue: String,
}

impl Default for WorkerQueue {
    fn default() -> Self {
        Self { address: String::new(), queue: "steno".into() }
    }
}

/// The connection to the queue, kept from one look to the next.
#[derive(Debug)]
pub struct QueueConnection {
    open: Mutex<Option<(WorkerQueue, Cluster)>>,
    /// Where every connection is written down.
    log: Connections,
}

impl QueueConnection {
    /// Connects at the first look.
    pub fn new(log: Connections) -> Self {
        Self { open: Mutex::default(), log }
    }
}

impl AppState {
    /// Sets which queue is looked at, and remembers it.
    ///
    /// # Errors
    /// `BadSettings` for an address with a password, which would be kept where others may read it.
    pub fn change_worker_queue(&self, queue: WorkerQueue) -> Result<(), Failure> {
        if queue.address.contains('@') {
            let message = "An address with a name and a password is not kept.";
            return Err(Failure::new(ErrorCode::BadSettings, message)
                .remedy("Enter the address alone; `steno cluster` takes credentials."));
        }
        self.remember(|remembered| remembered.workers = queue);
        Ok(())
    }

    /// One look at the queue. Connects at the first one.
    ///
    /// # Errors
    /// `NetworkOff`, and those of connecting to NATS and of asking it.
    pub async fn look_at_workers(&self) -> Result<Overview, Failure> {
        let wanted = self.remembered().workers;
        let offline = store::is_offline(&self.session.preferences());
        let mut open = self.worker_queue().open.lock().await;
        if offline || open.as_ref().is_some_and(|(known, _)| *known != wanted) {
            *open = None;
        }
        let cluster = match &*open {
            Some((_, cluster)) => cluster.clone(),
            None => {
                let access = Access {
                    servers: wanted.address.clone(),
                    credentials: None,
                    queue: wanted.queue.clone(),
                    replicas: 1,
                    offline,
                    log: self.worker_queue().log.clone(),
                };
                let cluster = access.connect().await?;
                *open = Some((wanted, cluster.clone()));
                cluster
            }
        };
        drop(open);
        cluster.overview().await
    }
}
