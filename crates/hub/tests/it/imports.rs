//! Models from this machine: known by what is in them, refused with the part
//! that is missing or wrong, and never run.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::{Path, PathBuf};

use formats::Tensors;
use hub::{Code, Control, Error, Model, Store, StoredState};
use random_models::{Options, Size, write};

struct Place {
    folder: tempfile::TempDir,
    store: Store,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path().join("store"));
        Self { folder, store }
    }

    fn micro(&self, name: &str, options: &Options) -> PathBuf {
        let folder = self.folder.path().join(name);
        write(&folder, Size::named("micro").unwrap(), options).unwrap();
        folder
    }

    fn import(&self, path: &Path, name: Option<&str>) -> Result<Model, Error> {
        hub::import(&self.store, path, name, &Control::default(), &mut |_| {})
    }

    /// It is there, whole, and the same as what it was made of.
    #[track_caller]
    fn is_right(&self, model: &Model, weights: &Path) {
        assert_eq!(model.state, StoredState::Ready);
        let verified = hub::verify(&self.store, &model.id, &Control::default(), &mut |_, _| {}).unwrap();
        assert_eq!(verified.damaged, []);
        let name = weights.file_name().unwrap();
        let copied = fs::read_dir(&model.folder).unwrap().map(|entry| entry.unwrap().path());
        let bytes = fs::read(weights).unwrap();
        let same = copied.into_iter().any(|path| {
            fs::metadata(&path).unwrap().len() == bytes.len() as u64 && fs::read(&path).unwrap() == bytes
        });
        assert!(same, "{name:?} is not in {}", model.folder.display());
        hub::inspect(&model.folder).unwrap();
        assert_eq!(fs::read_dir(self.store.folder().join(".partial")).unwrap().count(), 0);
    }
}

/// The tensors of a folder as a GGUF file.
fn gguf(folder: &Path) -> Vec<u8> {
    let tensors = Tensors::open(folder).unwrap();
    let mut index: Vec<_> = tensors.index.iter().collect();
    index.sort_by_key(|(name, _)| (*name).clone());
    let mut header = b"GGUF\x03\0\0\0".to_vec();
    header.extend((index.len() as u64).to_le_bytes());
    header.extend(0u64.to_le_bytes());
    let mut data = Vec::new();
    for (name, entry) in index {
        header.extend((name.len() as u64).to_le_bytes());
        header.extend(name.as_bytes());
        header.extend((entry.shape.len() as u32).to_le_bytes());
        for size in entry.shape.iter().rev() {
            header.extend((*size as u64).to_le_bytes());
        }
        header.extend(formats::gguf::type_number(*entry.stored.as_ref().unwrap()).to_le_bytes());
        header.extend((data.len() as u64).to_le_bytes());
        data.extend(&tensors.files[entry.file].1[entry.bytes.clone()]);
        data.resize(data.len().next_multiple_of(32), 0);
    }
    header.resize(header.len().next_multiple_of(32), 0);
    [header, data].concat()
}

/// The tensors of a folder as a file of whisper.cpp, or, where `quantised`, with
/// all matrices in blocks of q8_0. These hold zeros: imports look at shapes only.
fn ggml(folder: &Path, quantised: bool) -> Vec<u8> {
    const NAMES: [(&str, &str); 17] = [
        ("model.", ""),
        ("encoder.embed_positions.weight", "encoder.positional_embedding"),
        ("decoder.embed_positions.weight", "decoder.positional_embedding"),
        ("decoder.embed_tokens", "decoder.token_embedding"),
        (".encoder_attn_layer_norm.", ".cross_attn_ln."),
        (".self_attn_layer_norm.", ".attn_ln."),
        (".final_layer_norm.", ".mlp_ln."),
        ("encoder.layer_norm", "encoder.ln_post"),
        ("decoder.layer_norm", "decoder.ln"),
        (".encoder_attn.", ".cross_attn."),
        (".self_attn.", ".attn."),
        ("layers.", "blocks."),
        ("q_proj", "query"),
        ("k_proj", "key"),
        ("v_proj", "value"),
        ("out_proj", "out"),
        (".fc1.", ".mlp.0."),
    ];
    let of = formats::WhisperConfig::read(folder).unwrap().dimensions;
    let tensors = Tensors::open(folder).unwrap();
    let (tokens, filter_width) = (256, 201);
    let mut file = b"lmgg".to_vec();
    let number = |file: &mut Vec<u8>, value: u64| file.extend((value as u32).to_le_bytes());
    for value in [of.vocabulary, of.audio_context, of.width, of.encoder_heads, of.encoder_layers] {
        number(&mut file, value);
    }
    for value in [of.text_context, of.width, of.decoder_heads, of.decoder_layers, of.mel_bins, 1] {
        number(&mut file, value);
    }
    number(&mut file, of.mel_bins);
    number(&mut file, filter_width);
    file.extend(vec![0; (4 * of.mel_bins * filter_width) as usize]);
    number(&mut file, tokens);
    for token in 0..tokens {
        number(&mut file, 1);
        file.push(token as u8);
    }
    for (name, entry) in &tensors.index {
        if name == "proj_out.weight" {
            continue;
        }
        let theirs = NAMES.iter().fold(name.clone(), |name, (ours, theirs)| name.replace(ours, theirs));
        let theirs = theirs.replace(".fc2.", ".mlp.2.");
        let mut shape = entry.shape.clone();
        // Biases of convolutions are columns there.
        if name.contains("conv") && name.ends_with(".bias") {
            shape.push(1);
        }
        let is_matrix = shape.len() == 2 && name.ends_with(".weight") && !name.contains("positions");
        let kind = formats::gguf::type_number(*entry.stored.as_ref().unwrap());
        number(&mut file, shape.len() as u64);
        number(&mut file, theirs.len() as u64);
        number(&mut file, if quantised && is_matrix { 8 } else { u64::from(kind) });
        for size in shape.iter().rev() {
            number(&mut file, *size as u64);
        }
        file.extend(theirs.as_bytes());
        if quantised && is_matrix {
            // 32 weights are a scale of two bytes and a byte each.
            file.extend(vec![0; shape.iter().product::<usize>() / 32 * 34]);
        } else {
            file.extend(&tensors.files[entry.file].1[entry.bytes.clone()]);
        }
    }
    file
}

#[test]
fn a_model_in_any_form_is_taken_whole() {
    let place = Place::new();
    let whole = place.micro("whole", &Options::default());
    place.is_right(&place.import(&whole, None).unwrap(), &whole.join("model.safetensors"));
    // The weights alone stand for the folder that they lie in.
    let by_file = place.import(&whole.join("model.safetensors"), Some("by-file")).unwrap();
    place.is_right(&by_file, &whole.join("model.safetensors"));
    // Weights of another name get the one that is looked for.
    let other = place.micro("other", &Options::default());
    fs::rename(other.join("model.safetensors"), other.join("finetuned.safetensors")).unwrap();
    let renamed = place.import(&other.join("finetuned.safetensors"), None).unwrap();
    assert_eq!(renamed.id, "finetuned");
    place.is_right(&renamed, &other.join("finetuned.safetensors"));

    let sharded = place.micro("sharded", &Options { shards: 3, ..Options::default() });
    let shard = sharded.join("model-00002-of-00003.safetensors");
    place.is_right(&place.import(&sharded, None).unwrap(), &shard);
    place.is_right(&place.import(&shard, Some("by-shard")).unwrap(), &shard);

    let quantised = place.micro("gguf", &Options::default());
    let file = quantised.join("model-q8.gguf");
    fs::write(&file, gguf(&quantised)).unwrap();
    fs::remove_file(quantised.join("model.safetensors")).unwrap();
    place.is_right(&place.import(&quantised, None).unwrap(), &file);
    place.is_right(&place.import(&file, None).unwrap(), &file);
    let names: Vec<String> = place.store.list().unwrap().into_iter().map(|model| model.id).collect();
    assert_eq!(names, ["by-file", "by-shard", "finetuned", "gguf", "model-q8", "sharded", "whole"]);
}

#[test]
fn a_file_of_whisper_cpp_has_everything_inside() {
    let place = Place::new();
    let folder = place.micro("plain", &Options::default());
    for (name, quantised) in [("ggml-micro.bin", false), ("ggml-micro-q8_0.bin", true)] {
        let file = place.folder.path().join(name);
        let bytes = ggml(&folder, quantised);
        fs::write(&file, &bytes).unwrap();
        let model = place.import(&file, None).unwrap();
        assert_eq!(model.id, name.trim_end_matches(".bin"));
        place.is_right(&model, &file);
        // Cut anywhere, and with a dimension that its tensors don't have.
        let mut wider = bytes.clone();
        wider[12] ^= 64;
        for (damaged, part) in [(&bytes[..bytes.len() - 5], "its data"), (&bytes[..40], ""), (&wider, "wide")]
        {
            let path = place.folder.path().join("damaged.bin");
            fs::write(&path, damaged).unwrap();
            let error = place.import(&path, None).unwrap_err();
            assert_eq!(error.code(), Code::Invalid, "{error}");
            assert!(error.to_string().contains(part), "{error}");
        }
    }
}

#[test]
fn what_is_missing_or_wrong_is_named_and_nothing_is_left() {
    /// Takes a whole model and damages it.
    type Damage = fn(&Path);
    fn replaced(folder: &Path, file: &str, from: &str, to: &str) {
        let text = fs::read_to_string(folder.join(file)).unwrap();
        assert!(text.contains(from), "no {from} in {file}");
        fs::write(folder.join(file), text.replacen(from, to, 1)).unwrap();
    }
    /// Of the same length, so that the rest of the file stays in place.
    fn header(folder: &Path, from: &str, to: &str) {
        let mut bytes = fs::read(folder.join("model.safetensors")).unwrap();
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        fs::write(folder.join("model.safetensors"), bytes).unwrap();
    }
    fn overwritten(folder: &Path, file: &str, with: &[u8]) {
        fs::write(folder.join(file), with).unwrap();
    }
    let cases: [(&str, Damage, &[&str]); 16] = [
        ("no config", |it| fs::remove_file(it.join("config.json")).unwrap(), &["it has no config.json"]),
        (
            "no tokenizer",
            |it| fs::remove_file(it.join("tokenizer.json")).unwrap(),
            &["it has no tokenizer.json"],
        ),
        (
            "no weights",
            |it| fs::remove_file(it.join("model.safetensors")).unwrap(),
            &["it has no model.safetensors"],
        ),
        (
            "cut",
            |it| {
                let bytes = fs::read(it.join("model.safetensors")).unwrap();
                overwritten(it, "model.safetensors", &bytes[..bytes.len() - 1]);
            },
            &["model.safetensors"],
        ),
        (
            "a tensor less",
            |it| header(it, "model.decoder.layers.1.fc1.bias", "model.decoder.layers.1.fc1.bihs"),
            &["the tensor model.decoder.layers.1.fc1.bias is missing"],
        ),
        ("a type", |it| header(it, "\"dtype\":\"F16\"", "\"dtype\":\"I16\""), &["is of the type I16"]),
        (
            "a shape",
            |it| replaced(it, "config.json", "\"encoder_ffn_dim\":256", "\"encoder_ffn_dim\":128"),
            &["fc1", "has the shape [256, 64]", "must be [128, 64]"],
        ),
        (
            "another kind",
            |it| replaced(it, "config.json", "\"whisper\"", "\"wav2vec2\""),
            &["\"wav2vec2\", neither Whisper"],
        ),
        (
            "an activation",
            |it| replaced(it, "config.json", "\"gelu\"", "\"silu\""),
            &["activation function silu"],
        ),
        (
            "no size",
            |it| replaced(it, "config.json", "\"d_model\"", "\"d\""),
            &["config.json", "missing field `d_model`"],
        ),
        (
            "huge",
            |it| replaced(it, "config.json", "\"decoder_layers\":2", "\"decoder_layers\":99999999"),
            &["decoder_layers is 99999999"],
        ),
        (
            "a token",
            |it| replaced(it, "tokenizer.json", "<|notimestamps|>", "<|notimestamp|>"),
            &["tokenizer.json", "<|notimestamps|> is missing"],
        ),
        ("a broken tokenizer", |it| overwritten(it, "tokenizer.json", b"{"), &["tokenizer.json", "EOF"]),
        (
            "a pointer",
            |it| overwritten(it, "model.safetensors", b"version https://git-lfs.github.com/spec/v1\noid"),
            &["a pointer of Git LFS", "git lfs pull"],
        ),
        (
            "a page",
            |it| overwritten(it, "config.json", b"<!doctype html><title>Sign in"),
            &["config.json", "a page of a web site"],
        ),
        (
            "a pickle",
            |it| {
                fs::remove_file(it.join("model.safetensors")).unwrap();
                overwritten(it, "pytorch_model.bin", b"PK\x03\x04 data.pkl");
            },
            &["pytorch_model.bin", "a pickle", "save_pretrained"],
        ),
    ];
    for (what, damage, parts) in cases {
        let place = Place::new();
        let folder = place.micro("model", &Options::default());
        damage(&folder);
        let error = place.import(&folder, None).unwrap_err();
        assert_eq!(error.code(), Code::Invalid, "{what}: {error}");
        let path = error.path().map(|path| path.display().to_string()).unwrap_or_default();
        for part in parts {
            let said = format!("{path}: {error}");
            assert!(said.contains(part), "{what}: no {part:?} in {said:?}");
        }
        assert_eq!(place.store.list().unwrap(), [], "{what}");
        assert!(!place.store.folder().join("model").exists(), "{what}");
    }
}

#[test]
fn a_folder_of_documents_is_not_taken_for_one_of_pickles() {
    let place = Place::new();
    let folder = place.folder.path().join("talks");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("cut.docx"), b"PK\x03\x04\x14\0[Content_Types].xml").unwrap();
    fs::write(folder.join("talk.mp3"), b"ID3\x04\0\0").unwrap();
    let error = place.import(&folder, None).unwrap_err();
    assert_eq!(error.code(), Code::Invalid);
    assert!(error.to_string().contains("it has no model.safetensors"), "{error}");
}

#[test]
fn files_that_are_no_models_are_refused_with_the_way_out() {
    let place = Place::new();
    let tar = [vec![0; 257], b"ustar\0".to_vec(), vec![0; 600]].concat();
    let cases: [(&str, &[u8], &str); 7] = [
        ("small.pt", b"PK\x03\x04archive/data.pkl", "convert-pt-to-ggml.py"),
        ("old.pt", b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19", "pickle"),
        ("model.nemo", &tar, "NeMo"),
        ("cut.docx", b"PK\x03\x04\x14\0[Content_Types].xml", "a zip archive, which is no model"),
        ("talk.mp3", b"ID3\x04\0\0", "neither safetensors nor GGUF"),
        ("alone.safetensors", b"\x02\0\0\0\0\0\0\0{}", "it has no config.json"),
        ("alone.gguf", b"GGUF", "it has no config.json"),
    ];
    for (name, bytes, part) in cases {
        let path = place.folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        let error = place.import(&path, None).unwrap_err();
        assert_eq!(error.code(), Code::Invalid, "{name}: {error}");
        assert!(error.to_string().contains(part), "{name}: {error}");
    }
    let missing = place.import(&place.folder.path().join("nothing"), None).unwrap_err();
    assert_eq!(missing.code(), Code::Unreadable);
    assert_eq!(place.store.list().unwrap(), []);
}

#[test]
fn names_are_checked_and_nothing_is_replaced() {
    let place = Place::new();
    let folder = place.micro("my model", &Options::default());
    assert_eq!(place.import(&folder, None).unwrap_err().code(), Code::Invalid);
    place.import(&folder, Some("mine")).unwrap();
    let error = place.import(&folder, Some("mine")).unwrap_err().to_string();
    assert!(error.contains("A model named mine already exists") && error.contains("--name"), "{error}");
    for name in ["../out", ".hidden", "a/b", "con"] {
        assert!(matches!(place.import(&folder, Some(name)), Err(Error::BadName { .. })), "{name}");
    }
    // A folder that somebody copied is not the store's.
    let (mine, copy) = (place.store.folder().join("mine"), place.store.folder().join("copy"));
    fs::create_dir(&copy).unwrap();
    fs::copy(mine.join(hub::MANIFEST), copy.join(hub::MANIFEST)).unwrap();
    assert_eq!(place.store.list().unwrap().len(), 1);
    assert!(place.store.remove("copy").is_err() && copy.is_dir());
    // A damaged import has nowhere to be repaired from.
    fs::remove_file(place.store.folder().join("mine/tokenizer.json")).unwrap();
    assert_eq!(
        place.store.model("mine").unwrap().state,
        StoredState::Damaged { files: vec!["tokenizer.json".into()] }
    );
    place.store.remove("mine").unwrap();
    place.import(&folder, Some("mine")).unwrap();
}

/// A folder of networks that tell speakers apart, in checkpoints as pyannote saves them.
#[test]
fn a_speaker_model_is_imported_and_verified() {
    let source = random_models::corpus::bundled().join("reference/speakers/community/model");
    let place = Place::new();
    let model = place.import(&source, Some("speakers")).unwrap();
    assert_eq!(model.state, StoredState::Ready);
    let verify = || hub::verify(&place.store, "speakers", &Control::default(), &mut |_, _| {}).unwrap();
    assert_eq!(verify().damaged, []);
    hub::inspect(&model.folder).unwrap();
    let file = model.folder.join("plda/plda.npz");
    let mut bytes = fs::read(&file).unwrap();
    bytes[500] ^= 1;
    fs::write(&file, bytes).unwrap();
    assert_eq!(verify().damaged[0].0, "plda/plda.npz");
    place.store.remove("speakers").unwrap();
    assert!(place.store.model("speakers").is_err());
}

/// A folder of one network that tells speakers apart by itself.
#[test]
fn a_nemotron_is_imported_or_refused_with_the_reason() {
    let source = random_models::corpus::bundled().join("reference/speakers/nemotron/model");
    let place = Place::new();
    let model = place.import(&source, Some("speakers")).unwrap();
    assert_eq!(model.state, StoredState::Ready);
    hub::inspect(&model.folder).unwrap();
    let folder = place.folder.path().join("model");
    fs::create_dir_all(&folder).unwrap();
    let config = fs::read_to_string(source.join("config.json")).unwrap();
    let weights = fs::read(source.join("model.safetensors")).unwrap();
    for (config, weights, reason) in [
        (config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"), &weights[..], "is missing"),
        (config.clone(), &weights[..1000], "invalid header length"),
        (config.replace("\"gelu\"", "\"silu\""), &weights[..], "silu"),
    ] {
        fs::write(folder.join("config.json"), config).unwrap();
        fs::write(folder.join("model.safetensors"), weights).unwrap();
        let error = place.import(&folder, Some("other")).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
        assert_eq!(place.store.list().unwrap().len(), 1);
    }
}

/// A folder in the layout of sentence-transformers keeps all that says how a vector is made.
#[test]
fn a_model_that_embeds_texts_is_imported_verified_and_removed() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding/tiny-bert");
    let place = Place::new();
    let model = place.import(&source, Some("mine")).unwrap();
    assert_eq!(model.state, StoredState::Ready);
    for name in
        ["config.json", "tokenizer.json", "modules.json", "1_Pooling/config.json", "model.safetensors"]
    {
        assert_eq!(
            fs::read(model.folder.join(name)).unwrap(),
            fs::read(source.join(name)).unwrap(),
            "{name}"
        );
    }
    assert!(!model.folder.join("make.py").exists());
    fs::write(model.folder.join("1_Pooling/config.json"), "{}").unwrap();
    let verified = hub::verify(&place.store, "mine", &Control::default(), &mut |_, _| ()).unwrap();
    assert_eq!(
        verified.damaged.iter().map(|(file, _)| file.as_str()).collect::<Vec<_>>(),
        ["1_Pooling/config.json"]
    );
    place.store.remove("mine").unwrap();
    assert!(place.store.list().unwrap().is_empty());

    // What is no whole model is refused by name, before anything is copied.
    let folder = place.folder.path().join("half");
    fs::create_dir(&folder).unwrap();
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        fs::copy(source.join(name), folder.join(name)).unwrap();
    }
    let config = fs::read_to_string(source.join("config.json")).unwrap();
    for (config, reason) in [
        (config.replace("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"), "encoder.layer.2"),
        (config.replace("\"intermediate_size\": 64", "\"intermediate_size\": 65"), "config.json asks for"),
        (config.replace("\"gelu\"", "\"silu\""), "silu"),
    ] {
        fs::write(folder.join("config.json"), config).unwrap();
        let error = place.import(&folder, None).unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
        assert!(place.store.list().unwrap().is_empty());
    }
}

#[test]
fn a_damaged_speaker_model_is_refused_with_its_file_and_the_reason() {
    let source = random_models::corpus::bundled().join("reference/speakers/community/model");
    for (file, damage, reason) in [
        ("embedding/pytorch_model.bin", None, "embedding/pytorch_model.bin"),
        ("plda/plda.npz", None, "plda/plda.npz"),
        ("plda/plda.npz", Some(&b"PK"[..]), "no directory"),
        ("segmentation/pytorch_model.bin", Some(&b"GGUF"[..]), "neither safetensors nor a checkpoint"),
        // A pickle that is no archive is not read at all.
        ("segmentation/pytorch_model.bin", Some(&b"\x80\x02cos\nsystem\n"[..]), "no directory"),
    ] {
        let place = Place::new();
        let folder = place.folder.path().join("model");
        for part in [
            "segmentation/pytorch_model.bin",
            "embedding/pytorch_model.bin",
            "plda/plda.npz",
            "plda/xvec_transform.npz",
        ] {
            let target = folder.join(part);
            fs::create_dir_all(target.parent().unwrap()).unwrap();
            match damage {
                _ if part != file => drop(fs::copy(source.join(part), target).unwrap()),
                Some(bytes) => fs::write(target, bytes).unwrap(),
                None => (),
            }
        }
        let error = place.import(&folder, None).unwrap_err().to_string();
        assert!(error.contains(reason), "{file}: {error}");
        assert!(place.store.list().unwrap().is_empty());
    }
}

/// What a killed attempt left disturbs no later import, and a failed import leaves nothing.
#[test]
fn a_model_that_is_made_here_is_seen_when_it_is_whole() {
    let place = Place::new();
    let origin = || hub::Origin::Copy { model: "other".into(), precision: "q8_0".into() };
    let partial = place.store.folder().join(".partial");
    for left in ["made", "made.partial"] {
        fs::create_dir_all(partial.join(left)).unwrap();
    }
    let making = place.store.make("made").unwrap();
    assert_eq!(fs::read_dir(&partial).unwrap().count(), 0);
    assert!(matches!(place.store.make("made"), Err(Error::InUse { .. })));
    write(making.folder(), Size::named("micro").unwrap(), &Options::default()).unwrap();
    // It can't be on a list, and is no reason to refuse the model.
    fs::write(making.folder().join(".note"), "x").unwrap();
    assert!(!place.store.folder().join("made").exists());
    let made = making.install(origin(), &Control::default()).unwrap();
    assert_eq!((&made.state, &made.origin), (&StoredState::Ready, &Some(origin())));
    place.is_right(&made, &place.micro("same", &Options::default()).join("model.safetensors"));
    assert!(matches!(place.store.make("made"), Err(Error::Exists { .. })));
    assert!(matches!(place.store.make("../made"), Err(Error::BadName { .. })));

    let given_up = place.store.make("given-up").unwrap();
    write(given_up.folder(), Size::named("micro").unwrap(), &Options::default()).unwrap();
    drop(given_up);
    assert_eq!(place.store.list().unwrap().len(), 1);
    place.store.remove("made").unwrap();
    assert_eq!(place.store.list().unwrap(), []);
}
