//! What the engine reported of a job's memory, to be shown during the job and afterwards.

use memory::{Checkpoint, Code, DeviceKind, Parts, Sample, StageUse, stage_uses};
use transcript::Notice;
use wire::{Job, JobId};

use advisor::fit::expects_gpu;
use advisor::model_info;

/// Samples of one job, over all the engines that it took; their times grow.
#[derive(Debug, Clone, Default)]
pub struct JobMemory {
    pub forecast: Option<Forecast>,
    samples: Vec<Sample>,
    notices: Vec<SeenNotice>,
    /// Added to the times of a device's samples, milliseconds: each engine
    /// counts from its own beginning.
    shift: [u64; 2],
    /// Grows where the samples are begun anew.
    generation: u64,
}

/// What was predicted before the job began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forecast {
    /// Where the job is expected to compute.
    pub kind: DeviceKind,
    /// What each purpose takes at the peak.
    pub parts: Parts,
}

/// A notice, and when it was given.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenNotice {
    /// Milliseconds since the job began.
    pub at_ms: u64,
    /// The notice.
    pub notice: Notice,
}

/// How much a follower knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    generation: u64,
    samples: usize,
    notices: usize,
    forecast: bool,
}

/// What is new: the samples from index `from` on are now `samples`. The rest
/// is told whole.
#[derive(Debug, Clone)]
pub struct MemoryChange {
    /// The job.
    pub id: JobId,
    /// Index of the first new sample.
    pub from: usize,
    /// The new samples.
    pub samples: Vec<Sample>,
    /// All notices.
    pub notices: Vec<SeenNotice>,
    /// What each stage took and gave back.
    pub stages: Vec<StageUse>,
    /// What was predicted.
    pub forecast: Option<Forecast>,
    /// What is known to the follower with this change.
    pub now: Known,
}

impl Forecast {
    /// `None` for a model that can't be read: the job says so.
    pub fn of(job: &Job) -> Option<Self> {
        let network = model_info::read(job.model.as_path()).ok()?;
        let kind = if expects_gpu(job.device) { DeviceKind::Gpu } else { DeviceKind::Host };
        let precision = job.precision.unwrap_or_else(|| network.usual(kind));
        // The window's jobs work on one window after the other.
        Some(Self { kind, parts: model_info::footprint(&network, kind, precision, job).parts(1) })
    }
}

impl JobMemory {
    pub fn add(&mut self, mut sample: Sample) {
        let latest = self.samples.last().map_or(0, |sample| sample.at_ms);
        let shift = &mut self.shift[usize::from(sample.kind == DeviceKind::Host)];
        if sample.checkpoint == Checkpoint::PipelineStart {
            *shift = latest;
        }
        sample.at_ms = (sample.at_ms + *shift).max(latest);
        self.samples.push(sample);
    }

    /// Keeps a notice of the job that is about memory, and no other.
    pub fn hear(&mut self, notice: &Notice) {
        if Code::from_code(&notice.code).is_some() {
            let at_ms = self.samples.last().map_or(0, |sample| sample.at_ms);
            self.notices.push(SeenNotice { at_ms, notice: notice.clone() });
        }
    }

    pub fn clear(&mut self) {
        *self = Self { generation: self.generation + 1, ..Self::default() };
    }

    pub fn since(&self, id: JobId, known: Known) -> Option<MemoryChange> {
        let now = Known {
            generation: self.generation,
            samples: self.samples.len(),
            notices: self.notices.len(),
            forecast: self.forecast.is_some(),
        };
        if now == known {
            return None;
        }
        let from = if now.generation == known.generation { known.samples } else { 0 };
        Some(MemoryChange {
            id,
            from,
            samples: self.samples[from..].to_vec(),
            notices: self.notices.clone(),
            stages: stage_uses(&self.samples),
            forecast: self.forecast,
            now,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use memory::Levels;
    use transcript::Severity;

    fn sample(checkpoint: Checkpoint, kind: DeviceKind, at_ms: u64) -> Sample {
        let levels = Some(Levels::default());
        Sample { checkpoint, batch: None, at_ms, kind, levels, reason: None }
    }

    fn times(change: &MemoryChange) -> Vec<u64> {
        change.samples.iter().map(|sample| sample.at_ms).collect()
    }

    #[test]
    fn time_goes_on_where_another_engine_does() {
        let mut memory = JobMemory::default();
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Gpu, 0));
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Host, 1));
        memory.add(sample(Checkpoint::Batch, DeviceKind::Gpu, 900));
        let text = "It was renewed.";
        memory.hear(&Notice::new("memory.engine_renewed", Severity::Info, text));
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Gpu, 0));
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Host, 2));
        memory.add(sample(Checkpoint::Batch, DeviceKind::Gpu, 50));
        memory.add(sample(Checkpoint::FinalCleanup, DeviceKind::Host, 70));
        let change = memory.since(1, Known::default()).unwrap();
        assert_eq!(times(&change), [0, 1, 900, 900, 902, 950, 970]);
        assert_eq!(change.notices[0].at_ms, 900);
    }

    #[test]
    fn steps_and_signs_are_kept_once_each() {
        let mut memory = JobMemory::default();
        let sign = "Usage is critical.";
        let heard = |code, text: &str| Notice::new(code, Severity::Degraded, text);
        memory.hear(&Notice::new("memory.critical", Severity::Info, sign));
        memory.hear(&heard("memory.precision_lowered", "In 8 bits."));
        memory.hear(&heard("audio.truncated", "It is cut off."));
        let change = memory.since(1, Known::default()).unwrap();
        let codes: Vec<&str> = change.notices.iter().map(|seen| seen.notice.code.as_str()).collect();
        assert_eq!(codes, ["memory.critical", "memory.precision_lowered"]);
        assert_eq!(change.notices[1].notice.severity, Severity::Degraded);
    }

    #[test]
    fn only_what_is_new_is_told_and_all_of_it_after_a_retry() {
        let mut memory = JobMemory::default();
        assert!(memory.since(1, Known::default()).is_none());
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Host, 0));
        let first = memory.since(1, Known::default()).unwrap();
        memory.add(sample(Checkpoint::Batch, DeviceKind::Host, 5));
        let second = memory.since(1, first.now).unwrap();
        assert_eq!((second.from, times(&second)), (1, vec![5]));
        assert!(memory.since(1, second.now).is_none());
        memory.clear();
        memory.add(sample(Checkpoint::PipelineStart, DeviceKind::Host, 3));
        memory.add(sample(Checkpoint::Batch, DeviceKind::Host, 9));
        let third = memory.since(1, second.now).unwrap();
        assert_eq!((third.from, third.samples.len()), (0, 2));
    }
}
