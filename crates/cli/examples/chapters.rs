//! How well chapters are found, with a real model, in the talks of scripts/chapters/generate.py, whose subjects
//! change at known places: how many changes are found within 15 seconds, how many chapters begin elsewhere, and
//! Pk (Beeferman et al. 1999): how often two segments, half a chapter apart, are wrongly in one or in two.
//!
//! usage: scripts/chapters/generate.py |
//!     STENO_ENGINE=target/debug/steno-engine cargo run -p steno --example chapters -- FOLDER_OF_A_MODEL

use std::path::PathBuf;

use advisor::ModelRef;
use anyhow::Context;
use serde::Deserialize;
use supervisor::meanings::Meanings;
use supervisor::{EmbedderSettings, EngineOptions};
use transcript::chapters::{Block, THRESHOLD, blocks, boundaries, find};
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript};
use wire::TextRole;

/// So near to a change a chapter begins that has found it.
const NEAR: Time = Time::from_millis(15_000);

#[derive(Deserialize)]
struct Set {
    talks: Vec<Talk>,
}

#[derive(Deserialize)]
struct Talk {
    subjects: Vec<String>,
    /// Numbers of the segments with which the subjects begin.
    begins: Vec<usize>,
    segments: Vec<Segment>,
}

#[derive(Default)]
struct Found {
    changes: usize,
    found: usize,
    chapters: usize,
    right: usize,
    pairs: usize,
    wrong: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path: PathBuf = std::env::args_os().nth(1).context("Which folder has the model?")?.into();
    let installed = ModelRef { name: "model".into(), path, demonstration: false, note: None };
    let model =
        advisor::embedding::choose(&[installed], false, None).context("There is no model for meaning.")?;
    let set: Set =
        serde_json::from_reader(std::io::stdin()).context("The talks are read from the standard input.")?;
    let (meanings, settings) = (Meanings::new(EngineOptions::default()), EmbedderSettings::default());
    let mut read = Vec::new();
    for talk in set.talks {
        let transcript = transcript(&talk)?;
        let blocks = blocks(&transcript);
        let texts = blocks.iter().map(|block| block.text.clone()).collect();
        let vectors = meanings.embed(&model, &settings, TextRole::Passage, texts).await?;
        read.push((talk, transcript, blocks, vectors));
    }
    meanings.rest().await;

    for (talk, transcript, blocks, vectors) in read.iter().take(3) {
        let titles: Vec<_> =
            find(transcript, blocks, vectors).into_iter().map(|chapter| chapter.title).collect();
        println!("{}: {}", talk.subjects.join(", "), titles.join(" | "));
    }
    println!("threshold | changes | found within 15 s | chapters that begin elsewhere | Pk");
    for threshold in [0.0, 0.05, 0.08, THRESHOLD, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0] {
        let mut all = Found::default();
        for (talk, _, blocks, vectors) in &read {
            let found = boundaries(blocks, vectors, threshold);
            let found: Vec<usize> = found.into_iter().map(|at| blocks[at].segments.start).collect();
            count(&mut all, talk, &found);
        }
        print(&format!("{threshold}"), &all);
    }
    let (mut none, mut even) = (Found::default(), Found::default());
    for (talk, _, blocks, _) in &read {
        count(&mut none, talk, &[]);
        count(&mut even, talk, &every_four_minutes(blocks));
    }
    print("no chapters", &none);
    print("one every four minutes", &even);
    Ok(())
}

fn print(name: &str, all: &Found) {
    let pk = all.wrong as f64 / all.pairs as f64;
    println!("{name} | {} | {} | {} | {pk:.3}", all.changes, all.found, all.chapters - all.right);
}

fn every_four_minutes(blocks: &[Block]) -> Vec<usize> {
    let minute = |block: &Block| block.span.start.millis() / 240_000;
    let next = blocks.windows(2).filter(|pair| minute(&pair[0]) < minute(&pair[1]));
    next.map(|pair| pair[1].segments.start).collect()
}

/// `found`: the segments with which chapters begin, but the first.
fn count(all: &mut Found, talk: &Talk, found: &[usize]) {
    let start = |at: &usize| talk.segments[*at].start;
    let is_near =
        |a: &usize, b: &usize| start(a).max(start(b)).saturating_sub(start(a).min(start(b))) <= NEAR;
    let changes = &talk.begins[1..];
    all.changes += changes.len();
    all.found += changes.iter().filter(|change| found.iter().any(|one| is_near(one, change))).count();
    all.chapters += found.len();
    all.right += found.iter().filter(|one| changes.iter().any(|change| is_near(one, change))).count();
    let apart = talk.segments.len() / talk.begins.len() / 2;
    let part = |begins: &[usize], at: usize| begins.iter().filter(|begin| **begin <= at).count();
    for at in 0..talk.segments.len() - apart {
        let is_one = |begins: &[usize]| part(begins, at) == part(begins, at + apart);
        all.pairs += 1;
        all.wrong += usize::from(is_one(changes) != is_one(found));
    }
}

fn transcript(talk: &Talk) -> anyhow::Result<Transcript> {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 0, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    Ok(Transcript { segments: talk.segments.clone(), ..Transcript::from_json(json.as_bytes())? })
}
