//! Models of the true dimensions load and run, from weights on disk to a
//! transcript, through the command line and the engine. `make soak` does the
//! same with the larger ones.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::process::Command;

use end_to_end::{program, project};
use random_models::{Options, Size, WeightType, write};
use serde_json::Value;

/// Text drawn from random weights means nothing and passes no threshold: one
/// temperature, and no repair of what can't be repaired.
const QUICK: [&str; 8] =
    ["--language", "en", "--temperature", "0", "--beam-size", "1", "--no-repair", "--no-word-times"];

fn transcribed(size: &str, options: &Options) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join(size);
    write(&model, Size::named(size).unwrap(), options).unwrap();
    let output = Command::new(program("steno"))
        .env("STENO_ENGINE", program("steno-engine"))
        .arg("transcribe")
        .arg(project("tests/data/sample.flac"))
        .args(["--format", "json", "--quiet", "--output"])
        .arg(folder.path())
        .arg("--model")
        .arg(&model)
        .args(QUICK)
        .output()
        .unwrap();
    assert!(output.status.success(), "{size}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&std::fs::read(folder.path().join("sample.json")).unwrap()).unwrap()
}

#[test]
fn models_of_the_true_dimensions_run() {
    for (size, options) in [
        ("micro", Options { precision: WeightType::F32, ..Options::default() }),
        ("micro", Options { activation: "gelu_new".into(), ..Options::default() }),
        ("tiny", Options { precision: WeightType::BF16, ..Options::default() }),
        ("tiny.en", Options::default()),
        ("base", Options { shards: 2, ..Options::default() }),
    ] {
        let transcript = transcribed(size, &options);
        assert_eq!(transcript["complete"], true, "{size}");
        assert_eq!(transcript["language"], "en", "{size}");
    }
}
