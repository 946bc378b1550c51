use std::path::Path;

use formats::read_json;
use serde::Deserialize;

use crate::Error;

const FILE: &str = "generation_config.json";

/// The parts of `generation_config.json` that concern tokens. All of them are
/// optional, as old models come without this file.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct GenerationConfig {
    /// The decoder's (layer, head) pairs whose cross-attention follows the audio.
    pub alignment_heads: Option<Vec<(usize, usize)>>,
    /// Tokens that are never generated.
    pub suppress_tokens: Option<Vec<u32>>,
    /// Tokens that are never generated as the first one of a window.
    pub begin_suppress_tokens: Option<Vec<u32>>,
    /// Whether the model knows languages besides English.
    pub is_multilingual: Option<bool>,
}

impl GenerationConfig {
    /// Reads the file of a model's folder; the default if there is none.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        if !folder.join(FILE).is_file() {
            return Ok(Self::default());
        }
        Ok(read_json(folder, FILE)?)
    }
}
