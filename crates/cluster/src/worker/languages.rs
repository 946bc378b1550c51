//! Recordings of which only the language is wanted: several together, since most of the time of one goes into the
//! engine's start and the model's first window.

use async_nats::jetstream;
use tokio::sync::watch;
use wire::{Event, Failure, FilePath};

use super::one::Taken;
use super::runner::{Runner, raised};
use super::{Told, Worker};
use crate::record::End;
use crate::source::Fetched;

/// The share of the free memory that a batch may take, where the user set none.
const MEMORY_FRACTION: f64 = 0.125;
/// Less likely languages are not kept.
const MOST_KEPT: usize = 3;

impl<R: Runner> Worker<R> {
    /// One answer or failure per job. One that a worker failed on before is asked for alone, since it may be at fault.
    pub(super) async fn languages(
        &self,
        model: &str,
        messages: Vec<jetstream::Message>,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let (mut together, mut alone) = (Vec::new(), Vec::new());
        for message in messages {
            match self.take(message, stop, tell).await {
                Some(taken) if taken.delivered > 1 => alone.push(taken),
                Some(taken) => together.push(taken),
                None => {}
            }
        }
        if !together.is_empty() {
            self.detect(model, together, stop, tell).await;
        }
        for taken in alone {
            self.detect(model, vec![taken], stop, tell).await;
        }
    }

    async fn detect(
        &self,
        model: &str,
        jobs: Vec<Taken>,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        let mut open: Vec<(Taken, Fetched)> = Vec::new();
        for taken in jobs {
            let mut stopped = stop.clone();
            let fetched = tokio::select! {
                fetched = self.cluster.fetch(&taken.submitted, &self.spool, &self.options.ssh) => fetched,
                () = raised(&mut stopped) => {
                    self.hand_back(taken, stop, tell).await;
                    continue;
                }
            };
            match fetched {
                Ok(fetched) => {
                    tell(Told::Began { name: taken.name(), resumed_at: None });
                    open.push((taken, fetched));
                }
                Err(failure) => self.failed(taken, failure, stop, tell).await,
            }
        }
        let Some((first, fetched)) = open.first() else { return };
        let job = self.job(&first.submitted, model, fetched.file.as_path().into());
        let mut job = match job {
            Ok(job) => job,
            Err(failure) => return self.all_failed(open, &failure, stop, tell).await,
        };
        job.memory.memory_fraction.get_or_insert(MEMORY_FRACTION);
        let files: Vec<FilePath> = open.iter().map(|(_, fetched)| fetched.file.as_path().into()).collect();
        let (answers, failure) = self.runner.detect(job, files, stop.clone()).await;
        for answer in answers {
            let (file, found) = match answer {
                Event::Language { file, probabilities } => (file, Ok(probabilities)),
                Event::FileFailed { file, error } => (file, Err(error)),
                _ => continue,
            };
            let Some(index) = open.iter().position(|(_, fetched)| fetched.file == file.0) else { continue };
            let (taken, fetched) = open.swap_remove(index);
            match found {
                Ok(mut languages) => {
                    languages.sort_by(|a, b| b.1.total_cmp(&a.1));
                    languages.truncate(MOST_KEPT);
                    let end = End { languages, ..self.end_of(&taken) };
                    self.finished(taken, end, None, stop, tell).await;
                }
                Err(failure) => self.failed(taken, failure, stop, tell).await,
            }
            drop(fetched);
        }
        if *stop.borrow() {
            for (taken, _) in open {
                self.hand_back(taken, stop, tell).await;
            }
        } else if let Some(failure) = failure {
            self.all_failed(open, &failure, stop, tell).await;
        }
    }

    async fn all_failed(
        &self,
        open: Vec<(Taken, Fetched)>,
        failure: &Failure,
        stop: &watch::Receiver<bool>,
        tell: &(impl Fn(Told) + Send + Sync),
    ) {
        for (taken, _) in open {
            self.failed(taken, failure.clone(), stop, tell).await;
        }
    }
}
