//! Whatever a command waits for, one polite kill or Ctrl-C ends it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::http::Serving;
use crate::support::{Ran, Sandbox, wav};

/// Longer than a command needs to start on a starved machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a user takes for at once; an engine may need a second to end.
const SOON: Duration = Duration::from_secs(5);

/// The fake engine of the crate `supervisor`, as one that never says anything.
fn silent_engine(sandbox: &Sandbox) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("steno-supervisor-double");
    assert!(program.is_file(), "build it first: cargo build --workspace --bin steno-supervisor-double");
    let link = sandbox.home.path().join("silent");
    symlink(program, &link).unwrap();
    link
}

/// The process id of a child with this name.
fn child(of: &Child, name: &str) -> Option<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", of.id())).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let ids: Vec<String> =
        children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    ids.into_iter().find(|id| {
        let command = std::fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
        command.trim() == name
    })
}

#[test]
fn a_command_that_waits_for_an_engine_is_ended_by_one_signal() {
    let commands: [&[&str]; 7] = [
        &["transcribe", "talk.wav"],
        &["detect-language", "talk.wav"],
        &["doctor"],
        &["doctor", "--fit", "starter-whisper"],
        &["models", "probe"],
        &["voices", "add", "Anna", "talk.wav"],
        &["models", "quantize", "starter-whisper", "--output", "small"],
    ];
    for arguments in commands {
        for signal in [libc::SIGTERM, libc::SIGINT] {
            let sandbox = Sandbox::with(&[]);
            std::fs::write(sandbox.path("talk.wav"), wav(&[0; 64_000])).unwrap();
            let engine = silent_engine(&sandbox);
            let mut command = sandbox.command_with(&engine, arguments);
            let mut steno = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let since = Instant::now();
            let waited_for = loop {
                if let Some(id) = child(&steno, "silent") {
                    break id;
                }
                if steno.try_wait().unwrap().is_some() {
                    panic!("{arguments:?}: {:?}", Ran::from(steno.wait_with_output().unwrap()));
                }
                assert!(since.elapsed() < PATIENCE, "{arguments:?} starts no engine");
                std::thread::sleep(Duration::from_millis(5));
            };
            // SAFETY: the child has not been waited for, so the number is still its own.
            assert_eq!(unsafe { libc::kill(steno.id() as i32, signal) }, 0);
            let asked = Instant::now();
            while steno.try_wait().unwrap().is_none() {
                assert!(asked.elapsed() < SOON, "{arguments:?} goes on");
                std::thread::sleep(Duration::from_millis(5));
            }
            Ran::from(steno.wait_with_output().unwrap()).ends(130);
            let left = std::fs::read_to_string(format!("/proc/{waited_for}/comm")).unwrap_or_default();
            assert_ne!(left.trim(), "silent", "{arguments:?} leaves an engine behind");
        }
    }
}

#[test]
fn a_server_whose_engine_never_answers_is_ended_by_one_signal() {
    let sandbox = Sandbox::with(&[]);
    let engine = silent_engine(&sandbox);
    let server = Serving::with_engine(&sandbox, &engine, &[]);
    let id = server.accepted("alpha");
    let since = Instant::now();
    let waited_for = loop {
        if let Some(id) = child(&server.child, "silent") {
            break id;
        }
        assert!(since.elapsed() < PATIENCE, "the server starts no engine");
        std::thread::sleep(Duration::from_millis(5));
    };
    let asked = Instant::now();
    server.end();
    assert!(asked.elapsed() < SOON, "the server goes on");
    let left = std::fs::read_to_string(format!("/proc/{waited_for}/comm")).unwrap_or_default();
    assert_ne!(left.trim(), "silent", "the server leaves an engine behind");
    // With an engine that answers, the job is done.
    assert_eq!(Serving::start(&sandbox, &[]).over(&id)["state"], "finished");
}
