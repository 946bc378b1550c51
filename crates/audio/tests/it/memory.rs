//! Memory does not grow with a recording's length. In a process of its own,
//! since it measures that process.

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use audio::{PrepareOptions, prepare};

use crate::common::runs_in_child;

#[test]
fn half_an_hour_takes_no_more_memory_than_ten_minutes() {
    if runs_in_child("memory::half_an_hour_takes_no_more_memory_than_ten_minutes", &[]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut peaks = Vec::new();
    for minutes in [10, 30] {
        let path = folder.path().join(format!("{minutes}.wav"));
        write_silence(&path, minutes * 60);
        let recording =
            prepare(&path, &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
        assert_eq!(recording.pcm.len(), u64::from(minutes) * 60 * 16_000);
        assert!(recording.speech.is_empty());
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peaks.push(peak.and_then(|peak| peak.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0));
    }
    println!("{peaks:?} KB");
    assert!(peaks[1] - peaks[0] < 20 << 10, "{peaks:?} KB");
}

/// Silence at 8 kHz and 8 bits, as a file with a hole that takes no space.
fn write_silence(path: &Path, seconds: u32) {
    let data = 8_000 * seconds;
    let mut file = File::create(path).unwrap();
    file.write_all(b"RIFF").unwrap();
    file.write_all(&(36 + data).to_le_bytes()).unwrap();
    file.write_all(b"WAVEfmt \x10\0\0\0\x06\0\x01\0").unwrap();
    file.write_all(&8_000u32.to_le_bytes()).unwrap();
    file.write_all(&8_000u32.to_le_bytes()).unwrap();
    // A-law, whose zero bytes are a constant; the resampler and the detector see no sound in it.
    file.write_all(b"\x01\0\x08\0data").unwrap();
    file.write_all(&data.to_le_bytes()).unwrap();
    file.set_len(44 + u64::from(data)).unwrap();
}
