//! One window per user and screen: a second start hands its files to the first
//! and ends.
//! The program that holds the lock is the first. The system releases it however that
//! program ends, so that a leftover socket keeps no other program out. It needs no
//! session bus.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use wire::FilePath;

use config::folders;
use supervisor::runs::Runs;

/// As long as a window may take to end.
const ENDING: Duration = Duration::from_secs(15);

/// What a start of the program turned out to be.
#[derive(Debug)]
pub enum Start {
    /// There is no other; later ones will knock here.
    First(Door),
    /// The first took the files over: there is nothing left to do.
    Handed,
    /// The first program can't be reached, or does not answer; why, in a sentence.
    Alone(String),
}

/// What a second start hands over.
#[derive(Debug, Serialize, Deserialize)]
struct Visit {
    files: Vec<FilePath>,
}

/// Where later starts knock. Dropped, another one becomes the first.
#[derive(Debug)]
pub struct Door {
    #[cfg(unix)]
    listener: std::os::unix::net::UnixListener,
    lock: File,
}

/// For the screen that this process would show its window on.
pub fn start(files: &[PathBuf]) -> Start {
    let Some(runs) = Runs::of_this_user() else {
        return Start::Alone("There is no runtime folder for this user.".into());
    };
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let screen = variable("WAYLAND_DISPLAY").or_else(|| variable("DISPLAY")).unwrap_or_default();
    start_in(runs.folder(), &screen, files)
}

/// The same, in a folder that is this user's alone.
pub fn start_in(folder: &Path, screen: &str, files: &[PathBuf]) -> Start {
    let plain: String = screen.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let name = format!("window-{plain}");
    let end = Instant::now() + ENDING;
    loop {
        let error = match door(folder, &name) {
            Ok(Some(door)) => return Start::First(door),
            Ok(None) => match hand_over(&folder.join(format!("{name}.sock")), files) {
                Ok(()) => return Start::Handed,
                Err(error) => error,
            },
            Err(error) => {
                return Start::Alone(format!(
                    "It is unknown whether a window is already open ({}: {error}).",
                    folder.display()
                ));
            }
        };
        let ends = matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionRefused);
        if !ends || Instant::now() > end {
            return Start::Alone(format!("The window that is already open does not respond ({error})."));
        }
        // Its place will be free.
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// `None` where another process has it.
fn door(folder: &Path, name: &str) -> io::Result<Option<Door>> {
    folders::make_private(folder)?;
    let mut options = OpenOptions::new();
    let lock = options.write(true).create(true).truncate(false).open(folder.join(format!("{name}.lock")))?;
    match lock.try_lock() {
        Ok(()) => Door::open(lock, &folder.join(format!("{name}.sock"))).map(Some),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

impl Drop for Door {
    /// An engine that was started meanwhile may have the file open for a moment.
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

#[cfg(unix)]
use over_socket::hand_over;

#[cfg(unix)]
mod over_socket {
    use std::fs::{self, File};
    use std::io::{self, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::time::{Duration, Instant};

    use super::{Door, Visit};

    /// The first may be busy starting, or its machine be starved.
    const PATIENCE: Duration = Duration::from_secs(10);
    /// The paths of a hundred thousand files.
    const LONGEST: u64 = 32 << 20;
    const WELCOME: &[u8] = b"ok\n";

    impl Door {
        pub(super) fn open(lock: File, socket: &Path) -> io::Result<Self> {
            match fs::remove_file(socket) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            Ok(Self { listener: UnixListener::bind(socket)?, lock })
        }

        /// Hears of the files of every later start, none where it named none,
        /// on a thread of its own, for as long as this process lives. `on_visit`
        /// takes them, or says by false that this window is about to end: then
        /// the other one takes its place. It should not wait for anything.
        pub fn answer(self, on_visit: impl Fn(Vec<PathBuf>) -> bool + Send + 'static) {
            std::thread::spawn(move || {
                for visitor in self.listener.incoming().flatten() {
                    // A broken connection, or a message that is no list, gets no answer.
                    if let Ok(files) = receive(&visitor)
                        && on_visit(files)
                    {
                        let _ = (&visitor).write_all(WELCOME);
                    }
                }
            });
        }
    }

    fn receive(visitor: &UnixStream) -> io::Result<Vec<PathBuf>> {
        visitor.set_read_timeout(Some(PATIENCE))?;
        visitor.set_write_timeout(Some(PATIENCE))?;
        let mut text = Vec::new();
        visitor.take(LONGEST).read_to_end(&mut text)?;
        let visit: Visit = serde_json::from_slice(&text)?;
        Ok(visit.files.into_iter().map(|file| file.0).collect())
    }

    pub(super) fn hand_over(socket: &Path, files: &[PathBuf]) -> io::Result<()> {
        let mut stream = connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let visit = Visit { files: files.iter().map(|file| file.as_path().into()).collect() };
        stream.write_all(&serde_json::to_vec(&visit)?)?;
        stream.shutdown(Shutdown::Write)?;
        let mut answer = Vec::new();
        stream.take(WELCOME.len() as u64).read_to_end(&mut answer)?;
        if answer == WELCOME { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Between its lock and its socket the first is for a moment without one.
    fn connect(socket: &Path) -> io::Result<UnixStream> {
        let end = Instant::now() + PATIENCE;
        loop {
            match UnixStream::connect(socket) {
                Ok(stream) => return Ok(stream),
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

#[cfg(not(unix))]
impl Door {
    fn open(lock: File, _: &Path) -> io::Result<Self> {
        Ok(Self { lock })
    }

    /// There are no such sockets on this system: each start has a window of its own.
    pub fn answer(self, _: impl Fn(Vec<PathBuf>) -> bool + Send + 'static) {
        std::mem::forget(self);
    }
}

#[cfg(not(unix))]
fn hand_over(_: &Path, _: &[PathBuf]) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc;

    #[test]
    fn the_second_start_hands_its_files_to_the_first_whatever_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let Start::First(door) = start_in(folder.path(), ":0", &[]) else { panic!("not the first") };
        let (tell, visits) = mpsc::channel();
        door.answer(move |files| tell.send(files).is_ok());
        let odd = PathBuf::from(std::ffi::OsStr::from_bytes(b"/talks/caf\xe9 1.wav"));
        for files in [vec![odd, PathBuf::from("/talks/zwei Teile.flac")], vec![]] {
            assert!(matches!(start_in(folder.path(), ":0", &files), Start::Handed));
            assert_eq!(visits.recv().unwrap(), files);
        }
        // Another screen has a window of its own.
        assert!(matches!(start_in(folder.path(), ":1", &[]), Start::First(_)));
    }

    #[test]
    fn a_socket_that_was_left_behind_and_rubbish_keep_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let Start::First(door) = start_in(folder.path(), ":0", &[]) else { panic!("not the first") };
        // As when the first was killed: its lock is gone, its socket is there.
        drop(door);
        assert!(folder.path().join("window-_0.sock").exists());
        let Start::First(door) = start_in(folder.path(), ":0", &[]) else { panic!("kept out") };
        let (tell, visits) = mpsc::channel();
        door.answer(move |files| tell.send(files).is_ok());
        let mut stranger = UnixStream::connect(folder.path().join("window-_0.sock")).unwrap();
        stranger.write_all(b"no list").unwrap();
        drop(stranger);
        assert!(matches!(start_in(folder.path(), ":0", &["/a.wav".into()]), Start::Handed));
        assert_eq!(visits.recv().unwrap(), [PathBuf::from("/a.wav")]);
    }

    #[test]
    fn whoever_knocks_at_a_window_that_ends_takes_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let Start::First(door) = start_in(folder.path(), ":0", &[]) else { panic!("not the first") };
        let lock = door.lock.try_clone().unwrap();
        let (tell, turned_away) = mpsc::channel();
        door.answer(move |_| tell.send(()).is_err());
        let path = folder.path().to_path_buf();
        let second =
            std::thread::spawn(move || matches!(start_in(&path, ":0", &["/a.wav".into()]), Start::First(_)));
        turned_away.recv().unwrap();
        lock.unlock().unwrap();
        assert!(second.join().unwrap(), "its place is free");
    }

    #[test]
    fn a_folder_that_can_not_be_made_is_told_of() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        let Start::Alone(why) = start_in(&file.join("run"), ":0", &[]) else { panic!("it was made") };
        assert!(why.contains("file"), "{why}");
    }
}
