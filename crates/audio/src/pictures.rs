//! The pictures of a film, a few in a second, for looking at them while listening. `ffmpeg` decodes
//! them, under the same rules as sound: formats of recordings alone, no other file, no address, and it
//! ends with this process.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::ffmpeg::{command, find_ffmpeg, input, list};
use crate::{AudioError, child};

/// Pictures in a second of the recording.
pub const PICTURES_PER_SECOND: f64 = 4.0;
/// Seconds from one to the next.
const STEP: f64 = 1.0 / PICTURES_PER_SECOND;
/// Columns of a picture; a smaller film keeps its own.
const WIDTH: u32 = 640;
/// Most bytes of one picture. Of that width they have some ten thousand.
const MOST_BYTES: usize = 4 << 20;
/// Pictures that are decoded ahead of being asked for. `ffmpeg` waits beyond that.
const AHEAD: usize = 2;
/// Up to so many seconds are decoded and dropped instead of beginning anew.
const NEAR_SECONDS: f64 = 4.0;
/// How far before a place without a picture, in seconds, the film's last picture is looked for first.
const NEAR_END_SECONDS: f64 = 2.0;
/// For the first picture behind a place: seeking decodes from the key frame before it. Also for the
/// last picture of a film that ends before its sound.
const PATIENCE: Duration = Duration::from_secs(10);
/// After this long without a request the decoder ends.
const IDLE: Duration = Duration::from_secs(5);

/// A recording with pictures. One decoder goes forward with what is asked for; another place needs a
/// new one, and after a few seconds without a question there is none.
#[derive(Debug)]
pub struct Film {
    executable: PathBuf,
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    stream: Option<Stream>,
    /// A place, in seconds, from which decoders have no pictures, and the film's last picture, which is shown there.
    end: Option<(f64, Arc<Vec<u8>>)>,
    /// A thread ends the decoder where it is idle.
    is_watched: bool,
}

#[derive(Debug)]
struct Stream {
    child: Child,
    pictures: Receiver<Vec<u8>>,
    /// Where the next picture belongs, in seconds.
    next: f64,
    latest: Arc<Vec<u8>>,
    asked: Instant,
}

/// What a decoder returned for a place.
enum Decoded {
    Picture(Arc<Vec<u8>>),
    /// The film's last picture, which is before that place.
    Last(Arc<Vec<u8>>),
    /// The film has no picture from where the decoder began.
    Nothing,
    /// Nothing came in time.
    Late,
}

impl Film {
    /// `None` for a recording without pictures. The cover of a piece of music is none.
    ///
    /// # Errors
    /// If there is no `ffmpeg`, or it can't be run.
    pub fn open(path: &Path) -> Result<Option<Self>, AudioError> {
        let missing = || AudioError::NeedsFfmpeg { path: path.into(), what: "a film".into() };
        let executable = find_ffmpeg().ok_or_else(missing)?;
        let has_pictures = list(&executable, path)?.lines().any(is_of_pictures);
        Ok(has_pictures.then(|| Self { executable, path: path.into(), state: Arc::default() }))
    }

    /// What is seen at a time, as a JPEG; the last picture where the film has ended. `None` where it has
    /// none that can be decoded.
    ///
    /// # Errors
    /// If `ffmpeg` can't be run.
    pub fn at(&self, seconds: f64) -> Result<Option<Arc<Vec<u8>>>, AudioError> {
        let mut state = lock(&self.state);
        if let Some((_, last)) = state.end.as_ref().filter(|(end, _)| seconds >= *end) {
            return Ok(Some(Arc::clone(last)));
        }
        let (mut from, mut back) = (seconds, NEAR_END_SECONDS);
        loop {
            let decoded = self.decode(&mut state, from, seconds)?;
            // The decoder began behind the film's last picture: sound may go on for long after it.
            if matches!(decoded, Decoded::Nothing) && from > 0.0 {
                from = (seconds - back).max(0.0);
                back *= 4.0;
                continue;
            }
            return Ok(match decoded {
                Decoded::Picture(picture) => Some(picture),
                Decoded::Last(picture) => {
                    if from < seconds {
                        state.end = Some((seconds, Arc::clone(&picture)));
                    }
                    Some(picture)
                }
                Decoded::Nothing | Decoded::Late => None,
            });
        }
    }

    /// What is seen at `seconds`, by the decoder at work where it is near, else by one that begins at `from`.
    fn decode(&self, state: &mut State, from: f64, seconds: f64) -> Result<Decoded, AudioError> {
        let goes_on = |stream: &Stream| {
            let shown = stream.next - STEP;
            !stream.latest.is_empty() && seconds >= shown - 0.001 && seconds <= shown + NEAR_SECONDS
        };
        if !state.stream.as_ref().is_some_and(goes_on) {
            state.stream = None;
            state.stream = Some(self.begin(from)?);
            if !std::mem::replace(&mut state.is_watched, true) {
                self.watch();
            }
        }
        let Some(stream) = state.stream.as_mut() else { return Ok(Decoded::Nothing) };
        stream.asked = Instant::now();
        let searches = from < seconds;
        while stream.next <= seconds + 0.001 {
            if searches && stream.asked.elapsed() > PATIENCE {
                state.stream = None;
                return Ok(Decoded::Late);
            }
            match stream.pictures.recv_timeout(PATIENCE) {
                Ok(picture) => {
                    stream.latest = Arc::new(picture);
                    stream.next += STEP;
                }
                Err(RecvTimeoutError::Disconnected) if stream.latest.is_empty() => {
                    return Ok(Decoded::Nothing);
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(Decoded::Last(Arc::clone(&stream.latest)));
                }
                Err(RecvTimeoutError::Timeout) => {
                    state.stream = None;
                    return Ok(Decoded::Late);
                }
            }
        }
        Ok(Decoded::Picture(Arc::clone(&stream.latest)))
    }

    fn begin(&self, seconds: f64) -> Result<Stream, AudioError> {
        let mut decoding = command(&self.executable);
        decoding
            .args(["-v", "error", "-threads", "1", "-ss", &format!("{:.3}", seconds.max(0.0))])
            .args(input(&self.path))
            .args(["-map", "0:V:0", "-an", "-sn", "-dn"])
            .args(["-vf", &format!("fps={PICTURES_PER_SECOND},scale=w='min({WIDTH},iw)':h=-2")])
            .args(["-c:v", "mjpeg", "-q:v", "5", "-threads", "1", "-f", "mpjpeg", "pipe:1"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let failed = |source| AudioError::Ffmpeg { path: self.path.clone(), source };
        let mut child = child::spawn(decoding).map_err(failed)?;
        let output = child.stdout.take().ok_or_else(|| failed(std::io::ErrorKind::BrokenPipe.into()))?;
        let (sender, pictures) = sync_channel(AHEAD);
        std::thread::spawn(move || read_all(output, &sender));
        Ok(Stream { child, pictures, next: seconds, latest: Arc::default(), asked: Instant::now() })
    }

    /// Ends the decoder once no more requests come.
    fn watch(&self) {
        let state = Arc::downgrade(&self.state);
        std::thread::spawn(move || {
            loop {
                std::thread::sleep(IDLE / 5);
                let Some(state) = state.upgrade() else { return };
                let mut state = lock(&state);
                if state.stream.as_ref().is_none_or(|stream| stream.asked.elapsed() >= IDLE) {
                    (state.stream, state.is_watched) = (None, false);
                    return;
                }
            }
        });
    }

    /// Whether a decoder is at work, or waits for the next question.
    pub fn is_decoding(&self) -> bool {
        lock(&self.state).stream.is_some()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line of the description of a file that names a track of moving pictures.
fn is_of_pictures(line: &str) -> bool {
    line.trim_start().starts_with("Stream #0:")
        && line.contains(": Video: ")
        && !line.contains("(attached pic)")
}

/// Passes on picture after picture until the film or the listener is gone.
fn read_all(output: ChildStdout, pictures: &SyncSender<Vec<u8>>) {
    let mut output = BufReader::new(output);
    while let Some(picture) = read_one(&mut output) {
        if pictures.send(picture).is_err() {
            return;
        }
    }
}

/// The next part of a `multipart/x-mixed-replace` stream: header lines, one of which has the length, an
/// empty line, the picture.
fn read_one(output: &mut impl BufRead) -> Option<Vec<u8>> {
    let (mut length, mut line) = (None, String::new());
    loop {
        line.clear();
        if output.by_ref().take(1024).read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim() {
            "" if length.is_some() => break,
            header => {
                let value =
                    header.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
                length = value.and_then(|(_, value)| value.trim().parse().ok()).or(length);
            }
        }
    }
    let mut picture = vec![0; length.filter(|length| *length <= MOST_BYTES)?];
    output.read_exact(&mut picture).ok()?;
    Some(picture)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_pictures_are_told_from_covers() {
        for (line, expected) in [
            ("  Stream #0:0[0x1](und): Video: h264 (High), yuv420p, 1280x720, 25 fps (default)", true),
            ("  Stream #0:1: Video: mjpeg (Baseline), yuvj444p, 600x600 (attached pic)", false),
            ("  Stream #0:0: Audio: aac (LC), 44100 Hz, stereo", false),
            ("    title           : Stream #0:0: Video: of a song", false),
        ] {
            assert_eq!(is_of_pictures(line), expected, "{line}");
        }
    }

    #[test]
    fn parts_are_read_by_their_length() {
        let stream = b"--ffmpeg\r\nContent-type: image/jpeg\r\nContent-length: 3\r\n\r\nabc\r\n--ffmpeg\r\nContent-length: 2\r\n\r\nde\r\n";
        let mut left = &stream[..];
        assert_eq!(read_one(&mut left).as_deref(), Some(&b"abc"[..]));
        assert_eq!(read_one(&mut left).as_deref(), Some(&b"de"[..]));
        assert_eq!(read_one(&mut left), None);
        let mut huge = &b"Content-length: 99999999999\r\n\r\n"[..];
        assert_eq!(read_one(&mut huge), None);
    }
}
