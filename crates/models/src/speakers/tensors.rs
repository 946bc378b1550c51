use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};

use crate::Error;

/// The tensors of a safetensors file by name, on a device, in 32 bits.
pub struct NamedTensors {
    tensors: HashMap<String, Tensor>,
    device: Device,
}

impl NamedTensors {
    /// Reads a whole file that is in memory.
    pub fn read(file: &[u8], device: &Device) -> Result<Self, Error> {
        let tensors = candle_core::safetensors::load_buffer(file, &Device::Cpu)?;
        Ok(Self { tensors, device: device.clone() })
    }

    /// The tensor `name` of any shape.
    pub fn any(&self, name: &str) -> Result<Tensor, Error> {
        let found = self.tensors.get(name);
        let found = found.ok_or_else(|| candle_core::Error::Msg(format!("the tensor {name} is missing")))?;
        Ok(found.to_dtype(DType::F32)?.to_device(&self.device)?)
    }

    /// The tensor `name`, which must have this shape.
    pub fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, Error> {
        let tensor = self.any(name)?;
        if tensor.dims() != shape {
            let found = tensor.dims();
            let text = format!("the tensor {name} has the shape {found:?}, not {shape:?}");
            return Err(candle_core::Error::Msg(text).into());
        }
        Ok(tensor)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub fn device(&self) -> &Device {
        &self.device
    }
}
