//! The network compared with the outputs of openai/whisper in
//! tests/data/corpus/reference/tensors, and with candle-transformers' Whisper.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use memory::Precision;
use models::whisper::{Activation, Whisper, WhisperConfig};
use random_models::corpus;

fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper")
}

fn load(folder: &Path) -> Whisper {
    Whisper::load(folder, &Device::Cpu, Precision::F32, &|| true).unwrap()
}

fn largest_difference(a: &Tensor, b: &Tensor) -> f32 {
    assert_eq!(a.dims(), b.dims());
    (a - b).unwrap().abs().unwrap().flatten_all().unwrap().max(0).unwrap().to_scalar().unwrap()
}

#[test]
fn encoder_and_logits_equal_the_reference() {
    check_encoder_and_logits_equal_the_reference(&corpus::bundled(), &["en_short_1", "1688-142285-0000"]);
}

#[test]
#[ignore = "full corpus: make soak"]
fn encoder_and_logits_equal_the_reference_in_the_full_corpus() {
    let names = ["en_short_1", "de_half_minute_1", "1688-142285-0000", "no_speech_white_noise"];
    check_encoder_and_logits_equal_the_reference(&corpus::full(), &names);
}

fn check_encoder_and_logits_equal_the_reference(corpus: &Path, names: &[&str]) {
    const TOLERANCE: f32 = 1e-3;
    let model = load(&starter());
    for name in names {
        let path = corpus.join(format!("reference/tensors/{name}.safetensors"));
        let expected = candle_core::safetensors::load(path, &Device::Cpu).unwrap();
        let audio = model.encoder.forward(&expected["mel"].unsqueeze(0).unwrap(), &|| true).unwrap();
        let encoder = largest_difference(&audio.squeeze(0).unwrap(), &expected["encoder"]);
        let prompt: Vec<u32> =
            expected["prompt"].to_vec1::<i32>().unwrap().iter().map(|token| *token as u32).collect();
        let mut state = model.decoder.start(&audio, 1, 8).unwrap();
        let hidden = model.decoder.forward(&prompt, &mut state, None, &|| true).unwrap();
        let logits = model.decoder.logits(&hidden.squeeze(0).unwrap()).unwrap();
        let logits = largest_difference(&logits, &expected["logits"]);
        println!("{name}: encoder {encoder:.1e}, logits {logits:.1e}");
        assert!(encoder < TOLERANCE && logits < TOLERANCE, "{name}: encoder {encoder}, logits {logits}");
    }
}

/// Writes a model with what candle-transformers always uses: the tanh form of GELU
/// and sinusoidal positions.
fn random_model(folder: &Path) -> WhisperConfig {
    let config = serde_json::json!({
        "model_type": "whisper", "num_mel_bins": 80, "max_source_positions": 60, "max_target_positions": 32,
        "d_model": 48, "encoder_layers": 2, "encoder_attention_heads": 3, "encoder_ffn_dim": 192,
        "decoder_layers": 2, "decoder_attention_heads": 3, "decoder_ffn_dim": 192, "vocab_size": 4315,
        "activation_function": "gelu_new"
    });
    std::fs::write(folder.join("config.json"), config.to_string()).unwrap();
    let config = WhisperConfig::read_folder(folder).unwrap();
    let (d, ffn) = (config.dimensions.width as usize, config.dimensions.encoder_ffn as usize);
    let mut shapes: Vec<(String, Vec<usize>)> = vec![
        ("model.encoder.conv1.weight".into(), vec![d, 80, 3]),
        ("model.encoder.conv1.bias".into(), vec![d]),
        ("model.encoder.conv2.weight".into(), vec![d, d, 3]),
        ("model.encoder.conv2.bias".into(), vec![d]),
        ("model.decoder.embed_tokens.weight".into(), vec![config.dimensions.vocabulary as usize, d]),
        ("model.decoder.embed_positions.weight".into(), vec![config.dimensions.text_context as usize, d]),
    ];
    let mut norm = |name: String| {
        shapes.push((format!("{name}.weight"), vec![d]));
        shapes.push((format!("{name}.bias"), vec![d]));
    };
    for side in ["encoder", "decoder"] {
        norm(format!("model.{side}.layer_norm"));
    }
    for side in ["encoder", "decoder"] {
        for layer in 0..2 {
            let name = format!("model.{side}.layers.{layer}");
            let kinds: &[&str] =
                if side == "encoder" { &["self_attn"] } else { &["self_attn", "encoder_attn"] };
            for kind in kinds {
                for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    shapes.push((format!("{name}.{kind}.{part}.weight"), vec![d, d]));
                    if part != "k_proj" {
                        shapes.push((format!("{name}.{kind}.{part}.bias"), vec![d]));
                    }
                }
                shapes.push((format!("{name}.{kind}_layer_norm.weight"), vec![d]));
                shapes.push((format!("{name}.{kind}_layer_norm.bias"), vec![d]));
            }
            for (part, shape) in [("fc1", [ffn, d]), ("fc2", [d, ffn])] {
                shapes.push((format!("{name}.{part}.weight"), shape.to_vec()));
                shapes.push((format!("{name}.{part}.bias"), vec![shape[0]]));
            }
            shapes.push((format!("{name}.final_layer_norm.weight"), vec![d]));
            shapes.push((format!("{name}.final_layer_norm.bias"), vec![d]));
        }
    }
    let mut seed = 1u64;
    let tensors: HashMap<String, Tensor> = shapes
        .into_iter()
        .map(|(name, shape)| {
            let count = shape.iter().product();
            let data: Vec<f32> = (0..count)
                .map(|_| {
                    // A linear congruential generator gives the same numbers on every machine.
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    ((seed >> 40) as f32 / (1u64 << 24) as f32 - 0.5) * 0.4
                })
                .collect();
            (name, Tensor::from_vec(data, shape, &Device::Cpu).unwrap())
        })
        .collect();
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    for file in ["tokenizer.json", "generation_config.json"] {
        std::fs::copy(starter().join(file), folder.join(file)).unwrap();
    }
    config
}

#[test]
fn network_agrees_with_candle_transformers() {
    use candle_transformers::models::whisper as peer;
    const TOLERANCE: f32 = 1e-4;
    let folder = tempfile::tempdir().unwrap();
    let config = random_model(folder.path());
    assert_eq!(config.activation, Activation::GeluNew);
    let ours = load(folder.path());
    let vb = unsafe {
        candle_nn::VarBuilder::from_mmaped_safetensors(
            &[folder.path().join("model.safetensors")],
            DType::F32,
            &Device::Cpu,
        )
    }
    .unwrap();
    let text = std::fs::read_to_string(folder.path().join("config.json")).unwrap();
    let mut peer_config: serde_json::Value = serde_json::from_str(&text).unwrap();
    peer_config["suppress_tokens"] = serde_json::json!([]);
    let mut theirs = peer::model::Whisper::load(&vb, serde_json::from_value(peer_config).unwrap()).unwrap();

    let frames = config.window_frames();
    let mel: Vec<f32> = (0..80 * frames).map(|i| ((i * 37 % 101) as f32 / 50.0) - 1.0).collect();
    let mel = Tensor::from_vec(mel, (1, 80, frames), &Device::Cpu).unwrap();
    let audio = ours.encoder.forward(&mel, &|| true).unwrap();
    let peer_audio = theirs.encoder.forward(&mel, true).unwrap();
    let encoder = largest_difference(&audio, &peer_audio);

    let tokens = [2708u32, 2709, 2809, 17, 99, 1203];
    let mut state = ours.decoder.start(&audio, 1, tokens.len()).unwrap();
    // One token at a time with the cache, compared with all tokens at once.
    let rows: Vec<Tensor> = tokens
        .iter()
        .map(|token| {
            let hidden = ours.decoder.forward(&[*token], &mut state, None, &|| true).unwrap();
            ours.decoder.logits(&hidden.squeeze(1).unwrap()).unwrap()
        })
        .collect();
    let logits = Tensor::cat(&rows, 0).unwrap();
    let ids = Tensor::new(&tokens[..], &Device::Cpu).unwrap().unsqueeze(0).unwrap();
    let hidden = theirs.decoder.forward(&ids, &peer_audio, true).unwrap();
    let peer_logits = theirs.decoder.final_linear(&hidden).unwrap().squeeze(0).unwrap();
    let logits = largest_difference(&logits, &peer_logits);
    println!("encoder {encoder:.1e}, logits {logits:.1e}");
    assert!(encoder < TOLERANCE && logits < TOLERANCE, "encoder {encoder}, logits {logits}");
}

/// The rows of a batch give the results that they give alone, also after reordering.
#[test]
fn batched_rows_equal_single_ones() {
    let folder = tempfile::tempdir().unwrap();
    let config = random_model(folder.path());
    let model = load(folder.path());
    let frames = config.window_frames();
    let windows = 2;
    let mel: Vec<f32> = (0..windows * 80 * frames).map(|i| ((i * 53 % 97) as f32 / 48.0) - 1.0).collect();
    let mel = Tensor::from_vec(mel, (windows, 80, frames), &Device::Cpu).unwrap();
    let audio = model.encoder.forward(&mel, &|| true).unwrap();
    let (a, b) = ([2708u32, 2709, 5], [2708u32, 2714, 6]);
    let next = [11u32, 12, 13, 14];
    // Two beams per window, some of which are replaced by the other one.
    let mut state = model.decoder.start(&audio, 2, 8).unwrap();
    let tokens: Vec<u32> = [a, a, b, b].concat();
    model.decoder.forward(&tokens, &mut state, None, &|| true).unwrap();
    state.reorder(&[1, 0, 2, 2]).unwrap();
    let batched = model.decoder.forward(&next, &mut state, None, &|| true).unwrap();
    for (row, token) in next.iter().enumerate() {
        let window = row / 2;
        let audio = audio.narrow(0, window, 1).unwrap();
        let mut state = model.decoder.start(&audio, 1, 8).unwrap();
        let prefix = if window == 0 { a } else { b };
        model.decoder.forward(&prefix, &mut state, None, &|| true).unwrap();
        let single = model.decoder.forward(&[*token], &mut state, None, &|| true).unwrap();
        let difference = largest_difference(&batched.narrow(0, row, 1).unwrap(), &single);
        assert!(difference < 1e-5, "row {row}: {difference}");
    }
}
