//! Giving work to workers, and taking what came of it.

use std::path::Path;

use async_nats::jetstream::kv::{CreateErrorKind, Operation};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata};
use async_nats::jetstream::stream::RawMessageErrorKind;
use tokio::io::AsyncReadExt;
use transcript::Transcript;
use wire::{ErrorCode, Failure};

use crate::connection::{Cluster, failed};
use crate::job::{Submitted, token};
use crate::read::read;
use crate::record::{End, now};
use crate::source::{Source, upload_name};
use crate::worker::transcript_name;

/// Of an uploaded recording, per message: large enough to be quick, and below what servers accept by default (1 MiB).
const CHUNK: usize = 512 << 10;

/// What became of a job that was submitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// It waits for a worker.
    New,
    /// It waited or ran already.
    Known,
    /// Its result is there already.
    Done,
    /// It had failed, and is tried again.
    Again,
}

impl Cluster {
    /// Puts a job into the queue, once, however often it is submitted. `local`: the recording to upload, where that is
    /// the job's source. Call [`Cluster::wake`] when all are submitted.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not take it; `FileUnreadable` for a recording that can't be read.
    pub async fn submit(&self, mut submitted: Submitted, local: Option<&Path>) -> Result<Accepted, Failure> {
        let trouble = |error: &dyn std::fmt::Display| failed("take the job", error);
        let id = submitted.id.clone();
        submitted.submitted = now();
        let json = serde_json::to_vec(&submitted).map_err(|error| trouble(&error))?;
        // Two programs that submit the same job at once give it the same number.
        let mut message_id = id.clone();
        let mut accepted = Accepted::New;
        let ended = self.records.entry(format!("end.{id}")).await.map_err(|error| trouble(&error))?;
        if let Some(entry) = ended.filter(|entry| entry.operation == Operation::Put) {
            let end: Option<End> = serde_json::from_slice(&entry.value).ok();
            if end.is_some_and(|end| end.failure.is_none()) {
                return Ok(Accepted::Done);
            }
            accepted = Accepted::Again;
            message_id = format!("{id}.{}", entry.revision);
        } else if self.records.get(format!("job.{id}")).await.map_err(|error| trouble(&error))?.is_some() {
            if self.is_queued(&id).await? {
                return Ok(Accepted::Known);
            }
            // An earlier submission of it was ended half-way.
            accepted = Accepted::Known;
        }
        if let (Source::Upload, Some(local)) = (&submitted.source, local) {
            self.upload(&id, local).await?;
        }
        match self.records.create(format!("job.{id}"), json.into()).await {
            Ok(_) => {}
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {}
            Err(error) => return Err(trouble(&error)),
        }
        if accepted == Accepted::Again {
            self.forget_end(&id).await.map_err(|error| trouble(&error))?;
        }
        let subject = self.subject(submitted.kind.subject(), &token(&submitted.model));
        let message = PublishMessage::build().message_id(&message_id).payload(id.clone().into());
        let sent = self.context.send_publish(subject, message).await.map_err(|error| trouble(&error))?;
        let taken = sent.await.map_err(|error| trouble(&error))?;
        let queued = self.records.put(format!("queued.{id}"), taken.sequence.to_string().into()).await;
        queued.map_err(|error| trouble(&error))?;
        Ok(accepted)
    }

    /// Tells idle workers that there is something to do.
    pub async fn wake(&self) {
        // Where this fails, they look by themselves soon.
        let _ = self.context.client().publish(self.subject("wake", "all"), "jobs".into()).await;
        self.flush().await;
    }

    /// The jobs in the order in which they were submitted.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not tell.
    pub async fn submissions(&self) -> Result<Vec<Submitted>, Failure> {
        let mut entries = read(&self.records.stream, &self.key("job.*"), true, 0).await?;
        entries.sort_by_key(|entry| entry.sequence);
        // What a later version submitted is for that version to collect.
        Ok(entries.iter().filter_map(|entry| serde_json::from_slice(&entry.payload).ok()).collect())
    }

    /// How jobs ended, by their ids, from a number on; and the number to ask with next time.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not tell.
    pub async fn ends(&self, from: u64) -> Result<(Vec<(String, End)>, u64), Failure> {
        let entries = read(&self.records.stream, &self.key("end.*"), true, from).await?;
        let next = entries.iter().map(|entry| entry.sequence + 1).max().unwrap_or(from);
        let end = |entry: &crate::read::Entry| {
            Some((entry.key.clone(), serde_json::from_slice(&entry.payload).ok()?))
        };
        Ok((entries.iter().filter_map(end).collect(), next))
    }

    /// The transcript of a job that is over.
    ///
    /// # Errors
    /// `TranscriptGone` where there is none; `NetworkFailed` where NATS does not give it.
    pub async fn transcript(&self, id: &str) -> Result<Transcript, Failure> {
        let mut object = self.files.get(transcript_name(id)).await.map_err(|error| match error.kind() {
            GetErrorKind::NotFound => {
                Failure::new(ErrorCode::TranscriptGone, "The transcript is not in NATS any more.")
                    .remedy("Submit the recording again.")
            }
            _ => failed("give a transcript", &error),
        })?;
        let mut json = Vec::new();
        object.read_to_end(&mut json).await.map_err(|error| failed("give a whole transcript", &error))?;
        Transcript::from_json(&json)
            .map_err(|error| Failure::new(ErrorCode::UnknownFormat, wire::sentence(&error.to_string())))
    }

    /// Removes everything of a job that is over; it can be submitted again.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not do it.
    pub async fn remove(&self, submitted: &Submitted) -> Result<(), Failure> {
        let trouble = |error: &dyn std::fmt::Display| failed("remove a job", error);
        let id = &submitted.id;
        for object in [transcript_name(id), upload_name(id)] {
            // One that is not there is removed.
            let _ = self.files.delete(object).await;
        }
        self.forget_steps(id).await;
        // That it is over goes last: until then, what is left can be removed again.
        for key in ["queued", "note", "job"] {
            self.records.purge(format!("{key}.{id}")).await.map_err(|error| trouble(&error))?;
        }
        self.forget_end(id).await.map_err(|error| trouble(&error))
    }

    pub(crate) async fn submitted(&self, id: &str) -> Result<Option<Submitted>, Failure> {
        let json = self.records.get(format!("job.{id}")).await;
        let json = json.map_err(|error| failed("tell of a job", &error))?;
        Ok(json.and_then(|json| serde_json::from_slice(&json).ok()))
    }

    /// A key's subject in the stream below the bucket.
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.records.prefix)
    }

    async fn forget_end(&self, id: &str) -> Result<(), async_nats::Error> {
        self.log.purge().filter(self.subject("dead", id)).await?;
        self.records.purge(format!("end.{id}")).await?;
        Ok(())
    }

    async fn is_queued(&self, id: &str) -> Result<bool, Failure> {
        let trouble = |error: &dyn std::fmt::Display| failed("tell of a job", error);
        let sequence = self.records.get(format!("queued.{id}")).await.map_err(|error| trouble(&error))?;
        let sequence = sequence.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok());
        let Some(sequence) = sequence else { return Ok(false) };
        match self.jobs.get_raw_message(sequence).await {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => Ok(false),
            Err(error) => Err(trouble(&error)),
        }
    }

    async fn upload(&self, id: &str, local: &Path) -> Result<(), Failure> {
        let mut file = tokio::fs::File::open(local).await.map_err(|error| {
            Failure::new(ErrorCode::FileUnreadable, format!("The file can't be read ({error}).")).file(local)
        })?;
        let meta =
            ObjectMetadata { name: upload_name(id), chunk_size: Some(CHUNK), ..ObjectMetadata::default() };
        let put = self.files.put(meta, &mut file).await;
        put.map(drop).map_err(|error| failed("take the recording", &error).file(local))
    }
}
