//! Telling whether a file was cut off.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// How a complete file is distinguished from one that was cut off.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum ExpectedEnd {
    /// Nothing in the file tells.
    Unknown,
    /// The container declares its duration: a file that is shorter by more than
    /// `tolerance` seconds was cut off.
    Declared { tolerance: f64 },
    /// The mark of the end is missing: the file was cut off.
    Missing,
}

/// How to tell for the file at `path`. `container` is Symphonia's name for it.
pub(crate) fn expected(path: &Path, container: &str) -> ExpectedEnd {
    match container {
        "wave" | "aiff" | "flac" | "caf" => ExpectedEnd::Declared { tolerance: 0.02 },
        "isomp4" => ExpectedEnd::Declared { tolerance: 0.1 },
        // Time stamps are rounded, and the last one may belong to another track.
        "matroska" => ExpectedEnd::Declared { tolerance: 0.3 },
        "mp3" | "mp2" | "mp1" if has_frame_count(path).unwrap_or(false) => {
            ExpectedEnd::Declared { tolerance: 0.1 }
        }
        "ogg" => match ogg_ends(path) {
            Some(false) => ExpectedEnd::Missing,
            _ => ExpectedEnd::Unknown,
        },
        _ => ExpectedEnd::Unknown,
    }
}

/// Whether the first frame of an MPEG stream states the number of frames (Xing, LAME
/// or VBRI). Without it the duration is estimated from the size.
fn has_frame_count(path: &Path) -> Option<bool> {
    let mut file = File::open(path).ok()?;
    let mut head = [0; 10];
    file.read_exact(&mut head).ok()?;
    let tag = if head.starts_with(b"ID3") {
        10 + head[6..].iter().fold(0u64, |size, byte| size << 7 | u64::from(byte & 0x7f))
    } else {
        0
    };
    file.seek(SeekFrom::Start(tag)).ok()?;
    let mut frame = Vec::new();
    file.take(4096).read_to_end(&mut frame).ok()?;
    Some(frame.windows(4).any(|word| [b"Xing", b"Info", b"VBRI"].iter().any(|mark| word == *mark)))
}

/// Whether the last page of an Ogg file is marked as its stream's last.
fn ogg_ends(path: &Path) -> Option<bool> {
    // Most bytes of a page (RFC 3533, 6).
    const LONGEST_PAGE: u64 = 65_307;
    let mut file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(2 * LONGEST_PAGE))).ok()?;
    let mut end = Vec::new();
    file.take(2 * LONGEST_PAGE).read_to_end(&mut end).ok()?;
    let page = end.windows(4).rposition(|word| word == b"OggS")?;
    let page = &end[page..];
    let segments = usize::from(*page.get(26)?);
    let body: usize = page.get(27..27 + segments)?.iter().map(|size| usize::from(*size)).sum();
    let whole = page.len() >= 27 + segments + body;
    Some(whole && page[5] & 4 != 0)
}
