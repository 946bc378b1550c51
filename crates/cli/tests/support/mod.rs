//! The real `steno`, in a folder of its own, with nothing of the surroundings
//! that could change what it does.
// Each test file uses its own part of this.
#![allow(dead_code)]

pub mod http;
#[cfg(unix)]
pub mod nats;
#[cfg(unix)]
pub mod sshd;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub struct Sandbox {
    pub folder: tempfile::TempDir,
    /// Where the user's settings, logs and running engines are.
    pub home: tempfile::TempDir,
}

/// What a run left: exit code, standard output, standard error.
#[derive(Debug, PartialEq)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Checks the exit code, shows everything where it is another one.
    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, part: &str) -> Self {
        assert!(self.err.contains(part), "no {part:?} in:\n{}", self.err);
        self
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Sandbox {
    /// Holds empty files of these names.
    pub fn with(names: &[&str]) -> Self {
        let sandbox = Self { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        for name in names {
            sandbox.write(name, "");
        }
        sandbox
    }

    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Everything that lies here, sorted.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = std::fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// With the scripted engine.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_with(env!("CARGO_BIN_EXE_steno-scripted-engine").as_ref(), arguments)
    }

    pub fn command_with(&self, engine: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steno"));
        command.args(arguments).stdin(Stdio::null()).current_dir(self.folder.path());
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"STENO_") {
                command.env_remove(name);
            }
        }
        for name in ["XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env(name, self.home.path());
        }
        command.env("XDG_RUNTIME_DIR", self.home.path().join("run"));
        command.env("STENO_ENGINE", engine);
        command.env("STENO_MODEL", project().join("models/starter-whisper"));
        #[cfg(unix)]
        hears_signals(&mut command);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().unwrap().into()
    }
}

/// Tests that are themselves run by `nohup` or in the background of a script
/// hand on that signals are ignored, which `steno` then does too.
#[cfg(unix)]
fn hears_signals(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let as_usual = || {
        for number in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            // SAFETY: `signal` may be called between fork and exec.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(as_usual) };
}

/// The project's root.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// `STENO_ENGINE`, or the one that was built beside `steno`.
pub fn real_engine() -> PathBuf {
    if let Some(engine) = std::env::var_os("STENO_ENGINE") {
        return engine.into();
    }
    let beside = Path::new(env!("CARGO_BIN_EXE_steno")).with_file_name("steno-engine");
    assert!(
        beside.is_file(),
        "these tests need the engine: cargo build --workspace --bins, or set STENO_ENGINE"
    );
    beside
}

/// 16-bit mono at 16 kHz.
pub fn wav(data: &[u8]) -> Vec<u8> {
    let length = data.len() as u32;
    let mut wav = Vec::from(b"RIFF");
    wav.extend((36 + length).to_le_bytes());
    wav.extend(b"WAVEfmt ");
    wav.extend(16u32.to_le_bytes());
    for (value, bytes) in [(1u32, 2), (1, 2), (16_000, 4), (32_000, 4), (2, 2), (16, 2)] {
        wav.extend(&value.to_le_bytes()[..bytes]);
    }
    wav.extend(b"data");
    wav.extend(length.to_le_bytes());
    wav.extend(data);
    wav
}
