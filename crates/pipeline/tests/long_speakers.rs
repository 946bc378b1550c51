//! What telling speakers apart takes for long recordings, each in a process of its own, since other
//! tests allocate too. Two threads compute.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

use std::io::{BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use audio::{OpenOptions, PrepareOptions, Recording};
use candle_core::Device;
use formats::NemotronFiles;
use memory::bytes::MIB;
use memory::{Host, Probe, platform};
use pipeline::speakers::nemotron::{self, NemotronHeard, NemotronNetworks};
use pipeline::speakers::{Bounds, Diarization, Heard, Networks, diarize, listen};

/// Asks a process of these tests to measure this recording.
const ALONE: &str = "STENO_LONG_SPEAKERS";
/// An hour more of a recording may take so many bytes more: one vector per utterance is kept, and who
/// speaks at each moment.
const GROWTH: u64 = 30 * MIB;
/// Of the length of a recording, at most.
const REAL_TIME_FACTOR: f64 = 0.03;
/// Windows at a time, as many as the ladder begins with.
const WINDOWS: usize = 4;

#[derive(Debug)]
struct Taken {
    /// Most that the process held, with the holes that its allocator left.
    peak: u64,
    /// Largest allocation after any step of listening, minus the allocation after the first step.
    growth: u64,
    seconds: f64,
    speakers: usize,
}

/// A conversation of four, over and over for so many seconds.
fn recording(path: &Path, seconds: usize) {
    let conversation = random_models::corpus::bundled().join("audio/conversations/all_speakers.flac");
    let mut reader = audio::Reader::open(&conversation, &OpenOptions::default()).unwrap();
    let mut samples = Vec::new();
    while let Some(block) = reader.next_block().unwrap() {
        samples.extend(block.iter().flat_map(|sample| ((sample * 32767.0) as i16).to_le_bytes()));
    }
    let length = seconds * 32_000;
    let mut file = BufWriter::new(std::fs::File::create(path).unwrap());
    let mut header = b"RIFF".to_vec();
    header.extend((36 + length as u32).to_le_bytes());
    header.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    header.extend(16_000u32.to_le_bytes());
    header.extend(32_000u32.to_le_bytes());
    header.extend(b"\x02\0\x10\0data");
    header.extend((length as u32).to_le_bytes());
    file.write_all(&header).unwrap();
    let mut left = length;
    while left > 0 {
        let part = left.min(samples.len());
        file.write_all(&samples[..part]).unwrap();
        left -= part;
    }
    file.flush().unwrap();
}

fn taken(test: &str, seconds: usize) -> Taken {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("talk.wav");
    recording(&path, seconds);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture", "--include-ignored"])
        .envs([(ALONE, path.as_os_str()), ("RAYON_NUM_THREADS", "2".as_ref())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let figures = said.lines().find_map(|line| line.strip_prefix("taken "));
    let figures = figures.unwrap_or_else(|| panic!("{said}\n{}", String::from_utf8_lossy(&output.stderr)));
    let figures: Vec<f64> = figures.split(' ').map(|figure| figure.parse().unwrap()).collect();
    let taken = Taken {
        peak: figures[0] as u64,
        growth: figures[1] as u64,
        seconds: figures[2],
        speakers: figures[3] as usize,
    };
    println!(
        "{seconds} s: peak {} MB, {} KB more after a step, real-time factor {:.4}, {} speakers",
        taken.peak / MIB,
        taken.growth / 1024,
        taken.seconds / seconds as f64,
        taken.speakers
    );
    taken
}

/// What the process of [`taken`] does.
fn measure(path: &Path, hear: Hear) {
    platform::fix_allocator(platform::AllocatorSettings::default());
    let host = Host::new().sampled(Duration::from_millis(5));
    let options =
        PrepareOptions { spool_folder: path.parent().map(Path::to_owned), ..PrepareOptions::default() };
    let recording = audio::prepare(path, &options, &mut |_, _| ControlFlow::Continue(())).unwrap();
    platform::trim_allocator();
    host.reset_peak();
    let before = host.read().unwrap().ours.unwrap().reserved;
    let (mut first, mut most, mut steps) = (None, 0, 0);
    let started = Instant::now();
    let found = hear(&recording, &mut || {
        let allocated = host.read().unwrap().ours.unwrap().allocated;
        first.get_or_insert(allocated);
        most = most.max(allocated);
        steps += 1;
    });
    let seconds = started.elapsed().as_secs_f64();
    assert!(steps >= 10, "{steps} steps");
    let peak = host.read().unwrap().ours.unwrap().peak.unwrap() - before;
    println!("\ntaken {peak} {} {seconds} {}", most - first.unwrap(), found.voices.len());
}

/// Tells speakers apart; a step of listening is over whenever the function is called.
type Hear = fn(&Recording, &mut dyn FnMut()) -> Diarization;

const ANY: Bounds = Bounds { min: 1, max: usize::MAX };

fn with_networks_in_the_program(recording: &Recording, step: &mut dyn FnMut()) -> Diarization {
    let networks = Networks::bundled(&Device::Cpu).unwrap();
    let mut heard = Heard::default();
    let mut reached = |_, _: &Heard| {
        step();
        Ok(())
    };
    listen(&recording.pcm, &networks, WINDOWS, &mut heard, &mut reached).unwrap();
    drop(networks);
    diarize(&heard, recording.seconds(), ANY)
}

fn with_a_nemotron(recording: &Recording, step: &mut dyn FnMut()) -> Diarization {
    let folder = random_models::corpus::bundled().join("reference/speakers/nemotron/model");
    let files = NemotronFiles::find(&folder).unwrap().unwrap();
    let networks = NemotronNetworks::open(&files, &Device::Cpu).unwrap();
    let mut heard = NemotronHeard::default();
    let mut reached = |_, _: &NemotronHeard| {
        step();
        Ok(())
    };
    nemotron::listen(&recording.pcm, &networks, &mut heard, &mut reached).unwrap();
    drop(networks);
    nemotron::diarize(&heard, recording.seconds(), ANY)
}

fn is_measured(hear: Hear) -> bool {
    let path = std::env::var_os(ALONE);
    path.iter().for_each(|path| measure(Path::new(path), hear));
    path.is_some()
}

#[test]
fn a_nemotron_takes_no_more_memory_for_more_of_a_recording() {
    if is_measured(with_a_nemotron) {
        return;
    }
    let taken = taken("a_nemotron_takes_no_more_memory_for_more_of_a_recording", 450);
    assert!(taken.growth <= GROWTH * 450 / 3600 && taken.peak <= 40 * MIB, "{taken:?}");
}

#[test]
fn speakers_of_more_of_a_recording_take_no_more_memory() {
    if is_measured(with_networks_in_the_program) {
        return;
    }
    let taken = taken("speakers_of_more_of_a_recording_take_no_more_memory", 450);
    // Of several runs the peak was 49 to 70 MB: it has the holes that the allocator left.
    assert!(taken.growth <= GROWTH * 450 / 3600 && taken.peak <= 100 * MIB, "{taken:?}");
    assert_eq!(taken.speakers, 4);
}

fn check(test: &str, hours: usize) {
    let of = |minutes: usize| taken(test, 60 * minutes);
    let (short, long) = (of(10), of(60 * hours));
    assert!(long.peak <= short.peak + GROWTH * hours as u64, "{short:?} {long:?}");
    assert_eq!(long.speakers, 4);
    assert!(long.seconds <= REAL_TIME_FACTOR * 3600.0 * hours as f64, "{long:?}");
}

#[test]
#[ignore = "full corpus: make soak"]
fn speakers_of_an_hour_take_little_more_than_of_ten_minutes() {
    if !is_measured(with_networks_in_the_program) {
        check("speakers_of_an_hour_take_little_more_than_of_ten_minutes", 1);
    }
}

#[test]
#[ignore = "full corpus: make soak"]
fn speakers_of_eight_hours_are_told_apart() {
    if !is_measured(with_networks_in_the_program) {
        check("speakers_of_eight_hours_are_told_apart", 8);
    }
}
