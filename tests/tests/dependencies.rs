//! Who may know what, as ARCHITECTURE.md says: read off what cargo would link.

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

#[test]
fn dependencies_point_one_way() {
    const OURS: [&str; 11] = [
        "api",
        "audio",
        "memory",
        "models",
        "pipeline",
        "random-models",
        "steno",
        "steno-engine",
        "steno-window",
        "transcript",
        "wire",
    ];
    for (package, may_know) in [
        ("transcript", &[][..]),
        ("audio", &[]),
        ("memory", &[]),
        ("wire", &["transcript"]),
        ("models", &["memory"]),
        ("pipeline", &["audio", "memory", "models", "transcript", "wire"]),
        ("steno-engine", &["audio", "memory", "models", "pipeline", "transcript", "wire"]),
        ("api", &["memory", "transcript", "wire"]),
        ("steno", &["api", "memory", "transcript", "wire"]),
        ("steno-window", &["api", "memory", "transcript", "wire"]),
    ] {
        for other in linked(package).iter().filter(|name| OURS.contains(&name.as_str())) {
            assert!(
                other == package || may_know.contains(&other.as_str()),
                "{package} must not know {other}"
            );
        }
    }
}

#[test]
fn what_computes_is_in_no_host_and_the_window_in_nothing_else() {
    for (package, absent) in [
        ("steno", &["candle", "gemm", "tokenizers", "symphonia", "tauri"][..]),
        ("steno-window", &["candle", "gemm", "tokenizers", "symphonia"]),
        ("api", &["candle", "tauri"]),
        ("steno-engine", &["tauri", "tokio"]),
        ("audio", &["candle", "tokio"]),
        ("memory", &["candle"]),
        ("transcript", &["tokio"]),
    ] {
        let linked = linked(package);
        for name in absent {
            let found: Vec<&String> = linked
                .iter()
                .filter(|other| other == name || other.starts_with(&format!("{name}-")))
                .collect();
            assert!(found.is_empty(), "{package} must not know {found:?}");
        }
    }
}
