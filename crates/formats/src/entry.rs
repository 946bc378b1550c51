use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use memory::Precision;

use crate::source::Source;
use crate::{Error, ggml, gguf, safetensors};

/// Where a tensor lies. Whoever adds one to an index has made sure that the
/// file has these bytes and that they are as many as shape and type need.
#[derive(Debug)]
pub struct Entry {
    /// Which of the model's files.
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

/// Named tensors of a model: of `model.safetensors`, of the shards that
/// `model.safetensors.index.json` names, of a GGUF file or one of whisper.cpp,
/// by the names of the Hugging Face layout. Files are memory-mapped.
#[derive(Debug)]
pub struct Tensors {
    pub files: Vec<(PathBuf, Mmap)>,
    pub index: HashMap<String, Entry>,
}

impl Tensors {
    /// Of a model's folder, or of a GGUF or whisper.cpp file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let files = match Source::find(path)? {
            Source::Safetensors { files, .. } => files,
            Source::Gguf { file, .. } => {
                let map = map(&file)?;
                let index = gguf::index(&map, 0).map_err(|reason| Error::invalid(&file, reason))?;
                return Ok(Self { files: vec![(file, map)], index });
            }
            Source::Ggml { file } => {
                let map = map(&file)?;
                let contents = ggml::contents(&map).map_err(|reason| Error::invalid(&file, reason))?;
                return Ok(Self { files: vec![(file, map)], index: contents.index });
            }
        };
        let mut tensors = Self { files: Vec::new(), index: HashMap::new() };
        for (number, path) in files.into_iter().enumerate() {
            let map = map(&path)?;
            let index = safetensors::index(&map, number).map_err(|reason| Error::invalid(&path, reason))?;
            tensors.index.extend(index);
            tensors.files.push((path, map));
        }
        Ok(tensors)
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
}

pub fn map(path: &Path) -> Result<Mmap, Error> {
    let file = File::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
    // SAFETY: the map is only read. A file that another program truncates
    // while it is mapped ends this process with SIGBUS, as it would for every
    // reader of mapped files; installed models are replaced by rename, never
    // written in place.
    unsafe { Mmap::map(&file) }.map_err(|source| Error::Io { path: path.into(), source })
}
