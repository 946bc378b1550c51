//! Every codec and container: duration and waveform against what was encoded.
//! `fixtures/make.sh` made the files from `left.wav` and `right.wav`.

use crate::common::{decode, ffmpeg, fixture};
use audio::{ChannelMode, OpenOptions, Reader, probe};

struct Case {
    file: &'static str,
    codec: &'static str,
    channels: u32,
    /// Signal-to-noise ratio that the codec reaches at least, in decibels.
    decibels: f64,
    /// Samples at 16 kHz by which the end may differ.
    tolerance: usize,
    /// Most samples at 16 kHz by which the whole may be late: 16 are 1 ms.
    shift: i64,
}

const fn case(file: &'static str, codec: &'static str, channels: u32, decibels: f64) -> Case {
    Case { file, codec, channels, decibels, tolerance: 16, shift: 16 }
}

/// Containers that say nothing about delay or padding, or not to whole samples.
const fn loose(file: &'static str, codec: &'static str, channels: u32, decibels: f64, shift: i64) -> Case {
    Case { file, codec, channels, decibels, tolerance: 1600, shift }
}

const CASES: &[Case] = &[
    case("left.wav", "pcm_s16le", 1, 200.0),
    case("u8_8000.wav", "pcm_u8", 1, 20.0),
    case("s16_11025.wav", "pcm_s16le", 2, 40.0),
    case("s16_48000.wav", "pcm_s16le", 1, 40.0),
    case("s24_22050.wav", "pcm_s24le", 1, 40.0),
    case("s32_8000.wav", "pcm_s32le", 1, 40.0),
    case("f32_8000.wav", "pcm_f32le", 1, 40.0),
    case("f64_8000.wav", "pcm_f64le", 1, 40.0),
    case("alaw_8000.wav", "pcm_alaw", 2, 25.0),
    case("mulaw_11025.wav", "pcm_mulaw", 1, 25.0),
    loose("ima_adpcm_22050.wav", "adpcm_ima_wav", 1, 20.0, 16),
    loose("ms_adpcm_22050.wav", "adpcm_ms", 1, 20.0, 16),
    case("stereo_44100.flac", "flac", 2, 40.0),
    case("s24_96000.flac", "flac", 1, 40.0),
    case("flac_16000.oga", "flac", 2, 60.0),
    case("flac_48000.mkv", "flac", 1, 40.0),
    case("joint_44100.mp3", "mp3", 2, 15.0),
    case("mpeg2_22050.mp3", "mp3", 1, 15.0),
    case("mpeg25_8000.mp3", "mp3", 1, 15.0),
    loose("no_header_44100.mp3", "mp3", 1, 15.0, 700),
    loose("layer2_48000.mp2", "mp2", 1, 15.0, 700),
    loose("mp3_48000.mkv", "mp3", 1, 15.0, 700),
    case("aac_44100.m4a", "aac", 2, 15.0),
    case("aac_16000.m4a", "aac", 1, 15.0),
    case("aac_48000.mov", "aac", 1, 15.0),
    loose("aac_22050.aac", "aac", 1, 15.0, 800),
    loose("aac_48000.mkv", "aac", 1, 15.0, 400),
    loose("fragmented_44100.mp4", "aac", 1, 15.0, 400),
    case("video_44100.mp4", "aac", 1, 15.0),
    case("alac_44100.m4a", "alac", 2, 40.0),
    case("alac_16000.caf", "alac", 1, 60.0),
    case("s16_22050.caf", "pcm_s16be", 1, 40.0),
    case("s16_22050.aiff", "pcm_s16be", 2, 40.0),
    case("f32_11025.aifc", "pcm_f32be", 1, 40.0),
    case("vorbis_44100.ogg", "vorbis", 2, 12.0),
    case("vorbis_22050.ogg", "vorbis", 1, 12.0),
    loose("vorbis_48000.webm", "vorbis", 1, 12.0, 16),
    case("opus_48000.opus", "opus", 1, 10.0),
    case("opus_48000.ogg", "opus", 2, 10.0),
    loose("opus_48000.webm", "opus", 1, 10.0, 16),
    loose("opus_16000.mkv", "opus", 1, 10.0, 16),
    case("opus_48000.mp4", "opus", 1, 10.0),
];

/// These go through `ffmpeg`.
const BY_FFMPEG: &[Case] = &[
    loose("ac3_48000.ac3", "ac3", 2, 15.0, 300),
    loose("ac3_48000.mp4", "ac3", 1, 15.0, 300),
    loose("eac3_48000.mkv", "eac3", 2, 15.0, 300),
    loose("dts_48000.dts", "dts", 2, 15.0, 600),
    loose("wma_22050.wma", "wmav2", 1, 12.0, 1600),
    case("wavpack_22050.wv", "wavpack", 1, 40.0),
];

#[test]
fn every_codec_gives_duration_and_waveform() {
    check(CASES, false);
}

#[test]
fn ffmpeg_gives_duration_and_waveform() {
    ffmpeg();
    check(BY_FFMPEG, true);
}

fn check(cases: &[Case], by_ffmpeg: bool) {
    let (left, right) = (crate::common::truth("left"), crate::common::truth("right"));
    let mixed: Vec<f32> = left.iter().zip(&right).map(|(left, right)| (left + right) / 2.0).collect();
    let mut failures = Vec::new();
    for case in cases {
        let path = fixture(case.file);
        let mut check = |channels, truth: &[f32]| {
            let options = OpenOptions { channels, ..OpenOptions::default() };
            let found = decode(&path, &options);
            let (shift, decibels) = align(&found, truth, case.shift.max(16));
            let longer = found.len() as i64 - truth.len() as i64;
            println!(
                "{:22} {channels:?}: {longer:+5} samples, shift {shift:+4}, {decibels:5.1} dB",
                case.file
            );
            if longer.unsigned_abs() as usize > case.tolerance
                || shift.abs() > case.shift
                || decibels < case.decibels
            {
                failures.push(format!("{} {channels:?}: {longer:+}, {shift:+}, {decibels:.1} dB", case.file));
            }
        };
        if case.channels == 2 {
            check(ChannelMode::Mix, &mixed);
            check(ChannelMode::Left, &left);
            check(ChannelMode::Right, &right);
        } else {
            check(ChannelMode::Mix, &left);
        }
        match probe(&path) {
            Ok(info) => {
                let rate = case.file.split(['_', '.']).find_map(|part| part.parse::<u32>().ok());
                let rate = if info.codec == "opus" { 48_000 } else { rate.unwrap_or(16_000) };
                let expected = (case.codec, case.channels, rate, by_ffmpeg);
                let is = (info.codec.as_str(), info.channels, info.sample_rate, info.by_ffmpeg);
                if is != expected {
                    failures.push(format!("{}: is {is:?}, expected {expected:?}", case.file));
                }
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The shift of up to `most` samples at which `found` is most like `truth`
/// (positive: late), and the signal-to-noise ratio there in decibels.
fn align(found: &[f32], truth: &[f32], most: i64) -> (i64, f64) {
    // One sample in thirteen tells shifts apart as well as all of them do.
    let at = |shift: i64, step: usize| {
        let (mut signal, mut noise) = (0.0, 0.0);
        for (i, truth) in truth.iter().enumerate().step_by(step) {
            let found =
                usize::try_from(i as i64 + shift).ok().and_then(|i| found.get(i)).copied().unwrap_or(0.0);
            signal += f64::from(truth * truth);
            noise += f64::from((truth - found) * (truth - found));
        }
        10.0 * (signal / noise.max(1e-30)).log10()
    };
    let best = (-most..=most).max_by(|a, b| at(*a, 13).total_cmp(&at(*b, 13))).unwrap();
    (best, at(best, 1))
}
#[test]
fn many_channels_mix_without_the_low_frequency_one() {
    let (left, right) = (crate::common::truth("left"), crate::common::truth("right"));
    for (file, native) in [("six_8000.wav", true), ("six_48000.opus", false)] {
        if !native {
            ffmpeg();
        }
        let path = fixture(file);
        let info = probe(&path).unwrap();
        assert_eq!((info.channels, info.by_ffmpeg), (6, !native));
        // Front left is the one voice, front right the other, the rest is the first again.
        for (channel, truth) in [(0, &left), (1, &right), (2, &left)] {
            let options = OpenOptions { channels: ChannelMode::Index(channel), ..OpenOptions::default() };
            let (shift, decibels) = align(&decode(&path, &options), truth, 16);
            assert!(decibels > 8.0 && shift.abs() <= 16, "{file}, {channel}: {shift:+}, {decibels:.1} dB");
        }
        let share = if native { [4.0 / 5.0, 1.0 / 5.0] } else { [5.0 / 6.0, 1.0 / 6.0] };
        let mixed: Vec<f32> = left.iter().zip(&right).map(|(l, r)| share[0] * l + share[1] * r).collect();
        let (shift, decibels) = align(&decode(&path, &OpenOptions::default()), &mixed, 16);
        assert!(decibels > 8.0 && shift.abs() <= 16, "{file}: {shift:+}, {decibels:.1} dB");
    }
}

#[test]
fn the_default_track_is_taken_or_another_by_choice() {
    let (left, right) = (crate::common::truth("left"), crate::common::truth("right"));
    for (file, default, tracks) in
        [("two_tracks_24000.mkv", 1, ["eng", "deu"]), ("two_tracks_24000.m4a", 0, ["", ""])]
    {
        let path = fixture(file);
        let info = probe(&path).unwrap();
        assert_eq!(info.track, default, "{file}");
        let languages: Vec<&str> =
            info.tracks.iter().map(|track| track.language.as_deref().unwrap_or("")).collect();
        if tracks[0].is_empty() {
            assert_eq!(languages.len(), 2);
        } else {
            assert_eq!(languages, tracks, "{file}");
        }
        for (track, truth) in [(None, [&left, &right][default]), (Some(0), &left), (Some(1), &right)] {
            let options = OpenOptions { track, ..OpenOptions::default() };
            let (_, decibels) = align(&decode(&path, &options), truth, 16);
            assert!(decibels > 12.0, "{file}, {track:?}: {decibels:.1} dB");
        }
    }
}

/// Times are those of the video: sound that starts late follows silence.
#[test]
fn sound_that_starts_late_keeps_its_time() {
    let mut truth = vec![0.0; 8_000];
    truth.extend(crate::common::truth("left"));
    for file in ["late_44100.mp4", "late_16000.mkv"] {
        let (shift, decibels) = align(&decode(&fixture(file), &OpenOptions::default()), &truth, 400);
        assert!(shift.abs() <= 16 && decibels > 12.0, "{file}: {shift:+}, {decibels:.1} dB");
    }
}

#[test]
fn chained_streams_are_played_through() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (crate::common::truth("left"), crate::common::truth("right"));
    let mixed: Vec<f32> = left.iter().zip(&right).map(|(left, right)| (left + right) / 2.0).collect();
    for (name, parts, truth) in [
        ("opus.ogg", ["opus_48000.opus", "opus_48000.opus"], [&left, &left]),
        // Rate and channels change on the way.
        ("vorbis.ogg", ["vorbis_44100.ogg", "vorbis_22050.ogg"], [&mixed, &left]),
        ("twice.mp3", ["no_header_44100.mp3", "no_header_44100.mp3"], [&left, &left]),
    ] {
        let path = folder.path().join(name);
        let bytes: Vec<u8> = parts.iter().flat_map(|part| std::fs::read(fixture(part)).unwrap()).collect();
        std::fs::write(&path, bytes).unwrap();
        let found = decode(&path, &OpenOptions::default());
        let half = found.len() / 2;
        for (part, truth) in [&found[..half], &found[half..]].iter().zip(truth) {
            let (_, decibels) = align(part, truth, 800);
            assert!(decibels > 8.0, "{name}: {decibels:.1} dB");
        }
        assert!((found.len() as f64 / 32_000.0 - 1.0).abs() < 0.05, "{name}: {} samples", found.len());
    }
}

#[test]
fn a_wave_file_of_unknown_length_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("piped.wav");
    let mut bytes = std::fs::read(fixture("left.wav")).unwrap();
    bytes[4..8].fill(0xff);
    bytes[40..44].fill(0xff);
    std::fs::write(&path, bytes).unwrap();
    let mut reader = Reader::open(&path, &OpenOptions::default()).unwrap();
    let mut samples = 0;
    while let Some(block) = reader.next_block().unwrap() {
        samples += block.len();
    }
    assert_eq!(samples, 16_000);
    assert!(reader.warnings().is_empty(), "{:?}", reader.warnings());
}
