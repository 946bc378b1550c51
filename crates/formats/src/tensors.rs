use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;
use memory::Precision;

use crate::model_files::ModelFiles;
use crate::{Error, FileKind, checkpoint, ggml, gguf, safetensors};

/// The position, shape and precision of a tensor in a model's files. The range
/// lies within the file and has the length that shape and precision require;
/// the parsers check both before they add a tensor to an index.
#[derive(Debug)]
pub struct TensorInfo {
    /// The number of the file in [`Tensors::files`].
    pub file: usize,
    /// The values, as a range of the file. Meaningless where `stored` is an error.
    pub bytes: Range<usize>,
    /// The dimensions, the fastest varying one last.
    pub shape: Vec<usize>,
    /// The precision of the values, or the name of a type that is not supported.
    pub stored: Result<Precision, String>,
}

impl TensorInfo {
    pub(crate) fn new(
        file: usize,
        bytes: Range<usize>,
        shape: Vec<u64>,
        stored: Result<Precision, String>,
    ) -> Self {
        Self { file, bytes, shape: shape.into_iter().map(|size| size as usize).collect(), stored }
    }
}

/// The tensors of a model and its memory-mapped files: `model.safetensors`, the
/// shards that `model.safetensors.index.json` names, a GGUF file, or a file of
/// whisper.cpp.
#[derive(Debug)]
pub struct Tensors {
    /// The files with their paths.
    pub files: Vec<(PathBuf, Mmap)>,
    /// The tensors by their names in the Hugging Face layout.
    pub index: HashMap<String, TensorInfo>,
}

impl Tensors {
    /// Maps the files of the model at `path` (a folder, or a GGUF or whisper.cpp
    /// file) and reads their headers.
    ///
    /// # Errors
    /// [`Error::Missing`] for a folder without weights, [`Error::Invalid`] for
    /// a damaged header, [`Error::Io`] for what can't be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let files = match ModelFiles::find(path)? {
            ModelFiles::Safetensors { files, .. } => files,
            ModelFiles::Gguf { file, .. } => {
                let map = map_file(&file)?;
                let index = gguf::index(&map, 0).map_err(|reason| Error::invalid(&file, reason))?;
                return Ok(Self { files: vec![(file, map)], index });
            }
            ModelFiles::Ggml { file } => {
                let map = map_file(&file)?;
                let contents = ggml::contents(&map).map_err(|reason| Error::invalid(&file, reason))?;
                return Ok(Self { files: vec![(file, map)], index: contents.index });
            }
        };
        let mut tensors = Self { files: Vec::new(), index: HashMap::new() };
        for (number, path) in files.into_iter().enumerate() {
            let map = map_file(&path)?;
            let index = safetensors::index(&map, number).map_err(|reason| Error::invalid(&path, reason))?;
            tensors.index.extend(index);
            tensors.files.push((path, map));
        }
        Ok(tensors)
    }

    /// Maps one file, of safetensors or a checkpoint that torch saved, and reads its
    /// header. Nothing in a checkpoint is executed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a file of another format or with a damaged header,
    /// [`Error::Io`] for what can't be read.
    pub fn open_file(path: &Path) -> Result<Self, Error> {
        let kind = FileKind::of(path)?;
        let map = map_file(path)?;
        let index = match kind {
            FileKind::Safetensors => safetensors::index(&map, 0),
            FileKind::Pickle | FileKind::Zip => checkpoint::index(&map, 0),
            _ => Err("it is neither safetensors nor a checkpoint of torch".to_owned()),
        };
        let index = index.map_err(|reason| Error::invalid(path, reason))?;
        Ok(Self { files: vec![(path.into(), map)], index })
    }

    /// Lets the system take back the pages of a file that were read. Until then, or until the map ends, they count
    /// as memory of this process. What is read of them later is read from the file again.
    pub fn release(&self, file: usize, bytes: Range<usize>) {
        // SAFETY: the map is of a file and nothing writes to it, so that no change is lost with its pages.
        #[cfg(unix)]
        let released = unsafe {
            self.files[file].1.unchecked_advise_range(UncheckedAdvice::DontNeed, bytes.start, bytes.len())
        };
        #[cfg(not(unix))]
        let released = std::io::Result::Ok((file, bytes));
        // Nothing but the memory depends on it, and the map ends soon.
        drop(released);
    }

    /// The precision that most weights of the matrices are stored in; F32 if
    /// there are none.
    pub fn stored_precision(&self) -> Precision {
        let mut weights: HashMap<Precision, usize> = HashMap::new();
        for tensor in self.index.values().filter(|tensor| tensor.shape.len() == 2) {
            if let Ok(stored) = tensor.stored {
                *weights.entry(stored).or_default() += tensor.shape.iter().product::<usize>();
            }
        }
        weights.into_iter().max_by_key(|(_, weights)| *weights).map_or(Precision::F32, |(stored, _)| stored)
    }
}

/// Maps a file into memory, read-only.
///
/// # Errors
/// [`Error::Io`] if it can't be opened or mapped.
pub fn map_file(path: &Path) -> Result<Mmap, Error> {
    let file = File::open(path).map_err(|source| Error::Io { path: path.into(), source })?;
    // SAFETY: the map is only read. If another program truncates the file while
    // it is mapped, reading it raises SIGBUS, as for any reader of mapped files;
    // installed models are replaced by rename and never written in place.
    unsafe { Mmap::map(&file) }.map_err(|source| Error::Io { path: path.into(), source })
}
