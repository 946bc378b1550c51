//! Engines and hosts that are killed at any moment, with the real engine and
//! the model that ships with the source: every text comes out whole, as if
//! nothing had happened. `STENO_KILL_ROUNDS` asks for more kills than the few
//! of an ordinary run (scripts/soak.sh does).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::support::{Ran, Sandbox, project, real_engine, wav};
use serde_json::Value;

/// What is killed counts as out of memory: the text stays the same only where
/// neither the model nor its precision may change.
const KEPT: [&str; 2] = ["--keep", "model,precision"];

/// Longer than any of it takes on a starved machine; reached only by a hang.
const PATIENCE: Duration = Duration::from_secs(600);

fn rounds(ordinary: usize) -> usize {
    let asked = std::env::var("STENO_KILL_ROUNDS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(ordinary)
}

fn steno(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    sandbox.command_with(&real_engine(), arguments)
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Ran {
    steno(sandbox, arguments).output().unwrap().into()
}

/// The same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// Recordings of one window or two.
fn recordings(sandbox: &Sandbox, count: usize) -> Vec<String> {
    let sample = std::fs::read(project().join("tests/data/sample.flac")).unwrap();
    let mut reader =
        audio::Reader::open(&project().join("tests/data/sample.flac"), &Default::default()).unwrap();
    let mut data = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        data.extend(block.iter().flat_map(|sample| ((sample * 32_767.0) as i16).to_le_bytes()));
    }
    (0..count)
        .map(|number| {
            let times = [1, 1, 5, 1][number % 4];
            if times == 1 {
                let name = format!("{number:03} short.flac");
                std::fs::write(sandbox.path(&name), &sample).unwrap();
                name
            } else {
                let name = format!("{number:03} long.wav");
                std::fs::write(sandbox.path(&name), wav(&data.repeat(times))).unwrap();
                name
            }
        })
        .collect()
}

fn json(sandbox: &Sandbox, folder: &str, recording: &str) -> Value {
    let name = Path::new(recording).with_extension("json");
    serde_json::from_str(&sandbox.read(&format!("{folder}/{}", name.display()))).unwrap()
}

#[track_caller]
fn assert_same_texts(sandbox: &Sandbox, recordings: &[String], folder: &str) {
    for recording in recordings {
        let (calm, wild) = (json(sandbox, "calm", recording), json(sandbox, folder, recording));
        assert!(!calm["segments"].as_array().unwrap().is_empty());
        for field in ["segments", "discarded", "completeness", "language", "complete", "model", "source"] {
            assert_eq!(wild[field], calm[field], "{recording}: {field}");
        }
    }
}

/// The engine that `host` runs now.
fn engine_of(host: u32) -> Option<i32> {
    let children = std::fs::read_to_string(format!("/proc/{host}/task/{host}/children")).ok();
    // Engines are started by whichever thread has the time.
    let tasks = std::fs::read_dir(format!("/proc/{host}/task")).ok()?.flatten();
    let of_tasks = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let all: Vec<String> = children.into_iter().chain(of_tasks).collect();
    all.iter().flat_map(|line| line.split_whitespace()).find_map(|number| number.parse().ok())
}

fn kill(process: i32) {
    // SAFETY: the call takes numbers only; the process is a child of a child of
    // this test's, found a moment ago.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

struct Running {
    child: Child,
    events: mpsc::Receiver<Value>,
}

impl Running {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut child =
            steno(sandbox, arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, events) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str(&line) else { return };
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        Self { child, events }
    }

    fn next(&self) -> Option<Value> {
        match self.events.recv_timeout(PATIENCE) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing happens any more"),
        }
    }

    fn kill_engine(&self) -> bool {
        engine_of(self.child.id()).map(kill).is_some()
    }
}

#[test]
fn engines_killed_at_random_moments_cost_nothing() {
    let (sandbox, kills) = (Sandbox::with(&[]), rounds(5));
    // Every other recording has its engine killed: a kill that comes late hits
    // the one after it, which must not count as a place that ends engines.
    let recordings = recordings(&sandbox, 2 * kills);
    let names: Vec<&str> = recordings.iter().map(String::as_str).collect();
    let arguments = |folder: &'static str, more: &[&'static str]| -> Vec<String> {
        let all = [&["transcribe", "-f", "json", "--reproducible", "-o", folder][..], &KEPT, more, &names];
        all.concat().into_iter().map(str::to_owned).collect()
    };
    let calm = arguments("calm", &["--quiet"]);
    run(&sandbox, &calm.iter().map(String::as_str).collect::<Vec<_>>()).ends(0);

    let wild = arguments("wild", &["--json-events"]);
    let mut running = Running::start(&sandbox, &wild.iter().map(String::as_str).collect::<Vec<_>>());
    let mut random = Random(4);
    let mut told: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    let (mut killed, mut over, mut restarts) = (0, 0, 0);
    // When the next kill is due, counted in events and then in time.
    let mut due = Some((random.below(6), random.below(150)));
    while let Some(event) = running.next() {
        let id = event["job"].as_u64().unwrap();
        match event["event"].as_str().unwrap() {
            "segment" => told.entry(id).or_default().push(event["segment"].clone()),
            "notice" if event["notice"]["code"] == "engine.restarted" => restarts += 1,
            "finished" => {
                let segments = event["transcript"]["segments"].as_array().unwrap();
                assert_eq!(Some(segments), told.get(&id), "recording {id}: told live");
                over = id;
                // Odd ones are killed, even ones left in peace.
                due = (id % 2 == 0).then(|| (random.below(6), random.below(150)));
                continue;
            }
            "failed" | "cancelled" => panic!("{event}"),
            "queued" | "saved" => continue,
            _ => {}
        }
        match &mut due {
            Some((0, wait)) if killed < kills => {
                let until = Instant::now() + Duration::from_millis(*wait);
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                killed += usize::from(running.kill_engine());
                due = None;
            }
            Some((events, _)) => *events = events.saturating_sub(1),
            None => {}
        }
    }
    assert!(running.child.wait().unwrap().success());
    assert_eq!(over as usize, recordings.len());
    println!("{killed} kills, {restarts} of them in a job");
    assert!(2 * killed >= kills && 2 * restarts >= killed, "{killed} kills, {restarts} restarts");
    assert_same_texts(&sandbox, &recordings, "wild");
}

#[test]
fn hosts_killed_with_their_engines_are_resumed_with_nothing_lost_or_doubled() {
    // A tenth of the rounds: each takes a host's start and its engine's.
    let (sandbox, kills) = (Sandbox::with(&[]), rounds(30) / 10);
    let recordings = recordings(&sandbox, 8);
    let mut calm = vec!["transcribe", "-f", "json,srt", "--reproducible", "-o", "calm", "-q"];
    calm.extend(KEPT);
    calm.extend(recordings.iter().map(String::as_str));
    run(&sandbox, &calm).ends(0);

    let mut wild = vec!["transcribe", "-f", "json,srt", "--reproducible", "-o", "wild", "--json-events"];
    wild.extend(KEPT);
    wild.extend(recordings.iter().map(String::as_str));
    let mut random = Random(7);
    let mut done: Vec<PathBuf> = Vec::new();
    for round in 0..kills {
        let running = if round == 0 {
            Running::start(&sandbox, &wild)
        } else {
            Running::start(&sandbox, &["resume", "--json-events"])
        };
        // Somewhere in a job, not before the first one began.
        let mut events = 10 + random.below(60 / kills.min(20) as u64 + 1);
        let mut alive = true;
        while alive && events > 0 {
            match running.next() {
                None => alive = false,
                Some(event) if event["event"] == "queued" => {}
                Some(event) => {
                    assert_ne!(event["event"], "failed", "{event}");
                    done.extend(event["path"].as_str().map(PathBuf::from));
                    events -= 1;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(100)));
        let Running { mut child, .. } = running;
        let engine = engine_of(child.id());
        child.kill().unwrap();
        if let Some(engine) = engine {
            kill(engine);
        }
        child.wait().unwrap();
        if !alive {
            break;
        }
        if round == 0 {
            let listed = run(&sandbox, &["resume", "--list"]).ends(0);
            assert!(listed.out.contains("short.flac") || listed.out.contains("long.wav"), "{}", listed.out);
        }
    }
    let before: Vec<_> = done.iter().map(|path| modified(&sandbox.path(path))).collect();
    run(&sandbox, &["resume"]).ends(0);
    assert_same_texts(&sandbox, &recordings, "wild");
    for recording in &recordings {
        let name = Path::new(recording).with_extension("srt");
        let read = |folder: &str| sandbox.read(&format!("{folder}/{}", name.display()));
        assert_eq!(read("wild"), read("calm"));
    }
    // What was finished was not done again.
    let after: Vec<_> = done.iter().map(|path| modified(&sandbox.path(path))).collect();
    assert_eq!(before, after);
    let listed = run(&sandbox, &["resume", "--list"]).ends(0);
    assert_eq!((listed.out.as_str(), listed.err.as_str()), ("", "Nothing was interrupted.\n"));
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).unwrap().modified().unwrap()
}

#[test]
fn a_window_that_no_engine_survives_costs_that_window_alone() {
    let sandbox = Sandbox::with(&[]);
    let recordings = recordings(&sandbox, 4);
    let mut arguments = vec!["transcribe", "--json-events", "-f", "json", "--reproducible", "-o", "calm"];
    arguments.extend(recordings.iter().map(String::as_str));
    let calm = run(&sandbox, &arguments).ends(0);
    let windows: Vec<u64> = events(&calm)
        .iter()
        .filter(|event| event["event"] == "window" && event["job"] == 3)
        .map(|event| event["position"].as_u64().unwrap())
        .collect();
    assert!(windows.len() >= 2, "{windows:?}");
    let planted = windows[1];

    arguments[6] = "wild";
    let mut command = steno(&sandbox, &arguments);
    let wild: Ran = command.env("STENO_TEST_ABORT_AT", planted.to_string()).output().unwrap().into();
    let wild = wild.ends(0);
    let of = |id: u64, code: &str| {
        let is = |event: &&Value| event["job"] == id && event["notice"]["code"] == code;
        events(&wild).iter().filter(is).count()
    };
    assert_eq!(of(3, "engine.window_skipped"), 1, "{}", wild.err);
    assert!((1..=3).contains(&of(3, "engine.restarted")), "{}", wild.err);
    let (calm, with_gap) = (json(&sandbox, "calm", &recordings[2]), json(&sandbox, "wild", &recordings[2]));
    let gaps = with_gap["completeness"]["gaps"].as_array().unwrap();
    let at = planted as f64 / 16_000.0;
    let covers =
        |gap: &Value| gap["end"].as_f64().unwrap() > at && gap["start"].as_f64().unwrap() < at + 30.0;
    assert!(gaps.iter().any(covers), "{gaps:?} does not list {at}");
    // All that was said before it is there as it was.
    let before = |transcript: &Value| -> Vec<Value> {
        let all = transcript["segments"].as_array().unwrap().iter();
        all.filter(|segment| segment["end"].as_f64().unwrap() <= at).cloned().collect()
    };
    assert!(!before(&calm).is_empty());
    assert_eq!(before(&with_gap), before(&calm));
    let others: Vec<String> = [0, 1].map(|index| recordings[index].clone()).to_vec();
    assert_same_texts(&sandbox, &others, "wild");
    assert!(sandbox.path("wild").join(Path::new(&recordings[3]).with_extension("json")).is_file());
}

/// While speakers are listened for the text is there already. Whether the engine is killed or the
/// program with it, nothing of it is lost, with the networks in the program and with installed ones.
#[test]
fn a_kill_while_speakers_are_identified_costs_nothing() {
    let folder = project().join("tests/data/corpus");
    let sandbox = Sandbox::with(&[]);
    std::fs::copy(folder.join("audio/conversations/two_speakers.flac"), sandbox.path("talk.flac")).unwrap();
    let model = |name: &str| folder.join(format!("reference/speakers/{name}/model")).display().to_string();
    for speakers in ["built-in".to_owned(), model("community"), model("nemotron")] {
        let arguments = |folder: &str| {
            let base = [
                "transcribe",
                "talk.flac",
                "--limit",
                "30",
                "--speakers",
                "-f",
                "json",
                "--reproducible",
                "--force",
            ];
            let rest = ["--speaker-model", &speakers, "-o", folder, "--json-events"];
            [&base[..], &KEPT, &rest].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        let start = |folder: &str| {
            let arguments = arguments(folder);
            Running::start(&sandbox, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let is_listening = |event: &Value| event["progress"]["stage"] == "diarize";
        let mut calm = start("calm");
        let mut guesses = 0;
        while let Some(event) = calm.next() {
            // Meanwhile who speaks is told as far as is known.
            guesses += usize::from(event["event"] == "turns");
        }
        assert!(guesses > 0, "{speakers}");
        assert!(calm.child.wait().unwrap().success());

        // The engine may have done its work before the kill reaches it: then it is once more.
        let restarts = (0..10).find_map(|_| {
            let mut wild = start("engine");
            let (mut killed, mut restarts) = (false, 0);
            while let Some(event) = wild.next() {
                assert_ne!(event["event"], "failed", "{event}");
                restarts += usize::from(event["notice"]["code"] == "engine.restarted");
                if is_listening(&event) && !killed {
                    killed = wild.kill_engine();
                }
            }
            assert!(wild.child.wait().unwrap().success());
            (killed && restarts > 0).then_some(restarts)
        });
        assert_eq!(restarts, Some(1), "{speakers}");

        let Running { mut child, events } = start("host");
        while !is_listening(&events.recv_timeout(PATIENCE).unwrap()) {}
        let engine = engine_of(child.id());
        child.kill().unwrap();
        if let Some(engine) = engine {
            kill(engine);
        }
        child.wait().unwrap();
        run(&sandbox, &["resume"]).ends(0);

        for folder in ["engine", "host"] {
            let recordings = ["talk.flac".to_owned()];
            assert_same_texts(&sandbox, &recordings, folder);
            let turns = |folder| json(&sandbox, folder, "talk.flac")["turns"].clone();
            assert_eq!(turns(folder), turns("calm"), "{speakers}: {folder}");
            assert!(turns(folder).as_array().is_some_and(|turns| !turns.is_empty()), "{speakers}");
        }
    }
}

/// A model of the other family goes on from its points as well.
#[test]
fn a_transducer_that_is_killed_goes_on_with_the_same_text() {
    const MODEL: &str = "parakeet-tiny";
    let sandbox = Sandbox::with(&[]);
    crate::transducer::write(&sandbox.path(MODEL), MODEL);
    let recordings: Vec<String> = recordings(&sandbox, 3).split_off(2);
    let talk = recordings[0].as_str();
    let arguments = |folder: &'static str| {
        let base = ["transcribe", talk, "--model", MODEL, "-f", "json", "--reproducible", "--threads", "1"];
        [&base[..], &KEPT, &["-o", folder, "--json-events"]].concat()
    };
    let begun = |event: &Value| event["event"] == "segment";
    run(&sandbox, &arguments("calm")).ends(0);

    let mut wild = Running::start(&sandbox, &arguments("engine"));
    let (mut killed, mut restarts) = (false, 0);
    while let Some(event) = wild.next() {
        assert_ne!(event["event"], "failed", "{event}");
        restarts += usize::from(event["notice"]["code"] == "engine.restarted");
        if begun(&event) && !killed {
            killed = wild.kill_engine();
        }
    }
    assert!(wild.child.wait().unwrap().success());
    assert!(killed && restarts <= 1, "{killed}, {restarts} restarts");

    let Running { mut child, events } = Running::start(&sandbox, &arguments("host"));
    while !begun(&events.recv_timeout(PATIENCE).unwrap()) {}
    let engine = engine_of(child.id());
    child.kill().unwrap();
    if let Some(engine) = engine {
        kill(engine);
    }
    child.wait().unwrap();
    run(&sandbox, &["resume"]).ends(0);
    for folder in ["engine", "host"] {
        assert_same_texts(&sandbox, &recordings, folder);
    }
}

fn events(ran: &Ran) -> Vec<Value> {
    ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
