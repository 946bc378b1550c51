//! The engine as a process: greeting, order among jobs, faults, and that it
//! never outlives its host.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

mod support;

use std::io::{Read, Write};
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{Engine, SECOND, double, is_running, wait_for_end};
use wire::{Command, Envelope, ErrorCode, Event, Job, JobId, NO_JOB, PROTOCOL_VERSION};

fn job(id: JobId, file: &str) -> Command {
    Command::Transcribe(Box::new(Job::new(id, file, "model")))
}

fn notice(event: &Event, wanted: &str) -> Option<String> {
    match event {
        Event::Notice { notice, .. } if notice.code == wanted => Some(notice.text.clone()),
        _ => None,
    }
}

#[test]
fn a_host_of_the_same_version_is_greeted() {
    for program in [support::real(), double()] {
        let mut engine = Engine::start(program);
        engine.send(Command::Hello { protocol: PROTOCOL_VERSION });
        match engine.next() {
            Event::Hello { protocol, pid, engine: version, .. } => {
                assert_eq!(protocol, PROTOCOL_VERSION);
                assert_eq!(pid, engine.id());
                assert_eq!(version, env!("CARGO_PKG_VERSION"));
            }
            other => panic!("{other:?}"),
        }
        engine.send(Command::Describe);
        assert!(matches!(engine.next(), Event::Description(_)));
        engine.send(Command::Shutdown);
        assert_eq!(engine.end().code(), Some(0));
    }
}

#[test]
fn a_host_of_another_version_is_told_both_and_the_engine_fails() {
    for (first, theirs) in [
        (Command::Hello { protocol: 4711 }, "version 4711"),
        (job(1, "good"), "no version"),
        (Command::Ping { nonce: 1 }, "no version"),
    ] {
        let mut engine = Engine::start(support::real());
        engine.send(first);
        let error = engine.until_of(None, |event| match event {
            Event::Failed { error, .. } => Some(error),
            _ => None,
        });
        assert_eq!(error.code, ErrorCode::ProtocolMismatch);
        assert!(error.message.contains(&format!("version {PROTOCOL_VERSION} ")), "{error}");
        assert!(error.message.contains(theirs), "{error}");
        assert_eq!(engine.end().code(), Some(3));
    }
}

#[test]
fn garbage_is_refused_with_a_sentence_and_not_taken_for_a_command() {
    for garbage in
        [&b"steno transcribe a.wav\n"[..], b"\x05\0\0\0hello", b"\0\0\0\0", &[0xff; 4096], b"\x05\0"]
    {
        let mut engine = Engine::start(support::real());
        engine.send_bytes(garbage);
        engine.close_input();
        let error = engine.until_of(None, |event| match event {
            Event::Failed { error, .. } => Some(error),
            _ => None,
        });
        assert_eq!(error.code, ErrorCode::ProtocolMismatch);
        assert!(error.message.contains("can't read its commands"), "{error}");
        assert_eq!(engine.end().code(), Some(2));
    }
}

#[test]
fn stray_output_and_hungry_children_touch_neither_events_nor_commands() {
    let mut engine = Engine::greeted(double());
    engine.send(job(1, "print"));
    engine.send(job(2, "read"));
    engine.send(job(3, "good"));
    for id in 1..=3 {
        engine.until_finished(id);
    }
    engine.send(Command::Shutdown);
    let errors = engine.standard_error();
    assert!(errors.contains("a line that a library left in"), "{errors}");
    assert!(errors.contains("a line of another program"), "{errors}");
}

#[test]
fn a_fault_in_one_job_is_named_and_the_next_job_gets_a_new_device() {
    let mut engine = Engine::greeted(double());
    for (id, file, said) in [(1, "panic", "the planted fault"), (2, "panic in a thread", "far away")] {
        engine.send(job(id, file));
        let error = engine.until_of(Some(id), |event| match event {
            Event::Failed { error, .. } => Some(error),
            _ => None,
        });
        assert_eq!(error.code, ErrorCode::Internal);
        // Where a pool's thread panicked, its own words are on standard error.
        assert!(id != 1 || error.message.contains(said), "{error}");
        assert!(error.message.contains("double.rs:"), "the place is named: {error}");

        engine.send(job(10 + id, "good"));
        assert_eq!(engine.until(|event| notice(&event, "jobs")), "1", "the device is a new one");
        engine.until_finished(10 + id);
    }
    engine.send(Command::Shutdown);
    let errors = engine.standard_error();
    assert!(errors.contains("the planted fault") && errors.contains("far away"), "{errors}");
}

#[test]
fn a_decoder_that_asks_for_too_much_ends_the_engine_and_says_so() {
    let mut engine = Engine::greeted(double());
    for (id, file) in [(1, "modest"), (2, "large")] {
        engine.send(job(id, file));
        engine.until_finished(id);
    }
    for file in ["one length", "growing", "many pieces"] {
        let mut engine = Engine::greeted(double());
        engine.send(job(1, file));
        assert_eq!(engine.end().code(), Some(wire::exit_status::DECODING_LIMIT), "{file}");
        let errors = engine.standard_error();
        assert!(errors.contains("more memory than any recording needs"), "{file}: {errors}");
    }
}

#[test]
fn numbers_that_json_lacks_still_arrive() {
    let mut engine = Engine::greeted(double());
    engine.send(job(1, "not a number"));
    let segment = engine.until(|event| match event {
        Event::Segment { segment, .. } => Some(segment),
        _ => None,
    });
    assert_eq!((segment.mean_log_probability, segment.compression_ratio), (f32::MIN, 0.0));
    let files = vec!["a".into(), "b".into()];
    let plain = Box::new(Job::new(2, "", "model"));
    engine.send(Command::DetectLanguages { id: 2, files, job: plain });
    for name in ["a", "b"] {
        engine.until_of(Some(2), |event| match event {
            Event::Language { file, probabilities } => {
                assert_eq!((file, probabilities[0].1), (name.into(), 0.0));
                Some(())
            }
            _ => None,
        });
    }
    engine.until_of(Some(2), |event| (event == Event::LanguagesDone).then_some(()));
}

#[test]
fn pings_and_descriptions_are_answered_while_the_device_works() {
    let mut engine = Engine::greeted(double());
    engine.send(Command::Describe);
    engine.until(|event| matches!(event, Event::Description(_)).then_some(()));
    engine.send(job(1, "obedient"));
    engine.until(|event| notice(&event, "running"));
    let mut earlier = 0;
    for nonce in 1..=3 {
        // The counter moves on by itself: ask until it has, as a host does.
        let asked = Instant::now();
        loop {
            engine.send(Command::Ping { nonce });
            let work = engine.until(|event| match event {
                Event::Pong { nonce: same, work } if same == nonce => Some(work),
                _ => None,
            });
            if work > earlier {
                earlier = work;
                break;
            }
            assert!(asked.elapsed() < 10 * SECOND, "the work counter stands still at {work}");
        }
    }
    engine.send(Command::Describe);
    engine.until(|event| matches!(event, Event::Description(_)).then_some(()));
    engine.send(Command::Cancel { id: 1 });
    engine.until_of(Some(1), |event| matches!(event, Event::Cancelled { partial: Some(_) }).then_some(()));
}

#[test]
fn a_cancel_takes_the_job_it_names_within_a_second_and_no_other() {
    let mut engine = Engine::greeted(double());
    engine.send(job(1, "obedient"));
    engine.send(job(2, "good"));
    engine.send(job(3, "good"));
    engine.until(|event| notice(&event, "running"));
    for unknown in [NO_JOB, 99] {
        engine.send(Command::Cancel { id: unknown });
    }
    engine.send(Command::Cancel { id: 2 });
    engine.until_of(Some(2), |event| (event == Event::Cancelled { partial: None }).then_some(()));
    let asked = Instant::now();
    engine.send(Command::Cancel { id: 1 });
    engine.until_of(Some(1), |event| matches!(event, Event::Cancelled { partial: Some(_) }).then_some(()));
    assert!(asked.elapsed() < SECOND, "{:?}", asked.elapsed());
    engine.until_finished(3);
}

#[test]
fn shutdown_reports_every_job_and_ends_the_process() {
    let mut engine = Engine::greeted(double());
    engine.send(job(1, "obedient"));
    engine.send(job(2, "good"));
    engine.until(|event| notice(&event, "running"));
    engine.send(Command::Shutdown);
    let mut cancelled = vec![];
    while let Some(envelope) = engine.next_or_end() {
        if let Event::Cancelled { .. } = envelope.body {
            cancelled.push(envelope.job);
        }
    }
    cancelled.sort_unstable();
    assert_eq!(cancelled, [Some(1), Some(2)]);
    assert_eq!(engine.end().code(), Some(0));
}

#[test]
fn closing_the_input_ends_the_engine_within_a_second_with_what_it_started() {
    for file in [None, Some("obedient"), Some("stubborn")] {
        let mut engine = Engine::greeted(double());
        let mut child = None;
        if let Some(file) = file {
            engine.send(job(1, file));
            let waited_for = if file == "stubborn" { "child" } else { "running" };
            child = engine.until(|event| notice(&event, waited_for)).parse().ok();
        }
        assert!(child.is_none_or(is_running));
        let closed = Instant::now();
        engine.close_input();
        engine.end();
        assert!(closed.elapsed() < SECOND, "{file:?}: {:?}", closed.elapsed());
        if let Some(child) = child {
            wait_for_end(child, closed + SECOND);
        }
    }
}

#[test]
fn the_engine_ends_when_nobody_reads_its_events() {
    let mut engine = Engine::greeted(double());
    engine.stop_reading();
    let stopped = Instant::now();
    while engine.is_running() && stopped.elapsed() < 10 * SECOND {
        // Written to a closed pipe.
        engine.try_send(Command::Ping { nonce: 0 });
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(!engine.is_running());
}

/// The pipe stays open in this test, so only the watcher can notice.
#[test]
fn the_engine_ends_within_a_second_of_its_host_though_its_input_stays_open() {
    for file in [None, Some("stubborn")] {
        // The shell is the host; it names the engine that it started.
        let script = "exec 3<&0; \"$0\" <&3 & echo engine $! >&2; wait";
        let mut host = std::process::Command::new("sh")
            .args(["-c", script])
            .arg(double())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let engine_id: u32 = {
            let mut line = Vec::new();
            let error = host.stderr.as_mut().unwrap();
            while line.last() != Some(&b'\n') {
                let mut byte = [0];
                error.read_exact(&mut byte).unwrap();
                line.push(byte[0]);
            }
            String::from_utf8(line).unwrap().trim().trim_start_matches("engine ").parse().unwrap()
        };
        let mut input = host.stdin.take().unwrap();
        let mut output = host.stdout.take().unwrap();
        wire::write_frame(&mut input, &Command::Hello { protocol: PROTOCOL_VERSION }).unwrap();
        let mut next = || wire::read_frame::<Envelope>(&mut output).unwrap().unwrap().body;
        assert!(matches!(next(), Event::Hello { .. }));
        if let Some(file) = file {
            wire::write_frame(&mut input, &job(1, file)).unwrap();
            while notice(&next(), "child").is_none() {}
        }
        host.kill().unwrap();
        let killed = Instant::now();
        host.wait().unwrap();
        wait_for_end(engine_id, killed + SECOND);
        input.flush().unwrap();
    }
}

#[test]
fn by_hand_it_explains_itself() {
    for (argument, status, said) in [
        ("--version", 0, format!("protocol {PROTOCOL_VERSION}")),
        ("--help", 0, "steno transcribe RECORDING".into()),
        ("transcribe", 2, "unknown arguments".into()),
    ] {
        let result = std::process::Command::new(support::real()).arg(argument).output().unwrap();
        assert_eq!(result.status.code(), Some(status), "{argument}");
        let text = [result.stdout, result.stderr].concat();
        assert!(String::from_utf8_lossy(&text).contains(&said), "{argument}");
    }
}
