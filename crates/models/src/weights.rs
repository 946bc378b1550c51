use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use memmap2::Mmap;
use memory::Precision;
use safetensors::SafeTensors;

use crate::blocks::widen;
use crate::matrix::Matrix;
use crate::packed::Packed;
use crate::source::Source;
use crate::{Error, ggml, gguf};

/// Named tensors of a model: of `model.safetensors`, of the shards that
/// `model.safetensors.index.json` names, of a GGUF file or one of whisper.cpp.
/// Files are memory-mapped and each tensor goes to the device on its own, so
/// that the host never holds a second copy of the model.
#[derive(Debug)]
pub struct Weights {
    files: Vec<(PathBuf, Mmap)>,
    index: HashMap<String, Entry>,
}

/// Where a tensor lies. Whoever adds one to an index has made sure that the
/// file has these bytes and that they are as many as shape and type need.
#[derive(Debug)]
pub(crate) struct Entry {
    pub file: usize,
    pub bytes: Range<usize>,
    pub shape: Vec<usize>,
    /// The name of its type where that is none of ours.
    pub stored: Result<Precision, String>,
}

impl Entry {
    /// `shape` with the dimension that varies fastest last.
    pub fn new(file: usize, bytes: Range<usize>, shape: Vec<u64>, stored: Result<Precision, String>) -> Self {
        Self { file, bytes, shape: shape.into_iter().map(|size| size as usize).collect(), stored }
    }
}

impl Weights {
    /// Of a model's folder, or of a GGUF or whisper.cpp file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match Source::find(path)? {
            Source::Safetensors { files, .. } => Self::safetensors(files),
            Source::Gguf { file, .. } => {
                let map = map(&file)?;
                let index = gguf::index(&map, 0).map_err(|reason| Error::invalid(&file, reason))?;
                Ok(Self { files: vec![(file, map)], index })
            }
            Source::Ggml { file } => {
                let map = map(&file)?;
                let contents = ggml::contents(&map).map_err(|reason| Error::invalid(&file, reason))?;
                Ok(Self { files: vec![(file, map)], index: contents.index })
            }
        }
    }

    fn safetensors(files: Vec<PathBuf>) -> Result<Self, Error> {
        let mut weights = Self { files: Vec::new(), index: HashMap::new() };
        for (number, path) in files.into_iter().enumerate() {
            let map = map(&path)?;
            let start = map.as_ptr() as usize;
            let tensors = SafeTensors::deserialize(&map).map_err(|error| Error::invalid(&path, error))?;
            for (name, view) in tensors.iter() {
                let first = view.data().as_ptr() as usize - start;
                let stored = match view.dtype() {
                    safetensors::Dtype::F32 => Ok(Precision::F32),
                    safetensors::Dtype::F16 => Ok(Precision::F16),
                    safetensors::Dtype::BF16 => Ok(Precision::Bf16),
                    other => Err(format!("{other:?}")),
                };
                let bytes = first..first + view.data().len();
                let entry = Entry { file: number, bytes, shape: view.shape().to_vec(), stored };
                weights.index.insert(name.to_owned(), entry);
            }
            weights.files.push((path, map));
        }
        Ok(weights)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Bytes of all files, as stored.
    pub fn stored_bytes(&self) -> u64 {
        self.files.iter().map(|(_, map)| map.len() as u64).sum()
    }

    /// (name, shape, how it is stored) of every tensor, by name.
    pub(crate) fn tensors(&self) -> Vec<(&str, &[usize], Precision)> {
        let mut tensors: Vec<_> = self
            .index
            .iter()
            .filter_map(|(name, entry)| {
                Some((name.as_str(), entry.shape.as_slice(), *entry.stored.as_ref().ok()?))
            })
            .collect();
        tensors.sort_unstable();
        tensors
    }

    /// The bytes of a tensor, `rows` x `columns` of any shape, in `precision`.
    pub(crate) fn bytes_in(
        &self,
        name: &str,
        shape: &[usize],
        precision: Precision,
    ) -> Result<Packed, Error> {
        let columns = shape.last().copied().unwrap_or(1).max(1);
        let rows = shape.iter().product::<usize>() / columns;
        let (path, stored, bytes) = self.find(name, shape)?;
        Packed::convert(stored, bytes, (rows, columns), precision)
            .map_err(|reason| Error::invalid(path, format!("the tensor {name}: {reason}")))
    }

    /// How most of the matrices' weights are stored.
    pub fn stored_precision(&self) -> Precision {
        let mut weights: HashMap<Precision, usize> = HashMap::new();
        for entry in self.index.values().filter(|entry| entry.shape.len() == 2) {
            if let Ok(stored) = entry.stored {
                *weights.entry(stored).or_default() += entry.shape.iter().product::<usize>();
            }
        }
        weights.into_iter().max_by_key(|(_, weights)| *weights).map_or(Precision::F32, |(stored, _)| stored)
    }

    /// The tensor `name` of the given shape, converted to `dtype` on `device`.
    pub fn get(&self, name: &str, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor, Error> {
        let (_, stored, bytes) = self.find(name, shape)?;
        let tensor = match stored {
            Precision::F16 => Tensor::from_raw_buffer(bytes, DType::F16, shape, &Device::Cpu)?,
            Precision::Bf16 => Tensor::from_raw_buffer(bytes, DType::BF16, shape, &Device::Cpu)?,
            other => {
                let mut values = vec![0.0; shape.iter().product()];
                widen(other, bytes, &mut values);
                Tensor::from_vec(values, shape, &Device::Cpu)?
            }
        };
        Ok(tensor.to_dtype(dtype)?.to_device(device)?)
    }

    /// The matrix `name` of (output, input) weights, held in `precision` or
    /// the next that its rows fit; `dtype` is what the device computes in.
    pub(crate) fn matrix(
        &self,
        name: &str,
        (output, input): (usize, usize),
        precision: Precision,
        dtype: DType,
        device: &Device,
    ) -> Result<Matrix, Error> {
        let held = precision.for_width(input as u64);
        if held == Precision::F32 || !(held.is_quantised() || device.is_cpu()) {
            return Ok(Matrix::Dense(self.get(name, &[output, input], dtype, device)?));
        }
        Matrix::from_packed(self.bytes_in(name, &[output, input], held)?, device)
    }

    /// The file, type and bytes of a tensor of this shape.
    fn find(&self, name: &str, shape: &[usize]) -> Result<(&Path, Precision, &[u8]), Error> {
        let first = || self.files.first().map_or_else(PathBuf::new, |(path, _)| path.clone());
        let entry = self
            .index
            .get(name)
            .ok_or_else(|| Error::invalid(first(), format!("the tensor {name} is missing")))?;
        let (path, map) = &self.files[entry.file];
        if entry.shape != shape {
            let found = &entry.shape;
            return Err(Error::invalid(
                path,
                format!("the tensor {name} has the shape {found:?}, config.json asks for {shape:?}"),
            ));
        }
        match &entry.stored {
            Ok(stored) => Ok((path, *stored, &map[entry.bytes.clone()])),
            Err(other) => Err(Error::invalid(
                path,
                format!("the tensor {name} is of the type {other}, which is not supported"),
            )),
        }
    }
}

pub(crate) fn map(path: &Path) -> Result<Mmap, Error> {
    let file = File::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
    // SAFETY: the map is only read. A file that another program truncates
    // while it is mapped ends this process with SIGBUS, as it would for every
    // reader of mapped files; installed models are replaced by rename, never
    // written in place.
    unsafe { Mmap::map(&file) }.map_err(|source| Error::Io { path: path.into(), source })
}
