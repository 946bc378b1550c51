use std::collections::HashMap;
use std::path::Path;

use candle_core::{DType, Device, Tensor};

use crate::{Error, Weights};

/// The tensors of a network by name, on a device, in 32 bits.
pub struct NamedTensors {
    source: Source,
    device: Device,
}

enum Source {
    /// A file that is part of the program.
    Memory(HashMap<String, Tensor>),
    File(Weights),
}

impl NamedTensors {
    /// Reads a whole safetensors file that is in memory.
    pub fn read(file: &[u8], device: &Device) -> Result<Self, Error> {
        let tensors = candle_core::safetensors::load_buffer(file, &Device::Cpu)?;
        Ok(Self { source: Source::Memory(tensors), device: device.clone() })
    }

    /// Opens a safetensors file or a checkpoint that torch saved.
    pub fn open(path: &Path, device: &Device) -> Result<Self, Error> {
        Ok(Self { source: Source::File(Weights::open_file(path)?), device: device.clone() })
    }

    /// The tensor `name` of any shape.
    pub fn any(&self, name: &str) -> Result<Tensor, Error> {
        match &self.source {
            Source::Memory(tensors) => {
                let found =
                    tensors.get(name).ok_or_else(|| self.invalid(format!("the tensor {name} is missing")))?;
                Ok(found.to_dtype(DType::F32)?.to_device(&self.device)?)
            }
            Source::File(weights) => weights.any(name, DType::F32, &self.device),
        }
    }

    /// The tensor `name`, which must have this shape.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let tensor = self.any(name)?;
        if tensor.dims() != shape {
            let found = tensor.dims();
            return Err(self.invalid(format!("the tensor {name} has the shape {found:?}, not {shape:?}")));
        }
        Ok(tensor)
    }

    pub fn contains(&self, name: &str) -> bool {
        match &self.source {
            Source::Memory(tensors) => tensors.contains_key(name),
            Source::File(weights) => weights.contains(name),
        }
    }

    /// An error that names the file, where there is one.
    pub fn invalid(&self, reason: String) -> Error {
        match &self.source {
            Source::Memory(_) => candle_core::Error::Msg(reason).into(),
            Source::File(weights) => Error::invalid(weights.first_file(), reason),
        }
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
}
