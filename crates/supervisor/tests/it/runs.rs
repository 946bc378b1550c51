//! Engines that are written down, engines that are left over, and turns at a
//! device: with processes that are really killed.

use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, double, is_running, options, wait_for_end};
use supervisor::runs::{ProcessId, Runs};
use supervisor::{SupervisedJob, Supervisor, SupervisorOptions};
use wire::{Event, Job};

/// A process that is ended with the test.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(name: &str, folder: &Path) -> Self {
        let mut child = Command::new(double(name))
            .arg(folder)
            .arg("cpu")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { input: child.stdin.take(), child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("it ended").unwrap()
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Something that runs and does nothing, at the head of a group as engines are.
fn idle() -> Program {
    let mut program = Command::new("sleep");
    std::os::unix::process::CommandExt::process_group(&mut program, 0);
    let mut child = program.arg("3600").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    Program { input: child.stdin.take(), child, lines }
}

#[test]
fn an_engine_is_written_down_for_as_long_as_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path().join("not there yet"));
    assert!(runs.list().is_empty());
    let mut engine = idle();
    let entry = runs.register(engine.child.id(), "cpu").unwrap();
    let listed = |runs: &Runs| {
        let runs = runs.list();
        runs.first().map(|run| (run.engine.pid, run.model.clone(), run.busy))
    };
    let pid = engine.child.id();
    assert_eq!(listed(&runs), Some((pid, None, false)));
    assert_eq!(runs.list()[0].host, ProcessId::this());
    // Busy until the last of its jobs ends.
    let first = entry.begin("cuda:0", "small");
    let second = entry.begin("cuda:1", "large");
    drop(first);
    assert_eq!(listed(&runs), Some((pid, Some("large".into()), true)));
    assert_eq!(runs.list()[0].device, "cuda:1");
    drop(second);
    assert_eq!(listed(&runs), Some((pid, Some("large".into()), false)));
    // One that died is no longer listed, though its host has not noticed.
    engine.kill();
    assert_eq!(listed(&runs), None);
    drop(entry);
    assert_eq!(std::fs::read_dir(runs.folder()).unwrap().count(), 0);
}

#[test]
fn the_engine_of_a_host_that_was_killed_is_named_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path());
    let mut living = Program::start("run", folder.path());
    let mut killed = Program::start("run", folder.path());
    let [kept, orphan] = [&mut living, &mut killed].map(|host| host.line().parse::<u32>().unwrap());
    assert_eq!(runs.list().len(), 2);
    assert!(runs.sweep().is_empty());
    let host = killed.child.id();
    killed.kill();
    let swept = runs.sweep();
    assert_eq!(swept.len(), 1);
    let text = swept[0].to_string();
    let expected = format!(
        "the program with the process id {host} is gone and left its engine (process id {orphan}, cpu) behind; the engine was ended"
    );
    assert_eq!(text, expected);
    wait_for_end(orphan, Instant::now() + PATIENCE);
    // The other host's engine is none of our business.
    assert!(is_running(kept));
    assert_eq!(runs.list().iter().map(|run| run.engine.pid).collect::<Vec<_>>(), [kept]);
    assert!(runs.sweep().is_empty());
    for run in runs.list() {
        assert!(run.end(Duration::from_secs(10), false).unwrap());
    }
}

#[test]
fn a_process_that_got_the_number_of_an_engine_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path());
    let mut host = Program::start("run", folder.path());
    let engine: u32 = host.line().parse().unwrap();
    host.kill();
    // As if the engine had ended and its number been given to another program.
    let file = folder.path().join(format!("engine-{engine}.json"));
    let mut run: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let started = run["engine"]["started"].as_str().unwrap().to_owned();
    run["engine"]["started"] = format!("{started}0").into();
    std::fs::write(&file, run.to_string()).unwrap();
    assert!(runs.list().is_empty() && runs.sweep().is_empty());
    assert!(!file.exists() && is_running(engine));
    run["engine"]["started"] = started.into();
    std::fs::write(&file, run.to_string()).unwrap();
    assert_eq!(runs.sweep().len(), 1);
    wait_for_end(engine, Instant::now() + PATIENCE);
}

#[test]
fn what_is_damaged_in_the_folder_disturbs_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path());
    for (name, text) in [("engine-1.json", "{"), ("engine-2.json", ""), ("engine-3.json", "{\"engine\": 7}")]
    {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let engine = idle();
    let _entry = runs.register(engine.child.id(), "cpu").unwrap();
    assert_eq!(runs.list().len(), 1);
    assert!(runs.sweep().is_empty());
}

#[test]
fn an_engine_that_does_not_answer_is_ended_by_force_only() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path());
    let engine = idle();
    let _entry = runs.register(engine.child.id(), "cpu").unwrap();
    let run = runs.list().remove(0);
    // SAFETY: the call takes numbers only; the process is this test's own.
    assert_eq!(unsafe { libc::kill(engine.child.id() as libc::pid_t, libc::SIGSTOP) }, 0);
    // A signal that came before it stands still would end it.
    let stat = format!("/proc/{}/stat", engine.child.id());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!run.end(Duration::from_millis(50), false).unwrap());
    assert!(is_running(engine.child.id()));
    assert!(run.end(Duration::from_millis(50), true).unwrap());
    // Gone is gone.
    assert!(run.end(Duration::from_millis(50), true).unwrap());
}

#[test]
fn hosts_take_turns_at_a_device_and_a_killed_one_frees_it() {
    let folder = tempfile::tempdir().unwrap();
    let turn = || Program::start("turn", folder.path());
    let mut first = turn();
    assert_eq!(first.line(), "taken");
    let mut second = turn();
    assert_eq!(second.line(), format!("waiting {}", first.child.id()));
    let mut third = turn();
    assert_eq!(third.line(), format!("waiting {}", first.child.id()));
    // The first is killed: the system frees the device.
    first.kill();
    assert_eq!(second.line(), "taken");
    // The second gives it up: the third has waited long enough.
    drop(second.input.take());
    assert_eq!(second.line(), "left");
    assert_eq!(third.line(), "taken");
}

#[tokio::test]
async fn whoever_wants_another_turn_lets_others_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let runs = Runs::at(folder.path());
    let turn = runs.lease("cpu", |_| panic!("it is free")).await.unwrap();
    // Another device is another matter.
    let _other = runs.lease("cuda:0", |_| panic!("it is free")).await.unwrap();
    let mut other = Program::start("turn", folder.path());
    assert_eq!(other.line(), format!("waiting {}", std::process::id()));
    drop(turn);
    let mut waited = false;
    let again = tokio::time::timeout(Duration::from_millis(300), runs.lease("cpu", |_| waited = true)).await;
    assert!(again.is_err() && waited, "it was taken again at once");
    assert_eq!(other.line(), "taken");
    // The wait that was given up left nothing behind.
    drop(other.input.take());
    assert_eq!(other.line(), "left");
    tokio::time::timeout(PATIENCE, runs.lease("cpu", |_| {})).await.expect("a turn").unwrap();
}

#[tokio::test]
async fn a_job_waits_for_its_turn_and_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("2 windows.wav");
    std::fs::write(&recording, "sound").unwrap();
    let mut other = Program::start("turn", folder.path());
    assert_eq!(other.line(), "taken");
    let supervisor = Supervisor::start(SupervisorOptions {
        engine: options(double("windows")),
        runs: Some(Runs::at(folder.path())),
        ..SupervisorOptions::default()
    });
    let mut waiting = supervisor.submit(Job::new(0, recording.as_path(), "model"));
    let Some(Event::Notice { notice, .. }) = next(&mut waiting).await else { panic!() };
    let text = format!("Waiting for the CPU: another Steno (process id {}) is using it.", other.child.id());
    assert!(notice.code == "device.waiting" && notice.text.starts_with(&text), "{notice:?}");

    // Whoever waits can be stopped.
    let mut stopped = supervisor.submit(Job::new(0, recording.as_path(), "model"));
    stopped.cancel();
    assert!(matches!(next(&mut stopped).await, Some(Event::Cancelled { .. })));

    drop(other.input.take());
    let mut told = Vec::new();
    while let Some(event) = next(&mut waiting).await {
        told.push(event);
    }
    assert!(matches!(told.last(), Some(Event::Finished { .. })), "{told:?}");
    assert!(
        !told
            .iter()
            .any(|event| matches!(event, Event::Notice { notice, .. } if notice.code == "device.waiting"))
    );
    supervisor.shutdown().await;
}

async fn next(job: &mut SupervisedJob) -> Option<Event> {
    tokio::time::timeout(PATIENCE, job.next()).await.expect("no event")
}
