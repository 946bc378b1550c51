//! Voice activity against the true speech of recordings.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::ops::ControlFlow;
use std::path::Path;

use audio::PrepareOptions;
use common::shared;

/// No stretch of speech longer than this may be missed, in seconds.
const LONGEST_MISS: f64 = 0.5;

#[test]
fn speech_is_kept() {
    let Some(shared) = shared() else { return };
    let mut failures = Vec::new();
    println!("{:32} {:>8} {:>8} {:>8} {:>10}", "", "speech s", "kept %", "gap s", "rest kept");
    let mut files: Vec<_> = ["conversations", "synthetic"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(shared.join("audio").join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "flac"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let truth = truth(&path);
        let recording =
            audio::prepare(&path, &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
        let frames = (recording.seconds() * 1000.0) as usize;
        let mark = |spans: &[(f64, f64)]| {
            let mut marks = vec![false; frames];
            for (start, end) in spans {
                marks[((start * 1000.0) as usize).min(frames)..((end * 1000.0) as usize).min(frames)]
                    .fill(true);
            }
            marks
        };
        let found: Vec<_> =
            recording.speech.iter().map(|r| (r.start as f64 / 16e3, r.end as f64 / 16e3)).collect();
        let (speech, found) = (mark(&truth), mark(&found));
        let count = |wanted: fn(bool, bool) -> bool| {
            speech.iter().zip(&found).filter(|(speech, found)| wanted(**speech, **found)).count() as f64
                / 1000.0
        };
        let seconds = count(|speech, _| speech);
        let kept =
            if seconds > 0.0 { 100.0 * count(|speech, found| speech && found) / seconds } else { 100.0 };
        let silence = count(|speech, _| !speech);
        let rest = count(|speech, found| !speech && found);
        let miss = longest(speech.iter().zip(&found).map(|(speech, found)| *speech && !found));
        println!("{name:32} {seconds:8.2} {kept:8.2} {miss:8.2} {rest:5.2} of {silence:5.2}");
        let least = if name.contains("noisy") || name.contains("quiet") { 97.0 } else { 99.0 };
        if kept < least || miss > LONGEST_MISS {
            failures.push(format!("{name}: {kept:.2} % kept, {miss:.2} s missed in a row"));
        }
        if name.starts_with("no_speech") && rest > 0.1 * silence {
            failures.push(format!("{name}: {rest:.1} s of {silence:.1} s taken for speech"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

fn longest(marks: impl Iterator<Item = bool>) -> f64 {
    let (mut longest, mut run) = (0, 0);
    for mark in marks {
        run = if mark { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    f64::from(longest) / 1000.0
}

/// True speech in seconds, from NAME.rttm or NAME.json.
fn truth(path: &Path) -> Vec<(f64, f64)> {
    if let Ok(text) = std::fs::read_to_string(path.with_extension("rttm")) {
        return text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|fields| fields.len() > 4 && fields[0] == "SPEAKER")
            .map(|fields| (fields[3].parse::<f64>().unwrap(), fields[4].parse::<f64>().unwrap()))
            .map(|(start, length)| (start, start + length))
            .collect();
    }
    let text = std::fs::read_to_string(path.with_extension("json")).unwrap();
    let truth: serde_json::Value = serde_json::from_str(&text).unwrap();
    truth["segments"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|segment| (segment["start"].as_f64().unwrap(), segment["end"].as_f64().unwrap()))
        .collect()
}
