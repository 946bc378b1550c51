//! Which files of a repository make up a model that the catalogue does not list.

use crate::{Error, files};

const WEIGHTS: &str = "model.safetensors";
const SHARDS: &str = "model.safetensors.index.json";
const BESIDE: [&str; 4] =
    ["config.json", "generation_config.json", "preprocessor_config.json", "tokenizer.json"];
/// Of a repository of sentence-transformers: its steps, and what each is told.
const STEPS: [&str; 5] = [
    "modules.json",
    "1_Pooling/config.json",
    "sentence_bert_config.json",
    "config_sentence_transformers.json",
    "tokenizer_config.json",
];

/// Fails with `NotOffered`, saying what is missing. A repository that has only
/// pickles is refused: reading one runs what is in it.
pub(crate) fn of(id: &str, names: impl Iterator<Item = String>) -> Result<Vec<String>, Error> {
    let all: Vec<String> = names.collect();
    let steps = STEPS.iter().filter(|_| all.iter().any(|name| name == STEPS[0]));
    let steps = steps.filter(|step| all.iter().any(|name| name == *step)).map(|step| (*step).to_owned());
    let steps: Vec<String> = steps.collect();
    // Other folders hold variants for other programs.
    let mut names: Vec<String> = all.into_iter().filter(|name| files::is_plain_name(name)).collect();
    names.sort();
    let has = |name: &str| names.iter().any(|known| known == name);
    let not_offered =
        |why: String, remedy: &str| Error::NotOffered { id: id.into(), why, remedy: remedy.into() };
    let one_with = |start: &str, end: &str| -> Vec<String> {
        names.iter().filter(|name| name.starts_with(start) && name.ends_with(end)).cloned().collect()
    };
    let beside = BESIDE.iter().filter(|name| has(name)).map(|name| (*name).to_owned());
    let weights = if has(WEIGHTS) {
        vec![WEIGHTS.to_owned()]
    } else if has(SHARDS) {
        [one_with("model-", ".safetensors"), vec![SHARDS.to_owned()]].concat()
    } else {
        let (gguf, ggml) = (one_with("", ".gguf"), one_with("ggml-", ".bin"));
        let single = if gguf.is_empty() { ggml } else { gguf };
        match single.as_slice() {
            [] if names.iter().any(|name| is_pickle(name)) => {
                return Err(not_offered(
                    "its weights are a pickle, which would run as a program when it is read".into(),
                    "Convert it on a machine that you trust it with: in Python, \
                     `WhisperForConditionalGeneration.from_pretrained(...).save_pretrained(FOLDER, \
                     safe_serialization=True)`; then import that folder.",
                ));
            }
            [] => {
                let why = format!("the repository has no {WEIGHTS}, GGUF or ggml file");
                return Err(not_offered(why, "Choose another repository."));
            }
            [one] => vec![one.clone()],
            several => {
                let why = format!("the repository has several models: {}", several.join(", "));
                return Err(not_offered(why, "Give the address of the file that you want."));
            }
        }
    };
    // A file of whisper.cpp has everything inside.
    if weights.iter().any(|name| name.ends_with(".bin")) {
        return Ok(weights);
    }
    for needed in ["config.json", "tokenizer.json"] {
        if !has(needed) {
            return Err(not_offered(format!("the repository has no {needed}"), "Choose another repository."));
        }
    }
    Ok(beside.chain(steps).chain(weights).collect())
}

fn is_pickle(name: &str) -> bool {
    [".bin", ".pt", ".pth", ".ckpt", ".nemo"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_read_as_people_publish_them() {
        let beside = ["config.json", "generation_config.json", "tokenizer.json"];
        // Names in the repository -> names taken, or a part of what is said.
        type Case<'a> = (&'a [&'a str], Result<&'a [&'a str], &'a str>);
        let cases: [Case; 8] = [
            (
                &["modules.json", "1_Pooling/config.json", "model.safetensors", "onnx/config.json"],
                Ok(&[
                    "config.json",
                    "generation_config.json",
                    "tokenizer.json",
                    "modules.json",
                    "1_Pooling/config.json",
                    "model.safetensors",
                ]),
            ),
            (
                &[
                    "model.safetensors",
                    "pytorch_model.bin",
                    "flax_model.msgpack",
                    "README.md",
                    "onnx/model.onnx",
                ],
                Ok(&["config.json", "generation_config.json", "tokenizer.json", "model.safetensors"]),
            ),
            (
                &["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", SHARDS],
                Ok(&[
                    "config.json",
                    "generation_config.json",
                    "tokenizer.json",
                    "model-00001-of-00002.safetensors",
                    "model-00002-of-00002.safetensors",
                    SHARDS,
                ]),
            ),
            (&["ggml-base.bin"], Ok(&["ggml-base.bin"])),
            (&["q8.gguf"], Ok(&["config.json", "generation_config.json", "tokenizer.json", "q8.gguf"])),
            (&["q8.gguf", "q4.gguf"], Err("several models: q4.gguf, q8.gguf")),
            (&["pytorch_model.bin"], Err("a pickle")),
            (&["README.md"], Err("no model.safetensors")),
        ];
        for (names, expected) in cases {
            let names = names.iter().chain(&beside).map(|name| (*name).to_owned());
            match (of("x", names), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected),
                (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
                (found, expected) => panic!("{found:?} for {expected:?}"),
            }
        }
        let error = of("x", ["model.safetensors".to_owned()].into_iter()).unwrap_err().to_string();
        assert!(error.contains("no config.json"), "{error}");
    }
}
