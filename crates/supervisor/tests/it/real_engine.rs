//! Host and engine together: `steno-engine` itself, with the starter model.

use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{
    double, is_running, last, next, noise, options, real_engine, start, starter, until, wait_for_end,
};
use wire::{DecodingOptions, ErrorCode, Event, FilePath, Job, VoiceActivity};

const SECOND: Duration = Duration::from_secs(1);

/// What is promised of time is promised of one engine at a time.
static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Keeps the engine busy for long: nothing is skipped as silence.
fn long_job(file: &tempfile::NamedTempFile) -> Job {
    let mut job = Job::new(0, file.path(), starter());
    job.voice_activity = VoiceActivity::Off;
    job
}

/// As long, and the model must write something for every window of noise.
fn talkative_job(file: &tempfile::NamedTempFile) -> Job {
    let mut job = long_job(file);
    job.language = Some("en".into());
    job.decoding = DecodingOptions {
        beam_size: Some(1),
        temperatures: vec![0.0],
        compression_ratio_threshold: None,
        log_probability_threshold: None,
        no_speech_threshold: None,
        repair: false,
        // That nothing was said is what it must not say.
        suppress_tokens: vec![end_of_text()],
        max_tokens: Some(20),
        ..DecodingOptions::default()
    };
    job
}

fn end_of_text() -> u32 {
    let config = std::fs::read(starter().join("config.json")).unwrap();
    let config: serde_json::Value = serde_json::from_slice(&config).unwrap();
    config["eos_token_id"].as_u64().unwrap().try_into().unwrap()
}

#[tokio::test]
async fn an_engine_introduces_itself_describes_itself_and_goes() {
    let engine = start(&options(real_engine())).await;
    let description = engine.describe().await.unwrap();
    assert_eq!(description.engine, engine.version());
    assert_eq!(description.backend, engine.backend());
    let pid = engine.pid();
    assert!(is_running(pid));
    engine.shutdown().await;
    assert!(!is_running(pid));
}

#[tokio::test]
async fn a_recording_becomes_a_transcript_and_the_events_add_up_to_it() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let engine = start(&options(real_engine())).await;
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/sample.flac");
    let mut handle = engine.transcribe(Job::new(0, sample, starter()));
    let mut segments = vec![];
    let mut started = false;
    let transcript = loop {
        match next(&mut handle).await {
            Event::Started { source, .. } => {
                assert_eq!(source.name, "sample.flac");
                started = true;
            }
            Event::Segment { segment, .. } => segments.push(segment),
            Event::Finished { transcript, .. } => break transcript,
            Event::Failed { error, .. } => panic!("{error}"),
            _ => {}
        }
    };
    assert!(started && transcript.complete);
    assert!(transcript.model.demonstration);
    assert!(!segments.is_empty());
    assert_eq!(transcript.segments, segments);
}

#[tokio::test]
async fn errors_name_the_file_whatever_bytes_its_name_holds() {
    let engine = start(&options(real_engine())).await;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsString::from_vec(b"caf\xe9 \xff.flac".to_vec());
    let path = FilePath::from(folder.path().join(name));
    let mut handle = engine.transcribe(Job::new(0, path.clone(), starter()));
    let Event::Failed { error, partial, .. } = last(&mut handle).await else { panic!() };
    assert_eq!((error.code, error.file), (ErrorCode::FileNotFound, Some(path.clone())));
    assert_eq!(partial, None);

    let mut handle = engine.detect_languages(vec![path.clone()], Job::new(0, "", starter()));
    let Event::FileFailed { file, error, .. } = next(&mut handle).await else { panic!() };
    assert_eq!((file, error.code), (path, ErrorCode::FileNotFound));
    assert!(matches!(next(&mut handle).await, Event::LanguagesDone));
    assert_eq!(handle.next().await, None);
}

#[tokio::test]
async fn a_job_is_cancelled_within_a_second_wherever_it_is() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let engine = start(&options(real_engine())).await;
    let file = noise(20);
    // From the very start, then ever later.
    for after in [0, 20, 100, 300, 700, 1500] {
        let mut handle = engine.transcribe(long_job(&file));
        tokio::time::sleep(Duration::from_millis(after)).await;
        handle.cancel();
        let asked = Instant::now();
        let event = last(&mut handle).await;
        assert!(matches!(event, Event::Cancelled { .. }), "after {after} ms: {event:?}");
        println!("asked after {after} ms, cancelled {:?} later", asked.elapsed());
        assert!(asked.elapsed() < SECOND, "after {after} ms: {:?}", asked.elapsed());
        assert!(engine.is_running(), "after {after} ms: it had to be killed");
    }
}

#[tokio::test]
async fn a_queued_job_is_cancelled_without_touching_the_one_that_runs() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let engine = start(&options(real_engine())).await;
    let file = noise(20);
    let mut running = engine.transcribe(long_job(&file));
    let mut queued = engine.transcribe(long_job(&file));
    until(&mut running, |event| matches!(event, Event::Started { .. })).await;
    queued.cancel();
    assert_eq!(last(&mut queued).await, Event::Cancelled { partial: None });
    until(&mut running, |event| matches!(event, Event::Progress { .. })).await;
    running.canceller().cancel();
    assert!(matches!(last(&mut running).await, Event::Cancelled { .. }));
}

#[tokio::test]
async fn an_engine_killed_in_a_job_leaves_the_text_it_had_written() {
    let _alone = ONE_AT_A_TIME.lock().await;
    let engine = start(&options(real_engine())).await;
    let file = noise(20);
    let mut handle = engine.transcribe(talkative_job(&file));
    let mut seen = 0;
    while seen == 0 {
        seen += usize::from(matches!(next(&mut handle).await, Event::Segment { .. }));
    }
    // SAFETY: the call takes numbers only; the process is this test's own.
    assert_eq!(unsafe { libc::kill(engine.pid() as libc::pid_t, libc::SIGKILL) }, 0);
    let (error, partial) = loop {
        match next(&mut handle).await {
            Event::Segment { .. } => seen += 1,
            Event::Failed { error, partial, .. } => break (error, partial.expect("no partial transcript")),
            event => assert!(!event.is_last(), "{event:?}"),
        }
    };
    assert_eq!(error.code, ErrorCode::EngineFailed);
    assert!(error.message.contains("SIGKILL"), "{error}");
    assert_eq!(partial.segments.len(), seen);
    assert!(!partial.complete);
}

#[test]
fn no_engine_outlives_a_host_that_was_killed() {
    let _alone = ONE_AT_A_TIME.blocking_lock();
    let file = noise(20);
    for busy in [false, true] {
        let mut host = std::process::Command::new(double("host"));
        host.arg(real_engine());
        if busy {
            host.arg(file.path()).arg(starter());
        }
        let mut host = host.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let engine: u32 = line.trim().parse().expect("the host has no engine");
        assert!(is_running(engine));
        host.kill().unwrap();
        let killed = Instant::now();
        host.wait().unwrap();
        wait_for_end(engine, killed + SECOND);
    }
}
