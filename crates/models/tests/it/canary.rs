//! Canary compared with transformers' results: tests/data/canary, two sizes with random weights (`golden.py`).

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use audio::NemoMel;
use candle_core::{Device, Tensor};
use memory::Precision;
use models::Error;
use models::canary::Canary;
use models::decoder::CrossScores;

use crate::parakeet::{assert_near, difference, integers, numbers, sound, tensors};

fn data(size: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/canary").join(size)
}

fn golden(size: &str) -> HashMap<String, Tensor> {
    tensors(&data(size).join("golden.safetensors"))
}

fn load(folder: &Path, precision: Precision) -> Result<Canary, Error> {
    Canary::load(folder, &Device::Cpu, precision, &|| true)
}

/// A copy that can be damaged.
fn copy(size: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(data(size).join(name), folder.path().join(name)).unwrap();
    }
    folder
}

fn encode(model: &Canary, length: usize) -> Tensor {
    let bands = model.config.dimensions.encoder.mel_bins as usize;
    model.encoder.forward(&NemoMel::new(bands).normalised(&sound(length)), &|| true).unwrap()
}

fn every_fifth(x: &Tensor, dimension: usize) -> Tensor {
    let places: Vec<u32> = (0..x.dim(dimension).unwrap() as u32).step_by(5).collect();
    x.index_select(&Tensor::new(places, &Device::Cpu).unwrap(), dimension).unwrap()
}

/// The reference has the three in a batch, with padding; here each is alone.
#[test]
fn one_second_to_forty_are_those_of_a_padded_batch() {
    for size in ["first", "second"] {
        let golden = golden(size);
        let model = load(&data(size), Precision::F32).unwrap();
        let prompt = model.tokens.prompt("de", "en").unwrap();
        let of = &model.config.dimensions;
        let (layers, heads) = (of.decoder_layers as usize, of.decoder_heads as usize);
        for (number, length) in [16_000, 116_800, 640_000].into_iter().enumerate() {
            let frames = encode(&model, length);
            let what = |part: &str| format!("{size} {length} {part}");
            assert_near(&every_fifth(&frames, 0), &golden[&format!("encoded.{number}")], &what("encoded"));

            let expected = integers(&golden[&format!("tokens.{number}")]);
            let forced: Vec<u32> =
                prompt.iter().copied().chain(expected.iter().map(|id| *id as u32)).collect();
            let mut state = model.decoder.start(&frames.unsqueeze(0).unwrap(), 1, forced.len()).unwrap();
            let mut scores = CrossScores { heads: vec![(layers - 1, 0)], found: Vec::new() };
            let hidden = model.decoder.forward(&forced, &mut state, Some(&mut scores), &|| true).unwrap();
            let logits = model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap();
            assert_near(&logits, &golden[&format!("logits.{number}")], &what("logits"));

            let read = model.read(&frames, &prompt, None, &|| true).unwrap();
            let tokens: Vec<usize> = read.tokens.iter().map(|(id, _)| *id as usize).collect();
            assert_eq!(tokens, expected, "{size} {length}");
            assert!(read.tokens.iter().all(|(_, probability)| *probability > 0.0 && *probability <= 1.0));
            let (used, rows) = ((layers - layers / 2) * heads, tokens.len() + 1);
            let shape = (used, rows, frames.dim(0).unwrap());
            let attended = Tensor::from_vec(read.shares, shape, &Device::Cpu).unwrap();
            assert_near(
                &every_fifth(&attended, 2),
                &golden[&format!("attended.{number}")],
                &what("attended"),
            );
        }
    }
}

/// A word to expect is written where it is near what is heard, and where it is not, the text is as without it.
#[test]
fn words_to_expect_lead_to_themselves_or_to_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let size = random_models::CanarySize::named("canary-tiny").unwrap();
    let options = random_models::Options { precision: random_models::WeightType::F32, ..Default::default() };
    random_models::write_canary_model(folder.path(), size, &options).unwrap();
    let model = load(folder.path(), Precision::F32).unwrap();
    let frames = encode(&model, 80_000);
    let prompt = model.tokens.prompt("en", "en").unwrap();
    let ids = |words: &[String], strength: f32| -> Vec<u32> {
        let boost = model.words_to_expect(words, strength);
        let read = model.read(&frames, &prompt, boost.as_ref(), &|| true).unwrap();
        read.tokens.into_iter().map(|(id, _)| id).collect()
    };
    let plain = ids(&[], 0.0);
    assert!(plain.len() > 8, "{plain:?}");
    let text = |ids: &[u32]| -> String {
        // What is no text ends a word.
        let piece = |id: &u32| Some(&model.tokens.pieces[*id as usize]).filter(|piece| !piece.is_empty());
        let pieces =
            ids.iter().flat_map(|id| piece(id).map_or(b" ".to_vec(), |piece| models::text_of(piece)));
        String::from_utf8(pieces.collect()).unwrap()
    };
    let pieces = &model.tokens.pieces[14..];
    let (begin, go_on): (Vec<&String>, Vec<&String>) =
        pieces.iter().filter(|piece| !piece.ends_with('.')).partition(|piece| piece.starts_with('▁'));
    let (mut taken, mut without) = (0, 0);
    for (first, second) in begin.iter().zip(&go_on) {
        let word = format!("{}{second}", first.trim_start_matches('▁'));
        let found = ids(std::slice::from_ref(&word), 6.0);
        // A text that repeats itself is cut off, before a word that is not complete.
        if plain.starts_with(&found) {
            without += 1;
        } else {
            taken += 1;
            let found = text(&found).to_lowercase();
            assert!(found.split_whitespace().any(|other| other == word), "{word}: {found}");
        }
    }
    println!("{taken} words were written, {without} changed nothing");
    assert!(taken > 5 && without > 5, "{taken} words were written, {without} changed nothing");
}

#[test]
fn every_precision_computes_and_is_held_as_asked() {
    let size = random_models::CanarySize::named("canary-tiny").unwrap();
    let wide = random_models::CanarySize { width: 256, ..*size };
    let folder = tempfile::tempdir().unwrap();
    let options = random_models::Options { precision: random_models::WeightType::F32, ..Default::default() };
    random_models::write_canary_model(folder.path(), &wide, &options).unwrap();
    let exact = load(folder.path(), Precision::F32).unwrap();
    let prompt = exact.tokens.prompt("de", "de").unwrap();
    let logits = |model: &Canary| -> Vec<f32> {
        let frames = encode(model, 48_000).unsqueeze(0).unwrap();
        let mut state = model.decoder.start(&frames, 1, prompt.len()).unwrap();
        let hidden = model.decoder.forward(&prompt, &mut state, None, &|| true).unwrap();
        numbers(&model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap())
    };
    let expected = logits(&exact);
    for (precision, most) in [
        (Precision::F16, 0.03),
        (Precision::Bf16, 0.2),
        (Precision::Q8_0, 0.3),
        (Precision::Q6K, 1.0),
        (Precision::Q4K, 4.0),
    ] {
        let model = load(folder.path(), precision).unwrap();
        assert_eq!(model.precision, precision);
        assert!(model.weight_bytes < exact.weight_bytes);
        let found = logits(&model);
        let off = difference(&found, &expected);
        println!("{precision}: off by {off}");
        assert!(off < most, "{precision}: off by {off}");

        // As a file of its own it is the same model.
        let file = folder.path().join(format!("{precision}"));
        fs::create_dir(&file).unwrap();
        for name in ["config.json", "tokenizer.json"] {
            fs::copy(folder.path().join(name), file.join(name)).unwrap();
        }
        models::quantise(folder.path(), precision, &file.join("model.gguf"), &|| true).unwrap();
        assert_eq!(difference(&logits(&load(&file, precision).unwrap()), &found), 0.0, "{precision}");
        fs::remove_dir_all(&file).unwrap();
    }
}

#[test]
fn damaged_models_are_refused_by_name() {
    let change = |what: &dyn Fn(&mut HashMap<String, Tensor>)| {
        let folder = copy("first");
        let file = folder.path().join("model.safetensors");
        let mut all = tensors(&file);
        what(&mut all);
        candle_core::safetensors::save(&all, &file).unwrap();
        load(folder.path(), Precision::F32).unwrap_err().to_string()
    };
    const NAME: &str = "model.decoder.layers.1.encoder_attn.k_proj.bias";
    for part in
        [NAME, "model.encoder.layers.0.conv.norm.running_var", "model.decoder.embedding_layernorm.weight"]
    {
        let missing = change(&|all| drop(all.remove(part)));
        assert!(missing.contains(&format!("the tensor {part} is missing")), "{missing}");
    }
    let infinite = change(&|all| {
        let mut values = numbers(&all[NAME]);
        values[7] = f32::NAN;
        all.insert(NAME.into(), Tensor::from_vec(values, all[NAME].dims(), &Device::Cpu).unwrap());
    });
    assert!(infinite.contains(&format!("the tensor {NAME} has numbers that are not finite")), "{infinite}");
    let folder = copy("first");
    fs::write(folder.path().join("tokenizer.json"), r#"{"model": {"vocab": {"a": 0}}}"#).unwrap();
    let error = load(folder.path(), Precision::F32).unwrap_err().to_string();
    assert!(error.contains("it has 1 tokens, config.json asks for 24"), "{error}");
}

#[test]
fn a_cancelled_model_stops() {
    let stopped = Canary::load(&data("first"), &Device::Cpu, Precision::F32, &|| false);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let model = load(&data("first"), Precision::F32).unwrap();
    let prompt = model.tokens.prompt("en", "en").unwrap();
    let frames = encode(&model, 16_000);
    assert!(matches!(model.read(&frames, &prompt, None, &|| false), Err(Error::Interrupted)));
}
