//! Vectors of texts against sentence-transformers', on tiny random models
//! (tests/data/embedding/make.py).

use std::path::{Path, PathBuf};

use candle_core::Device;
use formats::{Pooling, TextArchitecture, TextEmbeddingModel};
use memory::Precision;
use models::Error;
use models::text_embedding::TextEmbedder;
use serde::Deserialize;

#[derive(Deserialize)]
struct Answer {
    model: String,
    role: String,
    text: String,
    vector: Vec<f32>,
}

fn folder(model: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding").join(model)
}

fn load(folder: &Path, precision: Precision) -> Result<TextEmbedder, Error> {
    let model = TextEmbeddingModel::find(folder)?.unwrap();
    TextEmbedder::load(&model, &Device::Cpu, precision, &|| true)
}

fn golden(model: &str) -> Vec<Answer> {
    let all: Vec<Answer> = serde_json::from_slice(&std::fs::read(folder("golden.json")).unwrap()).unwrap();
    all.into_iter().filter(|answer| answer.model == model).collect()
}

fn tokens(embedder: &TextEmbedder, answers: &[Answer]) -> Vec<Vec<u32>> {
    let prompt = |answer: &Answer| match answer.role.as_str() {
        "query" => embedder.config().query_prompt.clone(),
        _ => embedder.config().passage_prompt.clone(),
    };
    answers.iter().map(|answer| embedder.tokens(&prompt(answer), &answer.text).unwrap()).collect()
}

/// Lowest cosine and largest difference of a number.
fn compare(vectors: &[Vec<f32>], answers: &[Answer]) -> (f32, f32) {
    let pairs = || vectors.iter().zip(answers).map(|(ours, answer)| (ours, &answer.vector));
    let cosine = |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let difference =
        |(a, b): (&Vec<f32>, &Vec<f32>)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, largest);
    (pairs().map(cosine).fold(1.0, f32::min), pairs().map(difference).fold(0.0, largest))
}

/// Also of what is no number, which `f32::max` passes over.
fn largest(a: f32, b: f32) -> f32 {
    if b.is_nan() { f32::INFINITY } else { a.max(b) }
}

#[test]
fn vectors_are_those_of_sentence_transformers() {
    for (model, precision, lowest, most) in [
        ("tiny-bert", Precision::F32, 0.99999, 1e-5),
        ("tiny-xlm-roberta", Precision::F32, 0.99999, 1e-5),
        ("tiny-bert", Precision::F16, 0.9999, 1e-2),
        ("tiny-xlm-roberta", Precision::F16, 0.9999, 1e-2),
        ("tiny-bert", Precision::Bf16, 0.999, 5e-2),
        ("tiny-bert", Precision::Q8_0, 0.999, 5e-2),
        ("tiny-xlm-roberta", Precision::Q8_0, 0.999, 5e-2),
    ] {
        let embedder = load(&folder(model), precision).unwrap();
        assert_eq!(embedder.precision(), precision);
        let answers = golden(model);
        let tokens = tokens(&embedder, &answers);
        let alone: Vec<Vec<f32>> = tokens
            .iter()
            .map(|text| embedder.embed(&[text.as_slice()], &|| true).unwrap().remove(0))
            .collect();
        let (cosine, difference) = compare(&alone, &answers);
        println!("{model} {precision}: cosine from {cosine:.7}, difference up to {difference:.1e}");
        assert!(cosine > lowest && difference < most, "{model} {precision}: {cosine} {difference}");

        // Beside others, longer and shorter, in one batch.
        let all: Vec<&[u32]> = tokens.iter().map(Vec::as_slice).collect();
        let together = embedder.embed(&all, &|| true).unwrap();
        for (text, (a, b)) in alone.iter().zip(&together).enumerate() {
            let apart = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, largest);
            assert!(apart < 1e-5, "{model} {precision}, text {text}: {apart} in a batch");
        }
    }
}

#[test]
fn a_model_is_described_by_its_own_files() {
    let bert = TextEmbeddingModel::find(&folder("tiny-bert")).unwrap().unwrap();
    assert_eq!(
        (bert.config.architecture, bert.config.pooling, bert.config.max_tokens),
        (TextArchitecture::Bert, Pooling::Mean, 40)
    );
    let roberta = TextEmbeddingModel::find(&folder("tiny-xlm-roberta")).unwrap().unwrap();
    assert_eq!(
        (roberta.config.architecture, roberta.config.pooling, roberta.config.query_prompt.as_str()),
        (TextArchitecture::XlmRoberta, Pooling::FirstToken, "query: ")
    );
    for model in [&bert, &roberta] {
        let tensors = model.tensors().unwrap();
        let weights: usize =
            tensors.index.values().map(|tensor| tensor.shape.iter().product::<usize>()).sum();
        assert_eq!(model.sizes().weights, weights as u64, "every weight is counted");
    }
    assert!(!bert.sizes().sentencepiece && roberta.sizes().sentencepiece);
}

#[test]
fn a_text_is_cut_where_the_model_ends() {
    let embedder = load(&folder("tiny-bert"), Precision::F32).unwrap();
    let long = embedder.tokens("", &"boat ".repeat(500)).unwrap();
    assert_eq!(long.len(), embedder.config().max_tokens);
    assert!(embedder.tokens("", "").unwrap().len() <= 2);
}

#[test]
fn a_checkpoint_of_torch_is_the_same_model() {
    let copy = tempfile::tempdir().unwrap();
    for file in ["config.json", "tokenizer.json"] {
        std::fs::copy(folder("tiny-bert").join(file), copy.path().join(file)).unwrap();
    }
    std::fs::copy(folder("pytorch_model.bin"), copy.path().join("pytorch_model.bin")).unwrap();
    let embedder = load(copy.path(), Precision::F32).unwrap();
    let answers = golden("tiny-bert");
    let tokens = tokens(&embedder, &answers);
    let tokens: Vec<&[u32]> = tokens.iter().map(Vec::as_slice).collect();
    // Without the folder's other files texts are longer before they are cut.
    let whole: Vec<usize> = (0..answers.len()).filter(|text| tokens[*text].len() < 40).collect();
    let vectors =
        embedder.embed(&whole.iter().map(|text| tokens[*text]).collect::<Vec<_>>(), &|| true).unwrap();
    for (text, vector) in whole.into_iter().zip(vectors) {
        let apart = vector.iter().zip(&answers[text].vector).map(|(a, b)| (a - b).abs()).fold(0.0, largest);
        assert!(apart < 1e-5, "text {text}: {apart}");
    }
}

#[test]
fn what_is_not_whole_is_named() {
    let copied = |change: &dyn Fn(&Path)| {
        let copy = tempfile::tempdir().unwrap();
        for file in ["config.json", "tokenizer.json", "model.safetensors"] {
            std::fs::copy(folder("tiny-bert").join(file), copy.path().join(file)).unwrap();
        }
        change(copy.path());
        load(copy.path(), Precision::F32).unwrap_err().to_string()
    };
    let change = |file: &'static str, from: &'static str, to: &'static str| {
        move |folder: &Path| {
            let text = std::fs::read_to_string(folder.join(file)).unwrap();
            assert!(text.contains(from));
            std::fs::write(folder.join(file), text.replace(from, to)).unwrap();
        }
    };
    let cut = |folder: &Path| {
        let file = std::fs::OpenOptions::new().write(true).open(folder.join("model.safetensors")).unwrap();
        file.set_len(50_000).unwrap();
    };
    for (error, part) in [
        (
            copied(&change("config.json", "\"intermediate_size\": 64", "\"intermediate_size\": 96")),
            "config.json asks",
        ),
        (
            copied(&change("config.json", "\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3")),
            "is missing",
        ),
        (copied(&change("tokenizer.json", "{", "[")), "tokenizer.json"),
        (copied(&cut), "model.safetensors"),
    ] {
        assert!(error.contains(part), "{error}");
    }
    let model = TextEmbeddingModel::find(&folder("tiny-bert")).unwrap().unwrap();
    let stopped = TextEmbedder::load(&model, &Device::Cpu, Precision::F32, &|| false);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let embedder = load(&folder("tiny-bert"), Precision::F32).unwrap();
    let calls = std::cell::Cell::new(0);
    let stopped = embedder.embed(&[&[2, 5, 3]], &|| calls.replace(calls.get() + 1) < 2);
    assert!(matches!(stopped, Err(Error::Interrupted)), "between two layers");
}
