use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::{Error, ggml, gguf};

/// The format of a file, determined by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// Safetensors: the length of a JSON header, then that header.
    Safetensors,
    /// GGUF of the GGML project.
    Gguf,
    /// whisper.cpp's `ggml-*.bin`.
    Ggml,
    /// A file of PyTorch's `save`, in its zip form or the older plain form.
    /// Unpickling executes code from the file.
    Pickle,
    /// Any other zip archive, such as a document of a word processor.
    Zip,
    /// A tar or gzip archive. NeMo's `.nemo` files are such archives and contain
    /// a pickle.
    Archive,
    /// A JSON object.
    Json,
    /// A Git LFS pointer that stands in for a file that was not downloaded.
    LfsPointer,
    /// An HTML page, usually an error page saved under the name of a file.
    WebPage,
    /// None of the above.
    Unknown,
}

impl FileKind {
    /// Reads the first 512 bytes of `file` and determines its format.
    ///
    /// # Errors
    /// [`Error::Io`] if the file can't be opened or read.
    pub fn of(file: &Path) -> Result<Self, Error> {
        /// The signature of a tar archive is at offset 257.
        const PREFIX_BYTES: u64 = 512;
        let mut start = Vec::new();
        let read = File::open(file).and_then(|file| file.take(PREFIX_BYTES).read_to_end(&mut start));
        read.map_err(|source| Error::Io { path: file.into(), source })?;
        Ok(Self::of_bytes(&start))
    }

    /// Determines the format from a file's first 512 bytes, or all of a shorter file.
    pub fn of_bytes(start: &[u8]) -> Self {
        let text = start.trim_ascii_start();
        let is_safetensors = start.get(..8).and_then(|length| length.try_into().ok()).is_some_and(|length| {
            // The length of the header, then JSON.
            let length = u64::from_le_bytes(length);
            (2..1 << 32).contains(&length) && start.get(8) == Some(&b'{')
        });
        match start {
            _ if start.starts_with(&gguf::MAGIC) => Self::Gguf,
            _ if start.starts_with(&ggml::MAGIC) => Self::Ggml,
            _ if is_safetensors => Self::Safetensors,
            _ if start.starts_with(b"PK\x03\x04") && names_a_pickle(start) => Self::Pickle,
            _ if start.starts_with(b"PK\x03\x04") => Self::Zip,
            // Pickle's PROTO opcode with protocol versions 2 to 5.
            [0x80, 2..=5, ..] => Self::Pickle,
            _ if start.get(257..262) == Some(b"ustar") || start.starts_with(b"\x1f\x8b") => Self::Archive,
            _ if start.starts_with(b"version https://git-lfs") => Self::LfsPointer,
            _ if text.starts_with(b"<") => Self::WebPage,
            _ if text.starts_with(b"{") => Self::Json,
            _ => Self::Unknown,
        }
    }
}

/// Whether a zip archive that starts so is PyTorch's, which has its pickle first.
fn names_a_pickle(start: &[u8]) -> bool {
    start.windows(4).any(|part| part == b".pkl")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_first_bytes() {
        let tar = [vec![0; 257], b"ustar\0".to_vec()].concat();
        let cases: [(&[u8], FileKind); 14] = [
            (b"GGUF\x03\0\0\0", FileKind::Gguf),
            (b"lmgg\x99\xca\0\0", FileKind::Ggml),
            (b"\x40\0\0\0\0\0\0\0{\"__metadata__\"", FileKind::Safetensors),
            (b"PK\x03\x04\0\0archive/data.pkl", FileKind::Pickle),
            (b"PK\x03\x04\x14\0[Content_Types].xml", FileKind::Zip),
            (b"PK\x03\x04", FileKind::Zip),
            (b"\x80\x02\x8a\x0al\xfc\x9c\x46\xf9", FileKind::Pickle),
            (&tar, FileKind::Archive),
            (b"version https://git-lfs.github.com/spec/v1\n", FileKind::LfsPointer),
            (b"\n<!DOCTYPE html>", FileKind::WebPage),
            (b" {\"a\": 1}", FileKind::Json),
            (b"", FileKind::Unknown),
            (b"ID3\x04", FileKind::Unknown),
            (b"\xff\xff\xff\xff\xff\xff\xff\xff{", FileKind::Unknown),
        ];
        for (start, expected) in cases {
            assert_eq!(FileKind::of_bytes(start), expected, "{start:?}");
        }
    }
}
