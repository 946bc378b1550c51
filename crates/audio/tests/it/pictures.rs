//! Pictures of a real film, decoded by a real `ffmpeg`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use audio::Film;

use crate::common::{ffmpeg, fixture};

/// Ten seconds whose picture is black in the first five and white after that.
fn film(folder: &Path) -> PathBuf {
    let path = folder.join("film.mkv");
    let color = |color: &str| format!("color={color}:size=320x240:rate=25:duration=5");
    let made = Command::new(ffmpeg())
        .args(["-v", "error", "-f", "lavfi", "-i", &color("black"), "-f", "lavfi", "-i", &color("white")])
        .args(["-f", "lavfi", "-i", "sine=duration=10"])
        .args(["-filter_complex", "[0:v][1:v]concat=n=2:v=1[v]", "-map", "[v]", "-map", "2:a"])
        .args(["-c:v", "ffv1", "-c:a", "flac"])
        .arg(&path)
        .status()
        .unwrap();
    assert!(made.success());
    path
}

#[test]
fn a_film_shows_what_is_seen_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let film = Film::open(&film(folder.path())).unwrap().unwrap();
    let at = |seconds: f64| film.at(seconds).unwrap().unwrap();
    let (dark, light) = (at(0.5), at(7.0));
    assert!(dark.starts_with(b"\xff\xd8") && light.starts_with(b"\xff\xd8"), "both are JPEGs");
    assert!(dark != light);
    // Forward with what is asked for, back, and over the end.
    for (seconds, expected) in [
        (1.0, &dark),
        (2.25, &dark),
        (4.0, &dark),
        (6.0, &light),
        (6.25, &light),
        (0.5, &dark),
        (9.5, &light),
    ] {
        assert!(at(seconds) == *expected, "at {seconds} s");
    }
    assert!(film.at(60.0).unwrap().is_none(), "nothing is seen behind the end");
    // Who looks no longer needs no decoder.
    at(1.0);
    assert!(film.is_decoding());
    let began = Instant::now();
    while film.is_decoding() {
        assert!(began.elapsed() < Duration::from_secs(30), "the decoder goes on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn sound_alone_has_no_pictures() {
    for name in ["left.wav", "joint_44100.mp3", "aac_44100.m4a"] {
        assert!(Film::open(&fixture(name)).unwrap().is_none(), "{name}");
    }
    // A playlist under the name of a film opens no other file.
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list.mp4");
    std::fs::write(&list, format!("ffconcat version 1.0\nfile '{}'\n", fixture("video_44100.mp4").display()))
        .unwrap();
    assert!(Film::open(&list).unwrap().is_none());
}
