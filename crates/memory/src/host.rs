//! The host's memory: what the machine and its control groups allow, and what
//! this process holds of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::platform::{self, Group};
use crate::probe::{Cause, Device, DeviceError, DeviceKind, Ours, Probe, Reading, Unavailable};

/// Reads the host. `reserved` is anonymous resident memory, `allocated` the
/// part of it that the allocator has handed out; mapped weights are a figure
/// of their own.
#[derive(Debug)]
pub struct Host {
    /// `None`: this process.
    pid: Option<u32>,
    group: Option<Group>,
    /// Highest anonymous memory seen since the last reset.
    peak: Arc<AtomicU64>,
    sampler: Option<Sampler>,
}

impl Host {
    /// This process. Peaks are those of the readings taken.
    pub fn new() -> Self {
        Self { pid: None, group: platform::group(), peak: Arc::default(), sampler: None }
    }

    /// Another process, such as an engine. What its allocator keeps is not
    /// known: `allocated` is `reserved`.
    pub fn of_process(pid: u32) -> Self {
        Self { pid: Some(pid), ..Self::new() }
    }

    /// Samples what is held every `interval`, so that peaks between readings are
    /// seen: the kernel keeps a high-water mark for all resident memory, but none for
    /// anonymous memory alone.
    pub fn sampled(mut self, interval: Duration) -> Self {
        self.sampler = Sampler::start(self.pid, Arc::clone(&self.peak), interval);
        self
    }

    /// Samples taken so far; 0 without a sampler.
    pub fn looks(&self) -> u64 {
        self.sampler.as_ref().map_or(0, |sampler| sampler.looks.load(Ordering::Acquire))
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Probe for Host {
    fn kind(&self) -> DeviceKind {
        DeviceKind::Host
    }

    fn read(&self) -> Result<Reading, Unavailable> {
        let machine = platform::machine().ok_or_else(unsupported)?;
        let resident = platform::resident(self.pid).ok_or_else(|| match self.pid {
            Some(pid) => {
                Unavailable { cause: Cause::NoSuchDevice, reason: format!("The process {pid} has ended.") }
            }
            None => unsupported(),
        })?;
        let (mut total, mut free) = (machine.total, machine.available);
        if let Some(group) = &self.group
            && group.limit() < machine.total
        {
            total = group.limit();
            free = free.min(total.saturating_sub(group.used().unwrap_or(resident.anonymous)));
        }
        let free = free.min(total);
        if let Some(sampler) = &self.sampler {
            sampler.wake();
        }
        let reserved = resident.anonymous;
        // What was handed out and never touched is not resident; stacks are
        // resident and were never handed out.
        let in_use = if self.pid.is_none() { platform::in_use() } else { None };
        let allocated = in_use.map_or(reserved, |bytes| bytes.min(reserved));
        let peak = self.peak.fetch_max(reserved, Ordering::Relaxed).max(reserved);
        let used = total - free;
        Ok(Reading {
            total,
            used,
            free,
            ours: Some(Ours { allocated, reserved, fixed: 0, peak: Some(peak) }),
            others: Some(used.saturating_sub(reserved)),
            mapped: resident.file,
        })
    }

    fn reset_peak(&self) {
        self.peak.store(0, Ordering::Relaxed);
        if let Some(sampler) = &self.sampler {
            sampler.wake();
        }
    }

    fn noise(&self) -> u64 {
        crate::noise(DeviceKind::Host)
    }
}

impl Device for Host {
    fn synchronise(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn trim(&self) -> Result<(), DeviceError> {
        if self.pid.is_none() {
            platform::trim_allocator();
        }
        Ok(())
    }

    fn set_loading(&self, loading: bool) {
        if self.pid.is_none() {
            platform::set_loading(loading);
        }
    }
}

fn unsupported() -> Unavailable {
    Unavailable {
        cause: Cause::UnsupportedSystem,
        reason: "This system does not say how much memory is in use (no /proc).".into(),
    }
}

/// A thread that raises `peak`; it ends when this is dropped. It reads less often
/// while nothing changes, until the next reading of [`Host`], so that an idle engine
/// takes no processor time.
#[derive(Debug)]
struct Sampler {
    wake: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    looks: Arc<AtomicU64>,
}

/// After this long without a change the sampler slows down to `SELDOM`.
const STILL: Duration = Duration::from_secs(3);
const SELDOM: Duration = Duration::from_millis(500);

impl Sampler {
    fn start(pid: Option<u32>, peak: Arc<AtomicU64>, interval: Duration) -> Option<Self> {
        let (wake, woken) = mpsc::channel::<()>();
        let anonymous = platform::Anonymous::of(pid)?;
        let looks = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&looks);
        let thread = std::thread::Builder::new()
            .name("memory-sampler".into())
            .spawn(move || {
                let (mut before, mut changed) = (0, Instant::now());
                loop {
                    let pause = if changed.elapsed() < STILL { interval } else { SELDOM.max(interval) };
                    match woken.recv_timeout(pause) {
                        Ok(()) => changed = Instant::now(),
                        Err(mpsc::RecvTimeoutError::Timeout) => {}
                        Err(mpsc::RecvTimeoutError::Disconnected) => return,
                    }
                    let Some(held) = anonymous.read() else { return };
                    if std::mem::replace(&mut before, held) != held {
                        changed = Instant::now();
                    }
                    peak.fetch_max(held, Ordering::Relaxed);
                    count.fetch_add(1, Ordering::Release);
                }
            })
            .ok()?;
        Some(Self { wake: Some(wake), thread: Some(thread), looks })
    }

    fn wake(&self) {
        if let Some(wake) = &self.wake {
            // A sampler whose process has ended has nothing more to look at.
            let _ = wake.send(());
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.wake.take());
        if let Some(thread) = self.thread.take() {
            // A sampler that panicked has nothing left to say.
            let _ = thread.join();
        }
    }
}
