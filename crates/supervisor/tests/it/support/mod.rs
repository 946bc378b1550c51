//! Engines to test with, real and not.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod job_folder;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use supervisor::{Engine, EngineOptions, JobHandle};
use wire::Event;

/// Longer than anything takes on a starved machine; reached only by a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The double under a name that says how to behave.
pub fn double(behaviour: &str) -> PathBuf {
    static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| tempfile::tempdir().unwrap());
    let link = folder.path().join(behaviour);
    if !link.exists() {
        // Another test may be quicker.
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_steno-supervisor-double"), &link);
    }
    link
}

pub fn options(program: impl Into<PathBuf>) -> EngineOptions {
    EngineOptions { program: Some(program.into()), ..EngineOptions::default() }
}

/// `STENO_ENGINE`, else the one beside this test.
pub fn real_engine() -> PathBuf {
    static ENGINE: OnceLock<PathBuf> = OnceLock::new();
    ENGINE.get_or_init(find).clone()
}

fn find() -> PathBuf {
    if let Some(path) = std::env::var_os("STENO_ENGINE").filter(|path| !path.is_empty()) {
        return path.into();
    }
    let test = std::env::current_exe().unwrap();
    let folder = test.parent().and_then(Path::parent).unwrap();
    let engine = folder.join("steno-engine");
    // Not built from here: cargo would build it with other features than the workspace has.
    assert!(engine.is_file(), "no engine at {}: cargo build --workspace --bins", engine.display());
    engine
}

/// The model that ships with the source.
pub fn starter() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/starter-whisper")
}

/// Minutes of noise: without voice activity detection it keeps an engine busy.
pub fn noise(minutes: u32) -> tempfile::NamedTempFile {
    const RATE: u32 = 16_000;
    let count = minutes * 60 * RATE;
    let mut bytes = Vec::with_capacity(44 + 2 * count as usize);
    bytes.extend(b"RIFF");
    bytes.extend((36 + 2 * count).to_le_bytes());
    bytes.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    bytes.extend(RATE.to_le_bytes());
    bytes.extend((2 * RATE).to_le_bytes());
    bytes.extend(b"\x02\0\x10\0data");
    bytes.extend((2 * count).to_le_bytes());
    let mut state = 1u32;
    let minute: Vec<u8> = (0..60 * RATE)
        .flat_map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            ((state >> 20) as i16 - 2048).to_le_bytes()
        })
        .collect();
    bytes.extend(minute.repeat(minutes as usize));
    let file = tempfile::Builder::new().suffix(".wav").tempfile().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    file
}

pub async fn next(handle: &mut JobHandle) -> Event {
    tokio::time::timeout(PATIENCE, handle.next()).await.expect("no event").expect("the job ended")
}

pub async fn last(handle: &mut JobHandle) -> Event {
    loop {
        let event = next(handle).await;
        if event.is_last() {
            return event;
        }
    }
}

pub async fn until(handle: &mut JobHandle, wanted: impl Fn(&Event) -> bool) {
    loop {
        let event = next(handle).await;
        if wanted(&event) {
            return;
        }
        assert!(!event.is_last(), "{event:?}");
    }
}

pub async fn start(options: &EngineOptions) -> Engine {
    Engine::start(options).await.unwrap_or_else(|failure| panic!("{failure}"))
}

/// False for a process that ended, also where nobody has collected it yet.
pub fn is_running(id: u32) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{id}/stat")) else { return false };
    let state = status.rsplit(") ").next().and_then(|rest| rest.chars().next());
    !matches!(state, Some('Z' | 'X'))
}

pub fn wait_for_end(id: u32, deadline: Instant) {
    while is_running(id) {
        assert!(Instant::now() < deadline, "process {id} lives on");
        std::thread::sleep(Duration::from_millis(2));
    }
}
