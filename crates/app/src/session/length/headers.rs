//! The few fields of each container that say how long a recording is. What is
//! read is bounded, whatever a file says of its own sizes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Chunks, boxes or elements that are passed over in search of the right one.
const MOST_PARTS: usize = 1000;

/// The end of an Ogg file in which its last page begins: pages have at most
/// 65,307 bytes (RFC 3533, 6).
const OGG_END: u64 = 65_307;

/// Bytes after tags in which the first frame of an mp3 is looked for.
const MP3_START: usize = 4096;

type Input = BufReader<File>;

/// Seconds, from the header; `None` where it does not say.
pub fn seconds(path: &Path) -> io::Result<Option<f64>> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    let mut input = BufReader::new(file);
    let start: [u8; 12] = take(&mut input)?;
    let found = match &start {
        [b'R', b'I', b'F', b'F', .., b'W', b'A', b'V', b'E']
        | [b'R', b'F', b'6', b'4', .., b'W', b'A', b'V', b'E'] => wav(&mut input, bytes)?,
        [b'F', b'O', b'R', b'M', .., b'A', b'I', b'F', b'F' | b'C'] => aiff(&mut input)?,
        [b'f', b'L', b'a', b'C', ..] => flac(&mut input)?,
        [b'O', b'g', b'g', b'S', ..] => ogg(&mut input, bytes)?,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => mp4(&mut input, bytes)?,
        [0x1A, 0x45, 0xDF, 0xA3, ..] => matroska(&mut input)?,
        [b'I', b'D', b'3', ..] | [0xFF, 0xE0..=0xFF, ..] => mp3(&mut input, &start, bytes)?,
        _ => None,
    };
    Ok(found.filter(|seconds| seconds.is_finite() && *seconds > 0.0))
}

fn take<const N: usize>(input: &mut Input) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The field at a place of what was read; zero beyond its end.
fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut field = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        field.copy_from_slice(found);
    }
    field
}

/// Chunks of four letters and a length, from the twelfth byte on; each starts
/// at an even place. Ends where `look` has found what it wants, or the file.
fn chunks(
    input: &mut Input,
    length: fn([u8; 4]) -> u32,
    mut look: impl FnMut(&mut Input, [u8; 4], u32) -> io::Result<Option<f64>>,
) -> io::Result<Option<f64>> {
    let mut at = 12;
    for _ in 0..MOST_PARTS {
        input.seek(SeekFrom::Start(at))?;
        let (name, length) = (take(input)?, length(take(input)?));
        if let Some(found) = look(input, name, length)? {
            return Ok(Some(found));
        }
        at += 8 + u64::from(length) + u64::from(length % 2);
    }
    Ok(None)
}

fn wav(input: &mut Input, bytes: u64) -> io::Result<Option<f64>> {
    let mut bytes_per_second = 0;
    chunks(input, u32::from_le_bytes, |input, name, length| {
        match &name {
            b"fmt " => bytes_per_second = u32::from_le_bytes(field(&take::<16>(input)?, 8)),
            b"data" => {
                // A recorder that was cut off, or more than 4 GiB: as far as the file goes.
                let rest = bytes.saturating_sub(input.stream_position()?);
                let length = if length == 0 { rest } else { u64::from(length).min(rest) };
                let length = if length == u64::from(u32::MAX) { rest } else { length };
                return Ok(Some(length as f64 / f64::from(bytes_per_second)));
            }
            _ => {}
        }
        Ok(None)
    })
}

fn aiff(input: &mut Input) -> io::Result<Option<f64>> {
    chunks(input, u32::from_be_bytes, |input, name, _| {
        if &name != b"COMM" {
            return Ok(None);
        }
        let common: [u8; 18] = take(input)?;
        let frames = u32::from_be_bytes(field(&common, 2));
        // An 80-bit number: 15 bits of exponent, 64 of mantissa.
        let exponent = i32::from(u16::from_be_bytes(field(&common, 8)) & 0x7FFF) - 16_383 - 63;
        let rate = u64::from_be_bytes(field(&common, 10)) as f64 * f64::from(exponent).exp2();
        Ok(Some(f64::from(frames) / rate))
    })
}

fn flac(input: &mut Input) -> io::Result<Option<f64>> {
    input.seek(SeekFrom::Start(8))?;
    let info: [u8; 34] = take(input)?;
    // 20 bits of rate, 8 of channels and sample size, 36 of samples.
    let packed = u64::from_be_bytes(field(&info, 10));
    let (rate, samples) = (packed >> 44, packed & ((1 << 36) - 1));
    Ok(Some(samples as f64 / rate as f64))
}

/// Of the first stream; the last page says at which sample it ends.
fn ogg(input: &mut Input, bytes: u64) -> io::Result<Option<f64>> {
    input.seek(SeekFrom::Start(0))?;
    let page: [u8; 27] = take(input)?;
    let serial: [u8; 4] = field(&page, 14);
    let mut rest = vec![0; usize::from(page[26])];
    input.read_exact(&mut rest)?;
    let packet: [u8; 40] = {
        let mut packet = [0; 40];
        // The header of Opus has 19 bytes and is all that its page holds.
        input.take(40).read_exact(&mut packet).or_else(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => Ok(()),
            _ => Err(error),
        })?;
        packet
    };
    let (rate, skipped) = if packet.starts_with(b"\x01vorbis") {
        (u32::from_le_bytes(field(&packet, 12)), 0)
    } else if packet.starts_with(b"OpusHead") {
        (48_000, u16::from_le_bytes(field(&packet, 10)))
    } else if packet.starts_with(b"Speex   ") {
        (u32::from_le_bytes(field(&packet, 36)), 0)
    } else {
        return Ok(None);
    };
    input.seek(SeekFrom::Start(bytes.saturating_sub(OGG_END)))?;
    let mut end = Vec::new();
    input.take(OGG_END).read_to_end(&mut end)?;
    let is_last =
        |page: &[u8]| page.starts_with(b"OggS") && page[14..18] == serial && page[6..14] != [0xFF; 8];
    let last = end.windows(27).rposition(is_last);
    Ok(last.map(|at| {
        let samples = i64::from_le_bytes(field(&end, at + 6));
        (samples - i64::from(skipped)) as f64 / f64::from(rate)
    }))
}

/// `moov`, and in it `mvhd` (ISO/IEC 14496-12, 8.2).
fn mp4(input: &mut Input, bytes: u64) -> io::Result<Option<f64>> {
    let Some((from, to)) = find_box(input, *b"moov", 0, bytes)? else { return Ok(None) };
    let Some((from, _)) = find_box(input, *b"mvhd", from, to)? else { return Ok(None) };
    input.seek(SeekFrom::Start(from))?;
    let head: [u8; 32] = take(input)?;
    let (scale, duration) = match head[0] {
        0 => (field(&head, 12), u64::from(u32::from_be_bytes(field(&head, 16)))),
        _ => (field(&head, 20), u64::from_be_bytes(field(&head, 24))),
    };
    Ok(Some(duration as f64 / f64::from(u32::from_be_bytes(scale))))
}

/// Where what is in the box begins and ends.
fn find_box(input: &mut Input, wanted: [u8; 4], from: u64, to: u64) -> io::Result<Option<(u64, u64)>> {
    let mut at = from;
    for _ in 0..MOST_PARTS {
        if at + 8 > to {
            break;
        }
        input.seek(SeekFrom::Start(at))?;
        let (short, name) = (u32::from_be_bytes(take(input)?), take::<4>(input)?);
        let (head, length) = match short {
            0 => (8, to - at),
            1 => (16, u64::from_be_bytes(take(input)?)),
            length => (8, u64::from(length)),
        };
        let Some(end) = at.checked_add(length).filter(|end| length >= head && *end <= to) else { break };
        if name == wanted {
            return Ok(Some((at + head, end)));
        }
        at = end;
    }
    Ok(None)
}

/// `Segment`, in it `Info`, in it `Duration` in units of `TimestampScale` (RFC 9559).
fn matroska(input: &mut Input) -> io::Result<Option<f64>> {
    const SEGMENT: u64 = 0x1853_8067;
    const INFO: u64 = 0x1549_A966;
    const CLUSTER: u64 = 0x1F43_B675;
    const SCALE: u64 = 0x2A_D7B1;
    const DURATION: u64 = 0x4489;
    input.seek(SeekFrom::Start(0))?;
    let (mut scale, mut duration) = (1_000_000, None);
    let mut in_info = None;
    for _ in 0..MOST_PARTS {
        let at = input.stream_position()?;
        if in_info.is_some_and(|end| at >= end) {
            break;
        }
        let (id, length) = (element_id(input)?, element_length(input)?);
        match id {
            SEGMENT => continue,
            INFO => in_info = Some(input.stream_position()?.saturating_add(length)),
            CLUSTER => break,
            SCALE => scale = number(input, length)?,
            DURATION => {
                let bits = number(input, length)?;
                duration = Some(if length == 4 {
                    f64::from(f32::from_bits(bits as u32))
                } else {
                    f64::from_bits(bits)
                });
            }
            _ => {
                input.seek_relative(i64::try_from(length).map_err(io::Error::other)?)?;
            }
        }
    }
    Ok(duration.map(|duration| duration * scale as f64 / 1e9))
}

/// With its marker, as the specification writes it.
fn element_id(input: &mut Input) -> io::Result<u64> {
    let [first] = take(input)?;
    let more = first.leading_zeros().min(3) as usize;
    following(input, u64::from(first), more)
}

fn element_length(input: &mut Input) -> io::Result<u64> {
    let [first] = take(input)?;
    let more = first.leading_zeros().min(7) as usize;
    following(input, u64::from(first) & (0x7F >> more), more)
}

fn following(input: &mut Input, first: u64, more: usize) -> io::Result<u64> {
    (0..more).try_fold(first, |value, _| {
        let [next] = take(input)?;
        Ok(value << 8 | u64::from(next))
    })
}

/// Of up to eight bytes.
fn number(input: &mut Input, length: u64) -> io::Result<u64> {
    following(input, 0, length.min(8) as usize)
}

/// By the count of frames in the first one (Xing, Info, VBRI), else as if all
/// were as large as the first.
fn mp3(input: &mut Input, start: &[u8; 12], bytes: u64) -> io::Result<Option<f64>> {
    let mut tags = 0;
    if start.starts_with(b"ID3") {
        // Four times seven bits.
        let size = start[6..10].iter().fold(0, |size, part| size << 7 | u64::from(part & 0x7F));
        let footer = if start[5] & 0x10 != 0 { 10 } else { 0 };
        tags = 10 + size + footer;
    }
    input.seek(SeekFrom::Start(tags))?;
    let mut head = Vec::new();
    input.take(MP3_START as u64).read_to_end(&mut head)?;
    let Some((at, frame)) =
        (0..head.len().saturating_sub(4)).find_map(|at| Some((at, Frame::read(&head[at..])?)))
    else {
        return Ok(None);
    };
    let head = &head[at..];
    let count = match (head.get(frame.info..frame.info + 8), head.get(36..40)) {
        (Some([b'X', b'i', b'n', b'g', .., flags] | [b'I', b'n', b'f', b'o', .., flags]), _)
            if flags & 1 != 0 =>
        {
            Some(u32::from_be_bytes(field(head, frame.info + 8)))
        }
        (_, Some(b"VBRI")) => Some(u32::from_be_bytes(field(head, 36 + 14))),
        _ => None,
    };
    Ok(Some(match count {
        Some(frames) => f64::from(frames) * frame.samples / frame.rate,
        None => bytes.saturating_sub(tags + at as u64) as f64 * 8.0 / frame.bits_per_second,
    }))
}

struct Frame {
    bits_per_second: f64,
    rate: f64,
    samples: f64,
    /// Where the count of frames stands in the first one.
    info: usize,
}

impl Frame {
    /// Of layer III, which is what mp3 is.
    fn read(bytes: &[u8]) -> Option<Self> {
        const FIRST: [u16; 15] = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
        const SECOND: [u16; 15] = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];
        let [0xFF, second, third, fourth] = *bytes.first_chunk()? else { return None };
        let is_layer_3 = second & 0xE6 == 0xE2;
        // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5.
        let version = second >> 3 & 3;
        let divisor = match version {
            3 => 1,
            2 => 2,
            0 => 4,
            _ => return None,
        };
        let kilobits = if version == 3 { FIRST } else { SECOND };
        let kilobits = *kilobits.get(usize::from(third >> 4)).filter(|kilobits| **kilobits > 0)?;
        let rate = *[44_100u32, 48_000, 32_000].get(usize::from(third >> 2 & 3))? / divisor;
        let is_mono = fourth >> 6 == 3;
        let side = match (version == 3, is_mono) {
            (true, false) => 32,
            (true, true) | (false, false) => 17,
            (false, true) => 9,
        };
        is_layer_3.then_some(Self {
            bits_per_second: f64::from(kilobits) * 1000.0,
            rate: f64::from(rate),
            samples: if version == 3 { 1152.0 } else { 576.0 },
            info: 4 + side,
        })
    }
}
