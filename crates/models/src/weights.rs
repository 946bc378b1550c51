use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use formats::Tensors;
use memory::Precision;

use crate::Error;
use crate::blocks::widen;
use crate::matrix::Matrix;
use crate::packed::Packed;

/// Named tensors of a model: of `model.safetensors`, of the shards that
/// `model.safetensors.index.json` names, of a GGUF file or one of whisper.cpp.
/// Files are memory-mapped and each tensor goes to the device on its own, so
/// that the host never holds a second copy of the model.
#[derive(Debug)]
pub struct Weights {
    tensors: Tensors,
}

impl Weights {
    /// Of a model's folder, or of a GGUF or whisper.cpp file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(Self { tensors: Tensors::open(path)? })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.index.contains_key(name)
    }

    /// Bytes of all files, as stored.
    pub fn stored_bytes(&self) -> u64 {
        self.tensors.files.iter().map(|(_, map)| map.len() as u64).sum()
    }

    /// (name, shape, how it is stored) of every tensor, by name.
    pub(crate) fn tensors(&self) -> Vec<(&str, &[usize], Precision)> {
        let mut tensors: Vec<_> = self
            .tensors
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
        self.tensors.stored_precision()
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
        let first = || self.tensors.files.first().map_or_else(PathBuf::new, |(path, _)| path.clone());
        let entry = self
            .tensors
            .index
            .get(name)
            .ok_or_else(|| Error::invalid(first(), format!("the tensor {name} is missing")))?;
        let (path, map) = &self.tensors.files[entry.file];
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

/// How most of the weights of the model at `path` are stored; reads no more
/// than the headers of its files.
pub fn stored_precision(path: &Path) -> Result<Precision, Error> {
    Ok(Tensors::open(path)?.stored_precision())
}
