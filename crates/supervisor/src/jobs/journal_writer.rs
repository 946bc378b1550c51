//! Writes one job's journal. Whatever goes wrong with it, the job goes on.

use library::{Error, JobKey, Journal, ReachedPoint};
use memory::Mark;
use memory::ladder::LadderState;
use transcript::{Notice, Segment, Severity, Span};
use wire::{Point, Resume};

/// What the journal is told.
#[derive(Debug)]
pub enum Record {
    Begun { attempts: u32, resume: Box<Resume> },
    Prepared { channel: usize, speech: Vec<Span>, log_mel_maximum: f32 },
    Reached { point: Box<Point>, segments: Vec<Segment>, discarded: Vec<Segment> },
    Notice(Notice),
    Ladder(LadderState),
    Mark(Mark),
}

#[derive(Debug, Default)]
pub struct JournalWriter {
    journal: Option<(Journal, JobKey)>,
    /// What is to be written with the next point. A step that could not be
    /// written stays here, so that the one after it has both.
    step: Unwritten,
    /// That the journal fails is said once per job.
    told: bool,
}

#[derive(Debug, Default)]
struct Unwritten {
    point: Option<Box<Point>>,
    segments: Vec<Segment>,
    discarded: Vec<Segment>,
    marks: Vec<Mark>,
}

impl JournalWriter {
    pub fn new(journal: Option<(Journal, JobKey)>) -> Self {
        Self { journal, ..Self::default() }
    }

    /// Returns when the record is on the disk, and what to tell the user where
    /// it could not be written.
    pub async fn record(&mut self, record: Record) -> Option<Notice> {
        let (journal, key) = self.journal.clone()?;
        let result = match record {
            Record::Mark(mark) => {
                self.step.marks.push(mark);
                return None;
            }
            Record::Reached { point, segments, discarded } => {
                let step = &mut self.step;
                step.point = Some(point);
                step.segments.extend(segments);
                step.discarded.extend(discarded);
                return self.write_step(journal, key).await;
            }
            Record::Begun { attempts, resume } => {
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

    async fn write_step(&mut self, journal: Journal, key: JobKey) -> Option<Notice> {
        let step = std::mem::take(&mut self.step);
        let (step, result) = blocking(move || {
            let Some(point) = &step.point else { return (step, Ok(false)) };
            let found = ReachedPoint {
                point,
                segments: &step.segments,
                discarded: &step.discarded,
                marks: &step.marks,
            };
            let result = journal.record_point(key, &found);
            (step, result)
        })
        .await;
        match result {
            Ok(_) => None,
            Err(error) => {
                self.step = step;
                self.complain(&error)
            }
        }
    }

    fn complain(&mut self, error: &Error) -> Option<Notice> {
        if std::mem::replace(&mut self.told, true) {
            return None;
        }
        let text = format!(
            "{} Until then this job can't be resumed should the program be ended; it goes on all the same.",
            error.failure()
        );
        Some(Notice::new("journal.unavailable", Severity::Info, text))
    }
}

/// Off the threads that answer engines: a disk may take its time.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being shut down: nothing awaits the answer.
            Err(_) => std::future::pending().await,
        },
    }
}
