//! Training compared with PyTorch (golden/make_training.py), and with itself under less memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

use std::path::{Path, PathBuf};

use candle_core::{Device, Tensor};
use formats::{AdapterCard, AdapterFile, AdapterMatrix, WhisperConfig};
use memory::Precision;
use models::training::{AdamW, Adapters, Aim, Example, Gradients, Keep, Ticker, Trainee, cosine};
use models::whisper::Whisper;
use random_models::corpus;
use serde::Deserialize;

fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper")
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/golden").join(name)
}

#[derive(Debug, Deserialize)]
struct Golden {
    rank: u32,
    alpha: f32,
    highest_rate: f64,
    batch: usize,
    prompt: usize,
    examples: Vec<GoldenExample>,
    loss: f32,
    epoch: Vec<f32>,
    after: f32,
}

#[derive(Debug, Deserialize)]
struct GoldenExample {
    mel: String,
    tokens: Vec<u32>,
}

impl Golden {
    fn read() -> Self {
        serde_json::from_slice(&std::fs::read(golden("training.json")).unwrap()).unwrap()
    }

    fn examples(&self) -> Vec<Example> {
        let example = |example: &GoldenExample| {
            let path = corpus::bundled().join(format!("reference/tensors/{}.safetensors", example.mel));
            let mel = candle_core::safetensors::load(path, &Device::Cpu).unwrap()["mel"].clone();
            let mel = mel.flatten_all().unwrap().to_vec1().unwrap();
            let mut aims = vec![Aim::Token; example.tokens.len()];
            aims[..self.prompt].fill(Aim::Nothing);
            Example { mel, tokens: example.tokens.clone(), aims }
        };
        self.examples.iter().map(example).collect()
    }

    /// With the values that the generator begins with.
    fn adapters(&self) -> Adapters {
        let config = WhisperConfig::read(&starter()).unwrap();
        let card = AdapterCard { rank: self.rank, alpha: self.alpha, ..AdapterCard::default() };
        let adapters = Adapters::new(&config, card.clone(), true, 0, &Device::Cpu).unwrap();
        let mut file = adapters.contents(Path::new("golden"), card).unwrap();
        for (number, matrix) in file.matrices.iter_mut().enumerate() {
            let value = |at: usize, step: f64| step * at as f64 + number as f64;
            matrix.a.iter_mut().enumerate().for_each(|(at, a)| *a = (0.05 * value(at, 0.37).sin()) as f32);
            matrix.b.iter_mut().enumerate().for_each(|(at, b)| *b = (0.03 * value(at, 0.53).cos()) as f32);
        }
        Adapters::read(&file, &config, &Device::Cpu).unwrap()
    }
}

fn load() -> Trainee {
    load_in(Precision::F32)
}

fn load_in(precision: Precision) -> Trainee {
    Trainee::load(&starter(), &Device::Cpu, precision, Ticker::new(|| true)).unwrap()
}

fn weight(examples: &[Example]) -> f32 {
    1.0 / examples.iter().map(Example::learnt).sum::<usize>() as f32
}

/// The largest difference of two gradients, as a part of the largest number of `expected`.
fn difference(found: &Tensor, expected: &Tensor) -> f32 {
    assert_eq!(found.dims(), expected.dims());
    let most =
        |x: Tensor| x.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
    most((found - expected).unwrap()) / most(expected.clone())
}

fn worst(found: &Gradients, expected: &Gradients) -> f32 {
    let both = found.all().iter().zip(expected.all());
    both.map(|(a, b)| difference(a.as_ref().unwrap(), b.as_ref().unwrap())).fold(0.0, f32::max)
}

#[test]
fn what_is_to_stay_as_before_costs_what_has_changed() {
    let golden_values = Golden::read();
    let (trainee, changed) = (load(), golden_values.adapters());
    let card = changed.card().clone();
    let new = Adapters::new(&trainee.config, card, false, 0, &Device::Cpu).unwrap();
    let kept = |mut example: Example| {
        example.aims.iter_mut().filter(|aim| **aim == Aim::Token).for_each(|aim| *aim = Aim::AsBefore);
        example
    };
    let whole = golden_values.examples().swap_remove(0);
    let as_before = kept(whole.clone());
    assert_eq!(as_before.learnt(), whole.learnt());
    let loss = |adapters: &Adapters, example: &Example| {
        trainee.loss(adapters, std::slice::from_ref(example), 1.0).unwrap()
    };
    // Adapters that change nothing yet cost nothing, and have nothing to learn.
    assert!(loss(&new, &as_before).abs() < 1e-3);
    for keep in [Keep::Everything, Keep::Inputs] {
        let mut gradients = new.no_gradients();
        trainee.learn(&new, std::slice::from_ref(&as_before), 1.0, keep, &mut gradients).unwrap();
        let most =
            |x: &Tensor| x.abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
        assert!(gradients.all().iter().flatten().all(|gradient| most(gradient) == 0.0), "{keep:?}");
    }
    let changed_by = loss(&changed, &as_before);
    assert!(changed_by > 0.01, "{changed_by}");
    // Each token's part is its own.
    let mut mixed = whole.clone();
    let (first, last) = (mixed.aims.iter().position(|aim| *aim == Aim::Token).unwrap(), mixed.aims.len() - 1);
    mixed.aims[first] = Aim::AsBefore;
    let only = |example: &Example, at: usize| {
        let mut one = example.clone();
        (0..=last).filter(|other| *other != at).for_each(|other| one.aims[other] = Aim::Nothing);
        loss(&changed, &one)
    };
    let expected = loss(&changed, &whole) - only(&whole, first) + only(&mixed, first);
    assert!((loss(&changed, &mixed) - expected).abs() < 1e-2);
}

#[test]
fn the_decoder_alone_learns_as_it_does_beside_the_encoder() {
    let golden_values = Golden::read();
    let (trainee, all) = (load(), golden_values.adapters());
    let mut file = all.contents(Path::new(""), all.card().clone()).unwrap();
    // The encoder's change nothing, and so those of the decoder have the gradients that they have without them.
    for matrix in file.matrices.iter_mut().filter(|matrix| matrix.name.contains(".encoder.")) {
        matrix.b.fill(0.0);
    }
    let beside = Adapters::read(&file, &trainee.config, &Device::Cpu).unwrap();
    file.matrices.retain(|matrix| !matrix.name.contains(".encoder."));
    let alone = Adapters::read(&file, &trainee.config, &Device::Cpu).unwrap();
    let (there, here) = (beside.variables().len(), alone.variables().len());
    assert!(here < there);
    let mut examples = golden_values.examples();
    examples.truncate(2);
    // The last tokens of each are to stay as before.
    for example in &mut examples {
        let half = example.aims.len() / 2;
        example.aims[half..].fill(Aim::AsBefore);
    }
    for keep in [Keep::Everything, Keep::Inputs] {
        let (mut expected, mut found) = (beside.no_gradients(), alone.no_gradients());
        let weight = weight(&examples);
        let losses = [
            trainee.learn(&beside, &examples, weight, keep, &mut expected).unwrap(),
            trainee.learn(&alone, &examples, weight, keep, &mut found).unwrap(),
        ];
        assert!((losses[0] - losses[1]).abs() < 1e-5, "{losses:?}");
        for (found, expected) in found.all().iter().zip(&expected.all()[there - here..]) {
            let difference = difference(found.as_ref().unwrap(), expected.as_ref().unwrap());
            assert!(difference < 1e-4, "{keep:?}: {difference}");
        }
    }
}

#[test]
fn gradients_equal_those_of_pytorch() {
    const TOLERANCE: f32 = 1e-4;
    let golden_values = Golden::read();
    let (trainee, adapters) = (load(), golden_values.adapters());
    let examples = &golden_values.examples()[..2];
    let expected =
        candle_core::safetensors::load(golden("training_gradients.safetensors"), &Device::Cpu).unwrap();
    let names: Vec<String> = adapters
        .contents(Path::new(""), adapters.card().clone())
        .unwrap()
        .matrices
        .iter()
        .flat_map(|it| ["A", "B"].map(|part| format!("{}.lora_{part}.weight", it.name)))
        .collect();
    assert_eq!(names.len(), expected.len());
    for keep in [Keep::Everything, Keep::Inputs] {
        let mut gradients = adapters.no_gradients();
        let loss = trainee.learn(&adapters, examples, weight(examples), keep, &mut gradients).unwrap();
        assert!((loss - golden_values.loss).abs() < TOLERANCE, "{loss} is not {}", golden_values.loss);
        for (name, found) in names.iter().zip(gradients.all()) {
            let difference = difference(found.as_ref().unwrap(), &expected[name]);
            assert!(difference < TOLERANCE, "{keep:?} {name}: {difference:e}");
        }
    }
}

#[test]
fn frozen_matrices_in_16_bits_teach_the_same() {
    let golden = Golden::read();
    let (adapters, examples) = (golden.adapters(), &golden.examples()[..2]);
    let learn = |precision| {
        let mut gradients = adapters.no_gradients();
        let trainee = load_in(precision);
        let loss = trainee.learn(&adapters, examples, weight(examples), Keep::Inputs, &mut gradients);
        (loss.unwrap(), gradients)
    };
    let (whole_loss, whole) = learn(Precision::F32);
    // The starter's file has 16 bits of this kind: nothing is rounded.
    let (loss, gradients) = learn(Precision::F16);
    assert_eq!((loss, worst(&gradients, &whole)), (whole_loss, 0.0));
    let (loss, gradients) = learn(Precision::Bf16);
    let difference = worst(&gradients, &whole);
    println!("bf16: {loss} of {whole_loss}, gradients {difference:e}");
    assert!((loss / whole_loss - 1.0).abs() < 0.01, "{loss} is not about {whole_loss}");
    assert!(difference > 0.0 && difference < 0.05, "{difference:e}");
}

#[test]
fn an_epoch_has_the_losses_of_pytorch() {
    const TOLERANCE: f32 = 0.01;
    let golden = Golden::read();
    let (trainee, adapters, examples) = (load(), golden.adapters(), golden.examples());
    let mut optimiser = AdamW::new(&adapters).unwrap();
    let close = |found: f32, expected: f32, what: &str| {
        println!("{what}: {found} of {expected}");
        assert!((found / expected - 1.0).abs() < TOLERANCE, "{what}: {found} is not {expected}");
    };
    for (step, batch) in examples.chunks(golden.batch).enumerate() {
        let mut gradients = adapters.no_gradients();
        let loss = trainee.learn(&adapters, batch, weight(batch), Keep::Everything, &mut gradients).unwrap();
        close(loss, golden.epoch[step], &format!("step {step}"));
        let rate = cosine(step as u32, golden.epoch.len() as u32, golden.highest_rate);
        optimiser.step(&adapters, &gradients, rate).unwrap();
    }
    let after = trainee.loss(&adapters, &examples, weight(&examples)).unwrap();
    close(after, golden.after, "after the epoch");
    assert!(after < golden.loss * 0.98, "it learns: {after} after {}", golden.loss);
}

#[test]
fn a_batch_in_parts_gives_the_same_gradients() {
    const TOLERANCE: f32 = 1e-4;
    let golden = Golden::read();
    let (trainee, adapters) = (load(), golden.adapters());
    let examples = &golden.examples()[..3];
    let learn = |parts: usize| {
        let mut gradients = adapters.no_gradients();
        let losses = examples.chunks(parts).map(|part| {
            let keep = Keep::Inputs;
            trainee.learn(&adapters, part, weight(examples), keep, &mut gradients).unwrap()
        });
        let loss: f32 = losses.sum();
        (loss, gradients)
    };
    let (loss, whole) = learn(3);
    // A part of two examples, and one of one.
    let (part_loss, gradients) = learn(2);
    assert!((part_loss / loss - 1.0).abs() < TOLERANCE, "{part_loss} is not {loss}");
    let worst = worst(&gradients, &whole);
    assert!(worst < TOLERANCE, "{worst:e}");
}

#[test]
fn a_merged_adapter_hears_what_the_trained_network_hears() {
    const TOLERANCE: f32 = 1e-3;
    let golden = Golden::read();
    let adapters = golden.adapters();
    let example = &golden.examples()[0];
    let card = adapters.card().clone();
    let file = adapters.contents(Path::new("merged"), card).unwrap();
    let load = |adapter: Option<AdapterFile>, precision| {
        Whisper::load_adapted(&starter(), adapter, &Device::Cpu, precision, &|| true).unwrap()
    };
    // The mean cross-entropy of the decoder that transcribes.
    let loss = |model: &Whisper| {
        let mel = Tensor::from_vec(example.mel.clone(), (1, 80, 3000), &Device::Cpu).unwrap();
        let audio = model.encoder.forward(&mel, &|| true).unwrap();
        let inputs = &example.tokens[..example.tokens.len() - 1];
        let mut state = model.decoder.start(&audio, 1, inputs.len()).unwrap();
        let hidden = model.decoder.forward(inputs, &mut state, None, &|| true).unwrap();
        let logits = model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap();
        let chances = candle_nn::ops::log_softmax(&logits, 1).unwrap().to_vec2::<f32>().unwrap();
        let learnt = example.tokens.len() - example.learnt()..example.tokens.len();
        learnt.clone().map(|at| -chances[at - 1][example.tokens[at] as usize]).sum::<f32>()
            / learnt.len() as f32
    };
    let examples = std::slice::from_ref(example);
    let trained = self::load().loss(&adapters, examples, weight(examples)).unwrap();
    let plain = loss(&load(None, Precision::F32));
    assert!((plain - trained).abs() > 0.02, "the adapter changes something: {plain}, {trained}");
    let merged = loss(&load(Some(file.clone()), Precision::F32));
    assert!((merged - trained).abs() < TOLERANCE, "{merged} is not {trained}");
    let quantised = loss(&load(Some(file), Precision::Q8_0));
    assert!((quantised - trained).abs() < 0.1 * trained, "{quantised} is not about {trained}");
}

#[test]
fn an_adapter_of_another_model_is_refused() {
    let matrix = AdapterMatrix {
        name: "model.encoder.layers.0.fc1".into(),
        output: 3,
        input: 2,
        a: vec![0.0; 2],
        b: vec![0.0; 3],
    };
    let card = AdapterCard { rank: 1, alpha: 1.0, ..AdapterCard::default() };
    let file = AdapterFile { path: "other".into(), card, matrices: vec![matrix], ..AdapterFile::default() };
    let result = Whisper::load_adapted(&starter(), Some(file), &Device::Cpu, Precision::F32, &|| true);
    let text = result.unwrap_err().to_string();
    assert!(text.contains("fc1") && text.contains("other"), "{text}");
}
