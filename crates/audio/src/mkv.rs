//! The parts of Matroska that Symphonia does not expose.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

const EBML: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const CLUSTER: u32 = 0x1f43_b675;
const TIMESTAMP: u32 = 0xe7;
const TRACK_ENTRY: u32 = 0xae;
const TRACK_NUMBER: u32 = 0xd7;
const FLAG_DEFAULT: u32 = 0x88;
const NAME: u32 = 0x536e;

/// Most bytes of the description of the tracks. Real ones are far smaller.
const MAX_TRACKS_BYTES: u64 = 4 << 20;
/// Most elements that are read: a day of clusters of a tenth of a second.
const MAX_ELEMENTS: usize = 1 << 20;
/// Bytes at the start of a cluster that contain its time stamp. A checksum may precede it (RFC 9559, 5.1.3).
const TIMESTAMP_WITHIN: u64 = 64;

/// What a Matroska file says of a track.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TrackEntry {
    pub(crate) number: u32,
    /// A missing flag counts as set (RFC 9559, 5.1.4.1.5), which Symphonia does not distinguish from
    /// a cleared one.
    pub(crate) is_default: bool,
    pub(crate) name: Option<String>,
}

/// The tracks of a Matroska file. Empty if the file is malformed.
pub(crate) fn track_entries(path: &Path) -> Vec<TrackEntry> {
    let Some(tracks) = read_tracks(path) else { return Vec::new() };
    let entries = elements(&tracks).filter(|(id, _)| *id == TRACK_ENTRY);
    let track = |(_, entry)| {
        let body = |wanted| elements(entry).find(|(id, _)| *id == wanted).map(|(_, body)| body);
        let name = body(NAME).map(|name| String::from_utf8_lossy(name).trim_matches('\0').trim().to_owned());
        Some(TrackEntry {
            number: u32::try_from(unsigned(body(TRACK_NUMBER)?)).ok()?,
            is_default: body(FLAG_DEFAULT).map(unsigned) != Some(0),
            name: name.filter(|name| !name.is_empty()),
        })
    };
    entries.filter_map(track).collect()
}

/// Offsets of the clusters of a Matroska file. Symphonia 0.6 loses blocks at the end
/// of the cluster that it seeks to, so a new demuxer is started at a cluster
/// instead.
#[derive(Debug)]
pub(crate) struct Clusters {
    /// Offset of the first cluster. The description of the tracks lies before it.
    head: u64,
    /// Time stamp, in the file's units, and offset of each cluster.
    each: Vec<(i64, u64)>,
}

impl Clusters {
    /// Reads the offsets. `None` if elements have no size, as in live streams, or an
    /// unusual order.
    pub(crate) fn find(path: &Path) -> Option<Self> {
        let (mut each, mut has_tracks) = (Vec::new(), false);
        walk(path, |element, file| {
            match element.id {
                TRACKS => has_tracks = true,
                CLUSTER => {
                    let mut beginning = Vec::new();
                    file.take(element.size.min(TIMESTAMP_WITHIN)).read_to_end(&mut beginning).ok()?;
                    let (_, stamp) = elements(&beginning).find(|(id, _)| *id == TIMESTAMP)?;
                    each.push((i64::try_from(unsigned(stamp)).ok()?, element.start));
                }
                _ => {}
            }
            Some(())
        })?;
        let head = each.first()?.1;
        (has_tracks && head <= MAX_TRACKS_BYTES).then_some(Self { head, each })
    }

    /// Offset of the last cluster that starts at or before a time stamp.
    pub(crate) fn before(&self, stamp: i64) -> Option<u64> {
        let after = self.each.partition_point(|(begins, _)| *begins <= stamp);
        self.each.get(after.saturating_sub(1)).map(|(_, offset)| *offset)
    }

    /// The file without the clusters before `offset`.
    pub(crate) fn read_from(&self, path: &Path, offset: u64) -> io::Result<impl Read + Send + Sync + use<>> {
        let mut head = Vec::new();
        File::open(path)?.take(self.head).read_to_end(&mut head)?;
        let mut rest = File::open(path)?;
        rest.seek(SeekFrom::Start(offset))?;
        Ok(io::Cursor::new(head).chain(rest))
    }
}

fn read_tracks(path: &Path) -> Option<Vec<u8>> {
    let mut body = None;
    walk(path, |element, file| match element.id {
        TRACKS => {
            let mut bytes = Vec::new();
            file.take(element.size.min(MAX_TRACKS_BYTES)).read_to_end(&mut bytes).ok()?;
            body = Some(bytes);
            None
        }
        CLUSTER => None,
        _ => Some(()),
    });
    body
}

/// A direct child of the segment.
struct SegmentChild {
    id: u32,
    /// Offset of its header.
    start: u64,
    /// Size of its body.
    size: u64,
}

/// Calls `tell` for each direct child of the segment, with the file at its body,
/// until `tell` returns `None`. `None` as well if the file is malformed.
fn walk(path: &Path, mut tell: impl FnMut(&SegmentChild, &mut File) -> Option<()>) -> Option<()> {
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut position = 0;
    for _ in 0..MAX_ELEMENTS {
        file.seek(SeekFrom::Start(position)).ok()?;
        let mut head = [0; 12];
        let count = file.by_ref().take(12).read(&mut head).ok()?;
        if count == 0 && position >= length {
            return Some(());
        }
        let (id, size, head_length) = header(head.get(..count)?)?;
        let (start, body) = (position, position + head_length as u64);
        if start == 0 && id != EBML {
            return None;
        }
        if id == SEGMENT {
            position = body;
            continue;
        }
        let size = size?;
        file.seek(SeekFrom::Start(body)).ok()?;
        tell(&SegmentChild { id, start, size }, &mut file)?;
        position = body.checked_add(size)?;
    }
    None
}

/// The direct children of an element, from its body.
fn elements(mut body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let (id, size, length) = header(body)?;
        let rest = &body[length..];
        let size = usize::try_from(size?).ok().filter(|size| *size <= rest.len())?;
        let (element, after) = rest.split_at(size);
        body = after;
        Some((id, element))
    })
}

/// Id, size (`None` if unknown) and length of an element's header.
fn header(bytes: &[u8]) -> Option<(u32, Option<u64>, usize)> {
    let id_length = bytes.first()?.leading_zeros() as usize + 1;
    if id_length > 4 {
        return None;
    }
    let id = unsigned(bytes.get(..id_length)?) as u32;
    let first = *bytes.get(id_length)?;
    let size_length = first.leading_zeros() as usize + 1;
    if size_length > 8 {
        return None;
    }
    let size = unsigned(bytes.get(id_length..id_length + size_length)?) & ((1 << (7 * size_length)) - 1);
    let unknown = size == (1 << (7 * size_length)) - 1;
    Some((id, (!unknown).then_some(size), id_length + size_length))
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}
