use memory::Precision;
use pipeline::{Control, Engine};
use random_models::corpus;
use transcript::Transcript;
use wire::{DeviceChoice, Event, Job, Strategy};

use crate::it_support::{edit_distance, jsons, normalised};
use crate::support::{cards, project, starter};

/// What is asked for, besides a recording.
struct Case {
    name: &'static str,
    change: fn(&mut Job),
}

const CASES: [Case; 6] = [
    Case { name: "greedy, word times", change: |_| () },
    Case { name: "as usual on a card", change: |job| job.strategy = Strategy::Auto },
    Case { name: "five beams", change: |job| job.decoding.beam_size = Some(5) },
    Case {
        name: "batched, three beams, language detected",
        change: |job| {
            job.strategy = Strategy::Batched;
            job.decoding.beam_size = Some(3);
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
    Case { name: "prompt", change: |job| job.decoding.initial_prompt = Some("A harbour.".into()) },
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
    job.decoding.beam_size = Some(1);
    job.decoding.temperatures = vec![0.0];
    job.strategy = Strategy::Sequential;
    (case.change)(&mut job);
    // What is usual on a card is not on the CPU.
    if device == DeviceChoice::Cpu && job.strategy == Strategy::Auto {
        job.strategy = Strategy::Batched;
    }
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

/// Segments by their words.
fn words(transcript: &Transcript) -> Vec<Vec<&str>> {
    let of = |segment: &transcript::Segment| segment.words.len();
    assert!(transcript.segments.iter().all(|segment| of(segment) > 0), "a segment has no words");
    transcript
        .segments
        .iter()
        .map(|segment| segment.words.iter().map(|word| word.text.as_str()).collect())
        .collect()
}

/// By how many seconds the times of the same words differ at most.
fn apart(found: &Transcript, expected: &Transcript) -> f64 {
    let times = |transcript: &Transcript| -> Vec<f64> {
        let words = transcript.segments.iter().flat_map(|segment| &segment.words);
        words.flat_map(|word| [word.start.seconds(), word.end.seconds()]).collect()
    };
    times(found).iter().zip(times(expected)).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// By how many seconds times may differ. They are whole frames of 20 ms; with numbers of 8 bits a word may begin at
/// another pause.
fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 | Precision::F16 => 0.001,
        Precision::Bf16 => 0.6,
        _ => 0.05,
    }
}

fn check(file: &str, precisions: &[Precision], cases: &[Case]) {
    check_on(&cards(), file, precisions, cases);
}

fn check_on(cards: &[usize], file: &str, precisions: &[Precision], cases: &[Case]) {
    let mut cpu = Engine::new();
    let mut on_cards: Vec<(usize, Engine)> = cards.iter().map(|number| (*number, Engine::new())).collect();
    for case in cases {
        for precision in precisions.iter().copied() {
            let expected = run(&mut cpu, DeviceChoice::Cpu, file, precision, case);
            assert!(!expected.segments.is_empty());
            for (number, engine) in &mut on_cards {
                let started = std::time::Instant::now();
                let found = run(engine, DeviceChoice::Cuda(*number), file, precision, case);
                let (seconds, apart) = (started.elapsed().as_secs_f64(), apart(&found, &expected));
                println!(
                    "{file} {}, {precision}, cuda:{number}: {seconds:.1} s, times {apart:.2} s apart",
                    case.name
                );
                assert_eq!(found.run.as_ref().unwrap().device, format!("cuda:{number}"));
                assert_eq!(words(&found), words(&expected), "{} {precision} cuda:{number}", case.name);
                assert!(apart <= tolerance(precision), "{} {precision} cuda:{number}: {apart}", case.name);
                assert_eq!(found.language, expected.language);
            }
        }
    }
}

const SAMPLE: &str = "tests/data/sample.flac";

#[test]
fn jobs_give_the_words_of_the_cpu() {
    // Greedily on both cards, the others in turn.
    check(SAMPLE, &[Precision::F16], &CASES[..1]);
    for (number, case) in CASES[1..5].iter().enumerate() {
        let cards = cards();
        check_on(&[cards[number % cards.len()]], SAMPLE, &[Precision::F16], std::slice::from_ref(case));
    }
}

/// The processor prepares windows while the card decodes those before them.
#[test]
fn what_is_prepared_beside_a_card_belongs_to_its_window() {
    let one_at_a_time = |job: &mut Job| {
        job.strategy = Strategy::Batched;
        job.memory.batch_size = Some(1);
    };
    let case = Case { name: "batches of one window", change: one_at_a_time };
    let file = "tests/data/corpus/audio/synthetic/en_minute_1.flac";
    // In 16 bits a word of a minute may begin in the frame beside.
    check_on(&cards()[..1], file, &[Precision::F32], &[case]);
}

fn of_a_parakeet(job: &mut Job) {
    job.model = project("models/starter-parakeet").into();
    job.language = None;
}

/// Pieces of several lengths, one at a time in 32 bits and together in 16.
#[test]
fn a_parakeet_gives_the_words_of_the_cpu() {
    let alone = Case { name: "a Parakeet, one piece at a time", change: of_a_parakeet };
    let together = Case {
        name: "a Parakeet as usual on a card",
        change: |job| {
            of_a_parakeet(job);
            job.strategy = Strategy::Auto;
        },
    };
    let file = "tests/data/corpus/audio/synthetic/en_minute_1.flac";
    for (precision, case) in [(Precision::F32, alone), (Precision::F16, together)] {
        check_on(&cards()[..1], file, &[precision], &[case]);
    }
}

#[test]
#[ignore = "full corpus: make soak"]
fn jobs_give_the_words_of_the_cpu_in_every_way() {
    check(SAMPLE, &[Precision::F32, Precision::F16, Precision::Bf16, Precision::Q8_0], &CASES);
}

/// As usual on a card, windows are decoded together: in no recording are more words wrong than one window at a time.
#[test]
#[ignore = "full corpus: make soak"]
fn synthetic_speech_loses_no_words_as_usual_on_a_card() {
    let corpus = corpus::full();
    let card = cards()[0];
    let mut engine = Engine::new();
    let (mut all, mut words) = ([0, 0], 0);
    let mut worse = Vec::new();
    for (name, truth) in jsons(&corpus.join("audio/synthetic")) {
        let said = truth["segments"].as_array().unwrap().iter();
        let said = said.map(|segment| segment["text"].as_str().unwrap()).collect::<Vec<_>>().join(" ");
        let said = normalised(&said);
        let wrong = [Strategy::Sequential, Strategy::Auto].map(|strategy| {
            let path = corpus.join(format!("audio/synthetic/{name}.flac"));
            let job = Job { device: DeviceChoice::Cuda(card), strategy, ..Job::new(1, path, starter()) };
            let found = engine.transcribe(&job, &Control::default(), &mut |_| ()).unwrap();
            assert_eq!(found.run.as_ref().unwrap().device, format!("cuda:{card}"));
            edit_distance(&said, &normalised(&found.text()))
        });
        println!("{name}: {} words, {wrong:?} wrong one window at a time and as usual", said.len());
        all = [all[0] + wrong[0], all[1] + wrong[1]];
        words += said.len();
        if wrong[1] > wrong[0] {
            worse.push(name);
        }
    }
    println!("all: {words} words, {all:?} wrong");
    assert!(worse.is_empty(), "more wrong words where windows are decoded together: {worse:?}");
}
