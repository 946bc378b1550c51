//! What Symphonia leaves to its caller in MP4 files: edit lists, and whether the index is there.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Most bytes of a header box. Larger ones are tables of samples or damaged.
const MAX_HEADER_BYTES: u64 = 1 << 20;
const MAX_BOXES: usize = 10_000;

/// A track's edit list, in which encoders state their delay.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct EditList {
    /// Seconds of decoded sound to skip at the start.
    pub(crate) skip: f64,
    /// Seconds of silence before the track begins.
    pub(crate) offset: f64,
    /// Seconds of sound to keep; `None` for all.
    pub(crate) keep: Option<f64>,
}

/// The edit list of track `track_id`. `None` if there is none, if it has several
/// pieces (which only video editors write), or if the file is malformed.
pub(crate) fn edit_of(path: &Path, track_id: u32) -> Option<EditList> {
    let mut file = File::open(path).ok()?;
    let end = file.metadata().ok()?.len();
    let mut budget = MAX_BOXES;
    let moov = find(&mut file, 0, end, b"moov", &mut budget)?;
    let mvhd = find(&mut file, moov.0, moov.1, b"mvhd", &mut budget)?;
    let movie_scale = timescale(&read(&mut file, mvhd)?)?;

    let mut position = moov.0;
    while let Some(trak) = find(&mut file, position, moov.1, b"trak", &mut budget) {
        position = trak.1;
        let header = find(&mut file, trak.0, trak.1, b"tkhd", &mut budget)?;
        let header = read(&mut file, header)?;
        let id_at = if *header.first()? == 1 { 20 } else { 12 };
        if be32(&header, id_at)? != track_id {
            continue;
        }
        let mdia = find(&mut file, trak.0, trak.1, b"mdia", &mut budget)?;
        let mdhd = find(&mut file, mdia.0, mdia.1, b"mdhd", &mut budget)?;
        let media_scale = timescale(&read(&mut file, mdhd)?)?;
        let edts = find(&mut file, trak.0, trak.1, b"edts", &mut budget)?;
        let elst = find(&mut file, edts.0, edts.1, b"elst", &mut budget)?;
        return parse_edits(&read(&mut file, elst)?, movie_scale, media_scale);
    }
    None
}

/// Whether an MP4 file ends before its index. Recorders write it last, so that it is what a copy or
/// a recording that was cut off lacks.
pub(crate) fn lacks_index(path: &Path) -> bool {
    let seen = || {
        let mut file = File::open(path).ok()?;
        let end = file.metadata().ok()?.len();
        let mut position = 0;
        for number in 0..MAX_BOXES {
            if position + 8 > end {
                return Some(number > 0);
            }
            let (kind, _, next) = box_at(&mut file, position, end)?;
            // Pictures have `meta` in place of `moov`.
            if (number == 0) != (&kind == b"ftyp") || [*b"moov", *b"meta"].contains(&kind) {
                return Some(false);
            }
            position = next;
        }
        None
    };
    seen().unwrap_or(false)
}

fn parse_edits(list: &[u8], movie_scale: f64, media_scale: f64) -> Option<EditList> {
    let long = *list.first()? == 1;
    let count = be32(list, 4)?;
    let mut edit = EditList::default();
    let mut seen_media = false;
    for i in 0..count.min(16) as usize {
        let (duration, media_time) = if long {
            (be64(list, 8 + 20 * i)?, be64(list, 16 + 20 * i)? as i64)
        } else {
            (u64::from(be32(list, 8 + 12 * i)?), i64::from(be32(list, 12 + 12 * i)? as i32))
        };
        let seconds = duration as f64 / movie_scale;
        if media_time < 0 {
            if !seen_media {
                edit.offset += seconds;
            }
        } else if seen_media {
            return None;
        } else {
            seen_media = true;
            edit.skip = media_time as f64 / media_scale;
            edit.keep = (duration > 0).then_some(seconds);
        }
    }
    // No delay is as long as a day: the list is damaged.
    (seen_media && edit.skip < 86_400.0 && edit.offset < 86_400.0).then_some(edit)
}

/// The body of the first box of this kind between two positions, as (start, end).
fn find(
    file: &mut File,
    mut position: u64,
    end: u64,
    kind: &[u8; 4],
    budget: &mut usize,
) -> Option<(u64, u64)> {
    while position + 8 <= end {
        *budget = budget.checked_sub(1)?;
        let (found, body, next) = box_at(file, position, end)?;
        if &found == kind {
            return Some((body, next.min(end)));
        }
        position = next;
    }
    None
}

/// The kind of the box at `position`, where its body begins, and where it says that it ends.
fn box_at(file: &mut File, position: u64, end: u64) -> Option<([u8; 4], u64, u64)> {
    file.seek(SeekFrom::Start(position)).ok()?;
    let mut header = [0; 16];
    file.read_exact(&mut header[..8]).ok()?;
    let (body, size) = match be32(&header, 0)? {
        0 => (8, end - position),
        1 => {
            file.read_exact(&mut header[8..]).ok()?;
            (16, be64(&header, 8)?)
        }
        size => (8, u64::from(size)),
    };
    let next = position.checked_add(size).filter(|_| size >= body)?;
    Some((header[4..8].try_into().ok()?, position + body, next))
}

fn read(file: &mut File, (start, end): (u64, u64)) -> Option<Vec<u8>> {
    let length = end.checked_sub(start).filter(|length| *length <= MAX_HEADER_BYTES)?;
    file.seek(SeekFrom::Start(start)).ok()?;
    let mut body = vec![0; length as usize];
    file.read_exact(&mut body).ok()?;
    Some(body)
}

/// Units per second, from a movie's or a medium's header.
fn timescale(header: &[u8]) -> Option<f64> {
    let at = if *header.first()? == 1 { 20 } else { 12 };
    be32(header, at).filter(|scale| *scale > 0).map(f64::from)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_be_bytes)
}
