//! Readings of a device's memory, and the traits of what is read.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Where memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A GPU's own memory.
    Gpu,
    /// The machine's main memory.
    Host,
}

impl DeviceKind {
    /// As in the log lines: `[GPU Memory]`, `[Host Memory]`.
    pub fn label(self) -> &'static str {
        match self {
            Self::Gpu => "GPU",
            Self::Host => "Host",
        }
    }
}

/// A reading of a device's memory. All amounts in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reading {
    /// What there is to share: the device's memory, or the limit in force
    /// where that is lower (a control group's, `--memory-limit`).
    pub total: u64,
    /// Held by any program: `total - free`.
    pub used: u64,
    /// What the driver or the system would still give. What this program's allocator
    /// keeps in reserve is not included.
    pub free: u64,
    /// What this program holds; `None` where the source can't tell.
    pub ours: Option<Ours>,
    /// What other programs hold; `None` where the source can't tell.
    pub others: Option<u64>,
    /// Resident pages of mapped files, weights above all: the system drops
    /// them by itself under pressure, so that they are no part of `ours`.
    pub mapped: u64,
}

/// What this program holds of a device. Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ours {
    /// In use: live tensors (pool), allocated blocks that are resident (host).
    pub allocated: u64,
    /// Held from the system, in use or kept for later: the pool's reserved
    /// bytes, the host's anonymous resident memory. Never below `allocated`.
    pub reserved: u64,
    /// What only the end of the process gives back: CUDA context, library
    /// handles, loaded modules. 0 on the host, where it is part of `reserved`.
    pub fixed: u64,
    /// Highest `reserved` since [`Probe::reset_peak`], where it is known.
    pub peak: Option<u64>,
}

impl Ours {
    /// Everything that would be free without this program.
    pub fn held(&self) -> u64 {
        self.reserved.saturating_add(self.fixed)
    }

    /// Kept by the allocator and not in use.
    pub fn slack(&self) -> u64 {
        self.reserved.saturating_sub(self.allocated)
    }
}

impl Reading {
    /// Ours reserved plus others over the limit in force, 0 to 1; where the
    /// owners are unknown, what is used over that limit.
    pub fn share(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        let used = match (self.ours, self.others) {
            (Some(ours), Some(others)) => ours.held().saturating_add(others),
            _ => self.used,
        };
        (used as f64 / self.total as f64).min(1.0)
    }

    /// Bytes of `total` that `part` is, in percent.
    pub fn percent(&self, part: u64) -> f64 {
        if self.total == 0 { 0.0 } else { 100.0 * part as f64 / self.total as f64 }
    }

    /// Fills in who holds what from what is known.
    ///
    /// `by_process` is what the driver attributes to this program. It is
    /// missing in containers and on Windows; then what the pool reserved plus
    /// the fixed cost is ours and the rest is others', as in
    /// `others = used - ours`.
    pub fn attribute(&mut self, by_process: Option<u64>, pool: Option<Ours>) {
        let ours = match (by_process, pool) {
            (Some(held), Some(pool)) => {
                Some(Ours { fixed: held.saturating_sub(pool.reserved).max(pool.fixed), ..pool })
            }
            (Some(held), None) => Some(Ours { allocated: held, reserved: held, fixed: 0, peak: None }),
            (None, pool) => pool,
        };
        self.ours = ours;
        self.others = ours.map(|ours| self.used.saturating_sub(ours.held()));
    }
}

/// Why there is no reading. A normal answer, e.g. without a driver or in a container
/// without `/proc`: the job continues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// What programs branch on.
    pub cause: Cause,
    /// A sentence for the user: what is missing and, where there is something
    /// to be done, what.
    pub reason: String,
}

/// What programs branch on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The vendor's library is not installed.
    NoLibrary,
    /// The library is there, the driver is not running.
    NoDriver,
    /// Library and driver, or library and this program, don't fit together.
    VersionMismatch,
    /// This user may not ask.
    NoPermission,
    /// No device of that name.
    NoSuchDevice,
    /// The device stopped answering.
    DeviceLost,
    /// This operating system has no such source.
    UnsupportedSystem,
    /// Anything else; the sentence says what.
    Other,
}

/// A process on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUse {
    /// Its process id.
    pub pid: u32,
    /// `None` where the driver does not say (containers, Windows).
    pub bytes: Option<u64>,
    /// Executable's name, where it may be read.
    pub name: Option<String>,
    /// Whether it is this program or one of its engines.
    pub ours: bool,
}

/// Reads a device's memory. Cheap (well under a millisecond) and safe to call
/// from any thread.
pub trait Probe: Send + Sync + fmt::Debug {
    /// Where the memory is.
    fn kind(&self) -> DeviceKind;

    /// Reads the device now.
    ///
    /// # Errors
    ///
    /// Fails with [`Unavailable`] where nothing can be read.
    fn read(&self) -> Result<Reading, Unavailable>;

    /// Resets [`Ours::peak`] to what is reserved now.
    fn reset_peak(&self) {}

    /// Bytes by which [`Ours::reserved`] may differ between two readings although the
    /// same things are held: the granularity of pools, caches of threads.
    fn noise(&self) -> u64 {
        0
    }

    /// The processes on the device; empty where they are unknown.
    fn processes(&self) -> Vec<ProcessUse> {
        Vec::new()
    }
}

/// A synchronise or trim that failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// Memory that can be given back. The thread that owns the device calls this.
pub trait Device: Probe {
    /// Waits until everything queued is done, so that what was freed is free.
    ///
    /// # Errors
    ///
    /// Fails where the device reports an error, also one of earlier work.
    fn synchronise(&self) -> Result<(), DeviceError>;

    /// Gives what the allocator keeps in reserve back to the system.
    ///
    /// # Errors
    ///
    /// Fails where the device reports an error.
    fn trim(&self) -> Result<(), DeviceError>;

    /// Tells that weights are being loaded, or no longer: an allocator may
    /// keep what stays apart from what comes and goes.
    fn set_loading(&self, _loading: bool) {}
}

/// A device that is never read, to measure what reading it costs.
#[derive(Debug, Clone, Copy)]
pub struct Unwatched(pub DeviceKind);

impl Probe for Unwatched {
    fn kind(&self) -> DeviceKind {
        self.0
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        Err(Unavailable { cause: Cause::Other, reason: "Watching was switched off.".into() })
    }
}

impl Device for Unwatched {
    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trim(&self) -> Result<(), DeviceError> {
        Ok(())
    }
}

/// Imposes a limit on what this program may hold of a device
/// (`--memory-limit` for the one that computes, `--ram-limit` for the host).
///
/// It reads as a device of that size: `total` is the limit, and others count
/// only as far as they leave less than the limit to us. A limit above what the
/// device has changes nothing.
#[derive(Debug, Clone)]
pub struct Budgeted<P> {
    inner: P,
    limit: u64,
}

impl<P> Budgeted<P> {
    /// `limit` in bytes.
    pub fn new(inner: P, limit: u64) -> Self {
        Self { inner, limit }
    }

    /// The limit, in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The device without the limit.
    pub fn inner(&self) -> &P {
        &self.inner
    }
}

impl<P: Probe> Probe for Budgeted<P> {
    fn kind(&self) -> DeviceKind {
        self.inner.kind()
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        Ok(limited(self.inner.read()?, self.limit))
    }

    fn reset_peak(&self) {
        self.inner.reset_peak();
    }

    fn noise(&self) -> u64 {
        self.inner.noise()
    }

    fn processes(&self) -> Vec<ProcessUse> {
        self.inner.processes()
    }
}

impl<P: Device> Device for Budgeted<P> {
    fn synchronise(&self) -> Result<(), DeviceError> {
        self.inner.synchronise()
    }

    fn trim(&self) -> Result<(), DeviceError> {
        self.inner.trim()
    }

    fn set_loading(&self, loading: bool) {
        self.inner.set_loading(loading);
    }
}

fn limited(real: Reading, limit: u64) -> Reading {
    if limit >= real.total {
        return real;
    }
    // Where ours is unknown all that is used is taken to be ours: the limit
    // must hold even then.
    let ours = real.ours.map_or(real.used, |ours| ours.held());
    let free = limit.saturating_sub(ours).min(real.free);
    let used = limit - free;
    Reading { total: limit, used, free, others: real.others.map(|_| used.saturating_sub(ours)), ..real }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<P: Probe + ?Sized> Probe for $pointer {
            fn kind(&self) -> DeviceKind {
                (**self).kind()
            }
            fn read(&self) -> Result<Reading, Unavailable> {
                (**self).read()
            }
            fn reset_peak(&self) {
                (**self).reset_peak();
            }
            fn noise(&self) -> u64 {
                (**self).noise()
            }
            fn processes(&self) -> Vec<ProcessUse> {
                (**self).processes()
            }
        }

        impl<P: Device + ?Sized> Device for $pointer {
            fn synchronise(&self) -> Result<(), DeviceError> {
                (**self).synchronise()
            }
            fn trim(&self) -> Result<(), DeviceError> {
                (**self).trim()
            }
            fn set_loading(&self, loading: bool) {
                (**self).set_loading(loading);
            }
        }
    )*};
}

forward!(Arc<P>, Box<P>, &P);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::GIB;

    fn reading(total: u64, ours: u64, others: u64) -> Reading {
        Reading {
            total,
            used: ours + others,
            free: total - ours - others,
            ours: Some(Ours { allocated: ours, reserved: ours, fixed: 0, peak: None }),
            others: Some(others),
            mapped: 0,
        }
    }

    #[test]
    fn a_limit_reads_as_a_smaller_device() {
        // (total, ours, others, limit) -> (total, free, others) in GB
        let cases = [
            // Others fit beside the limit: they don't count.
            ((24, 1, 10, 6), (6, 5, 0)),
            // Others leave less than the limit.
            ((24, 1, 20, 6), (6, 3, 2)),
            // A limit above what there is changes nothing.
            ((24, 1, 10, 30), (24, 13, 10)),
            // Already above the limit: nothing is free.
            ((24, 7, 0, 6), (6, 0, 0)),
        ];
        for ((total, ours, others, limit), (new_total, free, new_others)) in cases {
            let view = limited(reading(total * GIB, ours * GIB, others * GIB), limit * GIB);
            assert_eq!(
                (view.total, view.free, view.others),
                (new_total * GIB, free * GIB, Some(new_others * GIB)),
                "{total} {ours} {others} under {limit}"
            );
            let full = 1.0 - free as f64 / new_total as f64;
            assert!((view.share() - full).abs() < 1e-9, "share {} is not {full}", view.share());
        }
    }

    #[test]
    fn a_limit_holds_where_nobody_says_what_is_ours() {
        let mut real = reading(24 * GIB, 2 * GIB, 0);
        (real.ours, real.others) = (None, None);
        let view = limited(real, 6 * GIB);
        assert_eq!((view.free, view.others), (4 * GIB, None));
        assert!((view.share() - 2.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn owners_follow_from_what_the_driver_tells() {
        let pool = Ours { allocated: 2, reserved: 3, fixed: 1, peak: None };
        // (by process, pool) -> (ours held, others) of 10 used
        let cases = [
            (Some(5), Some(pool), Some((5, 5))),
            (Some(4), None, Some((4, 6))),
            (None, Some(pool), Some((4, 6))),
            // The driver attributes less than the pool holds: the pool knows.
            (Some(1), Some(pool), Some((4, 6))),
            (None, None, None),
        ];
        for (by_process, pool, expected) in cases {
            let mut reading = Reading { total: 100, used: 10, free: 90, ..Reading::default() };
            reading.attribute(by_process, pool);
            assert_eq!(reading.ours.map(|ours| ours.held()).zip(reading.others), expected);
        }
    }
}
