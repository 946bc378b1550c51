use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use transcript::StageTime;

use crate::platform;

/// Weights are read.
pub const LOAD_MODEL: &str = "load_model";
/// The first words of a long recording are shown before it is read.
pub const PREVIEW: &str = "preview";
/// A file becomes samples, and speech is looked for in them.
pub const PREPROCESS: &str = "preprocess";
/// The language is listened for.
pub const LANGUAGE: &str = "language";
/// Samples become log-mel. What is prepared while a card computes counts as the stage that it runs beside.
pub const LOG_MEL: &str = "log_mel";
/// The encoder.
pub const ENCODE: &str = "encode";
/// The decoder, with its retries.
pub const DECODE: &str = "decode";
/// Words get their times.
pub const WORD_TIMES: &str = "word_times";
/// What of a transcription is none of the above.
pub const TRANSCRIBE: &str = "transcribe";
/// Who speaks when.
pub const SPEAKERS: &str = "speakers";

/// What the time of a job goes into. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Timings(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// In the order in which they began.
    stages: Vec<StageTime>,
    /// What the stages that were begun within each open one took, the innermost last.
    within: Vec<Taken>,
}

/// A stage that has not ended.
#[derive(Debug)]
pub struct Stage<'a> {
    timings: &'a Timings,
    name: &'a str,
    started: Instant,
    processor: Duration,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let processor = platform::processor_time().saturating_sub(self.processor);
        self.timings.end(self.name, Taken { wall: self.started.elapsed(), processor });
    }
}

/// Wall time, and time of all cores.
#[derive(Debug, Clone, Copy, Default)]
struct Taken {
    wall: Duration,
    processor: Duration,
}

impl Timings {
    /// Does `work` and adds what it takes to the stage `name`, less what stages within it take.
    ///
    /// All calls come from the thread that works on the job.
    pub fn of<T>(&self, name: &str, work: impl FnOnce() -> T) -> T {
        let _stage = self.stage(name);
        work()
    }

    /// As [`Self::of`], until the answer is dropped.
    pub fn stage<'a>(&'a self, name: &'a str) -> Stage<'a> {
        self.begin(name);
        Stage { timings: self, name, started: Instant::now(), processor: platform::processor_time() }
    }

    /// What has been measured until now.
    pub fn stages(&self) -> Vec<StageTime> {
        self.state().stages.clone()
    }

    fn begin(&self, name: &str) {
        let mut state = self.state();
        state.within.push(Taken::default());
        if !state.stages.iter().any(|stage| stage.name == name) {
            state.stages.push(StageTime { name: name.to_owned(), ..StageTime::default() });
        }
    }

    fn end(&self, name: &str, all: Taken) {
        let mut state = self.state();
        let within = state.within.pop().unwrap_or_default();
        if let Some(outer) = state.within.last_mut() {
            outer.wall += all.wall;
            outer.processor += all.processor;
        }
        if let Some(stage) = state.stages.iter_mut().find(|stage| stage.name == name) {
            stage.seconds += all.wall.saturating_sub(within.wall).as_secs_f64();
            stage.processor_seconds += all.processor.saturating_sub(within.processor).as_secs_f64();
        }
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_within_another_is_counted_once() {
        let timings = Timings::default();
        let pause = || std::thread::sleep(Duration::from_millis(20));
        timings.of(TRANSCRIBE, || {
            timings.of(ENCODE, pause);
            timings.of(DECODE, || {
                pause();
                timings.of(ENCODE, pause);
            });
        });
        let stages = timings.stages();
        let names: Vec<_> = stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, [TRANSCRIBE, ENCODE, DECODE]);
        let seconds = |name| stages.iter().find(|stage| stage.name == name).unwrap().seconds;
        assert!(seconds(ENCODE) >= 0.04 && seconds(DECODE) >= 0.02, "{stages:?}");
        // Of the 60 ms, nothing is the outermost's own but what starting and stopping take.
        assert!(seconds(TRANSCRIBE) < 0.01 + 0.5 * seconds(ENCODE), "{stages:?}");
    }

    #[test]
    fn processor_time_is_that_of_all_threads() {
        let timings = Timings::default();
        let enough = platform::processor_time() + Duration::from_millis(100);
        let work = move || {
            while platform::processor_time() < enough {
                std::hint::spin_loop();
            }
        };
        timings.of(ENCODE, || {
            let other = std::thread::spawn(work);
            work();
            other.join().unwrap();
        });
        let stage = &timings.stages()[0];
        assert!(stage.processor_seconds >= 0.099, "{stage:?}");
        let cores = std::thread::available_parallelism().unwrap().get() as f64;
        assert!(stage.processor_seconds <= 1.1 * cores * stage.seconds, "{stage:?}");
    }
}
