//! Checks before a file is opened for decoding.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::AudioError;
use crate::error::PIPE;

/// Checks that `path` is a readable file that is not empty, without blocking as
/// opening a pipe would. Returns its size in bytes.
pub(crate) fn check(path: &Path) -> Result<u64, AudioError> {
    let unreadable = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => AudioError::NotFound { path: path.into() },
        // A parent of the path is a file.
        io::ErrorKind::NotADirectory => AudioError::NotFound { path: path.into() },
        _ => AudioError::Unreadable { path: path.into(), source },
    };
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(AudioError::NotAFile { path: path.into(), what: kind_of(&metadata) });
    }
    File::open(path).map_err(unreadable)?;
    if metadata.len() == 0 {
        return Err(AudioError::Empty { path: path.into() });
    }
    if let Some(what) = playlist(path) {
        return Err(AudioError::Playlist { path: path.into(), what });
    }
    Ok(metadata.len())
}

/// The name of a playlist's format. A decoder would open the files and addresses that it lists.
fn playlist(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(4096).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let text = head.trim_start_matches('\u{feff}').trim_start();
    let starts_with = |beginnings: &[&str]| beginnings.iter().any(|beginning| text.starts_with(beginning));
    let is_xml = starts_with(&["<?xml", "<!--", "<"]);
    if starts_with(&["#extm3u", "#ext-x-"]) {
        Some("an HLS or M3U playlist")
    } else if starts_with(&["ffconcat version"]) {
        Some("an ffconcat list")
    } else if is_xml && text.contains("<mpd") {
        Some("a DASH manifest")
    } else if starts_with(&["[playlist]", "[reference]", "rtsptext"])
        || is_xml
            && ["<smoothstreamingmedia", "<asx", "<smil", "<playlist"].iter().any(|tag| text.contains(tag))
    {
        Some("a playlist")
    } else if starts_with(&["v=0\r\no=", "v=0\no="]) {
        Some("a session description (SDP)")
    } else {
        None
    }
}

fn kind_of(metadata: &fs::Metadata) -> &'static str {
    if metadata.is_dir() {
        return "a folder";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            return PIPE;
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// The name of a format that only `ffmpeg` reads, recognised by its first bytes.
/// Symphonia would search such files for other formats and could match by chance.
pub(crate) fn foreign_format(path: &Path) -> Option<&'static str> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(1024).read_to_end(&mut head).ok()?;
    let is_at = |offset: usize, magic: &[u8]| head.get(offset..).is_some_and(|rest| rest.starts_with(magic));
    const MAGIC: &[(usize, &[u8], &str)] = &[
        (0, b"#!AMR", "AMR"),
        (0, b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "Windows Media (WMA)"),
        (0, b"\x7f\xfe\x80\x01", "DTS"),
        (0, b"\xfe\x7f\x01\x80", "DTS"),
        (0, b"\x1f\xff\xe8\x00", "DTS"),
        (0, b"\xff\x1f\x00\xe8", "DTS"),
        (0, b"DTSHDHDR", "DTS"),
        (0, b"MAC ", "Monkey's Audio"),
        (0, b"wvpk", "WavPack"),
        (0, b"MPCK", "Musepack"),
        (0, b"MP+", "Musepack"),
        (0, b"TTA1", "True Audio"),
        (0, b".RMF", "RealMedia"),
        (0, b".snd", "AU"),
        (0, b"FLV\x01", "Flash Video"),
        (0, b"RF64", "RF64"),
        (0, b"BW64", "RF64"),
        (0, b"riff\x2e\x91\xcf\x11", "Wave64"),
        (0, b"\x00\x00\x01\xba", "an MPEG programme stream"),
        (8, b"AVI ", "AVI"),
    ];
    if let Some((_, _, name)) = MAGIC.iter().find(|(offset, magic, _)| is_at(*offset, magic)) {
        return Some(name);
    }
    // The bit stream identification is up to 8 for AC-3 (10 at low rates), 11 to 16 for E-AC-3.
    if is_at(0, b"\x0b\x77") && head.len() > 5 {
        return Some(if head[5] >> 3 > 10 { "E-AC-3" } else { "AC-3" });
    }
    if [0, 188, 376, 564].iter().all(|at| head.get(*at) == Some(&0x47)) {
        return Some("an MPEG transport stream");
    }
    None
}
