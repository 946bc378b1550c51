use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use crate::Error;

/// One program at a time works on a model. The system takes the lock away
/// however its holder ends. The file stays: were it removed, two programs could
/// each hold a lock on a file of that name.
#[derive(Debug)]
pub(crate) struct Lock {
    file: File,
}

impl Lock {
    /// Fails with `InUse`, naming the process where it is known.
    pub fn take(folder: &Path, id: &str) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|error| Error::io(folder, error))?;
        let path = folder.join(format!("{id}.lock"));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = file.map_err(|error| Error::io(&path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                return Err(Error::InUse { id: id.into(), pid: text.trim().parse().ok() });
            }
            Err(TryLockError::Error(error)) => return Err(Error::io(&path, error)),
        }
        // For the other's message only.
        let _ = file.set_len(0).and_then(|()| file.rewind());
        let _ = write!(file, "{}", std::process::id());
        Ok(Self { file })
    }
}

impl Drop for Lock {
    /// A program that was started meanwhile has the file open too, until it is
    /// past its first moments: closing ours alone would leave it locked.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}
