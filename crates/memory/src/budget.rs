//! Memory is reserved before it is allocated. A [`Budget`] is the ledger of one
//! device; a [`Reservation`] is an entry that is removed when it is dropped.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::bytes::human;
use crate::probe::{DeviceKind, Reading};

/// The ledger of a device: who reserved how much of it. Clones share one
/// ledger; every method may be called from any thread.
#[derive(Debug, Clone)]
pub struct Budget {
    ledger: Arc<Mutex<Ledger>>,
}

#[derive(Debug)]
struct Ledger {
    kind: DeviceKind,
    /// The limit in force.
    total: u64,
    others: u64,
    /// Held by this program outside the ledger: fixed cost, the program itself.
    outside: u64,
    /// In use by this program beyond `outside`, as last read.
    measured: u64,
    entries: Vec<(u64, String, u64)>,
    next_id: u64,
    /// Reservations asked for so far, granted or not.
    asked: u64,
    /// Which of them is refused to see what happens, counted from 1.
    refuse: Option<u64>,
}

impl Ledger {
    fn reserved(&self) -> u64 {
        self.entries.iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// What may still be reserved. Where more is in use than reserved, what is in use
    /// counts: predictions err.
    fn free(&self) -> u64 {
        let ours = self.outside.saturating_add(self.reserved().max(self.measured));
        self.total.saturating_sub(self.others).saturating_sub(ours)
    }

    fn refusal(&self, consumer: &str, asked: u64) -> Refused {
        let mut holders: Vec<Holder> = self
            .entries
            .iter()
            .map(|(_, name, bytes)| Holder { name: name.clone(), bytes: *bytes })
            .collect();
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
        let ours = self.outside.saturating_add(self.reserved().max(self.measured));
        Refused {
            kind: self.kind,
            consumer: consumer.to_owned(),
            asked,
            free: self.free(),
            limit: self.total,
            ours,
            others: self.others,
            holders,
        }
    }
}

impl Budget {
    /// A ledger over `total` bytes, nothing of which is in use yet.
    pub fn new(kind: DeviceKind, total: u64) -> Self {
        let ledger = Ledger {
            kind,
            total,
            others: 0,
            outside: 0,
            measured: 0,
            entries: Vec::new(),
            next_id: 0,
            asked: 0,
            refuse: None,
        };
        Self { ledger: Arc::new(Mutex::new(ledger)) }
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        // A panic elsewhere leaves the ledger consistent: no method panics
        // between two changes.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates the ledger with a reading of the device. `baseline` is what this
    /// program held before it reserved anything, in bytes.
    pub fn update(&self, reading: &Reading, baseline: u64) {
        let mut ledger = self.lock();
        let ours = reading.ours.unwrap_or_default();
        ledger.total = reading.total;
        ledger.others = reading.others.unwrap_or_else(|| reading.used.saturating_sub(ours.held()));
        ledger.outside = baseline.saturating_add(ours.fixed);
        ledger.measured = ours.allocated.saturating_sub(baseline);
    }

    /// Reserves `bytes` for `consumer`. Nothing is allocated here.
    ///
    /// # Errors
    ///
    /// Fails with [`Refused`] when `bytes` are not free, or when [`Self::refuse_nth`] says so.
    pub fn reserve(&self, consumer: impl Into<String>, bytes: u64) -> Result<Reservation, Refused> {
        let consumer = consumer.into();
        let mut ledger = self.lock();
        ledger.asked += 1;
        if bytes > ledger.free() || ledger.refuse == Some(ledger.asked) {
            return Err(ledger.refusal(&consumer, bytes));
        }
        let id = ledger.next_id;
        ledger.next_id += 1;
        ledger.entries.push((id, consumer.clone(), bytes));
        drop(ledger);
        Ok(Reservation { budget: self.clone(), id, consumer, bytes: AtomicU64::new(bytes) })
    }

    /// Bytes that may still be reserved.
    pub fn free(&self) -> u64 {
        self.lock().free()
    }

    /// Bytes reserved by all entries.
    pub fn reserved(&self) -> u64 {
        self.lock().reserved()
    }

    /// The entries, largest first.
    pub fn holders(&self) -> Vec<Holder> {
        self.lock().refusal("", 0).holders
    }

    /// Reservations asked for so far, granted or not.
    pub fn asked(&self) -> u64 {
        self.lock().asked
    }

    /// Refuses the `k`-th reservation from now, counted from 1, whatever is free, so
    /// that tests can make every reservation of a job fail. `None` ends that.
    pub fn refuse_nth(&self, k: Option<u64>) {
        let mut ledger = self.lock();
        ledger.refuse = k.map(|k| ledger.asked + k);
    }

    fn resize(&self, id: u64, consumer: &str, bytes: u64) -> Result<(), Refused> {
        let mut ledger = self.lock();
        let Some(index) = ledger.entries.iter().position(|(entry, _, _)| *entry == id) else { return Ok(()) };
        let now = ledger.entries[index].2;
        if bytes > now {
            ledger.asked += 1;
            let more = bytes - now;
            if more > ledger.free() || ledger.refuse == Some(ledger.asked) {
                return Err(ledger.refusal(consumer, more));
            }
        }
        ledger.entries[index].2 = bytes;
        Ok(())
    }

    fn erase(&self, id: u64) {
        self.lock().entries.retain(|(entry, _, _)| *entry != id);
    }
}

/// Bytes promised to a consumer until this is dropped.
#[derive(Debug)]
#[must_use = "a reservation ends when it is dropped"]
pub struct Reservation {
    budget: Budget,
    id: u64,
    consumer: String,
    bytes: AtomicU64,
}

impl Reservation {
    /// The reserved amount, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The name under which it was reserved.
    pub fn consumer(&self) -> &str {
        &self.consumer
    }

    /// Changes the entry to `bytes`; on error it stays as it was. Shrinking
    /// always succeeds.
    ///
    /// # Errors
    ///
    /// Fails with [`Refused`] when the bytes to be added are not free.
    pub fn resize(&self, bytes: u64) -> Result<(), Refused> {
        self.budget.resize(self.id, &self.consumer, bytes)?;
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.erase(self.id);
    }
}

/// An entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The consumer that reserved them.
    pub name: String,
    /// The reserved amount.
    pub bytes: u64,
}

/// A reservation that would not fit. Bytes throughout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The device whose memory was asked for.
    pub kind: DeviceKind,
    /// What the memory was for.
    pub consumer: String,
    /// The amount asked for.
    pub asked: u64,
    /// What could have been reserved.
    pub free: u64,
    /// The limit in force.
    pub limit: u64,
    /// Held by this program, the entries of the ledger included.
    pub ours: u64,
    /// Held by other programs.
    pub others: u64,
    /// The entries of the ledger, largest first.
    pub holders: Vec<Holder>,
}

impl Refused {
    /// How many of the largest holders a message names.
    pub const NAMED_HOLDERS: usize = 3;

    /// Bytes that would have to become free.
    pub fn missing(&self) -> u64 {
        self.asked.saturating_sub(self.free)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = match self.kind {
            DeviceKind::Gpu => "GPU memory",
            DeviceKind::Host => "memory",
        };
        write!(
            f,
            "The {} needs {} of {memory}, but only {} of {} is free: Steno holds {}",
            self.consumer,
            human(self.asked),
            human(self.free),
            human(self.limit),
            human(self.ours),
        )?;
        let named: Vec<String> = self
            .holders
            .iter()
            .take(Self::NAMED_HOLDERS)
            .map(|holder| format!("{} {}", holder.name, human(holder.bytes)))
            .collect();
        if !named.is_empty() {
            write!(f, " ({})", named.join(", "))?;
        }
        write!(f, ", other programs {}.", human(self.others))
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::{GIB, MIB};
    use crate::probe::Ours;

    #[test]
    fn a_refusal_says_who_holds_the_rest() {
        let budget = Budget::new(DeviceKind::Gpu, 0);
        let ours = Ours { allocated: 0, reserved: 0, fixed: 300 * MIB, peak: None };
        budget.update(
            &Reading {
                total: 6 * GIB,
                used: 2 * GIB + 300 * MIB,
                free: 4 * GIB - 300 * MIB,
                ours: Some(ours),
                others: Some(2 * GIB),
                mapped: 0,
            },
            0,
        );
        let _weights = budget.reserve("speech model whisper-small", 500 * MIB).unwrap();
        let _caches = budget.reserve("transcription", GIB).unwrap();
        let refused = budget.reserve("diarization", 3 * GIB).unwrap_err();
        assert_eq!(refused.free, 4 * GIB - 300 * MIB - 500 * MIB - GIB);
        assert_eq!(refused.missing(), 3 * GIB - refused.free);
        assert_eq!(
            refused.to_string(),
            "The diarization needs 3.0 GB of GPU memory, but only 2.2 GB of 6.0 GB is free: Steno holds 1.8 GB (transcription 1.0 GB, speech model whisper-small 500 MB), other programs 2.0 GB."
        );
    }

    #[test]
    fn what_was_promised_comes_back_when_it_is_dropped() {
        let budget = Budget::new(DeviceKind::Host, 100);
        let first = budget.reserve("a", 60).unwrap();
        assert!(budget.reserve("b", 41).is_err());
        let second = budget.reserve("b", 40).unwrap();
        assert_eq!(budget.free(), 0);
        drop(first);
        assert_eq!((budget.free(), budget.reserved()), (60, 40));
        drop(second);
        assert_eq!((budget.free(), budget.holders()), (100, Vec::new()));
    }

    #[test]
    fn resizing_fails_without_changing_anything() {
        let budget = Budget::new(DeviceKind::Host, 100);
        let entry = budget.reserve("a", 60).unwrap();
        assert_eq!(entry.resize(101).unwrap_err().asked, 41);
        assert_eq!((entry.bytes(), budget.reserved()), (60, 60));
        entry.resize(100).unwrap();
        entry.resize(10).unwrap();
        assert_eq!((entry.bytes(), budget.free()), (10, 90));
    }

    #[test]
    fn more_in_use_than_was_promised_counts() {
        let budget = Budget::new(DeviceKind::Host, 1000);
        let _entry = budget.reserve("a", 100).unwrap();
        // (allocated, baseline) -> free
        for ((allocated, baseline), free) in [((50, 50), 850), ((150, 50), 850), ((450, 50), 550)] {
            let ours = Ours { allocated, reserved: allocated, fixed: 0, peak: None };
            let reading = Reading {
                total: 1000,
                used: allocated,
                free: 1000 - allocated,
                ours: Some(ours),
                others: Some(0),
                mapped: 0,
            };
            budget.update(&reading, baseline);
            assert_eq!(budget.free(), free, "{allocated} over {baseline}");
        }
    }

    #[test]
    fn the_kth_reservation_fails_once() {
        let budget = Budget::new(DeviceKind::Host, 100);
        budget.refuse_nth(Some(2));
        let outcomes: Vec<bool> = (0..4).map(|_| budget.reserve("a", 1).is_ok()).collect();
        assert_eq!(outcomes, [true, false, true, true]);
        assert_eq!(budget.reserved(), 0);
    }

    #[test]
    fn many_threads_never_promise_more_than_there_is() {
        let budget = Budget::new(DeviceKind::Host, 1000);
        let granted = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..8)
                .map(|worker| {
                    let budget = budget.clone();
                    scope.spawn(move || {
                        let mut granted = 0;
                        for round in 0..500 {
                            if let Ok(entry) = budget.reserve(format!("worker {worker}"), 100 + round % 150) {
                                assert!(budget.reserved() <= 1000);
                                granted += 1;
                                drop(entry);
                            }
                        }
                        granted
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum::<u32>()
        });
        assert!(granted > 0);
        assert_eq!((budget.reserved(), budget.asked()), (0, 4000));
    }
}
