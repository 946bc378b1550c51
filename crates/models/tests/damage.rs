//! Damaged models are refused with a reason, and counts in their headers never
//! lead to large allocations. `STENO_DAMAGE_ROUNDS` sets the number of rounds;
//! scripts/soak.sh runs more of them.
//!
//! A test executable of its own, as it limits the allocations of its process.
// Helpers of tests may panic as tests do.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use candle_core::{DType, Device};
use memory::Precision;
use memory::allocation::{Counted, limited};
use models::whisper::{Whisper, WhisperConfig};
use models::{Error, Weights, quantise};
use random_models::{Options, Size, write};

/// Bytes. Reading a file of 0.5 MB must take less.
const MAX_ALLOCATED: usize = 4 << 20;

#[global_allocator]
static ALLOCATOR: Counted = Counted::new(|| std::process::abort());

/// Held by each test, as the limit applies to the whole process.
static ALONE: Mutex<()> = Mutex::new(());

fn micro(folder: &Path) {
    write(folder, Size::named("micro").unwrap(), &Options::default()).unwrap();
}

/// Writes a model with a GGUF file instead of safetensors.
fn micro_gguf(folder: &Path, precision: Precision) -> PathBuf {
    micro(folder);
    let file = folder.join("model.gguf");
    quantise(folder, precision, &file, &|| true).unwrap();
    fs::remove_file(folder.join("model.safetensors")).unwrap();
    file
}

/// A valid file of whisper.cpp with the dimensions of `folder`, two tokens and two
/// tensors.
fn small_ggml(folder: &Path) -> Vec<u8> {
    let config = WhisperConfig::read(folder).unwrap();
    let mut file = b"lmgg".to_vec();
    let number = |file: &mut Vec<u8>, number: usize| file.extend((number as u32).to_le_bytes());
    for size in [
        config.dimensions.vocabulary as usize,
        config.dimensions.audio_context as usize,
        config.dimensions.width as usize,
        config.dimensions.encoder_heads as usize,
        config.dimensions.encoder_layers as usize,
        config.dimensions.text_context as usize,
        config.dimensions.width as usize,
        config.dimensions.decoder_heads as usize,
        config.dimensions.decoder_layers as usize,
        config.dimensions.mel_bins as usize,
        0,
        // Filters.
        2,
        3,
    ] {
        number(&mut file, size);
    }
    file.extend([0; 2 * 3 * 4]);
    number(&mut file, 2);
    for token in ["a", "bc"] {
        number(&mut file, token.len());
        file.extend(token.as_bytes());
    }
    for (name, shape) in [("encoder.conv1.bias", vec![64, 1]), ("decoder.ln.weight", vec![64])] {
        number(&mut file, shape.len());
        number(&mut file, name.len());
        number(&mut file, 0);
        shape.iter().rev().for_each(|size| number(&mut file, *size));
        file.extend(name.as_bytes());
        file.extend([0; 64 * 4]);
    }
    file
}

/// Calls everything that reads the file.
fn read(path: &Path) -> Result<(), Error> {
    let _ = WhisperConfig::read(path)?;
    let weights = Weights::open(path)?;
    weights.stored_precision();
    let vectors: HashMap<&str, &[usize]> =
        [("model.decoder.layer_norm.weight", &[64][..]), ("model.encoder.conv1.bias", &[64][..])].into();
    for (name, shape) in vectors {
        weights.get(name, shape, DType::F32, &Device::Cpu)?;
    }
    Ok(())
}

fn with(bytes: &[u8], at: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + new.len()].copy_from_slice(new);
    bytes
}

fn position(bytes: &[u8], what: &[u8]) -> usize {
    bytes.windows(what.len()).position(|window| window == what).unwrap()
}

#[test]
fn damaged_files_are_refused_with_a_reason() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let gguf_file = micro_gguf(folder.path(), Precision::Q8_0);
    let gguf = fs::read(&gguf_file).unwrap();
    // After the name of a tensor: number of dimensions, size, type, offset.
    let norm = b"model.decoder.layer_norm.weight";
    let field = position(&gguf, norm) + norm.len();
    let most = [0xff; 8];
    let ggml_folder = tempfile::tempdir().unwrap();
    micro(ggml_folder.path());
    let ggml = small_ggml(ggml_folder.path());
    let ln = position(&ggml, b"decoder.ln.weight");
    let first_token = 4 + 13 * 4 + 24 + 4;
    for (name, bytes, reason) in [
        ("version", with(&gguf, 4, &[9]), "version 9"),
        ("tensors", with(&gguf, 8, &most), "tensors can't be"),
        ("values", with(&gguf, 16, &most), "metadata values can't be"),
        ("key", with(&gguf, 24, &most), "a key has"),
        ("value's type", with(&gguf, 24 + 8 + 20, &[77]), "unknown type 77"),
        ("dimensions", with(&gguf, field, &[200]), "200 dimensions"),
        ("size", with(&gguf, field + 4, &most), "the shape"),
        ("much", with(&gguf, field + 4, &(1u64 << 39).to_le_bytes()), "end beyond the file"),
        ("no size", with(&gguf, field + 4, &[0; 8]), "the shape"),
        ("type", with(&gguf, field + 12, &[99]), "number 99"),
        ("odd offset", with(&gguf, field + 16, &[1]), "no multiple of 32"),
        ("far offset", with(&gguf, field + 16, &(u64::MAX - 31).to_le_bytes()), "end beyond the file"),
        ("name", with(&gguf, position(&gguf, norm), &[0xff]), "not UTF-8"),
        ("cut in the header", gguf[..field].to_vec(), "left"),
        ("cut in the data", gguf[..gguf.len() - 4096].to_vec(), "end beyond the file"),
        ("empty", Vec::new(), "neither"),
        ("whole ggml", ggml.clone(), ""),
        ("no heads", with(&ggml, 4 + 3 * 4, &[0; 4]), "encoder_attention_heads is 0"),
        ("many layers", with(&ggml, 4 + 4 * 4, &[0xff; 4]), "encoder_layers is 4294967295"),
        ("two widths", with(&ggml, 4 + 6 * 4, &[128]), "64 wide, the decoder 128"),
        ("filters", with(&ggml, 4 + 11 * 4, &[0xff; 8]), "filters"),
        ("tokens", with(&ggml, 4 + 13 * 4 + 24, &[0xff; 4]), "tokens can't be"),
        ("token", with(&ggml, first_token, &[0xff; 4]), "token 0 needs"),
        ("ggml type", with(&ggml, ln - 8, &[50]), "unknown type 50"),
        ("ggml size", with(&ggml, ln - 4, &[0xff; 4]), "its data needs"),
        ("ggml dimensions", with(&ggml, ln - 16, &[9]), "9 dimensions"),
        ("ggml name", with(&ggml, ln - 12, &[0xff; 4]), "name has"),
        ("ggml cut", ggml[..ggml.len() - 1].to_vec(), "its data needs"),
    ] {
        fs::write(&gguf_file, bytes).unwrap();
        match limited(MAX_ALLOCATED, || read(&gguf_file)) {
            Ok(()) => assert_eq!(reason, "", "{name}"),
            Err(Error::Files(formats::Error::Invalid { reason: found, .. })) => {
                assert!(!reason.is_empty() && found.contains(reason), "{name}: {found}");
            }
            Err(other) => panic!("{name}: {other}"),
        }
    }
}

/// Any damage leaves a file that is read or refused.
#[test]
fn no_damage_panics_or_allocates_what_is_not_there() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let file = micro_gguf(folder.path(), Precision::Q8_0);
    let gguf = fs::read(&file).unwrap();
    let ggml_folder = tempfile::tempdir().unwrap();
    micro(ggml_folder.path());
    let ggml = small_ggml(ggml_folder.path());
    let header = position(&gguf, b"model.encoder.layers.1.self_attn_layer_norm.weight");
    let mut random = Random(7);
    let mut next = |below: usize| random.below(below);
    let mut refused = 0;
    let rounds = rounds(600);
    for round in 0..rounds {
        let (whole, interesting) = if round % 2 == 0 { (&gguf, header) } else { (&ggml, ggml.len()) };
        let bytes = if round % 3 == 0 {
            whole[..next(interesting)].to_vec()
        } else {
            let mut bytes = whole.clone();
            for _ in 0..=next(4) {
                bytes[next(interesting)] ^= 1 << next(8);
            }
            bytes
        };
        fs::write(&file, bytes).unwrap();
        match limited(MAX_ALLOCATED, || read(&file)) {
            Ok(()) => (),
            Err(Error::Files(formats::Error::Invalid { .. } | formats::Error::Unsupported { .. })) => {
                refused += 1
            }
            Err(other) => panic!("round {round}: {other}"),
        }
    }
    println!("{refused} of {rounds} damaged files were refused");
    assert!(refused > rounds / 2);
}

/// A checkpoint with other bytes in place of some.
fn replaced(whole: &[u8], what: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(what.len(), new.len());
    with(whole, position(whole, what), new)
}

fn checkpoint() -> Vec<u8> {
    let folder = random_models::corpus::bundled().join("reference/speakers/community/model");
    fs::read(folder.join("embedding/pytorch_model.bin")).unwrap()
}

/// A checkpoint of torch is read without being executed, and what a checkpoint does not
/// need is refused by its name.
#[test]
fn checkpoints_are_read_or_refused_with_a_reason() {
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pytorch_model.bin");
    let whole = checkpoint();
    let end = position(&whole, b"PK\x05\x06");
    let directory = position(&whole, b"PK\x01\x02");
    let pickle = position(&whole, b"\x80\x02}");
    for (name, bytes, reason) in [
        ("whole", whole.clone(), ""),
        (
            "a call",
            replaced(&whole, b"ccollections\nOrderedDict\n", b"cos\nsystem______________\n"),
            "os.system_",
        ),
        (
            "eval",
            replaced(&whole, b"ctorch._utils\n_rebuild_tensor_v2\n", b"cbuiltins\neval__________________\n"),
            "builtins.eval_",
        ),
        (
            "another storage",
            replaced(&whole, b"ctorch\nFloatStorage\n", b"ctorch\nFlockStorage\n"),
            "torch.FlockStorage",
        ),
        ("an operation", with(&whole, pickle + 2, b"i"), "0x69"),
        (
            "a text",
            replaced(&whole, b"X\x0a\x00\x00\x00state_dict", b"X\xff\xff\xff\xffstate_dict"),
            "a text has",
        ),
        ("cut", whole[..whole.len() - 40].to_vec(), "no directory"),
        ("compressed", with(&whole, directory + 10, &[8]), "is compressed"),
        ("many files", with(&whole, end + 10, &[0xff; 2]), "files"),
        ("a far directory", with(&whole, end + 16, &[0xff; 4]), "outside the file"),
        ("a far file", with(&whole, directory + 42, &[0xff; 4]), "outside the archive"),
        ("a large file", with(&whole, directory + 24, &[0xff; 4]), "needs"),
        ("no state", replaced(&whole, b"state_dict", b"other_dict"), "no tensors"),
    ] {
        fs::write(&file, bytes).unwrap();
        match limited(MAX_ALLOCATED, || formats::Tensors::open_file(&file)) {
            Ok(found) => {
                assert_eq!(reason, "", "{name}");
                assert!(found.index.contains_key("resnet.seg_1.weight"));
            }
            Err(error) => {
                let error = error.to_string();
                assert!(!reason.is_empty() && error.contains(reason), "{name}: {error}");
                assert!(error.contains("pytorch_model.bin"), "{name}: {error}");
            }
        }
    }
}

#[test]
fn no_damage_of_a_checkpoint_panics_or_allocates_what_is_not_there() {
    /// Values that a pickle of this size can make.
    const MOST: usize = 16 << 20;
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pytorch_model.bin");
    let whole = checkpoint();
    let pickle = position(&whole, b"\x80\x02}");
    let pickle = pickle..position(&whole, b".format_version");
    let directory = position(&whole, b"PK\x01\x02")..whole.len();
    let mut random = Random(5);
    let mut refused = 0;
    let rounds = rounds(600);
    for round in 0..rounds {
        let mut bytes = whole.clone();
        let place = if round % 2 == 0 { &pickle } else { &directory };
        if round % 8 == 0 {
            bytes.truncate(random.below(whole.len()));
        }
        for _ in 0..=random.below(4) {
            let at = place.start + random.below(place.len());
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        fs::write(&file, bytes).unwrap();
        match limited(MOST, || formats::Tensors::open_file(&file)) {
            Ok(_) => (),
            Err(formats::Error::Invalid { reason, .. }) => {
                assert!(!reason.is_empty());
                refused += 1;
            }
            Err(other) => panic!("round {round}: {other}"),
        }
    }
    println!("{refused} of {rounds} damaged checkpoints were refused");
    assert!(refused > rounds / 4);
}

/// The JSON files beside the weights, and the header of safetensors.
#[test]
fn no_damage_of_a_folder_panics_or_allocates_what_is_not_there() {
    /// Loading the whole model takes a few megabytes.
    const MOST_TO_LOAD: usize = 64 << 20;
    let _alone = ALONE.lock();
    let folder = tempfile::tempdir().unwrap();
    micro(folder.path());
    let load = || {
        let model = Whisper::load(folder.path(), &Device::Cpu, Precision::F32, &|| true)?;
        model.vocabulary.with_encoder(|encoder| encoder.encode(" the")).map(drop)
    };
    limited(MOST_TO_LOAD, load).unwrap();
    let mut random = Random(11);
    for name in ["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"] {
        let path = folder.path().join(name);
        let whole = fs::read(&path).unwrap();
        // Only the header of the weights, as any bits are valid weights.
        let reach = match name {
            "model.safetensors" => 8 + u64::from_le_bytes(whole[..8].try_into().unwrap()) as usize,
            _ => whole.len(),
        };
        let mut refused = 0;
        let rounds = rounds(150);
        for round in 0..rounds {
            let damaged = match round % 4 {
                0 => whole[..random.below(reach)].to_vec(),
                1 => digits_changed(&whole, reach, &mut random),
                _ => {
                    let mut bytes = whole.clone();
                    for _ in 0..=random.below(4) {
                        bytes[random.below(reach)] ^= 1 << random.below(8);
                    }
                    bytes
                }
            };
            fs::write(&path, damaged).unwrap();
            match limited(MOST_TO_LOAD, load) {
                Ok(()) => (),
                Err(error) => {
                    refused += 1;
                    assert!(!error.to_string().is_empty());
                }
            }
        }
        println!("{name}: {refused} of {rounds} refused");
        assert!(refused > rounds / 4, "{name}: {refused} of {rounds}");
        fs::write(&path, whole).unwrap();
    }
    limited(MOST_TO_LOAD, load).unwrap();
}

/// Prepends digits to a number of the text.
fn digits_changed(whole: &[u8], reach: usize, random: &mut Random) -> Vec<u8> {
    let from = random.below(reach);
    let Some(at) = (from..reach).find(|at| whole[*at].is_ascii_digit()) else { return whole.to_vec() };
    let mut bytes = whole.to_vec();
    bytes.splice(at..at, b"99999999999".iter().copied().take(1 + random.below(11)));
    bytes
}

fn rounds(ordinary: usize) -> usize {
    std::env::var("STENO_DAMAGE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(ordinary)
}

/// Knuth's MMIX generator, seeded for the same damage on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Whatever becomes of its files, a model that embeds texts is refused, or works.
#[test]
fn no_damage_to_a_model_that_embeds_texts_panics() {
    use models::text_embedding::TextEmbedder;
    let _alone = ALONE.lock();
    let rounds: usize = std::env::var("STENO_DAMAGE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(200);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding/tiny-xlm-roberta");
    let files =
        ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "model.safetensors"];
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("1_Pooling")).unwrap();
    let mut random = numbers_below(7);
    let mut refused = 0;
    for round in 0..rounds {
        for file in files {
            fs::copy(source.join(file), folder.path().join(file)).unwrap();
        }
        let path = folder.path().join(files[round % files.len()]);
        let mut bytes = fs::read(&path).unwrap();
        // Of the weights the header alone says what is what.
        let end = bytes.len().min(4000);
        for _ in 0..=random(3) {
            let at = random(end);
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes[at] = b'0' + random(10) as u8,
                _ => bytes.truncate(at.max(1)),
            }
            if bytes.len() < end {
                break;
            }
        }
        fs::write(&path, bytes).unwrap();
        let used = formats::TextEmbeddingModel::find(folder.path()).map_err(Error::from).and_then(|model| {
            let Some(model) = model else { return Ok(false) };
            let embedder = TextEmbedder::load(&model, &Device::Cpu, Precision::F32, &|| true)?;
            let tokens = embedder.tokens("query: ", "We have to sell the boat.")?;
            Ok(embedder.embed(&[&tokens], &|| true)?.len() == 1)
        });
        refused += usize::from(!matches!(used, Ok(true)));
    }
    println!("{refused} of {rounds} damaged models were refused");
    assert!(refused > rounds / 4);
}

/// Numbers below a limit, always the same.
fn numbers_below(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |limit| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as usize) % limit.max(1)
    }
}
