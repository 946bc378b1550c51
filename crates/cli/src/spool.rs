//! A recording from standard input. Engines are programs of their own and read a recording more than
//! once, so that it is kept in a file until this program ends.

use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use wire::{ErrorCode, Failure};

use crate::ended::Ended;
use crate::interrupt::Interrupt;
use crate::platform;

/// What results of a recording without a name are called.
const NAME: &str = "standard-input";
/// Other programs need some of the disk too.
const MARGIN: u64 = 64 << 20;
const PIECE: usize = 1 << 20;

/// Puts the file that holds standard input in the place of `-`. It is deleted with the folder.
///
/// # Errors
/// If `-` is not the only recording, nothing is piped in, or the disk is full.
pub async fn standard_input(
    files: &mut [PathBuf],
    interrupt: &mut Interrupt,
) -> Result<Option<TempDir>, Ended> {
    if !files.iter().any(|file| platform::is_standard_input(file)) {
        return Ok(None);
    }
    let [file] = files else {
        return Err(Ended::Usage("standard input (-) can't be transcribed together with files".into()));
    };
    if io::stdin().is_terminal() {
        return Err(Ended::Usage(
            "standard input is a terminal: pipe a recording into it, or name a file".into(),
        ));
    }
    let folder = tempfile::Builder::new().prefix("steno-").tempdir().map_err(|error| failure(&error))?;
    *file = folder.path().join(NAME);
    let target = file.clone();
    let copied = tokio::task::spawn_blocking(move || copy(&mut io::stdin().lock(), &target));
    tokio::select! {
        copied = copied => {
            if copied.map_err(io::Error::other).flatten().map_err(|error| failure(&error))? == 0 {
                let text = "Standard input is empty: the program before the pipe wrote nothing.";
                return Err(Failure::new(ErrorCode::NoAudioTrack, text).into());
            }
        }
        () = interrupt.raised() => return Err(Ended::Cancelled),
    }
    Ok(Some(folder))
}

/// The number of bytes.
fn copy(from: &mut impl Read, to: &Path) -> io::Result<u64> {
    let mut file = File::create(to)?;
    let mut copied = 0;
    let mut piece = vec![0; PIECE];
    loop {
        if hub::platform::free_space(to).is_some_and(|free| free < MARGIN) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match from.read(&mut piece) {
            Ok(0) => return file.flush().map(|()| copied),
            Ok(count) => {
                file.write_all(&piece[..count])?;
                copied += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn failure(error: &io::Error) -> Failure {
    let folder = std::env::temp_dir();
    let failure = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Failure::new(
            ErrorCode::DiskFull,
            "There is not enough disk space for the recording from standard input.",
        )
        .remedy("Free some disk space, or set TMPDIR to a folder on another disk."),
        _ => Failure::new(ErrorCode::FileUnreadable, format!("Standard input could not be saved ({error}).")),
    };
    failure.file(folder)
}
