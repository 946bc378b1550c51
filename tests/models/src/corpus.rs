//! Recordings with reference outputs: a few in the repository, and the full
//! corpus that only `make soak` has. Both are laid out alike.

use std::path::{Path, PathBuf};

/// The corpus in the repository, `tests/data/corpus`.
pub fn bundled() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/corpus")
}

/// The full corpus, in the folder that `STENO_SHARED` names.
///
/// # Panics
/// Where there is none: a test that asks for it can't pass without.
pub fn full() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = std::env::var_os("STENO_SHARED").map_or(beside, PathBuf::from);
    assert!(folder.is_dir(), "STENO_SHARED must name the folder of the full corpus: {}", folder.display());
    folder
}
