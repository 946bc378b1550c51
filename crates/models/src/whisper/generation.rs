use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// What `generation_config.json` says about the tokens; everything in it is
/// optional, since old models come without.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GenerationConfig {
    /// (layer, head) whose cross-attention follows the audio.
    pub alignment_heads: Option<Vec<(usize, usize)>>,
    pub suppress_tokens: Option<Vec<u32>>,
    pub begin_suppress_tokens: Option<Vec<u32>>,
    pub lang_to_id: Option<HashMap<String, u32>>,
    pub is_multilingual: Option<bool>,
}

impl GenerationConfig {
    pub fn read(folder: &Path) -> Result<Self, Error> {
        if !folder.join("generation_config.json").is_file() {
            return Ok(Self::default());
        }
        read_json(folder, "generation_config.json")
    }
}

pub(crate) fn read_json<T: serde::de::DeserializeOwned>(
    folder: &Path,
    file: &'static str,
) -> Result<T, Error> {
    let path = folder.join(file);
    if !path.is_file() {
        return Err(Error::Missing { folder: folder.into(), file });
    }
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Io { path: path.clone(), source })?;
    serde_json::from_str(&text).map_err(|error| Error::invalid(path, error))
}
