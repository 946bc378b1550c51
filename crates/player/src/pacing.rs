//! Limits how far ahead of playback a recording is sent.
//!
//! WebKit reads media as fast as they come, and would keep all of it for as long as it
//! is played. So ten seconds are sent at once and then hardly more than is played, at
//! the speed that the page reports (`TOKEN/speed/N`). An answer shorter than the range
//! that was asked for would bound it more simply, but WebKit waits for the rest for ever.

use std::time::Duration;

/// WebKit reads as fast as it can and keeps everything in memory. Playback needs
/// some seconds at once, then slightly more than it plays.
const SECONDS: f64 = 10.0;
const MARGIN: f64 = 1.05;
/// Longest pause, after which a sender checks whether the speed has changed.
const MAX_PAUSE: Duration = Duration::from_millis(100);

/// Seconds of a recording that may be sent without a pause.
#[derive(Debug)]
pub(crate) struct SendBudget(f64);

impl SendBudget {
    pub(crate) fn new() -> Self {
        Self(SECONDS)
    }

    /// Notes that seconds of the recording were sent.
    pub(crate) fn sent(&mut self, seconds: f64) {
        self.0 -= seconds;
    }

    /// Notes that time passed while the recording was played at a speed. The budget
    /// never exceeds its start, so that a reader that paused gets no more at once.
    /// Returns `None` if sending may go on, else the pause before asking again.
    pub(crate) fn passed(&mut self, time: Duration, speed: f64) -> Option<Duration> {
        let speed = speed * MARGIN;
        self.0 = SECONDS.min(self.0 + speed * time.as_secs_f64());
        let due = Duration::try_from_secs_f64(-self.0 / speed).ok()?;
        (self.0 <= 0.0).then(|| due.clamp(Duration::from_millis(1), MAX_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a recording that are sent within `seconds` to a reader that takes everything.
    fn taken(budget: &mut SendBudget, seconds: u32, speed: f64) -> f64 {
        let (mut now, mut sent, mut passed) = (Duration::ZERO, 0.0, Duration::ZERO);
        let end = Duration::from_secs(u64::from(seconds));
        while now < end {
            if let Some(pause) = budget.passed(std::mem::take(&mut passed), speed) {
                now += pause;
                passed = pause;
            } else {
                budget.sent(0.5);
                sent += 0.5;
            }
        }
        sent
    }

    #[test]
    fn sending_follows_playback() {
        for speed in [0.5, 1.0, 2.0, 3.0] {
            let sent = taken(&mut SendBudget::new(), 600, speed);
            let played = 600.0 * speed;
            assert!(sent > played + 5.0 && sent < played * MARGIN + SECONDS + 1.0, "{speed}: {sent}");
        }
    }

    #[test]
    fn a_higher_speed_is_followed() {
        let mut budget = SendBudget::new();
        taken(&mut budget, 60, 1.0);
        let sent = taken(&mut budget, 60, 3.0);
        assert!(sent >= 180.0, "{sent}");
    }

    #[test]
    fn a_reader_that_paused_gets_no_more_at_once() {
        let mut budget = SendBudget::new();
        taken(&mut budget, 60, 1.0);
        assert_eq!(budget.passed(Duration::from_secs(3600), 1.0), None);
        let sent = taken(&mut budget, 1, 1.0);
        assert!(sent < SECONDS + 3.0, "{sent}");
    }
}
