//! End-to-end tests live in `tests/`: real programs, real files. What they
//! share is here.

use std::path::PathBuf;

/// A program of this workspace, beside the test that asks for it.
///
/// Panics where it was not built: cargo builds no other package's programs
/// for a test, `make test` does.
#[allow(clippy::expect_used, clippy::panic, reason = "called by tests alone")]
pub fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let path = test.ancestors().nth(2).expect("tests lie in target/debug/deps").join(name);
    assert!(path.is_file(), "there is no {}: run `cargo build --workspace --bins` first", path.display());
    path
}

/// A file or folder of the project.
pub fn project(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
