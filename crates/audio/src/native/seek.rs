//! How a decoder gets to a place within a recording: a container's own seek,
//! or, in streams of bare frames, the byte that a frame begins at; then
//! packets are decoded and dropped until one is met whose place is known.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::path::Path;

use serde::{Deserialize, Serialize};
use symphonia::core::formats::{FormatOptions, FormatReader, SeekMode, SeekTo};
use symphonia::core::io::{MediaSourceStream, ReadOnlySource};
use symphonia::core::packet::Packet;
use symphonia::core::units::{Duration, Timestamp};
use symphonia::default::formats::{AdtsReader, MkvReader, MpaReader};

use super::{Native, guarded};
use crate::codecs::decoder_for;
use crate::mkv::Clusters;

/// Packets from one mark to the next, which is also what is decoded ahead of a
/// place: more than any codec here remembers (a frame of mp3 refers to 511
/// bytes before it, which may be 22 frames), and under a second of most.
pub(crate) const STRIDE: u64 = 32;

/// A packet whose place in the decoded sound is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    /// Counted from 0 over the packets of the track.
    pub(crate) ordinal: u64,
    /// In the container's units.
    pub(crate) stamp: i64,
    /// Frames before its first one.
    pub(crate) position: u64,
    /// Byte that it begins at, in streams of bare frames, or its cluster in Matroska.
    pub(crate) offset: Option<u64>,
}

/// What to decode until.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target {
    Mark(Mark),
    /// The packet of this time stamp, whose place follows from the stamp.
    Stamp(i64),
}

/// What seeking knows of the packets that went by.
#[derive(Debug, Default)]
pub(super) struct Place {
    /// Of the next packet.
    ordinal: u64,
    /// The packet that was decoded last: its number and time stamp.
    latest: (u64, i64),
    /// A mark that was passed, until somebody takes it.
    passed: Option<Mark>,
    /// Frames by which places are behind what time stamps say, once known.
    lead: Option<i64>,
    target: Option<Target>,
    /// The demuxer began in the middle: what it says of ends is wrong.
    is_cut: bool,
    sought: bool,
    /// The rate changed, or a stream followed upon another: nothing leads there but decoding.
    pub(super) irregular: bool,
}

impl Place {
    pub(super) fn enter(&mut self, packet: &mut Packet) {
        if self.is_cut {
            packet.trim_start = Duration::ZERO;
            packet.trim_end = Duration::ZERO;
        }
        self.latest = (self.ordinal, packet.pts.get());
        self.ordinal += 1;
    }
}

impl Native {
    /// Whether frames stand one behind the other with nothing around them.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.info.container.as_str(), "mp1" | "mp2" | "mp3" | "aac")
    }

    /// Whether it consists of clusters, see [`Clusters`].
    pub(crate) fn is_matroska(&self) -> bool {
        self.info.container == super::MATROSKA
    }

    /// Whether a seek leads anywhere but where decoding from the start does.
    pub(crate) fn is_irregular(&self) -> bool {
        self.place.irregular
    }

    /// Frames given out so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    pub(crate) fn take_mark(&mut self) -> Option<Mark> {
        self.place.passed.take()
    }

    /// The time stamp of a place, by what is known before it was passed;
    /// `None` where too little is.
    pub(crate) fn stamp_of(&self, position: u64) -> Option<i64> {
        let lead = self.place.lead?;
        let seconds = (position as i64 - lead) as f64 / f64::from(self.rate.max(1)) + self.origin;
        Some((seconds / super::base_seconds(self.time_base?)) as i64)
    }

    /// So many seconds in the container's units.
    pub(crate) fn ticks(&self, seconds: f64) -> i64 {
        self.time_base.map_or(0, |base| (seconds / super::base_seconds(base)) as i64)
    }

    /// Goes to `start` and decodes from there to `target`, whose first frame is
    /// the next to be given out. False where the file does not lead there; the
    /// state is then that of no place.
    pub(crate) fn seek(
        &mut self,
        path: &Path,
        clusters: Option<&Clusters>,
        start: &Mark,
        target: Target,
    ) -> bool {
        self.packets.clear();
        self.held = None;
        self.position = 0;
        (self.silence, self.skip, self.faults) = (0, 0, 0);
        (self.ended, self.judged) = (false, true);
        self.place.sought = true;
        self.place.passed = None;
        let there = guarded(|| match start.offset {
            Some(offset) => match clusters {
                Some(clusters) => self.begin_at_cluster(path, clusters, offset),
                None => self.begin_at(path, offset),
            },
            None => self.ask_container(start.stamp),
        });
        self.place.ordinal = start.ordinal;
        self.place.target = Some(target);
        matches!(there, Ok(Some(())))
    }

    fn ask_container(&mut self, stamp: i64) -> Option<()> {
        let to = SeekTo::Timestamp { ts: Timestamp::new(stamp), track_id: self.track_id };
        self.format.seek(SeekMode::Accurate, to).ok()?;
        self.renew_decoder()
    }

    fn begin_at(&mut self, path: &Path, offset: u64) -> Option<()> {
        let mut file = File::open(path).ok()?;
        file.seek(SeekFrom::Start(offset)).ok()?;
        // Cannot seek, so that no length is estimated from what is left.
        let stream = MediaSourceStream::new(Box::new(ReadOnlySource::new(file)), Default::default());
        let format: Box<dyn FormatReader> = if self.info.container == "aac" {
            Box::new(AdtsReader::try_new(stream, FormatOptions::default()).ok()?)
        } else {
            Box::new(MpaReader::try_new(stream, FormatOptions::default()).ok()?)
        };
        self.track_id = format.tracks().first()?.id;
        self.format = format;
        self.place.is_cut = true;
        self.renew_decoder()
    }

    fn begin_at_cluster(&mut self, path: &Path, clusters: &Clusters, offset: u64) -> Option<()> {
        let source = ReadOnlySource::new(clusters.read_from(path, offset).ok()?);
        let stream = MediaSourceStream::new(Box::new(source), Default::default());
        self.format = Box::new(MkvReader::try_new(stream, FormatOptions::default()).ok()?);
        self.renew_decoder()
    }

    fn renew_decoder(&mut self) -> Option<()> {
        let track = self.format.tracks().iter().find(|track| track.id == self.track_id)?;
        let parameters = track.codec_params.as_ref()?.audio()?.clone();
        self.decoder = decoder_for(&parameters).ok()?;
        Some(())
    }

    /// Whether what was just decoded lies before the place that is sought; at
    /// that place the count of frames is set right.
    pub(super) fn is_before_target(&mut self) -> bool {
        let Some(target) = self.place.target else { return false };
        let (ordinal, stamp) = self.place.latest;
        let (before, position) = match target {
            Target::Mark(mark) if mark.offset.is_some() => (ordinal < mark.ordinal, mark.position),
            Target::Mark(mark) if stamp > mark.stamp => (false, self.position_of(stamp)),
            Target::Mark(mark) => (stamp < mark.stamp, mark.position),
            Target::Stamp(wanted) => (stamp < wanted, self.position_of(stamp)),
        };
        // Gaps are counted from a place, and there is none yet.
        self.silence = 0;
        if !before {
            self.position = position;
            self.place.target = None;
        }
        before
    }

    fn position_of(&self, stamp: i64) -> u64 {
        u64::try_from(self.frames_until(stamp) + self.place.lead.unwrap_or(0)).unwrap_or(0)
    }

    fn frames_until(&self, stamp: i64) -> i64 {
        let due = self.time_base.map_or(0.0, |base| stamp as f64 * super::base_seconds(base)) - self.origin;
        (due * f64::from(self.rate)).round() as i64
    }

    /// Notes where the packet just decoded begins. Nothing of it was dropped.
    pub(super) fn note_place(&mut self) {
        let (ordinal, stamp) = self.place.latest;
        let position = self.position + self.silence;
        if self.place.lead.is_none() && !self.place.sought {
            self.place.lead = Some(position as i64 - self.frames_until(stamp));
        }
        if ordinal > 0 && ordinal.is_multiple_of(STRIDE) {
            self.place.passed = Some(Mark { ordinal, stamp, position, offset: None });
        }
    }
}
