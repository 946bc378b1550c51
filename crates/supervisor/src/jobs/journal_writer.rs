//! Writes one job's journal. A journal that can't be written never fails the job.

use library::{Error, JobKey, Journal, ReachedPoint};
use memory::Mark;
use memory::ladder::LadderState;
use transcript::{Notice, Span};
use wire::notice::Message;
use wire::{Job, Resume};

use crate::progress::JobProgress;

/// What the journal is told.
#[derive(Debug)]
pub enum Record {
    Begun {
        attempts: u32,
        ladder: Option<LadderState>,
        skip: Vec<u64>,
    },
    Prepared {
        channel: usize,
        speech: Vec<Span>,
        log_mel_maximum: f32,
    },
    /// The progress has a new point.
    Reached,
    Notice(Notice),
    Ladder(LadderState),
    Mark(Mark),
}

#[derive(Debug)]
pub struct JournalWriter {
    journal: Option<(Journal, JobKey)>,
    written: Written,
    /// To be written with the next point.
    marks: Vec<Mark>,
    /// That the journal fails is said once per job.
    complained: bool,
}

/// How much of the progress the journal has: what comes after that is written
/// with the next point, so that a point that could not be written is made up
/// for by the one after it.
#[derive(Debug, Clone, Copy)]
struct Written {
    segments: usize,
    discarded: usize,
}

impl JournalWriter {
    /// For a job whose `resume`, if it has one, is in the journal already.
    pub fn new(journal: Option<(Journal, JobKey)>, job: &Job) -> Self {
        let written = job.resume.as_ref().map_or(Written { segments: 0, discarded: 0 }, |resume| Written {
            segments: resume.segments.len(),
            discarded: resume.discarded.len(),
        });
        Self { journal, written, marks: Vec::new(), complained: false }
    }

    /// Returns when the record is on the disk, and what to tell the user where
    /// it could not be written. Of the text, what is written is what `progress`
    /// has before its point.
    pub async fn record(&mut self, record: Record, progress: &JobProgress) -> Option<Notice> {
        let (journal, key) = self.journal.clone()?;
        let result = match record {
            Record::Mark(mark) => {
                self.marks.push(mark);
                return None;
            }
            Record::Reached => self.write_point(journal, key, progress).await,
            Record::Begun { attempts, ladder, skip } => {
                let resume = Resume { ladder, skip, ..Resume::default() };
                blocking(move || journal.begin_attempt(key, attempts, &resume)).await
            }
            Record::Prepared { channel, speech, log_mel_maximum } => {
                blocking(move || journal.record_channel(key, channel, &speech, log_mel_maximum)).await
            }
            Record::Notice(notice) => blocking(move || journal.add_notice(key, &notice)).await,
            Record::Ladder(state) => blocking(move || journal.set_ladder(key, &state)).await,
        };
        result.err().and_then(|error| self.complain(&error))
    }

    /// Which model the job goes on with was decided.
    pub async fn settle(&mut self, job: &Job) -> Option<Notice> {
        let ((journal, key), job) = (self.journal.clone()?, job.clone());
        let result = blocking(move || journal.set_model(key, &job)).await;
        result.err().and_then(|error| self.complain(&error))
    }

    async fn write_point(
        &mut self,
        journal: Journal,
        key: JobKey,
        progress: &JobProgress,
    ) -> Result<(), Error> {
        let Some(point) = progress.point().cloned() else { return Ok(()) };
        let segments = progress.reached_segments(self.written.segments);
        let discarded = progress.discarded().get(self.written.discarded..).unwrap_or_default().to_vec();
        let marks = std::mem::take(&mut self.marks);
        let (marks, result) = blocking(move || {
            let step =
                ReachedPoint { point: &point, segments: &segments, discarded: &discarded, marks: &marks };
            let result = journal.record_point(key, &step);
            (marks, result)
        })
        .await;
        match result {
            Ok(_) => {
                let (segments, discarded) = (progress.reached(), progress.discarded().len());
                self.written = Written { segments, discarded };
                Ok(())
            }
            Err(error) => {
                self.marks = marks;
                Err(error)
            }
        }
    }

    fn complain(&mut self, error: &Error) -> Option<Notice> {
        if std::mem::replace(&mut self.complained, true) {
            return None;
        }
        Some(Message::JournalUnavailable { detail: error.failure().to_string() }.into())
    }
}

/// Off the threads that answer engines: a disk may take its time.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down: nothing awaits the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
