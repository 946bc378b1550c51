use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use memory::ladder::Installed;
use memory::{DeviceKind, Network, Precision, TrainingFootprint};
use serde::Deserialize;
use serde_json::Value;

use crate::{CanaryConfig, Error, FileKind, ModelFiles, ParakeetConfig, Tensors, WhisperConfig, read_json};

const GENERATION_CONFIG: &str = "generation_config.json";

/// The smallest vocabulary of a multilingual model. English-only models have
/// at most 51,864 tokens.
const MULTILINGUAL_VOCABULARY: u64 = 51_865;

/// Bytes. The headers of the largest public models take a few hundred kilobytes.
const MAX_HEADER_BYTES: u64 = 64 << 20;

/// A speech model as its files describe it: enough to predict what it takes
/// to run it, without reading its weights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelInfo {
    /// The dimensions of the network.
    pub dimensions: Network,
    /// The precision that most weights are stored in.
    pub stored: Precision,
    /// Whether the model knows languages besides English.
    pub multilingual: bool,
    /// Whether the model was trained to translate to English.
    pub translates: bool,
    /// What else it can be asked for.
    pub abilities: Abilities,
}

/// What a model can be asked for besides the text of a recording. Command line and window
/// offer no more than that, and a request for more is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// It can be told the language; else it finds it by itself and does not say it.
    pub told_language: bool,
    /// It finds the language, in each region anew where that is asked for; else it must be told it, or writes without saying it.
    pub finds_language: bool,
    /// It can be asked to translate, well or not.
    pub translation: bool,
    /// It can be told what was said before. Words to expect act in every model's search.
    pub prompt: bool,
    /// It can follow several texts at once; else the likeliest token is taken.
    pub beams: bool,
    /// How many texts it follows at once unless more or fewer are asked for.
    pub usual_beams: usize,
    /// It can draw tokens at temperatures, and leave out times.
    pub temperatures: bool,
    /// ISO 639 codes of the languages that it knows well enough to be chosen for; `None`: all that it knows.
    pub good_at: Option<&'static [&'static str]>,
    /// Whether the words of its family were measured with released weights. Only such models are recommended.
    pub is_measured: bool,
}

impl Abilities {
    /// Whisper's.
    pub const WHISPER: Self = Self {
        told_language: true,
        finds_language: true,
        translation: true,
        prompt: true,
        beams: true,
        usual_beams: 1,
        temperatures: true,
        good_at: None,
        is_measured: true,
    };

    /// Canary's. Its words and times were never measured with released weights.
    pub const CANARY: Self = Self {
        told_language: true,
        finds_language: false,
        translation: true,
        prompt: false,
        beams: false,
        usual_beams: 1,
        temperatures: false,
        good_at: Some(&CanaryConfig::LANGUAGES),
        is_measured: false,
    };

    /// Parakeet's with a transducer. Five texts at once take it little longer than one, and half as many words are wrong. Of 25 European languages it knows 17 well; in the others, Danish, Greek, Estonian, Latvian,
    /// Lithuanian, Maltese, Slovenian and Swedish, 15 to 24 % of its words are wrong on FLEURS, by its authors.
    pub const PARAKEET: Self = Self {
        told_language: false,
        finds_language: false,
        translation: false,
        prompt: false,
        beams: true,
        usual_beams: 5,
        temperatures: false,
        good_at: Some(&[
            "bg", "cs", "de", "en", "es", "fi", "fr", "hr", "hu", "it", "nl", "pl", "pt", "ro", "ru", "sk",
            "uk",
        ]),
        is_measured: true,
    };

    /// Parakeet's that takes the likeliest token of each frame.
    pub const PARAKEET_CTC: Self = Self { beams: false, usual_beams: 1, ..Self::PARAKEET };

    /// What a network of these dimensions can be asked for.
    pub fn of(network: &Network) -> Self {
        match network {
            Network::Whisper(_) => Self::WHISPER,
            Network::Parakeet(parakeet) if parakeet.predictor_layers == 0 => Self::PARAKEET_CTC,
            Network::Parakeet(_) => Self::PARAKEET,
            Network::Canary(_) => Self::CANARY,
        }
    }
}

impl ModelInfo {
    /// Reads the configuration and the headers of the model at `path`: a
    /// folder, or a GGUF or whisper.cpp file. A missing or damaged
    /// `generation_config.json` is no error, as old models have none; loading
    /// the model reports a damaged one.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the model is of no known family, otherwise
    /// the file that is missing, unreadable or not valid.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        if let Some(parakeet) = ParakeetConfig::find(folder)?.filter(|_| !is_ggml(path)) {
            return Ok(Self {
                dimensions: Network::Parakeet(parakeet.dimensions),
                stored: stored_precision(path)?,
                multilingual: parakeet.multilingual,
                translates: false,
                abilities: Abilities::of(&Network::Parakeet(parakeet.dimensions)),
            });
        }
        if let Some(canary) = CanaryConfig::find(folder)?.filter(|_| !is_ggml(path)) {
            return Ok(Self {
                dimensions: Network::Canary(canary.dimensions),
                stored: stored_precision(path)?,
                multilingual: true,
                translates: true,
                abilities: Abilities::CANARY,
            });
        }
        let dimensions = WhisperConfig::read(path)?.dimensions;
        let generation: GenerationConfig = read_json(folder, GENERATION_CONFIG).unwrap_or_default();
        let multilingual =
            generation.is_multilingual.unwrap_or(dimensions.vocabulary >= MULTILINGUAL_VOCABULARY);
        Ok(Self {
            dimensions: dimensions.into(),
            stored: stored_precision(path)?,
            multilingual,
            abilities: Abilities::WHISPER,
            // Models with a shortened decoder (turbo, distil) were trained for
            // transcription only.
            translates: multilingual && dimensions.decoder_layers >= dimensions.encoder_layers,
        })
    }

    /// The dimensions of the model at `path`, from its description alone.
    ///
    /// # Errors
    /// As [`ModelInfo::read`].
    pub fn network(path: &Path) -> Result<Network, Error> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        if is_ggml(path) {
            return Ok(WhisperConfig::read(path)?.dimensions.into());
        }
        if let Some(parakeet) = ParakeetConfig::find(folder)? {
            return Ok(Network::Parakeet(parakeet.dimensions));
        }
        if let Some(canary) = CanaryConfig::find(folder)? {
            return Ok(Network::Canary(canary.dimensions));
        }
        Ok(WhisperConfig::read(path)?.dimensions.into())
    }

    /// The precision that the weights are held in by default on this kind of device.
    pub fn usual(&self, kind: DeviceKind) -> Precision {
        self.stored.usual_on(kind)
    }

    /// The precisions that the weights can be held in on this kind of device,
    /// the largest first: the default one; the stored one, if it is smaller
    /// (the weights are then widened as they are used, and results are the
    /// same); and Q8_0, which weights can be quantised to while they are loaded.
    pub fn precisions(&self, kind: DeviceKind) -> Vec<Precision> {
        /// Enough for whole blocks of every precision.
        const WEIGHTS: u64 = 1 << 20;
        let mut precisions = vec![self.usual(kind)];
        for smaller in [self.stored, Precision::Q8_0] {
            if smaller.bytes(WEIGHTS) < precisions.last().map_or(0, |last| last.bytes(WEIGHTS)) {
                precisions.push(smaller);
            }
        }
        precisions
    }

    /// How the frozen matrices of a model called `name` may be held while adapters of this rank are trained, the largest
    /// first: as asked for, and in 16 bits, which for a model that is stored so loses nothing. Empty for one that can't
    /// learn.
    pub fn ways_to_learn(&self, name: &str, asked: Precision, rank: u32) -> Vec<Installed> {
        let Network::Whisper(dimensions) = &self.dimensions else { return Vec::new() };
        let halved = if self.stored == Precision::F16 { Precision::F16 } else { Precision::Bf16 };
        let bytes = |kind, precision| {
            TrainingFootprint::of(dimensions, kind, precision, u64::from(rank), 0, false).weights
        };
        let held = |precision: Precision| Installed {
            model: name.to_owned(),
            precision: precision.as_str().into(),
            parameters: dimensions.parameters().total(),
            gpu_bytes: bytes(DeviceKind::Gpu, precision),
            host_bytes: bytes(DeviceKind::Host, precision),
            suits: true,
        };
        let is_smaller = bytes(DeviceKind::Host, halved) < bytes(DeviceKind::Host, asked);
        std::iter::once(asked).chain(is_smaller.then_some(halved)).map(held).collect()
    }
}

/// Whether it is one of whisper.cpp's files, which may lie beside anything.
fn is_ggml(path: &Path) -> bool {
    path.is_file() && FileKind::of(path).is_ok_and(|kind| kind == FileKind::Ggml)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct GenerationConfig {
    is_multilingual: Option<bool>,
}

/// The precision that most bytes of the first file of weights are stored in.
fn stored_precision(path: &Path) -> Result<Precision, Error> {
    let file = match ModelFiles::find(path)? {
        ModelFiles::Safetensors { files, folder } => files.into_iter().next().unwrap_or(folder),
        ModelFiles::Gguf { file, .. } | ModelFiles::Ggml { file } => {
            return Ok(Tensors::open(&file)?.stored_precision());
        }
    };
    let header = safetensors_header(&file).map_err(|error| Error::invalid(&file, error))?;
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    for tensor in header.values() {
        if let (Some(dtype), Some([start, end])) =
            (tensor["dtype"].as_str(), tensor["data_offsets"].as_array().map(Vec::as_slice))
        {
            let length = end.as_u64().unwrap_or(0).saturating_sub(start.as_u64().unwrap_or(0));
            *bytes.entry(dtype).or_default() += length;
        }
    }
    let most = bytes.into_iter().max_by_key(|(_, length)| *length);
    match most.map(|(dtype, _)| dtype) {
        Some("F32") => Ok(Precision::F32),
        Some("F16") => Ok(Precision::F16),
        Some("BF16") => Ok(Precision::Bf16),
        other => {
            Err(Error::invalid(&file, format!("its weights are of the type {}", other.unwrap_or("none"))))
        }
    }
}

/// The header of a safetensors file: 8 bytes of length, little-endian, then a
/// JSON object with a member per tensor. Unlike [`Tensors::open`] this does not
/// require the file to be complete.
fn safetensors_header(path: &Path) -> std::io::Result<BTreeMap<String, Value>> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER_BYTES {
        return Err(std::io::Error::other("its header is longer than any real one"));
    }
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use memory::Dimensions;
    use random_models::describe;

    use super::*;

    const CONFIG: &str = "config.json";
    const WEIGHTS: &str = "model.safetensors";

    #[test]
    fn a_folder_is_described_without_its_weights() {
        let folder = tempfile::tempdir().unwrap();
        // (name, type of the weights, `is_multilingual`), (stored, multilingual, translates)
        for ((name, dtype, is_multilingual), expected) in [
            (("tiny", "F16", None), (Precision::F16, true, true)),
            (("tiny.en", "F32", None), (Precision::F32, false, false)),
            (("small", "F32", Some(false)), (Precision::F32, false, false)),
            (("large-v3-turbo", "BF16", Some(true)), (Precision::Bf16, true, false)),
        ] {
            let info =
                ModelInfo::read(&describe(folder.path(), name, dtype, is_multilingual).unwrap()).unwrap();
            assert_eq!(info.dimensions, Dimensions::of_public(name).unwrap().into(), "{name}");
            assert_eq!((info.stored, info.multilingual, info.translates), expected, "{name}");
        }
    }

    #[test]
    fn the_demonstration_model_is_described() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper");
        let info = ModelInfo::read(&folder).unwrap();
        let Network::Whisper(dimensions) = info.dimensions else { panic!("{info:?}") };
        assert_eq!((dimensions.width, info.stored), (192, Precision::F16));
        assert!(info.multilingual && info.translates);
    }

    /// A file of whisper.cpp with these dimensions and one matrix of a type.
    fn ggml_file(of: &Dimensions, ggml_type: u32, bytes: usize) -> Vec<u8> {
        let mut file = crate::ggml::MAGIC.to_vec();
        let mut number = |number: u64| file.extend((number as u32).to_le_bytes());
        [of.vocabulary, of.audio_context, of.width, of.encoder_heads, of.encoder_layers]
            .into_iter()
            .chain([of.text_context, of.width, of.decoder_heads, of.decoder_layers, of.mel_bins])
            // The file's type, filters of no width, no tokens.
            .chain([u64::from(ggml_type), of.mel_bins, 0, 0])
            .for_each(&mut number);
        let name = "decoder.token_embedding.weight";
        [2, name.len() as u64, u64::from(ggml_type), 64, 2].into_iter().for_each(&mut number);
        file.extend(name.as_bytes());
        file.extend(vec![0; bytes]);
        file
    }

    #[test]
    fn a_file_of_whisper_cpp_is_described() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ggml-tiny.bin");
        for (name, multilingual) in [("tiny", true), ("tiny.en", false)] {
            let dimensions = Dimensions::of_public(name).unwrap();
            for (ggml_type, bytes, stored) in [(1, 2 * 64 * 2, Precision::F16), (8, 4 * 34, Precision::Q8_0)]
            {
                fs::write(&file, ggml_file(&dimensions, ggml_type, bytes)).unwrap();
                let info = ModelInfo::read(&file).unwrap();
                let expected = ModelInfo {
                    dimensions: dimensions.into(),
                    stored,
                    multilingual,
                    translates: multilingual,
                    abilities: Abilities::WHISPER,
                };
                assert_eq!(info, expected, "{name}");
            }
        }
    }

    #[test]
    #[ignore = "full corpus: make soak"]
    fn files_that_whisper_cpp_wrote_are_described() {
        let models = random_models::corpus::full().join("models");
        let twin = ModelInfo::read(&models.join("starter-full")).unwrap();
        for (name, stored) in
            [("ggml-starter.bin", Precision::F16), ("ggml-starter-q8_0.bin", Precision::Q8_0)]
        {
            let info = ModelInfo::read(&models.join("starter-ggml").join(name)).unwrap();
            assert_eq!(info, ModelInfo { stored, ..twin.clone() }, "{name}");
        }
    }

    #[test]
    fn precisions_are_offered_from_the_largest_down() {
        use Precision::{Bf16, F16, F32, Q4_0, Q8_0};
        let dimensions = Dimensions::of_public("tiny").unwrap();
        for (stored, kind, expected) in [
            (F32, DeviceKind::Host, vec![F32, Q8_0]),
            (F16, DeviceKind::Host, vec![F32, F16, Q8_0]),
            (F16, DeviceKind::Gpu, vec![F16, Q8_0]),
            (Bf16, DeviceKind::Gpu, vec![Bf16, Q8_0]),
            (Q8_0, DeviceKind::Host, vec![Q8_0]),
            (Q4_0, DeviceKind::Gpu, vec![Q4_0]),
        ] {
            let abilities = Abilities::WHISPER;
            let info = ModelInfo {
                dimensions: dimensions.into(),
                stored,
                multilingual: true,
                translates: true,
                abilities,
            };
            assert_eq!(info.precisions(kind), expected, "{stored} {kind:?}");
            assert_eq!(info.usual(kind), expected[0], "{stored} {kind:?}");
        }
    }

    #[test]
    fn errors_name_the_file_and_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let cases: [(&str, &str, &[u8], &str); 4] = [
            ("tiny", CONFIG, b"{}", "config.json is not valid: missing field"),
            ("base", CONFIG, b"", "config.json is not valid: EOF"),
            (
                "small",
                WEIGHTS,
                b"\xff\xff\xff\xff\xff\xff\xff\xff",
                "model.safetensors is not valid: its header is longer",
            ),
            ("medium", WEIGHTS, b"\x02\0\0\0\0\0\0\0{}", "its weights are of the type none"),
        ];
        for (name, file, bytes, expected) in cases {
            let path = describe(folder.path(), name, "F16", None).unwrap();
            fs::write(path.join(file), bytes).unwrap();
            let error = ModelInfo::read(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let path = describe(folder.path(), "large-v3", "F16", None).unwrap();
        fs::remove_file(path.join(WEIGHTS)).unwrap();
        let error = ModelInfo::read(&path).unwrap_err();
        assert!(matches!(error, Error::Missing { file: WEIGHTS, .. }), "{error}");
        let path = describe(folder.path(), "large-v3-turbo", "F16", None).unwrap();
        let config = fs::read_to_string(path.join(CONFIG)).unwrap().replace("whisper", "wav2vec2");
        fs::write(path.join(CONFIG), config).unwrap();
        let error = ModelInfo::read(&path).unwrap_err();
        assert!(matches!(&error, Error::Unsupported { kind, .. } if kind == "wav2vec2"), "{error}");
    }
}
