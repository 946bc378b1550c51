//! Arrays that numpy saved: `.npz`, an archive of `.npy` files.

use std::collections::HashMap;
use std::path::Path;

use crate::{Error, map_file, zip};

/// An array of numbers, in the order of C: the last dimension varies fastest.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    /// The dimensions.
    pub shape: Vec<usize>,
    /// The numbers, as many as the product of the dimensions.
    pub values: Vec<f64>,
}

/// Files of arrays are read whole; those of a speaker model have under half a megabyte.
const MOST_BYTES: usize = 64 << 20;
const MAGIC: &[u8] = b"\x93NUMPY";

/// The arrays of a `.npz` file by name. Only floating-point numbers of 32 and 64
/// bits are read; numpy's pickled objects are refused.
///
/// # Errors
/// [`Error::Io`] for a file that can't be read, [`Error::Invalid`] for one that is
/// damaged, too large, compressed, or has something else than numbers in it.
pub fn read_npz(path: &Path) -> Result<HashMap<String, Array>, Error> {
    let map = map_file(path)?;
    arrays(&map).map_err(|reason| Error::invalid(path, reason))
}

fn arrays(bytes: &[u8]) -> Result<HashMap<String, Array>, String> {
    if bytes.len() > MOST_BYTES {
        return Err(format!("{} bytes are too many for a file of arrays", bytes.len()));
    }
    let arrays = zip::entries(bytes)?.into_iter().map(|(name, range)| {
        let array = array(&bytes[range]).map_err(|reason| format!("{name}: {reason}"))?;
        Ok((name.strip_suffix(".npy").unwrap_or(&name).to_owned(), array))
    });
    arrays.collect()
}

/// Version 1 of numpy's format: magic, version, length of the header, a header such
/// as `{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }`, numbers.
fn array(bytes: &[u8]) -> Result<Array, String> {
    let rest = bytes.strip_prefix(MAGIC).ok_or("it is no array of numpy")?;
    let [1, 0, low, high, rest @ ..] = rest else { return Err("its version is not supported".into()) };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    let (header, data) = rest.split_at_checked(length).ok_or("its header is cut off")?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is no text")?;
    let value_of = |key: &str| {
        let at = header.find(&format!("'{key}':")).ok_or(format!("its header has no {key}"))?;
        Ok::<_, String>(header[at + key.len() + 3..].trim_start())
    };
    let width = match value_of("descr")? {
        text if text.starts_with("'<f8'") => 8,
        text if text.starts_with("'<f4'") => 4,
        _ => return Err("it has no floating-point numbers of 32 or 64 bits".into()),
    };
    let is_fortran = value_of("fortran_order")?.starts_with("True");
    let shape = value_of("shape")?;
    let shape =
        shape.strip_prefix('(').and_then(|text| text.split_once(')')).ok_or("its shape is unclear")?.0;
    let sizes = shape.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape: Vec<usize> =
        sizes.map(|size| size.parse().map_err(|_| "its shape is unclear")).collect::<Result<_, _>>()?;
    let count = shape.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
    if count.and_then(|count| count.checked_mul(width)) != Some(data.len()) {
        return Err(format!("{} bytes are no array of {shape:?} numbers", data.len()));
    }
    let values: Vec<f64> = if width == 8 {
        data.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
    } else {
        data.as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect()
    };
    match shape[..] {
        [rows, columns] if is_fortran => {
            let order = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let values = order.map(|(row, column)| values[column * rows + row]).collect();
            Ok(Array { shape, values })
        }
        _ if is_fortran && shape.len() > 1 => Err("its order of dimensions is not supported".into()),
        _ => Ok(Array { shape, values }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(header: &str, numbers: &[f64]) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        bytes
    }

    #[test]
    fn arrays_are_read_in_either_order() {
        let numbers = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        for (order, expected) in [("False", numbers), ("True", [1.0, 3.0, 5.0, 2.0, 4.0, 6.0])] {
            let header = format!("{{'descr': '<f8', 'fortran_order': {order}, 'shape': (2, 3), }}");
            let found = array(&npy(&header, &numbers)).unwrap();
            assert_eq!((found.shape, found.values), (vec![2, 3], expected.to_vec()));
        }
    }

    #[test]
    fn what_is_no_array_of_numbers_is_refused() {
        let numbers = [1.0, 2.0];
        for (header, reason) in [
            ("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "no floating-point"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", "[3]"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 9999999999, 2), }", "bytes"),
            ("{'descr': '<f8', 'fortran_order': False, 'shape': (x,), }", "shape"),
            ("{'descr': '<f8', 'shape': (2,), }", "fortran_order"),
            ("", "descr"),
        ] {
            let found = array(&npy(header, &numbers)).unwrap_err();
            assert!(found.contains(reason), "{header}: {found}");
        }
        assert!(array(b"PK").unwrap_err().contains("no array"));
    }
}
