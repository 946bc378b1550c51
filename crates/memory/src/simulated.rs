//! A device without hardware, for predictions about cards that this machine lacks and
//! for tests of what happens when memory runs out.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::probe::{Cause, Device, DeviceError, DeviceKind, Ours, Probe, ProcessUse, Reading, Unavailable};

/// Behaves as a device with a pool allocator does: what is freed stays
/// reserved until a trim. Clones share one device.
#[derive(Debug, Clone)]
pub struct Simulated {
    state: Arc<Mutex<SimulatedState>>,
}

#[derive(Debug)]
struct SimulatedState {
    kind: DeviceKind,
    total: u64,
    others: u64,
    fixed: u64,
    allocated: u64,
    reserved: u64,
    peak: u64,
    broken_reads: bool,
    broken_trims: bool,
    /// Freed bytes that a trim can't give back: a hole in a used block.
    pinned: u64,
    trims: u32,
    processes: Vec<ProcessUse>,
}

/// An allocation on a [`Simulated`] device that did not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("out of memory: {asked} bytes asked for, {free} free")]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes that were free.
    pub free: u64,
}

/// Bytes in use on a [`Simulated`] device until this is dropped.
#[derive(Debug)]
pub struct Allocation {
    state: Arc<Mutex<SimulatedState>>,
    bytes: u64,
}

impl Simulated {
    /// An empty device of `total` bytes.
    pub fn new(kind: DeviceKind, total: u64) -> Self {
        let state = SimulatedState {
            kind,
            total,
            others: 0,
            fixed: 0,
            allocated: 0,
            reserved: 0,
            peak: 0,
            broken_reads: false,
            broken_trims: false,
            pinned: 0,
            trims: 0,
            processes: Vec::new(),
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Another program holds `bytes`.
    pub fn with_others(self, bytes: u64) -> Self {
        self.set_others(bytes);
        self
    }

    /// Context and handles take `bytes` for as long as the process lives.
    pub fn with_fixed(self, bytes: u64) -> Self {
        self.lock().fixed = bytes;
        self
    }

    /// These processes are on the device.
    pub fn with_processes(self, processes: Vec<ProcessUse>) -> Self {
        self.lock().processes = processes;
        self
    }

    /// From now on other programs hold `bytes`.
    pub fn set_others(&self, bytes: u64) {
        self.lock().others = bytes;
    }

    /// From now on `trim` fails, as after a fatal error of the device.
    pub fn break_trims(&self, broken: bool) {
        self.lock().broken_trims = broken;
    }

    /// From now on there are no readings, as without a driver.
    pub fn break_reads(&self, broken: bool) {
        self.lock().broken_reads = broken;
    }

    /// A trim leaves `bytes` reserved although they are free.
    pub fn pin(&self, bytes: u64) {
        self.lock().pinned = bytes;
    }

    /// How often it was trimmed.
    pub fn trims(&self) -> u32 {
        self.lock().trims
    }

    /// Takes `bytes` from the pool, or from the device where the pool has too little.
    ///
    /// # Errors
    ///
    /// Fails with [`OutOfMemory`] where neither has enough.
    pub fn allocate(&self, bytes: u64) -> Result<Allocation, OutOfMemory> {
        let mut state = self.lock();
        let cached = state.reserved - state.allocated;
        let free = state.total.saturating_sub(state.others + state.fixed + state.reserved) + cached;
        if bytes > free {
            return Err(OutOfMemory { asked: bytes, free });
        }
        state.allocated += bytes;
        state.reserved = state.reserved.max(state.allocated);
        state.peak = state.peak.max(state.reserved);
        Ok(Allocation { state: Arc::clone(&self.state), bytes })
    }

    fn lock(&self) -> MutexGuard<'_, SimulatedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).allocated -= self.bytes;
    }
}

impl Probe for Simulated {
    fn kind(&self) -> DeviceKind {
        self.lock().kind
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        let state = self.lock();
        if state.broken_reads {
            return Err(Unavailable {
                cause: Cause::DeviceLost,
                reason: "The simulated device does not answer.".into(),
            });
        }
        let ours = Ours {
            allocated: state.allocated,
            reserved: state.reserved,
            fixed: state.fixed,
            peak: Some(state.peak),
        };
        let used = (ours.held() + state.others).min(state.total);
        Ok(Reading {
            total: state.total,
            used,
            free: state.total - used,
            ours: Some(ours),
            others: Some(state.others),
            mapped: 0,
        })
    }

    fn reset_peak(&self) {
        let mut state = self.lock();
        state.peak = state.reserved;
    }

    fn processes(&self) -> Vec<ProcessUse> {
        self.lock().processes.clone()
    }
}

impl Device for Simulated {
    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trim(&self) -> Result<(), DeviceError> {
        let mut state = self.lock();
        if state.broken_trims {
            return Err(DeviceError("the simulated device refused to trim".into()));
        }
        state.trims += 1;
        state.reserved = state.reserved.min(state.allocated + state.pinned).max(state.allocated);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_behaves_as_a_pool_does() {
        let device = Simulated::new(DeviceKind::Gpu, 100).with_others(20).with_fixed(10);
        let first = device.allocate(50).unwrap();
        assert_eq!(device.allocate(21).unwrap_err(), OutOfMemory { asked: 21, free: 20 });
        drop(first);
        let ours = |device: &Simulated| device.read().unwrap().ours.unwrap();
        assert_eq!((ours(&device).allocated, ours(&device).reserved), (0, 50));
        // What is cached is given out again.
        let second = device.allocate(70).unwrap();
        drop(second);
        device.trim().unwrap();
        let after = device.read().unwrap();
        assert_eq!((after.free, after.others, after.ours.unwrap().peak), (70, Some(20), Some(70)));
        device.reset_peak();
        assert_eq!(ours(&device).peak, Some(0));
    }
}
