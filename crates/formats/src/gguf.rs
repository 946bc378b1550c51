//! GGUF, versions 2 and 3, as `docs/gguf.md` of the GGML project describes it.
//! Tensors have the names of the Hugging Face layout. Dimensions and vocabulary
//! are read from the files beside it, not from its metadata.

use std::collections::HashMap;

use memory::Precision;

use crate::TensorInfo;
use crate::reader::HeaderReader;

/// The first four bytes of a file.
pub const MAGIC: [u8; 4] = *b"GGUF";
/// The version that is written, and the latest that is read.
pub const VERSION: u32 = 3;
/// Alignment of the tensors in bytes, unless `general.alignment` gives another.
pub const ALIGNMENT: u64 = 32;

/// The numbers of metadata types.
const TEXT: u32 = 8;
const ARRAY: u32 = 9;
/// Nesting of arrays beyond that of any real file; bounds the recursion.
const MAX_ARRAY_DEPTH: usize = 4;

/// `ggml_type` numbers, which GGUF and whisper.cpp files share.
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

/// The precision of a `ggml_type` number; `None` for types that are not supported.
pub fn precision_of_type(number: u32) -> Option<Precision> {
    TYPES.iter().find(|(known, _)| *known == number).map(|(_, precision)| *precision)
}

/// The `ggml_type` number of a precision.
pub fn type_number(precision: Precision) -> u32 {
    TYPES.iter().find(|(_, known)| *known == precision).map_or(0, |(number, _)| *number)
}

/// The tensors of a GGUF file by name, `bytes` being the whole file and `file`
/// its number among the model's files.
///
/// # Errors
/// The reason why it is not a valid GGUF file, for [`crate::Error::Invalid`].
pub fn index(bytes: &[u8], file: usize) -> Result<HashMap<String, TensorInfo>, String> {
    let mut reader = HeaderReader::new(bytes);
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
    // At least the length of the key, the type and a byte of value.
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
    // At least the length of the name, the number of dimensions, type and offset.
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
        // In the file the fastest varying dimension comes first.
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
        let tensor_info = match precision_of_type(kind) {
            Some(stored) => {
                let size = tensor_bytes(&shape, stored).map_err(tensor)?;
                let end = start.checked_add(offset).and_then(|first| first.checked_add(size));
                if end.is_none_or(|end| end > bytes.len() as u64) {
                    let length = bytes.len();
                    return Err(tensor(format!(
                        "its {size} bytes at {offset} end beyond the file's {length}"
                    )));
                }
                let first = (start + offset) as usize;
                TensorInfo::new(file, first..first + size as usize, shape, Ok(stored))
            }
            // An error only if this tensor is needed.
            None => TensorInfo::new(file, 0..0, shape, Err(format!("number {kind}"))),
        };
        if index.insert(name.to_owned(), tensor_info).is_some() {
            return Err(tensor("it is there twice".into()));
        }
    }
    Ok(index)
}

/// The bytes that a tensor of this shape takes in a file.
///
/// # Errors
/// The reason, if its rows are not a whole number of blocks of `stored`, or its
/// shape is empty or implausibly large.
pub fn tensor_bytes(shape: &[u64], stored: Precision) -> Result<u64, String> {
    /// More weights than one tensor of any speech model has, and few enough
    /// that sums of sizes do not overflow.
    const MAX_WEIGHTS: u64 = 1 << 40;
    let weights = shape.iter().try_fold(1u64, |product, size| product.checked_mul(*size));
    let weights = weights.filter(|weights| (1..=MAX_WEIGHTS).contains(weights));
    let weights = weights.ok_or_else(|| format!("the shape {shape:?}"))?;
    let row = shape.last().copied().unwrap_or(1);
    if !row.is_multiple_of(stored.block_weights()) {
        return Err(format!("rows of {row} weights are no whole blocks of {stored}"));
    }
    Ok(stored.bytes(weights))
}

/// Skips a metadata value of type `kind`.
fn skip(reader: &mut HeaderReader, kind: u32, depth: usize) -> Result<(), String> {
    let size = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        10..=12 => 8,
        TEXT => reader.u64("a text's length")?,
        ARRAY => {
            let kind = reader.u32("the type of an array's values")?;
            let count = reader.u64("an array's length")?;
            let min_bytes = match kind {
                TEXT | 10..=12 => 8,
                ARRAY => 12,
                4..=6 => 4,
                2 | 3 => 2,
                _ => 1,
            };
            let count = reader.count(count, min_bytes, "values")?;
            if kind == ARRAY && depth == MAX_ARRAY_DEPTH {
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
