use memory::Precision;
use pipeline::{Control, Engine};
use transcript::Transcript;
use wire::{DeviceChoice, Event, Job, Strategy};

use crate::support::{project, starter};

/// What is asked for, besides a recording.
struct Case {
    name: &'static str,
    change: fn(&mut Job),
}

const CASES: [Case; 6] = [
    Case { name: "greedy, word times", change: |_| () },
    Case { name: "batched", change: |job| job.strategy = Strategy::Batched },
    Case { name: "five beams", change: |job| job.decoding.beam_size = 5 },
    Case {
        name: "batched, three beams, language detected",
        change: |job| {
            job.strategy = Strategy::Batched;
            job.decoding.beam_size = 3;
            job.language = None;
        },
    },
    Case {
        name: "temperature",
        change: |job| {
            job.decoding.temperatures = vec![0.4];
            job.decoding.best_of = 2;
        },
    },
    Case { name: "translated prompt", change: |job| job.decoding.initial_prompt = Some("A harbour.".into()) },
];

fn run(
    engine: &mut Engine,
    device: DeviceChoice,
    file: &str,
    precision: Precision,
    case: &Case,
) -> Transcript {
    let mut job = Job::new(1, project(file), starter());
    job.language = Some("en".into());
    job.decoding.beam_size = 1;
    job.decoding.temperatures = vec![0.0];
    (case.change)(&mut job);
    job.device = device;
    job.precision = Some(precision);
    let mut rungs = Vec::new();
    let mut emit = |event: Event| {
        if let Event::Rung { rung } = event {
            rungs.push(rung.step);
        }
    };
    let transcript = engine.transcribe(&job, &Control::default(), &mut emit).unwrap();
    assert!(rungs.is_empty(), "{rungs:?}: {:?}", transcript.notices);
    transcript
}

/// Words and their times in milliseconds, and how the text is divided.
fn content(transcript: &Transcript) -> Vec<(String, Vec<(String, u64, u64)>)> {
    let milliseconds = |time: transcript::Time| (time.seconds() * 1000.0).round() as u64;
    transcript
        .segments
        .iter()
        .map(|segment| {
            let words = segment.words.iter();
            let words =
                words.map(|word| (word.text.clone(), milliseconds(word.start), milliseconds(word.end)));
            (segment.text.clone(), words.collect())
        })
        .collect()
}

fn check(file: &str, precisions: &[Precision], cases: &[Case]) {
    let (mut cpu, mut cards) = (Engine::new(), [Engine::new(), Engine::new()]);
    for case in cases {
        for precision in precisions.iter().copied() {
            let expected = run(&mut cpu, DeviceChoice::Cpu, file, precision, case);
            assert!(!expected.segments.is_empty());
            for (number, engine) in cards.iter_mut().enumerate() {
                let started = std::time::Instant::now();
                let found = run(engine, DeviceChoice::Cuda(number), file, precision, case);
                println!(
                    "{file} {}, {precision}, cuda:{number}: {:.1} s",
                    case.name,
                    started.elapsed().as_secs_f64()
                );
                assert_eq!(found.run.as_ref().unwrap().device, format!("cuda:{number}"));
                assert_eq!(content(&found), content(&expected), "{} {precision} cuda:{number}", case.name);
                assert_eq!(found.language, expected.language);
            }
        }
    }
}

const SAMPLE: &str = "tests/data/sample.flac";

#[test]
fn jobs_give_the_words_of_the_cpu() {
    check(SAMPLE, &[Precision::F16], &CASES[..4]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn jobs_give_the_words_of_the_cpu_in_every_way() {
    check(SAMPLE, &[Precision::F32, Precision::F16, Precision::Bf16, Precision::Q8_0], &CASES);
}
