//! Adapters are trained by a real engine process: under limits of memory, and killed on the way.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests do"
)]

mod support;

use std::path::Path;
use std::time::Duration;

use memory::bytes::MIB;
use memory::ladder::Step::{self, HalveBatch as Halve, LowerPrecision as Lower, RetryAfterTrim as Retry};
use memory::{Host, Precision, Probe};
use support::{Engine, project};
use transcript::{Span, Time};
use wire::{Adapt, AdaptSettings, Adapted, Alternative, Command, DeviceChoice, Event, Job, Lesson};

/// Measured peaks may lie this far above the limit.
const TOLERANCE: u64 = 32 * MIB;
/// The least that one window at a time can be learnt in, with the starter in 16 bits, in MB.
const LEAST: u64 = 118;
/// Sentences that are learnt from: about three windows in each epoch, which are computed together.
const LESSONS: usize = 7;
/// By which share losses may differ.
const SAME: f32 = 0.01;

/// Learns the first sentences of a minute of speech, of which one is held back.
fn asked(folder: &Path, settings: AdaptSettings) -> Adapt {
    let audio = project("tests/data/corpus/audio/synthetic/en_minute_1.flac");
    let text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(audio.with_extension("json")).unwrap()).unwrap();
    let lesson = |(number, part): (usize, &serde_json::Value)| {
        let time = |key: &str| Time::from_seconds(part[key].as_f64().unwrap());
        Lesson {
            file: audio.as_path().into(),
            span: Some(Span::new(time("start"), time("end"))),
            text: part["text"].as_str().unwrap().into(),
            language: None,
            corrected: true,
            held_back: number == 0,
        }
    };
    let model = project("models/starter-whisper");
    let mut job = Job::new(1, model.as_path(), model.as_path());
    job.device = DeviceChoice::Cpu;
    job.threads = Some(2);
    let network = formats::ModelInfo::read(&model).unwrap();
    let ways = network.ways_to_learn("starter-whisper", settings.precision, settings.rank);
    let way = |installed| Alternative { path: model.as_path().into(), installed };
    job.alternatives = ways.into_iter().map(way).collect();
    Adapt {
        job,
        lessons: text["segments"].as_array().unwrap().iter().take(LESSONS).enumerate().map(lesson).collect(),
        settings,
        remember: false,
        folder: folder.join("work").into(),
        output: folder.join("adapter.safetensors").into(),
    }
}

struct Outcome {
    adapted: Adapted,
    rungs: Vec<Step>,
    keeps_inputs: bool,
    /// Highest anonymous memory of the process, in bytes.
    peak: u64,
}

fn run(asked: &Adapt) -> Outcome {
    let mut engine = Engine::greeted(support::real());
    let host = Host::of_process(engine.id()).sampled(Duration::from_millis(2));
    engine.send(Command::Adapt(Box::new(asked.clone())));
    let (mut rungs, mut keeps_inputs) = (Vec::new(), false);
    let adapted = loop {
        match engine.next() {
            Event::Rung { rung } => rungs.push(rung.step),
            Event::Adapting { progress } => keeps_inputs |= progress.keeps_inputs,
            Event::Adapted { adapted, .. } => break *adapted,
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    };
    let peak = host.read().unwrap().ours.unwrap().peak.unwrap();
    Outcome { adapted, rungs, keeps_inputs, peak }
}

#[test]
fn training_keeps_to_a_limit_and_learns_the_same() {
    let settings = |precision| AdaptSettings {
        epochs: 3,
        batch: 4,
        precision,
        encoder: true,
        ..AdaptSettings::default()
    };
    let fresh = || tempfile::tempdir().unwrap();
    let unlimited = run(&asked(fresh().path(), settings(Precision::F32)));
    println!("unlimited: {} MB, {:?}", unlimited.peak / MIB, unlimited.adapted.losses);
    assert!(unlimited.rungs.is_empty() && !unlimited.keeps_inputs);
    // Limit in MB, and what must be done about it.
    let rows: [(Precision, u64, &[Step]); 7] = [
        (Precision::F32, 450, &[]),
        (Precision::F32, 250, &[Retry, Halve]),
        (Precision::F32, 150, &[Retry, Halve, Halve]),
        (Precision::F32, LEAST, &[Retry, Halve, Halve, Lower]),
        (Precision::Bf16, 450, &[]),
        (Precision::Bf16, 250, &[Retry, Halve]),
        (Precision::Bf16, LEAST, &[Retry, Halve, Halve]),
    ];
    for (precision, limit, steps) in rows {
        let folder = fresh();
        let mut asked = asked(folder.path(), settings(precision));
        asked.job.memory.memory_limit = Some(limit * MIB);
        let outcome = run(&asked);
        println!(
            "{precision}, {limit} MB: {} MB, {:?}, inputs {}, {:?}",
            outcome.peak / MIB,
            outcome.rungs,
            outcome.keeps_inputs,
            outcome.adapted.losses
        );
        assert_eq!(outcome.rungs, steps, "{precision}, {limit} MB");
        assert!(
            outcome.peak <= limit * MIB + TOLERANCE,
            "{precision}: {} MB of {limit} MB",
            outcome.peak / MIB
        );
        assert!(outcome.keeps_inputs, "{precision}, {limit} MB");
        assert_eq!(outcome.adapted.losses.len(), unlimited.adapted.losses.len());
        for (found, expected) in outcome.adapted.losses.iter().zip(&unlimited.adapted.losses) {
            assert!(
                (found / expected - 1.0).abs() < SAME,
                "{precision}, {limit} MB: {found} is not {expected}"
            );
        }
    }
}

#[test]
fn killed_ten_times_it_comes_to_the_same_adapter() {
    // A checkpoint after each step, of which there are more than ten engines come to before they are killed.
    let settings = AdaptSettings {
        epochs: 9,
        rank: 4,
        batch: 1,
        patience: 100,
        checkpoint_seconds: 0,
        ..AdaptSettings::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let whole = run(&asked(folder.path(), settings)).adapted;
    let whole_file = formats::AdapterFile::read(whole.adapter.as_path()).unwrap();

    let folder = tempfile::tempdir().unwrap();
    let asked = asked(folder.path(), settings);
    let mut random = fastrand::Rng::with_seed(23);
    let mut kills = 0;
    let adapted = loop {
        let mut engine = Engine::greeted(support::real());
        engine.send(Command::Adapt(Box::new(asked.clone())));
        // While it loads, between two steps or within one.
        let (steps, delay) = (random.usize(0..3), Duration::from_millis(random.u64(0..300)));
        let mut seen = 0;
        let finished = loop {
            if kills < 10 && seen >= steps {
                std::thread::sleep(delay);
                break None;
            }
            match engine.next() {
                Event::Adapting { .. } => seen += 1,
                Event::Adapted { adapted, .. } => break Some(adapted),
                Event::Failed { error, .. } => panic!("{error}"),
                _ => {}
            }
        };
        if let Some(adapted) = finished {
            break adapted;
        }
        kills += 1;
        // Dropped, it is killed at once.
        drop(engine);
    };
    assert_eq!(kills, 10);
    assert_eq!((&adapted.losses, &adapted.held_back), (&whole.losses, &whole.held_back));
    let file = formats::AdapterFile::read(adapted.adapter.as_path()).unwrap();
    assert_eq!(file.matrices, whole_file.matrices, "bit for bit");
}
