//! The host's side of listening, with the real player. An executable of its
//! own: it changes the environment and kills every child of its process.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test, helpers included")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use supervisor::player::Player;
use wire::ErrorCode;

/// Beside the test's own folder, where `cargo build --workspace` puts it.
fn program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.parent().unwrap().parent().unwrap().join("steno-player");
    assert!(program.is_file(), "build it first: cargo build --workspace --bin steno-player");
    program
}

fn beginning(address: &str) -> Vec<u8> {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nRange: bytes=0-3\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer.split_off(answer.len() - 4)
}

/// One test, since the player is found through the environment.
#[test]
fn a_player_is_started_replaced_and_missed() {
    let program = program();
    let caches = tempfile::tempdir().unwrap();
    // SAFETY: no other thread of this process reads the environment yet.
    unsafe {
        std::env::set_var("STENO_PLAYER", &program);
        std::env::set_var("XDG_CACHE_HOME", caches.path());
    }
    let player = Player::default();
    let talk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/fixtures/left.wav");
    let first = player.open(&talk).unwrap();
    assert_eq!((beginning(&first.audio).as_slice(), first.seconds), (&b"RIFF"[..], 1.0));

    // Another recording takes its place.
    let second = player.open(&talk).unwrap();
    assert_ne!(first.token, second.token);
    assert_eq!(beginning(&second.audio), b"RIFF");

    let failure = player.open(&caches.path().join("gone.wav")).unwrap_err();
    assert_eq!(failure.code, ErrorCode::FileNotFound);

    let children = format!("/proc/self/task/{}/children", std::process::id());
    if cfg!(target_os = "linux") && Path::new(&children).is_file() {
        for child in all_children() {
            assert!(Command::new("kill").args(["-9", &child]).status().unwrap().success());
        }
        let third = player.open(&talk).unwrap();
        assert_eq!(beginning(&third.audio), b"RIFF");
    }

    // SAFETY: as above.
    unsafe { std::env::set_var("STENO_PLAYER", caches.path().join("no-player")) };
    let failure = Player::default().open(&talk).unwrap_err();
    assert_eq!(failure.code, ErrorCode::PlayerFailed);
    assert!(failure.remedy.unwrap().contains("STENO_PLAYER"));
}

/// Of every thread of this process.
fn all_children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}
