//! Hosts take turns at a device: two models at once would be one too many, and
//! on a CPU two jobs side by side are slower than one after the other.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use super::Runs;
use config::folders;

/// Between two looks at whether a device is free.
const PAUSE: Duration = Duration::from_millis(100);

/// Who has a device now, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    /// The number of its process; `None` where it is not known.
    pub pid: Option<u32>,
}

/// This host's turn at a device, until it is dropped. The system ends it with
/// the process, however that ends.
#[derive(Debug)]
pub struct DeviceLease {
    _device: File,
}

impl Runs {
    /// Waits for this host's turn at a device (`cpu`, `cuda:0`). `waiting` is
    /// called once, if the device is not free.
    ///
    /// A waiting host holds the place in front of the device, and one that wants
    /// it again has to stand there first: a host with a long queue lets others
    /// have a turn between two of its files.
    ///
    /// Cancel safe: dropping the future gives up the place. An error means that
    /// the folder can't be used; nothing is to be gained by not working then.
    ///
    /// # Errors
    /// Where the folder can't be used. The caller may work without a lease then.
    pub async fn lease(&self, device: &str, waiting: impl FnOnce(Holder)) -> io::Result<DeviceLease> {
        folders::make_private(&self.folder)?;
        let (mut place, next) = (self.open(device, "lock")?, self.open(device, "next")?);
        let mut waiting = Some(waiting);
        let mut told = |place: &PathBuf| {
            if let Some(waiting) = waiting.take() {
                let pid = fs::read_to_string(place).ok().and_then(|text| text.trim().parse().ok());
                waiting(Holder { pid });
            }
        };
        let path = self.path(device, "lock");
        while !taken(&next)? {
            told(&path);
            tokio::time::sleep(PAUSE).await;
        }
        while !taken(&place)? {
            told(&path);
            tokio::time::sleep(PAUSE).await;
        }
        next.unlock()?;
        // For those who wait to read. Never renamed: the lock is the file's.
        place.set_len(0)?;
        write!(place, "{}", std::process::id())?;
        Ok(DeviceLease { _device: place })
    }

    /// Whether another host waits for the device, which this one has.
    pub fn is_awaited(&self, device: &str) -> bool {
        self.open(device, "next").is_ok_and(|next| taken(&next).is_ok_and(|is_free| !is_free))
    }

    fn open(&self, device: &str, ending: &str) -> io::Result<File> {
        OpenOptions::new().create(true).truncate(false).read(true).write(true).open(self.path(device, ending))
    }

    fn path(&self, device: &str, ending: &str) -> PathBuf {
        let name: String =
            device.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect();
        self.folder.join(format!("device-{name}.{ending}"))
    }
}

fn taken(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
