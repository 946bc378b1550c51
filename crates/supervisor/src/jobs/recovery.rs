//! One job's way through as many engines as it takes. A plain state machine:
//! no process, no clock, no disk, so that every end of an engine can be tested
//! as data.

use std::collections::BTreeMap;

use memory::death::{Death, says_device_failed, says_no_code};
use memory::ladder::{Ladder, LadderState, Processor, Step, Trouble, gave_up};
use memory::{Mark, Stage};
use transcript::{Notice, Time, Transcript};
use wire::notice::Message;
use wire::{ErrorCode, Event, Failure, Job, Resume};

use super::journal_writer::Record;
use super::rungs;
use crate::progress::JobProgress;

/// Restarts of the engine for one job. A job that still fails then fails alone,
/// so that the others get their turn.
pub const MOST_RESTARTS: u32 = 3;
/// Deaths at places that were not skipped, the last of which ends the job.
const MOST_DEATHS: u32 = 3;

#[derive(Debug)]
pub struct RecoveryPolicy {
    /// As it was submitted, without `resume`.
    job: Job,
    progress: JobProgress,
    /// Where the job stands on its ladder; `None`: at the top.
    ladder: Option<LadderState>,
    /// Windows to pass over, by their first sample.
    skip: Vec<u64>,
    stage: Stage,
    /// What the engine is at: channel and sample.
    window: Option<(usize, u64)>,
    /// Where the engine began, for as long as no step was taken.
    top: Option<LadderState>,
    /// What the latest engine computes on.
    place: Processor,
    /// A step was taken that the next file should know of.
    is_lesser: bool,
    /// The engine took a step that only a new one can complete.
    renewing: bool,
    deaths: BTreeMap<(usize, u64), u32>,
    /// Before the first window, or between two.
    deaths_elsewhere: u32,
    /// SIGKILLs that nothing explains.
    kills: u32,
    attempts: u32,
    restarts: u32,
}

/// What an event means.
#[derive(Debug, Default)]
pub struct PolicyOutcome {
    /// For the client, in order.
    pub tell: Vec<Event>,
    pub record: Option<Record>,
}

/// How it goes on after an attempt that failed.
#[derive(Debug)]
pub enum Next {
    /// In a new engine.
    Again {
        tell: Vec<Event>,
        record: Vec<Record>,
    },
    GiveUp {
        tell: Vec<Event>,
        failure: Failure,
    },
}

impl RecoveryPolicy {
    /// `learned`: where the file before ended up on its ladder.
    pub fn new(mut job: Job, learned: Option<LadderState>) -> Self {
        let (ladder, skip) = match &mut job.resume {
            Some(resume) => (resume.ladder.take(), std::mem::take(&mut resume.skip)),
            None => (None, Vec::new()),
        };
        let ladder = ladder.or(learned);
        let progress = JobProgress::new(Box::new(job.clone()));
        job.resume = None;
        Self {
            job,
            progress,
            is_lesser: ladder.is_some(),
            ladder,
            skip,
            stage: Stage::SpeechModel,
            window: None,
            top: None,
            place: Processor::Cpu,
            renewing: false,
            deaths: BTreeMap::new(),
            deaths_elsewhere: 0,
            kills: 0,
            attempts: 0,
            restarts: 0,
        }
    }

    /// What the next engine is given, which will compute at `place`.
    pub fn next_job(&mut self, place: Processor) -> Job {
        self.place = place;
        self.attempts += 1;
        self.progress.begin_attempt();
        self.stage = Stage::SpeechModel;
        self.window = None;
        self.renewing = false;
        let mut job = self.job.clone();
        if let Some(state) = &self.ladder {
            rungs::apply(&mut job, &state.settings);
        }
        let resume = self.resume();
        job.resume = (resume != Resume::default()).then(|| Box::new(resume));
        job
    }

    /// What an engine needs to go on from the latest point.
    pub fn resume(&self) -> Resume {
        Resume {
            point: self.progress.point().cloned(),
            segments: self.progress.reached_segments(0),
            discarded: self.progress.discarded().to_vec(),
            notices: self.progress.notices().to_vec(),
            ladder: self.ladder.clone(),
            skip: self.skip.clone(),
        }
    }

    /// What is known of the job's text.
    pub fn progress(&self) -> &JobProgress {
        &self.progress
    }

    /// The journal's record of an attempt that begins.
    pub fn attempt(&self) -> Record {
        Record::Begun { attempts: self.attempts, ladder: self.ladder.clone(), skip: self.skip.clone() }
    }

    /// Takes in what an engine says, up to its last event.
    pub fn handle_event(&mut self, event: Event) -> PolicyOutcome {
        let mut record = None;
        match &event {
            Event::Ladder { state, .. } => {
                self.top = Some((**state).clone());
                // For the supervisor alone.
                return PolicyOutcome::default();
            }
            Event::Progress { progress, .. } => self.stage = progress.stage,
            Event::Prepared { channel, speech, log_mel_maximum, .. } => {
                self.stage = Stage::Transcribe;
                record = Some(Record::Prepared {
                    channel: *channel,
                    speech: speech.clone(),
                    log_mel_maximum: *log_mel_maximum,
                });
            }
            Event::Window { channel, position, .. } => {
                self.stage = Stage::Transcribe;
                self.window = Some((*channel, *position));
            }
            Event::Reached { point, .. } => {
                self.window = None;
                if self.progress.is_beyond(point) {
                    if let Some(state) = &mut self.ladder {
                        state.progressed();
                    }
                    record = Some(Record::Reached);
                }
            }
            Event::Notice { notice, .. } if !self.progress.notices().contains(notice) => {
                record = Some(Record::Notice(notice.clone()));
            }
            Event::Memory { sample } => record = Some(Record::Mark(Mark::Sample((**sample).clone()))),
            Event::Rung { rung, .. } => {
                self.renewing = rung.step == Step::RenewEngine;
                self.is_lesser |= rung.from != rung.to.settings;
                self.ladder = Some(rung.to.clone());
                record = Some(Record::Ladder(rung.to.clone()));
            }
            _ => {}
        }
        if !self.progress.handle_event(&event) {
            return PolicyOutcome { tell: Vec::new(), record };
        }
        // A client learns first what the file is, then what was found before.
        let is_start = matches!(event, Event::Started { .. });
        let mut tell = vec![event];
        if is_start {
            tell.extend(self.progress.replay());
        }
        PolicyOutcome { tell, record }
    }

    /// An attempt failed. `death`: what the engine died of, where it did.
    pub fn failed(&mut self, failure: Failure, death: Option<Death>) -> Next {
        if self.renewing && self.restarts < MOST_RESTARTS {
            // The rung was told by the engine that took it.
            self.restarts += 1;
            return Next::Again { tell: Vec::new(), record: Vec::new() };
        }
        let engine_failed = matches!(failure.code, ErrorCode::EngineFailed | ErrorCode::EngineSilent);
        // A panic that the engine caught leaves it in an unknown state.
        let is_fault = failure.code == ErrorCode::Internal;
        let trouble = match death {
            // Code that does not fit the card fails in every engine.
            None if says_device_failed(&failure.message) && !says_no_code(&failure.message) => {
                Some(Trouble::DeviceError)
            }
            Some(Death::OutOfMemory(_)) if engine_failed => Some(Trouble::Died),
            // Tried again as it was; the system may have a reason that it doesn't tell.
            Some(Death::Killed) if engine_failed => {
                self.kills += 1;
                (self.kills > 1).then_some(Trouble::Killed)
            }
            Some(Death::Device) if engine_failed => Some(Trouble::DeviceError),
            Some(Death::Crash) if engine_failed => None,
            None if is_fault => None,
            // The file is the cause, or the engine was asked to end.
            _ => return Next::GiveUp { tell: Vec::new(), failure },
        };
        let rung = trouble.and_then(|trouble| {
            let state = self.ladder.clone().or_else(|| self.top.clone());
            let state = state.unwrap_or_else(|| rungs::top(&self.job, self.place));
            let installed = rungs::installed(&self.job, &state.settings);
            let ladder = Ladder { pins: self.job.memory.pins(), installed };
            ladder.next(self.stage, &state, trouble)
        });
        let skipped = self.blame(rung.is_some());
        let at_large = self.deaths_at_large();
        if self.restarts >= MOST_RESTARTS || at_large >= MOST_DEATHS {
            let tell = trouble.map(|trouble| {
                let notice = wire::notice::from_memory(&gave_up(self.stage, trouble, self.job.memory.pins()));
                Event::Notice { notice }
            });
            return Next::GiveUp { tell: tell.into_iter().collect(), failure: self.last_failure(failure) };
        }
        self.restarts += 1;
        let (mut tell, mut record) = (Vec::new(), Vec::new());
        let notice = match rung {
            Some(rung) => {
                let notice = wire::notice::from_memory(&rung.notice());
                self.is_lesser |= rung.from != rung.to.settings;
                self.ladder = Some(rung.to.clone());
                record.push(Record::Ladder(rung.to.clone()));
                tell.push(Event::Rung { rung: Box::new(rung) });
                notice
            }
            None => {
                let notice = Notice::from(Message::restarted(&failure));
                self.window.map_or(notice.clone(), |(_, position)| notice.at(time(position)))
            }
        };
        for notice in std::iter::once(notice).chain(skipped) {
            if self.progress.add_notice(&notice) {
                record.push(Record::Notice(notice.clone()));
            }
            tell.push(Event::Notice { notice });
        }
        Next::Again { tell, record }
    }

    /// The notices that no engine knew of are added to its transcript.
    pub fn complete(&self, transcript: &mut Transcript) {
        for notice in self.progress.notices() {
            if !transcript.notices.contains(notice) {
                transcript.notices.push(notice.clone());
            }
        }
    }

    /// What there is of the text, the engine's own account of it or the
    /// host's, whichever holds more.
    pub fn partial(&self, of_engine: Option<Box<Transcript>>) -> Option<Box<Transcript>> {
        let ours = self.progress.partial();
        let length = |partial: &Option<Box<Transcript>>| partial.as_ref().map_or(0, |it| it.segments.len());
        if length(&of_engine) >= length(&ours) { of_engine } else { ours }
    }

    /// What the next file can start from, where this one went down its ladder.
    pub fn learned(&self) -> Option<LadderState> {
        self.ladder.as_ref().filter(|_| self.is_lesser).map(LadderState::for_next_file)
    }

    /// Notes where the engine died. A place that ended it twice is passed over
    /// from now on; one where memory ran out gets another try for as long as
    /// there is a step down to take, since the place may not be to blame.
    fn blame(&mut self, may_help: bool) -> Option<Notice> {
        let Some(window) = self.window else {
            self.deaths_elsewhere += 1;
            return None;
        };
        let deaths = self.deaths.entry(window).or_default();
        *deaths += 1;
        let enough = if may_help { 3 } else { 2 };
        let (_, position) = window;
        if *deaths < enough || self.skip.contains(&position) {
            return None;
        }
        self.skip.push(position);
        Some(Notice::from(Message::WindowSkipped { times: *deaths }).at(time(position)))
    }

    fn deaths_at_large(&self) -> u32 {
        let skipped = |(_, position): &(usize, u64)| self.skip.contains(position);
        let at_windows = self.deaths.iter().filter(|(window, _)| !skipped(window)).map(|(_, deaths)| deaths);
        at_windows.sum::<u32>() + self.deaths_elsewhere
    }

    fn last_failure(&self, mut failure: Failure) -> Failure {
        if self.restarts > 0 {
            let times = self.restarts + 1;
            failure.message = format!("{} It had been started {times} times for this file.", failure.message);
        }
        failure
    }
}

fn time(position: u64) -> Time {
    /// Of the stream in which positions count, per second.
    const SAMPLES: f64 = 16_000.0;
    Time::from_seconds(position as f64 / SAMPLES)
}

#[cfg(test)]
#[path = "recovery_tests.rs"]
mod tests;
