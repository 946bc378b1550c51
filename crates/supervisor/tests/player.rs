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

/// The first bytes of the virtual WAV file.
fn beginning(address: &str) -> Vec<u8> {
    bytes(address, 0)
}

/// How many channels the virtual WAV file has, by its header.
fn channels(address: &str) -> u16 {
    let bytes = bytes(address, 22);
    u16::from_le_bytes([bytes[0], bytes[1]])
}

/// Four bytes of the virtual WAV file.
fn bytes(address: &str, from: usize) -> Vec<u8> {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nRange: bytes={from}-{}\r\n\r\n", from + 3)
        .unwrap();
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
    let first = player.open(&talk, None).unwrap();
    assert_eq!((beginning(&first.audio).as_slice(), first.seconds), (&b"RIFF"[..], 1.0));

    // Another recording takes its place.
    let second = player.open(&talk, None).unwrap();
    assert_ne!(first.token, second.token);
    assert_eq!(beginning(&second.audio), b"RIFF");

    let film = two_tracks(caches.path());
    if let Some(film) = &film {
        let probed = player.probe(film).unwrap();
        let said: Vec<_> = probed
            .tracks
            .iter()
            .map(|track| {
                (
                    track.number,
                    track.language.as_deref(),
                    track.title.as_deref(),
                    track.channels,
                    track.default,
                )
            })
            .collect();
        let expected = [
            (0, Some("eng"), Some("Stage"), Some(1), false),
            (1, Some("ger"), Some("Interpreter"), Some(2), true),
        ];
        assert_eq!(said, expected);
        assert!(probed.tracks.iter().all(|track| track.codec == "flac"), "{probed:?}");
        // Each is listened to by itself: the second has two channels.
        let heard = [Some(0), Some(1), None].map(|track| channels(&player.open(film, track).unwrap().audio));
        assert_eq!(heard, [1, 2, 2], "the default one is the second");
        assert_eq!(player.open(film, Some(2)).unwrap_err().code, ErrorCode::NoSuchTrack);
    }

    let failure = player.open(&caches.path().join("gone.wav"), None).unwrap_err();
    assert_eq!(failure.code, ErrorCode::FileNotFound);

    let children = format!("/proc/self/task/{}/children", std::process::id());
    if cfg!(target_os = "linux") && Path::new(&children).is_file() {
        for child in all_children() {
            assert!(Command::new("kill").args(["-9", &child]).status().unwrap().success());
        }
        let third = player.open(&talk, None).unwrap();
        assert_eq!(beginning(&third.audio), b"RIFF");
    }

    // SAFETY: as above.
    unsafe { std::env::set_var("STENO_PLAYER", caches.path().join("no-player")) };
    let failure = Player::default().open(&talk, None).unwrap_err();
    assert_eq!(failure.code, ErrorCode::PlayerFailed);
    assert!(failure.remedy.unwrap().contains("STENO_PLAYER"));
}

/// A film with two sound tracks, where there is an ffmpeg to make it.
fn two_tracks(folder: &Path) -> Option<PathBuf> {
    let film = folder.join("two tracks.mkv");
    let tone = |seconds: u32, channels: u32| {
        let source = format!("sine=frequency=440:duration={seconds}:sample_rate=16000");
        [
            "-f".into(),
            "lavfi".into(),
            "-i".into(),
            if channels == 1 { source } else { format!("{source},aformat=channel_layouts=stereo") },
        ]
    };
    let made = Command::new("ffmpeg")
        .args(["-v", "error"])
        .args(tone(1, 1))
        .args(tone(2, 2))
        .args(["-map", "0", "-map", "1", "-c:a", "flac"])
        .args(["-metadata:s:a:0", "language=eng", "-metadata:s:a:0", "title=Stage", "-disposition:a:0", "0"])
        .args(["-metadata:s:a:1", "language=ger", "-metadata:s:a:1", "title=Interpreter"])
        .args(["-disposition:a:1", "default"])
        .arg(&film)
        .status();
    let made = made.is_ok_and(|status| status.success());
    if !made {
        println!("skipped: there is no ffmpeg that makes a film with two tracks");
    }
    made.then_some(film)
}

/// Of every thread of this process.
fn all_children() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
}
