//! Watches one device over the jobs of a process: reads it at every checkpoint,
//! updates the ledger with what is measured, and gives notices of what is wrong.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::advice::{Situation, occupied, pressure_notice};
use crate::budget::Budget;
use crate::notice::{Message, Notice};
use crate::probe::{Device, DeviceError, Ours, Reading};
use crate::{Checkpoint, Levels, Pressure, Sample, Stage, Timeline, signs};

/// Watches one device. Clones share one state. Checkpoints are taken by the thread
/// that owns the device; any thread may ask for the timeline.
#[derive(Debug, Clone)]
pub struct Tracker {
    inner: Arc<Inner>,
}

/// A new entry of the timeline, as the sink of a [`Tracker`] receives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// A reading at a checkpoint.
    Sample(Sample),
    /// Something the user should know.
    Notice(Notice),
}

impl Mark {
    /// As in the job's memory log.
    pub fn line(&self) -> String {
        match self {
            Self::Sample(sample) => crate::log::sample_line(sample),
            Self::Notice(notice) => crate::log::notice_line(notice),
        }
    }
}

type Sink = Box<dyn Fn(&Mark) + Send + Sync>;

/// Why the process should be replaced before the next file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Renewal {
    /// The device did not synchronise or trim.
    ReleaseFailed,
    /// Memory in use grew from file to file.
    Leak,
    /// Not cured by a trim.
    Fragmentation,
    /// The device failed, and can't be used any more in this process.
    DeviceLost,
}

struct Inner {
    device: Box<dyn Device>,
    budget: Budget,
    /// Held before anything was reserved, bytes.
    baseline: u64,
    sink: Option<Sink>,
    state: Mutex<TrackerState>,
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker").field("device", &self.device).field("budget", &self.budget).finish()
    }
}

#[derive(Debug)]
struct TrackerState {
    started: Instant,
    timeline: Timeline,
    situation: Situation,
    pressure: Pressure,
    open: Vec<Open>,
    next_id: u64,
    /// Reserved and allocated after each file, without what was kept on purpose.
    after_files: (Vec<u64>, Vec<u64>),
    renewal: Option<Renewal>,
}

/// A scope that was entered and not left.
#[derive(Debug)]
struct Open {
    id: u64,
    before: Option<Ours>,
    /// Highest bytes reserved since.
    high: u64,
    /// Growth by the time it had loaded what it came for: what is legitimately
    /// still held when a scope around it ends.
    kept: Option<Ours>,
}

/// What a scope measured, for the verification of its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Account {
    pub before: Ours,
    pub high: u64,
    /// Held by scopes that were entered later and are still open.
    pub kept: Ours,
}

impl Tracker {
    /// Watches `device`.
    pub fn new(device: impl Device + 'static) -> Self {
        Self::build(Box::new(device), None)
    }

    /// `sink` is called with every mark, on the thread that caused it; it must
    /// be quick.
    pub fn with_sink(device: impl Device + 'static, sink: impl Fn(&Mark) + Send + Sync + 'static) -> Self {
        Self::build(Box::new(device), Some(Box::new(sink)))
    }

    fn build(device: Box<dyn Device>, sink: Option<Sink>) -> Self {
        let reading = device.read().ok();
        // Where the size of the device is unknown, nothing is refused.
        let budget = Budget::new(device.kind(), reading.map_or(u64::MAX, |reading| reading.total));
        let baseline = reading.and_then(|reading| reading.ours).map_or(0, |ours| ours.allocated);
        if let Some(reading) = reading {
            budget.update(&reading, baseline);
        }
        let state = TrackerState {
            started: Instant::now(),
            timeline: Timeline::default(),
            situation: Situation::default(),
            pressure: Pressure::Normal,
            open: Vec::new(),
            next_id: 0,
            after_files: (Vec::new(), Vec::new()),
            renewal: None,
        };
        Self { inner: Arc::new(Inner { device, budget, baseline, sink, state: Mutex::new(state) }) }
    }

    /// The device that is watched.
    pub fn device(&self) -> &dyn Device {
        self.inner.device.as_ref()
    }

    /// The ledger, for reservations outside of any scope.
    pub fn budget(&self) -> &Budget {
        &self.inner.budget
    }

    /// Sets what advice may name, e.g. the batch in force.
    pub fn set_situation(&self, situation: Situation) {
        self.state().situation = situation;
    }

    /// Starts a job with a new timeline. Where over [`crate::OCCUPIED_SHARE`] is in
    /// use before anything is loaded, a notice says who holds it.
    pub fn begin_job(&self) -> Sample {
        let kept = {
            let mut state = self.state();
            state.started = Instant::now();
            state.timeline = Timeline::default();
            state.pressure = Pressure::Normal;
            state.kept_after(None)
        };
        let (sample, reading) = self.look(Checkpoint::PipelineStart, None);
        if let Some(notice) = reading.and_then(|reading| {
            occupied(self.device().kind(), &reading, kept.reserved, || self.device().processes())
        }) {
            self.notice(notice);
        }
        sample
    }

    /// Ends a job: synchronises, trims, takes the last checkpoints and hands
    /// over the timeline. Growth over the last files is reported as a leak.
    pub fn end_job(&self) -> Timeline {
        self.look(Checkpoint::BeforeFinalCleanup, None);
        if let Err(error) = self.release() {
            self.release_failed(&error, None);
        }
        let (_, reading) = self.look(Checkpoint::FinalCleanup, None);
        let mut found = Vec::new();
        if let Some(ours) = reading.and_then(|reading| reading.ours) {
            let mut state = self.state();
            let kept = state.kept_after(None);
            state.after_files.0.push(ours.reserved.saturating_sub(kept.reserved));
            state.after_files.1.push(ours.allocated.saturating_sub(kept.allocated));
            if let Some(leak) = signs::leak(&state.after_files.0) {
                // Growth of what is reserved alone is not a leak.
                let allocated = signs::leak(&state.after_files.1).is_some();
                state.renewal = Some(if allocated { Renewal::Leak } else { Renewal::Fragmentation });
                found.push(match allocated {
                    true => leak,
                    false => {
                        signs::Sign::Fragmentation { allocated: ours.allocated, reserved: ours.reserved }
                    }
                });
                // One notice per leak: growth is counted from here on.
                state.after_files = (Vec::new(), Vec::new());
            }
            found.extend(state.timeline.signs());
            found.dedup_by_key(|sign| std::mem::discriminant(sign));
        }
        for sign in found {
            if matches!(sign, signs::Sign::Fragmentation { .. }) {
                self.state().renewal.get_or_insert(Renewal::Fragmentation);
            }
            self.notice_once(sign.notice());
        }
        std::mem::take(&mut self.state().timeline)
    }

    /// Takes a sample.
    pub fn checkpoint(&self, checkpoint: Checkpoint) -> Sample {
        self.look(checkpoint, None).0
    }

    /// Releases all unused memory after an allocation failed, so that the same work
    /// can be tried once more.
    ///
    /// # Errors
    ///
    /// Fails where the device does not synchronise or trim; the process should then be renewed.
    pub fn recover(&self) -> Result<Sample, DeviceError> {
        self.look(Checkpoint::BeforeRecovery, None);
        let released = self.release();
        let (sample, _) = self.look(Checkpoint::AfterRecovery, None);
        match released {
            Ok(()) => Ok(sample),
            Err(error) => {
                self.release_failed(&error, None);
                Err(error)
            }
        }
    }

    /// Records that an allocation of `asked` bytes failed. Where that much was free,
    /// the cause is fragmentation, and the process should be renewed.
    pub fn allocation_failed(&self, asked: u64) {
        let Ok(reading) = self.device().read() else { return };
        let free = reading.free.saturating_add(reading.ours.map_or(0, |ours| ours.slack()));
        if let Some(sign) = signs::failed_with_enough_free(asked, free) {
            self.state().renewal.get_or_insert(Renewal::Fragmentation);
            self.notice(sign.notice());
        }
    }

    /// Adds to the timeline's notices and tells the sink.
    pub fn notice(&self, notice: Notice) {
        self.state().timeline.notices.push(notice.clone());
        self.tell(Mark::Notice(notice));
    }

    /// As [`Self::notice`], unless this job already has one of that code.
    fn notice_once(&self, notice: Notice) {
        if !self.state().timeline.notices.iter().any(|known| known.code == notice.code) {
            self.notice(notice);
        }
    }

    /// The timeline so far.
    pub fn timeline(&self) -> Timeline {
        self.state().timeline.clone()
    }

    /// Whether this process should be replaced before the next file, and why.
    pub fn renewal(&self) -> Option<Renewal> {
        self.state().renewal
    }

    pub(crate) fn look(&self, checkpoint: Checkpoint, batch: Option<u32>) -> (Sample, Option<Reading>) {
        let device = self.device();
        let read = device.read();
        device.reset_peak();
        if let Ok(reading) = &read {
            self.inner.budget.update(reading, self.inner.baseline);
        }
        let mut state = self.state();
        let levels = read.as_ref().ok().map(|reading| Levels::from(*reading));
        let sample = Sample {
            checkpoint,
            batch,
            at_ms: u64::try_from(state.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            kind: device.kind(),
            levels,
            reason: read.as_ref().err().map(|unavailable| unavailable.reason.clone()),
        };
        state.timeline.samples.push(sample.clone());
        let mut rising = None;
        if let Some(levels) = levels {
            for open in &mut state.open {
                open.high = open.high.max(levels.peak);
            }
            let pressure = Pressure::of(levels.share);
            if pressure > state.pressure {
                rising = Some((levels, state.situation.clone()));
            }
            state.pressure = pressure;
        }
        drop(state);
        self.tell(Mark::Sample(sample.clone()));
        if let Some((levels, situation)) = rising {
            self.notice_once(pressure_notice(device.kind(), &levels, &situation));
        }
        if let Err(unavailable) = &read {
            self.notice_once(Message::Unavailable { detail: unavailable.reason.clone() }.into());
        }
        (sample, read.ok())
    }

    pub(crate) fn release(&self) -> Result<(), DeviceError> {
        self.device().synchronise()?;
        self.device().trim()
    }

    pub(crate) fn release_failed(&self, error: &DeviceError, stage: Option<Stage>) {
        self.state().renewal = Some(Renewal::ReleaseFailed);
        self.notice(Message::ReleaseFailed { stage, detail: error.to_string() }.into());
    }

    pub(crate) fn needs_renewal(&self, renewal: Renewal) {
        self.state().renewal.get_or_insert(renewal);
    }

    /// Registers a scope; `before` is what was held when it was entered.
    pub(crate) fn open(&self, before: Option<Ours>) -> u64 {
        let mut state = self.state();
        let id = state.next_id;
        state.next_id += 1;
        let high = before.map_or(0, |ours| ours.reserved);
        state.open.push(Open { id, before, high, kept: None });
        id
    }

    /// Notes what a scope has loaded: from now on that is held on purpose.
    pub(crate) fn loaded(&self, id: u64, now: Option<Ours>) {
        let mut state = self.state();
        if let Some(open) = state.open.iter_mut().find(|open| open.id == id)
            && let (Some(before), Some(now)) = (open.before, now)
        {
            open.kept = Some(Ours {
                allocated: now.allocated.saturating_sub(before.allocated),
                reserved: now.reserved.saturating_sub(before.reserved),
                ..Ours::default()
            });
        }
    }

    /// Forgets a scope and returns its account.
    pub(crate) fn close(&self, id: u64) -> Option<Account> {
        let mut state = self.state();
        let index = state.open.iter().position(|open| open.id == id)?;
        let open = state.open.remove(index);
        let kept = state.kept_after(Some(id));
        Some(Account { before: open.before?, high: open.high, kept })
    }

    fn tell(&self, mark: Mark) {
        if let Some(sink) = &self.inner.sink {
            sink(&mark);
        }
    }

    fn state(&self) -> MutexGuard<'_, TrackerState> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TrackerState {
    /// What the open scopes hold on purpose: all, or those entered after `id`.
    fn kept_after(&self, id: Option<u64>) -> Ours {
        let later = self.open.iter().filter(|open| id.is_none_or(|id| open.id > id));
        later.filter_map(|open| open.kept).fold(Ours::default(), |sum, kept| Ours {
            allocated: sum.allocated + kept.allocated,
            reserved: sum.reserved + kept.reserved,
            ..sum
        })
    }
}
