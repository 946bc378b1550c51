use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use audio::{AudioError, Pass, Seekable};

use crate::Peaks;
use crate::kept::Kept;
use crate::spool::Spool;
use crate::wave::{HEADER, Wave};

/// Decoders that wait for the next request, so that going back and forth opens none.
const IDLE_DECODERS: usize = 2;

/// What the page offers, and room for more.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=8.0;

/// One recording that is being listened to.
#[derive(Debug)]
pub(crate) struct Recording {
    wave: Wave,
    rate: u32,
    channels: usize,
    /// Others are made of it, which share what was learned.
    first: Mutex<Seekable>,
    idle: Mutex<Vec<Seekable>>,
    learned: Arc<Learned>,
    /// In hundredths.
    speed: AtomicU32,
}

/// What the pass over a recording has found so far.
#[derive(Debug, Default)]
struct Learned {
    peaks: Mutex<(Peaks, bool)>,
    /// Where nothing but decoding leads to a place: all that was decoded.
    spool: OnceLock<Spool>,
    /// Nobody wants to know more.
    closed: AtomicBool,
}

impl Recording {
    /// Opens a recording and begins the pass over it, unless `keep` has what it would learn.
    pub(crate) fn open(path: &Path, keep: Option<&Path>) -> Result<Self, AudioError> {
        let kept = keep.and_then(Kept::load);
        let learned = Arc::new(Learned::default());
        let is_known = kept.is_some();
        let index = kept.map(|kept| {
            *lock(&learned.peaks) = (kept.peaks, true);
            kept.index
        });
        let sound = Seekable::open(path, index)?;
        if !sound.is_exact() {
            learned.begin_spool()?;
        }
        if !is_known {
            let learning = Learning { keep: keep.map(Path::to_path_buf), learned: Arc::clone(&learned) };
            let pass = sound.pass()?;
            if sound.frames().is_some() {
                std::thread::spawn(move || learning.run(pass));
            } else {
                // Nothing tells how long it is before all was decoded.
                learning.run(pass);
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
            learned,
            speed: AtomicU32::new(100),
        })
    }

    /// At which it is played; 1: as it was recorded.
    pub(crate) fn speed(&self) -> f64 {
        f64::from(self.speed.load(Ordering::Relaxed)) / 100.0
    }

    /// False where that is no speed that anything is played at.
    pub(crate) fn set_speed(&self, text: &str) -> bool {
        let speed = text.parse().ok().filter(|speed: &f64| SPEEDS.contains(speed));
        if let Some(speed) = speed {
            self.speed.store((speed * 100.0).round() as u32, Ordering::Relaxed);
        }
        speed.is_some()
    }

    pub(crate) fn wave(&self) -> &Wave {
        &self.wave
    }

    /// `{"seconds": of a stretch, "done": whether all are there, "values": [lowest, highest, ...]}`,
    /// values in 128ths.
    pub(crate) fn peaks(&self) -> String {
        let peaks = lock(&self.learned.peaks);
        let seconds = peaks.0.frames() as f64 / f64::from(self.rate);
        let values = peaks.0.values();
        serde_json::json!({ "seconds": seconds, "done": peaks.1, "values": values }).to_string()
    }

    pub(crate) fn listener(self: &Arc<Self>) -> Result<Listener, AudioError> {
        let idle = lock(&self.idle).pop();
        let sound = match (idle, self.learned.spool.get()) {
            (Some(sound), _) => Some(sound),
            (None, Some(_)) => None,
            (None, None) => Some(lock(&self.first).another()?),
        };
        Ok(Listener { recording: Arc::clone(self), sound, samples: Vec::new() })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.learned.closed.store(true, Ordering::Relaxed);
    }
}

impl Learned {
    fn begin_spool(&self) -> Result<(), AudioError> {
        if self.spool.get().is_none() {
            let folder = std::env::temp_dir();
            let spool = Spool::new().map_err(|source| AudioError::Spool { folder, source })?;
            let _ = self.spool.set(spool);
        }
        Ok(())
    }
}

/// The pass over a recording.
struct Learning {
    keep: Option<PathBuf>,
    learned: Arc<Learned>,
}

impl Learning {
    fn run(&self, pass: Pass) {
        if let Err(error) = self.try_run(pass) {
            eprintln!("steno-player: {error}");
        }
        if let Some(spool) = self.learned.spool.get() {
            spool.end();
        }
        let mut peaks = lock(&self.learned.peaks);
        peaks.0.close();
        peaks.1 = true;
    }

    fn try_run(&self, mut pass: Pass) -> Result<(), AudioError> {
        self.decode(&mut pass)?;
        let sound = pass.sound();
        if !sound.is_exact() && self.learned.spool.get().is_none() {
            // It turned out on the way: once more, to keep all of it.
            self.learned.begin_spool()?;
            *lock(&self.learned.peaks) = Default::default();
            return self.decode(&mut sound.pass()?);
        }
        if let Some(keep) = self.keep.as_ref().filter(|_| sound.is_exact()) {
            let mut peaks = lock(&self.learned.peaks).0.clone();
            peaks.close();
            if let Err(error) = Kept::new(sound.index(), peaks).save(keep) {
                // It is learned anew the next time.
                eprintln!("steno-player: {}: {error}", keep.display());
            }
        }
        Ok(())
    }

    fn decode(&self, pass: &mut Pass) -> Result<(), AudioError> {
        let channels = pass.sound().channels();
        while let Some(block) = pass.next_block() {
            if self.is_closed() {
                return Err(AudioError::Cancelled);
            }
            lock(&self.learned.peaks).0.push(block, channels);
            if let Some(spool) = self.learned.spool.get() {
                let folder = std::env::temp_dir();
                spool.push(block).map_err(|source| AudioError::Spool { folder, source })?;
            }
        }
        Ok(())
    }

    fn is_closed(&self) -> bool {
        self.learned.closed.load(Ordering::Relaxed)
    }
}

/// One who reads from a recording.
pub(crate) struct Listener {
    recording: Arc<Recording>,
    sound: Option<Seekable>,
    samples: Vec<i16>,
}

impl Listener {
    /// Appends bytes of the virtual file. What there is less than its header
    /// said is silence.
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
        if let Some(spool) = self.recording.learned.spool.get() {
            let (first, samples) = (from * channels as u64, count * channels);
            if let Err(error) = spool.read(first, samples, &mut self.samples) {
                eprintln!("steno-player: what was decoded cannot be read: {error}");
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

impl Drop for Listener {
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
