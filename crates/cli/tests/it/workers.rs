//! `steno worker`, `submit`, `collect` and `cluster` with a real `nats-server`, and with the real engine where texts are
//! compared: workers and servers that are killed at any moment lose nothing. The large run is a part of `make soak`.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::nats::{Nats, PATIENCE};
use crate::support::{Ran, Sandbox, project, real_engine, wav};

/// What is killed counts as out of memory: the text stays the same only where neither may change.
pub const KEPT: [&str; 2] = ["--keep", "model,precision"];

/// A worker on a machine of its own: nothing but NATS is shared with others.
pub struct Working {
    pub sandbox: Sandbox,
    child: Child,
    said: Receiver<String>,
}

impl Working {
    /// With the real engine.
    pub fn real(nats: &Nats, options: &[&str]) -> Self {
        Self::of(Sandbox::with(&[]), &real_engine(), nats, &[&KEPT[..], options].concat())
    }

    /// With the scripted one.
    pub fn scripted(nats: &Nats, options: &[&str]) -> Self {
        let sandbox = Sandbox::with(&[]);
        let command = sandbox.command(&["worker", "--nats", &nats.url(), "--model", "starter-whisper"]);
        Self::started(sandbox, command, options)
    }

    pub fn of(sandbox: Sandbox, engine: &Path, nats: &Nats, options: &[&str]) -> Self {
        let arguments = ["worker", "--nats", &nats.url(), "--model", "starter-whisper"];
        let command = sandbox.command_with(engine, &arguments);
        Self::started(sandbox, command, options)
    }

    fn started(sandbox: Sandbox, mut command: Command, options: &[&str]) -> Self {
        command.args(options).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut child = command.spawn().unwrap();
        let errors = BufReader::new(child.stderr.take().unwrap());
        let (sender, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in errors.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { sandbox, child, said }
    }

    /// Waits until it takes jobs.
    pub fn ready(self) -> Self {
        self.says("takes jobs for");
        self
    }

    /// Waits for a line with this part, and returns it.
    #[track_caller]
    pub fn says(&self, part: &str) -> String {
        let mut all = Vec::new();
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(part) => return line,
                Ok(line) => all.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no {part:?} in {all:?}"),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended without {part:?}: {all:?}"),
            }
        }
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A polite kill; returns its exit code.
    pub fn end(&mut self) -> Option<i32> {
        // SAFETY: the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait().unwrap().code()
    }

    /// Recordings that it fetched and has not deleted.
    pub fn fetched(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.sandbox.home.path().join("steno/worker")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.path().is_dir() {
                    folders.push(entry.path());
                } else if !name.ends_with("lock") {
                    found.push(name);
                }
            }
        }
        found
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sample, several times over.
pub fn repeated(times: usize) -> Vec<u8> {
    let mut reader =
        audio::Reader::open(&project().join("tests/data/sample.flac"), &Default::default()).unwrap();
    let mut data = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        data.extend(block.iter().flat_map(|sample| ((sample * 32_767.0) as i16).to_le_bytes()));
    }
    wav(&data.repeat(times))
}

/// So many recordings in the folder `in`, every fourth of them a long one, no two alike.
pub fn recordings(sandbox: &Sandbox, count: usize) -> Vec<String> {
    std::fs::create_dir_all(sandbox.path("in")).unwrap();
    (0..count)
        .map(|number| {
            let mut recording = repeated(if number % 4 == 2 { 5 } else { 1 });
            // The last sample makes it another recording with the same text.
            let end = recording.len();
            recording[end - 2..].copy_from_slice(&(number as i16).to_le_bytes());
            let name = format!("{number:03}.wav");
            std::fs::write(sandbox.path(format!("in/{name}")), recording).unwrap();
            name
        })
        .collect()
}

pub fn nats_command(sandbox: &Sandbox, nats: &Nats, arguments: &[&str]) -> Command {
    sandbox.command(&[arguments, &["--nats", &nats.url()]].concat())
}

pub fn run(sandbox: &Sandbox, nats: &Nats, arguments: &[&str]) -> Ran {
    nats_command(sandbox, nats, arguments).output().unwrap().into()
}

pub fn overview(sandbox: &Sandbox, nats: &Nats) -> Value {
    serde_json::from_str(&run(sandbox, nats, &["cluster", "--json"]).ends(0).out).unwrap()
}

/// What the command line makes of the recordings in `in`, in the folder `calm`.
pub fn locally(sandbox: &Sandbox) {
    let arguments = [&["transcribe", "in", "-f", "json", "-o", "calm", "--quiet"][..], &KEPT].concat();
    let ran: Ran = sandbox.command_with(&real_engine(), &arguments).output().unwrap().into();
    ran.ends(0);
}

#[track_caller]
pub fn assert_as_local(sandbox: &Sandbox, recordings: &[String], folder: &str) {
    let written: BTreeSet<String> = std::fs::read_dir(sandbox.path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let expected: BTreeSet<String> = recordings.iter().map(|name| name.replace(".wav", ".json")).collect();
    assert_eq!(written, expected);
    for name in expected {
        let read = |folder: &str| -> Value {
            serde_json::from_str(&sandbox.read(&format!("{folder}/{name}"))).unwrap()
        };
        let (calm, wild) = (read("calm"), read(folder));
        assert!(!calm["segments"].as_array().unwrap().is_empty());
        for field in ["segments", "discarded", "completeness", "language", "complete", "model", "source"] {
            assert_eq!(wild[field], calm[field], "{name}: {field}");
        }
    }
}

#[test]
fn killed_workers_and_a_killed_server_lose_nothing_and_double_nothing() {
    let Some(mut nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    let names = recordings(&sandbox, 10);
    locally(&sandbox);
    let options = ["--redeliver-after", "3"];
    let mut workers: Vec<Working> = (0..3).map(|_| Working::real(&nats, &options).ready()).collect();
    run(&sandbox, &nats, &["submit", "in"]).ends(0).says("10 jobs were submitted.");
    // Whoever has begun is killed, and a worker takes its place.
    workers[0].says("begins");
    workers[0].kill();
    workers[0] = Working::real(&nats, &options).ready();
    nats.kill();
    std::thread::sleep(Duration::from_millis(500));
    nats.start_again();
    let collect = ["collect", "--wait", "-f", "json", "-o", "out", "--quiet"];
    run(&sandbox, &nats, &collect).ends(0);
    assert_as_local(&sandbox, &names, "out");
    // What is collected is left alone, what is done is not done again.
    run(&sandbox, &nats, &["collect", "-f", "json", "-o", "out"])
        .ends(0)
        .says("Results: 0 written, 10 there already.");
    run(&sandbox, &nats, &["submit", "in"]).ends(0).says("0 jobs were submitted, 10 are finished already.");
    let now = overview(&sandbox, &nats);
    assert_eq!((&now["finished"], &now["failed"]), (&json!(10), &json!(0)), "{now}");
    assert!(now["models"].as_array().unwrap().iter().all(|model| model["waiting"] == 0), "{now}");
    // One that was taken for dead may still be at a job that another one did.
    let since = Instant::now();
    while !workers.iter().all(|worker| worker.fetched().is_empty()) {
        assert!(since.elapsed() < PATIENCE, "fetched recordings stay");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The whole: as in docs/scale.md.
#[test]
#[ignore = "full corpus: make soak"]
fn two_hundred_recordings_by_three_workers_one_killed_every_ten_seconds() {
    let mut nats = Nats::start().unwrap();
    let sandbox = Sandbox::with(&[]);
    let names = recordings(&sandbox, 200);
    locally(&sandbox);
    let options = ["--redeliver-after", "5", "--max-deliveries", "20"];
    let mut workers: Vec<Working> = (0..3).map(|_| Working::real(&nats, &options).ready()).collect();
    run(&sandbox, &nats, &["submit", "in"]).ends(0);
    let collect = ["collect", "--wait", "-f", "json", "-o", "out", "--quiet"];
    let mut collecting = nats_command(&sandbox, &nats, &collect).spawn().unwrap();
    let (mut next, mut round) = (Instant::now() + Duration::from_secs(10), 0);
    let code = loop {
        if let Some(ended) = collecting.try_wait().unwrap() {
            break ended.code();
        }
        if Instant::now() >= next {
            next += Duration::from_secs(10);
            workers[round % 3].kill();
            workers[round % 3] = Working::real(&nats, &options);
            round += 1;
            if round % 4 == 0 {
                nats.kill();
                std::thread::sleep(Duration::from_secs(2));
                nats.start_again();
            }
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(code, Some(0));
    assert_as_local(&sandbox, &names, "out");
    println!("200 recordings, {round} workers killed, {} servers", round / 4);
}

/// A long recording in `in`, and what it is locally.
fn a_long_recording() -> Sandbox {
    let sandbox = Sandbox::with(&[]);
    std::fs::create_dir_all(sandbox.path("in")).unwrap();
    std::fs::write(sandbox.path("in/long.wav"), repeated(30)).unwrap();
    locally(&sandbox);
    sandbox
}

#[test]
fn a_job_goes_on_from_the_last_step_of_a_killed_worker() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = a_long_recording();
    let mut first = Working::real(&nats, &["--redeliver-after", "3"]).ready();
    let mut steps = nats.listen("steno.steps.*");
    run(&sandbox, &nats, &["submit", "in"]).ends(0);
    for _ in 0..2 {
        let step: Value = serde_json::from_slice(&steps.next().1).unwrap();
        assert!(!step["segments"].as_array().unwrap().is_empty());
    }
    first.kill();
    assert_eq!(first.fetched(), ["long.wav"]);
    // The next worker of that machine sweeps up.
    let machine = std::mem::replace(&mut first.sandbox, Sandbox::with(&[]));
    let second =
        Working::of(machine, &real_engine(), &nats, &[&KEPT[..], &["--redeliver-after", "3"]].concat());
    let second = second.ready();
    assert!(second.fetched().is_empty());
    second.says("goes on at ");
    run(&sandbox, &nats, &["collect", "--wait", "-f", "json", "-o", "out"]).ends(0);
    assert_as_local(&sandbox, &["long.wav".into()], "out");
    assert!(second.fetched().is_empty());
}

#[test]
fn a_worker_that_is_asked_to_end_hands_its_job_back_at_once() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = a_long_recording();
    // Without being handed back, the job would come to another worker after an hour.
    let options = ["--redeliver-after", "3600", "--max-deliveries", "1"];
    let mut first = Working::real(&nats, &options).ready();
    let mut steps = nats.listen("steno.steps.*");
    run(&sandbox, &nats, &["submit", "in"]).ends(0);
    steps.next();
    assert_eq!(first.end(), Some(0));
    first.says("long.wav: handed back");
    assert!(first.fetched().is_empty());
    let now = overview(&sandbox, &nats);
    assert_eq!(now["workers"], json!([]), "{now}");
    let second = Working::real(&nats, &options).ready();
    second.says("goes on at ");
    run(&sandbox, &nats, &["collect", "--wait", "-f", "json", "-o", "out"]).ends(0);
    assert_as_local(&sandbox, &["long.wav".into()], "out");
}

#[test]
fn jobs_that_fail_are_given_up_with_the_reason() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    for name in ["in/broken.mp3", "in/dies.mp3", "in/alpha.mp3"] {
        sandbox.write(name, name);
    }
    let mut letters = nats.listen("steno.dead.*");
    let worker = Working::scripted(&nats, &["--redeliver-after", "3", "--max-deliveries", "2"]).ready();
    let submit = ["submit", "in", "--wait", "-f", "txt,srt", "-o", "out"];
    let ran = run(&sandbox, &nats, &submit).ends(1);
    let ran = ran.says("broken.mp3: The sound is damaged from the start. Copy it again.").says("dies.mp3: ");
    ran.says("1 written, 2 failed.");
    assert_eq!(sandbox.read("out/alpha.txt"), "Good morning.\nThis is alpha.\n");
    assert!(sandbox.path("out/alpha.srt").is_file() && !sandbox.path("out/dies.txt").exists());
    worker.says("dies.mp3: begins");
    // One that no machine could do is tried once, another as often as asked.
    let mut deliveries: Vec<(String, u64)> = (0..2)
        .map(|_| {
            let letter: Value = serde_json::from_slice(&letters.next().1).unwrap();
            (letter["name"].as_str().unwrap().to_owned(), letter["deliveries"].as_u64().unwrap())
        })
        .collect();
    deliveries.sort();
    assert_eq!(deliveries, [("broken.mp3".to_owned(), 1), ("dies.mp3".to_owned(), 2)]);
    assert_eq!(overview(&sandbox, &nats)["failed"], 2);
    // Submitted again, they are tried again; removed, they are gone.
    run(&sandbox, &nats, &["submit", "in"]).ends(0).says("1 are finished already, 2 are tried again.");
    // A format that would be empty is refused by name, and the text stays where it is.
    run(&sandbox, &nats, &["collect", "--wait", "--remove", "-f", "rttm", "-o", "turns"])
        .ends(1)
        .says("alpha.mp3: Not written as rttm. The transcript has no speakers.");
    assert!(!sandbox.path("turns/alpha.rttm").exists());
    run(&sandbox, &nats, &["collect", "--wait", "--remove", "-o", "out", "--force"]).ends(0);
    let now = overview(&sandbox, &nats);
    assert_eq!((&now["finished"], &now["failed"]), (&json!(0), &json!(0)));
}

#[test]
fn languages_alone_are_a_table() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    for name in ["in/a, b.mp3", "in/dies.mp3", "in/broken.mp3", "in/c.mp3"] {
        sandbox.write(name, name);
    }
    let machine = Sandbox::with(&[]);
    let file = machine.home.path().join("received");
    let mut command = machine.command(&["worker", "--nats", &nats.url(), "--model", "starter-whisper"]);
    command.env("STENO_SCRIPT_JOBS", &file);
    let submit = ["submit", "in", "--only", "language", "--wait", "-o", "out"];
    // They wait together before the worker comes.
    run(&sandbox, &nats, &submit[..4]).ends(0).says("4 jobs were submitted.");
    let _worker =
        Working::started(machine, command, &["--redeliver-after", "3", "--max-deliveries", "3"]).ready();
    // Some of them may be over before they are submitted again.
    let ran = run(&sandbox, &nats, &submit).ends(1).says("0 jobs were submitted");
    let ran = ran.says("broken.mp3: The sound is damaged").says("dies.mp3: ");
    ran.says("Results: 2 written, 2 failed.");
    let table = "recording,language,probability\n\"a, b.mp3\",en,0.970\nc.mp3,en,0.970\n";
    assert_eq!(sandbox.read("out/languages.csv"), table);
    // An eighth of the memory, as long as the user says nothing else.
    let first = std::fs::read_to_string(&file).unwrap();
    let first: Value = serde_json::from_str(first.lines().next().unwrap()).unwrap();
    assert_eq!(first["job"]["memory"]["memory_fraction"], json!(0.125));
    // Known ones are written again, into the same table; another file of that name stays.
    run(&sandbox, &nats, &["collect", "-o", "out"]).ends(1);
    assert_eq!(sandbox.read("out/languages.csv"), table);
    sandbox.write("other/languages.csv", "mine");
    run(&sandbox, &nats, &["collect", "-o", "other"]).ends(1).says("other/languages.csv");
    assert_eq!(sandbox.read("other/languages.csv"), "mine");
    run(&sandbox, &nats, &["submit", "in", "--only", "language", "--wait", "-f", "srt"])
        .ends(2)
        .says("leave out --format");
}

#[test]
fn a_job_whose_workers_die_is_given_up() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    sandbox.write("slow.mp3", "slow");
    let options = ["--redeliver-after", "1", "--max-deliveries", "1"];
    let mut first = Working::scripted(&nats, &options).ready();
    run(&sandbox, &nats, &["submit", "slow.mp3"]).ends(0);
    first.says("slow.mp3: begins");
    first.kill();
    let _second = Working::scripted(&nats, &options).ready();
    let ran = run(&sandbox, &nats, &["collect", "--wait"]).ends(1);
    ran.says("slow.mp3: Every worker that had this job ended without a word.");
}

#[test]
fn what_no_worker_can_run_is_told_with_what_it_needs() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&["a"]);
    sandbox.write("a.mp3", "a");
    let worker = Sandbox::with(&[]);
    let models = worker.home.path().join("steno/models");
    random_models::describe(&models, "large-v3", "F16", None).unwrap();
    let mut command = worker.command(&["worker", "--nats", &nats.url(), "--ram-limit", "600MiB"]);
    command.env("HOME", worker.home.path()).env_remove("HF_HOME");
    let _worker = Working::started(worker, command, &["--name", "small one"]).ready();
    // A worker has the one, and the catalogue knows the other; this computer has neither.
    run(&sandbox, &nats, &["submit", "a.mp3", "--model", "large-v3"]).ends(0).says("1 job was submitted.");
    run(&sandbox, &nats, &["submit", "a.mp3", "--model", "whisper-large-v2"]).ends(0);
    let now = overview(&sandbox, &nats);
    let unplaced = now["unplaced"].as_array().unwrap();
    let of = |model: &str| unplaced.iter().find(|it| it["model"] == model).unwrap();
    assert_eq!(of("large-v3")["too_small"], json!([["small one", 600u64 << 20]]), "{now}");
    assert!(of("large-v3")["needs"].as_u64().unwrap() > 2 << 30, "{now}");
    assert!(of("whisper-large-v2")["needs"].as_u64().unwrap() > 2 << 30, "{now}");
    let said = run(&sandbox, &nats, &["cluster"]).ends(0).out;
    assert!(
        said.contains("1 job waits for the model large-v3, which no worker can run. It needs "),
        "{said}"
    );
    assert!(said.contains("small one has the most memory: 600 MB."), "{said}");
    assert!(
        said.contains("for the model whisper-large-v2") && said.contains("No worker has it installed."),
        "{said}"
    );
    run(&sandbox, &nats, &["submit", "a.mp3", "--model", "unheard-of"]).ends(1).says("\"unheard-of\"");
    // Nothing at all fits: the worker does not wait for what will never come.
    let ran =
        run(&Sandbox::with(&[]), &nats, &["worker", "--model", "starter-whisper", "--ram-limit", "2MiB"]);
    ran.ends(1).says("No model fits: starter-whisper needs ");
}

/// The parts of a job that its options set.
#[test]
fn options_of_submit_reach_the_engines_of_workers() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    sandbox.write("a.mp3", "a");
    sandbox.write("words.txt", "Ada\nGrace Hopper\n");
    let worker = Sandbox::with(&[]);
    let file = worker.home.path().join("received");
    let mut command = worker.command(&["worker", "--nats", &nats.url(), "--model", "starter-whisper"]);
    command.env("STENO_SCRIPT_JOBS", &file);
    let _worker = Working::started(worker, command, &["--quiet"]);
    let job = |options: &[&str]| -> Value {
        let _ = std::fs::remove_file(&file);
        run(&sandbox, &nats, &[&["submit", "a.mp3", "--wait", "--force", "--quiet"], options].concat())
            .ends(0);
        let lines = std::fs::read_to_string(&file).unwrap();
        serde_json::from_str(lines.lines().next().unwrap()).unwrap()
    };
    let plain = job(&[]);
    for (options, pointer, expected) in [
        (&["--language", "de"][..], "/job/language", json!("de")),
        (&["--task", "translate"], "/job/task", json!("translate")),
        (&["--translate", "--seed", "9"], "/job/task", json!("translate")),
        (&["--limit", "1:30"], "/job/limit", json!(90.0)),
        (&["--from", "5"], "/job/span/start", json!(5.0)),
        (&["--to", "7"], "/job/span/end", json!(7.0)),
        (&["--channels", "left"], "/job/channels", json!("left")),
        (&["--track", "2"], "/job/track", json!(1)),
        (&["--vad", "off"], "/job/voice_activity", json!("off")),
        (&["--speakers=2"], "/job/speaker_count/max", json!(2)),
        (&["--min-speakers", "2"], "/job/speaker_count/min", json!(2)),
        (&["--max-speakers", "4"], "/job/speaker_count/max", json!(4)),
        (&["--beam-size", "4"], "/job/decoding/beam_size", json!(4)),
        (&["--best-of", "3"], "/job/decoding/best_of", json!(3)),
        (&["--temperature", "0,0.5"], "/job/decoding/temperatures", json!([0.0, 0.5])),
        (&["--prompt", "Ada"], "/job/decoding/initial_prompt", json!("Ada")),
        (&["--vocabulary", "Ada, Grace"], "/job/decoding/vocabulary", json!(["Ada", "Grace"])),
        (&["--vocabulary-file", "words.txt"], "/job/decoding/vocabulary", json!(["Ada", "Grace Hopper"])),
        (&["--vocabulary-strength", "1.5"], "/job/decoding/vocabulary_strength", json!(1.5)),
        (&["--strategy", "batched"], "/job/strategy", json!("batched")),
        (&["--language-per-region"], "/job/decoding/language_per_region", json!(true)),
        (&["--condition-on-previous-text"], "/job/decoding/condition_on_previous_text", json!(true)),
        (&["--no-word-times"], "/job/decoding/word_times", json!(false)),
        (&["--no-timestamps"], "/job/decoding/timestamps", json!(false)),
        (&["--no-repair"], "/job/decoding/repair", json!(false)),
        (&["--seed", "7"], "/job/decoding/seed", json!(7)),
    ] {
        assert_ne!(plain.pointer(pointer), Some(&expected), "{options:?} would show nothing");
        assert_eq!(job(options).pointer(pointer), Some(&expected), "{options:?}");
    }
    // It is uploaded unless workers see it.
    assert!(
        !plain["job"]["file"].as_str().unwrap().contains(sandbox.folder.path().to_str().unwrap()),
        "{plain}"
    );
    let shared = job(&["--shared", "--seed", "8"]);
    assert_eq!(shared["job"]["file"], sandbox.path("a.mp3").to_str().unwrap());
    sandbox.write("deep/er/b.mp3", "b");
    run(&sandbox, &nats, &["submit", "deep"]).ends(1).says("Add --recursive");
    run(&sandbox, &nats, &["submit", "deep", "-R", "--wait", "-o", "out"]).ends(0);
    assert_eq!(sandbox.read("out/b.txt"), "Good morning.\nThis is b.\n");
    run(&sandbox, &nats, &["submit", "a.mp3", "-o", "out"]).ends(2).says("add --wait");
}

#[test]
fn options_of_a_worker_reach_its_engine() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    sandbox.write("a.mp3", "a");
    let mut seed = 0;
    let mut job = |options: &[&str]| -> Value {
        seed += 1;
        let machine = Sandbox::with(&[]);
        let file = machine.home.path().join("received");
        let mut command = machine.command(&["worker", "--nats", &nats.url(), "--model", "starter-whisper"]);
        command.env("STENO_SCRIPT_JOBS", &file);
        let _worker = Working::started(machine, command, options);
        let seed = seed.to_string();
        run(&sandbox, &nats, &["submit", "a.mp3", "--speakers", "--seed", &seed, "--wait", "--force"])
            .ends(0);
        let lines = std::fs::read_to_string(&file).unwrap();
        serde_json::from_str(lines.lines().next().unwrap()).unwrap()
    };
    let plain = job(&[]);
    for (options, pointer, expected) in [
        (&["--device", "cpu"][..], "/job/device", json!("cpu")),
        (&["--threads", "3"], "/job/threads", json!(3)),
        (&["--memory-limit", "61GiB"], "/job/memory/memory_limit", json!(61u64 << 30)),
        (&["--ram-limit", "62GiB"], "/job/memory/ram_limit", json!(62u64 << 30)),
        (&["--precision", "q8_0"], "/job/precision", json!("q8_0")),
        (&["--memory-profile", "safe"], "/job/memory/memory_fraction", json!(0.125)),
        (&["--batch-size", "2"], "/job/memory/batch_size", json!(2)),
        (&["--memory-fraction", "0.5"], "/job/memory/memory_fraction", json!(0.5)),
        (&["--speaker-batch-size", "4"], "/job/memory/speaker_batch_size", json!(4)),
        (&["--skip-speakers"], "/job/memory/skip_speakers", json!(true)),
        (&["--trim-every", "9"], "/job/memory/trim_every", json!(9)),
        (&["--renew-after", "8"], "/job/memory/renew_after", json!(8)),
        (&["--keep", "model"], "/job/memory/pins/model", json!(true)),
        (&["--priority", "low"], "/nice", json!(10)),
    ] {
        assert_ne!(plain.pointer(pointer), Some(&expected), "{options:?} would show nothing");
        assert_eq!(job(options).pointer(pointer), Some(&expected), "{options:?}");
    }
    let worker = |options: &[&str]| run(&sandbox, &nats, &[&["worker"], options].concat());
    worker(&["--speaker-model", "none"]).ends(1).says("There is no speaker model named \"none\"");
    worker(&["--model", "none"]).ends(1).says("none");
}

#[test]
fn a_queue_that_is_made_by_several_at_once_is_made_once() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    for round in 0..6 {
        let queue = format!("round{round}");
        let all: Vec<Child> = (0..8)
            .map(|_| {
                nats_command(&sandbox, &nats, &["cluster", "--queue", &queue])
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in all {
            let ended = child.wait_with_output().unwrap();
            assert!(ended.status.success(), "{round}: {}", String::from_utf8_lossy(&ended.stderr));
        }
    }
}

#[test]
fn queues_are_apart_and_nats_is_reached_as_asked() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    sandbox.write("a.mp3", "a");
    let worker = Working::scripted(&nats, &["--queue", "mine", "--name", "Ada's"]).ready();
    run(&sandbox, &nats, &["submit", "a.mp3", "--queue", "other"]).ends(0);
    run(&sandbox, &nats, &["submit", "a.mp3", "--queue", "mine", "--wait", "-o", "out"]).ends(0);
    worker.says("a.mp3: begins");
    let of = |queue: &str| -> Value {
        let ran = run(&sandbox, &nats, &["cluster", "--json", "--queue", queue]).ends(0);
        serde_json::from_str(&ran.out).unwrap()
    };
    assert_eq!((&of("other")["workers"], &of("other")["models"][0]["waiting"]), (&json!([]), &json!(1)));
    assert_eq!((&of("mine")["workers"][0]["name"], &of("mine")["finished"]), (&json!("Ada's"), &json!(1)));
    let wrong = |options: &[&str], part: &str| {
        run(&sandbox, &nats, &[&["submit", "a.mp3"], options].concat()).ends(1).says(part);
    };
    wrong(&["--queue", "a.b"], "\"a.b\" can't be the name of a queue");
    wrong(&["--creds", "missing.creds"], "missing.creds: The credentials can't be read");
    // One server has no others to keep copies.
    wrong(&["--queue", "copied", "--replicas", "3"], "replicas");
    let ran = sandbox.run(&["submit", "a.mp3", "--nats", "http://127.0.0.1"]).ends(1);
    ran.says("Write it as nats://HOST:4222");
    let nobody = format!("nats://127.0.0.1:{}", crate::support::nats::free_port());
    sandbox.run(&["cluster", "--nats", &nobody]).ends(1).says("NATS at 127.0.0.1 can't be reached");
    // What is said again and again, one line each.
    let mut watching = nats_command(&sandbox, &nats, &["cluster", "--watch", "1", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    for _ in 0..2 {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["queue"], "steno");
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn every_connection_is_logged_and_none_is_made_offline() {
    let Some(nats) = Nats::start() else { return };
    let sandbox = Sandbox::with(&[]);
    sandbox.write("a.mp3", "a");
    let mut offline = nats_command(&sandbox, &nats, &["submit", "a.mp3"]);
    Ran::from(offline.env("STENO_OFFLINE", "true").output().unwrap())
        .ends(1)
        .says("The network is switched off");
    let connections = || -> Value {
        serde_json::from_str(&sandbox.run(&["models", "connections", "--json"]).ends(0).out).unwrap()
    };
    assert_eq!(connections(), json!([]));
    run(&sandbox, &nats, &["submit", "a.mp3"]).ends(0);
    let logged = connections();
    assert_eq!(logged.as_array().unwrap().len(), 1, "{logged}");
    assert_eq!((&logged[0]["host"], &logged[0]["why"]), (&json!("127.0.0.1"), &json!({ "of": "jobs" })));
    assert!(logged[0]["bytes"].as_u64().unwrap() > 0, "{logged}");
    // A log that can't be written: there is no connection.
    let log = sandbox.home.path().join("steno/connections.jsonl");
    std::fs::remove_file(&log).unwrap();
    std::fs::create_dir(&log).unwrap();
    let submit = nats_command(&sandbox, &nats, &["submit", "a.mp3", "--seed", "5"]).output().unwrap();
    Ran::from(submit).ends(1).says("connections.jsonl");
}

/// A server that asks for credentials is given those of the file.
#[test]
fn credentials_are_those_of_the_file() {
    const SEED: &str = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let sandbox = Sandbox::with(&[]);
    let block =
        |name: &str, text: &str| format!("-----BEGIN {name}-----\n{text}\n------END {name}------\n\n");
    let credentials = block("NATS USER JWT", "e30.e30.e30") + &block("USER NKEY SEED", SEED);
    sandbox.write("me.creds", &credentials);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("nats://{}", listener.local_addr().unwrap());
    let mut asked = sandbox
        .command(&["cluster", "--nats", &address, "--creds", "me.creds"])
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let info = json!({ "server_id": "a", "version": "2.9.10", "proto": 1, "max_payload": 1_048_576,
        "headers": true, "jetstream": true, "auth_required": true, "nonce": "abc", "port": 4222, "host": "a",
        "client_id": 1, "go": "", "server_name": "a" });
    stream.write_all(format!("INFO {info}\r\n").as_bytes()).unwrap();
    let mut line = String::new();
    BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
    let connect: Value = serde_json::from_str(line.trim_start_matches("CONNECT ")).unwrap();
    assert_eq!(connect["jwt"], "e30.e30.e30");
    assert!(connect["sig"].as_str().is_some_and(|signature| signature.len() > 80), "{connect}");
    drop(stream);
    asked.kill().unwrap();
    asked.wait().unwrap();
}

/// Of one worker against the command line on the same files, as docs/measurements.md has it.
#[test]
#[ignore = "full corpus: make soak"]
fn a_worker_takes_hardly_longer_than_the_command_line() {
    let nats = Nats::start().unwrap();
    let sandbox = Sandbox::with(&[]);
    std::fs::create_dir_all(sandbox.path("in")).unwrap();
    for number in 0..12i16 {
        let mut recording = repeated(5);
        let end = recording.len();
        recording[end - 2..].copy_from_slice(&number.to_le_bytes());
        std::fs::write(sandbox.path(format!("in/{number:03}.wav")), recording).unwrap();
    }
    let mut times = Vec::new();
    for round in 0..3 {
        let started = Instant::now();
        let arguments =
            [&["transcribe", "in", "-f", "json", "-o", "out", "--force", "--quiet"][..], &KEPT].concat();
        let ran: Ran = sandbox.command_with(&real_engine(), &arguments).output().unwrap().into();
        ran.ends(0);
        let alone = started.elapsed().as_secs_f64();
        let started = Instant::now();
        let queue = format!("round-{round}");
        let worker = Working::real(&nats, &["--queue", &queue]);
        run(
            &sandbox,
            &nats,
            &["submit", "in", "--queue", &queue, "--wait", "-f", "json", "-o", "out", "--force", "--quiet"],
        )
        .ends(0);
        times.push((alone, started.elapsed().as_secs_f64()));
        drop(worker);
    }
    let ratio = |(alone, worker): &(f64, f64)| worker / alone;
    let mut ratios: Vec<f64> = times.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    println!("seconds alone and with a worker: {times:.2?}; median {:+.1} %", (ratios[1] - 1.0) * 100.0);
    assert!(ratios[1] < 1.03, "{times:?}");
}
