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

use std::path::PathBuf;

use memory::Checkpoint;
use memory::ladder::{LadderState, Processor, Step};
use support::{Engine, project, recording};
use transcript::Transcript;
use wire::{Command, DeviceChoice, ErrorCode, Event, Failure, Job, Resume};

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
    rungs: Vec<(Step, LadderState)>,
    /// In use on the device after the job, the model included.
    left: Option<u64>,
}

fn run(engine: &mut Engine, job: &Job) -> Outcome {
    engine.send(Command::Transcribe(Box::new(job.clone())));
    let (mut rungs, mut left) = (Vec::new(), None);
    let end = loop {
        match engine.next() {
            Event::Rung { rung, .. } => rungs.push((rung.step, rung.to)),
            Event::Memory { sample }
                if sample.checkpoint == Checkpoint::FinalCleanup
                    && sample.kind == memory::DeviceKind::Gpu =>
            {
                left = sample.levels.map(|levels| levels.allocated);
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
    if mock().is_none() {
        println!("skipped: no CUDA engine and mock driver (STENO_MOCK_ENGINE, STENO_MOCK_DRIVER)");
        return;
    }
    let gpu = job(DeviceChoice::Cuda(0));
    let (allocations, left) = undisturbed(&gpu);
    println!("{allocations} allocations, {} bytes left", left.unwrap());
    assert!(allocations > 100);

    // Every allocation, or as many as are asked for, spread evenly.
    let every = (1..=allocations).step_by((allocations / rounds(40)).max(1));
    let (retried, renewed) = fail_at(every, &gpu, left);
    println!("{retried} tried again, {renewed} with a new engine");
    assert!(retried > 0);
}

/// Later than the first window, at random.
#[test]
fn a_later_allocation_may_fail() {
    if mock().is_none() {
        println!("skipped: no CUDA engine and mock driver (STENO_MOCK_ENGINE, STENO_MOCK_DRIVER)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let long = Job { file: recording(folder.path()).into(), ..job(DeviceChoice::Cuda(0)) };
    let (of_one, _) = undisturbed(&job(DeviceChoice::Cuda(0)));
    let (all, left) = undisturbed(&long);
    assert!(all > 2 * of_one, "{all} allocations, {of_one} of them for one window");
    let mut state = 5u64;
    let random = (0..rounds(40) / 8).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of_one + (state >> 33) as usize % (all - of_one)
    });
    let (retried, renewed) = fail_at(random, &long, left);
    println!("{retried} tried again, {renewed} with a new engine, of allocations {of_one} to {all}");
    assert!(retried > 0);
}

/// What an ordinary run does, or what is asked for.
fn rounds(ordinary: usize) -> usize {
    std::env::var("STENO_MOCK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ordinary)
}

/// How many allocations there are in a job, and what is left after it.
fn undisturbed(job: &Job) -> (usize, Option<u64>) {
    let (program, driver) = mock().unwrap();
    let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_LOG", "1")];
    let mut engine = Engine::greeted_with(&program, &environment);
    let whole = run(&mut engine, job);
    whole.end.unwrap();
    engine.close_input();
    let log = engine.standard_error();
    (log.lines().filter(|line| line.contains("cuMemAllocAsync(")).count(), whole.left)
}

/// An engine for each of the allocations, which fails: the job has one clear
/// outcome and the next one finishes and leaves what an undisturbed one
/// leaves. How many were tried again in the same engine, and how many ask for
/// a new one.
fn fail_at(allocations: impl Iterator<Item = usize>, job: &Job, left: Option<u64>) -> (usize, usize) {
    let (program, driver) = mock().unwrap();
    let (mut retried, mut renewed) = (0, 0);
    for k in allocations {
        let at = k.to_string();
        let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_FAIL_AT", at.as_str())];
        let mut engine = Engine::greeted_with(&program, &environment);
        let outcome = run(&mut engine, job);
        match (&outcome.end, outcome.rungs.last().map(|(step, _)| *step)) {
            (Ok(_), None) => {}
            (Ok(_), Some(Step::RetryAfterTrim)) => retried += 1,
            (Err(error), Some(Step::RenewEngine)) if error.code == ErrorCode::OutOfMemory => renewed += 1,
            // Before there is a job: the device itself could not be made.
            (Err(error), None) if error.code == ErrorCode::DeviceUnavailable => {}
            (end, rung) => panic!("allocation {k}: {end:?} after {rung:?}"),
        }
        let next = run(&mut engine, job);
        assert!(next.end.is_ok(), "the job after allocation {k}: {:?}", next.end);
        assert_eq!(next.left, left, "allocation {k}");
    }
    (retried, renewed)
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
        assert_ne!(place, Some(Processor::Cpu), "the step to the CPU is taken in the engine");
    }
}
