//! Byte offsets of the frames of an mp3 or ADTS stream. The demuxer gives the
//! content of each frame but not its offset, so the content is looked for in
//! the file.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use symphonia::core::errors::Error;
use symphonia::core::formats::FormatOptions;
use symphonia::core::formats::probe::Hint;
use symphonia::core::io::MediaSourceStream;
use symphonia::core::meta::MetadataOptions;

use crate::native::{PacketMark, STRIDE};

/// Most bytes between two frames, or before the first: a tag may contain pictures.
const MAX_SKIPPED: usize = 16 << 20;
/// Bytes of a read.
const BLOCK: usize = 1 << 18;
/// Lengths of an ADTS frame's header, without and with a checksum.
const ADTS_HEADERS: [usize; 2] = [7, 9];
/// Consecutive errors after which the stream counts as ended.
const MAX_FAULTS: usize = 64;

/// Marks of every 32nd frame of the first track, up to the first that is not
/// found, and the length of the recording in samples per channel if all were
/// found. Positions are sums of the lengths that the frames state.
pub(crate) fn marks(path: &Path) -> (Vec<PacketMark>, Option<u64>) {
    let mut marks = Vec::new();
    // If it stops early, later positions are reached by decoding, which is only slower.
    let counted = collect(path, &mut marks);
    (marks, counted)
}

fn collect(path: &Path, marks: &mut Vec<PacketMark>) -> Option<u64> {
    let stream = MediaSourceStream::new(Box::new(File::open(path).ok()?), Default::default());
    let mut format = symphonia::default::get_probe()
        .probe(&Hint::new(), stream, FormatOptions::default(), MetadataOptions::default())
        .ok()?;
    let headers: &[usize] = if format.format_info().short_name == "aac" { &ADTS_HEADERS } else { &[0] };
    let mut file = Lookup::open(path).ok()?;
    let (mut ordinal, mut position, mut faults) = (0, 0, 0);
    while faults < MAX_FAULTS {
        let packet = match format.next_packet() {
            Ok(Some(packet)) => packet,
            Ok(None) | Err(Error::IoError(_)) => break,
            Err(_) => {
                faults += 1;
                continue;
            }
        };
        faults = 0;
        let offset = file.find(&packet.data, headers)?;
        if ordinal > 0 && u64::is_multiple_of(ordinal, STRIDE) {
            // The encoder's delay, which is dropped, has negative time stamps.
            let position = u64::try_from(packet.pts.get()).unwrap_or(0);
            marks.push(PacketMark { ordinal, stamp: packet.pts.get(), position, offset: Some(offset) });
        }
        ordinal += 1;
        position = u64::try_from(packet.pts.get()).unwrap_or(0) + packet.dur.get();
    }
    // A header states the length without the padding at the end, which is dropped.
    let stated = format.tracks().first()?.num_frames;
    Some(stated.map_or(position, |stated| position.min(stated)))
}

/// A file in which contents are found in order.
struct Lookup {
    file: File,
    /// A part of the file, and its offset.
    block: Vec<u8>,
    start: u64,
    /// End of the last content that was found.
    at: u64,
}

impl Lookup {
    fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::open(path)?, block: Vec::new(), start: 0, at: 0 })
    }

    /// The offset of the next frame that has this content after a header of one of
    /// these lengths.
    fn find(&mut self, content: &[u8], headers: &[usize]) -> Option<u64> {
        for header in headers {
            let begins = self.at + *header as u64;
            if self.bytes(begins, content.len()) == Some(content) {
                let found = self.at;
                self.at = begins + content.len() as u64;
                return Some(found);
            }
        }
        let header = *headers.first()?;
        let skipped_bytes = (0..MAX_SKIPPED as u64).find(|skipped| {
            let begins = self.at + skipped;
            self.bytes(begins, content.len()).is_none_or(|bytes| bytes == content)
        })?;
        let begins = self.at + skipped_bytes;
        self.bytes(begins, content.len())?;
        self.at = begins + content.len() as u64;
        Some(begins.saturating_sub(header as u64))
    }

    /// `count` bytes from the offset `from` on; `None` beyond the end of the file.
    fn bytes(&mut self, from: u64, count: usize) -> Option<&[u8]> {
        let has =
            |this: &Self| from >= this.start && from + count as u64 <= this.start + this.block.len() as u64;
        if !has(self) {
            self.file.seek(SeekFrom::Start(from)).ok()?;
            self.block.clear();
            self.start = from;
            self.file.by_ref().take((count + BLOCK) as u64).read_to_end(&mut self.block).ok()?;
        }
        if !has(self) {
            return None;
        }
        let at = (from - self.start) as usize;
        self.block.get(at..at + count)
    }
}
