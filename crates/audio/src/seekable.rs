//! Random access to a recording at its own rate, for playback.
//!
//! Any part is as decoding from the start would have given it. An index has every 32nd
//! packet with its position in the decoded sound; a seek goes to one packet earlier in
//! the index, decodes, drops what comes until the known packet, and counts from there.
//! Streams of bare frames (mp3, ADTS) state no times: the byte of each 32nd frame is
//! looked up when they are opened, without decoding. Matroska is read from the cluster
//! before a position on, with the tracks' description put in front of it, since Symphonia
//! loses blocks at the end of the cluster that it seeks to. Elsewhere the container seeks.
//!
//! One pass over the whole in the background completes the index and finds the exact
//! length and the peaks of the waveform. Before that pass positions follow from time
//! stamps (up to 10 ms off), and the length is the header's. What ffmpeg decodes, Matroska
//! whose clusters don't state their size, and chained streams are decoded from the start
//! alone: the pass writes their sound to a temporary file without a name.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use crate::decoded::{DecodeStep, DecodedPiece};
use crate::mix::Mixer;
use crate::mkv::Clusters;
use crate::native::{PacketMark, SeekTarget};
use crate::reader::{PieceSource, open_source};
use crate::{AudioError, frame_offsets, source};

/// Distances up to this, in seconds, are decoded and dropped instead of seeking.
const NEAR_SECONDS: f64 = 3.0;
/// Sound that is decoded and dropped before a position found by time stamp, in
/// seconds: longer than the state of any codec depends on.
const RUN_UP_SECONDS: f64 = 0.5;
/// Largest distance, in seconds, between sound and video of the same time in a
/// Matroska file.
const INTERLEAVED_SECONDS: f64 = 2.0;
/// Pieces within which the first whole packet is expected.
const PIECES_TO_LEAD: usize = 16;

/// Positions of packets of a recording, and its length. It is complete after one
/// [`DecodingPass`] and can then be stored for the next [`Seekable::open`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeekIndex {
    marks: Vec<PacketMark>,
    /// Length of the recording in frames, by decoding.
    frames: Option<u64>,
    /// Length of the recording in frames, by the lengths that packets state.
    counted: Option<u64>,
    /// Positions are known only by decoding from the start.
    irregular: bool,
}

impl SeekIndex {
    /// Whether a pass has reached the end.
    pub fn is_complete(&self) -> bool {
        self.frames.is_some()
    }

    fn put(&mut self, mark: PacketMark) {
        match self.marks.binary_search_by_key(&mark.ordinal, |known| known.ordinal) {
            // The position by decoding is more accurate than the stated one.
            Ok(at) => self.marks[at].position = mark.position,
            Err(at) if at == self.marks.len() => {
                // Packets with the same time stamp can't be distinguished by a seek.
                if self.marks.last().is_none_or(|last| last.stamp < mark.stamp) {
                    self.marks.push(mark);
                }
            }
            Err(_) => {}
        }
    }

    /// The mark before the last one at or before a position, and that last one.
    fn around(&self, position: u64) -> Option<(PacketMark, PacketMark)> {
        let after = self.marks.partition_point(|mark| mark.position <= position);
        Some((*self.marks.get(after.checked_sub(2)?)?, *self.marks.get(after - 1)?))
    }
}

/// A recording of which any part can be decoded, at its own rate, as 16-bit samples
/// of one or two channels (more are mixed into one). A part has the samples that
/// decoding from the start gives: positions are counted in decoded frames and not
/// taken from the container.
pub struct Seekable {
    path: PathBuf,
    track: Option<usize>,
    source: PieceSource,
    rate: u32,
    shaper: Shaper,
    index: Arc<Mutex<SeekIndex>>,
    /// The clusters of a Matroska file.
    clusters: Option<Arc<Clusters>>,
    decoded: DecodedPiece,
    /// DecodedPiece samples, interleaved, from frame `at` on.
    ready: Vec<i16>,
    at: u64,
}

impl std::fmt::Debug for Seekable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seekable").field("path", &self.path).field("at", &self.at).finish_non_exhaustive()
    }
}

impl Seekable {
    /// Opens the default track. Without an index, streams of bare frames (mp3, ADTS)
    /// are read through once to find their frames, but not decoded.
    ///
    /// # Errors
    /// If the file can't be read or decoded.
    pub fn open(path: &Path, index: Option<SeekIndex>) -> Result<Self, AudioError> {
        Self::open_track(path, None, index)
    }

    /// As [`Seekable::open`], of a track by its number from 0. The index is that track's.
    ///
    /// # Errors
    /// If the file can't be read or decoded, or has no such track.
    pub fn open_track(
        path: &Path,
        track: Option<usize>,
        index: Option<SeekIndex>,
    ) -> Result<Self, AudioError> {
        let known = index.is_some();
        let mut this = Self::with(path, track, Arc::new(Mutex::new(index.unwrap_or_default())), None)?;
        if let PieceSource::Native(native) = &this.source
            && native.is_bare()
            && !known
        {
            let (marks, counted) = frame_offsets::marks(path);
            this.index = Arc::new(Mutex::new(SeekIndex { marks, counted, ..SeekIndex::default() }));
        }
        if this.is_matroska() {
            this.clusters = Clusters::find(path).map(Arc::new);
        }
        Ok(this)
    }

    fn with(
        path: &Path,
        track: Option<usize>,
        index: Arc<Mutex<SeekIndex>>,
        clusters: Option<Arc<Clusters>>,
    ) -> Result<Self, AudioError> {
        source::check(path)?;
        let source = open_source(path, track)?;
        let info = match &source {
            PieceSource::Native(native) => native.info(),
            PieceSource::Ffmpeg(ffmpeg) => ffmpeg.info(),
        };
        let (rate, channels) = (info.sample_rate, info.channels);
        if rate == 0 || channels == 0 {
            return Err(AudioError::ZeroLength { path: path.into() });
        }
        let mut this = Self {
            path: path.into(),
            track,
            source,
            rate,
            shaper: Shaper::new(rate, channels),
            index,
            clusters,
            decoded: DecodedPiece::default(),
            ready: Vec::new(),
            at: 0,
        };
        this.find_lead();
        Ok(this)
    }

    /// Opens the same recording again, with the same index, for another position.
    ///
    /// # Errors
    /// If the file can't be read or decoded.
    pub fn another(&self) -> Result<Self, AudioError> {
        Self::with(&self.path, self.track, Arc::clone(&self.index), self.clusters.clone())
    }

    /// Frames per second.
    pub fn rate(&self) -> u32 {
        self.rate
    }

    /// Number of channels, one or two.
    pub fn channels(&self) -> usize {
        self.shaper.channels
    }

    /// Whether [`Seekable::read`] is exact. It is not for recordings that `ffmpeg`
    /// decodes, for Matroska without sizes and for streams whose rate changes:
    /// there only a [`DecodingPass`] gives the right positions.
    pub fn is_exact(&self) -> bool {
        matches!(&self.source, PieceSource::Native(native) if !native.is_irregular())
            && !self.lock().irregular
            && (self.clusters.is_some() || !self.is_matroska())
    }

    fn is_matroska(&self) -> bool {
        matches!(&self.source, PieceSource::Native(native) if native.is_matroska())
    }

    /// Length of the recording in frames: exact after a pass, before that as packets
    /// or container state it, `None` if they don't.
    pub fn frames(&self) -> Option<u64> {
        let index = self.lock();
        let known = index.frames.or(index.counted);
        if known.is_some() {
            return known;
        }
        let info = match &self.source {
            PieceSource::Native(native) => native.info(),
            PieceSource::Ffmpeg(ffmpeg) => ffmpeg.info(),
        };
        info.duration_seconds.map(|seconds| (seconds * f64::from(self.rate)).round() as u64)
    }

    /// A copy of the index as far as it is known.
    pub fn index(&self) -> SeekIndex {
        self.lock().clone()
    }

    /// Starts decoding the whole recording, which completes the index.
    ///
    /// # Errors
    /// If the file can't be read or decoded.
    pub fn pass(&self) -> Result<DecodingPass, AudioError> {
        Ok(DecodingPass { sound: self.another()?, frames: 0 })
    }

    /// Appends `count` frames from frame `from` on, interleaved. At the end of the
    /// recording there are fewer.
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
                // The seek ended too late: the missing frames become silence.
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

    /// Replaces `ready` by the next piece. False at the end.
    fn more(&mut self) -> bool {
        self.at += self.frames_ready();
        self.ready.clear();
        let step = match &mut self.source {
            PieceSource::Native(native) => {
                let step = native.next(&mut self.decoded);
                if step == DecodeStep::Piece {
                    self.at = native.position() - self.decoded.frames() as u64;
                }
                step
            }
            PieceSource::Ffmpeg(ffmpeg) => ffmpeg.next(&mut self.decoded),
        };
        if step == DecodeStep::Piece {
            self.shaper.append(&self.decoded, &mut self.ready);
        }
        step == DecodeStep::Piece
    }

    fn go_to(&mut self, frame: u64) {
        if self.seek(frame) {
            return;
        }
        // A failed seek leaves the demuxer in an undefined state: open a new one.
        if let Ok(fresh) = self.another() {
            *self = fresh;
            let near = (NEAR_SECONDS * f64::from(self.rate)) as u64;
            if frame > near && !self.seek(frame) {
                // Decode everything before it.
                if let Ok(fresh) = self.another() {
                    *self = fresh;
                }
            }
        }
    }

    /// Seeks to a position shortly before `frame`.
    fn seek(&mut self, frame: u64) -> bool {
        let (around, passed) = {
            let index = self.lock();
            (
                index.around(frame),
                index.is_complete() || index.marks.last().is_some_and(|last| last.position > frame),
            )
        };
        let run_up = (RUN_UP_SECONDS * f64::from(self.rate)) as u64;
        let PieceSource::Native(native) = &mut self.source else { return false };
        let (mut start, target) = match around {
            Some((start, sync)) if passed || native.is_bare() => (start, SeekTarget::Mark(sync)),
            _ => {
                let stamps = (
                    native.stamp_of(frame.saturating_sub(2 * run_up)),
                    native.stamp_of(frame.saturating_sub(run_up)),
                );
                let (Some(start), Some(target)) = stamps else { return false };
                if native.is_bare() || passed || frame < 2 * run_up {
                    return false;
                }
                (
                    PacketMark { ordinal: 0, stamp: start, position: 0, offset: None },
                    SeekTarget::Stamp(target),
                )
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

    /// Decodes the beginning to find the offset between positions and time stamps.
    fn find_lead(&mut self) {
        if !matches!(&self.source, PieceSource::Native(native) if !native.is_bare()) {
            return;
        }
        let mut beginning = Vec::new();
        for _ in 0..PIECES_TO_LEAD {
            if matches!(&self.source, PieceSource::Native(native) if native.stamp_of(0).is_some())
                || !self.more()
            {
                break;
            }
            beginning.append(&mut self.ready);
        }
        self.at = 0;
        self.ready = beginning;
    }

    fn lock(&self) -> MutexGuard<'_, SeekIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Decodes a recording from start to end.
#[derive(Debug)]
pub struct DecodingPass {
    sound: Seekable,
    frames: u64,
}

impl DecodingPass {
    /// The next 16-bit samples, interleaved; `None` at the end.
    pub fn next_block(&mut self) -> Option<&[i16]> {
        let sound = &mut self.sound;
        // The pieces that were decoded for opening come first.
        let mut ready = self.frames == 0 && !sound.ready.is_empty();
        while !ready {
            if !sound.more() {
                sound.lock().frames = Some(self.frames);
                return None;
            }
            if let PieceSource::Native(native) = &mut sound.source {
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

    /// The recording, with the index so far.
    pub fn sound(&self) -> &Seekable {
        &self.sound
    }
}

/// Converts decoded pieces to 16-bit samples of a fixed rate and number of channels.
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

    fn append(&mut self, piece: &DecodedPiece, out: &mut Vec<i16>) {
        let (left, right) = match (self.channels, piece.planes.as_slice()) {
            (_, []) => return,
            (2, [left, right, ..]) => (left.as_slice(), right.as_slice()),
            (_, [only]) => (only.as_slice(), only.as_slice()),
            _ => {
                self.mixer.mix(piece, &mut self.mono);
                (self.mono.as_slice(), self.mono.as_slice())
            }
        };
        // Only chained streams change their rate: take the nearest sample.
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

/// Converts a sample. NaN becomes 0, too large values are clipped.
fn sample(value: f32) -> i16 {
    (value * 32_768.0).round() as i16
}
