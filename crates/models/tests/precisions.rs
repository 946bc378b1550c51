//! Weights held in fewer bits: the error of the logits, and the memory of the
//! process compared with its prediction.
//!
//! A test executable of its own, as it measures the memory of its process.
// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use candle_core::{Device, Tensor};
use memory::{DeviceKind, Dimensions, Footprint, HOST_VOCABULARY, Host, Plan, Precision, Probe};
use models::whisper::Whisper;
use random_models::{Options, Size, write};

/// Tokens per sequence. Only a few are decoded.
const CAPACITY: usize = 8;
const MB: f64 = (1 << 20) as f64;
/// Precisions with the largest permitted error of the logits: the root mean square
/// of the difference from 32 bits, relative to that of the logits. Random weights
/// are the worst case, as they have no redundancy.
const ALL: [(Precision, f32); 8] = [
    (Precision::F32, 0.0),
    (Precision::F16, 0.002),
    (Precision::Q8_0, 0.03),
    (Precision::Q6K, 0.08),
    (Precision::Q5_1, 0.18),
    (Precision::Q5_0, 0.20),
    (Precision::Q4K, 0.30),
    (Precision::Q4_0, 0.40),
];

fn load(folder: &Path, precision: Precision) -> Whisper {
    Whisper::load(folder, &Device::Cpu, precision, &|| true).unwrap()
}

/// Encodes a window of noise, decodes `tokens` forced tokens with five beams and
/// returns the logits of the last one.
fn decoded(model: &Whisper, tokens: usize) -> Tensor {
    const BEAMS: usize = 5;
    let (bins, frames) = (model.config.dimensions.mel_bins as usize, model.config.window_frames());
    let mel: Vec<f32> = (0..bins * frames).map(|i| (i * 7919 % 2003) as f32 / 1001.0 - 1.0).collect();
    let mel = Tensor::from_vec(mel, (1, bins, frames), &Device::Cpu).unwrap();
    let audio = model.encoder.forward(&mel, &|| true).unwrap();
    drop(mel);
    let mut state = model.decoder.start(&audio, BEAMS, CAPACITY).unwrap();
    let mut logits = None;
    for step in 0..tokens {
        let ids: Vec<u32> = (0..BEAMS).map(|beam| (300 + 31 * step + 977 * beam) as u32 % 4000).collect();
        let hidden = model.decoder.forward(&ids, &mut state, None, &|| true).unwrap();
        logits = Some(model.decoder.logits(&hidden.squeeze(1).unwrap()).unwrap());
    }
    logits.unwrap()
}

/// The root mean square.
fn rms(x: &Tensor) -> f32 {
    x.sqr().unwrap().mean_all().unwrap().sqrt().unwrap().to_scalar().unwrap()
}

/// Anonymous memory of this process.
fn anonymous() -> u64 {
    memory::platform::trim_allocator();
    memory::platform::resident(None).unwrap().anonymous
}

#[test]
fn logits_stay_near_and_memory_is_what_was_predicted() {
    memory::platform::fix_allocator(memory::platform::AllocatorSettings::default());
    // Rows of base and larger models, which STENO_PRECISION_MODELS may name, are
    // whole blocks of every format.
    let more = std::env::var("STENO_PRECISION_MODELS").unwrap_or_default();
    let more = more.split(',').filter(|name| !name.is_empty()).map(|name| (name, &ALL[..]));
    for (name, precisions) in [("tiny", &ALL[..3]), ("base", &ALL[..])].into_iter().chain(more) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), Size::named(name).unwrap(), &Options::default()).unwrap();
        let dimensions = Dimensions::of_public(name).unwrap();
        let mut exact = None;
        let mut wide = None;
        for (precision, tolerance) in precisions.iter().copied() {
            let plan = Plan {
                word_times: false,
                tokens: CAPACITY as u64,
                ..Plan::new(DeviceKind::Host, precision, &dimensions)
            };
            let predicted = Footprint::whisper(&dimensions, &plan);
            let before = anonymous();
            let host = Host::new().sampled(Duration::from_millis(2));
            memory::platform::set_loading(true);
            let model = load(folder.path(), precision);
            memory::platform::set_loading(false);
            assert_eq!(model.weight_bytes, predicted.weights, "{name} {precision}");
            let loaded = anonymous() - before;
            let logits = decoded(&model, 3);
            let peak = host.read().unwrap().ours.unwrap().peak.unwrap() - before;
            // Both figures leave out the process without a model and include the vocabulary.
            let weights = predicted.weights;
            let predicted = predicted.peak(1) - predicted.fixed + HOST_VOCABULARY;
            let exact = exact.get_or_insert_with(|| logits.clone());
            let error = rms(&(&logits - &*exact).unwrap()) / rms(exact);
            let off = predicted as f64 / peak as f64 - 1.0;
            println!(
                "{name} {precision}: logits off by {:.2} %; weights {:.0} MB, loaded {:.0} MB, peak {:.0} MB, predicted {:.0} MB ({:+.1} %)",
                100.0 * error,
                model.weight_bytes as f64 / MB,
                loaded as f64 / MB,
                peak as f64 / MB,
                predicted as f64 / MB,
                100.0 * off,
            );
            assert!(error <= tolerance, "{name} {precision}: {error}");
            // Stacks and per-thread caches of the allocator vary.
            let slack = 0.15 * peak as f64 + host.noise() as f64;
            assert!(
                (predicted as f64 - peak as f64).abs() < slack,
                "{name} {precision}: {predicted} for {peak}"
            );
            // After loading, the process must be smaller by what is saved on the weights.
            let (wide_loaded, wide_weights) = *wide.get_or_insert((loaded, weights));
            let saved = wide_loaded as f64 - loaded as f64;
            let expected = (wide_weights - weights) as f64;
            assert!(
                saved >= 0.85 * expected - host.noise() as f64,
                "{name} {precision}: {saved} of {expected} saved"
            );
        }
    }
}
