use std::time::{Duration, Instant};

use transcript::Time;
use wire::{Event, Progress, Stage};

/// Reports how far a stage is, at most a few times a second.
pub struct Reporter<'a> {
    stage: Stage,
    duration: Option<Time>,
    started: Instant,
    /// Position at the start of the stage: speed counts from there.
    origin: Time,
    last: Option<Instant>,
    emit: &'a mut (dyn FnMut(Event) + Send),
}

/// A person sees no difference above this rate, and the window is spared.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);

impl<'a> Reporter<'a> {
    pub fn new(stage: Stage, duration: Option<Time>, emit: &'a mut (dyn FnMut(Event) + Send)) -> Self {
        let mut reporter =
            Self { stage, duration, started: Instant::now(), origin: Time::ZERO, last: None, emit };
        reporter.at(Time::ZERO);
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
        let left = self
            .duration
            .zip(speed)
            .map(|(duration, speed)| (duration.saturating_sub(position).seconds() / speed) as f32);
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

    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}
