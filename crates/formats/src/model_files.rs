use std::path::{Path, PathBuf};

use crate::{Error, FileKind};

/// The files that a model is read from. Formats are recognised by the first
/// bytes of a file, not by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelFiles {
    /// A folder in the Hugging Face layout.
    Safetensors {
        /// The folder of `config.json` and the tokenizer.
        folder: PathBuf,
        /// `model.safetensors`, or the shards that the index names.
        files: Vec<PathBuf>,
    },
    /// A GGUF file beside the other files of the Hugging Face layout.
    Gguf {
        /// The folder of `config.json` and the tokenizer.
        folder: PathBuf,
        /// The weights.
        file: PathBuf,
    },
    /// A file of whisper.cpp, which includes dimensions and vocabulary.
    Ggml {
        /// The file.
        file: PathBuf,
    },
}

const SINGLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

#[derive(serde::Deserialize)]
struct ShardIndex {
    weight_map: std::collections::HashMap<String, String>,
}

impl ModelFiles {
    /// Finds the files of the model at `path`: a folder, or a GGUF or
    /// whisper.cpp file. A folder's safetensors take precedence over other files.
    ///
    /// # Errors
    /// [`Error::Missing`] for a folder without weights, [`Error::Invalid`] for
    /// one with several GGUF or whisper.cpp files, for a file of another format
    /// and for a damaged index of shards, [`Error::Io`] for what can't be read.
    pub fn find(path: &Path) -> Result<Self, Error> {
        if !path.is_dir() {
            return Self::of_file(path)?.ok_or_else(|| {
                let reason = match FileKind::of(path) {
                    Ok(FileKind::Archive) => {
                        "it is an archive of NeMo, with a pickle inside, which is not read; give the folder of the \
                         same model in safetensors"
                    }
                    _ => "it is neither a GGUF file nor one of whisper.cpp; give a model's folder for anything else",
                };
                Error::invalid(path, reason)
            });
        }
        if let Some(files) = safetensors(path)? {
            return Ok(Self::Safetensors { folder: path.into(), files });
        }
        let mut found: Vec<(PathBuf, Self)> = Vec::new();
        let unreadable = |source| Error::Io { path: path.into(), source };
        for entry in std::fs::read_dir(path).map_err(unreadable)? {
            let file = entry.map_err(unreadable)?.path();
            let has_model_extension =
                file.extension().is_some_and(|ending| ending == "gguf" || ending == "bin");
            if has_model_extension
                && file.is_file()
                && let Some(source) = Self::of_file(&file)?
            {
                found.push((file, source));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        match found.len() {
            0 => Err(Error::Missing { folder: path.into(), file: SINGLE }),
            1 => Ok(found.remove(0).1),
            _ => {
                let names: Vec<_> =
                    found.iter().filter_map(|(file, _)| Some(file.file_name()?.to_string_lossy())).collect();
                Err(Error::invalid(path, format!("it has {}; give the file that is meant", names.join(", "))))
            }
        }
    }

    fn of_file(file: &Path) -> Result<Option<Self>, Error> {
        let folder = || file.parent().unwrap_or(Path::new("")).to_owned();
        Ok(match FileKind::of(file)? {
            FileKind::Gguf => Some(Self::Gguf { folder: folder(), file: file.into() }),
            FileKind::Ggml => Some(Self::Ggml { file: file.into() }),
            _ => None,
        })
    }
}

/// The safetensors files of a folder, if it has any.
fn safetensors(folder: &Path) -> Result<Option<Vec<PathBuf>>, Error> {
    let index_path = folder.join(INDEX);
    if folder.join(SINGLE).is_file() {
        return Ok(Some(vec![folder.join(SINGLE)]));
    }
    if !index_path.is_file() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(&index_path)
        .map_err(|source| Error::Io { path: index_path.clone(), source })?;
    let index: ShardIndex =
        serde_json::from_str(&text).map_err(|error| Error::invalid(&index_path, error))?;
    let mut names: Vec<String> = index.weight_map.into_values().collect();
    names.sort();
    names.dedup();
    // A name with a path separator could refer to any file on the disk.
    if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
        return Err(Error::invalid(index_path, format!("the shard name {name:?} is not a file name")));
    }
    Ok(Some(names.iter().map(|name| folder.join(name)).collect()))
}
