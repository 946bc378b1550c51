//! Whether the window's first frame was seen in time. Some graphics drivers
//! leave it blank; `renderer` has what helps then.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::renderer;

/// From when the page's scripts run: a machine that is slow to start is no
/// reason to draw slowly for ever.
const PATIENCE: Duration = Duration::from_secs(5);
/// Until the page's scripts run at all.
const LONGEST_START: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// For tests: the usual renderer's frames are not seen.
const BLANK: &str = "STENO_TEST_BLANK_PAGE";

/// For measurements: tells on standard error when what happened.
const TIMES: &str = "STENO_TEST_TIMES";

#[derive(Debug)]
pub struct FirstPaint {
    started: Instant,
    attached: Mutex<Option<Instant>>,
    /// After what time.
    painted: Mutex<Option<Duration>>,
    over: AtomicBool,
}

impl FirstPaint {
    pub fn since(started: Instant) -> Self {
        let (attached, painted) = (Mutex::default(), Mutex::default());
        Self { started, attached, painted, over: AtomicBool::new(false) }
    }

    /// The page's scripts run.
    pub fn attached(&self) {
        lock(&self.attached).get_or_insert_with(Instant::now);
        self.tell("scripts run");
    }

    /// The page has shown its first frame, or it is hidden and need not yet.
    /// True where that was the first, and the simplest renderer's.
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

    /// From the program's start to the first frame that the page saw.
    pub fn time(&self) -> Option<Duration> {
        *lock(&self.painted)
    }

    /// Waits for the first frame; false where it is late.
    pub fn comes(&self) -> bool {
        while !self.over.load(Ordering::Relaxed) {
            let attached = *lock(&self.attached);
            if is_late(self.started.elapsed(), attached.map(|since| since.elapsed())) {
                return false;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        true
    }

    fn tell(&self, what: &str) {
        if std::env::var_os(TIMES).is_some() {
            eprintln!("steno-window: {what} after {} ms", self.started.elapsed().as_millis());
        }
    }
}

/// So long after the program's start, and after its page's scripts began to run.
fn is_late(since_start: Duration, since_scripts: Option<Duration>) -> bool {
    since_scripts.map_or(since_start > LONGEST_START, |since| since > PATIENCE)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_start_is_no_blank_window() {
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
