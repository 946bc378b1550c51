use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;

/// Speed is averaged over this time.
const REMEMBERED: Duration = Duration::from_secs(5);
/// Progress is reported at most this often.
const INTERVAL: Duration = Duration::from_millis(100);

/// What a download or import is doing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub enum TransferStage {
    /// Asking the server which files there are, and how large.
    #[default]
    Look,
    /// Files arrive from the network.
    Download,
    /// Files are copied from elsewhere on this machine.
    Copy,
    /// Between two attempts, or paused.
    Wait,
    /// Checksums are compared with what was promised.
    Verify,
    /// The model is put into the store.
    Install,
    /// The model is in the store.
    Installed,
}

/// Where a model's download stands. Bytes are those of all of its files.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct TransferProgress {
    /// What is being done.
    pub stage: TransferStage,
    /// The file at work.
    pub file: Option<String>,
    /// Bytes that are there.
    pub done: u64,
    /// Bytes in all; 0 while that is not known.
    pub total: u64,
    /// Bytes per second.
    pub speed: Option<f64>,
    /// Seconds until the last byte.
    pub left: Option<f64>,
    /// While waiting: why, in a sentence, and for how many seconds.
    pub why: Option<String>,
    /// Seconds until the next attempt.
    pub wait: Option<f64>,
}

/// Turns bytes into progress.
pub(crate) struct Meter<'a> {
    on_progress: &'a mut (dyn FnMut(TransferProgress) + Send),
    pub progress: TransferProgress,
    marks: VecDeque<(Instant, u64)>,
    told: Option<Instant>,
}

impl<'a> Meter<'a> {
    pub fn new(on_progress: &'a mut (dyn FnMut(TransferProgress) + Send)) -> Self {
        Self { on_progress, progress: TransferProgress::default(), marks: VecDeque::new(), told: None }
    }

    /// Begins another stage, which is reported at once.
    pub fn stage(&mut self, stage: TransferStage, file: Option<&str>) {
        let changes = self.progress.stage != stage || self.progress.file.as_deref() != file;
        self.progress.stage = stage;
        self.progress.file = file.map(str::to_owned);
        (self.progress.why, self.progress.wait) = (None, None);
        if changes {
            self.tell();
        }
    }

    pub fn wait(&mut self, why: &str, wait: Duration) {
        self.progress.stage = TransferStage::Wait;
        (self.progress.why, self.progress.wait) = (Some(why.to_owned()), Some(wait.as_secs_f64()));
        (self.progress.speed, self.progress.left) = (None, None);
        self.marks.clear();
        self.tell();
    }

    /// Counts bytes that have just arrived.
    pub fn add(&mut self, bytes: u64) {
        let now = Instant::now();
        self.progress.done += bytes;
        self.marks.push_back((now, self.progress.done));
        while self.marks.front().is_some_and(|(at, _)| now.duration_since(*at) > REMEMBERED) {
            self.marks.pop_front();
        }
        if self.told.is_none_or(|told| now.duration_since(told) >= INTERVAL) {
            self.measure(now);
            self.tell();
        }
    }

    /// Uncounts bytes that were discarded.
    pub fn take_back(&mut self, bytes: u64) {
        self.progress.done = self.progress.done.saturating_sub(bytes);
        self.marks.clear();
    }

    fn measure(&mut self, now: Instant) {
        let Some((since, before)) = self.marks.front() else { return };
        let seconds = now.duration_since(*since).as_secs_f64();
        if seconds < 0.2 {
            return;
        }
        let speed = self.progress.done.saturating_sub(*before) as f64 / seconds;
        self.progress.speed = Some(speed);
        let left = self.progress.total.saturating_sub(self.progress.done) as f64;
        self.progress.left = (speed > 0.0).then_some(left / speed);
    }

    fn tell(&mut self) {
        self.told = Some(Instant::now());
        (self.on_progress)(self.progress.clone());
    }
}
