//! Reading what a stream holds.

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, pull};
use async_nats::jetstream::stream::Stream;
use bytes::Bytes;
use futures_util::StreamExt;
use wire::Failure;

use crate::connection::failed;

/// Messages that are asked for at once.
const BATCH: usize = 500;
/// Without a message for so long the server is taken for gone.
const PATIENCE: Duration = Duration::from_secs(20);
/// A reader that is gone is forgotten by the server after this.
const FORGOTTEN: Duration = Duration::from_secs(60);

/// A message of a stream.
#[derive(Debug)]
pub struct Entry {
    /// The last part of its subject.
    pub key: String,
    /// Its number in the stream.
    pub sequence: u64,
    pub payload: Bytes,
}

/// What the stream holds under a subject from a number on, in order; of a bucket of keys, the latest value of each.
pub async fn read(
    stream: &Stream,
    subject: &str,
    latest_only: bool,
    from: u64,
) -> Result<Vec<Entry>, Failure> {
    let trouble = |error: &dyn std::fmt::Display| failed("tell what the queue holds", error);
    let deliver_policy = match (latest_only, from) {
        (true, 0) => DeliverPolicy::LastPerSubject,
        (_, 0) => DeliverPolicy::All,
        (_, from) => DeliverPolicy::ByStartSequence { start_sequence: from },
    };
    let consumer = stream
        .create_consumer(pull::Config {
            filter_subject: subject.into(),
            deliver_policy,
            ack_policy: AckPolicy::None,
            inactive_threshold: FORGOTTEN,
            memory_storage: true,
            num_replicas: 1,
            ..pull::Config::default()
        })
        .await
        .map_err(|error| trouble(&error))?;
    let mut left = usize::try_from(consumer.cached_info().num_pending).unwrap_or(usize::MAX);
    let mut entries = Vec::new();
    'all: while left > 0 {
        let wanted = left.min(BATCH);
        let batch = consumer.fetch().max_messages(wanted).messages().await;
        let mut batch = batch.map_err(|error| trouble(&error))?;
        for _ in 0..wanted {
            let next = tokio::time::timeout(PATIENCE, batch.next()).await;
            // What was counted may be gone meanwhile.
            let Some(message) = next.map_err(|_| trouble(&"it is silent"))? else { break 'all };
            let message = message.map_err(|error| trouble(&error))?;
            let info = message.info().map_err(|error| trouble(&error))?;
            // A key that was deleted has an empty value.
            if !message.payload.is_empty() {
                entries.push(Entry {
                    key: message.subject.rsplit('.').next().unwrap_or_default().to_owned(),
                    sequence: info.stream_sequence,
                    payload: message.payload.clone(),
                });
            }
            if info.pending == 0 {
                break 'all;
            }
        }
        left -= wanted;
    }
    // The server would forget it by itself, later.
    let _ = stream.delete_consumer(&consumer.cached_info().name).await;
    Ok(entries)
}
