//! A recording that is open for playback.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use audio::{AudioError, DecodingPass, Film, Seekable};
use memory::allocation::limited;

use crate::Peaks;
use crate::cache::RecordingCache;
use crate::spool::Spool;
use crate::wave::{HEADER, Wave};

/// Idle decoders that are kept for the next request, so that seeking opens no new ones.
const IDLE_DECODERS: usize = 2;

/// Accepted playback speeds: those that the page offers, with a margin.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=8.0;

/// A recording that is open for playback.
#[derive(Debug)]
pub(crate) struct OpenRecording {
    wave: Wave,
    rate: u32,
    channels: usize,
    /// Further decoders are opened from this one and share its index.
    first: Mutex<Seekable>,
    idle: Mutex<Vec<Seekable>>,
    scanned: Arc<ScanResults>,
    /// Playback speed in hundredths.
    speed: AtomicU32,
    path: PathBuf,
    /// Looked for when pictures are first asked for. An error: no `ffmpeg` can be run.
    film: OnceLock<Result<Option<Film>, AudioError>>,
}

/// What scanning a recording has found so far.
#[derive(Debug, Default)]
struct ScanResults {
    /// The peaks, and whether they are complete.
    peaks: Mutex<(Peaks, bool)>,
    /// All decoded samples, if seeking in the file is not exact.
    spool: OnceLock<Spool>,
    /// The recording was closed: scanning is to stop.
    closed: AtomicBool,
}

impl OpenRecording {
    /// Opens a recording. Scans it in the background, unless the cache file `keep`
    /// has the results.
    pub(crate) fn open(path: &Path, track: Option<usize>, keep: Option<&Path>) -> Result<Self, AudioError> {
        let cache = keep.and_then(RecordingCache::load);
        let scanned = Arc::new(ScanResults::default());
        let is_known = cache.is_some();
        let index = cache.map(|cache| {
            *lock(&scanned.peaks) = (cache.peaks, true);
            cache.index
        });
        let sound = Seekable::open_track(path, track, index)?;
        if !sound.is_exact() {
            scanned.begin_spool()?;
        }
        if !is_known {
            let scan = Scan { keep: keep.map(Path::to_path_buf), scanned: Arc::clone(&scanned) };
            let pass = sound.pass()?;
            if sound.frames().is_some() {
                std::thread::spawn(move || limited(crate::DECODING_BYTES, || scan.run(pass)));
            } else {
                // The length is known only after decoding everything.
                scan.run(pass);
            }
        }
        let frames = sound.frames().unwrap_or(0);
        if frames == 0 {
            return Err(AudioError::ZeroLength { path: path.into() });
        }
        Ok(Self {
            wave: Wave::new(sound.rate(), sound.channels(), frames),
            rate: sound.rate(),
            channels: sound.channels(),
            first: Mutex::new(sound),
            idle: Mutex::default(),
            scanned,
            speed: AtomicU32::new(100),
            path: path.into(),
            film: OnceLock::new(),
        })
    }

    /// Playback speed; 1 is the recorded speed.
    pub(crate) fn speed(&self) -> f64 {
        f64::from(self.speed.load(Ordering::Relaxed)) / 100.0
    }

    /// Sets the playback speed. False if `text` is not an accepted speed.
    pub(crate) fn set_speed(&self, text: &str) -> bool {
        let speed = text.parse().ok().filter(|speed: &f64| SPEEDS.contains(speed));
        if let Some(speed) = speed {
            self.speed.store((speed * 100.0).round() as u32, Ordering::Relaxed);
        }
        speed.is_some()
    }

    fn film(&self) -> &Result<Option<Film>, AudioError> {
        self.film.get_or_init(|| Film::open(&self.path))
    }

    /// `{"pictures": whether there are any, "missing": whether they can't be shown without ffmpeg}`.
    pub(crate) fn pictures(&self) -> String {
        let ending = self.path.extension().unwrap_or_default().to_ascii_lowercase();
        let is_film = wire::FILMS.iter().any(|film| ending == *film);
        let (pictures, missing) = match self.film() {
            Ok(film) => (film.is_some(), false),
            Err(_) => (false, is_film),
        };
        serde_json::json!({ "pictures": pictures, "missing": missing }).to_string()
    }

    /// What is seen at a time, as a JPEG.
    pub(crate) fn picture(&self, seconds: f64) -> Option<Arc<Vec<u8>>> {
        self.film().as_ref().ok()?.as_ref()?.at(seconds).ok()?
    }

    pub(crate) fn wave(&self) -> &Wave {
        &self.wave
    }

    /// `{"seconds": length of a stretch, "done": whether scanning is complete, "values": [lowest, highest, ...]}`,
    /// see [`Peaks::values`].
    pub(crate) fn peaks(&self) -> String {
        let peaks = lock(&self.scanned.peaks);
        let seconds = peaks.0.frames() as f64 / f64::from(self.rate);
        let values = peaks.0.values();
        serde_json::json!({ "seconds": seconds, "done": peaks.1, "values": values }).to_string()
    }

    pub(crate) fn reader(self: &Arc<Self>) -> Result<WaveReader, AudioError> {
        let idle = lock(&self.idle).pop();
        let sound = match (idle, self.scanned.spool.get()) {
            (Some(sound), _) => Some(sound),
            (None, Some(_)) => None,
            (None, None) => Some(lock(&self.first).another()?),
        };
        Ok(WaveReader { recording: Arc::clone(self), sound, samples: Vec::new() })
    }
}

impl Drop for OpenRecording {
    fn drop(&mut self) {
        self.scanned.closed.store(true, Ordering::Relaxed);
    }
}

impl ScanResults {
    fn begin_spool(&self) -> Result<(), AudioError> {
        if self.spool.get().is_none() {
            let folder = std::env::temp_dir();
            let spool = Spool::new().map_err(|source| AudioError::Spool { folder, source })?;
            let _ = self.spool.set(spool);
        }
        Ok(())
    }
}

/// Decodes a whole recording for its peaks and its index.
struct Scan {
    keep: Option<PathBuf>,
    scanned: Arc<ScanResults>,
}

impl Scan {
    fn run(&self, pass: DecodingPass) {
        if let Err(error) = self.try_run(pass) {
            eprintln!("steno-player: {error}");
        }
        if let Some(spool) = self.scanned.spool.get() {
            spool.end();
        }
        let mut peaks = lock(&self.scanned.peaks);
        peaks.0.close();
        peaks.1 = true;
    }

    fn try_run(&self, mut pass: DecodingPass) -> Result<(), AudioError> {
        self.decode(&mut pass)?;
        let sound = pass.sound();
        if !sound.is_exact() && self.scanned.spool.get().is_none() {
            // The stream turned out to be irregular: decode it once more, into the spool.
            self.scanned.begin_spool()?;
            *lock(&self.scanned.peaks) = Default::default();
            return self.decode(&mut sound.pass()?);
        }
        if let Some(keep) = self.keep.as_ref().filter(|_| sound.is_exact()) {
            let mut peaks = lock(&self.scanned.peaks).0.clone();
            peaks.close();
            if let Err(error) = RecordingCache::new(sound.index(), peaks).save(keep) {
                // Without the cache it is scanned again the next time.
                eprintln!("steno-player: {}: {error}", keep.display());
            }
        }
        Ok(())
    }

    fn decode(&self, pass: &mut DecodingPass) -> Result<(), AudioError> {
        let channels = pass.sound().channels();
        while let Some(block) = pass.next_block() {
            if self.is_closed() {
                return Err(AudioError::Cancelled);
            }
            lock(&self.scanned.peaks).0.push(block, channels);
            if let Some(spool) = self.scanned.spool.get() {
                let folder = std::env::temp_dir();
                spool.push(block).map_err(|source| AudioError::Spool { folder, source })?;
            }
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.scanned.closed.load(Ordering::Relaxed)
    }
}

/// Reads bytes of a recording's virtual WAV file.
pub(crate) struct WaveReader {
    recording: Arc<OpenRecording>,
    sound: Option<Seekable>,
    samples: Vec<i16>,
}

impl WaveReader {
    /// Appends bytes of the virtual file. Samples beyond the end of the recording
    /// are silence, if the header stated too many.
    pub(crate) fn read(&mut self, bytes: Range<u64>, out: &mut Vec<u8>) {
        let wave = &self.recording.wave;
        if bytes.start < HEADER {
            let end = bytes.end.min(HEADER);
            out.extend_from_slice(&wave.header()[bytes.start as usize..end as usize]);
        }
        let bytes = bytes.start.max(HEADER)..bytes.end;
        if bytes.is_empty() {
            return;
        }
        let (frames, within) = wave.frames_of(&bytes);
        let (from, count) =
            (frames.start * wave.joined, ((frames.end - frames.start) * wave.joined) as usize);
        let channels = self.recording.channels;
        self.samples.clear();
        if let Some(spool) = self.recording.scanned.spool.get() {
            let (first, samples) = (from * channels as u64, count * channels);
            if let Err(error) = spool.read(first, samples, &mut self.samples) {
                eprintln!("steno-player: the spooled samples cannot be read: {error}");
            }
        } else if let Some(sound) = &mut self.sound {
            sound.read(from, count, &mut self.samples);
        }
        self.samples.resize(count * channels, 0);
        wave.shape(&mut self.samples);
        let first = within.start;
        let all = self.samples.iter().flat_map(|sample| sample.to_le_bytes());
        out.extend(all.skip(first).take(within.end - first));
    }
}

impl Drop for WaveReader {
    fn drop(&mut self) {
        let mut idle = lock(&self.recording.idle);
        if let Some(sound) = self.sound.take().filter(|_| idle.len() < IDLE_DECODERS) {
            idle.push(sound);
        }
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
