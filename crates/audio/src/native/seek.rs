//! Seeking in a recording: by the container's own seek or, in streams of bare
//! frames, to the offset of a frame. Then packets are decoded and dropped until
//! one whose position is known.

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

/// Packets from one mark to the next, and packets that are decoded before the
/// target of a seek: more than the state of any codec here depends on (a frame of
/// mp3 refers to 511 bytes before it, which may be 22 frames), and less than a
/// second for most.
pub(crate) const STRIDE: u64 = 32;

/// A packet whose position in the decoded sound is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PacketMark {
    /// SeekIndex among the packets of the track.
    pub(crate) ordinal: u64,
    /// Time stamp in the container's units.
    pub(crate) stamp: i64,
    /// SeekIndex of its first frame in the decoded sound.
    pub(crate) position: u64,
    /// Offset of the packet, in streams of bare frames, or of its cluster, in Matroska.
    pub(crate) offset: Option<u64>,
}

/// The packet up to which decoded sound is dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SeekTarget {
    /// A packet of known position.
    Mark(PacketMark),
    /// The packet of this time stamp, from which its position is computed.
    Stamp(i64),
}

/// The part of a decoder's state that concerns positions.
#[derive(Debug, Default)]
pub(super) struct SeekState {
    /// SeekIndex of the next packet.
    ordinal: u64,
    /// SeekIndex and time stamp of the last decoded packet.
    latest: (u64, i64),
    /// The last mark that was passed, until it is taken.
    passed: Option<PacketMark>,
    /// Frames by which positions are larger than time stamps say, once known.
    lead: Option<i64>,
    target: Option<SeekTarget>,
    /// The demuxer was started in the middle, so that its trimming of the ends is wrong.
    is_cut: bool,
    /// The decoder has seeked.
    sought: bool,
    /// The rate changed, or a chained stream followed: positions are known only by decoding
    /// from the start.
    pub(super) irregular: bool,
}

impl SeekState {
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
    /// Whether the file is a stream of bare frames without a container.
    pub(crate) fn is_bare(&self) -> bool {
        matches!(self.info.container.as_str(), "mp1" | "mp2" | "mp3" | "aac")
    }

    /// Whether the file is Matroska and has [`Clusters`].
    pub(crate) fn is_matroska(&self) -> bool {
        self.info.container == super::MATROSKA
    }

    /// Whether positions after a seek may differ from those of decoding from the start.
    pub(crate) fn is_irregular(&self) -> bool {
        self.place.irregular
    }

    /// Frames returned so far.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// The last mark that was passed, once.
    pub(crate) fn take_mark(&mut self) -> Option<PacketMark> {
        self.place.passed.take()
    }

    /// The time stamp of a position, estimated from the first packets; `None` before
    /// they are decoded.
    pub(crate) fn stamp_of(&self, position: u64) -> Option<i64> {
        let lead = self.place.lead?;
        let seconds = (position as i64 - lead) as f64 / f64::from(self.rate.max(1)) + self.origin;
        Some((seconds / super::base_seconds(self.time_base?)) as i64)
    }

    /// Seconds in the container's units.
    pub(crate) fn ticks(&self, seconds: f64) -> i64 {
        self.time_base.map_or(0, |base| (seconds / super::base_seconds(base)) as i64)
    }

    /// Seeks to `start`; the next piece then begins at `target`. False if that fails,
    /// and the position is undefined then.
    pub(crate) fn seek(
        &mut self,
        path: &Path,
        clusters: Option<&Clusters>,
        start: &PacketMark,
        target: SeekTarget,
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
        // Without seeking the demuxer estimates no length from the rest of the file.
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

    /// Whether the packet just decoded lies before the target of a seek. At the target
    /// the position is set.
    pub(super) fn is_before_target(&mut self) -> bool {
        let Some(target) = self.place.target else { return false };
        let (ordinal, stamp) = self.place.latest;
        let (before, position) = match target {
            SeekTarget::Mark(mark) if mark.offset.is_some() => (ordinal < mark.ordinal, mark.position),
            SeekTarget::Mark(mark) if stamp > mark.stamp => (false, self.position_of(stamp)),
            SeekTarget::Mark(mark) => (stamp < mark.stamp, mark.position),
            SeekTarget::Stamp(wanted) => (stamp < wanted, self.position_of(stamp)),
        };
        // A gap can't be computed before the position is known.
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

    /// Notes the position of the packet just decoded, of which nothing was dropped.
    pub(super) fn note_position(&mut self) {
        let (ordinal, stamp) = self.place.latest;
        let position = self.position + self.silence;
        if self.place.lead.is_none() && !self.place.sought {
            self.place.lead = Some(position as i64 - self.frames_until(stamp));
        }
        if ordinal > 0 && ordinal.is_multiple_of(STRIDE) {
            self.place.passed = Some(PacketMark { ordinal, stamp, position, offset: None });
        }
    }
}
