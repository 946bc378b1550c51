//! Truncated and bit-flipped files: an error or a shorter result, never a
//! panic, never much memory. In a process of its own, since it measures that
//! process and has to do without `ffmpeg`.

use std::path::Path;

use crate::common::{fixture, runs_in_child};
use audio::{AudioError, OpenOptions, Reader, Warning};

/// More than this above what undamaged files take is too much, in kilobytes.
const MEMORY_KILOBYTES: u64 = 200 << 10;

#[test]
fn damaged_files_give_an_error_or_a_shorter_result() {
    let name = "damage::damaged_files_give_an_error_or_a_shorter_result";
    if runs_in_child(name, &[("STENO_FFMPEG", "none")]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut files: Vec<_> =
        std::fs::read_dir(fixture("")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension != "sh"));
    files.sort();
    assert!(files.len() > 50);
    for path in &files {
        let _ = read(path);
    }
    let usual = memory_high_water();

    // More of them to search for faults: STENO_DAMAGE_ROUNDS=1000.
    let rounds =
        std::env::var("STENO_DAMAGE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12);
    let mut results = [0; 3];
    let mut failures = Vec::new();
    for path in &files {
        let whole = read(path);
        let bytes = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let mut try_damaged = |what: String, bytes: &[u8], must_warn: bool| {
            let damaged = folder.path().join(name);
            std::fs::write(&damaged, bytes).unwrap();
            println!("{what}");
            match (read(&damaged), &whole) {
                (Err(error), _) => {
                    results[0] += 1;
                    if !error.to_string().contains(name) {
                        failures.push(format!("{what}: the error names no file: {error}"));
                    }
                }
                (Ok((_, _)), Err(error)) => {
                    failures.push(format!("{what}: decodes, the whole does not: {error}"))
                }
                (Ok((seconds, warnings)), Ok((whole, _))) => {
                    results[1 + usize::from(warnings.is_empty())] += 1;
                    if seconds > whole + 0.25 && must_warn {
                        failures.push(format!("{what}: {seconds} s of {whole} s"));
                    }
                    let truncated = warnings.iter().find_map(|warning| match warning {
                        Warning::Truncated { decoded, .. } => Some(*decoded),
                        _ => None,
                    });
                    // No sound at all is told by what comes after.
                    if must_warn && seconds > 0.0 && seconds + 0.15 < *whole && truncated.is_none() {
                        failures.push(format!("{what}: {seconds} s of {whole} s without a warning"));
                    }
                    if let Some(at) = truncated
                        && (at - seconds).abs() > 0.1
                    {
                        failures.push(format!("{what}: ends at {seconds} s, says {at:?}"));
                    }
                }
            }
        };
        for percent in [5, 30, 60, 90] {
            let cut = &bytes[..bytes.len() * percent / 100];
            // Frames without a header that counts them: their end is as good as any other.
            let countless = ["aac_22050.aac", "no_header_44100.mp3", "layer2_48000.mp2"].contains(&name);
            try_damaged(format!("{name}, {percent} %"), cut, !countless);
        }
        let mut random = Random(bytes.len() as u64);
        for round in 0..rounds {
            let mut flipped = bytes.clone();
            // Some damage anywhere, some in the header, where sizes are.
            let reach = if round % 2 == 0 { bytes.len() } else { bytes.len().min(600) };
            for _ in 0..1 << (round / 3 % 4) {
                let at = random.below(reach);
                flipped[at] ^= 1 << random.below(8);
            }
            try_damaged(format!("{name}, flips {round}"), &flipped, false);
        }
    }
    let [errors, warned, quiet] = results;
    let more = memory_high_water().saturating_sub(usual);
    println!("{errors} errors, {warned} with a warning, {quiet} without; {} MB more memory", more >> 10);
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(warned > 100, "{warned}");
    assert!(more < MEMORY_KILOBYTES, "{more} KB");
}

fn read(path: &Path) -> Result<(f64, Vec<Warning>), AudioError> {
    let mut reader = Reader::open(path, &OpenOptions::default())?;
    let mut samples = 0;
    while let Some(block) = reader.next_block()? {
        assert!(block.iter().all(|sample| sample.is_finite()));
        samples += block.len();
        assert!(samples < 16_000 * 60 * 60, "an hour of sound out of a small file");
    }
    Ok((samples as f64 / 16_000.0, reader.warnings().to_vec()))
}

/// Peak resident memory of this process in kilobytes; 0 where it is not told.
fn memory_high_water() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Knuth's MMIX generator: the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
