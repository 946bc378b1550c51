//! Requests to a real server, as a media element sends them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use player::Server;
use wire::{ErrorCode, Opened, PlayerAnswer, PlayerCommand, Probed};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/fixtures").join(name)
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

/// Sends a request with these header lines. The host is the server's unless a line gives another.
fn ask(method: &str, address: &str, lines: &[&str]) -> Answer {
    let (host, path) = address.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    let mut request = format!("{method} /{path} HTTP/1.1\r\n");
    if !lines.iter().any(|line| line.starts_with("Host:")) {
        request.push_str(&format!("Host: {host}\r\n"));
    }
    for line in lines {
        request.push_str(line);
        request.push_str("\r\n");
    }
    stream.write_all(format!("{request}\r\n").as_bytes()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: bytes[end..].to_vec() }
}

fn open(server: &Server, name: &str) -> Opened {
    server.open(&fixture(name), None, None).unwrap()
}

#[test]
fn a_16_bit_wave_file_is_served_unchanged() {
    let server = Server::start().unwrap();
    let opened = open(&server, "left.wav");
    let file = std::fs::read(fixture("left.wav")).unwrap();
    let whole = ask("GET", &opened.audio, &[]);
    assert_eq!((whole.status, opened.seconds), (200, 1.0));
    assert!(
        whole.head.contains("Accept-Ranges: bytes\r\n") && whole.head.contains("Content-Type: audio/wav\r\n")
    );
    assert_eq!(whole.body.len(), file.len());
    assert!(whole.body == file, "header or samples differ");
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let server = Server::start().unwrap();
    for name in ["left.wav", "joint_44100.mp3", "vorbis_44100.ogg", "six_8000.wav", "aac_48000.mkv"] {
        let opened = open(&server, name);
        let whole = ask("GET", &opened.audio, &[]).body;
        let total = whole.len();
        for (range, expected) in [
            ("bytes=0-".to_owned(), 0..total),
            ("bytes=0-43".into(), 0..44),
            ("bytes=20-101".into(), 20..102),
            (format!("bytes=45-{}", total + 10), 45..total),
            (format!("bytes={}-{}", total / 2 + 1, total / 2 + 1), total / 2 + 1..total / 2 + 2),
            ("bytes=-7".into(), total - 7..total),
        ] {
            let part = ask("GET", &opened.audio, &[&format!("Range: {range}")]);
            assert_eq!(part.status, 206, "{name} {range}");
            let stated = format!("Content-Range: bytes {}-{}/{total}\r\n", expected.start, expected.end - 1);
            assert!(part.head.contains(&stated), "{name} {range}: {}", part.head);
            assert!(part.body == whole[expected], "{name} {range}");
        }
        let beyond = ask("GET", &opened.audio, &[&format!("Range: bytes={total}-")]);
        assert_eq!(beyond.status, 416, "{name}");
        assert!(beyond.head.contains(&format!("Content-Range: bytes */{total}\r\n")));
        let head = ask("HEAD", &opened.audio, &["Range: bytes=44-"]);
        assert_eq!((head.status, head.body.len()), (206, 0));
        assert!(head.head.contains(&format!("Content-Length: {}\r\n", total - 44)));
    }
}

#[test]
fn only_the_window_is_answered() {
    let server = Server::start().unwrap();
    let opened = open(&server, "left.wav");
    let guessed = opened.audio.replace(&opened.token, &"0".repeat(32));
    for (method, address, lines, status) in [
        ("GET", &opened.peaks, &["Origin: tauri://localhost"][..], 200),
        ("GET", &opened.audio, &["Origin: https://example.org"], 403),
        ("GET", &opened.audio, &["Origin: null"], 403),
        ("GET", &opened.audio, &["Host: example.org"], 403),
        ("GET", &opened.audio, &["Host: localhost"], 403),
        ("GET", &guessed, &[], 404),
        ("POST", &opened.audio, &[], 405),
        ("GET", &format!("{}2.5", opened.speed), &["Origin: tauri://localhost"], 204),
        ("GET", &format!("{}0", opened.speed), &[], 404),
        ("GET", &format!("{}NaN", opened.speed), &[], 404),
        ("GET", &format!("{}2.5", opened.speed), &["Origin: https://example.org"], 403),
        ("GET", &opened.audio.replace("audio.wav", "../../etc/passwd"), &[], 404),
    ] {
        let answer = ask(method, address, lines);
        assert_eq!(answer.status, status, "{method} {address} {lines:?}");
        assert!(status == 200 || answer.body.is_empty(), "{address}");
    }
    server.close(&opened.token);
    assert_eq!(ask("GET", &opened.audio, &[]).status, 404);
}

/// Requests the peaks until scanning is complete.
fn peaks(opened: &Opened) -> serde_json::Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let peaks: serde_json::Value =
            serde_json::from_slice(&ask("GET", &opened.peaks, &["Origin: tauri://localhost"]).body).unwrap();
        if peaks["done"] == true {
            return peaks;
        }
        assert!(Instant::now() < deadline, "{peaks}");
        std::thread::yield_now();
    }
}

#[test]
fn scan_results_are_cached() {
    let folder = tempfile::tempdir().unwrap();
    let keep = folder.path().join("deep/kept.json");
    let server = Server::start().unwrap();
    let path = fixture("joint_44100.mp3");
    let first = server.open(&path, None, Some(&keep)).unwrap();
    let learned = peaks(&first);
    let values = learned["values"].as_array().unwrap();
    let seconds = values.len() as f64 / 2.0 * learned["seconds"].as_f64().unwrap();
    assert!((seconds - first.seconds).abs() < 0.01, "{seconds}");
    assert!(values.iter().any(|value| value.as_i64().unwrap() > 20), "{learned}");

    let again = server.open(&path, None, Some(&keep)).unwrap();
    let at_once = ask("GET", &again.peaks, &[]).body;
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&at_once).unwrap(), learned);
    assert_ne!(first.token, again.token);
    assert_eq!(ask("GET", &first.audio, &[]).body, ask("GET", &again.audio, &[]).body);

    // A damaged cache file is ignored.
    std::fs::write(&keep, "{\"version\": 1, \"index\"").unwrap();
    assert_eq!(peaks(&server.open(&path, None, Some(&keep)).unwrap()), learned);
}

#[test]
fn recordings_decoded_by_ffmpeg_are_served() {
    assert!(audio::find_ffmpeg().is_some(), "this test needs ffmpeg: run scripts/setup.sh test");
    let server = Server::start().unwrap();
    let opened = open(&server, "ac3_48000.ac3");
    let whole = ask("GET", &opened.audio, &[]).body;
    let loudest = whole[44..].as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).max().unwrap();
    assert!(loudest > 1000, "{loudest}");
    let part = ask("GET", &opened.audio, &["Range: bytes=100000-100999"]);
    assert!(part.body == whole[100_000..101_000]);
}

#[test]
fn undecodable_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("letter.mp3");
    std::fs::write(&letter, "Dear Sir\n".repeat(500)).unwrap();
    let missing = folder.path().join("missing.wav");
    let server = Server::start().unwrap();
    for (path, code) in [
        (missing.as_path(), ErrorCode::FileNotFound),
        (folder.path(), ErrorCode::NotAFile),
        (&letter, ErrorCode::UnknownFormat),
        (&fixture("zero_seconds.wav"), ErrorCode::FileEmpty),
    ] {
        let failure = server.open(path, None, None).unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert_eq!(failure.file.as_ref().unwrap().as_path(), path);
        // Missing samples are noticed only by decoding.
        if code != ErrorCode::FileEmpty {
            assert_eq!(player::probe(path).unwrap_err(), failure);
        }
    }
}

#[test]
fn the_program_answers_each_line_and_ends_with_its_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_steno-player"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut tell = |line: &str| {
        input.write_all(format!("{line}\n").as_bytes()).unwrap();
        let mut answer = String::new();
        output.read_line(&mut answer).unwrap();
        serde_json::from_str::<PlayerAnswer>(&answer).unwrap()
    };
    let PlayerAnswer::Failed { failure } = tell("sing") else { panic!("it sang") };
    assert_eq!(failure.code, ErrorCode::ProtocolMismatch);
    let command = PlayerCommand::Open { path: fixture("left.wav").into(), track: None, keep: None };
    let PlayerAnswer::Opened(opened) = tell(&serde_json::to_string(&command).unwrap()) else {
        panic!("it did not open")
    };
    assert_eq!(ask("GET", &opened.audio, &["Range: bytes=0-3"]).body, b"RIFF");
    let probe = PlayerCommand::Probe { path: fixture("left.wav").into() };
    let PlayerAnswer::Probed(Probed { seconds, .. }) = tell(&serde_json::to_string(&probe).unwrap()) else {
        panic!("it did not look")
    };
    assert_eq!(seconds, Some(1.0));
    let close = PlayerCommand::Close { token: opened.token.clone() };
    assert_eq!(tell(&serde_json::to_string(&close).unwrap()), PlayerAnswer::Closed);
    assert_eq!(ask("GET", &opened.audio, &[]).status, 404);
    drop(input);
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_film_has_pictures_and_sound_has_none() {
    let server = Server::start().unwrap();
    let info = |opened: &Opened| String::from_utf8(ask("GET", &opened.pictures, &[]).body).unwrap();
    let sound = open(&server, "left.wav");
    assert_eq!(info(&sound), r#"{"missing":false,"pictures":false}"#);
    assert_eq!(ask("GET", &format!("{}/0.5", sound.pictures), &[]).status, 404);
    if audio::find_ffmpeg().is_none() {
        println!("skipped: ffmpeg is not installed");
        return;
    }
    let film = open(&server, "video_44100.mp4");
    assert_eq!(info(&film), r#"{"missing":false,"pictures":true}"#);
    let picture = ask("GET", &format!("{}/0.25", film.pictures), &[]);
    assert_eq!(picture.status, 200);
    assert!(picture.head.contains("Content-Type: image/jpeg\r\n") && picture.body.starts_with(b"\xff\xd8"));
    // As for sound: this machine's window alone, under the recording's token.
    let foreign = ask("GET", &format!("{}/0.25", film.pictures), &["Origin: https://example.com"]);
    assert_eq!(foreign.status, 403);
    for wrong in ["-1", "nan", "x", "1e99"] {
        assert_eq!(ask("GET", &format!("{}/{wrong}", film.pictures), &[]).status, 404, "{wrong}");
    }
    server.close(&film.token);
    assert_eq!(ask("GET", &format!("{}/0.25", film.pictures), &[]).status, 404);
}
