//! How the commands for workers reach NATS and recordings.

use std::path::PathBuf;

use advisor::store;
use clap::Args;
use cluster::{Access, Cluster, Ssh};
use config::Preferences;
use hub::Connections;
use wire::Failure;

use crate::args::positive;
use crate::ended::Ended;
use crate::interrupt::Interrupt;

/// Where the queue is.
#[derive(Debug, Args)]
#[command(next_help_heading = "NATS")]
pub struct Nats {
    /// Address of the NATS server, such as nats://host:4222, or tls://host:4222 for an encrypted connection; several
    /// are separated by commas
    #[arg(long, value_name = "URL")]
    pub nats: String,

    /// Credentials for NATS, a file that its tools made
    #[arg(long, value_name = "FILE")]
    pub creds: Option<PathBuf>,

    /// Name of the queue; workers take jobs of their own queue only
    #[arg(long, value_name = "NAME", default_value = "steno")]
    pub queue: String,
}

/// For commands that may be the first.
#[derive(Debug, Args)]
#[command(next_help_heading = "NATS")]
pub struct Copies {
    /// Number of servers of a NATS cluster that keep everything, where the queue is created by this command
    #[arg(long, value_name = "N", default_value = "1", value_parser = positive)]
    pub replicas: usize,
}

/// How servers with recordings are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "SFTP")]
pub struct Sftp {
    /// Private key for SFTP servers [default: those of ssh and its agent]
    #[arg(long, value_name = "FILE")]
    pub ssh_key: Option<PathBuf>,

    /// Keys of the SFTP servers that may be connected to [default: those of ssh]
    #[arg(long, value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
}

impl Nats {
    pub fn access(&self, preferences: &Preferences, replicas: usize) -> Access {
        Access {
            servers: self.nats.clone(),
            credentials: self.creds.clone(),
            queue: self.queue.clone(),
            replicas,
            offline: store::is_offline(preferences),
            log: log(),
        }
    }

    pub async fn connect(
        &self,
        preferences: &Preferences,
        replicas: usize,
        interrupt: &mut Interrupt,
    ) -> Result<Cluster, Ended> {
        let access = self.access(preferences, replicas);
        unless(interrupt, access.connect()).await
    }
}

impl Sftp {
    pub fn ssh(&self, preferences: &Preferences) -> Ssh {
        Ssh {
            key: self.ssh_key.clone(),
            known_hosts: self.known_hosts.clone(),
            log: log(),
            offline: store::is_offline(preferences),
        }
    }
}

/// The work, unless the user interrupts it.
pub async fn unless<T>(
    interrupt: &mut Interrupt,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Ended> {
    tokio::select! {
        done = work => done.map_err(Ended::Failed),
        () = interrupt.raised() => Err(Ended::Cancelled),
    }
}

fn log() -> Connections {
    store::connections_log().map_or_else(Connections::nowhere, Connections::in_file)
}
