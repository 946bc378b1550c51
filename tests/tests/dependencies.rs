//! Who may know what, as ARCHITECTURE.md says: read off what cargo would link.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::collections::BTreeSet;
use std::process::Command;

/// Names of all packages that end up in `package`, itself included.
fn linked(package: &str) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .args(["--package", package])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{package}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

/// A package, the packages of ours that it may know, and the start of the
/// names of those that it must not.
const RULES: [(&str, &[&str], &[&str]); 21] = [
    ("transcript", &[], &["candle", "tauri", "tokio"]),
    ("audio", &[], &["candle", "tauri", "tokio"]),
    ("memory", &[], &["candle", "tauri", "tokio"]),
    ("wire", &["memory", "transcript"], &["candle", "tauri", "tokio"]),
    ("library", &["memory", "transcript", "wire"], &["candle", "tauri", "tokio"]),
    ("formats", &["memory"], &["candle", "tauri", "tokio"]),
    ("hub", &["formats", "memory"], &["candle", "gemm", "tokenizers", "symphonia", "tauri"]),
    ("models", &["formats", "memory"], &["tauri", "tokio", "symphonia"]),
    ("pipeline", &["audio", "formats", "memory", "models", "transcript", "wire"], &["tauri", "tokio"]),
    (
        "steno-engine",
        &["audio", "formats", "memory", "models", "pipeline", "transcript", "wire"],
        &["tauri", "tokio"],
    ),
    (
        "config",
        &["memory", "transcript", "wire"],
        &["candle", "gemm", "tokenizers", "symphonia", "tauri", "tokio"],
    ),
    (
        "supervisor",
        &["config", "library", "memory", "transcript", "wire"],
        &["candle", "gemm", "reqwest", "tokenizers", "symphonia", "tauri"],
    ),
    (
        "advisor",
        &["config", "formats", "hub", "library", "memory", "supervisor", "transcript", "wire"],
        &["candle", "gemm", "tokenizers", "symphonia", "tauri"],
    ),
    (
        "remote",
        &["config", "formats", "hub", "library", "memory", "supervisor", "transcript", "wire"],
        &["candle", "gemm", "tokenizers", "symphonia", "tauri", "ts-rs"],
    ),
    (
        "app",
        &[
            "advisor",
            "cluster",
            "config",
            "formats",
            "hub",
            "library",
            "memory",
            "remote",
            "supervisor",
            "transcript",
            "wire",
        ],
        &["candle", "gemm", "tokenizers", "symphonia", "tauri"],
    ),
    (
        "server",
        &["advisor", "config", "formats", "hub", "library", "memory", "supervisor", "transcript", "wire"],
        &["candle", "gemm", "tokenizers", "symphonia", "tauri", "ts-rs"],
    ),
    (
        "cluster",
        &["advisor", "config", "formats", "hub", "library", "memory", "supervisor", "transcript", "wire"],
        &["aws", "candle", "gemm", "tokenizers", "symphonia", "tauri", "ts-rs"],
    ),
    (
        "steno",
        &[
            "advisor",
            "cluster",
            "config",
            "formats",
            "hub",
            "library",
            "memory",
            "server",
            "supervisor",
            "transcript",
            "wire",
        ],
        &["aws", "candle", "gemm", "tokenizers", "symphonia", "tauri", "ts-rs"],
    ),
    (
        "steno-window",
        &[
            "advisor",
            "app",
            "cluster",
            "config",
            "desktop",
            "formats",
            "hub",
            "library",
            "memory",
            "remote",
            "supervisor",
            "transcript",
            "wire",
        ],
        &["candle", "gemm", "tokenizers", "symphonia"],
    ),
    ("steno-player", &["audio", "memory", "transcript", "wire"], &["candle", "hyper", "tauri", "tokio"]),
    ("desktop", &[], &["candle", "tauri", "tokio"]),
];

#[test]
fn nothing_knows_what_it_must_not() {
    for (package, may_know, absent) in RULES {
        for other in linked(package).iter().filter(|other| *other != package) {
            let is_ours = other == "random-models" || RULES.iter().any(|(ours, ..)| other == ours);
            assert!(!is_ours || may_know.contains(&other.as_str()), "{package} must not know {other}");
            // `gemm` forbids `gemm-f32` as well, but not `gemmology`.
            let is_named = |name: &&str| other == name || other.starts_with(&format!("{name}-"));
            assert!(!absent.iter().any(is_named), "{package} must not know {other}");
        }
    }
}
