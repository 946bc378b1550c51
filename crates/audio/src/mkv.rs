use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

const EBML: u32 = 0x1a45_dfa3;
const SEGMENT: u32 = 0x1853_8067;
const TRACKS: u32 = 0x1654_ae6b;
const CLUSTER: u32 = 0x1f43_b675;
const TRACK_ENTRY: u32 = 0xae;
const TRACK_NUMBER: u32 = 0xd7;
const FLAG_DEFAULT: u32 = 0x88;

/// The description of the tracks is far smaller, codecs' headers included.
const MAX_TRACKS_BYTES: u64 = 4 << 20;
const MAX_ELEMENTS: usize = 1000;

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

fn read_tracks(path: &Path) -> Option<Vec<u8>> {
    let mut file = File::open(path).ok()?;
    let mut position = 0;
    for _ in 0..MAX_ELEMENTS {
        file.seek(SeekFrom::Start(position)).ok()?;
        let mut head = [0; 12];
        let count = file.by_ref().take(12).read(&mut head).ok()?;
        let (id, size, length) = header(head.get(..count)?)?;
        position += length as u64;
        match id {
            SEGMENT => {}
            TRACKS => {
                let mut body = Vec::new();
                file.seek(SeekFrom::Start(position)).ok()?;
                file.take(size?.min(MAX_TRACKS_BYTES)).read_to_end(&mut body).ok()?;
                return Some(body);
            }
            CLUSTER => return None,
            _ if position == length as u64 && id != EBML => return None,
            _ => position = position.checked_add(size?)?,
        }
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
