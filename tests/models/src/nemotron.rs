//! A model that tells speakers apart, in the layout and of the width of NVIDIA's
//! Nemotron-3-Diarization, with random weights.

use std::fs;
use std::io;
use std::path::Path;

use crate::weights::{Tensor, Values, write_file};
use crate::{Options, WeightType};

/// Layers of the released model.
pub const NEMOTRON_LAYERS: usize = 31;

const WIDTH: usize = 512;
const INNER: usize = 2048;
const SMALL: usize = 192;
const FACTOR: usize = 8;
const BANDS: usize = 128;
const SPEAKERS: usize = 8;

/// Writes the model to `folder`, which is created if necessary: 13 MB for each layer. What
/// `config.json` does not say is as in the released model.
///
/// # Errors
/// The error of the file system, if a file can't be written.
pub fn write_nemotron_model(folder: &Path, layers: usize) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let config = serde_json::json!({
        "model_type": "nemotron3_diarization",
        "audio_config": { "num_hidden_layers": layers },
    });
    fs::write(folder.join("config.json"), config.to_string())?;
    let mut tensors = vec![tensor("silence_embeds", &[WIDTH], 0.0, 0.02)];
    let mut matrix = |name: String, output: usize, input: usize, has_bias: bool| {
        let deviation = (input as f32).powf(-0.5);
        tensors.push(tensor(format!("{name}.weight"), &[output, input], 0.0, deviation));
        if has_bias {
            tensors.push(tensor(format!("{name}.bias"), &[output], 0.0, 0.02));
        }
    };
    let tower = "model.audio_tower";
    matrix(format!("{tower}.embedder.projection"), WIDTH, FACTOR * BANDS, false);
    matrix("model.proj".into(), SMALL, WIDTH, true);
    matrix("classifier.dense".into(), SMALL, SMALL, true);
    matrix("classifier.out_proj".into(), SPEAKERS, SMALL, true);
    let mut norms = vec![format!("{tower}.input_layer_norm"), format!("{tower}.layer_norm")];
    for layer in (0..layers).map(|number| format!("{tower}.layers.{number}")) {
        for (part, has_bias) in [("q_proj", false), ("k_proj", false), ("v_proj", false), ("o_proj", true)] {
            matrix(format!("{layer}.self_attn.{part}"), WIDTH, WIDTH, has_bias);
        }
        matrix(format!("{layer}.mlp.fc1"), INNER, WIDTH, true);
        matrix(format!("{layer}.mlp.fc2"), WIDTH, INNER, true);
        norms.extend(["layer_norm1", "layer_norm2"].map(|name| format!("{layer}.{name}")));
    }
    for norm in norms {
        tensors.push(tensor(format!("{norm}.weight"), &[WIDTH], 1.0, 0.05));
        tensors.push(tensor(format!("{norm}.bias"), &[WIDTH], 0.0, 0.05));
    }
    let conv = "model.upsampler.conv";
    tensors.push(tensor(format!("{conv}.weight"), &[FACTOR * SMALL, SMALL, 3], 0.0, 0.04));
    tensors.push(tensor(format!("{conv}.bias"), &[FACTOR * SMALL], 0.0, 0.02));
    let options = Options { precision: WeightType::F32, ..Options::default() };
    write_file(&folder.join("model.safetensors"), &tensors, &options)
}

fn tensor(name: impl Into<String>, shape: &[usize], mean: f32, deviation: f32) -> Tensor {
    Tensor { name: name.into(), shape: shape.to_vec(), values: Values::Normal { mean, deviation } }
}
