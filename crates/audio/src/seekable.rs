use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::decoded::{Decoded, Step};
use crate::mix::Mixer;
use crate::mkv::Clusters;
use crate::native::{Mark, Target};
use crate::reader::{Source, open_source};
use crate::{AudioError, frames_of, source};

/// What is decoded and dropped rather than sought, in seconds.
const NEAR_SECONDS: f64 = 3.0;
/// Before a place that only its time stamp leads to, in seconds: longer than
/// any codec takes to be what it would have been.
const RUN_UP_SECONDS: f64 = 0.5;
/// Sound may lie in another cluster than pictures of the same time, this far
/// away at most, in seconds.
const INTERLEAVED_SECONDS: f64 = 2.0;
/// Pieces after which the first whole packet should have come.
const PIECES_TO_LEAD: usize = 16;

/// Where the packets of a recording are, and how long it is. Complete after one
/// [`Pass`]; may then be kept and given to [`Seekable::open`] again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Index {
    marks: Vec<Mark>,
    /// Frames of the whole recording.
    frames: Option<u64>,
    /// The same as the packets state it.
    counted: Option<u64>,
    /// Only decoding from the start leads to the right places.
    irregular: bool,
}

impl Index {
    pub fn is_complete(&self) -> bool {
        self.frames.is_some()
    }

    fn put(&mut self, mark: Mark) {
        match self.marks.binary_search_by_key(&mark.ordinal, |known| known.ordinal) {
            // By decoding it is known better than by counting.
            Ok(at) => self.marks[at].position = mark.position,
            Err(at) if at == self.marks.len() => {
                // Two packets of one time stamp lead to neither.
                if self.marks.last().is_none_or(|last| last.stamp < mark.stamp) {
                    self.marks.push(mark);
                }
            }
            Err(_) => {}
        }
    }

    /// The last mark at or before a place, and the one before that.
    fn around(&self, position: u64) -> Option<(Mark, Mark)> {
        let after = self.marks.partition_point(|mark| mark.position <= position);
        Some((*self.marks.get(after.checked_sub(2)?)?, *self.marks.get(after - 1)?))
    }
}

/// A recording of which any part can be decoded, at its own rate, as 16-bit
/// samples of one channel or two (more are mixed into one). The samples of a
/// part are those that decoding from the start would give: all places are
/// counted in frames of the decoded sound, not taken from a container.
pub struct Seekable {
    path: PathBuf,
    source: Source,
    rate: u32,
    shaper: Shaper,
    index: Arc<Mutex<Index>>,
    /// Of Matroska.
    clusters: Option<Arc<Clusters>>,
    decoded: Decoded,
    /// Decoded, interleaved, from frame `at` on.
    ready: Vec<i16>,
    at: u64,
}

impl std::fmt::Debug for Seekable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seekable").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Seekable {
    /// Opens the default track. Without an index, streams of bare frames (mp3,
    /// ADTS) are read through, not decoded, to learn where their frames are.
    pub fn open(path: &Path, index: Option<Index>) -> Result<Self, AudioError> {
        let known = index.is_some();
        let mut this = Self::with(path, Arc::new(Mutex::new(index.unwrap_or_default())), None)?;
        if let Source::Native(native) = &this.source
            && native.is_bare()
            && !known
        {
            let (marks, counted) = frames_of::marks(path);
            this.index = Arc::new(Mutex::new(Index { marks, counted, ..Index::default() }));
        }
        if this.is_matroska() {
            this.clusters = Clusters::find(path).map(Arc::new);
        }
        Ok(this)
    }

    fn with(
        path: &Path,
        index: Arc<Mutex<Index>>,
        clusters: Option<Arc<Clusters>>,
    ) -> Result<Self, AudioError> {
        source::check(path)?;
        let source = open_source(path, None)?;
        let info = match &source {
            Source::Native(native) => native.info(),
            Source::Ffmpeg(ffmpeg) => ffmpeg.info(),
        };
        let (rate, channels) = (info.sample_rate, info.channels);
        if rate == 0 || channels == 0 {
            return Err(AudioError::ZeroLength { path: path.into() });
        }
        let mut this = Self {
            path: path.into(),
            source,
            rate,
            shaper: Shaper::new(rate, channels),
            index,
            clusters,
            decoded: Decoded::default(),
            ready: Vec::new(),
            at: 0,
        };
        this.find_lead();
        Ok(this)
    }

    /// The same recording once more, for another place.
    pub fn another(&self) -> Result<Self, AudioError> {
        Self::with(&self.path, Arc::clone(&self.index), self.clusters.clone())
    }

    /// Hertz.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// One or two.
    pub fn channels(&self) -> usize {
        self.shaper.channels
    }

    /// False where nothing but decoding from the start leads to a place:
    /// what `ffmpeg` decodes, Matroska without lengths, streams whose rate
    /// changes. [`Seekable::read`] then gives what it can, and a [`Pass`] alone is right.
    pub fn is_exact(&self) -> bool {
        matches!(&self.source, Source::Native(native) if !native.is_irregular())
            && !self.lock().irregular
            && (self.clusters.is_some() || !self.is_matroska())
    }

    fn is_matroska(&self) -> bool {
        matches!(&self.source, Source::Native(native) if native.is_matroska())
    }

    /// Frames of the whole: exact once a pass was through, before that as the
    /// packets or the container say; `None` where they say nothing.
    pub fn frames(&self) -> Option<u64> {
        let index = self.lock();
        let known = index.frames.or(index.counted);
        if known.is_some() {
            return known;
        }
        let info = match &self.source {
            Source::Native(native) => native.info(),
            Source::Ffmpeg(ffmpeg) => ffmpeg.info(),
        };
        info.duration_seconds.map(|seconds| (seconds * f64::from(self.rate)).round() as u64)
    }

    pub fn index(&self) -> Index {
        self.lock().clone()
    }

    /// Decodes the whole from its start, and learns what [`Seekable::read`] needs.
    pub fn pass(&self) -> Result<Pass, AudioError> {
        Ok(Pass { sound: self.another()?, frames: 0 })
    }

    /// Appends up to `count` frames from frame `from` on, interleaved; fewer
    /// only at the end of the recording.
    pub fn read(&mut self, from: u64, count: usize, out: &mut Vec<i16>) {
        let near = (NEAR_SECONDS * f64::from(self.rate)) as u64;
        if from < self.at || from > self.at + self.frames_ready() + near {
            self.go_to(from);
        }
        let (mut from, mut left) = (from, count as u64);
        while left > 0 {
            let end = self.at + self.frames_ready();
            if from < end && from >= self.at {
                let take = left.min(end - from);
                let sample = |frame: u64| (frame - self.at) as usize * self.shaper.channels;
                out.extend_from_slice(&self.ready[sample(from)..sample(from + take)]);
                (from, left) = (from + take, left - take);
            } else if from < self.at {
                // A seek that came out behind its place: what is missing is silence.
                let take = left.min(self.at - from);
                out.resize(out.len() + take as usize * self.shaper.channels, 0);
                (from, left) = (from + take, left - take);
            } else if !self.more() {
                return;
            }
        }
    }

    fn frames_ready(&self) -> u64 {
        (self.ready.len() / self.shaper.channels) as u64
    }

    /// Replaces `ready` by what comes next.
    fn more(&mut self) -> bool {
        self.at += self.frames_ready();
        self.ready.clear();
        let step = match &mut self.source {
            Source::Native(native) => {
                let step = native.next(&mut self.decoded);
                if step == Step::Piece {
                    self.at = native.position() - self.decoded.frames() as u64;
                }
                step
            }
            Source::Ffmpeg(ffmpeg) => ffmpeg.next(&mut self.decoded),
        };
        if step == Step::Piece {
            self.shaper.append(&self.decoded, &mut self.ready);
        }
        step == Step::Piece
    }

    fn go_to(&mut self, frame: u64) {
        if self.seek(frame) {
            return;
        }
        // A demuxer may have lost its way; one that was opened anew has not.
        if let Ok(fresh) = self.another() {
            *self = fresh;
            let near = (NEAR_SECONDS * f64::from(self.rate)) as u64;
            if frame > near && !self.seek(frame) {
                // Nothing leads there but decoding all that is before.
                if let Ok(fresh) = self.another() {
                    *self = fresh;
                }
            }
        }
    }

    /// Goes to a place at or before a frame, and not far before.
    fn seek(&mut self, frame: u64) -> bool {
        let (around, passed) = {
            let index = self.lock();
            (
                index.around(frame),
                index.is_complete() || index.marks.last().is_some_and(|last| last.position > frame),
            )
        };
        let run_up = (RUN_UP_SECONDS * f64::from(self.rate)) as u64;
        let Source::Native(native) = &mut self.source else { return false };
        let (mut start, target) = match around {
            Some((start, sync)) if passed || native.is_bare() => (start, Target::Mark(sync)),
            _ => {
                let stamps = (
                    native.stamp_of(frame.saturating_sub(2 * run_up)),
                    native.stamp_of(frame.saturating_sub(run_up)),
                );
                let (Some(start), Some(target)) = stamps else { return false };
                if native.is_bare() || passed || frame < 2 * run_up {
                    return false;
                }
                (Mark { ordinal: 0, stamp: start, position: 0, offset: None }, Target::Stamp(target))
            }
        };
        let clusters = self.clusters.as_deref();
        if let Some(clusters) = clusters {
            let interleaved = native.ticks(INTERLEAVED_SECONDS);
            start.offset = clusters.before(start.stamp.saturating_sub(interleaved));
        }
        if !native.seek(&self.path, clusters, &start, target) {
            return false;
        }
        self.ready.clear();
        self.at = 0;
        self.more() && self.at <= frame
    }

    /// Decodes the beginning, which says how places and time stamps are related.
    fn find_lead(&mut self) {
        if !matches!(&self.source, Source::Native(native) if !native.is_bare()) {
            return;
        }
        let mut beginning = Vec::new();
        for _ in 0..PIECES_TO_LEAD {
            if matches!(&self.source, Source::Native(native) if native.stamp_of(0).is_some()) || !self.more()
            {
                break;
            }
            beginning.append(&mut self.ready);
        }
        self.at = 0;
        self.ready = beginning;
    }

    fn lock(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A recording decoded from its start to its end.
#[derive(Debug)]
pub struct Pass {
    sound: Seekable,
    frames: u64,
}

impl Pass {
    /// The next samples, interleaved; `None` at the end.
    pub fn next_block(&mut self) -> Option<&[i16]> {
        let sound = &mut self.sound;
        // What was decoded to open it comes first.
        let mut ready = self.frames == 0 && !sound.ready.is_empty();
        while !ready {
            if !sound.more() {
                sound.lock().frames = Some(self.frames);
                return None;
            }
            if let Source::Native(native) = &mut sound.source {
                let (mark, irregular) = (native.take_mark(), native.is_irregular());
                let mut index = sound.index.lock().unwrap_or_else(PoisonError::into_inner);
                index.irregular |= irregular;
                if let Some(mark) = mark {
                    index.put(mark);
                }
            }
            ready = !sound.ready.is_empty();
        }
        self.frames += sound.frames_ready();
        Some(&self.sound.ready)
    }

    /// What is passed over; what was learned so far is known to it.
    pub fn sound(&self) -> &Seekable {
        &self.sound
    }
}

/// Makes 16-bit samples of a fixed form of whatever a decoder gives.
#[derive(Debug)]
struct Shaper {
    rate: u32,
    channels: usize,
    mixer: Mixer,
    mono: Vec<f32>,
}

impl Shaper {
    fn new(rate: u32, channels: u32) -> Self {
        let channels = if channels == 2 { 2 } else { 1 };
        Self { rate, channels, mixer: Mixer::new(None), mono: Vec::new() }
    }

    fn append(&mut self, piece: &Decoded, out: &mut Vec<i16>) {
        let (left, right) = match (self.channels, piece.planes.as_slice()) {
            (_, []) => return,
            (2, [left, right, ..]) => (left.as_slice(), right.as_slice()),
            (_, [only]) => (only.as_slice(), only.as_slice()),
            _ => {
                self.mixer.mix(piece, &mut self.mono);
                (self.mono.as_slice(), self.mono.as_slice())
            }
        };
        // The nearest sample where the rate changed on the way, which chained streams alone do.
        let frames = match piece.rate {
            rate if rate == self.rate || rate == 0 => left.len(),
            rate => (left.len() as u64 * u64::from(self.rate) / u64::from(rate)) as usize,
        };
        out.reserve(frames * self.channels);
        for frame in 0..frames {
            let at = if frames == left.len() { frame } else { frame * left.len() / frames };
            out.push(sample(left[at]));
            if self.channels == 2 {
                out.push(sample(right[at]));
            }
        }
    }
}

/// Not a number becomes silence, what is too loud is cut.
fn sample(value: f32) -> i16 {
    (value * 32_768.0).round() as i16
}
