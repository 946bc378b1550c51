//! Checks whether files make up a model that can be loaded, from their headers alone.

use std::path::Path;

use formats::{
    CanaryConfig, FileKind, ModelFiles, ParakeetConfig, SpeakerModel, Tensors, TextEmbeddingModel,
};
use memory::Dimensions;
use serde::Deserialize;
use std::collections::BTreeMap;

use crate::Error;

const AGAIN: &str = "Get the model again, with all of its files.";

/// Checks that `path`, a folder or a single file that has everything inside, is a
/// whole model: every tensor is there, in its shape. Of a model that tells speakers apart
/// the parts are checked.
///
/// # Errors
///
/// Fails with `Invalid`, naming the file and the part of it that is missing or wrong.
pub fn inspect(path: &Path) -> Result<(), Error> {
    if path.is_file() {
        kind(path)?;
    }
    if is_no_speech_model(path)? {
        return Ok(());
    }
    let source = ModelFiles::find(path).map_err(|error| match pickle_in(path) {
        Some(pickle) if matches!(error, formats::Error::Missing { .. }) => refuse_pickle(&pickle),
        _ => invalid(error),
    })?;
    let folder = match &source {
        ModelFiles::Safetensors { folder, files } => {
            for file in files.iter().filter(|file| file.is_file()) {
                kind(file)?;
            }
            Some(folder)
        }
        ModelFiles::Gguf { folder, .. } => Some(folder),
        // Its vocabulary is inside, and was read with its header.
        ModelFiles::Ggml { .. } => None,
    };
    if let Some(folder) = folder {
        for name in ["config.json", "tokenizer.json"].iter().filter(|name| folder.join(name).is_file()) {
            kind(&folder.join(name))?;
        }
    }
    if let Some(folder) = folder
        && let Some(parakeet) = ParakeetConfig::find(folder).map_err(invalid)?
    {
        return parakeet.check(folder, path).map_err(invalid);
    }
    if let Some(folder) = folder
        && let Some(canary) = CanaryConfig::find(folder).map_err(invalid)?
    {
        return canary.check(folder, path).map_err(invalid);
    }
    let dimensions = formats::WhisperConfig::read(path).map_err(invalid)?.dimensions;
    if let Some(folder) = folder {
        tokenizer(folder, dimensions.vocabulary)?;
    }
    let tensors = Tensors::open(path).map_err(invalid)?;
    compare(&tensors, &dimensions, path)
}

/// Whether a folder is that of a model that tells speakers apart or turns texts into vectors;
/// fails where it is one and not whole.
pub(crate) fn is_no_speech_model(path: &Path) -> Result<bool, Error> {
    if let Some(files) = SpeakerModel::find(path).map_err(invalid)? {
        files.check().map_err(invalid)?;
        return Ok(true);
    }
    let Some(model) = TextEmbeddingModel::find(path).map_err(invalid)? else { return Ok(false) };
    model.check().map_err(invalid)?;
    Ok(true)
}

/// Recognises a file by its content; fails for a kind that no model consists of.
pub(crate) fn kind(file: &Path) -> Result<FileKind, Error> {
    let kind = FileKind::of(file).map_err(invalid)?;
    let wrong = |problem: &str, remedy: &str| Error::Invalid {
        path: file.into(),
        problem: problem.into(),
        remedy: remedy.into(),
    };
    match kind {
        FileKind::Pickle => Err(refuse_pickle(file)),
        FileKind::Archive => Err(wrong(
            "it is an archive, as NeMo's models are, with a pickle inside",
            "Get the same model in safetensors form: of NVIDIA's Parakeet, `steno models pull parakeet-tdt-0.6b-v3`; of Canary, the layout of transformers' CanaryForConditionalGeneration.",
        )),
        FileKind::Zip => Err(wrong(
            "it is a zip archive, which is no model",
            "If there is a model in it, unpack it, and import the folder.",
        )),
        FileKind::LfsPointer => Err(wrong(
            "it is a pointer of Git LFS in place of the file",
            "Get the file itself: `git lfs pull`, or download it.",
        )),
        FileKind::WebPage => Err(wrong(
            "it is a page of a web site in place of the file",
            "Download the file itself, not the page about it.",
        )),
        other => Ok(other),
    }
}

/// Reading a pickle runs the code in it.
fn refuse_pickle(file: &Path) -> Error {
    Error::Invalid {
        path: file.into(),
        problem: "it is a pickle of PyTorch, which would run as a program when it is read".into(),
        remedy: "Convert it on a machine that you trust it with, in Python: \
                 WhisperForConditionalGeneration.from_pretrained(FOLDER).save_pretrained(OTHER, \
                 safe_serialization=True); a .pt file of openai-whisper with whisper.cpp's \
                 convert-pt-to-ggml.py. Then import the result."
            .into(),
    }
}

fn pickle_in(folder: &Path) -> Option<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut pickles: Vec<_> = entries
        .filter(|path| path.is_file() && FileKind::of(path).is_ok_and(|kind| kind == FileKind::Pickle))
        .collect();
    pickles.sort();
    pickles.into_iter().next()
}

pub(crate) fn invalid(error: formats::Error) -> Error {
    let remedy = AGAIN.into();
    match error {
        formats::Error::Missing { folder, file } => {
            Error::Invalid { path: folder, problem: format!("it has no {file}"), remedy }
        }
        formats::Error::Io { path, source } => Error::io(&path, source),
        formats::Error::Invalid { path, reason } => Error::Invalid { path, problem: reason, remedy },
        formats::Error::Unsupported { path, kind } => Error::Invalid {
            path,
            problem: format!(
                "it is of the kind \"{kind}\", neither Whisper nor Parakeet (CTC or TDT) nor Canary"
            ),
            remedy: "Choose another model.".into(),
        },
    }
}

#[derive(Debug, Deserialize)]
struct Tokenizer {
    #[serde(default)]
    added_tokens: Vec<Token>,
    model: Vocabulary,
}

#[derive(Debug, Deserialize)]
struct Token {
    id: u64,
    content: String,
}

#[derive(Debug, Deserialize)]
struct Vocabulary {
    vocab: BTreeMap<String, u64>,
}

/// The tokens that every decoding begins and ends with.
fn tokenizer(folder: &Path, vocabulary: u64) -> Result<(), Error> {
    const NAME: &str = "tokenizer.json";
    let read: Tokenizer = formats::read_json(folder, NAME).map_err(invalid)?;
    for name in ["<|endoftext|>", "<|startoftranscript|>", "<|notimestamps|>"] {
        let added = read.added_tokens.iter().find(|token| token.content == name).map(|token| token.id);
        let id = added.or_else(|| read.model.vocab.get(name).copied());
        let problem = match id {
            None => format!("the token {name} is missing"),
            Some(id) if id >= vocabulary => {
                format!("the token {name} has the number {id}, and config.json knows {vocabulary} tokens")
            }
            Some(_) => continue,
        };
        return Err(Error::Invalid { path: folder.join(NAME), problem, remedy: AGAIN.into() });
    }
    Ok(())
}

/// Every tensor that the network needs, in its shape, of a type that is known.
fn compare(tensors: &Tensors, dimensions: &Dimensions, path: &Path) -> Result<(), Error> {
    let file = |number: usize| tensors.files.get(number).map_or(path, |(file, _)| file.as_path()).to_owned();
    let wrong = |path, problem| Err(Error::Invalid { path, problem, remedy: AGAIN.into() });
    for Expected { name, shape, optional } in expected(dimensions) {
        let Some(entry) = tensors.index.get(&name) else {
            if optional {
                continue;
            }
            return wrong(file(0), format!("the tensor {name} is missing"));
        };
        if entry.shape != shape {
            let problem = format!(
                "the tensor {name} has the shape {:?}, which must be {shape:?} by the model's dimensions",
                entry.shape
            );
            return wrong(file(entry.file), problem);
        }
        if let Err(kind) = &entry.stored {
            let problem = format!("the tensor {name} is of the type {kind}, which is not supported");
            return wrong(file(entry.file), problem);
        }
    }
    Ok(())
}

struct Expected {
    name: String,
    shape: Vec<usize>,
    optional: bool,
}

/// The tensors of a Whisper network, by their names in the Hugging Face layout.
fn expected(of: &Dimensions) -> Vec<Expected> {
    let size = |number: u64| number as usize;
    let (width, bins, vocabulary) = (size(of.width), size(of.mel_bins), size(of.vocabulary));
    let mut all = Vec::new();
    let mut need = |name: String, shape: &[usize], optional| {
        all.push(Expected { name, shape: shape.to_vec(), optional });
    };
    for (number, input) in [(1, bins), (2, width)] {
        need(format!("model.encoder.conv{number}.weight"), &[width, input, 3], false);
        need(format!("model.encoder.conv{number}.bias"), &[width], false);
    }
    // Where it is missing it is computed; the output shares the embedding.
    need("model.encoder.embed_positions.weight".into(), &[size(of.audio_context), width], true);
    need("model.decoder.embed_positions.weight".into(), &[size(of.text_context), width], false);
    need("model.decoder.embed_tokens.weight".into(), &[vocabulary, width], false);
    need("proj_out.weight".into(), &[vocabulary, width], true);
    for (side, layers, hidden, attentions) in [
        ("encoder", of.encoder_layers, size(of.encoder_ffn), &["self_attn"][..]),
        ("decoder", of.decoder_layers, size(of.decoder_ffn), &["self_attn", "encoder_attn"][..]),
    ] {
        let mut norms = vec![format!("model.{side}.layer_norm")];
        for layer in (0..layers).map(|number| format!("model.{side}.layers.{number}")) {
            for attention in attentions {
                for part in ["q_proj", "k_proj", "v_proj", "out_proj"] {
                    need(format!("{layer}.{attention}.{part}.weight"), &[width, width], false);
                    if part != "k_proj" {
                        need(format!("{layer}.{attention}.{part}.bias"), &[width], false);
                    }
                }
                norms.push(format!("{layer}.{attention}_layer_norm"));
            }
            norms.push(format!("{layer}.final_layer_norm"));
            for (part, output, input) in [("fc1", hidden, width), ("fc2", width, hidden)] {
                need(format!("{layer}.{part}.weight"), &[output, input], false);
                need(format!("{layer}.{part}.bias"), &[output], false);
            }
        }
        for norm in norms {
            need(format!("{norm}.weight"), &[width], false);
            need(format!("{norm}.bias"), &[width], false);
        }
    }
    all
}
