use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use formats::{CanaryConfig, ParakeetConfig, without_ones};
use memory::Precision;

use crate::{Error, Weights, gguf};

/// A tensor that was written in another precision than requested, as its rows
/// are not a whole number of the requested format's blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrecisionFallback {
    /// The name of the tensor.
    pub tensor: String,
    /// The precision that it was written in.
    pub precision: Precision,
}

/// Writes the weights of the model at `path` as the GGUF file `out`, with every
/// matrix in `precision` or the next larger one whose blocks its rows fit.
/// Returns the matrices that took another precision. Convolutions, norms, biases
/// and positions keep their stored precision. One tensor is in memory at a time.
///
/// `tick` is called after every tensor; writing stops when it returns `false`.
/// The file is written under a temporary name and renamed when it is complete.
/// To be loaded it needs the model's `config.json`, `tokenizer.json` and
/// `generation_config.json` beside it, which this function does not copy.
///
/// # Errors
/// [`Error::Interrupted`] if `tick` returned `false`, [`Error::Write`] if `out`
/// can't be written, [`Error::Files`] if a weight is not finite, and the
/// errors of [`Weights::open`].
pub fn quantise(
    path: &Path,
    precision: Precision,
    out: &Path,
    tick: &dyn Fn() -> bool,
) -> Result<Vec<PrecisionFallback>, Error> {
    let weights = Weights::open(path)?;
    let mut fallbacks = Vec::new();
    let mut tensors = Vec::new();
    for (name, shape, stored) in weights.tensors() {
        let shape = if is_matrix(name, shape) { without_ones(shape) } else { shape };
        let columns = shape.last().copied().unwrap_or(1) as u64;
        let held = if is_matrix(name, shape) { precision.for_width(columns) } else { stored };
        if is_matrix(name, shape) && held != precision {
            fallbacks.push(PrecisionFallback { tensor: name.to_owned(), precision: held });
        }
        tensors.push((name, shape, held));
    }
    let partial = out.with_extension("gguf.partial");
    let written = write(&weights, &tensors, architecture(path)?, &partial, tick).and_then(|()| {
        std::fs::rename(&partial, out).map_err(|source| Error::Write { path: out.into(), source })
    });
    if written.is_err() {
        // Ignored: there may be no file yet, and the first error is the one to report.
        let _ = std::fs::remove_file(&partial);
    }
    written.map(|()| fallbacks)
}

/// Whether a tensor is the weight of a linear layer, which may be stored as a convolution over one place, or the
/// token embedding.
fn is_matrix(name: &str, shape: &[usize]) -> bool {
    const OTHERS: [&str; 3] = ["embed_positions.weight", "self_attn.bias_u", "self_attn.bias_v"];
    let is_two_dimensional = shape.len() == 2 || (shape.len() == 3 && without_ones(shape).len() == 2);
    is_two_dimensional && !OTHERS.iter().any(|other| name.ends_with(other))
}

/// The name of the model's family in the file.
fn architecture(path: &Path) -> Result<&'static str, Error> {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    Ok(match (ParakeetConfig::find(folder)?, CanaryConfig::find(folder)?) {
        (Some(_), _) => "parakeet",
        (None, Some(_)) => "canary",
        (None, None) => "whisper",
    })
}

fn write(
    weights: &Weights,
    tensors: &[(&str, &[usize], Precision)],
    architecture: &str,
    path: &Path,
    tick: &dyn Fn() -> bool,
) -> Result<(), Error> {
    let unwritable = |source| Error::Write { path: path.into(), source };
    let mut file = BufWriter::new(File::create(path).map_err(unwritable)?);
    let header = header(tensors, architecture);
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

fn header(tensors: &[(&str, &[usize], Precision)], architecture: &str) -> Vec<u8> {
    /// The metadata type of strings.
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
    text(&mut header, architecture);
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
