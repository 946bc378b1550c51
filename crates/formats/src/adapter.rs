//! Low-rank adapters: one safetensors file with two small matrices for each adapted one, named as
//! `peft` names them, and a card of what was learnt.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::{Error, ModelFiles, Tensors, map_file};

/// The key of the card in the file's metadata.
const CARD: &str = "steno_adapter";
const A: &str = ".lora_A.weight";
const B: &str = ".lora_B.weight";

/// What an adapter was learnt from, when, and with what success.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default)]
pub struct AdapterCard {
    /// The name of the model that it belongs to.
    pub model: String,
    /// Tells that model's weights from others ([`fingerprint`]).
    pub base: String,
    /// Rows of A and columns of B, from 1.
    pub rank: u32,
    /// What B A is multiplied by is `alpha / rank`.
    pub alpha: f32,
    /// When it was made, RFC 3339.
    pub created: String,
    /// Of the order of examples and of what A begins with.
    pub seed: u64,
    /// What was learnt from.
    pub learnt: Learnt,
    /// Times that everything was gone through, until the best adapter was there.
    pub epochs: u32,
    /// How much of what was learnt it has, of 1, where that is less than all; `alpha` is so much less.
    pub strength: Option<f32>,
    /// The mean loss per token of what was held back, before and after, with all that was learnt.
    pub held_back_loss: Option<(f32, f32)>,
    /// Word errors with and without it; `None`: they were not counted yet.
    pub figures: Option<AdapterFigures>,
}

/// What an adapter was learnt from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
#[serde(default)]
pub struct Learnt {
    /// Recordings.
    pub recordings: usize,
    /// Parts of them with their texts.
    pub segments: usize,
    /// Of those, the ones that the user corrected.
    pub corrected: usize,
    /// Seconds of sound.
    pub seconds: f64,
    /// ISO 639-1.
    pub languages: Vec<String>,
}

/// Word errors without and with an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct AdapterFigures {
    /// On corrections that were held back.
    pub corrections: WordErrors,
    /// On other recordings; `None` where there are none.
    pub others: Option<WordErrors>,
    /// On corrections that were learnt; `None` where there are none, and in the files of earlier versions.
    #[serde(default)]
    pub learnt: Option<WordErrors>,
}

/// Word errors without and with an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "ts", derive(ts_rs::TS))]
pub struct WordErrors {
    /// Words in the reference.
    pub words: usize,
    /// Words wrong, missing or too many without it.
    pub before: usize,
    /// The same with it.
    pub after: usize,
    /// Words that are right with it and were not without, with how often; the most frequent first.
    pub better: Vec<(String, usize)>,
    /// Words that are not right with it and were without.
    pub worse: Vec<(String, usize)>,
}

impl AdapterCard {
    /// The factor of B A.
    pub fn scale(&self) -> f64 {
        f64::from(self.alpha) / f64::from(self.rank.max(1))
    }
}

/// The adapter of one matrix.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterMatrix {
    /// The matrix's name, without `.weight`.
    pub name: String,
    /// Its rows.
    pub output: usize,
    /// Its columns.
    pub input: usize,
    /// (rank, input), row by row.
    pub a: Vec<f32>,
    /// (output, rank), row by row.
    pub b: Vec<f32>,
}

/// An adapter in memory; a few megabytes.
#[derive(Debug, Clone, PartialEq)]
pub struct AdapterFile {
    /// Where it lies, for errors.
    pub path: PathBuf,
    /// What it is.
    pub card: AdapterCard,
    /// By name, sorted.
    pub matrices: Vec<AdapterMatrix>,
}

impl AdapterFile {
    /// Reads and checks an adapter: that each matrix has both parts, in the rank that the card
    /// names, of finite numbers.
    ///
    /// # Errors
    /// [`Error::Io`] if it can't be read, [`Error::Invalid`] for a file that is damaged or no adapter.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let map = map_file(path)?;
        Self::of_bytes(path, &map).map_err(|reason| Error::invalid(path, reason))
    }

    fn of_bytes(path: &Path, bytes: &[u8]) -> Result<Self, String> {
        let text = |error: safetensors::SafeTensorError| error.to_string();
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(text)?;
        let card = header.metadata().as_ref().and_then(|metadata| metadata.get(CARD));
        let card = card.ok_or("it is not an adapter of Steno: its header has no card")?;
        let card: AdapterCard =
            serde_json::from_str(card).map_err(|error| format!("its card can't be read: {error}"))?;
        let rank = card.rank as usize;
        if rank == 0 || !card.alpha.is_finite() {
            return Err("its card names no rank and factor".into());
        }
        let tensors = SafeTensors::deserialize(bytes).map_err(text)?;
        let mut matrices = Vec::new();
        let mut names: Vec<&str> = tensors.names().into_iter().filter_map(|it| it.strip_suffix(A)).collect();
        names.sort_unstable();
        for name in names {
            let part = |ending: &str| {
                let full = format!("{name}{ending}");
                let view = tensors.tensor(&full).map_err(|_| format!("the tensor {full} is missing"))?;
                let values = floats(&view).ok_or_else(|| format!("the tensor {full} is not in 32 bits"))?;
                if !values.iter().all(|value| value.is_finite()) {
                    return Err(format!("the tensor {full} has numbers that are not finite"));
                }
                Ok((view.shape().to_vec(), values))
            };
            let ((a_shape, a), (b_shape, b)) = (part(A)?, part(B)?);
            let (&[a_rank, input], &[output, b_rank]) = (&a_shape[..], &b_shape[..]) else {
                return Err(format!("the adapter of {name} is not of matrices"));
            };
            if (a_rank, b_rank) != (rank, rank) {
                return Err(format!("the adapter of {name} is not of the rank {rank} that the card names"));
            }
            matrices.push(AdapterMatrix { name: name.to_owned(), output, input, a, b });
        }
        if matrices.is_empty() {
            return Err("it adapts no matrix".into());
        }
        Ok(Self { path: path.into(), card, matrices })
    }

    /// Writes it to [`AdapterFile::path`], whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self) -> io::Result<()> {
        let rank = self.card.rank as usize;
        let mut parts = Vec::new();
        for matrix in &self.matrices {
            parts.push((format!("{}{A}", matrix.name), vec![rank, matrix.input], bytes(&matrix.a)));
            parts.push((format!("{}{B}", matrix.name), vec![matrix.output, rank], bytes(&matrix.b)));
        }
        let views = parts.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.clone(), bytes).map_err(io::Error::other)?;
            Ok((name.as_str(), view))
        });
        let views = views.collect::<io::Result<Vec<_>>>()?;
        let card = serde_json::to_string(&self.card)?;
        let header = HashMap::from([(CARD.to_owned(), card), ("format".to_owned(), "pt".to_owned())]);
        let contents = safetensors::serialize(views, Some(header)).map_err(io::Error::other)?;
        write_whole(&self.path, &contents)
    }

    /// Whether it fits the matrices of a model.
    ///
    /// # Errors
    /// What does not fit, as [`Error::Invalid`]; those of reading the model.
    pub fn check_fits(&self, model: &Path) -> Result<(), Error> {
        let tensors = Tensors::open(model)?;
        for AdapterMatrix { name, output, input, .. } in &self.matrices {
            let found = tensors.index.get(&format!("{name}.weight"));
            if found.is_none_or(|tensor| tensor.shape != [*output, *input]) {
                let reason = format!("the model at {} has no {name} of {output} x {input}", model.display());
                return Err(Error::invalid(&self.path, reason));
            }
        }
        Ok(())
    }
}

/// Writes beside the final name, has it on the disk, then renames.
///
/// # Errors
/// Those of the file system.
pub fn write_whole(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()
    });
    let renamed = written.and_then(|()| std::fs::rename(&partial, path));
    if renamed.is_err() {
        // What can't be removed was perhaps never made; the first error counts.
        let _ = std::fs::remove_file(&partial);
    }
    renamed
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(view: &TensorView) -> Option<Vec<f32>> {
    let values = view.data().as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    (view.dtype() == Dtype::F32).then(|| values.collect())
}

/// Tells the weights of a model from those of another: a hash (FNV-1a, 64 bits) of the names and
/// shapes of all tensors and of the beginning of each. An adapter fits only the weights that it was
/// learnt beside.
///
/// # Errors
/// As [`Tensors::open`].
pub fn fingerprint(model: &Path) -> Result<String, Error> {
    /// Bytes that are read of each tensor.
    const BEGINNING: usize = 256;
    ModelFiles::find(model)?;
    let tensors = Tensors::open(model)?;
    let mut names: Vec<&String> = tensors.index.keys().collect();
    names.sort_unstable();
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for name in names {
        let tensor = &tensors.index[name];
        add(name.as_bytes());
        tensor.shape.iter().for_each(|size| add(&(*size as u64).to_le_bytes()));
        let values = &tensors.files[tensor.file].1[tensor.bytes.clone()];
        add(&values[..values.len().min(BEGINNING)]);
    }
    Ok(format!("{hash:016x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(path: &Path) -> AdapterFile {
        let matrix = AdapterMatrix {
            name: "model.encoder.layers.0.fc1".into(),
            output: 3,
            input: 2,
            a: vec![1.0, 2.0],
            b: vec![0.5, -0.5, 0.25],
        };
        let card = AdapterCard { rank: 1, alpha: 2.0, model: "tiny".into(), ..AdapterCard::default() };
        AdapterFile { path: path.into(), card, matrices: vec![matrix] }
    }

    #[test]
    fn an_adapter_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        adapter(&path).write().unwrap();
        assert_eq!(AdapterFile::read(&path).unwrap(), adapter(&path));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_damaged_adapter_is_refused_with_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.safetensors");
        let reason = |change: &dyn Fn(&mut AdapterFile)| {
            let mut file = adapter(&path);
            change(&mut file);
            file.write().unwrap();
            AdapterFile::read(&path).unwrap_err().to_string()
        };
        let text = reason(&|file| file.matrices[0].b[1] = f32::NAN);
        assert!(text.contains("not finite") && text.contains("fc1"), "{text}");
        let text = reason(&|file| file.matrices.clear());
        assert!(text.contains("adapts no matrix"), "{text}");
        adapter(&path).write().unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert!(AdapterFile::read(&path).is_err(), "cut to {length} bytes");
        }
    }
}
