//! What a queue does: its workers, what waits, how long that will take, and what no worker takes.

use std::collections::BTreeMap;

use futures_util::StreamExt;
use memory::bytes::human;
use serde::Serialize;
use wire::Failure;

use crate::connection::{Cluster, failed};
use crate::job::{Kind, from_token, token};
use crate::read::read;
use crate::record::{End, WorkerStatus, now};

/// Jobs that no worker takes are worth a word after so many seconds: a worker may just be starting.
const DUE: u64 = 60;

/// One look at a queue.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// Its name.
    pub queue: String,
    /// Workers that said something in the last half minute, by name.
    pub workers: Vec<WorkerStatus>,
    /// What waits and runs, by model.
    pub models: Vec<ModelQueue>,
    /// Jobs with a transcript.
    pub finished: u64,
    /// Jobs that were given up.
    pub failed: u64,
    /// Seconds of recordings that were transcribed.
    pub recorded: f64,
    /// Jobs per minute that the workers did, all at work; `None` before any finished one.
    pub jobs_per_minute: Option<f64>,
    /// Seconds of recordings per second, all at work.
    pub speed: Option<f64>,
    /// Seconds until the queue is empty at that rate.
    pub left: Option<f64>,
    /// What no worker takes.
    pub unplaced: Vec<Unplaced>,
}

/// The jobs for one model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelQueue {
    /// The model.
    pub model: String,
    /// Jobs that no worker has.
    pub waiting: u64,
    /// Jobs that workers have.
    pub running: u64,
}

/// Jobs that no living worker takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unplaced {
    /// The model that they are for.
    pub model: String,
    /// How many.
    pub waiting: u64,
    /// For how long, in seconds.
    pub seconds: u64,
    /// Bytes that they need at the least; `None`: not known.
    pub needs: Option<u64>,
    /// Workers that have the model, with what is free there: too little.
    pub too_small: Vec<(String, u64)>,
}

impl Unplaced {
    /// Whether they wait for long enough to be told of.
    pub fn is_due(&self) -> bool {
        self.seconds >= DUE
    }

    /// A sentence or two, with what would be needed.
    pub fn text(&self) -> String {
        let jobs =
            if self.waiting == 1 { "1 job waits".into() } else { format!("{} jobs wait", self.waiting) };
        let needs = self.needs.map(|bytes| format!(" It needs {}.", human(bytes))).unwrap_or_default();
        let largest = self.too_small.iter().max_by_key(|(_, free)| *free);
        let why = match largest {
            Some((name, free)) => {
                format!("Of the workers that have it, {name} has the most memory: {}.", human(*free))
            }
            None => "No worker has it installed.".into(),
        };
        format!("{jobs} for the model {}, which no worker can run.{needs} {why}", self.model)
    }
}

impl Cluster {
    /// Workers that said something in the last half minute, by name.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not tell.
    pub async fn workers(&self) -> Result<Vec<WorkerStatus>, Failure> {
        let entries = read(&self.workers.stream, &format!("{}>", self.workers.prefix), true, 0).await?;
        let status = |entry: &crate::read::Entry| serde_json::from_slice(&entry.payload).ok();
        let mut workers: Vec<WorkerStatus> = entries.iter().filter_map(status).collect();
        workers.sort_by(|a, b| (&a.name, a.pid).cmp(&(&b.name, b.pid)));
        Ok(workers)
    }

    /// One look at everything.
    ///
    /// # Errors
    /// `NetworkFailed` where NATS does not tell.
    pub async fn overview(&self) -> Result<Overview, Failure> {
        let workers = self.workers().await?;
        let models = self.model_queues().await?;
        let (ends, _) = self.ends(0).await?;
        let ends: Vec<End> = ends.into_iter().map(|(_, end)| end).collect();
        let failed = ends.iter().filter(|end| end.failure.is_some()).count() as u64;
        let unplaced = self.unplaced(&workers, &models).await?;
        let rate = rate(&workers);
        let open: u64 = models.iter().map(|model| model.waiting + model.running).sum();
        let speeds: Vec<f64> = workers.iter().filter_map(WorkerStatus::speed).collect();
        Ok(Overview {
            queue: self.queue.clone(),
            finished: ends.len() as u64 - failed,
            failed,
            recorded: ends.iter().map(|end| end.duration.seconds()).sum(),
            jobs_per_minute: rate.map(|rate| rate * 60.0),
            speed: (!speeds.is_empty()).then(|| speeds.iter().sum()),
            left: rate.map(|rate| open as f64 / rate),
            workers,
            models,
            unplaced,
        })
    }

    async fn model_queues(&self) -> Result<Vec<ModelQueue>, Failure> {
        let trouble = |error: &dyn std::fmt::Display| failed("tell what waits", error);
        let mut queues: BTreeMap<String, ModelQueue> = BTreeMap::new();
        for kind in Kind::ALL {
            let filter = self.subject(kind.subject(), "*");
            let mut subjects =
                self.jobs.info_with_subjects(&filter).await.map_err(|error| trouble(&error))?;
            while let Some(subject) = subjects.next().await {
                let (subject, count) = subject.map_err(|error| trouble(&error))?;
                let model = from_token(subject.rsplit('.').next().unwrap_or_default());
                // Without a worker there was none to take jobs.
                let taken = self.jobs.consumer_info(kind.consumer(&model)).await;
                let running = taken.map_or(0, |info| info.num_ack_pending as u64).min(count as u64);
                let queue =
                    queues.entry(model.clone()).or_insert(ModelQueue { model, waiting: 0, running: 0 });
                queue.waiting += count as u64 - running;
                queue.running += running;
            }
        }
        Ok(queues.into_values().collect())
    }

    /// What no living worker takes, whether or not that is due.
    async fn unplaced(
        &self,
        workers: &[WorkerStatus],
        models: &[ModelQueue],
    ) -> Result<Vec<Unplaced>, Failure> {
        let mut unplaced = Vec::new();
        for queue in models.iter().filter(|queue| queue.waiting > 0) {
            let offers = |fits: bool| {
                workers.iter().filter(move |worker| {
                    worker.models.iter().any(|offer| offer.model == queue.model && offer.fits == fits)
                })
            };
            if offers(true).next().is_some() {
                continue;
            }
            let mut oldest = None;
            for kind in Kind::ALL {
                let subject = self.subject(kind.subject(), &token(&queue.model));
                // One that is gone meanwhile was taken.
                let first = self.jobs.get_first_raw_message_by_subject(&subject, 1).await.ok();
                oldest = oldest.or(first);
            }
            let Some(first) = oldest else { continue };
            let submitted = self.submitted(&String::from_utf8_lossy(&first.payload)).await?;
            let since = u64::try_from(first.time.unix_timestamp()).unwrap_or(0);
            let known = workers.iter().flat_map(|worker| &worker.models);
            let measured = known.filter(|offer| offer.model == queue.model).map(|offer| offer.needs).max();
            unplaced.push(Unplaced {
                model: queue.model.clone(),
                waiting: queue.waiting,
                seconds: now().saturating_sub(since),
                needs: measured.or_else(|| submitted.and_then(|submitted| submitted.needs)),
                too_small: offers(false).map(|worker| (worker.name.clone(), worker.free)).collect(),
            });
        }
        Ok(unplaced)
    }
}

/// Jobs per second, all workers at work; those that finished none yet are taken for as fast as the others.
fn rate(workers: &[WorkerStatus]) -> Option<f64> {
    let rates: Vec<f64> = workers
        .iter()
        .filter(|worker| worker.finished > 0 && worker.worked > 0.0)
        .map(|worker| worker.finished as f64 / worker.worked)
        .collect();
    let sum: f64 = rates.iter().sum();
    (!rates.is_empty()).then(|| sum / rates.len() as f64 * workers.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_worker_takes_is_told_after_a_minute_with_what_it_needs() {
        let unplaced = |seconds, needs, too_small: &[(&str, u64)]| Unplaced {
            model: "large-v3".into(),
            waiting: 3,
            seconds,
            needs,
            too_small: too_small.iter().map(|(name, free)| ((*name).to_owned(), *free)).collect(),
        };
        assert!(!unplaced(59, None, &[]).is_due() && unplaced(60, None, &[]).is_due());
        assert_eq!(
            unplaced(60, Some(4 << 30), &[("a", 1 << 30), ("b", 2 << 30)]).text(),
            "3 jobs wait for the model large-v3, which no worker can run. It needs 4.0 GB. Of the workers that have \
             it, b has the most memory: 2.0 GB."
        );
        assert!(unplaced(60, None, &[]).text().ends_with("can run. No worker has it installed."));
    }

    #[test]
    fn the_rate_counts_workers_that_have_just_begun() {
        let worker = |finished, worked| WorkerStatus {
            name: "a".into(),
            pid: 1,
            device: "the CPU".into(),
            free: 0,
            total: 0,
            models: Vec::new(),
            finished,
            recorded: 60.0,
            worked,
            started: 0,
            job: None,
        };
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[worker(0, 0.0)]), None);
        assert_eq!(rate(&[worker(4, 2.0), worker(0, 0.0)]), Some(4.0));
    }
}
