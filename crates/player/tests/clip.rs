//! Parts of real recordings as sound files.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use audio::{Seekable, find_ffmpeg};
use player::clip;
use transcript::{Span, Time};
use wire::ErrorCode;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../audio/tests/fixtures").join(name)
}

fn span(from: u32, to: u32) -> Span {
    Span::new(Time::from_millis(from), Time::from_millis(to))
}

/// Rate, channels and samples of a file.
fn samples(path: &Path) -> (u32, usize, Vec<i16>) {
    let mut sound = Seekable::open(path, None).unwrap();
    let mut samples = Vec::new();
    sound.read(0, 10_000_000, &mut samples);
    (sound.rate(), sound.channels(), samples)
}

#[test]
fn a_clip_is_the_part_of_the_recording_at_its_own_rate() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["left.wav", "joint_44100.mp3", "vorbis_44100.ogg", "six_8000.wav", "aac_48000.mkv"] {
        let (rate, channels, whole) = samples(&fixture(name));
        let out = folder.path().join(format!("{name}.wav"));
        clip(&fixture(name), None, span(200, 700), &out, false).unwrap();
        let (of_clip, of_channels, part) = samples(&out);
        assert_eq!((of_clip, of_channels), (rate, channels), "{name}");
        let at = |millis: usize| millis * rate as usize / 1000 * channels;
        assert_eq!(part.len(), at(700) - at(200), "{name}");
        assert!(part == whole[at(200)..at(700)], "{name}: other samples");
    }
}

#[test]
fn an_end_behind_the_recording_is_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("clip.wav");
    clip(&fixture("left.wav"), None, span(400, 90_000), &out, false).unwrap();
    let (rate, channels, part) = samples(&out);
    assert_eq!(part.len(), rate as usize * 6 / 10 * channels);
}

#[test]
fn flac_holds_the_same_samples() {
    if find_ffmpeg().is_none() {
        println!("skipped: ffmpeg is not installed");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (wav, flac) = (folder.path().join("clip.wav"), folder.path().join("clip.flac"));
    for out in [&wav, &flac] {
        clip(&fixture("joint_44100.mp3"), None, span(100, 900), out, false).unwrap();
    }
    assert!(std::fs::read(&flac).unwrap().starts_with(b"fLaC"));
    assert!(samples(&wav) == samples(&flac));
}

#[test]
fn what_can_not_be_saved_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    std::fs::write(place("mine.wav"), "mine").unwrap();
    let ok = span(100, 300);
    for (recording, part, out, code, says) in [
        (fixture("left.wav"), span(1500, 2000), place("a.wav"), ErrorCode::BadSettings, "ends after 1.0 s"),
        (fixture("left.wav"), span(300, 300), place("a.wav"), ErrorCode::BadSettings, "after its start"),
        (fixture("left.wav"), ok, place("a.mp3"), ErrorCode::BadSettings, ".wav or .flac"),
        (fixture("left.wav"), ok, place("mine.wav"), ErrorCode::OutputExists, "exists"),
        (fixture("left.wav"), ok, place("gone/a.wav"), ErrorCode::OutputUnwritable, "no such folder"),
        (
            fixture("left.wav"),
            ok,
            place(&format!("{}.wav", "a".repeat(300))),
            ErrorCode::OutputNameTooLong,
            "too long",
        ),
        (place("missing.wav"), ok, place("a.wav"), ErrorCode::FileNotFound, "no such file"),
        (place("mine.wav"), ok, place("a.wav"), ErrorCode::UnknownFormat, ""),
    ] {
        let failure = clip(&recording, None, part, &out, false).unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
        assert!(failure.to_string().contains(says), "{failure}");
    }
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["mine.wav"]);
    assert_eq!(std::fs::read(place("mine.wav")).unwrap(), b"mine");
    clip(&fixture("left.wav"), None, ok, &place("mine.wav"), true).unwrap();
    assert!(std::fs::read(place("mine.wav")).unwrap().starts_with(b"RIFF"));
}
