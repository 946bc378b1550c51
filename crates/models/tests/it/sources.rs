//! Models from GGUF and whisper.cpp files compute the same as from safetensors.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use memory::Precision;
use models::whisper::{Whisper, WhisperConfig};
use models::{Error, Weights, quantise, stored_precision};
use random_models::{Options, Size, corpus, write};

fn load(path: &Path, precision: Precision) -> Whisper {
    Whisper::load(path, &Device::Cpu, precision, &|| true).unwrap()
}

/// The logits of one window and a few tokens.
fn logits(model: &Whisper, mel: &Tensor) -> Tensor {
    let audio = model.encoder.forward(mel, &|| true).unwrap();
    let mut state = model.decoder.start(&audio, 1, 8).unwrap();
    let hidden = model.decoder.forward(&[40, 50, 60, 70], &mut state, None, &|| true).unwrap();
    model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap()
}

/// The tokens of greedy search.
fn greedy(model: &Whisper, mel: &Tensor) -> Vec<u32> {
    const MAX_TOKENS: usize = 60;
    let vocabulary = &model.vocabulary;
    let audio = model.encoder.forward(mel, &|| true).unwrap();
    let english = vocabulary.language_token("en").unwrap();
    let mut next = vec![
        vocabulary.start_of_transcript,
        english,
        vocabulary.transcribe.unwrap(),
        vocabulary.no_timestamps,
    ];
    let mut state = model.decoder.start(&audio, 1, MAX_TOKENS + next.len()).unwrap();
    let mut tokens = Vec::new();
    while tokens.len() < MAX_TOKENS && tokens.last() != Some(&vocabulary.end_of_text) {
        let hidden = model.decoder.forward(&next, &mut state, None, &|| true).unwrap();
        let last = hidden.squeeze(0).unwrap().narrow(0, next.len() - 1, 1).unwrap();
        let scores = model.decoder.logits(&last).unwrap().squeeze(0).unwrap();
        next = vec![scores.argmax(0).unwrap().to_scalar().unwrap()];
        tokens.extend(&next);
    }
    tokens
}

fn mel(model: &Whisper) -> Tensor {
    let (bins, frames) = (model.config.dimensions.mel_bins as usize, model.config.window_frames());
    let values: Vec<f32> = (0..bins * frames).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect();
    Tensor::from_vec(values, (1, bins, frames), &Device::Cpu).unwrap()
}

fn difference(a: &Tensor, b: &Tensor) -> f32 {
    (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

fn micro(folder: &Path) {
    write(folder, Size::named("micro").unwrap(), &Options::default()).unwrap();
}

/// Writes a model with a GGUF file instead of safetensors.
fn micro_gguf(folder: &Path, precision: Precision) -> PathBuf {
    micro(folder);
    let file = folder.join("model.gguf");
    quantise(folder, precision, &file, &|| true).unwrap();
    fs::remove_file(folder.join("model.safetensors")).unwrap();
    file
}

#[test]
fn a_gguf_file_computes_the_same_as_its_original() {
    for precision in [Precision::F32, Precision::F16, Precision::Q8_0, Precision::Q5_1, Precision::Q4_0] {
        let folder = tempfile::tempdir().unwrap();
        micro(folder.path());
        let (direct, expected) = {
            let model = load(folder.path(), precision);
            let expected = logits(&model, &mel(&model));
            (model, expected)
        };
        let file = micro_gguf(folder.path(), precision);
        assert_eq!(stored_precision(folder.path()).unwrap(), precision);
        // The folder and the file both name the model.
        for path in [folder.path(), &file] {
            let model = load(path, precision);
            assert_eq!((model.precision, model.weight_bytes), (precision, direct.weight_bytes));
            assert_eq!(difference(&logits(&model, &mel(&model)), &expected), 0.0, "{precision}");
        }
        // Quantised weights can be held in 32 bits.
        let wide = load(&file, Precision::F32);
        assert_eq!(wide.precision, Precision::F32);
        let near = match precision {
            // An encoder rounds its activations to 8 bits too, where that is faster.
            Precision::Q8_0 => 0.01,
            Precision::F32 => 1e-4,
            // Keys and values have 16 bits.
            _ => 1e-3,
        };
        let off = difference(&logits(&wide, &mel(&wide)), &expected);
        assert!(off < near, "{precision}: {off}");
    }
}

/// golden/make_blocks.py wrote the blocks and the values that the public `gguf`
/// package reads from them.
#[test]
fn every_format_reads_as_the_gguf_package_reads_it() {
    const SHAPE: [usize; 2] = [3, 512];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden/blocks.gguf");
    let weights = Weights::open(&file).unwrap();
    for format in Precision::ALL.into_iter().filter(|format| *format != Precision::F32) {
        let read = |name: &str| weights.get(name, &SHAPE, DType::F32, &Device::Cpu).unwrap();
        let expected = read(&format!("{format}.expected"));
        assert_eq!(difference(&read(format.as_str()), &expected), 0.0, "{format}");
        assert!(difference(&expected, &expected.zeros_like().unwrap()) > 0.01, "{format}");
    }
}

#[test]
fn tensors_in_another_precision_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    micro(folder.path());
    let out = folder.path().join("q4.gguf");
    let kept = quantise(folder.path(), Precision::Q4K, &out, &|| true).unwrap();
    // Rows of 64 weights fit blocks of 32 only; those of 256, after the hidden
    // layer, also fit the blocks of Q4_K.
    assert!(kept.iter().any(|kept| kept.tensor == "model.decoder.embed_tokens.weight"));
    assert!(kept.iter().all(|kept| kept.precision == Precision::Q5_0));
    assert!(!kept.iter().any(|kept| kept.tensor.ends_with("fc2.weight") || kept.tensor.contains("conv")));
    assert!(quantise(folder.path(), Precision::Q8_0, &out, &|| true).unwrap().is_empty());
    let stopped = quantise(folder.path(), Precision::Q8_0, &folder.path().join("no.gguf"), &|| false);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    assert!(!folder.path().join("no.gguf").exists());
    let left = fs::read_dir(folder.path())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().contains("partial"));
    assert_eq!(left.count(), 0);
    let nowhere = folder.path().join("nowhere/model.gguf");
    assert!(matches!(quantise(folder.path(), Precision::Q8_0, &nowhere, &|| true), Err(Error::Write { .. })));
}

/// What divides text into tokens is read for text alone. Where it is broken, a recording is transcribed without it.
#[test]
fn a_tokenizer_that_cannot_divide_text_is_named_where_text_is_divided() {
    let folder = tempfile::tempdir().unwrap();
    micro(folder.path());
    let intact = load(folder.path(), Precision::F32).vocabulary;
    let tokens = intact.with_encoder(|encoder| encoder.encode(" the")).unwrap();
    assert!(!tokens.is_empty() && intact.decode(&tokens) == " the", "{tokens:?}");
    let path = folder.path().join("tokenizer.json");
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    file["model"]["merges"] = serde_json::json!([["no token", "of these"]]);
    fs::write(&path, file.to_string()).unwrap();
    let broken = load(folder.path(), Precision::F32).vocabulary;
    assert_eq!(broken.texts(), intact.texts());
    let error = broken.with_encoder(|encoder| encoder.encode(" the")).unwrap_err();
    assert!(error.to_string().contains("tokenizer.json"), "{error}");
    // What was encoded is known. A file that is another model's by now divides nothing.
    assert_eq!(intact.with_encoder(|encoder| encoder.encode(" the")).unwrap(), tokens);
    file["model"]["merges"] = serde_json::json!([]);
    file["added_tokens"] = serde_json::json!([]);
    file["model"]["vocab"] = serde_json::json!({ "a": 0, "<|endoftext|>": 1 });
    fs::write(&path, file.to_string()).unwrap();
    let error = intact.with_encoder(|encoder| encoder.encode(" other")).unwrap_err();
    assert!(error.to_string().contains("not those of the model that is loaded"), "{error}");
}

#[test]
#[ignore = "full corpus: make soak"]
fn a_file_of_whisper_cpp_gives_the_same_tokens_as_safetensors() {
    let shared = corpus::full();
    let twin = load(&shared.join("models/starter-full"), Precision::F32);
    for (name, held) in [("ggml-starter.bin", Precision::F32), ("ggml-starter-q8_0.bin", Precision::Q8_0)] {
        let file = shared.join("models/starter-ggml").join(name);
        let model = load(&file, held);
        assert_eq!(model.config, WhisperConfig::read(&shared.join("models/starter-full")).unwrap(), "{name}");
        let (ours, theirs) = (&model.vocabulary, &twin.vocabulary);
        assert_eq!(ours.languages, theirs.languages);
        assert_eq!(
            (ours.end_of_text, ours.start_of_transcript, ours.start_of_previous, ours.no_speech),
            (theirs.end_of_text, theirs.start_of_transcript, theirs.start_of_previous, theirs.no_speech),
        );
        assert_eq!(
            (ours.transcribe, ours.translate, ours.no_timestamps, ours.timestamp_begin),
            (theirs.transcribe, theirs.translate, theirs.no_timestamps, theirs.timestamp_begin),
        );
        for text in [" Good morning, Dr. Müller!", "it's 10:45  o'clock", " ¿Dónde está?", "日本語 ♪", "\n"]
        {
            let tokens = ours.with_encoder(|encoder| encoder.encode(text)).unwrap();
            assert_eq!(tokens, theirs.with_encoder(|encoder| encoder.encode(text)).unwrap(), "{text:?}");
            assert_eq!(ours.decode(&tokens), text);
        }
        for recording in ["en_short_1", "de_half_minute_1", "1688-142285-0000"] {
            let path = shared.join(format!("reference/tensors/{recording}.safetensors"));
            let mel =
                candle_core::safetensors::load(path, &Device::Cpu).unwrap()["mel"].unsqueeze(0).unwrap();
            let (found, expected) = (greedy(&model, &mel), greedy(&twin, &mel));
            println!("{name} {recording}: {:?}", ours.decode(&found));
            if held == Precision::F32 {
                assert_eq!(found, expected, "{recording}");
            } else {
                let same = found.iter().zip(&expected).take_while(|(a, b)| a == b).count();
                println!("the first {same} of {} tokens equal those of 32 bits", expected.len());
            }
        }
    }
}
