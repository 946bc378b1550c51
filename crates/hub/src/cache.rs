use std::path::{Path, PathBuf};

use crate::{files, settings};

/// The Hugging Face cache, in which other programs keep what they downloaded from
/// the hub. It is read and never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// A model that another program downloaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cached {
    /// `owner/name`.
    pub repository: String,
    /// The commit at which it was downloaded.
    pub commit: String,
    /// In the Hugging Face layout.
    pub folder: PathBuf,
}

impl Cache {
    /// The cache in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// `HF_HUB_CACHE`, else `hub` in `HF_HOME`, else in the usual folder.
    pub fn of_environment(variable: &dyn Fn(&str) -> Option<String>, home: Option<&Path>) -> Option<Self> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty()).map(PathBuf::from);
        let named = set("HF_HUB_CACHE").or_else(|| set("HUGGINGFACE_HUB_CACHE"));
        let folder = named.or_else(|| Some(settings::hub_folder(variable, home)?.join("hub")))?;
        Some(Self { folder })
    }

    /// The folder that it reads.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The models in it that are whole and in the Hugging Face layout, each at
    /// the commit that it was last asked for at. A cache that can't be read has
    /// none.
    pub fn list(&self) -> Vec<Cached> {
        let names = files::names(&self.folder).unwrap_or_default();
        names.iter().filter_map(|name| self.model(name)).collect()
    }

    /// `models--owner--name`.
    fn model(&self, name: &str) -> Option<Cached> {
        let repository = name.strip_prefix("models--")?.replacen("--", "/", 1);
        let folder = self.folder.join(name);
        let commit = std::fs::read_to_string(folder.join("refs/main")).ok();
        let commit = match commit.map(|text| text.trim().to_owned()).filter(|text| files::is_plain_name(text))
        {
            Some(commit) => commit,
            // It was asked for by its commit. With several commits it is unknown
            // which one is meant.
            None => match files::names(&folder.join("snapshots")).ok()?.as_slice() {
                [one] => one.clone(),
                _ => return None,
            },
        };
        let folder = folder.join("snapshots").join(&commit);
        // A link whose file was not downloaded does not count.
        let is_there = |name: &str| folder.join(name).is_file();
        let has_weights = is_there("model.safetensors") || has_shards(&folder);
        (is_there("config.json") && is_there("tokenizer.json") && has_weights).then_some(Cached {
            repository,
            commit,
            folder,
        })
    }
}

fn has_shards(folder: &Path) -> bool {
    let text = std::fs::read(folder.join("model.safetensors.index.json")).unwrap_or_default();
    let index: serde_json::Value = serde_json::from_slice(&text).unwrap_or_default();
    let Some(shards) = index["weight_map"].as_object() else { return false };
    let is_there = |name: &serde_json::Value| name.as_str().is_some_and(|name| folder.join(name).is_file());
    !shards.is_empty() && shards.values().all(is_there)
}
