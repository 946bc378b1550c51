//! The directory of a zip archive whose files are stored as they are, the form in
//! which torch and numpy save tensors. A compressed file is refused: its size says
//! nothing about what it expands to.

use std::collections::HashMap;
use std::ops::Range;

use crate::reader::HeaderReader;

const END_SIGNATURE: &[u8] = b"PK\x05\x06";
const ENTRY_SIGNATURE: u32 = 0x0201_4b50;
const LOCAL_SIGNATURE: u32 = 0x0403_4b50;
/// Bytes of the end record, without its comment of up to 65,535 bytes.
const END_BYTES: usize = 22;
/// Bytes of an entry of the directory, without its name.
const ENTRY_BYTES: u64 = 46;
/// Real archives of a model have some hundreds of entries.
const MOST_ENTRIES: u64 = 20_000;

/// The files of the archive: the range of each by its name. The error is a reason
/// for [`crate::Error::Invalid`].
pub(crate) fn entries(bytes: &[u8]) -> Result<HashMap<String, Range<usize>>, String> {
    let searched = bytes.len().saturating_sub(END_BYTES + usize::from(u16::MAX));
    let end = (searched..=bytes.len().saturating_sub(END_BYTES))
        .rev()
        .find(|at| bytes[*at..].starts_with(END_SIGNATURE))
        .ok_or("the archive has no directory: it is cut off or damaged")?;
    let mut record = HeaderReader::new(&bytes[end..]);
    record.bytes(10, "the end of the archive")?;
    let count = u64::from(record.u16("the number of files")?);
    record.u32("the size of the directory")?;
    let start = record.u32("the place of the directory")? as usize;
    let directory = bytes.get(start..end).ok_or("the archive's directory lies outside the file")?;
    let mut directory = HeaderReader::new(directory);
    if count > MOST_ENTRIES {
        return Err(format!("the archive has {count} files"));
    }
    directory.count(count, ENTRY_BYTES, "files of the archive")?;
    let mut entries = HashMap::new();
    for _ in 0..count {
        if directory.u32("an entry")? != ENTRY_SIGNATURE {
            return Err("the archive's directory is damaged".into());
        }
        directory.bytes(6, "an entry")?;
        let method = directory.u16("a method")?;
        directory.bytes(12, "an entry")?;
        let size = u64::from(directory.u32("a size")?);
        let lengths = [directory.u16("a length")?, directory.u16("a length")?, directory.u16("a length")?];
        directory.bytes(8, "an entry")?;
        let local = directory.u32("a place")? as usize;
        let name = directory.text(lengths[0].into(), "a name")?;
        directory.bytes(u64::from(lengths[1]) + u64::from(lengths[2]), "an entry")?;
        if method != 0 {
            return Err(format!("{name} is compressed, which a saved model is not"));
        }
        let data = data(bytes, local, size).map_err(|reason| format!("{name}: {reason}"))?;
        entries.insert(name.to_owned(), data);
    }
    Ok(entries)
}

/// Where the contents lie of the file whose local header is at `local`.
fn data(bytes: &[u8], local: usize, size: u64) -> Result<Range<usize>, String> {
    let mut header = HeaderReader::new(bytes.get(local..).ok_or("it lies outside the archive")?);
    if header.u32("its header")? != LOCAL_SIGNATURE {
        return Err("its header is damaged".into());
    }
    header.bytes(22, "its header")?;
    let lengths = [header.u16("its header")?, header.u16("its header")?];
    header.bytes(u64::from(lengths[0]) + u64::from(lengths[1]), "its header")?;
    let data = header.range(size, "it")?;
    Ok(local + data.start..local + data.end)
}
