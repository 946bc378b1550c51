//! Models that turn texts into vectors, for the search by meaning.

use std::path::Path;
use std::time::UNIX_EPOCH;

use formats::{TextEmbeddingConfig, TextEmbeddingModel};
use hub::Manifest;
use memory::{DeviceKind, Footprint, Precision};
use supervisor::EmbeddingModel;

use crate::ModelRef;
use crate::models::Places;

/// Every installed model that turns texts into vectors, sorted by name. Damaged ones are left out.
pub fn list_embedding_models() -> Vec<ModelRef> {
    Places::of_this_process().list_embedding()
}

/// The installed model to search with; `None` where there is none. `english_only`: every
/// transcript is in English; otherwise a multilingual model comes first. Of two that suit alike
/// it is the larger one, which finds more, unless this machine has no memory for it.
pub fn embedding_model(english_only: bool) -> Option<EmbeddingModel> {
    let memory = memory::platform::machine().map(|machine| machine.total);
    choose(&list_embedding_models(), english_only, memory)
}

/// Every installed model that turns texts into vectors, the one of [`embedding_model`] first.
pub fn embedding_models(english_only: bool) -> Vec<EmbeddingModel> {
    let all = list_embedding_models();
    let memory = memory::platform::machine().map(|machine| machine.total);
    let best = choose(&all, english_only, memory);
    let others = all.iter().filter_map(|one| choose(std::slice::from_ref(one), english_only, memory));
    let others: Vec<_> = others.filter(|one| Some(one) != best.as_ref()).collect();
    best.into_iter().chain(others).collect()
}

/// As [`embedding_model`], of these models on a machine with so many bytes of memory.
pub fn choose(models: &[ModelRef], english_only: bool, memory: Option<u64>) -> Option<EmbeddingModel> {
    let read = |model: &ModelRef| Some((model.clone(), TextEmbeddingModel::find(&model.path).ok()??));
    let suits = |config: &TextEmbeddingConfig| english_only || config.is_multilingual();
    let fits = |model: &TextEmbeddingModel| memory.is_none_or(|bytes| peak(model) <= bytes);
    let best = models.iter().filter_map(read).max_by_key(|(model, files)| {
        let weights = files.sizes().weights;
        (fits(files), suits(&files.config), weights, std::cmp::Reverse(model.name.clone()))
    });
    let (model, files) = best?;
    Some(EmbeddingModel {
        version: version(&files)?,
        dimensions: files.config.width,
        folder: model.path,
        name: model.name,
    })
}

/// Predicted of one text at a time on the CPU.
fn peak(model: &TextEmbeddingModel) -> u64 {
    const TOKENS: u64 = 256;
    let tokens = TOKENS.min(model.config.max_tokens as u64);
    Footprint::text_embedding(&model.sizes(), DeviceKind::Host, Precision::F32, tokens).peak(1)
}

/// The checksum of the weights, where it was taken when they came; else their size and age.
fn version(files: &TextEmbeddingModel) -> Option<String> {
    let manifest = Manifest::read(&files.folder).ok().flatten().filter(|it| it.is_at(&files.folder));
    let known = |path: &Path| {
        let name = path.file_name()?.to_str()?;
        manifest.as_ref()?.files.iter().find(|file| file.name == name)?.sha256.clone()
    };
    let of_file = |path: &Path| {
        known(path).or_else(|| {
            let found = std::fs::metadata(path).ok()?;
            let age = found.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
            Some(format!("{}-{}", found.len(), age.as_secs()))
        })
    };
    let parts: Option<Vec<String>> = files.weights().ok()?.iter().map(|path| of_file(path)).collect();
    Some(parts?.join("+"))
}
