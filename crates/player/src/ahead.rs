//! How far ahead of what is played a recording is sent.

use std::time::Duration;

/// WebKit reads as fast as it is given, and keeps that in memory: what is played
/// needs a few seconds ahead at once, and then as much as is played, and a little.
const SECONDS: f64 = 10.0;
const MARGIN: f64 = 1.05;
/// After so long a sender looks whether the speed is another one.
const LOOK: Duration = Duration::from_millis(100);

/// Seconds of a recording that may be sent at once.
#[derive(Debug)]
pub(crate) struct Ahead(f64);

impl Ahead {
    pub(crate) fn new() -> Self {
        Self(SECONDS)
    }

    /// So many seconds of the recording were sent.
    pub(crate) fn sent(&mut self, seconds: f64) {
        self.0 -= seconds;
    }

    /// So much time went by while it was played at a speed. Who stopped reading
    /// for a while gets no more at once for it. `None`: go on sending; else look
    /// again after that time.
    pub(crate) fn passed(&mut self, time: Duration, speed: f64) -> Option<Duration> {
        let speed = speed * MARGIN;
        self.0 = SECONDS.min(self.0 + speed * time.as_secs_f64());
        let due = Duration::try_from_secs_f64(-self.0 / speed).ok()?;
        (self.0 <= 0.0).then(|| due.clamp(Duration::from_millis(1), LOOK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds of a recording that are sent in so many of a reader who takes all of it.
    fn taken(ahead: &mut Ahead, seconds: u32, speed: f64) -> f64 {
        let (mut now, mut sent, mut passed) = (Duration::ZERO, 0.0, Duration::ZERO);
        let end = Duration::from_secs(u64::from(seconds));
        while now < end {
            if let Some(pause) = ahead.passed(std::mem::take(&mut passed), speed) {
                now += pause;
                passed = pause;
            } else {
                ahead.sent(0.5);
                sent += 0.5;
            }
        }
        sent
    }

    #[test]
    fn no_more_is_sent_than_is_played_and_never_less() {
        for speed in [0.5, 1.0, 2.0, 3.0] {
            let sent = taken(&mut Ahead::new(), 600, speed);
            let played = 600.0 * speed;
            assert!(sent > played + 5.0 && sent < played * MARGIN + SECONDS + 1.0, "{speed}: {sent}");
        }
    }

    #[test]
    fn a_speed_that_is_raised_on_the_way_is_followed() {
        let mut ahead = Ahead::new();
        taken(&mut ahead, 60, 1.0);
        let sent = taken(&mut ahead, 60, 3.0);
        assert!(sent >= 180.0, "{sent}");
    }

    #[test]
    fn who_stopped_for_an_hour_gets_a_few_seconds_at_once() {
        let mut ahead = Ahead::new();
        taken(&mut ahead, 60, 1.0);
        assert_eq!(ahead.passed(Duration::from_secs(3600), 1.0), None);
        let sent = taken(&mut ahead, 1, 1.0);
        assert!(sent < SECONDS + 3.0, "{sent}");
    }
}
