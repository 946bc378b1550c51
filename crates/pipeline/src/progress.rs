use std::time::{Duration, Instant};

use transcript::Time;
use wire::{Event, Progress, Stage};

/// Reports how far a stage is, at most a few times a second.
pub struct Reporter<'a> {
    stage: Stage,
    duration: Option<Time>,
    started: Instant,
    /// Position at the start of the stage: what lies before was done at another time, or is not asked
    /// for, and has no part in the speed.
    origin: Time,
    /// Position at which the stage will be done, where it is another one than the recording's end.
    end: Option<Time>,
    last: Option<Instant>,
    emit: &'a mut (dyn FnMut(Event) + Send),
}

/// A person sees no difference above this rate, and the window is spared.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

impl<'a> Reporter<'a> {
    pub fn new(stage: Stage, duration: Option<Time>, emit: &'a mut (dyn FnMut(Event) + Send)) -> Self {
        Self::within(stage, duration, Time::ZERO, None, emit)
    }

    /// Of a stage that begins at `origin` of the recording, and is done at `end` or with the recording.
    pub fn within(
        stage: Stage,
        duration: Option<Time>,
        origin: Time,
        end: Option<Time>,
        emit: &'a mut (dyn FnMut(Event) + Send),
    ) -> Self {
        let mut reporter = Self { stage, duration, started: Instant::now(), origin, end, last: None, emit };
        reporter.at(origin);
        reporter
    }

    pub fn set_duration(&mut self, duration: Option<Time>) {
        self.duration = duration;
    }

    pub fn at(&mut self, position: Time) {
        let now = Instant::now();
        let done = self.duration.is_some_and(|duration| position >= duration);
        if !done && self.last.is_some_and(|last| now - last < SHORTEST_INTERVAL) {
            return;
        }
        self.last = Some(now);
        let elapsed = (now - self.started).as_secs_f64();
        let covered = position.saturating_sub(self.origin).seconds();
        let speed = (covered > 0.0 && elapsed > 0.0).then(|| covered / elapsed);
        let end = match (self.end, self.duration) {
            (Some(end), Some(duration)) => Some(end.min(duration)),
            (end, duration) => end.or(duration),
        };
        let left = end.zip(speed).map(|(end, speed)| (end.saturating_sub(position).seconds() / speed) as f32);
        let progress = Progress {
            stage: self.stage,
            position,
            duration: self.duration,
            speed: speed.map(|speed| speed as f32),
            left,
        };
        (self.emit)(Event::Progress { progress });
    }

    pub fn emit(&mut self, event: Event) {
        (self.emit)(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_done_before_has_no_part_in_speed_and_time_left() {
        let seconds = |seconds: u32| Time::from_millis(seconds * 1_000);
        let mut told: Vec<Progress> = Vec::new();
        let mut emit = |event: Event| {
            if let Event::Progress { progress } = event {
                told.push(progress);
            }
        };
        let mut reporter =
            Reporter::within(Stage::Transcribe, Some(seconds(3_600)), seconds(1_800), None, &mut emit);
        // As if ten seconds ago.
        reporter.started = reporter.started.checked_sub(Duration::from_secs(10)).unwrap();
        reporter.last = None;
        reporter.at(seconds(1_900));
        reporter.end = Some(seconds(2_000));
        reporter.last = None;
        reporter.at(seconds(1_900));
        let [first, resumed, part] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((first.position, first.speed, first.left), (seconds(1_800), None, None));
        let speed = resumed.speed.unwrap();
        assert!((9.0..=10.1).contains(&speed), "100 s in 10 s: {speed}");
        let left = resumed.left.unwrap();
        assert!((168.0..=190.0).contains(&left), "1,700 s at ten times real time: {left}");
        let left = part.left.unwrap();
        assert!((9.8..=11.2).contains(&left), "100 s until the end of the part: {left}");
    }
}
