//! The scope of a stage on a device. Entering it reads memory and reserves what
//! the stage will need; leaving it frees, synchronises, trims, reads memory again
//! and verifies that what was taken came back, also when the stage ends with an
//! error, a cancellation or a panic.

use std::time::Instant;

use crate::budget::{Refused, Reservation};
use crate::notice::{Message, Notice};
use crate::probe::{DeviceError, Reading};
use crate::signs;
use crate::tracker::{Account, Renewal, Tracker};
use crate::{Checkpoint, Sample, Stage};

/// Share of what a stage took that must be free again after it.
pub const RECOVERED_SHARE: f64 = 0.95;

/// The memory that a stage will need.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Demand {
    /// What for, e.g. a model's name; empty where the stage's name suffices.
    pub what: String,
    /// Predicted peak, in bytes.
    pub bytes: u64,
}

impl Demand {
    /// A demand of `bytes` for `what`.
    pub fn new(what: impl Into<String>, bytes: u64) -> Self {
        Self { what: what.into(), bytes }
    }
}

impl From<u64> for Demand {
    fn from(bytes: u64) -> Self {
        Self { what: String::new(), bytes }
    }
}

/// The scope of a stage on a device, from its first checkpoint to its last.
///
/// ```
/// # use memory::{DeviceKind, Scope, Simulated, Stage, Tracker};
/// let device = Simulated::new(DeviceKind::Gpu, 8 << 30);
/// let tracker = Tracker::new(device.clone());
/// let mut scope = Scope::enter(&tracker, Stage::Transcribe, 2 << 30)?;
/// let tensors = device.allocate(1 << 30)?;
/// scope.loaded();
/// let departure = scope.leave(|| drop(tensors));
/// assert!(departure.recovery.is_some_and(|recovery| recovery.verified));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Bind it before the stage's tensors: locals drop in reverse order, so that an
/// early return frees the tensors before the scope verifies that they are gone.
///
/// A model that stays loaded for the next file has a scope of its own
/// ([`Stage::SpeechModel`]), entered before the stage's and stored with the model.
#[derive(Debug)]
#[must_use = "a scope ends when it is dropped"]
pub struct Scope {
    tracker: Tracker,
    stage: Stage,
    id: u64,
    reservation: Reservation,
    more: Vec<Reservation>,
    batches: u32,
    /// Batches between checks for fragmentation; 0: never.
    trim_every: u32,
    worked: bool,
    left: bool,
}

/// How a scope ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Departure {
    /// `None` where memory could not be read.
    pub recovery: Option<Recovery>,
    /// Why the device did not synchronise or trim. The stage's result stands;
    /// the process should be renewed.
    pub failure: Option<DeviceError>,
    /// Wall time that the release took, in milliseconds.
    pub release_ms: f64,
}

/// What a stage took and what came back. Bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recovery {
    /// Highest reserved above what was reserved when the stage began.
    pub taken: u64,
    /// Of that, still reserved after the release.
    pub remaining: u64,
    /// 1 where all of it came back.
    pub share: f64,
    /// Whether at least [`RECOVERED_SHARE`] came back, or the rest is within the
    /// noise of two readings ([`crate::Probe::noise`]).
    pub verified: bool,
    /// Why `remaining` is not free.
    pub remains: Remains,
}

/// Why memory did not come back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remains {
    /// Everything came back.
    Nothing,
    /// Something still refers to it.
    InUse,
    /// It is free, but the allocator can't give it back.
    KeptByAllocator,
}

impl Scope {
    /// The default of [`Self::trim_every`].
    pub const TRIM_EVERY: u32 = 5;

    /// Takes the stage's first checkpoint and reserves `demand`, before anything is
    /// allocated.
    ///
    /// # Errors
    ///
    /// Fails with [`Refused`] when `demand` is not free.
    pub fn enter(tracker: &Tracker, stage: Stage, demand: impl Into<Demand>) -> Result<Self, Refused> {
        let demand = demand.into();
        let (_, reading) = tracker.look(stage.marks().entered, None);
        let consumer = match demand.what.as_str() {
            "" => stage.label().to_owned(),
            what => format!("{} ({what})", stage.label()),
        };
        let reservation = tracker.budget().reserve(consumer, demand.bytes)?;
        let id = tracker.open(reading.and_then(|reading| reading.ours));
        if stage.is_model() {
            tracker.device().set_loading(true);
        }
        Ok(Self {
            tracker: tracker.clone(),
            stage,
            id,
            reservation,
            more: Vec::new(),
            batches: 0,
            trim_every: Self::TRIM_EVERY,
            worked: false,
            left: false,
        })
    }

    /// Checks for fragmentation every `batches` batches; 0: never.
    pub fn trim_every(mut self, batches: u32) -> Self {
        self.trim_every = batches;
        self
    }

    /// The stage that it stands for.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Bytes reserved by this scope.
    pub fn reserved(&self) -> u64 {
        self.reservation.bytes() + self.more.iter().map(Reservation::bytes).sum::<u64>()
    }

    /// Reserves `bytes` on top, under a name of its own, until the scope ends.
    ///
    /// # Errors
    ///
    /// Fails with [`Refused`] when `bytes` are not free; what was reserved before stays.
    pub fn reserve(&mut self, what: impl Into<String>, bytes: u64) -> Result<(), Refused> {
        let entry = self.tracker.budget().reserve(what, bytes)?;
        self.more.push(entry);
        Ok(())
    }

    /// Changes the first reservation, e.g. to that of a smaller batch.
    ///
    /// # Errors
    ///
    /// Fails with [`Refused`] when the bytes to be added are not free.
    pub fn resize(&mut self, bytes: u64) -> Result<(), Refused> {
        self.reservation.resize(bytes)
    }

    /// Takes the checkpoint after a model was loaded or the sound prepared. What is
    /// held now does not count as missing when a scope around this one ends.
    pub fn loaded(&mut self) -> Sample {
        let (sample, reading) = match self.stage {
            stage if stage.is_model() => {
                self.worked = true;
                self.tracker.device().set_loading(false);
                self.tracker.look(stage.marks().worked, None)
            }
            // The prepared sound is held until the later stages are done.
            Stage::Preprocess => {
                self.worked = true;
                self.tracker.look(self.stage.marks().worked, None)
            }
            // Other stages take the checkpoint of the model that they load.
            Stage::Diarize => self.tracker.look(Checkpoint::AfterSpeakerModelLoad, None),
            _ => self.tracker.look(Checkpoint::AfterSpeechModelLoad, None),
        };
        self.tracker.loaded(self.id, reading.and_then(|reading| reading.ours));
        sample
    }

    /// Takes the checkpoint after a batch. Every [`Self::trim_every`] batches, unused
    /// memory is released where much of what is reserved is unused.
    pub fn batch(&mut self) -> Sample {
        self.batches += 1;
        let (sample, reading) = self.tracker.look(Checkpoint::Batch, Some(self.batches));
        if self.trim_every > 0
            && self.batches.is_multiple_of(self.trim_every)
            && fragmented(reading).is_some()
        {
            self.trim();
        }
        sample
    }

    /// Takes the checkpoint before or after an epoch, numbered from 1.
    pub fn epoch(&mut self, number: u32, is_over: bool) -> Sample {
        let checkpoint = if is_over { Checkpoint::AfterEpoch } else { Checkpoint::BeforeEpoch };
        self.tracker.look(checkpoint, Some(number)).0
    }

    fn trim(&self) {
        self.tracker.look(Checkpoint::BeforeTrim, None);
        if let Err(error) = self.tracker.release() {
            self.tracker.release_failed(&error, Some(self.stage));
        }
        let (_, reading) = self.tracker.look(Checkpoint::AfterTrim, None);
        if fragmented(reading).is_some() {
            self.tracker.needs_renewal(Renewal::Fragmentation);
        }
    }

    /// Ends the stage: calls `free`, which drops what the stage holds, then
    /// synchronises and trims the device and verifies the recovery.
    pub fn leave(mut self, free: impl FnOnce()) -> Departure {
        self.finish(free)
    }

    fn finish(&mut self, free: impl FnOnce()) -> Departure {
        self.left = true;
        let marks = self.stage.marks();
        if !self.worked {
            if self.stage.is_model() {
                self.tracker.device().set_loading(false);
            }
            self.tracker.look(marks.worked, None);
        }
        self.tracker.look(marks.before_release, None);
        let began = Instant::now();
        free();
        let failure = self.tracker.release().err();
        self.more.clear();
        // To nothing: shrinking always succeeds.
        let _ = self.reservation.resize(0);
        let (_, reading) = self.tracker.look(marks.after_release, None);
        let release_ms = began.elapsed().as_secs_f64() * 1e3;
        if let Some(error) = &failure {
            self.tracker.release_failed(error, Some(self.stage));
        }
        let noise = self.tracker.device().noise();
        let account = self.tracker.close(self.id);
        let recovery = account.zip(reading).and_then(|(account, reading)| verify(account, reading, noise));
        if let Some(recovery) = recovery.filter(|recovery| !recovery.verified && failure.is_none()) {
            self.tracker.notice(not_recovered(self.stage, &recovery));
        }
        Departure { recovery, failure, release_ms }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if !self.left {
            self.finish(|| ());
        }
    }
}

fn fragmented(reading: Option<Reading>) -> Option<signs::Sign> {
    let ours = reading?.ours?;
    signs::fragmentation(ours.allocated, ours.reserved)
}

fn verify(account: Account, after: Reading, noise: u64) -> Option<Recovery> {
    let after = after.ours?;
    let Account { before, high, kept } = account;
    let taken = high.saturating_sub(before.reserved);
    let remaining = after.reserved.saturating_sub(before.reserved).saturating_sub(kept.reserved);
    let in_use = after.allocated.saturating_sub(before.allocated).saturating_sub(kept.allocated);
    let share = if taken == 0 { 1.0 } else { 1.0 - remaining.min(taken) as f64 / taken as f64 };
    let verified = share >= RECOVERED_SHARE || remaining <= noise;
    let remains = match (verified, in_use * 2 >= remaining) {
        (true, _) => Remains::Nothing,
        (false, true) => Remains::InUse,
        (false, false) => Remains::KeptByAllocator,
    };
    Some(Recovery { taken, remaining, share, verified, remains })
}

fn not_recovered(stage: Stage, recovery: &Recovery) -> Notice {
    let Recovery { taken, remaining, share, .. } = *recovery;
    let fragmented = matches!(recovery.remains, Remains::KeptByAllocator);
    Message::NotRecovered { stage, taken, share, remaining, fragmented }.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{GIB, MIB};
    use crate::testing::{card, load_model};
    use crate::{Code, DeviceKind, Simulated};

    fn codes(tracker: &Tracker) -> Vec<Code> {
        tracker.timeline().notices.iter().map(|notice| notice.code).collect()
    }

    fn labels(tracker: &Tracker) -> Vec<String> {
        tracker.timeline().samples.iter().map(Sample::label).collect()
    }

    #[test]
    fn a_stage_leaves_its_checkpoints_and_nothing_else() {
        let (device, tracker) = card();
        let (model, weights) = load_model(&device, &tracker);
        let mut scope = Scope::enter(&tracker, Stage::Transcribe, 2 * GIB).unwrap();
        let caches = device.allocate(2 * GIB).unwrap();
        scope.batch();
        scope.batch();
        let departure = scope.leave(|| drop(caches));
        assert_eq!(departure.recovery.unwrap().taken, 2 * GIB);
        assert!(departure.recovery.unwrap().verified);
        assert!(model.leave(|| drop(weights)).recovery.unwrap().verified);
        assert_eq!(
            labels(&tracker),
            [
                "Pipeline Start",
                "Before Speech Model Load",
                "After Speech Model Load",
                "Before Transcription",
                "Batch 1",
                "Batch 2",
                "After Transcription",
                "Before Decoding Buffer Cleanup",
                "After Decoding Buffer Cleanup",
                "Before Speech Model Cleanup",
                "After Speech Model Cleanup",
            ]
        );
        assert_eq!((tracker.budget().reserved(), codes(&tracker)), (0, vec![]));
    }

    #[test]
    fn what_does_not_come_back_is_named() {
        // Bytes taken, still referred to, and pinned by the allocator, in MB.
        let cases = [
            ((1000, 0, 0), None),
            ((1000, 50, 0), None),
            (
                (1000, 60, 0),
                Some("The transcription took 1000 MB and gave back 94.0%: 60 MB is still in use."),
            ),
            (
                (1000, 0, 400),
                Some(
                    "The transcription took 1000 MB and gave back 60.0%: 400 MB is free but fragmented and can't be released.",
                ),
            ),
        ];
        for ((taken, kept, pinned), expected) in cases {
            let (device, tracker) = card();
            let scope = Scope::enter(&tracker, Stage::Transcribe, taken * MIB).unwrap();
            let forgotten = device.allocate(kept * MIB).unwrap();
            let freed = device.allocate((taken - kept) * MIB).unwrap();
            device.pin(pinned * MIB);
            scope.leave(|| drop(freed));
            let notices = tracker.timeline().notices;
            assert_eq!(
                notices.first().map(|notice| notice.text.as_str()),
                expected,
                "{taken} {kept} {pinned}"
            );
            drop(forgotten);
        }
    }

    #[test]
    fn a_model_kept_warm_is_not_missed() {
        let (device, tracker) = card();
        // Entered inside the stage, and still open when that ends.
        let stage = Scope::enter(&tracker, Stage::Transcribe, GIB).unwrap();
        let mut model = Scope::enter(&tracker, Stage::SpeechModel, 3 * GIB).unwrap();
        let weights = device.allocate(3 * GIB).unwrap();
        model.loaded();
        let caches = device.allocate(GIB).unwrap();
        let departure = stage.leave(|| drop(caches));
        assert!(departure.recovery.unwrap().verified, "{departure:?}");
        assert!(model.leave(|| drop(weights)).recovery.unwrap().verified);
    }

    #[test]
    fn errors_and_panics_release_as_well() {
        for panics in [false, true] {
            let (device, tracker) = card();
            let work = || -> Result<(), String> {
                let _scope =
                    Scope::enter(&tracker, Stage::Diarize, GIB).map_err(|refused| refused.to_string())?;
                let _tensors = device.allocate(GIB).map_err(|error| error.to_string())?;
                assert!(!panics, "as planned");
                Err("as planned".into())
            };
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            assert_eq!(outcome.is_err(), panics);
            assert_eq!(tracker.budget().reserved(), 0);
            assert_eq!(tracker.device().read().unwrap().ours.unwrap().reserved, 0, "not trimmed");
            assert_eq!(labels(&tracker).last().unwrap(), "After Waveform Cleanup");
            assert_eq!(codes(&tracker), []);
        }
    }

    #[test]
    fn a_release_that_fails_is_a_warning_and_a_new_engine() {
        let (device, tracker) = card();
        let scope = Scope::enter(&tracker, Stage::Transcribe, GIB).unwrap();
        let tensors = device.allocate(GIB).unwrap();
        device.break_trims(true);
        let departure = scope.leave(|| drop(tensors));
        assert!(departure.failure.is_some());
        assert_eq!(
            (codes(&tracker), tracker.renewal()),
            (vec![Code::ReleaseFailed], Some(Renewal::ReleaseFailed))
        );
        assert_eq!(tracker.budget().reserved(), 0);
    }

    #[test]
    fn a_device_that_does_not_answer_stops_nothing() {
        let (device, tracker) = card();
        device.break_reads(true);
        tracker.begin_job();
        let mut scope = Scope::enter(&tracker, Stage::Transcribe, GIB).unwrap();
        scope.batch();
        assert_eq!(scope.leave(|| ()).recovery, None);
        let timeline = tracker.end_job();
        let codes: Vec<Code> = timeline.notices.iter().map(|notice| notice.code).collect();
        assert_eq!(codes, [Code::Unavailable]);
        assert!(timeline.samples.iter().all(|sample| sample.levels.is_none() && sample.reason.is_some()));
    }

    #[test]
    fn idle_memory_is_given_back_only_now_and_then() {
        // (pinned GB) -> (trims, renewal)
        for (pinned, renewal) in [(0, None), (3, Some(Renewal::Fragmentation))] {
            let (device, tracker) = card();
            let mut scope = Scope::enter(&tracker, Stage::Transcribe, 4 * GIB).unwrap().trim_every(3);
            device.pin(pinned * GIB);
            let _weights = device.allocate(GIB / 4).unwrap();
            drop(device.allocate(3 * GIB).unwrap());
            let trims: Vec<u32> = (0..7)
                .map(|_| {
                    scope.batch();
                    device.trims()
                })
                .collect();
            let expected = if pinned == 0 { [0, 0, 1, 1, 1, 1, 1] } else { [0, 0, 1, 1, 1, 2, 2] };
            assert_eq!((trims.as_slice(), tracker.renewal()), (expected.as_slice(), renewal));
        }
    }

    #[test]
    fn growth_over_three_files_is_reported_once() {
        let (device, tracker) = card();
        let mut forgotten = Vec::new();
        let mut told = Vec::new();
        for file in 1..=6 {
            tracker.begin_job();
            if file > 2 {
                forgotten.push(device.allocate(40 * MIB).unwrap());
            }
            let found = tracker.end_job().notices.iter().any(|notice| notice.code == Code::Leak);
            told.push((file, found, tracker.renewal()));
        }
        assert_eq!(
            told,
            [
                (1, false, None),
                (2, false, None),
                (3, false, None),
                (4, true, Some(Renewal::Leak)),
                (5, false, Some(Renewal::Leak)),
                (6, false, Some(Renewal::Leak)),
            ]
        );
    }

    #[test]
    fn pressure_is_told_once_per_job() {
        let device = Simulated::new(DeviceKind::Gpu, 10 * GIB);
        let tracker = Tracker::new(device.clone());
        tracker.begin_job();
        let mut held = Vec::new();
        let mut told = Vec::new();
        // In tenths of the card: up through both thresholds, down, up again.
        for change in [5, 2, 0, 1, 1, -4, 2] {
            for _ in 0..-change {
                held.pop();
            }
            for _ in 0..change {
                held.push(device.allocate(GIB).unwrap());
            }
            crate::Device::trim(&device).unwrap();
            tracker.checkpoint(Checkpoint::Batch);
            told.push(codes(&tracker).len());
        }
        assert_eq!(told, [0, 1, 1, 1, 2, 2, 2]);
        assert_eq!(codes(&tracker), [Code::Elevated, Code::Critical]);
    }
}
