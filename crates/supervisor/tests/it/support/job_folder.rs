//! Recordings whose names tell the double what to do (`windows.rs`), and a journal beside them. The
//! tests of `app` use it, too.

use std::path::PathBuf;
use std::time::Duration;

use library::Journal;
use supervisor::{EngineOptions, Limits};
use wire::Job;

pub struct JobFolder {
    pub folder: tempfile::TempDir,
}

impl JobFolder {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// A recording that does what its name says.
    pub fn job(&self, name: &str) -> Job {
        let file = self.folder.path().join(format!("{name}.wav"));
        std::fs::write(&file, "sound").unwrap();
        Job::new(0, file, "model")
    }

    pub fn journal_file(&self) -> PathBuf {
        self.folder.path().join("journal.sqlite")
    }

    pub fn journal(&self) -> Journal {
        Journal::open(&self.journal_file()).unwrap().journal
    }
}

/// An engine that is given up after a second without progress.
pub fn impatient_engine(program: PathBuf) -> EngineOptions {
    let limits = Limits {
        ping_interval: Duration::from_millis(50),
        standstill: Duration::from_millis(1000),
        ..Limits::default()
    };
    EngineOptions { limits, program: Some(program), ..EngineOptions::default() }
}
