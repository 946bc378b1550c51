//! Reads written models back with the public `safetensors` crate.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use random_models::{Options, SIZES, Size, WeightType, write};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn written(size: &str, options: &Options) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), Size::named(size).unwrap(), options).unwrap();
    folder
}

#[test]
fn weights_have_the_shapes_and_type_of_the_configuration() {
    for (precision, dtype) in
        [(WeightType::F32, Dtype::F32), (WeightType::F16, Dtype::F16), (WeightType::BF16, Dtype::BF16)]
    {
        let folder = written("micro", &Options { precision, ..Options::default() });
        let bytes = fs::read(folder.path().join("model.safetensors")).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let config = json(&folder.path().join("config.json"));
        let width = config["d_model"].as_u64().unwrap() as usize;
        for (name, shape) in [
            ("model.encoder.conv1.weight", vec![width, 80, 3]),
            (
                "model.decoder.embed_tokens.weight",
                vec![config["vocab_size"].as_u64().unwrap() as usize, width],
            ),
            ("model.decoder.layers.1.encoder_attn.k_proj.weight", vec![width, width]),
            ("model.encoder.layers.1.fc2.weight", vec![width, 4 * width]),
        ] {
            let tensor = tensors.tensor(name).unwrap();
            assert_eq!((tensor.dtype(), tensor.shape()), (dtype, shape.as_slice()), "{name}");
        }
        assert!(tensors.tensor("model.decoder.layers.0.self_attn.k_proj.bias").is_err());
    }
}

#[test]
fn values_are_spread_as_intended() {
    let folder = written("micro", &Options { precision: WeightType::F32, ..Options::default() });
    let bytes = fs::read(folder.path().join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    for (name, mean, deviation) in [
        ("model.decoder.embed_tokens.weight", 0.0, 0.02),
        ("model.encoder.layers.0.fc1.weight", 0.0, 1.0 / 8.0),
        ("model.encoder.layers.0.fc2.weight", 0.0, 1.0 / 16.0),
    ] {
        let values: Vec<f64> = tensors
            .tensor(name)
            .unwrap()
            .data()
            .chunks_exact(4)
            .map(|value| f64::from(f32::from_le_bytes(value.try_into().unwrap())))
            .collect();
        let count = values.len() as f64;
        let found = values.iter().sum::<f64>() / count;
        let spread = (values.iter().map(|v| (v - found).powi(2)).sum::<f64>() / count).sqrt();
        assert!((found - mean).abs() < 4.0 * deviation / count.sqrt(), "{name}: mean {found}");
        assert!((spread / deviation - 1.0).abs() < 0.02, "{name}: deviation {spread}");
    }
}

#[test]
fn shards_hold_each_tensor_once_and_the_index_finds_it() {
    let whole = written("micro", &Options::default());
    let parts = written("micro", &Options { shards: 3, ..Options::default() });
    let index = json(&parts.path().join("model.safetensors.index.json"));
    let files: BTreeSet<&str> =
        index["weight_map"].as_object().unwrap().values().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(files.len(), 3);

    let whole = fs::read(whole.path().join("model.safetensors")).unwrap();
    let whole = SafeTensors::deserialize(&whole).unwrap();
    let mut seen = 0;
    for file in files {
        let bytes = fs::read(parts.path().join(file)).unwrap();
        for (name, tensor) in SafeTensors::deserialize(&bytes).unwrap().tensors() {
            assert_eq!(index["weight_map"][&name], file, "{name}");
            assert_eq!(tensor.data(), whole.tensor(&name).unwrap().data(), "{name}");
            seen += 1;
        }
    }
    assert_eq!(seen, whole.len());
}

#[test]
fn weights_depend_on_the_seed_alone() {
    let bytes = |seed| {
        let folder = written("micro", &Options { seed, ..Options::default() });
        fs::read(folder.path().join("model.safetensors")).unwrap()
    };
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7), bytes(8));
}

#[test]
fn vocabularies_name_every_id_once_and_agree_with_the_configuration() {
    // Ids of the public models.
    for (size, names) in [
        (
            "tiny",
            [("<|endoftext|>", 50257), ("<|su|>", 50357), ("<|translate|>", 50358), ("<|30.00|>", 51864)],
        ),
        (
            "tiny.en",
            [("<|endoftext|>", 50256), ("<|su|>", 50356), ("<|translate|>", 50357), ("<|30.00|>", 51863)],
        ),
        ("micro", [("<|endoftext|>", 2707), ("<|su|>", 2807), ("<|translate|>", 2808), ("<|30.00|>", 4314)]),
    ] {
        check_vocabulary(&written(size, &Options::default()), &names);
    }
    // Narrow, as only the ids are of interest.
    let large = Size { width: 64, encoder_layers: 1, decoder_layers: 1, ..*Size::named("large-v3").unwrap() };
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &large, &Options::default()).unwrap();
    let names = [("<|su|>", 50357), ("<|yue|>", 50358), ("<|translate|>", 50359), ("<|30.00|>", 51865)];
    check_vocabulary(&folder, &names);
    let generation = json(&folder.path().join("generation_config.json"));
    assert_eq!(generation["lang_to_id"]["<|yue|>"], 50358);
    assert_eq!(generation["no_timestamps_token_id"], 50364);
    assert_eq!(generation["task_to_id"]["translate"], 50359);
    assert!(generation["suppress_tokens"].as_array().unwrap().contains(&Value::from(50362)));
}

fn check_vocabulary(folder: &tempfile::TempDir, names: &[(&str, u64)]) {
    let tokenizer = json(&folder.path().join("tokenizer.json"));
    let config = json(&folder.path().join("config.json"));
    let added = tokenizer["added_tokens"].as_array().unwrap();
    let mut ids: Vec<u64> =
        tokenizer["model"]["vocab"].as_object().unwrap().values().map(|id| id.as_u64().unwrap()).collect();
    ids.extend(added.iter().map(|token| token["id"].as_u64().unwrap()));
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(0..config["vocab_size"].as_u64().unwrap()), "ids without gaps");
    for (name, id) in names {
        let token = added.iter().find(|token| token["content"] == *name).unwrap();
        assert_eq!(token["id"], *id, "{name}");
    }
}

#[test]
fn alignment_heads_lie_within_the_decoder() {
    for size in &SIZES {
        for &(layer, head) in size.alignment_heads {
            assert!(layer < size.decoder_layers && head < size.heads(), "{}: {layer} {head}", size.name);
        }
    }
}
