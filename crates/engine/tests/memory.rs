//! Too little memory, for real: an engine process under a limit comes through
//! with the whole text and stays within it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests do"
)]

mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use memory::bytes::MIB;
use memory::ladder::Step::{
    HalveBatch as Halve, LowerPrecision as Lower, RetryAfterTrim as Retry, SkipSpeakers as Skip,
    SmallerModel as Smaller,
};
use memory::ladder::{Installed, LadderSettings, LadderState, Processor, Step};
use memory::{Checkpoint, Host, Precision, Probe};
use support::{Engine, project, recording};
use transcript::{Time, Transcript};
use wire::{Alternative, Command, DeviceChoice, Event, FilePath, Job, Resume, Strategy};

/// Measured peaks may lie this far above the limit.
const TOLERANCE: u64 = 32 * MIB;

/// Numbers that come with a text differ in their last digits from batch to
/// batch; the words and their places may not.
fn text(transcript: &Transcript) -> Vec<String> {
    let line =
        |segment: &transcript::Segment| format!("{:?} {:?} {}", segment.start, segment.end, segment.text);
    transcript.segments.iter().map(line).collect()
}

struct Outcome {
    transcript: Transcript,
    rungs: Vec<Step>,
    /// Highest anonymous memory of the process, in bytes.
    peak: u64,
    samples: Vec<memory::Sample>,
}

fn run(engine: &mut Engine, job: &Job) -> Outcome {
    let host = Host::of_process(engine.id()).sampled(Duration::from_millis(2));
    host.reset_peak();
    engine.send(Command::Transcribe(Box::new(job.clone())));
    let (mut rungs, mut samples) = (Vec::new(), Vec::new());
    let transcript = loop {
        match engine.next() {
            Event::Rung { rung, .. } => rungs.push(rung.step),
            Event::Memory { sample } => samples.push(*sample),
            Event::Finished { transcript, .. } => break *transcript,
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    };
    let peak = host.read().unwrap().ours.unwrap().peak.unwrap();
    Outcome { transcript, rungs, peak, samples }
}

fn job(file: &Path, strategy: Strategy, batch: u32, limit: Option<u64>) -> Job {
    let mut job = Job::new(1, file, project("models/starter-whisper"));
    job.device = DeviceChoice::Cpu;
    job.language = Some("en".into());
    job.strategy = strategy;
    job.memory.batch_size = Some(batch);
    job.memory.memory_limit = limit.map(|mb| mb * MIB);
    job
}

fn earlier(batch: u32) -> LadderState {
    LadderState::new(LadderSettings {
        model: "starter-whisper".into(),
        precision: Precision::F32.as_str().into(),
        batch,
        place: Processor::Cpu,
        speakers: false,
        speaker_batch: 1,
        speaker_place: Processor::Cpu,
    })
}

#[test]
fn windows_that_are_decoded_together_keep_to_a_limit() {
    under_a_limit_the_text_is_complete(
        Strategy::Batched,
        4,
        &[(400, &[]), (110, &[Retry, Halve]), (64, &[Retry, Halve, Halve])],
    );
}

#[test]
fn one_window_at_a_time_keeps_to_a_limit() {
    under_a_limit_the_text_is_complete(Strategy::Sequential, 1, &[(64, &[]), (46, &[Retry, Lower])]);
}

/// `rows`: a limit in MB, and what must be done about it.
fn under_a_limit_the_text_is_complete(strategy: Strategy, batch: u32, rows: &[(u64, &[Step])]) {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let run_alone = |job: &Job| run(&mut Engine::greeted(support::real()), job);
    let unlimited = run_alone(&job(&file, strategy, batch, None));
    println!("{strategy:?}, {batch} windows, unlimited: {} MB", unlimited.peak / MIB);
    assert!(unlimited.rungs.is_empty(), "{:?}", unlimited.rungs);
    for (limit, steps) in rows.iter().copied() {
        let mut job = job(&file, strategy, batch, Some(limit));
        // What an earlier file was done with, when there was more room.
        job.resume = Some(Box::new(Resume { ladder: Some(earlier(batch)), ..Resume::default() }));
        let outcome = run_alone(&job);
        println!("{strategy:?}, {limit} MB: {} MB, {:?}", outcome.peak / MIB, outcome.rungs);
        assert!(outcome.transcript.complete);
        if outcome.rungs.contains(&Lower) {
            let ends = |transcript: &Transcript| transcript.segments.last().map(|last| last.end.seconds());
            let (end, wanted) = (ends(&outcome.transcript).unwrap(), ends(&unlimited.transcript).unwrap());
            assert!((end - wanted).abs() < 3.0, "{end} instead of {wanted}");
        } else {
            assert_eq!(text(&outcome.transcript), text(&unlimited.transcript), "limit {limit}");
        }
        assert_eq!(outcome.rungs, steps, "limit {limit}");
        assert!(outcome.peak <= limit * MIB + TOLERANCE, "{} MB of {limit} MB", outcome.peak / MIB);
    }
}

/// The rungs that change models: the larger one never fits.
#[test]
fn a_smaller_model_takes_over() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let large = folder.path().join("base");
    random_models::write(
        &large,
        random_models::Size::named("base").unwrap(),
        &random_models::Options::default(),
    )
    .unwrap();
    let installed = |name: &str, precision: Precision, parameters: u64, bytes: u64| Installed {
        model: name.into(),
        precision: precision.as_str().into(),
        parameters,
        gpu_bytes: bytes,
        host_bytes: bytes,
        suits: true,
    };
    let mut job = job(&file, Strategy::Sequential, 1, Some(110));
    let starter = job.model.clone();
    job.alternatives = vec![
        Alternative {
            path: large.clone().into(),
            installed: installed("base", Precision::F32, 74, 290 * MIB),
        },
        Alternative {
            path: large.clone().into(),
            installed: installed("base", Precision::Q8_0, 74, 100 * MIB),
        },
        Alternative { path: starter, installed: installed("starter", Precision::F32, 5, 22 * MIB) },
    ];
    let mut engine = Engine::greeted(support::real());
    let whole = run(&mut engine, &{
        let mut job = job.clone();
        job.memory.memory_limit = None;
        job
    });
    job.model = large.into();
    job.memory.memory_limit = Some(110 * MIB);
    let outcome = run(&mut engine, &job);
    println!("{:?}, {} MB", outcome.rungs, outcome.peak / MIB);
    assert!(outcome.rungs.contains(&Lower) && outcome.rungs.contains(&Smaller));
    assert_eq!(text(&outcome.transcript), text(&whole.transcript));
    assert_eq!(outcome.transcript.model.precision, "f32");
    assert!(outcome.peak <= 110 * MIB + TOLERANCE, "{} MB", outcome.peak / MIB);
    let notices: Vec<&str> = outcome.transcript.notices.iter().map(|notice| notice.code.as_str()).collect();
    assert!(notices.contains(&"memory.smaller_model"), "{notices:?}");
}

/// A model of the other family goes down the same ladder, also to one of the first family.
#[test]
fn a_transducer_goes_down_the_ladder() {
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path());
    let tiny = random_models::ParakeetSize::named("parakeet-tiny").unwrap();
    let size = random_models::ParakeetSize { width: 512, layers: 4, heads: 8, channels: 256, ..*tiny };
    let options = random_models::Options { precision: random_models::WeightType::F32, ..Default::default() };
    let path = |name: &str, size: &random_models::ParakeetSize| {
        let path = folder.path().join(name);
        random_models::write_parakeet_model(&path, size, &options).unwrap();
        path
    };
    let (large, small) = (path("large", &size), path("small", tiny));
    let network = memory::Network::Parakeet(memory::ParakeetDimensions {
        encoder: memory::FastConformerDimensions {
            width: 512,
            layers: 4,
            heads: 8,
            ffn: 2048,
            ..memory::ParakeetDimensions::TDT_0_6B_V3.encoder
        },
        vocabulary: 4100,
        predictor_width: 32,
        ..memory::ParakeetDimensions::TDT_0_6B_V3
    });
    let kind = memory::DeviceKind::Host;
    let footprint = memory::Footprint::of(&network, &network.plan(kind, Precision::F32));
    let job = |model: &Path, limit: Option<u64>| {
        let mut job = job(&file, Strategy::Batched, 4, None);
        job.model = model.into();
        job.language = None;
        job.memory.memory_limit = limit;
        job
    };
    let alone = |job: &Job| run(&mut Engine::greeted(support::real()), job);
    let whole = alone(&job(&large, None));
    assert!(whole.rungs.is_empty() && whole.transcript.complete, "{:?}", whole.rungs);

    // The weights fit, and not what one window takes beside them.
    let limit = footprint.fixed + footprint.weights + footprint.work(1) / 2;
    let mut begun = job(&large, Some(limit));
    let earlier = LadderState::new(LadderSettings { model: "large".into(), ..earlier(4).settings });
    begun.resume = Some(Box::new(Resume { ladder: Some(earlier), ..Resume::default() }));
    let lower = alone(&begun);
    println!("{} MB of {} MB: {:?}", lower.peak / MIB, limit / MIB, lower.rungs);
    assert_eq!(lower.rungs, [Retry, Halve, Halve, Lower]);
    assert_eq!((lower.transcript.complete, lower.transcript.model.precision.as_str()), (true, "q8_0"));
    assert!(lower.peak <= limit + TOLERANCE, "{} MB of {} MB", lower.peak / MIB, limit / MIB);

    // Neither do the weights: another model takes over, of whichever family.
    let installed = |name: &str, precision: Precision, parameters: u64, bytes: u64| Installed {
        model: name.into(),
        precision: precision.as_str().into(),
        parameters,
        gpu_bytes: bytes,
        host_bytes: bytes,
        suits: true,
    };
    let larger = path("larger", &random_models::ParakeetSize { layers: 8, ..size });
    let starter: PathBuf = project("models/starter-whisper");
    for (name, other, bytes) in [("small", &small, 4 * MIB), ("starter", &starter, 22 * MIB)] {
        let mut job = job(&larger, Some(66 * MIB));
        job.strategy = Strategy::Sequential;
        job.memory.batch_size = Some(1);
        let weights = 2 * footprint.weights;
        job.alternatives = [
            (&larger, installed("larger", Precision::F32, 30, weights)),
            (&larger, installed("larger", Precision::F16, 30, weights / 2)),
            (other, installed(name, Precision::F32, 5, bytes)),
        ]
        .map(|(path, installed)| Alternative { path: path.clone().into(), installed })
        .into();
        let outcome = alone(&job);
        println!("{name}: {} MB, {:?}", outcome.peak / MIB, outcome.rungs);
        // In eight bits besides, which every model can be held in.
        assert_eq!(outcome.rungs, [Retry, Lower, Lower, Smaller], "{name}");
        job.alternatives.clear();
        job.model = other.clone().into();
        let own = alone(&job);
        assert!(own.rungs.is_empty(), "{name}: {:?}", own.rungs);
        assert_eq!(text(&outcome.transcript), text(&own.transcript), "{name}");
        assert_eq!(outcome.transcript.language, own.transcript.language, "{name}");
        assert!(outcome.peak <= 66 * MIB + TOLERANCE, "{name}: {} MB", outcome.peak / MIB);
    }
}

/// Runs a job with speakers under a limit in MB, as one that begins with sixteen of their windows at a time; it takes
/// `steps` and keeps the limit.
fn speakers_under(limit: u64, steps: &[Step], engine: &mut Engine, job: &mut Job) -> Outcome {
    job.memory.memory_limit = Some(limit * MIB);
    let mut state = earlier(1);
    (state.settings.speakers, state.settings.speaker_batch) = (true, 16);
    state.settings.precision = Precision::Q8_0.as_str().into();
    job.resume = Some(Box::new(Resume { ladder: Some(state), ..Resume::default() }));
    let outcome = run(engine, job);
    println!("{limit} MB: {:?}, {} MB", outcome.rungs, outcome.peak / MIB);
    assert_eq!(outcome.rungs, steps, "{limit} MB");
    assert!(outcome.peak <= limit * MIB + TOLERANCE, "{} MB of {limit} MB", outcome.peak / MIB);
    outcome
}

/// The text is there before speakers are told apart, and stays. Under a limit fewer
/// windows are listened to at a time, and at last the text is all there is.
#[test]
fn speakers_are_dropped_last() {
    let file = project("tests/data/corpus/audio/conversations/two_speakers.flac");
    let mut engine = Engine::greeted(support::real());
    let mut job = job(&file, Strategy::Sequential, 1, None);
    job.limit = Some(Time::from_millis(30_000));
    // The text takes less than the speakers, so that the limits below concern them alone.
    job.precision = Some(Precision::Q8_0);
    let plain = run(&mut engine, &job);
    job.speakers = true;
    let apart = run(&mut engine, &job);
    let speakers = |transcript: &Transcript| -> Vec<Option<String>> {
        transcript.segments.iter().map(|segment| segment.speaker.clone()).collect()
    };
    assert!(speakers(&apart.transcript).iter().all(Option::is_some));
    // Limit in MB, what must be done about it.
    let rows: [(u64, &[Step]); 3] =
        [(400, &[]), (84, &[Retry, Halve, Halve]), (48, &[Retry, Halve, Halve, Halve, Halve, Skip])];
    for (limit, steps) in rows {
        let outcome = speakers_under(limit, steps, &mut engine, &mut job);
        let expected = if steps.contains(&Skip) { &plain } else { &apart };
        assert_eq!(text(&outcome.transcript), text(&expected.transcript), "{limit} MB");
        assert_eq!(speakers(&outcome.transcript), speakers(&expected.transcript), "{limit} MB");
    }
}

/// As [`speakers_are_dropped_last`], with an installed model, which takes more.
#[test]
fn an_installed_speaker_model_is_dropped_last() {
    let file = project("tests/data/corpus/audio/conversations/two_speakers.flac");
    let mut engine = Engine::greeted(support::real());
    let mut job = job(&file, Strategy::Sequential, 1, None);
    job.limit = Some(Time::from_millis(30_000));
    job.precision = Some(Precision::Q8_0);
    let plain = run(&mut engine, &job);
    job.speakers = true;
    // Limit in MB, what must be done about it. A small Nemotron takes no more than the text did.
    let all: &[Step] = &[Retry, Halve, Halve, Halve, Halve, Skip];
    let community: &[(u64, &[Step])] = &[(150, &[Retry, Halve]), (64, all)];
    for (model, limits) in [("community", community), ("nemotron", &[(44, &[])])] {
        let model = format!("tests/data/corpus/reference/speakers/{model}/model");
        job.speaker_model = Some(project(&model).into());
        (job.memory.memory_limit, job.resume) = (None, None);
        let apart = run(&mut engine, &job);
        assert!(!apart.transcript.turns.is_empty());
        for &(limit, steps) in limits {
            let outcome = speakers_under(limit, steps, &mut engine, &mut job);
            let expected = if steps.contains(&Skip) { &plain } else { &apart };
            assert_eq!(text(&outcome.transcript), text(&expected.transcript), "{limit} MB");
            assert_eq!(outcome.transcript.turns, expected.transcript.turns, "{limit} MB");
        }
    }
}

/// What became of each file, in order: its language, or the code of its failure; and the steps taken.
fn languages(engine: &mut Engine, files: &[FilePath], job: Job) -> (Vec<String>, Vec<Step>) {
    engine.send(Command::DetectLanguages { id: 1, files: files.to_vec(), job: Box::new(job) });
    let (mut rungs, mut answers) = (Vec::new(), Vec::new());
    loop {
        let answer = match engine.next() {
            Event::Rung { rung, .. } => {
                rungs.push(rung.step);
                continue;
            }
            Event::Language { file, probabilities } => (file, probabilities[0].0.clone()),
            Event::FileFailed { file, error } => (file, format!("{:?}", error.code)),
            Event::LanguagesDone => return (answers, rungs),
            Event::Failed { error, .. } => panic!("{error}"),
            _ => continue,
        };
        assert_eq!(answer.0, files[answers.len()]);
        answers.push(answer.1);
    }
}

/// A limit that the weights as stored do not keep for long.
#[test]
fn a_language_is_found_under_a_limit() {
    let file = project("tests/data/sample.flac");
    let mut job = job(&file, Strategy::Sequential, 1, Some(44));
    job.language = None;
    let mut engine = Engine::greeted(support::real());
    let host = Host::of_process(engine.id()).sampled(Duration::from_millis(2));
    host.reset_peak();
    let (answers, rungs) = languages(&mut engine, &[job.file.clone(), job.file.clone()], job);
    assert_eq!(rungs, [Retry, Lower]);
    assert_eq!(answers, ["en", "en"]);
    let peak = host.read().unwrap().ours.unwrap().peak.unwrap();
    assert!(peak <= 44 * MIB + TOLERANCE, "{} MB", peak / MIB);
}

/// Files are listened to together where the user asks for a batch; one that can't be used fails alone.
#[test]
fn languages_of_several_files_are_found_together() {
    let sample = FilePath::from(project("tests/data/sample.flac"));
    let missing = FilePath::from(project("tests/data/missing.flac"));
    let files = [sample.clone(), missing, sample.clone(), sample.clone(), sample.clone()];
    let mut engine = Engine::greeted(support::real());
    let mut job = job(sample.as_path(), Strategy::Sequential, 4, None);
    job.language = None;
    let (answers, rungs) = languages(&mut engine, &files, job);
    assert_eq!(answers, ["en", "FileNotFound", "en", "en", "en"]);
    assert_eq!(rungs, []);
}

/// File after file in one engine: after each nothing is left but the model
/// that is kept on purpose, every release takes well under a tenth of a second,
/// and the last file is as fast as the first. STENO_ENDURANCE_FILES sets how
/// many, STENO_ENDURANCE_PLOT names an SVG file to draw.
#[test]
fn file_after_file_nothing_grows() {
    let files: usize =
        std::env::var("STENO_ENDURANCE_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(8);
    let mut engine = Engine::greeted(support::real());
    let mut job = job(&project("tests/data/sample.flac"), Strategy::Sequential, 1, None);
    job.speakers = false;
    let process = PathBuf::from(format!("/proc/{}", engine.id()));
    let count = |folder: &str| std::fs::read_dir(process.join(folder)).unwrap().count();
    let mut rows = Vec::new();
    for _ in 0..files {
        let outcome = run(&mut engine, &job);
        let told: Vec<&str> = outcome.transcript.notices.iter().map(|notice| notice.code.as_str()).collect();
        for code in ["memory.not_recovered", "memory.leak", "memory.release_failed"] {
            assert!(!told.contains(&code), "{:?}", outcome.transcript.notices);
        }
        let at =
            |wanted: Checkpoint| outcome.samples.iter().find(|sample| sample.checkpoint == wanted).unwrap();
        let release =
            at(Checkpoint::AfterDecodingRelease).at_ms - at(Checkpoint::BeforeDecodingRelease).at_ms;
        assert!(release < 100, "{release} ms");
        let held = at(Checkpoint::FinalCleanup).levels.unwrap().reserved as f64 / MIB as f64;
        let factor = outcome.transcript.run.unwrap().real_time_factor;
        rows.push((held, count("task"), count("fd"), factor));
    }
    let fifth = 4.min(files - 1);
    println!("file   MB held  threads  descriptors  real-time factor");
    for (number, (held, threads, descriptors, factor)) in rows.iter().enumerate() {
        if number == 0 || number == fifth || number + 1 == files || number % 20 == 19 {
            println!("{:4} {held:9.1} {threads:8} {descriptors:12} {factor:17.4}", number + 1);
        }
    }
    if let Some(path) = std::env::var_os("STENO_ENDURANCE_PLOT") {
        let held: Vec<f64> = rows.iter().map(|row| row.0).collect();
        std::fs::write(path, plot(&held)).unwrap();
    }
    let (early, last) = (rows[fifth], rows[files - 1]);
    assert!(last.0 <= early.0 + 20.0, "{} MB, then {} MB", early.0, last.0);
    assert!(last.1 <= early.1 && last.2 <= early.2, "{early:?}, then {last:?}");
}

/// Memory held after each file, as a line.
fn plot(held: &[f64]) -> String {
    const WIDTH: f64 = 800.0;
    const HEIGHT: f64 = 240.0;
    let top = held.iter().copied().fold(1.0, f64::max) * 1.25;
    let step = WIDTH / held.len().max(2) as f64;
    let points: Vec<String> = held
        .iter()
        .enumerate()
        .map(|(number, mb)| {
            format!("{:.1},{:.1}", 60.0 + number as f64 * step, 20.0 + HEIGHT * (1.0 - mb / top))
        })
        .collect();
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 900 300' font-family='sans-serif' font-size='12'>\
         <path d='M60 20V260H860' fill='none' stroke='#888'/>\
         <text x='8' y='30'>{top:.0} MB</text><text x='30' y='264'>0</text>\
         <text x='60' y='284'>memory held by the engine after each of {} files</text>\
         <polyline points='{}' fill='none' stroke='#2a6f97' stroke-width='2'/></svg>\n",
        held.len(),
        points.join(" ")
    )
}
