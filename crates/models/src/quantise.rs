use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use memory::Precision;

use crate::{Error, Weights, gguf};

/// A tensor that is not in the format that was asked for, since its rows are
/// no whole number of that format's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptOtherwise {
    pub tensor: String,
    pub precision: Precision,
}

/// Writes the weights of the model at `path` as the GGUF file `out`, every
/// matrix in `precision` or the next better format that its rows fit; returns
/// which took another. Convolutions, norms, biases and positions stay as they
/// are stored. Tensor by tensor: no more than one is held.
///
/// `tick` is asked after every tensor whether to go on. The file appears under its name when it is whole. config.json,
/// tokenizer.json and generation_config.json belong beside it.
pub fn quantise(
    path: &Path,
    precision: Precision,
    out: &Path,
    tick: &dyn Fn() -> bool,
) -> Result<Vec<KeptOtherwise>, Error> {
    let weights = Weights::open(path)?;
    let mut kept = Vec::new();
    let mut tensors = Vec::new();
    for (name, shape, stored) in weights.tensors() {
        let columns = shape.last().copied().unwrap_or(1) as u64;
        let held = if is_matrix(name, shape) { precision.for_width(columns) } else { stored };
        if is_matrix(name, shape) && held != precision {
            kept.push(KeptOtherwise { tensor: name.to_owned(), precision: held });
        }
        tensors.push((name, shape, held));
    }
    let partial = out.with_extension("gguf.partial");
    let written = write(&weights, &tensors, &partial, tick).and_then(|()| {
        std::fs::rename(&partial, out).map_err(|source| Error::Write { path: out.into(), source })
    });
    if written.is_err() {
        // What can't be removed was perhaps never made; the first error counts.
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| kept)
}

/// Weights of linear layers and the token embedding, which shares them.
fn is_matrix(name: &str, shape: &[usize]) -> bool {
    shape.len() == 2 && !name.ends_with("embed_positions.weight")
}

fn write(
    weights: &Weights,
    tensors: &[(&str, &[usize], Precision)],
    path: &Path,
    tick: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let unwritable = |source| Error::Write { path: path.into(), source };
    let mut file = BufWriter::new(File::create(path).map_err(unwritable)?);
    let header = header(tensors);
    file.write_all(&header).map_err(unwritable)?;
    let mut at = header.len() as u64;
    for (name, shape, held) in tensors {
        pad(&mut file, &mut at).map_err(unwritable)?;
        let packed = weights.bytes_in(name, shape, *held)?;
        file.write_all(packed.bytes()).map_err(unwritable)?;
        at += packed.bytes().len() as u64;
        if !tick() {
            return Err(Error::Interrupted);
        }
    }
    pad(&mut file, &mut at).map_err(unwritable)?;
    let file = file.into_inner().map_err(|error| unwritable(error.into_error()))?;
    file.sync_all().map_err(unwritable)
}

fn pad(file: &mut impl Write, at: &mut u64) -> io::Result<()> {
    let aligned = at.next_multiple_of(gguf::ALIGNMENT);
    file.write_all(&vec![0; (aligned - *at) as usize])?;
    *at = aligned;
    Ok(())
}

fn header(tensors: &[(&str, &[usize], Precision)]) -> Vec<u8> {
    /// A metadata value that is text.
    const TEXT: u32 = 8;
    let text = |header: &mut Vec<u8>, text: &str| {
        header.extend((text.len() as u64).to_le_bytes());
        header.extend(text.as_bytes());
    };
    let mut header = gguf::MAGIC.to_vec();
    header.extend(gguf::VERSION.to_le_bytes());
    header.extend((tensors.len() as u64).to_le_bytes());
    header.extend(1u64.to_le_bytes());
    text(&mut header, "general.architecture");
    header.extend(TEXT.to_le_bytes());
    text(&mut header, "whisper");
    let mut offset = 0u64;
    for (name, shape, held) in tensors {
        text(&mut header, name);
        header.extend((shape.len() as u32).to_le_bytes());
        for size in shape.iter().rev() {
            header.extend((*size as u64).to_le_bytes());
        }
        header.extend(gguf::type_number(*held).to_le_bytes());
        header.extend(offset.to_le_bytes());
        let bytes = held.bytes(shape.iter().product::<usize>() as u64);
        offset = (offset + bytes).next_multiple_of(gguf::ALIGNMENT);
    }
    header
}
