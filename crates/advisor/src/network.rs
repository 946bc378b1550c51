//! What a model's files say about the network in them, so that what it takes
//! can be predicted without loading it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use formats::{Source, Tensors};
use memory::{DeviceKind, Dimensions, Footprint, Plan, Precision};
use serde::Deserialize;
use serde_json::Value;
use wire::{ErrorCode, Failure, Job};

const GENERATION: &str = "generation_config.json";

/// Tokens that only the multilingual models have: the English ones count
/// 51,864 and fewer.
const MULTILINGUAL_VOCABULARY: u64 = 51_865;

/// Headers of the largest public models are a few hundred kilobytes.
const LONGEST_HEADER: u64 = 64 << 20;

/// A Whisper network, as its files describe it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    pub dimensions: Dimensions,
    /// How the file has most of its weights.
    pub stored: Precision,
    pub multilingual: bool,
    /// Whether it was trained to translate.
    pub translates: bool,
}

impl Network {
    /// Reads a model: its folder, or the one file that it consists of. Fails
    /// with `ModelInvalid` or `ModelUnsupported`, naming the file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let dimensions = formats::WhisperConfig::read(path).map_err(failure)?.dimensions;
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        // Old models come without; that of a damaged one shows when it is loaded.
        let generation: Generation = json(&folder.join(GENERATION)).unwrap_or_default();
        let multilingual =
            generation.is_multilingual.unwrap_or(dimensions.vocabulary >= MULTILINGUAL_VOCABULARY);
        Ok(Self {
            dimensions,
            stored: stored(path)?,
            multilingual,
            // A decoder that was shortened (turbo, distil) was taught to
            // transcribe and nothing else.
            translates: multilingual && dimensions.decoder_layers >= dimensions.encoder_layers,
        })
    }

    /// What it takes to run `job` on a device of this kind, its weights held
    /// in `precision`.
    pub fn footprint(&self, kind: DeviceKind, precision: Precision, job: &Job) -> Footprint {
        let decoding = &job.decoding;
        // Above temperature 0 drafts take the place of beams.
        let drafts =
            if decoding.temperatures.iter().any(|value| *value > 0.0) { decoding.best_of } else { 1 };
        let mut plan = Plan::new(kind, precision, &self.dimensions);
        plan.beams = decoding.beam_size.max(drafts).max(1) as u64;
        plan.word_times = decoding.word_times;
        Footprint::whisper(&self.dimensions, &plan)
    }

    /// How its weights are held where nobody asks for anything else.
    pub fn usual(&self, kind: DeviceKind) -> Precision {
        self.stored.usual_on(kind)
    }

    /// How its weights can be held on a device of this kind, the largest first:
    /// as they usually are, as they are stored where that is less (the same
    /// numbers, widened as they are needed), and in the 8 bits that they are
    /// reduced to while they are loaded.
    pub fn precisions(&self, kind: DeviceKind) -> Vec<Precision> {
        const MANY: u64 = 1 << 20;
        let usual = self.usual(kind);
        let mut precisions = vec![usual];
        for lower in [self.stored, Precision::Q8_0] {
            if lower.bytes(MANY) < precisions.last().map_or(0, |last| last.bytes(MANY)) {
                precisions.push(lower);
            }
        }
        precisions
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Generation {
    is_multilingual: Option<bool>,
}

/// The precision that most bytes of the first file of weights are in.
fn stored(path: &Path) -> Result<Precision, Failure> {
    let path = match Source::find(path).map_err(failure)? {
        Source::Safetensors { files, folder } => files.into_iter().next().unwrap_or(folder),
        Source::Gguf { file, .. } | Source::Ggml { file } => {
            return Ok(Tensors::open(&file).map_err(failure)?.stored_precision());
        }
    };
    let header = header(&path).map_err(|error| invalid(&path, error))?;
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in header.values() {
        if let (Some(kind), Some([start, end])) =
            (tensor["dtype"].as_str(), tensor["data_offsets"].as_array().map(Vec::as_slice))
        {
            let length = end.as_u64().unwrap_or(0).saturating_sub(start.as_u64().unwrap_or(0));
            *bytes.entry(kind).or_default() += length;
        }
    }
    let most = bytes.into_iter().max_by_key(|(_, length)| *length);
    match most.map(|(kind, _)| kind) {
        Some("F32") => Ok(Precision::F32),
        Some("F16") => Ok(Precision::F16),
        Some("BF16") => Ok(Precision::Bf16),
        other => Err(invalid(&path, format!("its weights are of the type {}", other.unwrap_or("none")))),
    }
}

/// The header of a safetensors file: 8 bytes of length, little-endian, then
/// JSON that names every tensor.
fn header(path: &Path) -> std::io::Result<BTreeMap<String, Value>> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(std::io::Error::other("its header is longer than any real one"));
    }
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

fn json<T: serde::de::DeserializeOwned>(path: &PathBuf) -> Result<T, Failure> {
    let text = std::fs::read(path).map_err(|error| invalid(path, error))?;
    serde_json::from_slice(&text).map_err(|error| invalid(path, error))
}

fn failure(error: formats::Error) -> Failure {
    match error {
        formats::Error::Missing { folder, file } => {
            Failure::new(ErrorCode::ModelInvalid, format!("This model has no {file}."))
                .file(folder)
                .remedy("Install it again, with all of its files.")
        }
        formats::Error::Io { path, source } => invalid(&path, source),
        formats::Error::Invalid { path, reason } => invalid(&path, reason),
        formats::Error::Unsupported { path, kind } => {
            let message = format!("This is a model of the type \"{kind}\", not Whisper.");
            Failure::new(ErrorCode::ModelUnsupported, message).file(path).remedy("Choose a Whisper model.")
        }
    }
}

fn invalid(path: &Path, problem: impl std::fmt::Display) -> Failure {
    Failure::new(ErrorCode::ModelInvalid, format!("The model can't be used: {problem}."))
        .file(path)
        .remedy("Install it again.")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const CONFIG: &str = "config.json";
    const WEIGHTS: &str = "model.safetensors";

    /// A model's folder of which nothing but the description is real.
    pub(crate) fn write_model(folder: &Path, name: &str, dtype: &str, multilingual: Option<bool>) -> PathBuf {
        let dimensions = Dimensions::of_public(name).unwrap();
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let config = serde_json::json!({
            "model_type": "whisper",
            "num_mel_bins": dimensions.mel_bins,
            "max_source_positions": dimensions.audio_context,
            "max_target_positions": dimensions.text_context,
            "d_model": dimensions.width,
            "encoder_layers": dimensions.encoder_layers,
            "encoder_attention_heads": dimensions.encoder_heads,
            "encoder_ffn_dim": dimensions.encoder_ffn,
            "decoder_layers": dimensions.decoder_layers,
            "decoder_attention_heads": dimensions.decoder_heads,
            "decoder_ffn_dim": dimensions.decoder_ffn,
            "vocab_size": dimensions.vocabulary,
            "torch_dtype": "whatever",
        });
        std::fs::write(folder.join(CONFIG), config.to_string()).unwrap();
        if let Some(multilingual) = multilingual {
            let generation = serde_json::json!({ "is_multilingual": multilingual });
            std::fs::write(folder.join(GENERATION), generation.to_string()).unwrap();
        }
        let header = serde_json::json!({
            "__metadata__": { "format": "pt" },
            "a.bias": { "dtype": "F32", "shape": [2], "data_offsets": [0, 8] },
            "a.weight": { "dtype": dtype, "shape": [4, 4], "data_offsets": [8, 40] },
        })
        .to_string();
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header.as_bytes());
        std::fs::write(folder.join(WEIGHTS), file).unwrap();
        folder
    }

    #[test]
    fn a_folder_is_read_without_its_weights() {
        let folder = tempfile::tempdir().unwrap();
        // (name, type, what the file says) -> stored, multilingual, translates
        for (name, dtype, says, stored, multilingual, translates) in [
            ("tiny", "F16", None, Precision::F16, true, true),
            ("tiny.en", "F32", None, Precision::F32, false, false),
            ("small", "F32", Some(false), Precision::F32, false, false),
            ("large-v3-turbo", "BF16", Some(true), Precision::Bf16, true, false),
        ] {
            let network = Network::read(&write_model(folder.path(), name, dtype, says)).unwrap();
            assert_eq!(network.dimensions, Dimensions::of_public(name).unwrap(), "{name}");
            assert_eq!(
                (network.stored, network.multilingual, network.translates),
                (stored, multilingual, translates),
                "{name}"
            );
        }
    }

    #[test]
    fn the_starter_model_is_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
        let network = Network::read(&folder).unwrap();
        assert_eq!((network.dimensions.width, network.multilingual), (192, true));
        let job = Job::new(1, "talk.flac", folder);
        let footprint = |precision| network.footprint(DeviceKind::Host, precision, &job);
        assert!(footprint(Precision::Q8_0).weights < footprint(network.usual(DeviceKind::Host)).weights / 2);
        // Drafts at higher temperatures count as beams do.
        let mut greedy = job.clone();
        greedy.decoding.temperatures = vec![0.0];
        let once = network.footprint(DeviceKind::Host, network.stored, &greedy);
        assert!(once.caches < footprint(network.stored).caches);
    }

    #[test]
    #[ignore = "full corpus: make soak"]
    fn a_file_of_whisper_cpp_is_read_too() {
        let files = random_models::corpus::full().join("models");
        let twin = Network::read(&files.join("starter-full")).unwrap();
        for (name, stored) in
            [("ggml-starter.bin", Precision::F16), ("ggml-starter-q8_0.bin", Precision::Q8_0)]
        {
            let network = Network::read(&files.join("starter-ggml").join(name)).unwrap();
            assert_eq!((network.dimensions, network.stored), (twin.dimensions, stored), "{name}");
            assert_eq!((network.multilingual, network.translates), (true, twin.translates), "{name}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_model_is_said_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let model = |name: &str| write_model(folder.path(), name, "F16", None);
        let cases: [(&str, &str, &[u8], &str); 4] = [
            ("tiny", CONFIG, b"{}", "config.json: The model can't be used: missing field"),
            ("base", CONFIG, b"", "config.json: The model can't be used: EOF"),
            (
                "small",
                WEIGHTS,
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                "model.safetensors: The model can't be used: its header",
            ),
            ("medium", WEIGHTS, b"\x02\0\0\0\0\0\0\0{}", "its weights are of the type none"),
        ];
        for (name, file, bytes, expected) in cases {
            let path = model(name);
            std::fs::write(path.join(file), bytes).unwrap();
            let failure = Network::read(&path).unwrap_err().to_string();
            assert!(failure.contains(expected), "{failure}");
        }
        let path = model("large-v2");
        std::fs::remove_file(path.join(WEIGHTS)).unwrap();
        assert!(
            Network::read(&path).unwrap_err().to_string().contains("This model has no model.safetensors.")
        );
    }
}
