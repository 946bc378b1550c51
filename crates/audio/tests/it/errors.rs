//! Files that are no recordings, or that can't be decoded, give errors that say so,
//! for any file name and without blocking.

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{decode, ffmpeg, fixture};
use audio::{AudioError, ChannelMode, OpenOptions, PrepareOptions, Reader, Warning, prepare};

/// Error of preparing a file, or its seconds and its warnings.
fn outcome(path: &Path, open: OpenOptions) -> Result<(f64, Vec<Warning>), AudioError> {
    let options = PrepareOptions { open, ..PrepareOptions::default() };
    let recording = prepare(path, &options, &mut |_, _| ControlFlow::Continue(()))?;
    Ok((recording.seconds(), recording.warnings.clone()))
}

macro_rules! assert_error {
    ($path:expr, $pattern:pat) => {
        assert_error!($path, OpenOptions::default(), $pattern)
    };
    ($path:expr, $options:expr, $pattern:pat) => {{
        let path: PathBuf = $path.into();
        let path = path.as_path();
        match outcome(path, $options) {
            Err(error @ $pattern) => {
                println!("{error}");
                assert!(error.to_string().contains(&path.display().to_string()), "{error}");
            }
            other => panic!("{}: {other:?}", path.display()),
        }
    }};
}

#[test]
fn files_that_are_no_recordings_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let text = "The quick brown fox jumps over the lazy dog.\n".repeat(200);
    let random: Vec<u8> =
        (0..100_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 41) as u8).collect();
    assert_error!(folder.path().join("nothing.wav"), AudioError::NotFound { .. });
    assert_error!(file("a", b"x").join("b.wav"), AudioError::NotFound { .. });
    assert_error!(folder.path(), AudioError::NotAFile { what: "a folder", .. });
    assert_error!(file("empty.mp3", b""), AudioError::Empty { .. });
    assert_error!(file("text.mp3", text.as_bytes()), AudioError::UnknownFormat { .. });
    assert_error!(file("text.wav", text.as_bytes()), AudioError::UnknownFormat { .. });
    assert_error!(file("random.ogg", &random), AudioError::UnknownFormat { .. } | AudioError::Broken { .. });
    assert_error!(file("one.mp3", b"\xff"), AudioError::UnknownFormat { .. });
    assert_error!(file("zeros.m4a", &[0; 5000]), AudioError::UnknownFormat { .. });
    // Cut off within the sound, and after the first header: the index follows both.
    let whole = fs::read(fixture("late_44100.mp4")).unwrap();
    for bytes in [whole.len() / 2, 40] {
        assert_error!(file("cut.mp4", &whole[..bytes]), AudioError::Incomplete { .. });
    }
    assert_error!(fixture("zero_seconds.wav"), AudioError::ZeroLength { .. });
    assert_error!(fixture("pictures_only.mp4"), AudioError::NoAudioTrack { .. });
    let second = OpenOptions { track: Some(2), ..OpenOptions::default() };
    assert_error!(
        fixture("two_tracks_24000.mkv"),
        second.clone(),
        AudioError::NoSuchTrack { available: 2, .. }
    );
    assert_error!(fixture("left.wav"), second, AudioError::NoSuchTrack { available: 1, .. });
    let third = OpenOptions { channels: ChannelMode::Index(2), ..OpenOptions::default() };
    assert_error!(fixture("s16_11025.wav"), third, AudioError::NoSuchChannel { available: 2, .. });
    let nothing = OpenOptions { limit_seconds: Some(0.0), ..OpenOptions::default() };
    assert_error!(fixture("left.wav"), nothing, AudioError::ZeroLength { .. });
}

/// A decoder would open what they list: other files of the user, and addresses.
#[test]
fn playlists_are_refused_under_any_name() {
    let folder = tempfile::tempdir().unwrap();
    let other = fixture("left.wav").canonicalize().unwrap();
    let other = other.display();
    for (name, text, what) in [
        (
            "hls.mp4",
            format!("#EXTM3U\n#EXT-X-TARGETDURATION:5\n#EXTINF:5,\n{other}\n#EXT-X-ENDLIST\n"),
            "an HLS",
        ),
        ("bom.mp3", format!("\u{feff}\r\n#EXTM3U\r\n{other}\r\n"), "an HLS"),
        ("concat.mp4", format!("ffconcat version 1.0\nfile '{other}'\n"), "an ffconcat list"),
        (
            "dash.webm",
            format!("<?xml version=\"1.0\"?>\n<MPD><BaseURL>{other}</BaseURL></MPD>"),
            "a DASH manifest",
        ),
        ("list.wav", format!("[playlist]\nFile1={other}\n"), "a playlist"),
        ("talk.sdp.mp3", "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\n".into(), "a session description"),
    ] {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        match outcome(&path, OpenOptions::default()) {
            Err(AudioError::Playlist { what: found, .. }) => {
                assert!(found.starts_with(what), "{name}: {found}")
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

/// What the first look does not recognise, ffmpeg's list of formats keeps out.
#[test]
fn ffmpeg_reads_formats_of_recordings_alone() {
    let Some(ffmpeg) = audio::find_ffmpeg() else { panic!("install ffmpeg: scripts/setup.sh test") };
    let folder = tempfile::tempdir().unwrap();
    // More than a first look reads stands before the list.
    let path = folder.path().join("picture.mp4");
    let picture =
        ["-v", "error", "-f", "lavfi", "-i", "color=size=16x16:duration=1", "-frames:v", "1", "-f", "image2"];
    assert!(Command::new(ffmpeg).args(picture).arg(&path).status().unwrap().success());
    let error = match outcome(&path, OpenOptions::default()) {
        Err(error @ AudioError::UnknownFormat { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    // What it is, and not the list of what it is not.
    assert!(error.contains("its format is") && !error.contains("matroska"), "{error}");
}

/// A CAF file of these parameters, with a second of silence at 8 kHz.
fn caf(rate: f64, channels: u32, data_bytes: i64) -> Vec<u8> {
    let mut file = b"caff\0\x01\0\0desc".to_vec();
    file.extend(32i64.to_be_bytes());
    file.extend(rate.to_be_bytes());
    file.extend(b"lpcm");
    for number in [0, 2 * channels, 1, channels, 16] {
        file.extend(number.to_be_bytes());
    }
    file.extend(b"data");
    file.extend(data_bytes.to_be_bytes());
    file.extend([0; 4 + 16_000]);
    file
}

#[test]
fn what_no_recording_can_be_is_refused_for_listening_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sound.caf");
    let whole = 4 + 16_000;
    fs::write(&path, caf(8_000.0, 1, whole)).unwrap();
    assert_eq!(outcome(&path, OpenOptions::default()).unwrap().0, 1.0);
    for (rate, channels, bytes) in [
        (f64::from(u32::MAX), 1, whole),
        (4_294_967_000.0, 1, whole),
        (1e300, 1, whole),
        (0.5, 1, whole),
        (8_000.0, 100_000, whole),
        (8_000.0, 1, i64::MAX),
        (8_000.0, 1, i64::MAX / 2),
    ] {
        fs::write(&path, caf(rate, channels, bytes)).unwrap();
        let listening = audio::Seekable::open(&path, None).map(|sound| sound.frames());
        let transcribing = outcome(&path, OpenOptions::default());
        // A length that the file does not have may count as unknown.
        let is_sane = |frames: &Option<u64>| frames.is_none_or(|frames| frames <= 8_000 * 3600 * 24 * 31);
        let refused = listening.as_ref().map_or(true, is_sane);
        assert!(refused, "{rate} Hz, {channels} channels, {bytes} bytes: {listening:?}");
        if bytes == whole {
            assert!(listening.is_err() && transcribing.is_err(), "{rate} Hz, {channels} channels");
        }
    }
}

/// ffmpeg ends with the program that started it, even where that is killed and ffmpeg writes nothing.
#[cfg(target_os = "linux")]
#[test]
fn ffmpeg_does_not_outlive_a_killed_program() {
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};
    const PLAYS_THE_PROGRAM: &str = "STENO_TEST_WAITS_FOR_FFMPEG";
    if let Some(path) = std::env::var_os(PLAYS_THE_PROGRAM) {
        let _ = audio::probe(Path::new(&path));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // A stand-in that says where it is and never ends.
    let (script, number) = (folder.path().join("ffmpeg"), folder.path().join("number"));
    fs::write(
        &script,
        format!("#!/bin/sh\necho $$ > {0}.new\nmv {0}.new {0}\nexec sleep 600\n", number.display()),
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let mut program = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "errors::ffmpeg_does_not_outlive_a_killed_program"])
        .env(PLAYS_THE_PROGRAM, fixture("ac3_48000.ac3"))
        .env("STENO_FFMPEG", &script)
        .spawn()
        .unwrap();
    let until = |what: &str, is_so: &mut dyn FnMut() -> bool| {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(30), "{what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    until("ffmpeg was not started", &mut || number.exists());
    let process = Path::new("/proc").join(fs::read_to_string(&number).unwrap().trim());
    program.kill().unwrap();
    program.wait().unwrap();
    until("ffmpeg is still there", &mut || {
        // A process that ended and was not waited for is there in name only.
        fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "))
    });
}

#[cfg(unix)]
#[test]
fn pipes_and_locked_files_are_refused_without_waiting() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe.wav");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert_error!(pipe, AudioError::NotAFile { what: "a pipe", .. });
    assert_error!(PathBuf::from("/dev/zero"), AudioError::NotAFile { what: "a device", .. });

    let locked = folder.path().join("locked.wav");
    fs::copy(fixture("left.wav"), &locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read it.
    if fs::File::open(&locked).is_err() {
        assert_error!(locked, AudioError::Unreadable { .. });
    }
    let endless = folder.path().join("link.wav");
    std::os::unix::fs::symlink(&endless, &endless).unwrap();
    assert_error!(endless, AudioError::Unreadable { .. });
}

#[test]
fn any_file_name_works() {
    let folder = tempfile::tempdir().unwrap();
    let mut names: Vec<OsString> = [
        "Gespräch – 録音 🎙.wav",
        "-i left.wav",
        "file:x.wav",
        "a\nb.wav",
        "concat:a|b",
        "no extension",
        "%d.wav",
    ]
    .map(OsString::from)
    .to_vec();
    #[cfg(unix)]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"not \xff utf-8.wav".to_vec()));
    for name in names {
        // Once for our own decoder, once for ffmpeg's.
        for (source, needs_ffmpeg) in [("left.wav", false), ("ac3_48000.ac3", true)] {
            if needs_ffmpeg {
                ffmpeg();
            }
            let path = folder.path().join(&name);
            fs::copy(fixture(source), &path).unwrap();
            let (seconds, _) = outcome(&path, OpenOptions::default()).unwrap();
            assert!((seconds - 1.0).abs() < 0.05, "{}: {seconds} s", path.display());
        }
    }
}

#[test]
fn a_mono_recording_has_no_right_channel() {
    let right = OpenOptions { channels: ChannelMode::Right, ..OpenOptions::default() };
    assert_eq!(outcome(&fixture("left.wav"), right).unwrap(), (1.0, vec![Warning::Mono]));
}

#[test]
fn opposite_phases_fall_back_to_the_louder_channel() {
    let folder = tempfile::tempdir().unwrap();
    let voice = crate::common::truth("left");
    for (name, left, right, louder) in [("left", 1.0, -0.9, 1.0), ("right", 0.9, -1.0, -1.0)] {
        let path = folder.path().join(format!("{name}.wav"));
        let frames: Vec<f32> = voice.iter().flat_map(|sample| [sample * left, sample * right]).collect();
        crate::common::write_wav(&path, 2, &frames);
        let recording =
            prepare(&path, &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert!(matches!(recording.warnings[..], [Warning::Phase { .. }]), "{:?}", recording.warnings);
        let mut found = vec![0.0; voice.len()];
        recording.pcm.read(0, &mut found).unwrap();
        assert!(found.iter().zip(&voice).all(|(found, sample)| *found == sample * louder), "{name}");
    }
}

#[test]
fn preparing_can_be_cancelled() {
    let mut calls = 0;
    let result = prepare(&fixture("left.wav"), &PrepareOptions::default(), &mut |_, _| {
        calls += 1;
        ControlFlow::Break(())
    });
    assert!(matches!(result, Err(AudioError::Cancelled)));
    assert_eq!(calls, 1);
}

/// HE-AAC must never be decoded as AAC-LC. The files are AAC-LC with the signalling
/// of HE-AAC written into them, which is all that is tested.
#[test]
fn he_aac_is_recognised_however_it_is_signalled() {
    let folder = tempfile::tempdir().unwrap();
    let plain = fs::read(fixture("aac_44100.m4a")).unwrap();
    // AAC-LC, 44.1 kHz, stereo, then the extension that says "no SBR".
    let config = [0x12, 0x10, 0x56, 0xe5, 0x00];
    let at = plain.windows(5).position(|bytes| bytes == config).unwrap();
    for (name, signalled) in [
        ("extension", [0x12, 0x10, 0x56, 0xe5, 0x98]),
        ("object type SBR", [0x2a, 0x11, 0x88, 0x00, 0x00]),
        ("object type PS", [0xea, 0x09, 0x88, 0x00, 0x00]),
    ] {
        let mut bytes = plain.clone();
        bytes[at..at + 5].copy_from_slice(&signalled);
        let path = folder.path().join(format!("{name}.m4a"));
        fs::write(&path, bytes).unwrap();
        assert_needs_ffmpeg(&path, "HE-AAC");
    }
    let path = folder.path().join("within.aac");
    fs::write(&path, with_sbr_elements(&fs::read(fixture("aac_22050.aac")).unwrap())).unwrap();
    assert_needs_ffmpeg(&path, "HE-AAC");
}

#[test]
fn files_that_need_ffmpeg_are_errors_without_it() {
    for (file, what) in [
        ("ac3_48000.ac3", "AC-3"),
        ("ac3_48000.mp4", "AC-3"),
        ("eac3_48000.mkv", "E-AC-3"),
        ("dts_48000.dts", "DTS"),
        ("wma_22050.wma", "WMA"),
        ("wavpack_22050.wv", "WavPack"),
        ("six_48000.opus", "opus with 6 channels"),
    ] {
        assert_needs_ffmpeg(&fixture(file), what);
    }
}

/// Opens a file in a process of its own without `ffmpeg`, since all tests share the
/// environment of this one.
fn assert_needs_ffmpeg(path: &Path, what: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "errors::in_a_process_without_ffmpeg", "--nocapture"])
        .env("STENO_FFMPEG", "none")
        .env("AUDIO_TEST_OPEN", path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("NEEDS FFMPEG") && text.contains(what), "{}: {text}", path.display());
}

/// The other side of [`assert_needs_ffmpeg`]; does nothing on its own.
#[test]
fn in_a_process_without_ffmpeg() {
    let Some(path) = std::env::var_os("AUDIO_TEST_OPEN") else { return };
    match Reader::open(path.as_ref(), &OpenOptions::default()) {
        Err(error @ AudioError::NeedsFfmpeg { .. }) => println!("NEEDS FFMPEG: {error}"),
        other => println!("{other:?}"),
    }
}

/// Puts a fill element with the mark of SBR before the end mark of every
/// frame of an ADTS stream.
fn with_sbr_elements(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = stream;
    while rest.len() > 7 {
        let length = usize::from(rest[3] & 3) << 11 | usize::from(rest[4]) << 3 | usize::from(rest[5] >> 5);
        let (frame, after) = rest.split_at(length);
        rest = after;
        let mut bits: Vec<bool> =
            frame[7..].iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1)).collect();
        // Up to, not including, the end mark 111.
        let end = bits.iter().rposition(|bit| *bit).unwrap() - 2;
        bits.truncate(end);
        let mut put = |value: u32, count: u32| bits.extend((0..count).rev().map(|bit| value >> bit & 1 == 1));
        put(6, 3); // fill element
        put(5, 4); // of five bytes
        put(13, 4); // that are spectral band replication
        put(0x95a3_c71b, 32);
        put(5, 4);
        put(7, 3); // end mark
        let payload: Vec<u8> = bits
            .chunks(8)
            .map(|bits| bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | u8::from(*bit) << (7 - at)))
            .collect();
        let length = payload.len() + 7;
        out.extend_from_slice(&frame[..3]);
        out.push(frame[3] & !3 | (length >> 11) as u8);
        out.push((length >> 3) as u8);
        out.push((length << 5) as u8 | frame[5] & 0x1f);
        out.push(frame[6]);
        out.extend(payload);
    }
    out
}

#[test]
fn adts_without_sbr_elements_is_plain() {
    assert!(decode(&fixture("aac_22050.aac"), &OpenOptions::default()).len() > 15_000);
}
