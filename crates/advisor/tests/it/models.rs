//! Which model a host gets, and what it says when there is none.

use std::path::Path;

use advisor::models::{Places, model_at};
use wire::ErrorCode;

/// A folder with empty files at the paths given.
fn tree(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    root
}

/// Two folders of models, the user's before the package's.
fn places(root: &Path) -> Places {
    Places {
        data_folder: Some(root.join("data")),
        package_folders: vec![root.join("package")],
        ..Places::default()
    }
}

#[test]
fn models_are_found_by_name_and_by_path() {
    let root = tree(&[
        "data/steno/models/base/config.json",
        "data/steno/models/no-model/readme.txt",
        "package/base/config.json",
        "package/starter-whisper/config.json",
        "mine/small/config.json",
        "mine/small.gguf",
    ]);
    let marker = r#"{ "name": "starter-whisper", "demonstration": true, "note": "Small." }"#;
    std::fs::write(root.path().join("package/starter-whisper/steno-model.json"), marker).unwrap();
    let mine = |path: &str| root.path().join("mine").join(path).display().to_string();
    for (wanted, name, path, demonstration) in [
        (None, "starter-whisper", "package/starter-whisper", true),
        (Some("base".into()), "base", "data/steno/models/base", false),
        (Some("starter-whisper".into()), "starter-whisper", "package/starter-whisper", true),
        (Some(mine("small")), "small", "mine/small", false),
        (Some(mine("small/")), "small", "mine/small", false),
        (Some(mine("small.gguf")), "small.gguf", "mine/small.gguf", false),
    ] {
        let model = places(root.path()).find(wanted.as_deref()).unwrap();
        assert_eq!(model.name, name, "{wanted:?}");
        assert_eq!(model.path, root.path().join(path), "{wanted:?}");
        assert_eq!(model.demonstration, demonstration, "{wanted:?}");
    }
    let names: Vec<_> = places(root.path()).list().into_iter().map(|model| model.name).collect();
    assert_eq!(names, ["base", "starter-whisper"]);
}

#[test]
fn a_missing_model_is_an_error_that_helps() {
    let root = tree(&["data/steno/models/base/config.json", "package/tiny/config.json", "empty/notes.txt"]);
    let path = |name: &str| root.path().join(name).display().to_string();
    for (wanted, code, said) in [
        ("large", ErrorCode::ModelNotFound, "There are: base, tiny."),
        (&path("nowhere"), ErrorCode::ModelNotFound, "no such model"),
        (&path("empty"), ErrorCode::ModelInvalid, "config.json"),
        ("../base", ErrorCode::ModelNotFound, "no such model"),
        ("", ErrorCode::ModelNotFound, "no such model"),
    ] {
        let failure = places(root.path()).find(Some(wanted)).unwrap_err();
        assert_eq!(failure.code, code, "{wanted}");
        assert!(failure.message.contains(said), "{wanted}: {failure}");
        assert!(failure.remedy.is_some());
    }
    let nothing = tree(&[]);
    let failure = places(nothing.path()).find(None).unwrap_err();
    assert!(failure.message.contains(&nothing.path().join("package").display().to_string()), "{failure}");
}

#[test]
fn the_starter_model_of_this_source_is_found_and_marked_as_a_demonstration() {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    for executable in ["target/debug/steno", "target/debug/deps/test", "target/release/steno"] {
        let places = Places { executable: Some(checkout.join(executable)), ..Places::default() };
        let model = places.find(None).unwrap();
        assert_eq!(model.path, checkout.join("models/starter-whisper"));
        assert!(model.demonstration && model.note.is_some());
    }
}

#[test]
fn a_damaged_marker_does_not_keep_a_model_from_being_used() {
    let root = tree(&["base/config.json"]);
    std::fs::write(root.path().join("base/steno-model.json"), "{ \"demonstration\": ").unwrap();
    let model = model_at(&root.path().join("base")).unwrap();
    assert_eq!((model.name.as_str(), model.demonstration), ("base", false));
}

#[test]
fn models_that_tell_speakers_apart_are_kept_from_those_that_transcribe() {
    let root = tree(&[
        "data/steno/models/base/config.json",
        "data/steno/models/mine/segmentation/pytorch_model.bin",
        "data/steno/models/mine/embedding/model.safetensors",
        "data/steno/models/mine/plda/plda.npz",
        "data/steno/models/mine/plda/xvec_transform.npz",
        "data/steno/models/half/segmentation/pytorch_model.bin",
    ]);
    let places = places(root.path());
    let names =
        |models: Vec<advisor::ModelRef>| -> Vec<String> { models.into_iter().map(|it| it.name).collect() };
    assert_eq!(names(places.list()), ["base"]);
    assert_eq!(names(places.list_speakers()), ["mine"]);
    let folder = root.path().join("data/steno/models/mine");
    for wanted in ["mine", folder.to_str().unwrap()] {
        assert_eq!(places.find_speakers(wanted).unwrap().path, folder, "{wanted}");
    }
    assert_eq!(places.find(Some("mine")).unwrap_err().code, ErrorCode::ModelNotFound);
    for (wanted, code, said) in [
        ("yours", ErrorCode::ModelNotFound, "There are: mine."),
        ("half", ErrorCode::ModelInvalid, "no speaker model"),
        (root.path().join("data").to_str().unwrap(), ErrorCode::ModelInvalid, "no speaker model"),
    ] {
        let failure = places.find_speakers(wanted).unwrap_err();
        assert_eq!(failure.code, code, "{wanted}");
        assert!(failure.message.contains(said), "{wanted}: {failure}");
    }
}

#[test]
fn models_that_embed_texts_are_kept_from_those_that_transcribe() {
    let embedding = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/embedding");
    let root = tree(&["data/steno/models/base/config.json"]);
    let models = root.path().join("data/steno/models");
    let install = |name: &str, tiny: &str| {
        let folder = models.join(name);
        std::fs::create_dir(&folder).unwrap();
        for file in ["config.json", "tokenizer.json", "model.safetensors"] {
            std::fs::copy(embedding.join(tiny).join(file), folder.join(file)).unwrap();
        }
        folder
    };
    install("small", "tiny-bert");
    install("broken", "tiny-bert");
    std::fs::write(models.join("broken/model.safetensors"), b"no").unwrap();
    let places = places(root.path());
    let names =
        |models: Vec<advisor::ModelRef>| -> Vec<String> { models.into_iter().map(|it| it.name).collect() };
    assert_eq!(names(places.list()), ["base"]);
    assert_eq!(names(places.list_embedding()), ["small"]);
    assert_eq!(names(places.list_speakers()), Vec::<String>::new());
    let failure = places.find(Some("small")).unwrap_err();
    assert_eq!(failure.code, ErrorCode::ModelNotFound);
    assert!(failure.message.contains("search by meaning"), "{failure}");
}

#[test]
fn the_model_to_search_with_suits_the_languages_and_the_machine() {
    let root = tempfile::tempdir().unwrap();
    // Numbers per token and tokens known; no weights are read to choose.
    let model = |name: &str, width: usize, vocabulary: usize| {
        let path = root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let config = serde_json::json!({
            "model_type": "bert", "vocab_size": vocabulary, "hidden_size": width, "num_hidden_layers": 2,
            "num_attention_heads": 4, "intermediate_size": 64, "max_position_embeddings": 64,
        });
        std::fs::write(path.join("config.json"), config.to_string()).unwrap();
        std::fs::write(path.join("tokenizer.json"), "{}").unwrap();
        std::fs::copy(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../tests/data/embedding/tiny-bert/model.safetensors"),
            path.join("model.safetensors"),
        )
        .unwrap();
        advisor::ModelRef { name: name.into(), path, demonstration: false, note: None }
    };
    let (english, small, large) =
        (model("english", 512, 50_000), model("small", 32, 120_000), model("large", 256, 250_000));
    let chosen = |models: &[&advisor::ModelRef], english_only, memory| {
        let models: Vec<_> = models.iter().map(|model| (*model).clone()).collect();
        let chosen = advisor::embedding::choose(&models, english_only, memory);
        chosen.map(|model| (model.name, model.dimensions))
    };
    let named = |name: &str, width| Some((name.to_owned(), width));
    let all = [&english, &small, &large];
    assert_eq!(chosen(&[], false, None), None);
    assert_eq!(chosen(&all, false, None), named("large", 256));
    assert_eq!(chosen(&[&english, &small], false, None), named("small", 32), "English alone finds no German");
    assert_eq!(chosen(&[&english, &small], true, None), named("english", 512));
    assert_eq!(chosen(&[&english], false, None), named("english", 512), "better than none");
    assert_eq!(chosen(&all, false, Some(150 << 20)), named("small", 32), "the large one has no room");

    // Other weights are another version.
    let version = || advisor::embedding::choose(std::slice::from_ref(&small), true, None).unwrap().version;
    let before = version();
    assert_eq!(before, version());
    std::fs::write(small.path.join("model.safetensors"), b"other").unwrap();
    assert_ne!(before, version());
}
