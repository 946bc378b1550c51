//! A whole job against a simulated card: stages with scopes, an allocation
//! that fails at every possible place, the ladder walked, the ledger empty
//! afterwards, and every line of the log readable.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::sync::{Arc, Mutex};

use memory::bytes::{GIB, MIB};
use memory::fit::{self, BatchLimits};
use memory::ladder::{
    Installed, Ladder, LadderSettings, LadderState, Pins, Processor, Step, Trouble, gave_up,
};
use memory::log::{self, Line};
use memory::simulated::OutOfMemory;
use memory::{
    Budgeted, Checkpoint, Code, Demand, Device, DeviceKind, Dimensions, Footprint, Mark, Plan, Precision,
    Refused, Scope, Severity, Simulated, Stage, Timeline, Tracker,
};

const WINDOWS: u32 = 12;

/// What makes an attempt at a stage fail.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

impl Failed {
    fn trouble(&self) -> Trouble {
        match self {
            Self::Refused(_) => Trouble::Refused,
            Self::OutOfMemory(_) => Trouble::OutOfMemory,
        }
    }
}

/// An engine whose tensors are allocations on simulated devices.
struct Engine {
    gpu: Simulated,
    host: Simulated,
    gpu_tracker: Tracker,
    host_tracker: Tracker,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    fn new(gpu_bytes: u64, limit: Option<u64>) -> Self {
        let gpu = Simulated::new(DeviceKind::Gpu, gpu_bytes).with_fixed(400 * MIB);
        let host = Simulated::new(DeviceKind::Host, 64 * GIB);
        let lines = Arc::new(Mutex::new(Vec::new()));
        let device: Box<dyn Device> = match limit {
            Some(limit) => Box::new(Budgeted::new(gpu.clone(), limit)),
            None => Box::new(gpu.clone()),
        };
        let written = Arc::clone(&lines);
        let gpu_tracker =
            Tracker::with_sink(device, move |mark: &Mark| written.lock().unwrap().push(mark.line()));
        let written = Arc::clone(&lines);
        let host_tracker =
            Tracker::with_sink(host.clone(), move |mark: &Mark| written.lock().unwrap().push(mark.line()));
        Self { gpu, host, gpu_tracker, host_tracker, lines }
    }

    fn on(&self, place: Processor) -> (&Simulated, &Tracker) {
        match place {
            Processor::Gpu => (&self.gpu, &self.gpu_tracker),
            Processor::Cpu => (&self.host, &self.host_tracker),
        }
    }

    /// The job: each stage from where it stands, down the ladder until it is
    /// done or nothing is left to try.
    fn job(&self, ladder: &Ladder, settings: LadderSettings) -> Outcome {
        self.gpu_tracker.begin_job();
        self.host_tracker.begin_job();
        let mut state = LadderState::new(settings);
        let mut done = Done::default();
        let mut steps = Vec::new();
        let mut failed = None;
        'stages: for stage in [Stage::Preprocess, Stage::Transcribe, Stage::Diarize, Stage::Align] {
            while let Err(error) = self.attempt(stage, &mut state, &mut done) {
                let tracker = &self.gpu_tracker;
                let Some(rung) = ladder.next(stage, &state, error.trouble()) else {
                    tracker.notice(gave_up(stage, error.trouble(), ladder.pins));
                    failed = Some(error.to_string());
                    break 'stages;
                };
                if rung.step == Step::RetryAfterTrim {
                    tracker.recover().unwrap();
                }
                tracker.notice(rung.notice());
                steps.push(rung.step);
                state = rung.to;
                assert!(steps.len() < 60, "no end: {steps:?}");
            }
        }
        let timeline = self.gpu_tracker.end_job();
        self.host_tracker.end_job();
        Outcome { done, steps, settings: state.settings, failed, timeline }
    }

    fn attempt(&self, stage: Stage, state: &mut LadderState, done: &mut Done) -> Result<(), Failed> {
        match stage {
            Stage::Preprocess => {
                let scope = Scope::enter(&self.host_tracker, stage, 200 * MIB)?;
                let sound = self.host.allocate(150 * MIB)?;
                scope.leave(|| drop(sound));
            }
            Stage::Transcribe => self.transcribe(state, done)?,
            Stage::Diarize | Stage::Align if !state.settings.speakers => done.speakers = false,
            _ => {
                let (device, tracker) = self.on(state.settings.speaker_place);
                let scope = Scope::enter(tracker, stage, Demand::new("stand-in", 500 * MIB))?;
                let buffers = device.allocate(450 * MIB)?;
                done.speakers = true;
                scope.leave(|| drop(buffers));
            }
        }
        Ok(())
    }

    fn transcribe(&self, state: &mut LadderState, done: &mut Done) -> Result<(), Failed> {
        let settings = state.settings.clone();
        let (device, tracker) = self.on(settings.place);
        let footprint = footprint(&settings);
        let mut model = Scope::enter(tracker, Stage::SpeechModel, footprint.model_demand(&settings.model))?;
        let weights = device.allocate(footprint.weights)?;
        model.loaded();
        let demand = footprint.work_demand(u64::from(settings.batch));
        let mut scope = Scope::enter(tracker, Stage::Transcribe, demand.clone())?;
        // From the last good window on.
        while done.windows.len() < WINDOWS as usize {
            let tensors = device.allocate(demand.bytes)?;
            let first = done.windows.len() as u32;
            for window in first..(first + settings.batch).min(WINDOWS) {
                done.windows.push((window, settings.model.clone()));
            }
            drop(tensors);
            scope.batch();
            state.progressed();
        }
        scope.leave(|| ());
        model.leave(|| drop(weights));
        Ok(())
    }

    /// Bytes promised and bytes in use, on both devices.
    fn held(&self) -> [u64; 4] {
        let in_use = |device: &Simulated| {
            memory::Probe::read(device).unwrap().ours.map_or(0, |ours| ours.allocated.max(ours.reserved))
        };
        [
            self.gpu_tracker.budget().reserved(),
            self.host_tracker.budget().reserved(),
            in_use(&self.gpu),
            in_use(&self.host),
        ]
    }
}

#[derive(Debug, Default, PartialEq)]
struct Done {
    /// Number of the window, and the model that wrote it.
    windows: Vec<(u32, String)>,
    speakers: bool,
}

#[derive(Debug)]
struct Outcome {
    done: Done,
    steps: Vec<Step>,
    settings: LadderSettings,
    failed: Option<String>,
    timeline: Timeline,
}

impl Outcome {
    /// Every window once, in order.
    fn is_complete(&self) -> bool {
        self.done.windows.iter().map(|(window, _)| *window).eq(0..WINDOWS)
    }
}

fn footprint(settings: &LadderSettings) -> Footprint {
    let dimensions = Dimensions::of_public(&settings.model).unwrap();
    let stored: Precision = settings.precision.parse().unwrap();
    let kind = if settings.place == Processor::Gpu { DeviceKind::Gpu } else { DeviceKind::Host };
    Footprint::whisper(&dimensions, &Plan::new(kind, stored.usual_on(kind), &dimensions))
}

fn installed() -> Vec<Installed> {
    [("large-v3", "f16"), ("large-v3", "q5_0"), ("small", "f16"), ("tiny", "f16")]
        .into_iter()
        .map(|(model, precision)| {
            let settings = |place| LadderSettings { place, ..start(model, precision, 1) };
            Installed {
                model: model.into(),
                precision: precision.into(),
                parameters: Dimensions::of_public(model).unwrap().parameters().total(),
                gpu_bytes: footprint(&settings(Processor::Gpu)).weights,
                host_bytes: footprint(&settings(Processor::Cpu)).weights,
                suits: true,
            }
        })
        .collect()
}

fn start(model: &str, precision: &str, batch: u32) -> LadderSettings {
    LadderSettings {
        model: model.into(),
        precision: precision.into(),
        batch,
        place: Processor::Gpu,
        speakers: true,
        speaker_batch: 4,
        speaker_place: Processor::Gpu,
    }
}

#[test]
fn a_job_with_enough_memory_is_undisturbed() {
    let engine = Engine::new(24 * GIB, None);
    let outcome = engine.job(&Ladder::default(), start("large-v3", "f16", 4));
    assert!(outcome.is_complete() && outcome.failed.is_none() && outcome.steps.is_empty(), "{outcome:?}");
    assert_eq!(outcome.timeline.notices, []);
    assert_eq!(engine.held(), [0; 4]);
    // The batch that was used is one that the check allows.
    let check = fit::check(&footprint(&outcome.settings), None, 24 * GIB, 4);
    assert!(outcome.timeline.peak().unwrap() <= check.peak);
    let batch = fit::batch(&footprint(&outcome.settings), 24 * GIB, &BatchLimits::default());
    assert!(batch.windows >= 4);
}

/// Whichever reservation fails, once: the job ends complete, with the model it
/// began with, and nothing stays behind.
#[test]
fn every_reservation_may_fail() {
    let ladder = Ladder { pins: Pins::default(), installed: installed() };
    let clean = Engine::new(24 * GIB, None);
    clean.job(&ladder, start("small", "f16", 4));
    let asked = [clean.gpu_tracker.budget().asked(), clean.host_tracker.budget().asked()];
    assert_eq!(asked, [4, 1]);
    for (device, count) in asked.into_iter().enumerate() {
        for k in 1..=count {
            let engine = Engine::new(24 * GIB, None);
            let tracker = [&engine.gpu_tracker, &engine.host_tracker][device];
            tracker.budget().refuse_nth(Some(k));
            let outcome = engine.job(&ladder, start("small", "f16", 4));
            assert!(outcome.is_complete() && outcome.failed.is_none(), "{k}: {outcome:?}");
            assert!(outcome.done.speakers && outcome.done.windows.iter().all(|(_, model)| model == "small"));
            assert_eq!(outcome.steps, [Step::RetryAfterTrim], "{k}");
            assert_eq!(engine.held(), [0; 4], "{k}");
            let recoveries =
                outcome.timeline.samples.iter().filter(|s| s.checkpoint == Checkpoint::AfterRecovery);
            assert_eq!(recoveries.count(), 1, "{k}");
        }
    }
}

/// Limits from plenty to nothing: every rung is taken somewhere, no window is
/// lost or doubled, and what was held never exceeds the limit.
#[test]
fn every_limit_ends_in_a_complete_transcript() {
    let ladder = Ladder { pins: Pins::default(), installed: installed() };
    let mut taken: Vec<Step> = Vec::new();
    let mut models: Vec<(String, Processor)> = Vec::new();
    for megabytes in [24_000, 6000, 5000, 4000, 3000, 2000, 1200, 900, 700, 500, 300] {
        let engine = Engine::new(24 * GIB, Some(megabytes * MIB));
        let outcome = engine.job(&ladder, start("large-v3", "f16", 8));
        assert!(outcome.is_complete() && outcome.failed.is_none(), "{megabytes}: {outcome:?}");
        assert_eq!(engine.held(), [0; 4], "{megabytes}");
        let held = outcome.timeline.peak().unwrap();
        assert!(held + 400 * MIB <= (megabytes * MIB).max(400 * MIB), "{megabytes}: {} MB held", held / MIB);
        let severities: Vec<Severity> = outcome.timeline.notices.iter().map(|n| n.severity).collect();
        let degraded = outcome.steps.iter().any(|step| step.severity() == Severity::Degraded);
        assert_eq!(severities.contains(&Severity::Degraded), degraded, "{megabytes}");
        taken.extend(&outcome.steps);
        models.push((outcome.settings.model, outcome.settings.place));
    }
    for step in [Step::RetryAfterTrim, Step::HalveBatch, Step::LowerPrecision, Step::SmallerModel, Step::Cpu]
    {
        assert!(taken.contains(&step), "{step:?} was never taken");
    }
    let small = |gpu: &str| (gpu.to_owned(), Processor::Gpu);
    assert_eq!((models.first(), models.contains(&small("tiny"))), (Some(&small("large-v3")), true));
    assert_eq!(models.last().map(|(_, place)| *place), Some(Processor::Cpu));
}

#[test]
fn pins_turn_steps_into_a_clear_end() {
    let pins = Pins { model: true, precision: true, cpu: true, speakers: true };
    let ladder = Ladder { pins, installed: installed() };
    let engine = Engine::new(24 * GIB, Some(2 * GIB));
    let outcome = engine.job(&ladder, start("large-v3", "f16", 2));
    let failed = outcome.failed.unwrap();
    assert!(
        failed.starts_with(
            "The speech model (large-v3) needs 2.9 GB of GPU memory, but only 1.6 GB of 2.0 GB is free"
        ),
        "{failed}"
    );
    let last = outcome.timeline.notices.last().unwrap();
    assert_eq!((last.code, last.severity), (Code::GaveUp, Severity::Failed));
    assert_eq!(engine.held(), [0; 4]);
    // The next file of the same engine is not affected.
    let next = engine.job(&ladder, start("tiny", "f16", 1));
    assert!(next.is_complete() && next.failed.is_none(), "{next:?}");
}

#[test]
fn another_program_that_takes_its_memory_back_is_survived() {
    let ladder = Ladder { pins: Pins::default(), installed: installed() };
    let engine = Engine::new(8 * GIB, None);
    engine.gpu.set_others(6 * GIB);
    let first = engine.job(&ladder, start("large-v3", "f16", 1));
    assert!(first.is_complete(), "{first:?}");
    assert_eq!(first.settings.precision, "q5_0");
    let codes: Vec<Code> = first.timeline.notices.iter().map(|notice| notice.code).collect();
    assert!(codes.contains(&Code::Occupied), "{codes:?}");
    engine.gpu.set_others(0);
    let second = engine.job(&ladder, start("large-v3", "f16", 1));
    assert_eq!((second.settings.model.as_str(), second.steps.len()), ("large-v3", 0));
}

#[test]
fn every_line_of_the_log_can_be_read() {
    let ladder = Ladder { pins: Pins::default(), installed: installed() };
    let engine = Engine::new(8 * GIB, Some(3 * GIB));
    engine.job(&ladder, start("large-v3", "f16", 8));
    let lines = engine.lines.lock().unwrap();
    let (mut samples, mut notices) = (0, 0);
    for line in lines.iter() {
        match log::parse(line) {
            Some(Line::Memory { kind, figures: Some(figures), .. }) => {
                samples += 1;
                let total = if kind == DeviceKind::Gpu { 3.0 } else { 64.0 };
                assert!(figures.total_gb == total && figures.free_gb <= total, "{line}");
                assert!(figures.allocated_gb <= figures.reserved_gb + 0.01, "{line}");
            }
            Some(Line::Notice { .. }) => notices += 1,
            other => panic!("{line:?} reads as {other:?}"),
        }
    }
    assert!(samples > 20 && notices > 3, "{samples} samples, {notices} notices");
}

/// The timeline travels as JSON and is kept with the transcript.
#[test]
fn a_timeline_survives_the_journey() {
    let engine = Engine::new(8 * GIB, Some(3 * GIB));
    let ladder = Ladder { pins: Pins::default(), installed: installed() };
    let timeline = engine.job(&ladder, start("large-v3", "f16", 2)).timeline;
    let text = serde_json::to_string(&timeline).unwrap();
    assert_eq!(serde_json::from_str::<Timeline>(&text).unwrap(), timeline);
    let first = serde_json::to_value(&timeline.samples[0]).unwrap();
    assert_eq!(first["checkpoint"], "pipeline_start");
    assert_eq!(first["levels"]["total"], 3 * GIB);
}
