//! Any part of a recording equals the same part of the whole.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{ffmpeg, fixture};
use audio::{SeekIndex, Seekable};

/// The 16-bit samples of the whole recording, and its index.
fn whole(path: &Path) -> (Vec<i16>, Seekable) {
    let sound = Seekable::open(path, None).unwrap();
    let mut pass = sound.pass().unwrap();
    let mut samples = Vec::new();
    while let Some(block) = pass.next_block() {
        samples.extend_from_slice(block);
    }
    assert_eq!(sound.frames(), Some((samples.len() / sound.channels()) as u64), "{}", path.display());
    (samples, sound)
}

/// Writes `seconds` of speech without repetitions: the fixture with changing
/// loudness and a rising tone.
fn long_wav(folder: &Path, seconds: usize) -> PathBuf {
    let voice = crate::common::truth("left");
    let samples: Vec<f32> = (0..seconds * 16_000)
        .map(|at| {
            let time = at as f32 / 16_000.0;
            let loudness = 0.4 + 0.3 * (time * 0.37).sin();
            voice[at % voice.len()] * loudness + 0.1 * ((200.0 + 7.0 * time) * time).sin()
        })
        .collect();
    let path = folder.join("long.wav");
    crate::common::write_wav(&path, 1, &samples);
    path
}

/// The shift in frames at which a part is most like the whole around `from`,
/// and how far the samples are apart there, against their own size.
fn compare(part: &[i16], whole: &[i16], from: usize, channels: usize, most: i64) -> (i64, f64) {
    let at = |shift: i64| {
        let (mut difference, mut size) = (0.0, 1.0);
        for (index, sample) in part.iter().enumerate() {
            let there = (from * channels + index) as i64 + shift * channels as i64;
            let there = usize::try_from(there).ok().and_then(|at| whole.get(at)).copied().unwrap_or(0);
            difference += f64::from(*sample - there).powi(2);
            size += f64::from(there).powi(2);
        }
        (difference / size).sqrt()
    };
    let shift = (-most..=most).min_by(|a, b| at(*a).total_cmp(&at(*b)).then(a.abs().cmp(&b.abs()))).unwrap();
    (shift, at(shift))
}

struct Format {
    name: &'static str,
    arguments: &'static str,
    /// Largest relative difference: rounding, and codec state that never decays.
    apart: f64,
    /// Milliseconds by which a position may be off before a pass.
    early_ms: f64,
}

const fn format(name: &'static str, arguments: &'static str, apart: f64, early_ms: f64) -> Format {
    Format { name, arguments, apart, early_ms }
}

const FORMATS: &[Format] = &[
    format("pcm.wav", "-c:a pcm_s16le", 0.0, 0.0),
    format("adpcm.wav", "-c:a adpcm_ima_wav -ar 22050", 0.0, 0.1),
    format("lossless.flac", "-ar 44100 -ac 2", 0.0, 0.0),
    format("lossless.aiff", "", 0.0, 0.0),
    format("lossless.caf", "-c:a alac", 0.0, 0.1),
    format("cbr.mp3", "-c:a libmp3lame -b:a 64k -ar 44100 -ac 2", 0.001, 0.0),
    format("low.mp3", "-c:a libmp3lame -b:a 8k -ar 16000", 0.001, 0.0),
    format("vbr.mp3", "-c:a libmp3lame -q:a 4 -ar 22050", 0.001, 0.0),
    format("no_header.mp3", "-c:a libmp3lame -q:a 2 -write_xing 0 -id3v2_version 0", 0.001, 0.0),
    format("layer2.mp2", "-c:a mp2 -b:a 96k -ar 48000", 0.001, 0.0),
    format("stream.aac", "-c:a aac -ar 44100 -f adts", 0.001, 0.0),
    format("vorbis.ogg", "-c:a libvorbis -ar 44100 -ac 2", 0.001, 10.0),
    format("flac.oga", "-c:a flac", 0.0, 1.0),
    format("speech.opus", "-c:a libopus -b:a 24k", 0.02, 10.0),
    format("sound.m4a", "-c:a aac -ar 44100", 0.001, 1.0),
    format("alac.m4a", "-c:a alac", 0.0, 1.0),
    format(
        "fragments.mp4",
        "-c:a aac -ar 44100 -movflags frag_keyframe+empty_moov -frag_duration 1000000",
        0.001,
        1.0,
    ),
];

/// Matroska with clusters of various lengths, and with video.
const MATROSKA: &[Format] = &[
    format("speech.webm", "-c:a libopus -b:a 24k", 0.02, 2.0),
    format("sound.mkv", "-c:a aac -ar 44100", 0.001, 2.0),
    format("lossless.mkv", "-c:a flac -cluster_time_limit 700", 0.0, 2.0),
    format("vorbis.mkv", "-c:a libvorbis -ar 44100 -ac 2 -cluster_time_limit 300", 0.001, 2.0),
    format("layer3.mkv", "-c:a libmp3lame -q:a 4 -ar 22050 -cues_to_front 1", 0.001, 2.0),
    format("film.mkv", "-f lavfi -i testsrc=size=64x64:rate=10 -shortest -c:v mpeg4 -c:a libopus", 0.02, 2.0),
];

#[test]
fn parts_equal_decoding_from_the_start() {
    let ffmpeg = ffmpeg();
    let folder = tempfile::tempdir().unwrap();
    let wav = long_wav(folder.path(), 60);
    let mut failures = Vec::new();
    for format in FORMATS.iter().chain(MATROSKA) {
        let path = folder.path().join(format.name);
        let made = Command::new(&ffmpeg)
            .args(["-v", "error", "-y", "-i"])
            .arg(&wav)
            .args(format.arguments.split_whitespace())
            .arg(&path)
            .status()
            .unwrap();
        assert!(made.success(), "{}", format.name);
        failures.extend(check(&path, format));
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn check(path: &Path, format: &Format) -> Vec<String> {
    let mut fresh = Seekable::open(path, None).unwrap();
    let (samples, mut known) = whole(path);
    let saved: SeekIndex = serde_json::from_slice(&serde_json::to_vec(&known.index()).unwrap()).unwrap();
    let mut reopened = Seekable::open(path, Some(saved)).unwrap();
    let (rate, channels) = (known.rate() as usize, known.channels());
    let frames = samples.len() / channels;
    assert!(known.is_exact(), "{}", format.name);
    let mut failures = Vec::new();
    // Forward and backward, near and far, the start and the end.
    let places = [40.0, 12.345, 12.5, 3.2, 0.0, 0.01, 59.5, 33.333, 20.0, 1.0];
    for (name, sound, early) in
        [("fresh", &mut fresh, true), ("known", &mut known, false), ("reopened", &mut reopened, false)]
    {
        for seconds in places {
            let from = (seconds * rate as f64) as usize;
            let mut part = Vec::new();
            sound.read(from as u64, rate / 5, &mut part);
            let expected = (rate / 5).min(frames.saturating_sub(from)) * channels;
            let off = if early { (format.early_ms * rate as f64 / 1000.0).ceil() as i64 } else { 0 };
            let (shift, apart) = compare(&part, &samples, from, channels, off);
            println!("{:16} {name:9} {seconds:7.3} s: shift {shift:+4}, apart {apart:.6}", format.name);
            if part.len() + off as usize * channels < expected || apart > format.apart {
                failures.push(format!(
                    "{} {name} at {seconds} s: {} of {expected} samples, shift {shift:+}, apart {apart:.6}",
                    format.name,
                    part.len()
                ));
            }
        }
    }
    failures
}

#[test]
fn parts_of_every_fixture_equal_the_whole() {
    let mut failures = Vec::new();
    for entry in std::fs::read_dir(fixture("")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(mut sound) = Seekable::open(&path, None) else { continue };
        if !sound.is_exact() {
            continue;
        }
        let (samples, _) = whole(&path);
        let (rate, channels) = (sound.rate() as usize, sound.channels());
        let mut parts = Vec::new();
        // In pieces that fit no packet, from the end to the start.
        let frames = samples.len() / channels;
        let step = rate / 7;
        for from in (0..frames).step_by(step).rev() {
            let mut part = Vec::new();
            sound.read(from as u64, step, &mut part);
            parts.splice(0..0, part);
        }
        let (_, apart) = compare(&parts, &samples, 0, channels, 0);
        if parts.len() != samples.len() || apart > 0.001 {
            failures.push(format!("{}: {} of {}, apart {apart}", path.display(), parts.len(), samples.len()));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn matroska_without_cluster_sizes_is_not_exact() {
    const CLUSTER: [u8; 4] = [0x1f, 0x43, 0xb6, 0x75];
    for file in ["aac_48000.mkv", "opus_48000.webm"] {
        let mut bytes = std::fs::read(fixture(file)).unwrap();
        let at = bytes.windows(4).position(|window| window == CLUSTER).unwrap() + 4;
        // As in a live stream: a size of all ones means unknown.
        let length = bytes[at].leading_zeros() as usize + 1;
        bytes[at] = 0xff >> (length - 1);
        bytes[at + 1..at + length].fill(0xff);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, bytes).unwrap();
        let (samples, sound) = whole(&path);
        assert!(!sound.is_exact() && !samples.is_empty(), "{file}");
    }
}

#[test]
fn chained_streams_of_different_rates_are_not_exact() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chained.ogg");
    let parts = ["vorbis_44100.ogg", "vorbis_22050.ogg"];
    let bytes: Vec<u8> = parts.iter().flat_map(|part| std::fs::read(fixture(part)).unwrap()).collect();
    std::fs::write(&path, bytes).unwrap();
    let (samples, sound) = whole(&path);
    assert!(!sound.is_exact());
    let seconds = samples.len() as f64 / f64::from(sound.rate()) / sound.channels() as f64;
    assert!((seconds - 2.0).abs() < 0.05, "{seconds}");
}
