//! Parakeet compared with transformers' results: tests/data/parakeet, two sizes with random weights
//! (`first.py`, `second.py`).

use std::collections::HashMap;
use std::f64::consts::PI;
use std::fs;
use std::path::{Path, PathBuf};

use audio::NemoMel;
use candle_core::{Device, Tensor};
use formats::ParakeetHead;
use memory::Precision;
use models::parakeet::{Head, Parakeet, Tdt};
use models::{Error, Token};

fn data(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/parakeet").join(part)
}

pub fn tensors(file: &Path) -> HashMap<String, Tensor> {
    candle_core::safetensors::load(file, &Device::Cpu).unwrap()
}

fn golden(size: &str) -> HashMap<String, Tensor> {
    tensors(&data(size).join("golden.safetensors"))
}

/// A whole model of one of the sizes: with a tokenizer, and with the CTC head in place of the transducer where it is wanted.
fn folder(size: &str, is_ctc: bool) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut config: serde_json::Value =
        serde_json::from_slice(&fs::read(data(size).join("config.json")).unwrap()).unwrap();
    let count = config["vocab_size"].as_u64().unwrap();
    let vocab: serde_json::Map<_, _> =
        (0..count - 1).map(|id| (format!("▁{id}"), serde_json::json!(id))).collect();
    let tokenizer = serde_json::json!({ "model": { "vocab": vocab } });
    fs::write(folder.path().join("tokenizer.json"), tokenizer.to_string()).unwrap();
    let weights = folder.path().join("model.safetensors");
    if is_ctc {
        config["model_type"] = "parakeet_ctc".into();
        config["pad_token_id"] = (count - 1).into();
        let mut all = tensors(&data(size).join("model.safetensors"));
        let head = tensors(&data(size).join("ctc.safetensors"));
        all.extend(head.into_iter().filter(|(name, _)| name.starts_with("ctc_head")));
        candle_core::safetensors::save(&all, &weights).unwrap();
    } else {
        fs::copy(data(size).join("model.safetensors"), &weights).unwrap();
    }
    fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
    folder
}

fn load(folder: &Path, precision: Precision) -> Result<Parakeet, Error> {
    Parakeet::load(folder, &Device::Cpu, precision, &|| true)
}

fn tdt(model: &Parakeet) -> &Tdt {
    match &model.head {
        Head::Tdt(tdt) => tdt,
        Head::Ctc(_) => panic!("a CTC head"),
    }
}

pub fn numbers(tensor: &Tensor) -> Vec<f32> {
    tensor.flatten_all().unwrap().to_vec1().unwrap()
}

pub fn integers(tensor: &Tensor) -> Vec<usize> {
    tensor.to_vec1::<i64>().unwrap().into_iter().map(|x| x as usize).collect()
}

/// Also of what is no number, which `f32::max` passes over.
pub fn difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, |most, x| if x <= most { most } else { x })
}

/// Of features: the reference computes its spectrum in 32 bits, which rounds faint bands. In 64 bits it is as far from itself.
const FEATURES: f32 = 3e-4;

pub fn assert_near(found: &Tensor, expected: &Tensor, what: &str) {
    assert_eq!(found.dims(), expected.dims(), "{what}");
    let off = difference(&numbers(found), &numbers(expected));
    println!("{what}: off by {off:.1e}");
    assert!(off < 1e-4, "{what}: off by {off}");
}

/// (tokens, starts, durations)
fn told(tokens: &[Token]) -> (Vec<usize>, Vec<usize>, Vec<usize>) {
    let of = |value: fn(&Token) -> usize| tokens.iter().map(value).collect();
    (of(|it| it.id as usize), of(|it| it.frame), of(|it| it.frames))
}

#[test]
fn each_stage_is_that_of_the_reference() {
    let golden = golden("first");
    let folder = folder("first", false);
    let model = load(folder.path(), Precision::F32).unwrap();
    let spectrogram = NemoMel::new(128).normalised(&numbers(&golden["audio"]));
    let valid = spectrogram.len() / 128;
    assert_eq!(valid, golden["features_valid"].to_vec1::<i64>().unwrap()[0] as usize);
    let features = golden["features"].narrow(0, 0, valid).unwrap();
    let found = Tensor::from_slice(&spectrogram, (valid, 128), &Device::Cpu).unwrap();
    let off = difference(&numbers(&found), &numbers(&features));
    assert!(off < FEATURES, "features: off by {off}");
    // The network on the reference's own features.
    let features = numbers(&features);
    assert_near(&model.encoder.subsample(&features).unwrap(), &golden["subsampled"], "subsampled");
    let encoded = model.encoder.forward(&features, &|| true).unwrap();
    assert_near(&encoded, &golden["encoded"], "encoded");
    let tdt = tdt(&model);
    let projected = tdt.project(&encoded).unwrap();
    assert_near(&projected, &golden["projected"], "projected");

    // All frames with the predictions behind given labels.
    let labels = integers(&golden["forced_labels"]);
    let mut state = tdt.start();
    for (number, label) in labels.into_iter().enumerate() {
        let (prediction, after) = tdt.predict(&[label as u32], &[&state]).unwrap();
        state = after.into_iter().next().unwrap();
        let logits = tdt.join(&projected.broadcast_add(&prediction).unwrap()).unwrap();
        let expected = golden["forced_logits"].narrow(1, number, 1).unwrap().squeeze(1).unwrap();
        assert_near(&logits, &expected, "joint");
    }

    let encoded = model.encoder.forward(&spectrogram, &|| true).unwrap();
    let read = model.read(&[encoded], 1, None, &|| true).unwrap();
    let expected =
        (integers(&golden["nemo_tokens"]), integers(&golden["nemo_starts"]), integers(&golden["durations"]));
    assert_eq!(told(&read[0]), expected);
    assert!(read[0].iter().all(|token| token.probability > 0.0 && token.probability <= 1.0));
}

#[test]
fn the_ctc_head_is_that_of_the_reference() {
    let folder = folder("first", true);
    let model = load(folder.path(), Precision::F32).unwrap();
    let spectrogram = NemoMel::new(128).normalised(&numbers(&golden("first")["audio"]));
    let encoded = model.encoder.forward(&spectrogram, &|| true).unwrap();
    let expected = tensors(&data("first").join("ctc.safetensors"));
    let Head::Ctc(ctc) = &model.head else { panic!("a transducer") };
    assert_near(&ctc.logits(&encoded).unwrap(), &expected["logits"], "logits");
    let read = model.read(&[encoded], 1, None, &|| true).unwrap();
    assert_eq!(runs(&integers(&expected["best"]), 32), as_runs(&read[0]));
}

/// (token, first frame, frames) of what is no blank.
fn runs(best: &[usize], blank: usize) -> Vec<(usize, usize, usize)> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for (frame, token) in best.iter().enumerate() {
        match runs.last_mut() {
            Some(last) if last.0 == *token && last.1 + last.2 == frame => last.2 += 1,
            _ => runs.push((*token, frame, 1)),
        }
    }
    runs.retain(|run| run.0 != blank);
    runs
}

fn as_runs(tokens: &[Token]) -> Vec<(usize, usize, usize)> {
    tokens.iter().map(|it| (it.id as usize, it.frame, it.frames)).collect()
}

/// As in second.py.
pub fn sound(length: usize) -> Vec<f32> {
    let mut state = 12_345u64;
    (0..length)
        .map(|n| {
            state = (1_103_515_245 * state + 12_345) % 2_147_483_648;
            let t = n as f64 / 16_000.0;
            let noise = state as f64 / 1_073_741_824.0 - 1.0;
            let second = if (t * 3.0) as i64 % 2 == 1 { (2.0 * PI * 1730.0 * t).sin() } else { 0.0 };
            (0.3 * (2.0 * PI * (220.0 + 9.0 * t) * t).sin() + 0.2 * second + 0.01 * noise) as f32
        })
        .collect()
}

/// The reference has the three in a batch, with padding; here each is encoded alone and all are read together.
#[test]
fn one_second_to_forty_are_those_of_a_padded_batch() {
    let golden = golden("second");
    for is_ctc in [false, true] {
        let folder = folder("second", is_ctc);
        let model = load(folder.path(), Precision::F32).unwrap();
        let mut windows = Vec::new();
        for (number, length) in [16_000, 116_800, 640_000].into_iter().enumerate() {
            let spectrogram = NemoMel::new(80).normalised(&sound(length));
            let rows = spectrogram.chunks_exact(80).step_by(37).flatten().copied().collect::<Vec<_>>();
            let expected = &golden[&format!("features.{number}")];
            let count = rows.len() / 80;
            let off = difference(&rows, &numbers(&expected.narrow(0, 0, count).unwrap()));
            assert!(off < FEATURES, "features of {length}: off by {off}");
            let encoded = model.encoder.forward(&spectrogram, &|| true).unwrap();
            assert_near(&encoded, &golden[&format!("encoded.{number}")], &format!("{length} encoded"));
            windows.push(encoded);
        }
        let together = model.read(&windows, 1, None, &|| true).unwrap();
        for (number, (window, tokens)) in windows.iter().zip(&together).enumerate() {
            let of = |part: &str| integers(&golden[&format!("{part}.{number}")]);
            if is_ctc {
                assert_eq!(runs(&of("best"), 19), as_runs(tokens), "{number}");
            } else {
                assert_eq!(told(tokens), (of("tokens"), of("starts"), of("durations")), "{number}");
            }
            // Not even a bit depends on what is beside it.
            let alone = model.read(std::slice::from_ref(window), 1, None, &|| true).unwrap();
            assert_eq!(&alone[0], tokens, "{number}");
        }
    }
}

/// The log-probability of a text, of all ways of placing it in time together: the forward algorithm
/// (Graves, arXiv:1211.3711, with durations as in arXiv:2304.06795).
fn log_probability(model: &Parakeet, window: &Tensor, text: &[Token]) -> f64 {
    let (Head::Tdt(tdt), ParakeetHead::Tdt { durations, .. }) = (&model.head, &model.config.head) else {
        panic!("no transducer")
    };
    let vocabulary = model.config.dimensions.vocabulary as usize;
    let blank = model.config.blank as usize;
    let frames = tdt.project(window).unwrap();
    let length = frames.dim(0).unwrap();
    let mut state = tdt.start();
    let mut ways = vec![vec![f64::NEG_INFINITY; length + 1]; text.len() + 1];
    ways[0][0] = 0.0;
    let add = |to: &mut f64, more: f64| {
        let most = to.max(more);
        if most > f64::NEG_INFINITY {
            *to = most + ((*to - most).exp() + (more - most).exp()).ln();
        }
    };
    let shares = |logits: &[f32]| -> Vec<f64> {
        let sum: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
        logits.iter().map(|x| f64::from(*x) - sum.ln()).collect()
    };
    for written in 0..=text.len() {
        let last = if written == 0 { model.config.blank } else { text[written - 1].id };
        let (predicted, after) = tdt.predict(&[last], &[&state]).unwrap();
        state = after.into_iter().next().unwrap();
        let logits: Vec<Vec<f32>> =
            tdt.join(&frames.broadcast_add(&predicted).unwrap()).unwrap().to_vec2().unwrap();
        for frame in 0..length {
            let (tokens, of_durations) = logits[frame].split_at(vocabulary);
            let (tokens, of_durations) = (shares(tokens), shares(of_durations));
            for (duration, share) in durations.iter().zip(of_durations) {
                let here = ways[written][frame] + share;
                add(&mut ways[written][(frame + duration.max(&1)).min(length)], here + tokens[blank]);
                if let Some(next) = text.get(written) {
                    add(
                        &mut ways[written + 1][(frame + duration).min(length)],
                        here + tokens[next.id as usize],
                    );
                }
            }
        }
    }
    ways[text.len()][length]
}

#[test]
fn beams_find_a_likelier_text_which_nothing_beside_it_changes() {
    let folder = folder("second", false);
    let model = load(folder.path(), Precision::F32).unwrap();
    let window = |length: usize| {
        let spectrogram = NemoMel::new(80).normalised(&sound(length));
        model.encoder.forward(&spectrogram, &|| true).unwrap()
    };
    let windows: Vec<Tensor> = [16_000, 48_000, 116_800].into_iter().map(window).collect();
    let read = |beams: usize| model.read(&windows, beams, None, &|| true).unwrap();
    let greedy = read(1);
    let mut before: Vec<f64> =
        windows.iter().zip(&greedy).map(|(window, text)| log_probability(&model, window, text)).collect();
    let least = before.clone();
    for beams in [2, 4, 8] {
        let found = read(beams);
        for (number, (window, text)) in windows.iter().zip(&found).enumerate() {
            let log_probability = log_probability(&model, window, text);
            println!("{number}: {beams} beams {log_probability}, less {}", before[number]);
            assert!(log_probability >= least[number], "{number}: {beams} beams");
            before[number] = log_probability;
            let places: Vec<usize> = text.iter().map(|token| token.frame).collect();
            assert!(places.is_sorted() && places.iter().all(|place| *place < window.dim(0).unwrap()));
            assert!(text.iter().all(|token| token.probability > 0.0 && token.probability <= 1.0));
            let alone = model.read(std::slice::from_ref(window), beams, None, &|| true).unwrap();
            assert_eq!(&alone[0], text, "{number}: {beams} beams");
        }
    }
    assert!(before.iter().zip(&least).all(|(most, least)| most > least), "{before:?}, {least:?}");
    assert!(matches!(model.read(&windows, 4, None, &|| false), Err(Error::Interrupted)));
}

#[test]
fn every_precision_computes_and_is_held_as_asked() {
    let size = random_models::ParakeetSize::named("parakeet-tiny").unwrap();
    let wide = random_models::ParakeetSize { width: 256, predictor: 256, channels: 16, ..*size };
    let folder = tempfile::tempdir().unwrap();
    let options = random_models::Options { precision: random_models::WeightType::F32, ..Default::default() };
    random_models::write_parakeet_model(folder.path(), &wide, &options).unwrap();
    let spectrogram = NemoMel::new(128).normalised(&sound(48_000));
    let exact = load(folder.path(), Precision::F32).unwrap();
    let expected = numbers(&exact.encoder.forward(&spectrogram, &|| true).unwrap());
    for (precision, most) in [
        (Precision::F16, 0.02),
        (Precision::Bf16, 0.1),
        (Precision::Q8_0, 0.1),
        (Precision::Q6K, 0.4),
        (Precision::Q5K, 0.8),
        (Precision::Q4K, 1.5),
        (Precision::Q5_0, 0.8),
    ] {
        let model = load(folder.path(), precision).unwrap();
        assert_eq!(model.precision, precision);
        assert!(model.weight_bytes < exact.weight_bytes);
        let encoded = model.encoder.forward(&spectrogram, &|| true).unwrap();
        let off = difference(&numbers(&encoded), &expected);
        println!("{precision}: off by {off}");
        assert!(off < most, "{precision}: off by {off}");
        model.read(&[encoded], 1, None, &|| true).unwrap();

        // As a file of its own it is the same model.
        let file = folder.path().join(format!("{precision}"));
        fs::create_dir(&file).unwrap();
        for name in ["config.json", "tokenizer.json"] {
            fs::copy(folder.path().join(name), file.join(name)).unwrap();
        }
        models::quantise(folder.path(), precision, &file.join("model.gguf"), &|| true).unwrap();
        let again = load(&file, precision).unwrap();
        let of_file = numbers(&again.encoder.forward(&spectrogram, &|| true).unwrap());
        let of_memory = numbers(&model.encoder.forward(&spectrogram, &|| true).unwrap());
        assert_eq!(difference(&of_file, &of_memory), 0.0, "{precision}");
        fs::remove_dir_all(&file).unwrap();
    }
}

/// Windows up to the longest one are computed, whatever holds the distances between their frames.
#[test]
fn windows_longer_than_the_longest_are_refused() {
    let folder = folder("first", false);
    for precision in [Precision::F32, Precision::F16] {
        let model = load(folder.path(), precision).unwrap();
        let bands = model.config.dimensions.encoder.mel_bins as usize;
        let encode = |frames: usize| model.encoder.forward(&vec![0.5; 8 * frames * bands], &|| true);
        let most = memory::FastConformerDimensions::MOST_FRAMES;
        assert_eq!(encode(most).unwrap().dim(0).unwrap(), most);
        let refusal = encode(most + 1).unwrap_err().to_string();
        assert!(refusal.contains("a window of 513 frames, more than 512"), "{refusal}");
    }
}

#[test]
fn damaged_models_are_refused_by_name() {
    let change = |what: &dyn Fn(&mut HashMap<String, Tensor>)| {
        let folder = folder("first", false);
        let file = folder.path().join("model.safetensors");
        let mut all = tensors(&file);
        what(&mut all);
        candle_core::safetensors::save(&all, &file).unwrap();
        load(folder.path(), Precision::F32).unwrap_err().to_string()
    };
    const NAME: &str = "encoder.layers.1.feed_forward2.linear1.weight";
    for part in
        [NAME, "decoder.lstm.bias_hh_l1", "joint.head.weight", "encoder.layers.0.conv.norm.running_var"]
    {
        let missing = change(&|all| drop(all.remove(part)));
        assert!(missing.contains(&format!("the tensor {part} is missing")), "{missing}");
    }
    let of_shape = change(&|all| {
        all.insert(NAME.into(), Tensor::zeros((3, 4), candle_core::DType::F32, &Device::Cpu).unwrap());
    });
    assert!(of_shape.contains(&format!("{NAME} has the shape [3, 4]")), "{of_shape}");
    for bad in [f32::NAN, f32::INFINITY] {
        let infinite = change(&|all| {
            let mut values = numbers(&all[NAME]);
            values[77] = bad;
            all.insert(NAME.into(), Tensor::from_vec(values, all[NAME].dims(), &Device::Cpu).unwrap());
        });
        assert!(
            infinite.contains(&format!("the tensor {NAME} has numbers that are not finite")),
            "{infinite}"
        );
    }
    let folder = folder("first", false);
    fs::write(folder.path().join("tokenizer.json"), r#"{"model": {"vocab": {"a": 0}}}"#).unwrap();
    let error = load(folder.path(), Precision::F32).unwrap_err().to_string();
    assert!(error.contains("it has 1 tokens, config.json asks for 33"), "{error}");
}

#[test]
fn a_cancelled_model_stops() {
    let folder = folder("first", false);
    let stopped = Parakeet::load(folder.path(), &Device::Cpu, Precision::F32, &|| false);
    assert!(matches!(stopped, Err(Error::Interrupted)));
    let model = load(folder.path(), Precision::F32).unwrap();
    let spectrogram = NemoMel::new(128).normalised(&sound(16_000));
    assert!(matches!(model.encoder.forward(&spectrogram, &|| false), Err(Error::Interrupted)));
    let encoded = model.encoder.forward(&spectrogram, &|| true).unwrap();
    assert!(matches!(model.read(&[encoded], 1, None, &|| false), Err(Error::Interrupted)));
    assert!(model.encoder.forward(&[], &|| true).is_err());
}
