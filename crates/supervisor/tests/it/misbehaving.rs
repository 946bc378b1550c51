//! Whatever an engine does, the host gets a last event with what there is of
//! the text, in good time, and no process stays behind.

use std::time::{Duration, Instant};

use crate::support::{double, is_running, last, options, start, until, wait_for_end};
use supervisor::find::{EngineProgram, EnginePrograms};
use supervisor::{Engine, EngineOptions, JobHandle, Limits};
use transcript::Transcript;
use wire::{ErrorCode, Event, Failure, Job};

const SECOND: Duration = Duration::from_secs(1);

fn impatient(behaviour: &str) -> EngineOptions {
    let limits = Limits {
        greeting: SECOND,
        ping_interval: Duration::from_millis(50),
        pong: Duration::from_millis(600),
        standstill: Duration::from_millis(1200),
        shutdown: Duration::from_millis(300),
        ..Limits::default()
    };
    EngineOptions { limits, ..options(double(behaviour)) }
}

fn job() -> Job {
    Job { language: Some("en".into()), ..Job::new(0, "/recordings/talk.flac", "model") }
}

async fn has_written(handle: &mut JobHandle) {
    until(handle, |event| matches!(event, Event::Segment { segment, .. } if segment.text == "Two.")).await;
}

fn assert_partial(partial: Option<Box<Transcript>>) {
    let partial = partial.expect("what was written is lost");
    let texts: Vec<_> = partial.segments.iter().map(|segment| segment.text.as_str()).collect();
    assert_eq!(texts, ["One.", "Two."]);
    assert!(!partial.complete);
    assert_eq!((partial.source.name.as_str(), partial.model.name.as_str()), ("talk.flac", "double"));
    assert_eq!(partial.language, "en");
    assert_eq!(partial.notices.len(), 1);
    assert_eq!(partial.settings["language"], "en", "the settings are kept with it");
    assert!(partial.settings.get("file").is_none(), "folders of the user are not");
}

#[tokio::test]
async fn an_engine_that_dies_in_a_job_fails_it_with_its_last_words_and_the_text_so_far() {
    let cases: [(&str, &[&str]); 4] = [
        ("crashing", &["SIGABRT", "memory allocation of 123 bytes failed"]),
        ("leaving", &["exited with status 7"]),
        ("garbled", &["can't be understood"]),
        ("hanging-up", &["The engine stopped"]),
    ];
    for (behaviour, said) in cases {
        let engine = start(&options(double(behaviour))).await;
        let mut handle = engine.transcribe(job());
        let mut queued = engine.transcribe(job());
        let Event::Failed { error, partial } = last(&mut handle).await else { panic!("{behaviour}") };
        assert_eq!(error.code, ErrorCode::EngineFailed, "{behaviour}: {error}");
        for words in said {
            assert!(error.message.contains(words), "{behaviour}: {error}");
        }
        assert_eq!(error.file, Some("/recordings/talk.flac".into()), "{behaviour}");
        assert_partial(partial);
        assert_eq!(handle.next().await, None);

        assert!(matches!(last(&mut queued).await, Event::Failed { .. }), "{behaviour}");
        // The engine is known to be gone, and so is every later job.
        assert!(!engine.is_running(), "{behaviour}");
        assert!(!is_running(engine.pid()), "{behaviour}");
        assert!(matches!(last(&mut engine.transcribe(job())).await, Event::Failed { .. }), "{behaviour}");
        assert_eq!(engine.describe().await.unwrap_err().code, ErrorCode::EngineFailed, "{behaviour}");
    }
}

#[tokio::test]
async fn a_file_that_makes_its_decoder_greedy_is_called_damaged_and_the_next_one_is_not() {
    let engine = start(&options(double("greedy"))).await;
    let mut handle = engine.transcribe(job());
    let mut queued = engine.transcribe(job());
    let Event::Failed { error, partial, .. } = last(&mut handle).await else { panic!() };
    assert_eq!((error.code, &error.file), (ErrorCode::AudioBroken, &Some("/recordings/talk.flac".into())));
    assert!(error.message.contains("damaged"), "{error}");
    assert_partial(partial);
    let Event::Failed { error, .. } = last(&mut queued).await else { panic!() };
    assert_eq!(error.code, ErrorCode::EngineFailed);
}

#[tokio::test]
async fn an_engine_that_sends_text_without_end_is_ended_and_the_text_has_a_limit() {
    let mut options = options(double("flooding"));
    options.limits.text = 1 << 20;
    let engine = start(&options).await;
    let mut handle = engine.transcribe(job());
    let Event::Failed { error, partial } = last(&mut handle).await else { panic!() };
    assert_eq!(error.code, ErrorCode::EngineFailed, "{error}");
    assert!(error.message.contains("more than 1 MB of text"), "{error}");
    let segments = partial.expect("the text until then is lost").segments;
    let bytes: usize = segments.iter().map(|segment| segment.text.len()).sum();
    assert!((512 << 10..1 << 20).contains(&bytes), "{bytes}");
    assert!(!is_running(engine.pid()));
}

/// Anything at all in any order, a thousand times in `make soak`: `STENO_HOSTILE_ROUNDS=1000`.
#[tokio::test]
async fn hostile_engines_end_with_a_last_event_and_a_text_within_its_limit() {
    let rounds =
        std::env::var("STENO_HOSTILE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(30);
    let mut ends = [0; 3];
    for seed in 0..rounds {
        let mut options = impatient(&format!("hostile-{seed}"));
        options.limits.text = 1 << 20;
        let engine = start(&options).await;
        let begun = Instant::now();
        let mut handle = engine.transcribe(job());
        let (end, text) = match last(&mut handle).await {
            Event::Finished { transcript, .. } => (0, Some(transcript)),
            Event::Failed { partial, error } => {
                assert!(!error.message.is_empty(), "seed {seed}");
                (1, partial)
            }
            Event::Cancelled { partial } => (2, partial),
            event => panic!("seed {seed}: {event:?}"),
        };
        ends[end] += 1;
        let longest = options.limits.standstill + options.limits.pong + 3 * SECOND;
        assert!(begun.elapsed() < longest, "seed {seed}: {:?}", begun.elapsed());
        let texts = text.iter().flat_map(|text| &text.segments).map(|segment| segment.text.len());
        assert!(texts.sum::<usize>() <= 2 << 20, "seed {seed}");
        assert_eq!(handle.next().await, None, "seed {seed}: an event after the last one");
        let pid = engine.pid();
        engine.shutdown().await;
        wait_for_end(pid, Instant::now() + 2 * SECOND);
    }
    println!("{} finished, {} failed, {} cancelled", ends[0], ends[1], ends[2]);
    assert!(ends[1] > 0);
}

#[tokio::test]
async fn a_job_whose_cancel_is_not_obeyed_takes_the_engine_with_it() {
    let engine = start(&options(double("stubborn"))).await;
    let mut handle = engine.transcribe(job());
    let mut other = engine.transcribe(job());
    has_written(&mut handle).await;
    has_written(&mut other).await;
    handle.cancel();
    let asked = Instant::now();
    let Event::Cancelled { partial, .. } = last(&mut handle).await else { panic!() };
    let waited = asked.elapsed();
    assert!(waited >= SECOND && waited < 2 * SECOND, "{waited:?}");
    assert_partial(partial);
    wait_for_end(engine.pid(), Instant::now() + SECOND);
    let Event::Failed { error, partial, .. } = last(&mut other).await else { panic!() };
    assert!(error.message.contains("a cancelled job did not stop"), "{error}");
    assert_partial(partial);
}

#[tokio::test]
async fn silence_and_standstill_end_an_engine() {
    for (behaviour, said) in [("deaf", "did not respond"), ("at-a-standstill", "made no progress")] {
        let engine = start(&impatient(behaviour)).await;
        let mut handle = engine.transcribe(job());
        let Event::Failed { error, partial, .. } = last(&mut handle).await else { panic!("{behaviour}") };
        assert_eq!(error.code, ErrorCode::EngineSilent, "{behaviour}: {error}");
        assert!(error.message.contains(said), "{behaviour}: {error}");
        assert_partial(partial);
        wait_for_end(engine.pid(), Instant::now() + SECOND);
    }
}

#[tokio::test]
async fn a_long_job_that_gets_somewhere_is_left_alone() {
    let options = impatient("stubborn");
    let engine = start(&options).await;
    let mut handle = engine.transcribe(job());
    has_written(&mut handle).await;
    // Longer than either limit without an event; the work counter moves.
    let more = 2 * (options.limits.standstill + options.limits.pong);
    assert!(tokio::time::timeout(more, handle.next()).await.is_err(), "the job ended");
    assert!(engine.is_running());
}

#[tokio::test]
async fn what_is_no_engine_of_this_version_is_refused_by_name() {
    let version = wire::PROTOCOL_VERSION;
    let (ours, theirs) = (format!("version {version}."), format!("version {} ", version + 4711));
    let cases: [(&str, ErrorCode, &[&str]); 4] = [
        ("silent", ErrorCode::EngineSilent, &["did not introduce itself"]),
        ("wrong-version", ErrorCode::ProtocolMismatch, &[&ours, &theirs, "wrong-version"]),
        ("missing-library", ErrorCode::EngineFailed, &["status 127", "libcublas.so.13"]),
        ("not-an-engine", ErrorCode::EngineFailed, &["can't be understood", "not-an-engine"]),
    ];
    for (behaviour, code, said) in cases {
        let failure = Engine::start(&impatient(behaviour)).await.unwrap_err();
        assert_eq!(failure.code, code, "{behaviour}: {failure}");
        for words in said {
            assert!(failure.to_string().contains(words), "{behaviour}: {failure}");
        }
        assert!(failure.remedy.is_some(), "{behaviour}");
    }
}

#[tokio::test]
async fn where_the_cuda_engine_cannot_start_the_cpu_one_serves_and_it_is_said_why() {
    let candidate = |behaviour: &str| EngineProgram { program: double(behaviour), library_path: None };
    let found = |first: &str, second: &str| EnginePrograms {
        candidates: vec![candidate(first), candidate(second)],
        note: None,
    };
    for (first, why) in [
        ("missing-library", "libcublas.so.13"),
        ("wrong-version", "version"),
        ("silent", "did not introduce itself"),
        ("nothing/there", "can't be started"),
    ] {
        let limits = impatient("").limits;
        let engine = Engine::start_first(found(first, "stubborn"), &limits).await.unwrap();
        assert_eq!(engine.program(), double("stubborn"), "{first}");
        let note = engine.backend_note().unwrap();
        assert!(note.starts_with("The CPU computes") && note.contains(why), "{first}: {note}");
    }
    // Where both fail the CPU's failure counts; where none does there is nothing to say.
    let limits = impatient("").limits;
    let failure = Engine::start_first(found("silent", "missing-library"), &limits).await.unwrap_err();
    assert!(failure.message.contains("libcublas.so.13"), "{failure}");
    let engine = Engine::start_first(found("stubborn", "silent"), &limits).await.unwrap();
    assert_eq!(engine.backend_note(), None);
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let not_executable = folder.path().join("steno-engine");
    std::fs::write(&not_executable, "text").unwrap();
    for (program, code) in [
        (folder.path().join("nothing"), ErrorCode::EngineNotFound),
        (not_executable, ErrorCode::EngineFailed),
    ] {
        let failure: Failure = Engine::start(&options(&program)).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert_eq!(failure.file, Some(program.into()));
    }
}

#[tokio::test]
async fn an_engine_that_lingers_is_ended_and_shutdown_returns() {
    for behaviour in ["stubborn", "lingering"] {
        let engine = start(&impatient(behaviour)).await;
        let mut handle = engine.transcribe(job());
        has_written(&mut handle).await;
        let pid = engine.pid();
        let asked = Instant::now();
        engine.shutdown().await;
        assert!(asked.elapsed() < SECOND, "{behaviour}: {:?}", asked.elapsed());
        assert!(!is_running(pid), "{behaviour}");
        let Event::Cancelled { partial, .. } = last(&mut handle).await else { panic!("{behaviour}") };
        assert_partial(partial);
    }
}

#[tokio::test]
async fn dropping_the_engine_or_giving_up_its_start_leaves_no_process() {
    let engine = start(&impatient("lingering")).await;
    let pid = engine.pid();
    drop(engine);
    wait_for_end(pid, Instant::now() + 2 * SECOND);

    // Its greeting would never have come.
    let before = children();
    let given_up = impatient("silent");
    let start = Engine::start(&given_up);
    assert!(tokio::time::timeout(Duration::from_millis(100), start).await.is_err());
    let deadline = Instant::now() + 10 * SECOND;
    while children().iter().any(|(id, name)| name == "silent" && !before.iter().any(|(old, _)| old == id)) {
        assert!(Instant::now() < deadline, "{:?}", children());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Numbers and names of this process's children.
fn children() -> Vec<(u32, String)> {
    let own = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers
        .filter_map(|id| {
            let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
            let (head, rest) = text.rsplit_once(") ")?;
            let parent = rest.split_whitespace().nth(1)?;
            (parent == own).then(|| (id, head.split_once(" (").unwrap_or_default().1.to_owned()))
        })
        .collect()
}

#[tokio::test]
async fn a_job_nobody_waits_for_is_cancelled() {
    let engine = start(&options(double("stubborn"))).await;
    let pid = engine.pid();
    let mut handle = engine.transcribe(job());
    has_written(&mut handle).await;
    drop(handle);
    // It does not obey: that the engine is ended shows that it was asked.
    wait_for_end(pid, Instant::now() + 3 * SECOND);
}
