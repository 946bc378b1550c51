//! A GPU that runs out of memory at any allocation, has no code that fits it, or fails: the real CUDA engine on the
//! emulated card of scripts/cuda/mock, which scripts/cuda/mock/build.sh builds. What it computes is compared with the
//! CPU's in crates/pipeline/tests/emulated.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests do"
)]

mod support;

use std::path::PathBuf;
use std::sync::OnceLock;

use memory::Checkpoint;
use memory::ladder::{LadderState, Processor, Step};
use support::{Engine, project, recording};
use transcript::{Segment, Time, Transcript};
use wire::{Command, DeviceChoice, ErrorCode, Event, Failure, Job, Resume};

/// The CUDA engine and the folder with the emulated driver.
fn mock() -> Option<(PathBuf, String)> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        println!("skipped: the emulated card needs Linux on x86-64");
        return None;
    }
    let debug = support::real().parent().unwrap();
    let (engine, driver) = (debug.join("examples/emulated"), debug.join("../cuda-mock/driver"));
    assert!(engine.exists() && driver.exists(), "run scripts/cuda/mock/build.sh first");
    Some((engine, driver.canonicalize().unwrap().to_str().unwrap().to_owned()))
}

/// A few seconds, one temperature, few tokens, no repair.
fn job(device: DeviceChoice) -> Job {
    let mut job = Job::new(1, project("tests/data/sample.flac"), project("models/starter-whisper"));
    job.limit = Some(Time::from_millis(4000));
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

impl Outcome {
    fn segments(&self) -> &[Segment] {
        &self.end.as_ref().unwrap().segments
    }
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
        return;
    }
    let gpu = job(DeviceChoice::Cuda(0));
    let (allocations, undisturbed) = one_window();
    let allocations = *allocations;
    println!("{allocations} allocations, {} bytes left", undisturbed.left.unwrap());
    assert!(allocations > 100);

    // Every allocation, or as many as are asked for, spread evenly.
    let every = (1..=allocations).step_by((allocations / rounds(2)).max(1));
    let (retried, renewed) = fail_at(every, &gpu, undisturbed);
    println!("{retried} tried again, {renewed} with a new engine");
    assert!(retried > 0);
}

/// Later than the first window, at random.
#[test]
fn a_later_allocation_may_fail() {
    if mock().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let limit = Some(Time::from_millis(20_000));
    let long = Job { file: recording(folder.path()).into(), limit, ..job(DeviceChoice::Cuda(0)) };
    let of_one = one_window().0;
    let (all, whole) = undisturbed(&long);
    assert!(all > of_one + of_one / 2, "{all} allocations, {of_one} of them for one window");
    let mut state = 5u64;
    let random = (0..rounds(8) / 8).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        of_one + (state >> 33) as usize % (all - of_one)
    });
    let (retried, renewed) = fail_at(random, &long, &whole);
    println!("{retried} tried again, {renewed} with a new engine, of allocations {of_one} to {all}");
    assert!(retried > 0);
}

/// What an ordinary run does, or what is asked for.
fn rounds(ordinary: usize) -> usize {
    std::env::var("STENO_MOCK_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ordinary)
}

/// Of a job of one window, as [`undisturbed`] says.
fn one_window() -> &'static (usize, Outcome) {
    static FOUND: OnceLock<(usize, Outcome)> = OnceLock::new();
    FOUND.get_or_init(|| undisturbed(&job(DeviceChoice::Cuda(0))))
}

/// How many allocations there are in a job, and how it ends.
fn undisturbed(job: &Job) -> (usize, Outcome) {
    let (program, driver) = mock().unwrap();
    let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_LOG", "1")];
    let mut engine = Engine::greeted_with(&program, &environment);
    let whole = run(&mut engine, job);
    assert!(!whole.segments().is_empty());
    engine.close_input();
    let log = engine.standard_error();
    (log.lines().filter(|line| line.contains("cuMemAllocAsync(")).count(), whole)
}

/// An engine for each of the allocations, which fails: the job has one clear outcome, and the next one finishes and
/// leaves what an undisturbed one leaves. Whatever finishes has the text of an undisturbed one. How many were tried
/// again in the same engine, and how many ask for a new one.
fn fail_at(allocations: impl Iterator<Item = usize>, job: &Job, undisturbed: &Outcome) -> (usize, usize) {
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
        if outcome.end.is_ok() {
            assert_eq!(outcome.segments(), undisturbed.segments(), "allocation {k}");
        }
        let next = run(&mut engine, job);
        assert!(next.end.is_ok(), "the job after allocation {k}: {:?}", next.end);
        assert_eq!(next.segments(), undisturbed.segments(), "the job after allocation {k}");
        assert_eq!(next.left, undisturbed.left, "allocation {k}");
    }
    (retried, renewed)
}

/// The CPU's text of [`job`].
fn text_of_the_cpu(precision: &str) -> Vec<Segment> {
    let mut engine = Engine::greeted(support::real());
    let job = Job { precision: precision.parse().ok(), ..job(DeviceChoice::Cpu) };
    run(&mut engine, &job).segments().to_vec()
}

/// Where the engine's code does not fit the card, the CPU writes the text, at once and in the same process, and a
/// notice says why.
#[test]
fn code_that_does_not_fit_the_card_never_writes_text() {
    let Some((program, driver)) = mock() else { return };
    // What is wrong, and how the notice names it. A kernel of each of candle's modules and of both products.
    let mut cases = vec![
        ("MOCK_CUDA_MODULE_ERROR", "218", "CUDA_ERROR_INVALID_PTX"),
        ("MOCK_CUDA_MODULE_ERROR", "209", "CUDA_ERROR_NO_BINARY_FOR_GPU"),
        ("MOCK_CUDA_MODULE_ERROR", "222", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
        ("MOCK_CUDA_LACKS", "ugelu_erf_f16", "CUDA_ERROR_NOT_FOUND"),
        // No operation of the test has it: found missing in the middle of a window.
        ("MOCK_CUDA_LACKS", "ucopy_f16", "CUDA_ERROR_NOT_FOUND"),
    ];
    let wrong = [
        ("affine_f32", "affine"),
        ("badd_f16", "binary"),
        ("cast_f32_f16", "cast"),
        ("choose_f32", "choice of tokens"),
        ("im2col1d_f32", "conv"),
        ("copy2d_f32", "fill"),
        ("is_u32_f16", "indexing"),
        ("layernorm_f32", "layer norm"),
        ("mmvq_gguf_quantize_q8_1_f32", "quantised product"),
        ("dequantize_block_q8_0_f16", "quantised matrix"),
        ("softmax_f16", "reduce"),
        ("asort_asc_f32", "sort"),
        ("where_u8_f32", "ternary and unary"),
        ("ugelu_erf_f32", "ternary and unary"),
    ];
    cases.extend(wrong.map(|(kernel, operation)| ("MOCK_CUDA_WRONG", kernel, operation)));
    let expected = text_of_the_cpu("f16");
    let job = Job { precision: "f16".parse().ok(), ..job(DeviceChoice::Cuda(0)) };
    for (variable, value, named) in cases {
        let environment = [("LD_LIBRARY_PATH", driver.as_str()), (variable, value)];
        let mut engine = Engine::greeted_with(&program, &environment);
        let outcome = run(&mut engine, &job);
        let steps: Vec<Step> = outcome.rungs.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [Step::Cpu], "{variable}={value}: {:?}", outcome.end);
        assert_eq!(outcome.segments(), expected, "{variable}={value}");
        let transcript = outcome.end.unwrap();
        let notice = transcript.notices.iter().find(|notice| notice.code == "device.unusable");
        let text = &notice.expect("nothing says why").text;
        assert!(text.contains(named) && text.contains("driver"), "{variable}={value}: {text}");
        assert_eq!(transcript.run.unwrap().device, "cpu");
    }

    // Where the CPU may not take over, the job fails and says the same.
    let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_WRONG", "affine_f32")];
    let mut pinned = job;
    pinned.memory.pins.cpu = true;
    let error = run(&mut Engine::greeted_with(&program, &environment), &pinned).end.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeviceUnavailable, "{error}");
    assert!(error.message.contains("affine"), "{error}");
}

/// A card that the engine was not built for is refused by name.
#[test]
fn a_card_without_code_is_named() {
    let Some((program, driver)) = mock() else { return };
    let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_CAPABILITIES", "61,80")];
    let mut engine = Engine::greeted_with(&program, &environment);
    let says_so = |text: &str| {
        let named = "Mock device 0 has compute capability 6.1, and this engine is built for 7.5, 8.0.";
        assert!(text.contains(named), "{text}");
    };
    let outcome = run(&mut engine, &Job { precision: "f16".parse().ok(), ..job(DeviceChoice::Auto) });
    assert_eq!(outcome.segments(), text_of_the_cpu("f16"));
    let notices = outcome.end.unwrap().notices;
    says_so(&notices.iter().find(|notice| notice.code == "device.unusable").unwrap().text);

    let error = run(&mut engine, &job(DeviceChoice::Cuda(0))).end.unwrap_err();
    assert_eq!(error.code, ErrorCode::DeviceUnavailable);
    says_so(&error.message);
    // The other card serves, also where it is the one that a host took, and the engine says so of itself.
    for choice in [DeviceChoice::Cuda(1), DeviceChoice::First(1)] {
        assert_eq!(run(&mut engine, &job(choice)).end.unwrap().run.unwrap().device, "cuda:1");
    }
    engine.send(Command::Describe);
    let description = engine.until(|event| match event {
        Event::Description(description) => Some(*description),
        _ => None,
    });
    assert_eq!((description.devices[0].id.as_str(), description.cpu_reason), ("cuda:1", None));
    // Where it does not serve, the CPU computes as it does without a choice.
    let environment = [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_CAPABILITIES", "80,61")];
    let outcome = run(&mut Engine::greeted_with(&program, &environment), &job(DeviceChoice::First(1)));
    assert_eq!(outcome.end.unwrap().run.unwrap().device, "cpu");
}

/// A card that failed is left alone: the CPU detects the language, and the next job asks for a new engine.
#[test]
fn a_lost_card_is_not_opened_again() {
    let Some((program, driver)) = mock() else { return };
    let environment =
        [("LD_LIBRARY_PATH", driver.as_str()), ("MOCK_CUDA_LOST_AT", "150"), ("MOCK_CUDA_LOG", "1")];
    let mut engine = Engine::greeted_with(&program, &environment);
    let job = Job { language: None, ..job(DeviceChoice::Cuda(0)) };
    let files = vec![job.file.clone()];
    for expected in [vec![Step::Cpu], vec![]] {
        engine.send(Command::DetectLanguages {
            id: job.id,
            files: files.clone(),
            job: Box::new(job.clone()),
        });
        let (mut steps, mut found) = (Vec::new(), None);
        loop {
            match engine.next() {
                Event::Rung { rung, .. } => steps.push(rung.step),
                Event::Language { probabilities, .. } => found = probabilities.into_iter().next(),
                Event::LanguagesDone => break,
                Event::Failed { error, .. } | Event::FileFailed { error, .. } => panic!("{error}"),
                _ => {}
            }
        }
        assert_eq!(steps, expected);
        assert_eq!(found.unwrap().0, "en");
    }
    let error = run(&mut engine, &job).end.unwrap_err();
    assert!(memory::death::says_device_failed(&error.message), "{error}");
    engine.close_input();
    let log = engine.standard_error();
    assert_eq!(log.matches("cuDevicePrimaryCtxRetain").count(), 1, "{log}");
}

/// Nothing can be allocated at all: the ladder ends on the CPU, whose text it is.
#[test]
fn the_ladder_ends_on_the_cpu() {
    let Some((program, driver)) = mock() else { return };
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
        // In the precision that the ladder arrived at.
        assert_eq!(transcript.segments, text_of_the_cpu(&transcript.model.precision));
        let place = job.resume.and_then(|resume| resume.ladder).map(|state| state.settings.place);
        assert_ne!(place, Some(Processor::Cpu), "the step to the CPU is taken in the engine");
    }
}
