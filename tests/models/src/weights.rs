use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use half::slice::HalfFloatSliceExt;
use half::{bf16, f16};
use serde_json::{Map, Value, json};

use crate::size::{SOURCE_POSITIONS, TARGET_POSITIONS};
use crate::{Options, Size, WeightType};

/// Values that are generated and written at a time.
const CHUNK: usize = 1 << 16;

/// Writes model.safetensors, or its shards and their index.
pub(crate) fn write(folder: &Path, size: &Size, options: &Options) -> io::Result<()> {
    let tensors = tensors(size);
    let total: usize = tensors.iter().map(|tensor| tensor.bytes(options.precision)).sum();
    let shards = split(&tensors, options.shards.max(1), options.precision);
    if let [all] = shards.as_slice() {
        return write_file(&folder.join("model.safetensors"), all, options);
    }
    let mut map = Map::new();
    for (i, shard) in shards.iter().enumerate() {
        let name = format!("model-{:05}-of-{:05}.safetensors", i + 1, shards.len());
        write_file(&folder.join(&name), shard, options)?;
        map.extend(shard.iter().map(|tensor| (tensor.name.clone(), json!(name))));
    }
    let index = json!({ "metadata": { "total_size": total }, "weight_map": map });
    crate::write_json(&folder.join("model.safetensors.index.json"), &index)
}

pub(crate) struct Tensor {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Values,
}

#[derive(Clone, Copy)]
pub(crate) enum Values {
    Normal {
        mean: f32,
        deviation: f32,
    },
    /// Zeros but for one place.
    Spike {
        at: usize,
        height: f32,
    },
    /// Position embeddings: sines, then cosines, of wavelengths from 2 pi to 20,000 pi.
    Sinusoids,
}

impl Tensor {
    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn bytes(&self, precision: WeightType) -> usize {
        self.len() * bytes_per_value(precision)
    }

    /// Generates values from index `start` on.
    fn fill(&self, seed: u64, start: usize, block: &mut [f32]) {
        match self.values {
            Values::Normal { mean, deviation } => {
                let stream = self.name.bytes().fold(mix(seed), |state, byte| mix(state ^ u64::from(byte)));
                for (i, value) in block.iter_mut().enumerate() {
                    *value = mean + deviation * normal(stream.wrapping_add((start + i) as u64));
                }
            }
            Values::Spike { at, height } => {
                block.fill(0.0);
                if let Some(value) = at.checked_sub(start).and_then(|at| block.get_mut(at)) {
                    *value = height;
                }
            }
            Values::Sinusoids => {
                let width = self.shape[1];
                for (i, value) in block.iter_mut().enumerate() {
                    *value = sinusoid((start + i) / width, (start + i) % width, width);
                }
            }
        }
    }
}

/// All tensors of the network, sorted by name. The deviations keep activations
/// near 1 through all layers, within the range of F16.
fn tensors(size: &Size) -> Vec<Tensor> {
    let width = size.width;
    let mut tensors = Vec::new();
    let mut add = |name: String, shape: &[usize], values| {
        tensors.push(Tensor { name, shape: shape.to_vec(), values });
    };
    let normal = |deviation| Values::Normal { mean: 0.0, deviation };
    // Keeps the variance of the activations.
    let weight = |fan_in: usize| normal((fan_in as f32).sqrt().recip());
    let bias = normal(0.02);
    let scale = Values::Normal { mean: 1.0, deviation: 0.05 };

    for (conv, channels) in [("conv1", size.mel_bins), ("conv2", width)] {
        add(format!("model.encoder.{conv}.weight"), &[width, channels, 3], weight(3 * channels));
        add(format!("model.encoder.{conv}.bias"), &[width], bias);
    }
    add("model.encoder.embed_positions.weight".into(), &[SOURCE_POSITIONS, width], Values::Sinusoids);
    add("model.decoder.embed_positions.weight".into(), &[TARGET_POSITIONS, width], normal(0.01));
    add("model.decoder.embed_tokens.weight".into(), &[size.vocabulary.len(), width], normal(0.02));

    for (half, layers) in [("encoder", size.encoder_layers), ("decoder", size.decoder_layers)] {
        let mut norms = vec![format!("model.{half}.layer_norm")];
        for layer in (0..layers).map(|i| format!("model.{half}.layers.{i}")) {
            let attentions: &[&str] =
                if half == "encoder" { &["self_attn"] } else { &["self_attn", "encoder_attn"] };
            for attention in attentions {
                for projection in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    let name = format!("{layer}.{attention}.{projection}");
                    add(format!("{name}.weight"), &[width, width], weight(width));
                    if projection != "k_proj" {
                        add(format!("{name}.bias"), &[width], bias);
                    }
                }
                norms.push(format!("{layer}.{attention}_layer_norm"));
            }
            for (name, rows, columns) in [("fc1", 4 * width, width), ("fc2", width, 4 * width)] {
                add(format!("{layer}.{name}.weight"), &[rows, columns], weight(columns));
                add(format!("{layer}.{name}.bias"), &[rows], bias);
            }
            norms.push(format!("{layer}.final_layer_norm"));
        }
        for norm in norms {
            add(format!("{norm}.weight"), &[width], scale);
            add(format!("{norm}.bias"), &[width], bias);
        }
    }
    tensors.sort_by(|a, b| a.name.cmp(&b.name));
    tensors
}

/// Divides the tensors into shards of about the same number of bytes. No shard is
/// empty.
fn split(tensors: &[Tensor], shards: usize, precision: WeightType) -> Vec<&[Tensor]> {
    let total: usize = tensors.iter().map(|tensor| tensor.bytes(precision)).sum();
    let mut parts = Vec::new();
    let (mut start, mut before) = (0, 0);
    for (i, tensor) in tensors.iter().enumerate() {
        before += tensor.bytes(precision);
        if before * shards >= total * (parts.len() + 1) {
            parts.push(&tensors[start..=i]);
            start = i + 1;
        }
    }
    parts
}

/// Writes a safetensors file: the length of the header in eight bytes, the header
/// as JSON padded to a multiple of eight bytes, then the values without gaps.
pub(crate) fn write_file(path: &Path, tensors: &[Tensor], options: &Options) -> io::Result<()> {
    let mut header = Map::new();
    header.insert("__metadata__".into(), json!({ "format": "pt" }));
    let mut offset = 0;
    for tensor in tensors {
        let end = offset + tensor.bytes(options.precision);
        header.insert(
            tensor.name.clone(),
            json!({
                "dtype": match options.precision {
                    WeightType::F32 => "F32",
                    WeightType::F16 => "F16",
                    WeightType::BF16 => "BF16",
                },
                "shape": tensor.shape,
                "data_offsets": [offset, end],
            }),
        );
        offset = end;
    }
    let mut header = serde_json::to_vec(&Value::Object(header))?;
    header.resize(header.len().next_multiple_of(8), b' ');

    let partial = path.with_extension("safetensors.partial");
    let mut file = BufWriter::with_capacity(1 << 20, File::create(&partial)?);
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut block = vec![0.0; CHUNK];
    let mut bytes = Vec::with_capacity(CHUNK * 4);
    for tensor in tensors {
        for start in (0..tensor.len()).step_by(CHUNK) {
            let block = &mut block[..CHUNK.min(tensor.len() - start)];
            tensor.fill(options.seed, start, block);
            encode(block, options.precision, &mut bytes);
            file.write_all(&bytes)?;
        }
    }
    file.into_inner()?.sync_all()?;
    fs::rename(partial, path)
}

fn bytes_per_value(precision: WeightType) -> usize {
    match precision {
        WeightType::F32 => 4,
        WeightType::F16 | WeightType::BF16 => 2,
    }
}

fn encode(values: &[f32], precision: WeightType, bytes: &mut Vec<u8>) {
    bytes.clear();
    match precision {
        WeightType::F32 => values.iter().for_each(|value| bytes.extend(value.to_le_bytes())),
        WeightType::F16 => {
            let mut halves = vec![f16::ZERO; values.len()];
            halves.convert_from_f32_slice(values);
            halves.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
        WeightType::BF16 => {
            let mut halves = vec![bf16::ZERO; values.len()];
            halves.convert_from_f32_slice(values);
            halves.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
    }
}

/// The value of an approximately standard normal distribution at `index`: the sum
/// of four uniform numbers, the 16-bit parts of a hash of `index`. Its magnitude
/// is at most 3.5. Values are independent of each other, and a billion of them
/// takes seconds.
fn normal(index: u64) -> f32 {
    /// The standard deviation of the sum of four uniform numbers between 0 and 1.
    const DEVIATION: f32 = 0.577_350_26;
    let bits = mix(index);
    let sum: u64 = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum();
    (sum as f32 / 65_536.0 - 2.0 + 2.0 / 65_536.0) / DEVIATION
}

/// The output function of SplitMix64 (Steele, Lea, Flood: Fast Splittable
/// Pseudorandom Number Generators, 2014).
fn mix(state: u64) -> u64 {
    let z = state.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A position embedding of the encoder (`sinusoids` of openai/whisper).
fn sinusoid(position: usize, column: usize, width: usize) -> f32 {
    const MAX_TIMESCALE: f64 = 10_000.0;
    let half = width / 2;
    let wave = (column % half) as f64;
    let angle = position as f64 * (-MAX_TIMESCALE.ln() * wave / (half as f64 - 1.0)).exp();
    (if column < half { angle.sin() } else { angle.cos() }) as f32
}
