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

/// The description of the tracks is far smaller, codecs' headers included.
const MAX_TRACKS_BYTES: u64 = 4 << 20;
/// A day of clusters of a tenth of a second.
const MAX_ELEMENTS: usize = 1 << 20;
/// A cluster begins with its time stamp; a checksum may come before it (RFC 9559, 5.1.3).
const TIMESTAMP_WITHIN: u64 = 64;

/// Numbers of the tracks that a Matroska file marks as default. The mark
/// counts as set where it is missing (RFC 9559, 5.1.4.1.5), which Symphonia
/// does not tell from a mark that says no. Empty where the file is not as it
/// should be.
pub(crate) fn default_tracks(path: &Path) -> Vec<u32> {
    let Some(tracks) = read_tracks(path) else { return Vec::new() };
    let entries = elements(&tracks).filter(|(id, _)| *id == TRACK_ENTRY);
    let track = |(_, entry)| {
        let number = |wanted| elements(entry).find(|(id, _)| *id == wanted).map(|(_, body)| unsigned(body));
        (number(FLAG_DEFAULT) != Some(0)).then_some(u32::try_from(number(TRACK_NUMBER)?).ok()?)
    };
    entries.filter_map(track).collect()
}

/// Where the clusters of a Matroska file begin: Symphonia 0.6 loses blocks at
/// the end of the cluster that it seeks to, so that it is made to begin at one.
#[derive(Debug)]
pub(crate) struct Clusters {
    /// Bytes of all that comes before the first, the tracks' description included.
    head: u64,
    /// Time stamp, in the file's units, and byte.
    each: Vec<(i64, u64)>,
}

impl Clusters {
    /// `None` where the file's elements don't say how long they are, as when it
    /// was written while it was sent, or come in an unusual order.
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

    /// Byte of the last cluster that begins at or before a time stamp.
    pub(crate) fn before(&self, stamp: i64) -> Option<u64> {
        let after = self.each.partition_point(|(begins, _)| *begins <= stamp);
        self.each.get(after.saturating_sub(1)).map(|(_, offset)| *offset)
    }

    /// The file as if it had nothing before the cluster at `offset`.
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

/// An element directly within the segment.
struct Element {
    id: u32,
    /// Byte that its head begins at.
    start: u64,
    /// Bytes of what follows its head.
    size: u64,
}

/// Tells of each element within the segment until one ends it with `None`, as
/// does a file that is not as it should be. The file stands behind its head.
fn walk(path: &Path, mut tell: impl FnMut(&Element, &mut File) -> Option<()>) -> Option<()> {
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
        tell(&Element { id, start, size }, &mut file)?;
        position = body.checked_add(size)?;
    }
    None
}

/// The elements directly within a body.
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

/// Id, size (`None`: unknown) and the length of both.
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
