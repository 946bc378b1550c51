//! A GPU that runs out of memory at any allocation, without a GPU: the real
//! CUDA engine on a driver that keeps account of memory and computes nothing
//! (scripts/cuda/mock). `CUDA_COMPUTE_CAP=90 scripts/cuda/build.sh` makes the
//! one, `scripts/cuda/mock/build.sh FOLDER` the other; without both, named in
//! STENO_MOCK_ENGINE and STENO_MOCK_DRIVER, this is skipped.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests do"
)]

mod support;

use std::path::{Path, PathBuf};

use memory::ladder::{Place, State, Step};
use memory::{Checkpoint, Mark};
use support::Engine;
use transcript::Transcript;
use wire::{Command, DeviceChoice, ErrorCode, Event, Failure, Job, Resume};

fn project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// The CUDA engine and the folder with the mock driver.
fn mock() -> Option<(PathBuf, String)> {
    let engine = std::env::var_os("STENO_MOCK_ENGINE")?;
    Some((engine.into(), std::env::var("STENO_MOCK_DRIVER").ok()?))
}

/// Its text means nothing: one temperature, few tokens, no repair.
fn job(device: DeviceChoice) -> Job {
    let mut job = Job::new(1, project("tests/data/sample.flac"), project("models/starter-whisper"));
    job.device = device;
    job.language = Some("en".into());
    job.decoding.temperatures = vec![0.0];
    job.decoding.repair = false;
    job.decoding.max_tokens = Some(8);
    job
}

struct Outcome {
    end: Result<Transcript, Failure>,
    rungs: Vec<(Step, State)>,
    /// In use on the device after the job, the model included.
    left: Option<u64>,
}

fn run(engine: &mut Engine, job: &Job) -> Outcome {
    engine.send(Command::Transcribe(Box::new(job.clone())));
    let (mut rungs, mut left) = (Vec::new(), None);
    let end = loop {
        match engine.next() {
            Event::Rung { rung, .. } => rungs.push((rung.step, rung.to)),
            Event::Memory { mark, .. } => {
                if let Mark::Sample(sample) = *mark
                    && sample.checkpoint == Checkpoint::FinalCleanup
                    && sample.kind == memory::Kind::Gpu
                {
                    left = sample.levels.map(|levels| levels.allocated);
                }
            }
            Event::Finished { transcript, .. } => break Ok(*transcript),
            Event::Failed { error, .. } => break Err(error),
            _ => {}
        }
    };
    Outcome { end, rungs, left }
}

#[test]
fn any_allocation_may_fail() {
    let Some((program, driver)) = mock() else {
        println!("skipped: no CUDA engine and mock driver (STENO_MOCK_ENGINE, STENO_MOCK_DRIVER)");
        return;
    };
    let library_path = ("LD_LIBRARY_PATH", driver.as_str());
    let gpu = job(DeviceChoice::Cuda(0));

    // Undisturbed: how many allocations there are, and what is left after a job.
    let mut engine = Engine::greeted_with(&program, &[library_path, ("MOCK_CUDA_LOG", "1")]);
    let whole = run(&mut engine, &gpu);
    whole.end.unwrap();
    engine.close_input();
    let log = engine.standard_error();
    let allocations = log.lines().filter(|line| line.contains("cuMemAllocAsync(")).count();
    println!("{allocations} allocations, {} bytes left", whole.left.unwrap());
    assert!(allocations > 100);

    // Every allocation, or as many as are asked for, spread evenly.
    let rounds = std::env::var("STENO_MOCK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let (mut retried, mut renewed) = (0, 0);
    for k in (1..=allocations).step_by((allocations / rounds).max(1)) {
        let at = k.to_string();
        let mut engine = Engine::greeted_with(&program, &[library_path, ("MOCK_CUDA_FAIL_AT", &at)]);
        let outcome = run(&mut engine, &gpu);
        match (&outcome.end, outcome.rungs.last().map(|(step, _)| *step)) {
            (Ok(_), None) => {}
            (Ok(_), Some(Step::RetryAfterTrim)) => retried += 1,
            (Err(error), Some(Step::RenewEngine)) if error.code == ErrorCode::OutOfMemory => renewed += 1,
            // Before there is a job: the device itself could not be made.
            (Err(error), None) if error.code == ErrorCode::DeviceUnavailable => {}
            (end, rung) => panic!("allocation {k}: {end:?} after {rung:?}"),
        }
        let next = run(&mut engine, &gpu);
        assert!(next.end.is_ok(), "the job after allocation {k}: {:?}", next.end);
        assert_eq!(next.left, whole.left, "allocation {k}");
    }
    println!("{retried} tried again, {renewed} with a new engine");
    assert!(retried > 0);
}

/// Nothing can be allocated at all: the ladder ends on the CPU, whose text it is.
#[test]
fn the_ladder_ends_on_the_cpu() {
    let Some((program, driver)) = mock() else {
        println!("skipped: no CUDA engine and mock driver (STENO_MOCK_ENGINE, STENO_MOCK_DRIVER)");
        return;
    };
    // In the precision that the ladder arrived at.
    let cpu = |precision: &str| {
        let mut engine = Engine::greeted(support::real());
        let job = Job { precision: precision.parse().ok(), ..job(DeviceChoice::Cpu) };
        run(&mut engine, &job).end.unwrap()
    };
    for from in [1, 60, 400] {
        let from = from.to_string();
        let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_FAIL_FROM", from.as_str())];
        let mut job = job(DeviceChoice::Cuda(0));
        let mut steps = Vec::new();
        let transcript = loop {
            let mut engine = Engine::greeted_with(&program, &environment);
            let outcome = run(&mut engine, &job);
            steps.extend(outcome.rungs.iter().map(|(step, _)| *step));
            match outcome.end {
                Ok(transcript) => break transcript,
                // What a host does: a new engine goes on where the ladder stands.
                Err(error) => {
                    assert_eq!(error.code, ErrorCode::OutOfMemory, "{error}");
                    let (_, state) = outcome.rungs.into_iter().next_back().unwrap();
                    job.resume = Some(Box::new(Resume { ladder: Some(state), ..Resume::default() }));
                }
            }
            assert!(steps.len() < 20, "{steps:?}");
        };
        println!("from allocation {from}: {steps:?}, {} at last", transcript.model.precision);
        assert_eq!(steps.last(), Some(&Step::Cpu));
        assert_eq!(transcript.segments, cpu(&transcript.model.precision).segments);
        let place = job.resume.and_then(|resume| resume.ladder).map(|state| state.settings.place);
        assert_ne!(place, Some(Place::Cpu), "the step to the CPU is taken in the engine");
    }
}
