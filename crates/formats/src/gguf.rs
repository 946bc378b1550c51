//! GGUF, versions 2 and 3: `docs/gguf.md` of the GGML project. Tensors have the
//! names of the Hugging Face layout; everything else that a network needs to
//! be told stands in the files beside it.

use std::collections::HashMap;

use memory::Precision;

use crate::Entry;
use crate::reader::Reader;

pub const MAGIC: [u8; 4] = *b"GGUF";
pub const VERSION: u32 = 3;
/// Where `general.alignment` says nothing else.
pub const ALIGNMENT: u64 = 32;

/// Types of metadata values, by their numbers.
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
/// Arrays of arrays go so deep in no file that was meant well.
const DEEPEST: usize = 4;

/// The numbers of tensor types in files of GGML.
const TYPES: [(u32, Precision); 11] = [
    (0, Precision::F32),
    (1, Precision::F16),
    (2, Precision::Q4_0),
    (3, Precision::Q4_1),
    (6, Precision::Q5_0),
    (7, Precision::Q5_1),
    (8, Precision::Q8_0),
    (12, Precision::Q4K),
    (13, Precision::Q5K),
    (14, Precision::Q6K),
    (30, Precision::Bf16),
];

pub fn precision(number: u32) -> Option<Precision> {
    TYPES.iter().find(|(known, _)| *known == number).map(|(_, precision)| *precision)
}

pub fn number(precision: Precision) -> u32 {
    TYPES.iter().find(|(_, known)| *known == precision).map_or(0, |(number, _)| *number)
}

/// Where each tensor of the file lies. The error is a reason.
pub fn index(bytes: &[u8], file: usize) -> Result<HashMap<String, Entry>, String> {
    let mut reader = Reader::new(bytes);
    if reader.bytes(4, "the magic number")? != MAGIC {
        return Err("it does not begin as a GGUF file does".into());
    }
    let version = reader.u32("the version")?;
    if !(2..=VERSION).contains(&version) {
        return Err(format!("GGUF version {version}; 2 and {VERSION} are supported"));
    }
    let tensors = reader.u64("the number of tensors")?;
    let values = reader.u64("the number of metadata values")?;
    let mut alignment = ALIGNMENT;
    // A key's length, its type, and a byte.
    for _ in 0..reader.count(values, 13, "metadata values")? {
        let length = reader.u64("a key's length")?;
        let key = reader.text(length, "a key")?;
        let kind = reader.u32("a value's type")?;
        if key == "general.alignment" && kind == 4 {
            alignment = u64::from(reader.u32("the alignment")?);
            if !alignment.is_power_of_two() || alignment > 1 << 20 {
                return Err(format!("an alignment of {alignment}"));
            }
        } else {
            skip(&mut reader, kind, 0).map_err(|reason| format!("the value {key:?}: {reason}"))?;
        }
    }
    // A name's length, number of dimensions, type and offset.
    let count = reader.count(tensors, 24, "tensors")?;
    let mut found = Vec::with_capacity(count);
    for _ in 0..count {
        let length = reader.u64("the length of a tensor's name")?;
        let name = reader.text(length, "a tensor's name")?;
        let tensor = |reason: String| format!("the tensor {name:?}: {reason}");
        let dimensions = reader.u32("a number of dimensions").map_err(tensor)?;
        let mut shape = Vec::with_capacity(4);
        if !(1..=4).contains(&dimensions) {
            return Err(tensor(format!("{dimensions} dimensions")));
        }
        for _ in 0..dimensions {
            shape.push(reader.u64("a dimension").map_err(tensor)?);
        }
        // The dimension that varies fastest comes first.
        shape.reverse();
        let kind = reader.u32("its type").map_err(tensor)?;
        let offset = reader.u64("its offset").map_err(tensor)?;
        found.push((name, shape, kind, offset));
    }
    let start = (reader.position() as u64).next_multiple_of(alignment);
    let mut index = HashMap::with_capacity(count);
    for (name, shape, kind, offset) in found {
        let tensor = |reason: String| format!("the tensor {name:?}: {reason}");
        if !offset.is_multiple_of(alignment) {
            return Err(tensor(format!("its offset {offset} is no multiple of {alignment}")));
        }
        let entry = match precision(kind) {
            Some(stored) => {
                let size = size(&shape, stored).map_err(tensor)?;
                let end = start.checked_add(offset).and_then(|first| first.checked_add(size));
                if end.is_none_or(|end| end > bytes.len() as u64) {
                    let length = bytes.len();
                    return Err(tensor(format!(
                        "its {size} bytes at {offset} end beyond the file's {length}"
                    )));
                }
                let first = (start + offset) as usize;
                Entry::new(file, first..first + size as usize, shape, Ok(stored))
            }
            // Only who asks for it need know that it can't be read.
            None => Entry::new(file, 0..0, shape, Err(format!("number {kind}"))),
        };
        if index.insert(name.to_owned(), entry).is_some() {
            return Err(tensor("it is there twice".into()));
        }
    }
    Ok(index)
}

/// Bytes of a tensor, whose rows are whole blocks.
pub fn size(shape: &[u64], stored: Precision) -> Result<u64, String> {
    /// Weights that no model of speech has in one tensor: what is larger would
    /// overflow sums of sizes.
    const MOST: u64 = 1 << 40;
    let weights = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
    let weights = weights.filter(|weights| (1..=MOST).contains(weights));
    let weights = weights.ok_or_else(|| format!("the shape {shape:?}"))?;
    let row = shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(stored.block_weights()) {
        return Err(format!("rows of {row} weights are no whole blocks of {stored}"));
    }
    Ok(stored.bytes(weights))
}

fn skip(reader: &mut Reader, kind: u32, depth: usize) -> Result<(), String> {
    let size = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        TEXT => reader.u64("a text's length")?,
        ARRAY => {
            let kind = reader.u32("the type of an array's values")?;
            let count = reader.u64("an array's length")?;
            let least = match kind {
                TEXT | 10..=12 => 8,
                ARRAY => 12,
                4..=6 => 4,
                2 | 3 => 2,
                _ => 1,
            };
            let count = reader.count(count, least, "values")?;
            if kind == ARRAY && depth == DEEPEST {
                return Err("arrays within arrays within arrays".into());
            }
            for _ in 0..count {
                skip(reader, kind, depth + 1)?;
            }
            0
        }
        other => return Err(format!("a value of the unknown type {other}")),
    };
    reader.range(size, "a value").map(drop)
}
