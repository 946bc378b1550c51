//! Texts turned into vectors by the real engine, with tiny random models.

use std::path::{Path, PathBuf};

use memory::settings::MemorySettings;
use supervisor::{Embedder, EmbedderSettings, EmbeddingModel};
use wire::{ErrorCode, TextRole};

use crate::support::{is_running, options, real_engine};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding")
}

fn model(name: &str) -> EmbeddingModel {
    EmbeddingModel { folder: folder().join(name), name: name.into(), version: "1".into(), dimensions: 32 }
}

async fn start(name: &str, settings: EmbedderSettings) -> Embedder {
    Embedder::start(options(real_engine()), &model(name), settings).await.unwrap()
}

/// Texts of this role with what sentence-transformers makes of them.
fn golden(name: &str, role: &str) -> (Vec<String>, Vec<Vec<f32>>) {
    let all: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder().join("golden.json")).unwrap()).unwrap();
    let wanted = all.as_array().unwrap().iter().filter(|one| one["model"] == name && one["role"] == role);
    wanted
        .map(|one| {
            let vector = serde_json::from_value(one["vector"].clone()).unwrap();
            (one["text"].as_str().unwrap().to_owned(), vector)
        })
        .unzip()
}

#[track_caller]
fn assert_near(found: &[Vec<f32>], expected: &[Vec<f32>]) {
    assert_eq!(found.len(), expected.len());
    for (text, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5), "text {text}: {a:?} for {b:?}");
    }
}

#[tokio::test]
async fn questions_and_passages_become_the_vectors_of_sentence_transformers() {
    for name in ["tiny-bert", "tiny-xlm-roberta"] {
        let mut embedder = start(name, EmbedderSettings::default()).await;
        for (role, word) in [(TextRole::Passage, "passage"), (TextRole::Query, "query")] {
            let (texts, expected) = golden(name, word);
            assert_near(&embedder.embed(role, texts).await.unwrap(), &expected);
        }
        assert_eq!(embedder.embed(TextRole::Query, vec![]).await.unwrap(), Vec::<Vec<f32>>::new());
        let pid = embedder.engine_pid().unwrap();
        embedder.shut_down().await;
        assert!(!is_running(pid));
    }
}

#[tokio::test]
async fn an_engine_that_dies_is_replaced_and_nothing_is_missing() {
    let (texts, expected) = golden("tiny-bert", "passage");
    let mut embedder = start("tiny-bert", EmbedderSettings::default()).await;
    for _ in 0..2 {
        let pid = embedder.engine_pid().unwrap();
        let kill = |signal| assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
        // It takes the texts and does nothing with them before it dies.
        kill(libc::SIGSTOP);
        let (vectors, ()) = tokio::join!(embedder.embed(TextRole::Passage, texts.clone()), async {
            tokio::task::yield_now().await;
            kill(libc::SIGKILL);
        });
        assert_near(&vectors.unwrap(), &expected);
        assert_ne!(embedder.engine_pid(), Some(pid));
    }
    embedder.shut_down().await;
}

#[tokio::test]
async fn what_can_not_be_embedded_is_told_with_a_code() {
    let limit = |limit| MemorySettings { memory_limit: Some(limit), ..MemorySettings::default() };
    let none = EmbeddingModel { folder: "/nowhere".into(), ..model("tiny-bert") };
    let speech = EmbeddingModel { folder: crate::support::starter(), ..model("tiny-bert") };
    let other = EmbeddingModel { dimensions: 64, ..model("tiny-bert") };
    for (model, memory, code) in [
        (none, MemorySettings::default(), ErrorCode::ModelNotFound),
        (speech, MemorySettings::default(), ErrorCode::ModelUnsupported),
        (other, MemorySettings::default(), ErrorCode::ModelInvalid),
        (model("tiny-bert"), limit(1 << 12), ErrorCode::OutOfMemory),
    ] {
        let settings = EmbedderSettings { memory, ..EmbedderSettings::default() };
        let mut embedder = Embedder::start(options(real_engine()), &model, settings).await.unwrap();
        let failure = embedder.embed(TextRole::Passage, vec!["a".into()]).await.unwrap_err();
        assert_eq!(failure.code, code, "{failure}");
    }
}

#[tokio::test]
async fn more_texts_than_an_engine_is_sent_at_once_keep_their_order() {
    let (texts, expected) = golden("tiny-bert", "passage");
    let mut embedder = start("tiny-bert", EmbedderSettings::default()).await;
    let many = |count| -> Vec<usize> { (0..texts.len()).cycle().take(count).collect() };
    let vectors = embedder.embed(TextRole::Passage, many(5000).iter().map(|n| texts[*n].clone()).collect());
    let wanted: Vec<Vec<f32>> = many(5000).iter().map(|n| expected[*n].clone()).collect();
    assert_near(&vectors.await.unwrap(), &wanted);
    embedder.shut_down().await;
}

#[tokio::test]
async fn work_that_nobody_waits_for_is_cancelled() {
    let (texts, expected) = golden("tiny-bert", "passage");
    let mut embedder = start("tiny-bert", EmbedderSettings::default()).await;
    let many: Vec<String> = texts.iter().cycle().take(200_000).cloned().collect();
    let pid = embedder.engine_pid();
    tokio::select! {
        biased;
        _ = embedder.embed(TextRole::Passage, many) => panic!("200,000 texts at once"),
        () = tokio::time::sleep(std::time::Duration::from_millis(50)) => {}
    }
    // The same engine takes the next texts.
    assert_near(&embedder.embed(TextRole::Passage, texts).await.unwrap(), &expected);
    assert_eq!(embedder.engine_pid(), pid);
    embedder.shut_down().await;
}
