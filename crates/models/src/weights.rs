use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use memmap2::Mmap;
use safetensors::SafeTensors;
use serde::Deserialize;

use crate::Error;

/// Named tensors of a model's folder: `model.safetensors`, or the shards that
/// `model.safetensors.index.json` names. Files are memory-mapped and each
/// tensor goes to the device on its own, so that the host never holds a
/// second copy of the model.
#[derive(Debug)]
pub struct Weights {
    files: Vec<(PathBuf, Mmap)>,
    /// Which file holds a tensor.
    index: HashMap<String, usize>,
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

#[derive(Deserialize)]
struct ShardIndex {
    weight_map: HashMap<String, String>,
}

impl Weights {
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let index_path = folder.join(INDEX);
        let names = if folder.join(SINGLE).is_file() {
            vec![SINGLE.to_owned()]
        } else if index_path.is_file() {
            let text = std::fs::read_to_string(&index_path)
                .map_err(|source| Error::Io { path: index_path.clone(), source })?;
            let index: ShardIndex =
                serde_json::from_str(&text).map_err(|error| Error::invalid(&index_path, error))?;
            let mut names: Vec<String> = index.weight_map.into_values().collect();
            names.sort();
            names.dedup();
            // A name with a folder in it could lead anywhere on the disk.
            if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
                return Err(Error::invalid(
                    index_path,
                    format!("the shard name {name:?} is not a file name"),
                ));
            }
            names
        } else {
            return Err(Error::Missing { folder: folder.into(), file: SINGLE });
        };
        let mut files = Vec::with_capacity(names.len());
        let mut index = HashMap::new();
        for (number, name) in names.into_iter().enumerate() {
            let path = folder.join(name);
            let map = map(&path)?;
            let tensors = SafeTensors::deserialize(&map).map_err(|error| Error::invalid(&path, error))?;
            index.extend(tensors.names().into_iter().map(|name| (name.to_owned(), number)));
            files.push((path, map));
        }
        Ok(Self { files, index })
    }

    pub fn contains(&self, name: &str) -> bool {
        self.index.contains_key(name)
    }

    /// Bytes of all files, as stored.
    pub fn stored_bytes(&self) -> u64 {
        self.files.iter().map(|(_, map)| map.len() as u64).sum()
    }

    /// The tensor `name` of the given shape, converted to `dtype` on `device`.
    pub fn get(&self, name: &str, shape: &[usize], dtype: DType, device: &Device) -> Result<Tensor, Error> {
        let file = self.index.get(name).copied().unwrap_or_default();
        let (path, map) = &self.files[file];
        let tensors = SafeTensors::deserialize(map).map_err(|error| Error::invalid(path, error))?;
        let view = tensors
            .tensor(name)
            .map_err(|_| Error::invalid(path, format!("the tensor {name} is missing")))?;
        if view.shape() != shape {
            let found = view.shape();
            return Err(Error::invalid(
                path,
                format!("the tensor {name} has the shape {found:?}, config.json asks for {shape:?}"),
            ));
        }
        let stored = match view.dtype() {
            safetensors::Dtype::F32 => DType::F32,
            safetensors::Dtype::F16 => DType::F16,
            safetensors::Dtype::BF16 => DType::BF16,
            other => {
                return Err(Error::invalid(
                    path,
                    format!("the tensor {name} is of the type {other:?}; F32, F16 and BF16 are supported"),
                ));
            }
        };
        let tensor = Tensor::from_raw_buffer(view.data(), stored, shape, &Device::Cpu)?;
        Ok(tensor.to_dtype(dtype)?.to_device(device)?)
    }

    /// `f32`, `f16` or `bf16`: how the first matrix is stored.
    pub fn stored_precision(&self) -> &'static str {
        let Some((_, map)) = self.files.first() else { return "f32" };
        let Ok(tensors) = SafeTensors::deserialize(map) else { return "f32" };
        match tensors.iter().find(|(_, view)| view.shape().len() > 1).map(|(_, view)| view.dtype()) {
            Some(safetensors::Dtype::F16) => "f16",
            Some(safetensors::Dtype::BF16) => "bf16",
            _ => "f32",
        }
    }
}

fn map(path: &Path) -> Result<Mmap, Error> {
    let file = File::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
    // SAFETY: the map is only read. A file that another program truncates
    // while it is mapped ends this process with SIGBUS, as it would for every
    // reader of mapped files; installed models are replaced by rename, never
    // written in place.
    unsafe { Mmap::map(&file) }.map_err(|source| Error::Io { path: path.into(), source })
}
