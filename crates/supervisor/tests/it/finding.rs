//! Which engine a host gets, and what it says when there is none.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use supervisor::find::{EnginePrograms, SearchContext, engines};
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

fn around(root: &Path) -> SearchContext {
    SearchContext {
        executable: Some(root.join("usr/local/bin/steno")),
        package_folders: vec![root.join("usr/lib/steno")],
        downloaded: Some(root.join("home/steno/engines/cuda")),
        has_cuda_driver: true,
        ..SearchContext::default()
    }
}

/// The programs relative to `root`.
fn programs(root: &Path, found: &EnginePrograms) -> Vec<String> {
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
    let driver = |around: &mut SearchContext| around.has_cuda_driver = true;
    let no_driver = |around: &mut SearchContext| around.has_cuda_driver = false;
    let cpu_only = |around: &mut SearchContext| around.cpu_only = true;
    // What the user had downloaded comes after what the system has, and is no place for the CPU's.
    const DOWNLOADED_CUDA: &str = "home/steno/engines/cuda/steno-engine-cuda";
    const DOWNLOADED: &str = "home/steno/engines/cuda/steno-engine";
    type Change = fn(&mut SearchContext);
    let cases: [(&[&str], Change, &[&str], bool); 11] = [
        (&[BESIDE, DOWNLOADED_CUDA, DOWNLOADED], driver, &[DOWNLOADED_CUDA, BESIDE], false),
        (&[BESIDE, DOWNLOADED_CUDA, PACKAGE_CUDA], driver, &[PACKAGE_CUDA, BESIDE], false),
        (&[BESIDE, DOWNLOADED_CUDA], no_driver, &[BESIDE], true),
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
    let chosen = |path: &str| SearchContext {
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
    let library_path = |around: &SearchContext| {
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
    let chosen = SearchContext { chosen: Some(folder.join("steno-engine-cuda").into()), ..around.clone() };
    assert_eq!(engines(&chosen).unwrap().candidates[0].library_path, Some(expected));

    // A driver that only the engine's path holds counts too.
    around.has_cuda_driver = false;
    assert!(engines(&around).unwrap().note.is_some());
    std::fs::write(folder.join("cuda-libs/libcuda.so.1"), "").unwrap();
    assert_eq!(engines(&around).unwrap().note, None);
}
