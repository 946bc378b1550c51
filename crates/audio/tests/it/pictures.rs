//! Pictures of a real film, decoded by a real `ffmpeg`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use audio::Film;

use crate::common::{ffmpeg, fixture};

/// Ten seconds whose picture is black in the first five and white after that, with sound of `sound` seconds.
fn film(folder: &Path, sound: u32) -> PathBuf {
    let path = folder.join(format!("film-{sound}.mkv"));
    let color = |color: &str| format!("color={color}:size=320x240:rate=25:duration=5");
    let made = Command::new(ffmpeg())
        .args(["-v", "error", "-f", "lavfi", "-i", &color("black"), "-f", "lavfi", "-i", &color("white")])
        .args(["-f", "lavfi", "-i", &format!("sine=duration={sound}")])
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
    let film = Film::open(&film(folder.path(), 10)).unwrap().unwrap();
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
    // Who looks no longer needs no decoder.
    at(1.0);
    assert!(film.is_decoding());
    let began = Instant::now();
    while film.is_decoding() {
        assert!(began.elapsed() < Duration::from_secs(30), "the decoder goes on");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Where a recording is heard to its end, or sound goes on without pictures, the last one stays.
#[test]
fn behind_the_last_picture_it_is_seen_from_any_place() {
    let folder = tempfile::tempdir().unwrap();
    for (sound, places) in [(10, vec![9.95, 9.99, 10.0]), (60, vec![59.9, 30.0, 12.0, 45.0])] {
        let path = film(folder.path(), sound);
        for place in &places {
            // Each by a decoder that begins there.
            let fresh = Film::open(&path).unwrap().unwrap();
            let light = fresh.at(9.5).unwrap();
            let begun = Film::open(&path).unwrap().unwrap();
            assert!(
                light.is_some() && begun.at(*place).unwrap() == light,
                "{sound} s of sound, at {place} s"
            );
        }
        let film = Film::open(&path).unwrap().unwrap();
        let seen: Vec<_> = places.iter().map(|place| film.at(*place).unwrap()).collect();
        assert!(seen.iter().all(|picture| *picture == seen[0] && picture.is_some()), "{sound} s of sound");
        assert!(
            film.at(0.5).unwrap().is_some_and(|dark| Some(dark) != seen[0]),
            "the film is seen before its end"
        );
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
