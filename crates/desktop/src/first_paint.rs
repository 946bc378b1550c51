//! Detects a window that stays blank, as with some graphics drivers. The remedy is
//! in `renderer`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::renderer;

/// Longest time from when the page's scripts run to its first frame. It is not
/// counted from the start of the program, since a slow start does not mean a
/// blank window.
const FIRST_FRAME_TIMEOUT: Duration = Duration::from_secs(5);
/// Longest time until the page's scripts run.
const SCRIPTS_TIMEOUT: Duration = Duration::from_secs(20);
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// For tests: frames of the usual renderer are ignored.
const BLANK: &str = "STENO_TEST_BLANK_PAGE";

/// For measurements: prints the times of events to standard error.
const TIMES: &str = "STENO_TEST_TIMES";

/// Whether and when the window has shown its first frame.
#[derive(Debug)]
pub struct FirstPaint {
    started: Instant,
    attached: Mutex<Option<Instant>>,
    /// Time from the start to the first frame.
    painted: Mutex<Option<Duration>>,
    over: AtomicBool,
}

impl FirstPaint {
    /// For a program that started at `started`.
    pub fn new(started: Instant) -> Self {
        let (attached, painted) = (Mutex::default(), Mutex::default());
        Self { started, attached, painted, over: AtomicBool::new(false) }
    }

    /// Notes that the page's scripts run.
    pub fn scripts_run(&self) {
        lock(&self.attached).get_or_insert_with(Instant::now);
        self.tell("scripts run");
    }

    /// Notes that the page has shown a frame (`seen`), or that it is hidden and shows
    /// none. True if this is the first frame and the fallback renderer drew it.
    pub fn painted(&self, seen: bool) -> bool {
        if std::env::var_os(BLANK).is_some() && !renderer::is_fallback() {
            return false;
        }
        self.over.store(true, Ordering::Relaxed);
        if !seen || self.time().is_some() {
            return false;
        }
        *lock(&self.painted) = Some(self.started.elapsed());
        self.tell("first frame");
        renderer::is_fallback()
    }

    /// Time from the program's start to the first frame, `None` before it.
    pub fn time(&self) -> Option<Duration> {
        *lock(&self.painted)
    }

    /// Blocks until the first frame; false if it is too late.
    pub fn wait(&self) -> bool {
        while !self.over.load(Ordering::Relaxed) {
            let attached = *lock(&self.attached);
            if is_late(self.started.elapsed(), attached.map(|since| since.elapsed())) {
                return false;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        true
    }

    fn tell(&self, what: &str) {
        if std::env::var_os(TIMES).is_some() {
            eprintln!("steno-window: {what} after {} ms", self.started.elapsed().as_millis());
        }
    }
}

/// Whether the first frame is too late, by the times since the program's start and
/// since the page's scripts run.
fn is_late(since_start: Duration, since_scripts: Option<Duration>) -> bool {
    since_scripts.map_or(since_start > SCRIPTS_TIMEOUT, |since| since > FIRST_FRAME_TIMEOUT)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_is_not_a_blank_window() {
        for (start, scripts, expected) in [
            (0.1, None, false),
            (6.0, None, false),
            (20.0, None, false),
            (20.1, None, true),
            (6.0, Some(0.1), false),
            (60.0, Some(5.0), false),
            (60.0, Some(5.1), true),
            (5.2, Some(5.1), true),
        ] {
            let late = is_late(Duration::from_secs_f64(start), scripts.map(Duration::from_secs_f64));
            assert_eq!(late, expected, "{start} s after the start, {scripts:?} after the scripts");
        }
    }
}
