//! Which engine and which model a host gets, and what it says when there is
//! none.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test, helpers included")]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use api::ErrorCode;
use api::find::{Found, Surroundings, engines};
use api::models::{Places, model_at};

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

fn around(root: &Path) -> Surroundings {
    Surroundings {
        executable: Some(root.join("usr/local/bin/steno")),
        package_folders: vec![root.join("usr/lib/steno")],
        has_cuda_driver: true,
        ..Surroundings::default()
    }
}

/// The programs relative to `root`.
fn programs(root: &Path, found: &Found) -> Vec<String> {
    let relative = |path: &PathBuf| path.strip_prefix(root).unwrap().display().to_string();
    found.candidates.iter().map(|candidate| relative(&candidate.program)).collect()
}

#[test]
fn engines_are_tried_from_the_nearest_and_cuda_first_where_it_can_work() {
    const BESIDE: &str = "usr/local/bin/steno-engine";
    const BESIDE_CUDA: &str = "usr/local/bin/steno-engine-cuda";
    const PREFIX: &str = "usr/local/lib/steno/steno-engine";
    const PACKAGE: &str = "usr/lib/steno/steno-engine";
    const PACKAGE_CUDA: &str = "usr/lib/steno/steno-engine-cuda";
    let driver = |around: &mut Surroundings| around.has_cuda_driver = true;
    let no_driver = |around: &mut Surroundings| around.has_cuda_driver = false;
    let cpu_only = |around: &mut Surroundings| around.cpu_only = true;
    type Change = fn(&mut Surroundings);
    let cases: [(&[&str], Change, &[&str], bool); 8] = [
        (&[BESIDE, PREFIX, PACKAGE], driver, &[BESIDE], false),
        (&[PREFIX, PACKAGE], driver, &[PREFIX], false),
        (&[PACKAGE], driver, &[PACKAGE], false),
        (&[BESIDE, BESIDE_CUDA], driver, &[BESIDE_CUDA, BESIDE], false),
        (&[BESIDE, PACKAGE_CUDA], driver, &[PACKAGE_CUDA, BESIDE], false),
        (&[BESIDE_CUDA], driver, &[BESIDE_CUDA], false),
        (&[BESIDE, BESIDE_CUDA], no_driver, &[BESIDE], true),
        (&[BESIDE, BESIDE_CUDA], cpu_only, &[BESIDE], false),
    ];
    for (there, change, expected, explained) in cases {
        let root = tree(there);
        let mut around = around(root.path());
        change(&mut around);
        let found = engines(&around).unwrap();
        assert_eq!(programs(root.path(), &found), expected, "of {there:?}");
        assert_eq!(found.note.is_some(), explained, "of {there:?}: {:?}", found.note);
    }
}

#[test]
fn an_engine_that_is_not_there_is_an_error_that_names_the_paths() {
    let root = tree(&[]);
    let failure = engines(&around(root.path())).unwrap_err();
    assert_eq!(failure.code, ErrorCode::EngineNotFound);
    for path in [
        "usr/local/bin/steno-engine,",
        "usr/local/bin/steno-engine-cuda,",
        "usr/local/lib/steno/steno-engine,",
        "usr/lib/steno/steno-engine.",
    ] {
        let path = root.path().join(path).display().to_string();
        assert!(failure.message.contains(&path), "{path} is not in: {failure}");
    }
    assert!(failure.remedy.unwrap().contains("STENO_ENGINE"));
}

#[test]
fn a_chosen_engine_is_the_only_one() {
    let root = tree(&["usr/local/bin/steno-engine", "mine/engine"]);
    let chosen = |path: &str| Surroundings {
        chosen: Some(root.path().join(path).into_os_string()),
        ..around(root.path())
    };
    let found = engines(&chosen("mine/engine")).unwrap();
    assert_eq!(programs(root.path(), &found), ["mine/engine"]);
    for missing in ["mine/other", "mine"] {
        let failure = engines(&chosen(missing)).unwrap_err();
        assert_eq!(failure.code, ErrorCode::EngineNotFound);
        assert_eq!(failure.file, Some(root.path().join(missing).into()));
        assert!(failure.message.contains("STENO_ENGINE"), "{failure}");
    }
}

#[test]
fn libraries_named_beside_the_cuda_engine_are_for_it_alone() {
    let beside = "usr/local/bin";
    let root = tree(&["usr/local/bin/steno-engine", "usr/local/bin/steno-engine-cuda"]);
    let folder = root.path().join(beside);
    let library_path = |around: &Surroundings| {
        let found = engines(around).unwrap();
        assert_eq!(found.candidates.last().unwrap().library_path, None, "the CPU's needs none");
        found.candidates[0].library_path.clone()
    };
    let mut around = around(root.path());
    around.library_path = Some("/already/there".into());
    assert_eq!(library_path(&around), None, "inherited as it is");

    std::fs::write(
        folder.join("steno-engine-cuda.env"),
        "# Written by the build.\nLD_LIBRARY_PATH=/opt/cuda/lib:wheels/lib\nPATH=/ignored\n",
    )
    .unwrap();
    std::fs::create_dir(folder.join("cuda-libs")).unwrap();
    let expected: Vec<PathBuf> = vec![
        "/opt/cuda/lib".into(),
        folder.join("wheels/lib"),
        folder.join("cuda-libs"),
        "/already/there".into(),
    ];
    let expected: OsString = std::env::join_paths(expected).unwrap();
    assert_eq!(library_path(&around), Some(expected.clone()));

    // The same for an engine chosen by path.
    let chosen = Surroundings { chosen: Some(folder.join("steno-engine-cuda").into()), ..around.clone() };
    assert_eq!(engines(&chosen).unwrap().candidates[0].library_path, Some(expected));

    // A driver that only the engine's path holds counts too.
    around.has_cuda_driver = false;
    assert!(engines(&around).unwrap().note.is_some());
    std::fs::write(folder.join("cuda-libs/libcuda.so.1"), "").unwrap();
    assert_eq!(engines(&around).unwrap().note, None);
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
