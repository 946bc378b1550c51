//! Voice activity against the true speech of recordings.

use std::ops::ControlFlow;
use std::path::Path;

use audio::{OpenOptions, PrepareOptions};
use random_models::corpus;

use crate::common::{decode, write_wav};

/// No stretch of speech longer than this may be missed, in seconds.
const LONGEST_MISS: f64 = 0.5;

#[test]
fn speech_is_kept() {
    check_speech_is_kept(&corpus::bundled(), &["synthetic"]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn speech_is_kept_in_the_full_corpus() {
    check_speech_is_kept(&corpus::full(), &["conversations", "synthetic"]);
}

fn check_speech_is_kept(corpus: &Path, folders: &[&str]) {
    let mut failures = Vec::new();
    println!("{:32} {:>8} {:>8} {:>8} {:>16}", "", "speech s", "kept %", "miss s", "rest kept s");
    let mut files: Vec<_> = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(corpus.join("audio").join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "flac"))
        .collect();
    files.sort();
    for path in files {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let score = score(&path, &truth(&path));
        println!("{name:32} {score}");
        let least = if name.contains("noisy") || name.contains("quiet") { 97.0 } else { 99.0 };
        let noise = name.starts_with("no_speech") && score.rest_kept > 0.1 * score.rest;
        if score.kept < least || score.longest_miss > LONGEST_MISS || noise {
            failures.push(format!("{name}: {score}"));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// Far below what any recorder makes of speech.
#[test]
fn speech_is_kept_in_very_quiet_recordings() {
    check_quiet_speech_is_kept(&corpus::bundled(), &["synthetic/mixed_languages"]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn speech_is_kept_in_very_quiet_recordings_of_the_full_corpus() {
    check_quiet_speech_is_kept(&corpus::full(), &["conversations/two_speakers", "synthetic/mixed_languages"]);
}

fn check_quiet_speech_is_kept(corpus: &Path, names: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        let path = corpus.join("audio").join(name).with_extension("flac");
        for decibels in [-30.0f32, -50.0] {
            let gain = 10f32.powf(decibels / 20.0);
            let quiet: Vec<f32> = decode(&path, &OpenOptions::default()).iter().map(|x| x * gain).collect();
            let file = folder.path().join("quiet.wav");
            write_wav(&file, 1, &quiet);
            let score = score(&file, &truth(&path));
            println!("{name:32} {decibels} dB {score}");
            assert!(
                score.kept >= 97.0 && score.longest_miss <= LONGEST_MISS,
                "{name}, {decibels} dB: {score}"
            );
        }
    }
}

/// How much of the true speech was found, in seconds unless noted otherwise.
struct Score {
    speech: f64,
    /// Percent.
    kept: f64,
    longest_miss: f64,
    rest: f64,
    rest_kept: f64,
}

impl std::fmt::Display for Score {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { speech, kept, longest_miss, rest, rest_kept } = self;
        write!(f, "{speech:8.2} {kept:8.2} {longest_miss:8.2} {rest_kept:6.2} of {rest:6.2}")
    }
}

fn score(path: &Path, truth: &[(f64, f64)]) -> Score {
    let recording =
        audio::prepare(path, &PrepareOptions::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
    let milliseconds = (recording.seconds() * 1000.0) as usize;
    let mark = |spans: &[(f64, f64)]| {
        let mut marks = vec![false; milliseconds];
        let at = |seconds: f64| ((seconds * 1000.0) as usize).min(milliseconds);
        spans.iter().for_each(|(start, end)| marks[at(*start)..at(*end)].fill(true));
        marks
    };
    let found: Vec<_> =
        recording.speech.iter().map(|r| (r.start as f64 / 16e3, r.end as f64 / 16e3)).collect();
    let (speech, found) = (mark(truth), mark(&found));
    let count = |wanted: fn(bool, bool) -> bool| {
        speech.iter().zip(&found).filter(|(speech, found)| wanted(**speech, **found)).count() as f64 / 1000.0
    };
    let seconds = count(|speech, _| speech);
    let kept = count(|speech, found| speech && found);
    Score {
        speech: seconds,
        kept: if seconds > 0.0 { 100.0 * kept / seconds } else { 100.0 },
        longest_miss: longest(speech.iter().zip(&found).map(|(speech, found)| *speech && !found)),
        rest: count(|speech, _| !speech),
        rest_kept: count(|speech, found| !speech && found),
    }
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
